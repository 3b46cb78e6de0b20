"""Texts decoded in one batch are the loop's own texts, wherever each stands in its round."""

from __future__ import annotations

import threading
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch

import specviz as sv
from specviz.core.contract import Sampling
from specviz.core.rules import RULES
from specviz.core.tabular import TabularModel, TabularPair
from specviz.decoding.hf.cache import UnsupportedModelError
from specviz.decoding.replicas.batch_scheduler import BatchedPair, RowSession
from specviz.decoding.replicas.engine import END, Replicas, replicas
from specviz.decoding.replicas.padded_batch import PaddedBatch
from tests.decoding import families
from tests.drafters.changed import Changed

PROMPT = [1, 2, 3]
STOPS = frozenset({5, 17, 40})
LENGTH = 24
TEXTS = 6


def exact_pair(family: str = "llama", **changes: Any) -> sv.Pair:
    """A pair in float64, where rounding flips no draw; its Llama has grouped queries."""
    build = families.FAMILIES[family]
    if changes:
        build = partial(families.make, partial(families.llama, **changes))
    target, draft = build()
    target.model.double()
    draft.model.double()
    return sv.Pair(target=target, draft=draft)


@pytest.fixture(scope="module")
def pair() -> sv.Pair:
    found = exact_pair()
    found.stop_ids = STOPS
    return found


def texts_of(pair: Any, drafter: Any, rule: str, length: int, **options: Any) -> list[list[int]]:
    """Return texts of batches of three: each row decodes several, one after another."""
    rows = replicas(
        pair, PROMPT, TEXTS, length=length, drafter=drafter, rule=RULES[rule], seed=3, at_once=3,
        progress=False, **options,
    )  # fmt: skip
    return [row[row != END].tolist() for row in rows]


def loop_of(pair: Any, drafter: Any, rule: str, length: int, **settings: Any) -> list[list[int]]:
    """Return the same texts by ``generate``."""
    options = {"drafter": drafter, "verify": rule, "seed": 3, "max_new_tokens": length, **settings}
    return [sv.generate(pair, PROMPT, sequence=i, **options).tokens.tolist() for i in range(TEXTS)]


WAYS: list[tuple[str, Any, Sampling]] = [
    ("rejection", sv.DraftModel(3), Sampling()),
    ("rejection", sv.DraftModel(sv.AdaptiveGamma(start=2)), Sampling(temperature=0.7)),
    ("rejection", sv.PromptLookup(4), Sampling(top_k=8)),
    ("rejection", sv.Tree((2, 2, 1)), Sampling()),
    ("rejection", sv.Combined(), Sampling(repetition_penalty=1.2)),
    ("match", sv.DraftModel(3), Sampling(top_p=0.9)),
    ("match", sv.TargetOnly(), Sampling()),
    ("coupled", sv.DraftModel(4, noise="target"), Sampling()),
    ("block", sv.DraftModel(3), Sampling()),
    ("greedy", sv.DraftModel(3), Sampling(temperature=0)),
]


@pytest.mark.parametrize(
    ("rule", "drafter", "sampling"), WAYS, ids=[f"{r}-{d.name}" for r, d, _ in WAYS]
)
def test_each_text_is_the_loops(pair: sv.Pair, rule: str, drafter: Any, sampling: Sampling) -> None:
    ours = texts_of(pair, drafter, rule, LENGTH, sampling=sampling)
    settings = {
        "temperature": sampling.temperature, "top_k": sampling.top_k, "top_p": sampling.top_p,
        "repetition_penalty": sampling.repetition_penalty,
    }  # fmt: skip
    assert ours == loop_of(pair, drafter, rule, LENGTH, **settings)
    if sampling.temperature:
        ended = [text for text in ours if text[-1] in STOPS]
        assert ended and len({len(text) for text in ours}) > 1  # some end within a run
        assert not any(STOPS & set(text[:-1]) for text in ours)


@pytest.mark.parametrize("family", ["gpt2", "gemma2", "qwen2-mixed", "mistral"])
def test_other_families(family: str) -> None:
    pair = exact_pair(family)
    drafter = sv.DraftModel(3)
    assert texts_of(pair, drafter, "rejection", 20) == loop_of(pair, drafter, "rejection", 20)


