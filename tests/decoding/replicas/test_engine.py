"""Replicas: each is the loop's own text; side by side they are the same texts,
or the same distribution.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import specviz as sv
from specviz.core.contract import Draft, Sampling
from specviz.core.draws import invert
from specviz.core.rules import RULES
from specviz.core.tabular import TabularModel, TabularPair
from specviz.decoding.hf.cache import UnsupportedModelError
from specviz.decoding.replicas import prefix_batches as levels
from specviz.decoding.replicas.engine import END, Replicas, replicas
from specviz.decoding.replicas.logit_cache import LogitCache
from specviz.decoding.replicas.vectorised_rejection import (
    VectorisedRejection,
    distinct,
    invert_rows,
)
from specviz.lossless import Sample, Verdict, battery
from tests.decoding import families

PROMPT = [2, 1]
LENGTH = 6


def pair(**options: Any) -> TabularPair:
    target = TabularModel.random(5, 2, seed=0, **options)
    other = TabularModel.random(5, 2, seed=1)
    return TabularPair(target, TabularModel(0.6 * target.table + 0.4 * other.table))


WAYS: list[tuple[str, Any, Any]] = [
    ("rejection", sv.DraftModel(3), Sampling()),
    ("rejection", sv.DraftModel(sv.AdaptiveGamma(start=2)), Sampling(temperature=0.7)),
    ("rejection", sv.PromptLookup(3), Sampling()),
    ("rejection", sv.Tree((2, 1)), Sampling()),
    ("rejection", sv.Combined(), Sampling(top_k=3)),
    ("rejection", sv.DraftModel(3), Sampling(repetition_penalty=1.3)),
    ("match", sv.DraftModel(3), Sampling(top_p=0.9)),
    ("match", sv.TargetOnly(), Sampling()),
    ("coupled", sv.DraftModel(3, noise="target"), Sampling()),
    ("block", sv.DraftModel(3), Sampling()),
    ("greedy", sv.DraftModel(3), Sampling(temperature=0)),
    ("lenience", sv.DraftModel(3), Sampling()),
]


def same(ours: Any, trace: Any, length: int) -> bool:
    text = ours[ours != END].tolist()
    return bool(text == trace.tokens[:length].tolist())


@pytest.mark.filterwarnings("ignore::specviz.api.arguments.LossyWarning")
@pytest.mark.parametrize(
    ("rule", "drafter", "sampling"), WAYS, ids=[f"{r}-{d.name}" for r, d, _ in WAYS]
)
@pytest.mark.parametrize("stop", [(), (3,)])
def test_each_replica_is_the_loops_own_text(
    rule: str, drafter: Any, sampling: Sampling, stop: tuple[int, ...]
) -> None:
    tables = pair(eos_ids=stop)
    texts = replicas(
        tables, PROMPT, 25, length=LENGTH, drafter=drafter, rule=RULES[rule], sampling=sampling,
        seed=4, first=7,
    )  # fmt: skip
    settings = {
        "temperature": sampling.temperature, "top_k": sampling.top_k, "top_p": sampling.top_p,
        "repetition_penalty": sampling.repetition_penalty, "verify": rule, "drafter": drafter,
    }  # fmt: skip
    assert texts.shape == (25, LENGTH)
    for i, text in enumerate(texts):
        trace = sv.generate(
            tables, PROMPT, seed=4, sequence=7 + i, max_new_tokens=LENGTH, **settings
        )
        assert same(text, trace, LENGTH)
    if sampling.temperature:
        assert len({tuple(text) for text in texts.tolist()}) > 3  # they are no copies


def test_other_seeds_give_other_texts() -> None:
    draw = {"length": LENGTH, "drafter": sv.DraftModel(2), "rule": RULES["rejection"]}
    one, two = (replicas(pair(), PROMPT, 20, seed=seed, **draw) for seed in (0, 1))
    assert not np.array_equal(one, two)


@pytest.mark.parametrize("stop", [(), (3,)])
@pytest.mark.parametrize("gamma", [1, 3, 8])
@pytest.mark.parametrize("sampling", [Sampling(), Sampling(temperature=0.7, top_k=3)])
def test_side_by_side_with_keys_is_the_loop(
    gamma: int, sampling: Sampling, stop: tuple[int, ...]
) -> None:
    tables = pair(eos_ids=stop)
    for longest in (LENGTH, LENGTH + gamma):
        many = VectorisedRejection(
            tables.target, tables.draft, np.array(PROMPT), 5, length=LENGTH, gamma=gamma,
            sampling=sampling, stop_ids=tables.stop_ids, max_new_tokens=longest,
        )  # fmt: skip
        loop = Replicas(
            tables, np.array(PROMPT), LENGTH, sv.DraftModel(gamma), RULES["rejection"],
            sampling=sampling, seed=9, max_new_tokens=longest,
        )  # fmt: skip
        assert np.array_equal(many.draw(60, seed=9, first=3), loop.draw(60, first=3))


def test_side_by_side_where_the_draft_has_a_shorter_context() -> None:
    target = pair().target
    draft = TabularModel(pair().draft.table, context_length=5)  # type: ignore[union-attr]
    tables = TabularPair(target, draft)
    many = VectorisedRejection(target, draft, np.array(PROMPT), 5, length=LENGTH, gamma=3)
    loop = Replicas(tables, np.array(PROMPT), LENGTH, sv.DraftModel(3), RULES["rejection"])
    assert np.array_equal(many.draw(60, seed=0), loop.draw(60))


def verdict_of(tokens: Any, distribution: TabularModel) -> Verdict:
    sample = Sample.of(tokens, vocab_size=5)
    return battery(sample, lambda prefix: distribution.distribution([*PROMPT, *prefix])).verdict


def test_side_by_side_from_one_generator_has_the_targets_distribution() -> None:
    tables = pair()
    assert tables.draft is not None
    many = VectorisedRejection(tables.target, tables.draft, np.array(PROMPT), 5, length=4, gamma=2)
    tokens = many.draw(100_000, seed=2, keyed=False)
    assert verdict_of(tokens, tables.target) is Verdict.NO_DISCREPANCY_FOUND
    assert verdict_of(tokens, tables.draft) is Verdict.DISCREPANCY


def test_a_residual_left_out_is_caught_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("specviz.decoding.replicas.vectorised_rejection.residual", lambda p, q: p)
    tables = pair()
    many = VectorisedRejection(tables.target, tables.draft, np.array(PROMPT), 5, length=4, gamma=2)
    tokens = many.draw(100_000, seed=2, keyed=False)
    assert verdict_of(tokens, tables.target) is Verdict.DISCREPANCY


@pytest.fixture(scope="module")
def models() -> sv.Pair:
    target, draft = families.FAMILIES["llama"]()
    return sv.Pair(target=target, draft=draft)


@pytest.mark.parametrize(
    ("rule", "drafter"),
    [
        ("rejection", sv.DraftModel(3)),
        ("coupled", sv.DraftModel(3, noise="target")),
        ("block", sv.DraftModel(2)),
        ("rejection", sv.Tree((2, 1))),
        ("rejection", sv.EarlyExit(1, gamma=2)),  # reads the cache: every pass is run
    ],
)
def test_replicas_of_a_network_are_the_loops_texts(
    models: sv.Pair, rule: str, drafter: Any
) -> None:
    texts = replicas(models, [1, 2, 3], 8, length=5, drafter=drafter, rule=RULES[rule], seed=3)
    for i, text in enumerate(texts):
        trace = sv.generate(
            models, [1, 2, 3], drafter=drafter, verify=rule, seed=3, sequence=i, max_new_tokens=5
        )
        assert same(text, trace, 5)


def test_side_by_side_on_a_network_is_the_loop(models: sv.Pair) -> None:
    size = models.vocab_size
    many = VectorisedRejection(
        models.target, models.draft, np.array([1, 2, 3]), size, length=4, gamma=2
    )  # fmt: skip
    loop = Replicas(models, np.array([1, 2, 3]), 4, sv.DraftModel(2), RULES["rejection"])
    assert np.array_equal(many.draw(30, seed=0), loop.draw(30))


@pytest.mark.parametrize("columns", [1, 40, 200])
def test_side_by_side_in_many_batches_is_the_same(
    models: sv.Pair, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    """However few contexts a batch may have, and however the tree of prefixes is walked."""
    many = VectorisedRejection(
        models.target, models.draft, np.array([1, 2, 3]), models.vocab_size, length=6, gamma=2,
        stop_ids=frozenset({18, 30}),
    )  # fmt: skip
    whole = many.draw(40, seed=1)
    assert END in whole
    monkeypatch.setattr("specviz.decoding.replicas.vectorised_rejection.COLUMNS", columns)
    assert np.array_equal(many.draw(40, seed=1), whole)
    chosen = levels._chosen
    monkeypatch.setattr(levels, "_chosen", lambda cache, rows: chosen(cache, rows[::-1].copy()))
    if columns > 1:  # the caches of other parents
        assert not np.array_equal(many.draw(40, seed=1), whole)


def test_many_draws_at_once_are_the_single_ones() -> None:
    rng = np.random.default_rng(0)
    distributions = rng.dirichlet(np.full(40, 0.2), size=6)
    distributions[distributions < 1e-3] = 0
    row, u = rng.integers(0, 3, size=400), rng.random(400)
    row[:5] = 3, 4, 4, 5, 5  # some distributions are drawn from seldom
    u[:2] = 0, 1 - 2**-53
    wanted = [invert(np.cumsum(distributions[i]), x) for i, x in zip(row, u, strict=True)]
    assert invert_rows(distributions, row, u).tolist() == wanted


@pytest.mark.parametrize("largest", [20, 10**9])
def test_distinct_numbers(largest: int) -> None:
    numbers = np.random.default_rng(0).integers(0, largest, size=50)
    values, which = distinct(numbers)
    assert values.tolist() == sorted(set(numbers.tolist()))
    assert np.array_equal(values[which], numbers)


def test_the_store_gives_the_models_logits_and_computes_them_once(models: sv.Pair) -> None:
    store = LogitCache(models.target, np.array([1, 2, 3]), models.vocab_size)
    wanted = [(), (4,), (4, 5), (9, 9), (7, 7)]
    rows = store.rows(wanted)
    for row, continuation in zip(rows, wanted, strict=True):
        alone = families.plain(models.target, [1, 2, 3, *continuation])
        assert row == pytest.approx(alone, abs=1e-4)
    before = store.computed
    chain = Draft.chain([4, 5], None, models.vocab_size)
    assert np.array_equal(store.along((), chain), store.rows([(), (4,), (4, 5)]))
    assert store.computed == before


def test_a_text_longer_than_the_context_is_refused() -> None:
    tables = pair(context_length=4)
    with pytest.raises(ValueError, match="need 8 tokens, the target's context holds 4"):
        Replicas(tables, np.array(PROMPT), LENGTH, sv.DraftModel(2), RULES["rejection"])
    with pytest.raises(ValueError, match="shorten one of them"):
        VectorisedRejection(
            tables.target, tables.draft, np.array(PROMPT), 5, length=LENGTH, gamma=2
        )


def test_no_replicas_are_refused() -> None:
    loop = Replicas(pair(), np.array(PROMPT), 2, sv.DraftModel(2), RULES["rejection"])
    with pytest.raises(ValueError, match="n must be at least 1"):
        loop.draw(0)


def test_the_engine_is_chosen_by_name_and_says_what_ran_and_why() -> None:
    target, draft = families.FAMILIES["llama"]()
    pair = sv.Pair(target=target, draft=draft)

    def many(drafter: Any = None, **settings: Any) -> Replicas:
        used = drafter or sv.DraftModel(2)
        return Replicas(pair, np.array([1, 2, 3]), 4, used, RULES["rejection"], **settings)

    texts = {}
    for name in ("loop", "logit cache", "batches"):
        run = many(engine=name)
        texts[name] = run.draw(5, progress=False).tolist()
        assert (run.ran.name, run.ran.why) == (name, "it was asked for")
    assert texts["loop"] == texts["logit cache"] == texts["batches"]
    fallen_back = many(sv.EarlyExit(1, 2))
    assert fallen_back.ran.name == "loop" and "'early_exit' reads" in fallen_back.ran.why
    with pytest.raises(UnsupportedModelError, match="use engine='loop'"):
        many(sv.EarlyExit(1, 2), engine="logit cache")
    with pytest.raises(ValueError, match="got 'fast'"):
        many(engine="fast")
    with pytest.raises(ValueError, match="engine='batches' needs at_once >= 2"):
        many(engine="batches", at_once=1)
    with pytest.raises(ValueError, match="at_once=4 needs engine='batches'"):
        many(engine="loop", at_once=4)
