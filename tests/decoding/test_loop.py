"""The loop: one pass a round, draws that are used once, caches that hold the emitted text."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from specviz.core import philox
from specviz.core.contract import Context, Draft, DraftContractError, Sampling
from specviz.core.draws import Purpose, Sampler
from specviz.core.rules import RULES
from specviz.core.tabular import TabularModel, TabularPair
from specviz.decoding.loop import RoundResult, histories, rounds
from specviz.decoding.stopping import Stopping
from specviz.drafters.draft_model import AdaptiveGamma, DraftModel
from specviz.drafters.target_only import TargetOnly
from specviz.lossless import target_distribution
from tests.core.golden import GOLDEN
from tests.drafters.changed import Changed
from tests.lossless.chisquare import p_value
from tests.lossless.enumeration import random_pair


def decode(
    pair: TabularPair,
    drafter: Any,
    *,
    length: int = 20,
    rule: str = "rejection",
    draws: Any = None,
    target: Any = None,
    sampling: Sampling | None = None,
) -> list[RoundResult]:
    prompt = np.array([0])
    target = target or pair.target.session()
    session = drafter.start(pair, target, prompt)
    return list(
        rounds(
            target, session, RULES[rule], prompt, sampling=sampling or Sampling(),
            draws=draws or Sampler(0), stopping=Stopping(1, length, None, pair.stop_ids),
        )
    )  # fmt: skip


class Scripted(Sampler):
    """A sampler whose uniforms are written down."""

    def __init__(self, numbers: dict[tuple[Purpose, int], float]) -> None:
        super().__init__(seed=0)
        self.numbers = numbers

    def uniform(self, purpose: Purpose, position: int, node: int = 0) -> float:
        return self.numbers[purpose, node]


def test_the_worked_example_emits_two_tokens() -> None:
    """One accepted, one rejected and resampled: two tokens, not three."""
    known = GOLDEN["worked_example"]
    words = ["the", "quick", "brown", "."]
    p, q = np.full((4, 4), 0.25), np.full((4, 4), 0.25)
    p[3], q[3] = [known["p"][0], 0.1, 0.3, 0.2], [known["q"][0], 0.2, 0.3, 0.2]
    p[0], q[0] = [0.2, known["p"][1], 0.5, 0.2], [0.2, known["q"][1], 0.3, 0.3]
    pair = TabularPair(TabularModel(p), TabularModel(q), words)
    draws = Scripted(
        {
            (Purpose.DRAFT, 0): 0.1, (Purpose.DRAFT, 1): 0.3,
            (Purpose.ACCEPT, 0): 0.999, (Purpose.ACCEPT, 1): known["draws"][1],
            (Purpose.CLOSING, 0): 0.5,
        }
    )  # fmt: skip
    prompt = np.array([3])
    target = pair.target.session()
    drafter = DraftModel(2).start(pair, target, prompt)
    first = next(
        rounds(
            target, drafter, RULES["rejection"], prompt, sampling=Sampling(), draws=draws,
            stopping=Stopping(1, 9, None),
        )
    )  # fmt: skip
    assert [words[token] for token in first.draft.tokens] == known["proposals"]
    assert first.verdict.path == [0], known["verdicts"]
    assert [words[token] for token in first.emitted] == ["the", "brown"]
    assert len(first.emitted) == known["tokens_emitted_in_this_pass"]


@pytest.mark.parametrize("drafter", [DraftModel(3), DraftModel(AdaptiveGamma()), TargetOnly()])
def test_one_pass_a_round_and_caches_that_hold_the_text(drafter: Any) -> None:
    pair = random_pair(5, order=2, seed=1)
    target = pair.target.session()
    result = decode(pair, drafter, length=60, target=target)
    assert target.passes == len(result)
    length, before = 1, (0, 0)
    for round_ in result:
        n, kept = len(round_.draft), min(len(round_.verdict.path), len(round_.emitted))
        assert round_.position == length
        assert 1 <= len(round_.emitted) <= round_.gamma + 1
        assert round_.p.shape == (n + 1, 5)
        assert round_.target_cache == (before[0], length + n, length + kept)
        assert round_.draft_cache[0] == before[1]
        assert round_.draft_cache[2] <= length + kept
        before = round_.target_cache[2], round_.draft_cache[2]
        length += len(round_.emitted)
    assert length == 61


def test_no_round_proposes_more_than_can_be_used() -> None:
    result = decode(random_pair(5, 1, seed=1), DraftModel(8), length=9)
    left = 9
    for round_ in result:
        assert len(round_.draft) <= max(0, left - 1)
        left -= len(round_.emitted)
    assert left == 0


def test_distributions_are_taken_under_the_settings_of_both_models() -> None:
    pair = random_pair(6, order=1, seed=2)
    sampling = Sampling(temperature=0.7, top_k=3)
    for round_ in decode(pair, DraftModel(3), length=40, sampling=sampling):
        for row in (*round_.p, *round_.draft.q):
            assert (row > 0).sum() <= 3 and row.sum() == pytest.approx(1)
        assert round_.p.dtype == round_.draft.q.dtype == np.float64


def test_each_row_is_penalised_by_its_own_ancestors() -> None:
    tree = Draft(np.array([5, 6, 7, 8]), np.array([-1, -1, 0, 1]), np.zeros((0, 9)), np.full(4, -1))
    text = np.array([1, 2])
    assert histories(text, tree, Sampling()) is None
    found = histories(text, tree, Sampling(repetition_penalty=2.0))
    assert found is not None
    assert [row.tolist() for row in found] == [
        [1, 2], [1, 2, 5], [1, 2, 6], [1, 2, 5, 7], [1, 2, 6, 8]
    ]  # fmt: skip


def test_a_drafter_that_proposes_what_its_distribution_excludes_is_stopped() -> None:
    class Liar(Changed, DraftModel):
        def change(self, inner: Any, context: Context, draws: Any) -> Draft:
            honest = inner.propose(context, draws)
            q = honest.q.copy()
            q[0, honest.tokens[0]] = 0.0
            return replace(honest, q=q, _children={})

    with pytest.raises(DraftContractError, match="to which the q it reports gives probability"):
        decode(random_pair(4, 1, seed=3), Liar(2))


# -- the sampler's draws, through the loop --------------------------------------------------------


class Stuck(Sampler):
    """The uniform of an accept draw is the same at every position."""

    def uniform(self, purpose: Purpose, position: int, node: int = 0) -> float:
        if purpose is Purpose.ACCEPT:
            return philox.uniform(self.seed, self.sequence, purpose, 0, 0, 0)
        return super().uniform(purpose, position, node)


class SharedByPurposes(Sampler):
    """The accept draw re-uses the number that drew the proposal."""

    def uniform(self, purpose: Purpose, position: int, node: int = 0) -> float:
        return super().uniform(Purpose.DRAFT, position, node)


N, LEVEL = 1500, 1e-3


def texts_of(pair: TabularPair, sampler: type[Sampler]) -> list[tuple[int, ...]]:
    texts = []
    for sequence in range(N):
        result = decode(pair, DraftModel(2), length=4, draws=sampler(21, sequence))
        texts.append(tuple(int(token) for round_ in result for token in round_.emitted))
    return texts


def test_the_sampled_text_has_the_targets_distribution_and_faulty_draws_do_not() -> None:
    """Chi-square on the joint distribution of four tokens,
    each twin re-uses a number it has looked at.
    """
    pair = TabularPair(TabularModel.random(3, 1, seed=6), TabularModel.random(3, 1, seed=17))
    distribution = target_distribution(pair, prompt=[0], length=4)
    assert p_value(texts_of(pair, Sampler), distribution) > LEVEL
    for twin in (Stuck, SharedByPurposes):
        assert p_value(texts_of(pair, twin), distribution) < 1e-6, twin


def test_rejections_happen_at_the_rate_of_the_distance() -> None:
    """1 - sum(min(p, q)) of the examined proposals are rejected: a binomial z-test, with a twin."""

    def z(sampler: type[Sampler]) -> float:
        pair = random_pair(5, order=1, seed=4)
        surplus = spread = 0.0
        for sequence in range(60):
            for round_ in decode(pair, DraftModel(3), length=30, draws=sampler(3, sequence)):
                accepted = len(round_.verdict.path)
                for node in range(min(accepted + 1, len(round_.draft))):
                    chance = np.minimum(round_.p[node], round_.draft.q[node]).sum()
                    surplus += float(node < accepted) - chance
                    spread += chance * (1 - chance)
        return float(abs(surplus) / np.sqrt(spread))

    class Half(Sampler):
        def accept(self, probability: float, position: int, node: int) -> bool:
            return super().accept(probability if probability == 1 else 0.5, position, node)

    assert z(Sampler) < 3.5
    assert z(Half) > 6