def test_float32_is_the_loop_too() -> None:
    target, draft = families.FAMILIES["llama"]()
    pair, drafter = sv.Pair(target=target, draft=draft), sv.DraftModel(3)
    assert texts_of(pair, drafter, "rejection", 20) == loop_of(pair, drafter, "rejection", 20)


@pytest.mark.parametrize("rule", ["rejection", "block"])
def test_a_draft_equal_to_its_target_is_accepted_whole(
    pair: sv.Pair, monkeypatch: pytest.MonkeyPatch, rule: str
) -> None:
    """Every round leaves the draft's cache one token short, and emits gamma + 1."""
    same = sv.Pair(target=pair.target, draft=exact_pair().target)
    seen: list[int] = []
    keep = RowSession.keep

    def kept(self: RowSession, path: Any) -> None:
        seen.append(len(path))
        keep(self, path)

    monkeypatch.setattr(RowSession, "keep", kept)
    ours = texts_of(same, sv.DraftModel(3), rule, 24)
    assert set(seen) == {3} and len(seen) == TEXTS * 6
    monkeypatch.undo()
    assert ours == loop_of(same, sv.DraftModel(3), rule, 24)


@pytest.mark.parametrize("contexts", [(30, 30), (30, 12)])
def test_up_to_the_end_of_the_context(contexts: tuple[int, int]) -> None:
    pair = exact_pair(max_position_embeddings=30)
    pair.target.context_length, pair.draft.context_length = contexts
    drafter = sv.DraftModel(4)
    ours = texts_of(pair, drafter, "rejection", 27)
    assert [len(text) for text in ours] == [27] * TEXTS
    assert ours == loop_of(pair, drafter, "rejection", 27)


