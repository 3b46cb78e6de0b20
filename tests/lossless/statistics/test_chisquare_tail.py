"""Pearson's statistic where cells expect five: exact moments, and a tail that keeps its level."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from specviz.lossless.statistics.goodness_of_fit import moments, pearson

FEW = np.array([0.4] + [0.6 / 55] * 55)  # 56 cells, 55 of which expect 5.5 of 500


def test_the_moments_are_those_of_all_outcomes() -> None:
    n, distribution = 6, np.array([0.2, 0.3, 0.5])
    every = np.array([(a, b, n - a - b) for a in range(n + 1) for b in range(n + 1 - a)])
    weights = stats.multinomial.pmf(every, n, distribution)
    statistic = ((every - n * distribution) ** 2 / (n * distribution)).sum(axis=1)
    mean = weights @ statistic
    wanted = [mean, weights @ (statistic - mean) ** 2, weights @ (statistic - mean) ** 3]
    assert moments(distribution, n) == pytest.approx(wanted)


def test_with_many_texts_it_is_chi_square() -> None:
    distribution = np.full(8, 1 / 8)
    counts = np.round(1e7 * distribution) + np.array([9e3, -9e3, 0, 0, 0, 0, 0, 0])
    statistic, p = pearson(counts, distribution)
    assert p == pytest.approx(stats.chi2.sf(statistic, 7), rel=1e-4)


def test_small_p_values_are_as_rare_as_they_say_and_chi_square_s_are_not() -> None:
    """The planted twin is chi-square's own tail, which alarms too often at these cells."""
    n, runs, level = 500, 60_000, 0.001
    counts = np.random.default_rng(0).multinomial(n, FEW, size=runs)
    statistic = ((counts - n * FEW) ** 2 / (n * FEW)).sum(axis=1)
    largest = np.argsort(statistic)[-4 * int(level * runs) :]
    ours = sum(pearson(counts[i], FEW)[1] < level for i in largest)
    theirs = int(np.sum(stats.chi2.sf(statistic, len(FEW) - 1) < level))
    most = stats.binom.isf(0.001, runs, level)  # a right level gives more once in a thousand
    assert ours <= most < theirs


def test_two_cells_alike_have_an_ordinary_p_value() -> None:
    assert pearson(np.array([5.0, 5.0]), np.array([5.0, 5.0]))[1] > 0.5
    assert pearson(np.array([10.0, 0.0]), np.array([5.0, 5.0]))[1] < 0.01
