"""Watching samples arrive: an e-process may be, a p-value may not."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special, stats

from specviz.lossless import EProcess, peeking
from specviz.lossless.statistics.eprocess import CONCENTRATIONS, e_values, merged
from specviz.lossless.statistics.power import noncentrality

DISTRIBUTION = np.random.default_rng(3).dirichlet(np.ones(8))
LEVEL = 0.01


def stream(n: int, seed: int, distribution: np.ndarray = DISTRIBUTION) -> np.ndarray:
    return np.random.default_rng(seed).choice(len(distribution), n, p=distribution)


def test_it_is_the_ratio_of_dirichlet_multinomial_to_multinomial() -> None:
    x = stream(500, 0)
    counts = np.bincount(x, minlength=8)
    direct = []
    for k in CONCENTRATIONS:
        a = k * DISTRIBUTION
        direct.append(
            special.gammaln(k) - special.gammaln(k + 500)
            + float(np.sum(special.gammaln(a + counts) - special.gammaln(a)))
            - float(counts @ np.log(DISTRIBUTION))
        )  # fmt: skip
    expected = np.exp(special.logsumexp(direct) - np.log(len(direct)))
    assert e_values(x, DISTRIBUTION)[-1] == pytest.approx(expected)


def test_batches_and_single_samples_give_the_same() -> None:
    x = stream(300, 1)
    whole = EProcess(DISTRIBUTION).update(x)
    one_by_one, watch = [], EProcess(DISTRIBUTION)
    for part in (x[:1], x[1:7], x[7:7], x[7:200], x[200:]):
        one_by_one.append(watch.update(part))
    assert np.allclose(np.concatenate(one_by_one), whole)
    assert watch.n == 300
    assert watch.e == pytest.approx(whole[-1])
    assert watch.p == pytest.approx(min(1.0, 1 / whole.max()))


def test_its_expectation_is_one() -> None:
    """Over all texts of a small distribution, exactly: a martingale that starts at 1."""
    distribution = np.array([0.5, 0.3, 0.2])
    total = sum(
        float(np.prod(distribution[list(x)])) * float(EProcess(distribution).update(list(x))[-1])
        for x in np.ndindex(3, 3, 3, 3)
    )
    assert total == pytest.approx(1.0)


def alarms(runs: int, n: int, every: int) -> tuple[float, float]:
    """How often a right stream is called wrong: by repeated p-values, and by the e-process."""
    looked = watched = 0
    for seed in range(runs):
        x = stream(n, seed)
        looked += peeking(x, DISTRIBUTION, every=every).first_below(LEVEL) is not None
        watch = EProcess(DISTRIBUTION, alpha=LEVEL)
        watch.update_log(x)
        watched += watch.rejected
    return looked / runs, watched / runs


def test_peeking_alarms_far_too_often_and_the_e_process_does_not() -> None:
    looked, watched = alarms(runs=300, n=5000, every=5)
    assert looked >= 0.09
    assert watched <= 0.03  # 1% of 300 are 3; ten have probability .002


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_peeking_and_watching_over_many_streams() -> None:
    looked, watched = alarms(runs=3000, n=20_000, every=5)
    print(f"peeking {looked:.3f}, e-process {watched:.4f}")
    assert 0.13 <= looked <= 0.20
    assert watched < LEVEL


def test_a_wrong_stream_is_caught_at_little_more_than_the_samples_of_a_single_look() -> None:
    wrong = (
        DISTRIBUTION
        + np.where(DISTRIBUTION.max() == DISTRIBUTION, -0.05, 0)
        + np.where(np.sort(DISTRIBUTION)[-2] == DISTRIBUTION, 0.05, 0)
    )
    distance = float(((wrong - DISTRIBUTION) ** 2 / DISTRIBUTION).sum())
    fixed = noncentrality(7, LEVEL) / distance
    stops = []
    for seed in range(60):
        watch = EProcess(DISTRIBUTION, alpha=LEVEL)
        watch.update_log(stream(int(8 * fixed), seed, wrong))
        assert watch.crossed_at is not None
        stops.append(watch.crossed_at)
    assert 0.7 < np.mean(stops) / fixed < 1.35


def test_an_impossible_cell_is_infinite_evidence() -> None:
    watch = EProcess([0.5, 0.5, 0.0])
    watch.update([0, 1, 2, 0])
    assert watch.crossed_at == 3
    assert watch.p < 1e-300
    assert np.isfinite(watch.e)
    assert watch.update_log([0])[-1] == np.inf


def test_an_average_of_e_processes_is_one() -> None:
    right, wrong = stream(2000, 0), stream(2000, 0, np.roll(DISTRIBUTION, 1))
    a, b = (EProcess(DISTRIBUTION).update_log(x) for x in (right, wrong))
    both = merged([a, b])
    assert np.allclose(both, np.logaddexp(a, b) - np.log(2))
    assert both[-1] > np.log(100) > a.max()


def test_looks_are_the_p_values_of_scipy() -> None:
    x = stream(1000, 4)
    looks = peeking(x, DISTRIBUTION, every=250)
    assert looks.n.tolist() == [250, 500, 750, 1000]
    for n, p in zip(looks.n, looks.p, strict=True):
        counts = np.bincount(x[:n], minlength=8)
        if n * DISTRIBUTION.min() >= 5:
            assert p == pytest.approx(stats.chisquare(counts, n * DISTRIBUTION).pvalue)
        else:
            assert np.isnan(p)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: EProcess([0.5, 0.4]), "do not sum to 1"),
        (lambda: EProcess([0.5, np.nan]), "got nan"),
        (lambda: EProcess([0.5, 0.5], alpha=2), "alpha must be a number between 0 and 1"),
        (lambda: EProcess([0.5, 0.5], concentrations=[]), "concentrations must be positive"),
        (lambda: EProcess([0.5, 0.5]).update([2]), "outside 0 … 1"),
        (lambda: EProcess([0.5, 0.5]).update([0.0]), "whole numbers"),
        (lambda: peeking([0], [1.0, 0.0], every=1), "probability 0"),
        (lambda: peeking([0], [0.5, 0.5], every=0), "every must be at least 1"),
    ],
)
def test_senseless_streams_are_refused(call: object, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        call()  # type: ignore[operator]