def test_passes_are_shared(pair: sv.Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    run = PaddedBatch.run

    def counted(self: PaddedBatch, passes: Any) -> Any:
        sizes.append(len(passes))
        return run(self, passes)

    endless = sv.Pair(target=pair.target, draft=pair.draft)
    many = Replicas(
        endless, np.array(PROMPT), 30, sv.DraftModel(3), RULES["rejection"], at_once=8
    )  # fmt: skip
    many.draw(1, progress=False)  # holds the trials
    monkeypatch.setattr(PaddedBatch, "run", counted)
    many.draw(8, first=1, progress=False)
    assert np.mean(sizes) > 5


def _rejected_seen(self: PaddedBatch, passes: Any, columns: Any, end: int) -> Any:
    """Columns beyond what is fed, where rejected proposals lie, are seen."""
    seen = columns[..., None] >= np.arange(end)
    seen |= columns[:, -1:, None] < np.arange(end)
    mask = torch.zeros(seen.shape, dtype=self.session.model.dtype)
    mask.masked_fill_(~torch.from_numpy(seen), torch.finfo(mask.dtype).min)
    return dict.fromkeys(self.session.kind.windows, mask[:, None])


def _wrong_row(run: Any) -> Any:
    return lambda self, passes: [*run(self, passes)[1:], run(self, passes)[0]]


def _bonus_from_before(run: Any) -> Any:
    """The row after the last proposal is the one before it."""

    def wrong(self: Any, passes: Any) -> Any:
        rows = run(self, passes)
        return [row if len(row) < 4 else row[[0, 1, 2, 2]] for row in rows]

    return wrong


@pytest.mark.parametrize(
    "plant",
    [
        lambda m: m.setattr(PaddedBatch, "_masks", _rejected_seen),
        lambda m: m.setattr(PaddedBatch, "run", _wrong_row(PaddedBatch.run)),
        lambda m: m.setattr(PaddedBatch, "run", _bonus_from_before(PaddedBatch.run)),
    ],
    ids=["rejected columns unmasked", "rows mixed up", "bonus off by one"],
)
def test_a_planted_fault_is_another_text(
    pair: sv.Pair, monkeypatch: pytest.MonkeyPatch, plant: Any
) -> None:
    drafter = sv.DraftModel(3)
    right = loop_of(pair, drafter, "rejection", 20)
    assert texts_of(pair, drafter, "rejection", 20) == right
    plant(monkeypatch)
    assert texts_of(pair, drafter, "rejection", 20) != right


def test_what_is_drawn_does_not_depend_on_the_batch(pair: sv.Pair) -> None:
    def drawn(at_once: int | None) -> Any:
        many = Replicas(
            pair, np.array(PROMPT), 30, sv.DraftModel(3), RULES["rejection"], at_once=at_once
        )  # fmt: skip
        return many.draw(9, first=4, progress=False)

    alone = drawn(1)
    assert all(np.array_equal(alone, drawn(at_once)) for at_once in (2, 9, None))


def test_later_draws_may_have_more_rows(pair: sv.Pair) -> None:
    many = Replicas(pair, np.array(PROMPT), 18, sv.DraftModel(2), RULES["match"])
    two, six = many.draw(2, progress=False), many.draw(6, progress=False)
    assert np.array_equal(two, six[:2])
    assert many._batched is not None
    assert many._batched.rows == 6
    many.draw(3, progress=False)
    assert many._batched.rows == 6


def test_long_texts_are_batched_and_short_ones_that_meet_are_not(pair: sv.Pair) -> None:
    def batched(length: int, n: int, sampling: Sampling) -> bool:
        many = Replicas(
            pair, np.array(PROMPT), length, sv.DraftModel(3), RULES["match"], sampling=sampling
        )  # fmt: skip
        many.draw(n, progress=False)
        return many._batched is not None

    assert batched(20, 2, Sampling())
    assert not batched(20, 1, Sampling())
    assert batched(8, 5, Sampling())  # nearly every context is new
    assert not batched(3, 300, Sampling(top_k=2))


def test_an_error_in_one_text_ends_them_all_and_leaves_nothing_behind(pair: sv.Pair) -> None:
    class Breaks(Changed, sv.PromptLookup):
        broken = True

        def change(self, inner: Any, context: Any, draws: Any) -> Any:
            if Breaks.broken and len(context.tokens) > 12:
                raise RuntimeError("out of ideas")
            return inner.propose(context, draws)

    drafter = Breaks(2)
    many = Replicas(pair, np.array(PROMPT), 20, drafter, RULES["rejection"], at_once=3)
    before = threading.active_count()
    with pytest.raises(RuntimeError, match="out of ideas"):
        many.draw(9, progress=False)
    assert threading.active_count() == before
    Breaks.broken = False
    right = replicas(
        pair, PROMPT, 9, length=20, drafter=sv.PromptLookup(2), rule=RULES["rejection"], at_once=1
    )  # fmt: skip
    assert np.array_equal(many.draw(9, progress=False), right)


def test_what_cannot_be_batched_is_refused_or_decoded_one_by_one() -> None:
    target, draft = families.CHAINS_ONLY["bloom"]()
    pair = sv.Pair(target=target, draft=draft)
    with pytest.raises(UnsupportedModelError, match="model type 'bloom' cannot read texts"):
        texts_of(pair, sv.DraftModel(2), "rejection", 18)
    many = Replicas(pair, np.array(PROMPT), 18, sv.DraftModel(2), RULES["rejection"], seed=3)
    ours = many.draw(2, progress=False).tolist()
    assert ours == loop_of(pair, sv.DraftModel(2), "rejection", 18)[:2]


def test_a_drafter_that_reads_hidden_states_is_refused(pair: sv.Pair) -> None:
    with pytest.raises(UnsupportedModelError, match="'early_exit' reads what a pass leaves"):
        texts_of(pair, sv.EarlyExit(1, gamma=2), "rejection", 18)


def test_bad_numbers_and_tables_are_refused(pair: sv.Pair) -> None:
    with pytest.raises(ValueError, match="at_once must be a whole number >= 1, got 0"):
        Replicas(pair, np.array(PROMPT), 4, sv.DraftModel(2), RULES["match"], at_once=0)
    coin = TabularModel([0.5, 0.5])
    with pytest.raises(UnsupportedModelError, match="is not a network"):
        BatchedPair(TabularPair(coin, coin), np.array([0]), rows=2)
