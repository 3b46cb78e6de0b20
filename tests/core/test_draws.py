"""Keyed draws: no number twice, strict acceptance, the right distributions,
the coupling of races.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from specviz.core.contract import FloatArray
from specviz.core.draws import (
    AcceptDraw,
    CategoricalDraw,
    Purpose,
    RaceDraw,
    Sampler,
    arrivals,
    exponentials,
    invert,
)

P = np.array([0.5, 0.3, 0.0, 0.1, 0.1])
Q = np.array([0.1, 0.2, 0.3, 0.4, 0.0])
N = 2_500


# -- keys -----------------------------------------------------------------------------------------


def keyed_numbers(*, with_round: bool) -> list[float]:
    """Numbers of all purposes, rounds, positions, nodes, sequences and seeds from a small box."""
    found = []
    for seed, sequence, round_index in product(range(3), range(3), range(4)):
        draws = Sampler(seed, sequence)
        draws.begin_round(round_index if with_round else 0)
        found += [
            draws.uniform(purpose, position, node)
            for purpose, position, node in product(Purpose, range(4), range(4))
        ]
    return found


def test_no_two_draws_share_a_number() -> None:
    numbers = keyed_numbers(with_round=True)
    assert len(set(numbers)) == len(numbers) == 3 * 3 * 4 * 4 * 4 * 4


def test_keys_without_the_round_would_share_numbers() -> None:
    numbers = keyed_numbers(with_round=False)
    assert len(set(numbers)) == len(numbers) // 4


def test_the_same_key_gives_the_same_number() -> None:
    assert keyed_numbers(with_round=True) == keyed_numbers(with_round=True)


def test_the_targets_own_noise_knows_no_round() -> None:
    draws, later = Sampler(5), Sampler(5)
    later.begin_round(17)
    assert draws.race(P, position=3) == later.race(P, position=3)
    assert draws.log == later.log
    assert draws.uniform(Purpose.ACCEPT, 3) != later.uniform(Purpose.ACCEPT, 3)


def test_the_targets_noise_differs_by_position_and_token() -> None:
    noise = np.concatenate([exponentials(0, 0, position, np.arange(50)) for position in range(50)])
    assert len(np.unique(noise)) == 2500
    assert stats.kstest(noise, "expon").pvalue > 1e-3
    assert stats.kstest(noise * 1.1, "expon").pvalue < 1e-3


def test_a_round_starts_with_an_empty_log() -> None:
    draws = Sampler(0)
    draws.accept(0.5, 0, 0)
    kept = draws.log
    draws.begin_round(1)
    assert draws.round == 1
    assert draws.log == [] and len(kept) == 1


@pytest.mark.parametrize("seed", [True, 1.0, "1", None, np.float64(2)])
def test_a_seed_that_is_no_whole_number_is_refused(seed: Any) -> None:
    with pytest.raises(TypeError, match=r"seed must be a whole number from 0 to 2\*\*32 - 1, got"):
        Sampler(seed)


@pytest.mark.parametrize("seed", [-1, 2**32])
def test_a_seed_out_of_range_is_refused(seed: int) -> None:
    with pytest.raises(ValueError, match="sequence must be a whole number"):
        Sampler(0, sequence=seed)


# -- accept ---------------------------------------------------------------------------------------


def test_acceptance_is_strict() -> None:
    for node in range(500):
        draws = Sampler(1)
        u = draws.uniform(Purpose.ACCEPT, 9, node)
        assert draws.accept(u, 9, node) is False
        assert draws.accept(float(np.nextafter(u, 1)), 9, node) is True
        assert draws.accept(0.0, 9, node) is False
        assert draws.accept(1.0, 9, node) is True


@pytest.mark.parametrize(("u", "probability", "kept"), [(0.0, 0.0, False), (0.0, 1e-300, True)])
def test_probability_0_is_never_accepted_whatever_the_number(
    monkeypatch: pytest.MonkeyPatch, u: float, probability: float, kept: bool
) -> None:
    monkeypatch.setattr(Sampler, "uniform", lambda *_: u)
    assert Sampler(0).accept(probability, 0, 0) is kept


def test_what_was_drawn_is_logged() -> None:
    draws = Sampler(3)
    accepted = draws.accept(0.25, position=7, node=2)
    token = draws.categorical(P, position=8, node=1, purpose=Purpose.DRAFT)
    winner = draws.race(P, position=9)
    accepting, choosing, racing = draws.log
    u = draws.uniform(Purpose.ACCEPT, 7, 2)
    assert accepting == AcceptDraw(7, 2, 0.25, u, accepted)
    assert isinstance(choosing, CategoricalDraw) and isinstance(racing, RaceDraw)
    assert (choosing.purpose, choosing.position, choosing.node) == (Purpose.DRAFT, 8, 1)
    assert choosing.u == draws.uniform(Purpose.DRAFT, 8, 1)
    assert choosing.cdf_lo <= choosing.u * choosing.mass < choosing.cdf_hi
    assert choosing.cdf_hi - choosing.cdf_lo == pytest.approx(P[token])
    times = exponentials(3, 0, 9, np.arange(5))[P > 0] / P[P > 0]
    assert (racing.token, racing.time) == (winner, times.min())
    assert racing.runner_up != winner
    assert racing.runner_up_time == np.sort(times)[1]


# -- categorical ----------------------------------------------------------------------------------

DISTRIBUTIONS = st.lists(
    st.floats(0, 1) | st.just(0.0) | st.floats(0, 1e-300), min_size=1, max_size=12
)
UNITS = st.floats(2.0**-53, 1 - 2.0**-53) | st.sampled_from([2.0**-53, 0.5, 1 - 2.0**-53])


@given(distribution=DISTRIBUTIONS.filter(lambda distribution: sum(distribution) > 0), u=UNITS)
def test_a_token_without_width_is_never_chosen(distribution: list[float], u: float) -> None:
    cdf = np.cumsum(distribution)
    token = invert(cdf, u)
    below = cdf[token - 1] if token else 0.0
    assert below < cdf[token]
    assert below <= u * cdf[-1]
    assert u * cdf[-1] < cdf[token] or not np.any(cdf > u * cdf[-1])


@pytest.mark.parametrize("u", [0.0, 2.0**-53, 1 - 2.0**-53, 1.0])
def test_zeros_at_either_end_are_never_chosen(u: float) -> None:
    cdf = np.cumsum([0.0, 0.0, 0.4, 0.0, 0.59999, 0.0, 0.0])
    assert invert(cdf, u) in (2, 4)


def test_searching_from_the_left_would_choose_a_token_without_width() -> None:
    cdf = np.cumsum([0.0, 0.5, 0.5])
    assert np.searchsorted(cdf, 0.0, side="left") == 0
    assert invert(cdf, 0.0) == 1


def test_every_token_of_a_large_vocabulary_has_width() -> None:
    distribution = np.full(151_936, 1 / 151_936, dtype=np.float32)
    log = Sampler(0)
    log.categorical(distribution, 0)
    (event,) = log.log
    assert isinstance(event, CategoricalDraw)
    assert np.all(np.diff(event.cdf, prepend=0.0) > 0)
    narrow = np.cumsum(distribution)  # float32: the running sum is coarser than what is added to it
    assert np.mean(np.diff(narrow) == distribution[1:]) < 0.9


def frequencies(tokens: list[int]) -> FloatArray:
    return np.bincount(tokens, minlength=len(P)).astype(float)


def p_value(counts: FloatArray, distribution: FloatArray) -> float:
    assert counts[distribution == 0].sum() == 0
    return float(
        stats.chisquare(counts[distribution > 0], N * distribution[distribution > 0]).pvalue
    )


TWIN = np.array([0.43, 0.37, 0.0, 0.1, 0.1])  # at total variation .07 from P


@pytest.mark.parametrize("how", ["categorical", "race"])
@pytest.mark.parametrize("along", ["position", "sequence"])
def test_draws_follow_the_distribution_and_the_test_would_notice(how: str, along: str) -> None:
    def sample(distribution: FloatArray) -> FloatArray:
        if along == "position":
            one = Sampler(11)
            return frequencies([getattr(one, how)(distribution, position) for position in range(N)])
        return frequencies([getattr(Sampler(12, i), how)(distribution, 4) for i in range(N)])

    assert p_value(sample(P), P) > 1e-3
    assert p_value(sample(TWIN), P) < 1e-3


# -- races ----------------------------------------------------------------------------------------


def agreement_of_races(p: FloatArray, q: FloatArray) -> float:
    """Chance that two races with the same noise have the same winner, in closed form.

    Both distributions' token i wins iff E_i / E_j < min(p_i / p_j, q_i / q_j) for every j.
    """
    return float(
        sum(
            1 / np.maximum(p / p[i], q / q[i]).sum() for i in range(len(p)) if p[i] > 0 and q[i] > 0
        )
    )


def test_races_with_shared_noise_agree_as_often_as_they_should() -> None:
    tv = 0.5 * np.abs(P - Q).sum()
    bound, exact = (1 - tv) / (1 + tv), agreement_of_races(P, Q)
    assert bound < exact < 1 - tv

    draws = Sampler(21)
    pairs = [(draws.race(P, i), draws.race(Q, i, node=0)) for i in range(N)]
    agreed = sum(a == b for a, b in pairs)
    assert stats.binomtest(agreed, N, exact).pvalue > 1e-3
    assert stats.binomtest(agreed, N, bound, "greater").pvalue < 1e-3
    assert p_value(frequencies([a for a, _ in pairs]), P) > 1e-3
    assert p_value(frequencies([b for _, b in pairs]), Q) > 1e-3

    # planted: noise of another sequence agrees with probability sum(p * q), below the bound
    other = Sampler(21, sequence=1)
    apart = sum(a == other.race(Q, i) for i, (a, _) in enumerate(pairs))
    assert stats.binomtest(apart, N, bound, "less").pvalue < 1e-3
    assert stats.binomtest(apart, N, float(P @ Q)).pvalue > 1e-3


def test_a_token_of_probability_0_never_arrives() -> None:
    times = arrivals(np.array([1e-9, 2.0, 1.0]), np.array([0.0, 0.5, 0.5]))
    assert times.tolist() == [np.inf, 4.0, 2.0]
    lone = Sampler(0)
    assert lone.race(np.array([0.0, 1.0, 0.0]), 0) == 1
    (event,) = lone.log
    assert isinstance(event, RaceDraw) and event.runner_up_time == np.inf
