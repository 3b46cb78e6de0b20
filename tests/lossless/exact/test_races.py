"""Races that share their noise: closed forms, marginals, the bound on agreement, Monte Carlo."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specviz.core.contract import FloatArray
from specviz.core.draws import arrivals, exponentials
from specviz.lossless.exact.branching import joint_probability, volume, whole, won
from tests.lossless.chisquare import detectable, p_value

EXACT = 1e-12
LEVEL = 1e-3


def distributions(vocab_size: int) -> st.SearchStrategy[FloatArray]:
    """Distributions with ties and zeros among them."""
    weights = st.lists(st.integers(0, 6), min_size=vocab_size, max_size=vocab_size).filter(any)
    return weights.map(lambda w: np.array(w) / sum(w))


def table(*chosen: FloatArray) -> dict[tuple[int, ...], float]:
    """Winners of every race over the same noise -> probability."""
    winners = product(*(np.flatnonzero(distribution).tolist() for distribution in chosen))
    return {w: joint_probability(list(zip(chosen, w, strict=True))) for w in winners}


@given(distributions(2), distributions(2))
def test_two_tokens_have_a_closed_form(p: FloatArray, q: FloatArray) -> None:
    """0 wins iff E_0 / (E_0 + E_1), which is uniform, lies below the distribution's p_0."""
    found = table(p, q)
    assert found.get((0, 0), 0.0) == pytest.approx(min(p[0], q[0]), abs=EXACT)
    assert found.get((1, 1), 0.0) == pytest.approx(min(p[1], q[1]), abs=EXACT)
    assert found.get((0, 1), 0.0) == pytest.approx(max(0.0, p[0] - q[0]), abs=EXACT)


@given(distributions(4), distributions(4))
def test_each_race_keeps_its_distribution_and_both_agree_often(
    p: FloatArray, q: FloatArray
) -> None:
    found = table(p, q)
    for side, distribution in enumerate((p, q)):
        marginal = np.zeros(4)
        for winners, mass in found.items():
            marginal[winners[side]] += mass
        np.testing.assert_allclose(marginal, distribution, atol=EXACT)
    agreement = sum(mass for (x, y), mass in found.items() if x == y)
    tv = 0.5 * np.abs(p - q).sum()
    assert (1 - tv) / (1 + tv) - EXACT <= agreement <= 1 - tv + EXACT


def test_noise_of_its_own_would_break_the_bound() -> None:
    """The planted twin: races that do not share noise agree with probability sum(p q)."""
    p, q = np.array([0.5, 0.3, 0.2]), np.array([0.4, 0.4, 0.2])
    tv = 0.5 * np.abs(p - q).sum()
    bound = (1 - tv) / (1 + tv)
    assert sum(table(p, q)[x, x] for x in range(3)) >= bound
    assert float(p @ q) < bound - 0.1


@given(distributions(3))
def test_a_race_run_twice_has_one_winner(p: FloatArray) -> None:
    for winners, mass in table(p, p).items():
        assert mass == pytest.approx(p[winners[0]] * (winners[0] == winners[1]), abs=EXACT)


@given(distributions(3), distributions(3), distributions(3))
def test_three_races(p: FloatArray, q: FloatArray, r: FloatArray) -> None:
    found, pairs = table(p, q, r), table(p, q)
    assert sum(found.values()) == pytest.approx(1, abs=EXACT)
    for (x, y), mass in pairs.items():
        rest = sum(m for winners, m in found.items() if winners[:2] == (x, y))
        assert rest == pytest.approx(mass, abs=EXACT)


@given(distributions(5), st.integers(0, 4))
def test_one_race_is_its_distribution(p: FloatArray, winner: int) -> None:
    chance = volume(won(whole(5), p, winner)) if p[winner] > 0 else 0.0
    assert chance == pytest.approx(p[winner], abs=EXACT)


def raced(seed: int, n: int, *chosen: FloatArray, shared: bool = True) -> list[tuple[int, ...]]:
    """Run races with the sampler's own keyed noise, one text after another."""
    ids = np.arange(len(chosen[0]))
    runs = []
    for sequence in range(n):
        winners = []
        for which, distribution in enumerate(chosen):
            position = 7 if shared else 7 + which
            noise = exponentials(seed, sequence, position, ids)
            winners.append(int(np.argmin(arrivals(noise, distribution))))
        runs.append(tuple(winners))
    return runs


def test_the_samplers_races_have_this_joint_distribution() -> None:
    p, q, r = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.6, 0.2]), np.array([0.1, 0.2, 0.7])
    n, distribution = 3000, table(p, q, r)
    assert detectable(distribution, n, LEVEL) < 0.06
    assert p_value(raced(1, n, p, q, r), distribution) > LEVEL
    assert p_value(raced(1, n, p, q, r, shared=False), distribution) < 1e-9, "the planted twin"
