"""The enumerator itself: every way once, weights that sum to 1, texts that end by themselves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specviz.core.contract import ROOT, Draft, FloatArray, Sampling
from specviz.core.draws import Draws, Purpose
from specviz.core.rules import RULES, residual
from specviz.core.tabular import TabularModel, TabularPair
from specviz.drafters.draft_model import DraftModel
from specviz.drafters.target_only import TargetOnly
from specviz.lossless import enumerate_distribution, outcomes, target_distribution, total_variation
from specviz.lossless.exact.branching import Branching
from tests.lossless import planted as wrong

EXACT = 1e-12


def test_every_way_is_taken_once() -> None:
    def program(draws: Draws) -> tuple[int, ...]:
        first = draws.categorical([0.5, 0.0, 0.25, 0.25], 0)
        if first == 2:
            return first, int(draws.accept(0.25, 1, 0))
        return first, draws.race(np.array([0.75, 0.25]), 1)

    found = list(outcomes(program))
    assert len(found) == len({way for _, way in found}) == 6
    assert {way: weight for weight, way in found} == {
        (0, 0): 0.375, (0, 1): 0.125, (2, 0): 0.1875, (2, 1): 0.0625, (3, 0): 0.1875,
        (3, 1): 0.0625,
    }  # fmt: skip


def test_what_cannot_happen_is_not_tried() -> None:
    assert list(outcomes(lambda draws: draws.accept(1.0, 0, 0))) == [(1.0, True)]
    assert list(outcomes(lambda draws: draws.accept(0.0, 0, 0))) == [(1.0, False)]
    assert list(outcomes(lambda draws: draws.categorical([0, 1], 0))) == [(1.0, 1)]


def test_races_at_one_position_share_their_noise() -> None:
    p, q = np.array([0.5, 0.5]), np.array([0.25, 0.75])

    def program(draws: Draws) -> tuple[int, ...]:
        return draws.race(p, 3), draws.race(q, 3, node=0), draws.race(p, 3), draws.race(q, 4)

    distribution: dict[tuple[int, ...], float] = {}
    for weight, way in outcomes(program):
        distribution[way] = distribution.get(way, 0.0) + weight
    assert all(way[0] == way[2] for way in distribution), "the same race has the same winner"
    assert distribution[0, 0, 0, 1] == pytest.approx(0.25 * 0.75)
    assert (1, 0, 1, 0) not in distribution, "token 0 wins over q only if it wins over p"


def test_the_targets_distribution_is_a_product_of_its_conditional_distributions() -> None:
    target = TabularModel([[0.5, 0.5], [0.25, 0.75]], eos_ids=[1])
    distribution = target_distribution(TabularPair(target), prompt=[1], length=2)
    assert distribution == pytest.approx({(1,): 0.75, (0, 0): 0.125, (0, 1): 0.125}, abs=EXACT)
    sharp = target_distribution(
        TabularPair(target), prompt=[1], length=2, sampling=Sampling(temperature=0)
    )
    assert sharp == {(1,): 1.0}


def test_target_only_is_the_target() -> None:
    target = TabularModel.random(3, 2, seed=0, eos_ids=[2])
    pair = TabularPair(target)
    for rule in ("match", "rejection"):
        distribution = enumerate_distribution(pair, TargetOnly(), verify=rule, prompt=[0], length=3)
        assert (
            total_variation(distribution, target_distribution(pair, prompt=[0], length=3)) <= EXACT
        )


def test_the_context_length_ends_the_text() -> None:
    target = TabularModel.random(3, 1, seed=0, context_length=4)
    pair = TabularPair(target, TabularModel.random(3, 1, seed=1))
    distribution = enumerate_distribution(pair, DraftModel(3), prompt=[0, 1], length=9)
    assert {len(text) for text in distribution} == {2}
    assert (
        total_variation(distribution, target_distribution(pair, prompt=[0, 1], length=2)) <= EXACT
    )


def test_total_variation() -> None:
    assert total_variation({}, {}) == 0
    assert total_variation({"a": 1.0}, {"b": 1.0}) == 1
    assert total_variation({"a": 0.5, "b": 0.5}, {"a": 0.5, "c": 0.5}) == 0.5


# -- one node, whatever the distributions
# ------------------------------------------------------------------


def distributions_of(vocab_size: int) -> st.SearchStrategy[FloatArray]:
    weights = st.lists(st.integers(0, 5), min_size=vocab_size, max_size=vocab_size).filter(any)
    return weights.map(lambda w: np.array(w) / sum(w))


def siblings_distribution(
    p: FloatArray, q: FloatArray, count: int, *, replaced: bool
) -> FloatArray:
    """The first token's distribution when ``count`` siblings are drawn from q and tried in turn."""
    size = len(p)
    distribution = np.zeros(size)

    def program(draws: Branching) -> int:
        tokens, used, left = [], [], q
        for node in range(count):
            if not left.any():
                break
            used.append(left)
            tokens.append(draws.categorical(left, 0, node, Purpose.DRAFT))
            if not replaced:
                left = wrong.without(left, left, tokens[-1]) if (left > 0).sum() > 1 else 0 * left
        n = len(tokens)
        draft = Draft(np.array(tokens), np.full(n, ROOT), np.stack(used), np.arange(n))
        rows = np.stack([p] + [np.eye(size)[x] for x in tokens])
        verdict = RULES["rejection"].verify(draft, rows, draws, 0)
        return tokens[verdict.path[0]] if verdict.path else verdict.token

    for weight, token in outcomes(program):
        distribution[token] += weight
    return distribution


@given(distributions_of(3), distributions_of(3), st.integers(1, 3), st.booleans())
def test_siblings_are_exact_with_and_without_replacement(
    p: FloatArray, q: FloatArray, count: int, replaced: bool
) -> None:
    np.testing.assert_allclose(siblings_distribution(p, q, count, replaced=replaced), p, atol=EXACT)


@given(distributions_of(4), distributions_of(4))
def test_the_residual_is_a_distribution_that_avoids_what_the_draft_prefers(
    p: FloatArray, q: FloatArray
) -> None:
    left = residual(p, q)
    assert left.sum() == pytest.approx(1, abs=EXACT)
    assert (left >= 0).all()
    if np.abs(p - q).max() > 0:
        assert (left[p <= q] == 0).all()
        mass = 1 - np.minimum(p, q).sum()
        np.testing.assert_allclose(left * mass, np.maximum(0, p - q), atol=EXACT)


def test_siblings_with_a_q_that_was_not_used_are_seen() -> None:
    """The planted twin: drawn without replacement, reported as if with it."""
    p, q = np.array([0.2, 0.5, 0.3]), np.array([0.5, 0.3, 0.2])
    distribution = np.zeros(3)

    def program(draws: Branching) -> int:
        first = draws.categorical(q, 0, 0, Purpose.DRAFT)
        second = draws.categorical(wrong.without(q, q, first), 0, 1, Purpose.DRAFT)
        draft = Draft(np.array([first, second]), np.full(2, ROOT), np.stack([q, q]), np.arange(2))
        verdict = RULES["rejection"].verify(draft, np.stack([p, p, p]), draws, 0)
        return [first, second][verdict.path[0]] if verdict.path else verdict.token

    for weight, token in outcomes(program):
        distribution[token] += weight
    assert 0.5 * np.abs(distribution - p).sum() > 0.01
