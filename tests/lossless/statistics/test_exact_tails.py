"""Tests use exact moments where chi-square's and the normal tail are too light or too heavy."""

from __future__ import annotations

from itertools import product
from math import comb

import numpy as np
import pytest
from scipy import stats

from specviz.bench.false_alarms import KINDS, Kind, measure, together, upper_bound
from specviz.lossless.statistics.goodness_of_fit import (
    contingency_moments,
    gamma_tail,
    homogeneity,
)
from specviz.lossless.statistics.prefix_tree import walk
from specviz.lossless.statistics.transform import Sums, martingale, sums_of_walks
from tests.lossless.samplers import markov, top_k, tree_of


def test_the_moments_of_a_contingency_table_by_enumeration() -> None:
    rows, columns = (5, 7), (4, 3, 5)
    weights, values = [], []
    for a, b in product(range(5), range(4)):
        c = rows[0] - a - b
        if not 0 <= c <= columns[2]:
            continue
        table = np.array([[a, b, c], [4 - a, 3 - b, 5 - c]], dtype=float)
        expected = np.outer(rows, columns) / 12
        weights.append(comb(4, a) * comb(3, b) * comb(5, c))
        values.append(((table - expected) ** 2 / expected).sum())
    mean = np.average(values, weights=weights)
    variance = np.average((np.array(values) - mean) ** 2, weights=weights)
    assert contingency_moments(table) == pytest.approx((mean, variance))


@pytest.mark.parametrize("ends", [(), (2,)])
def test_the_cumulants_of_a_text_by_enumeration(ends: tuple[int, ...]) -> None:
    table = top_k(markov(5, seed=7, concentration=0.4), 3)
    tree = tree_of(table, length=3, end_ids=ends)
    texts = list(product(range(5), repeat=3))
    probability, value = [], []
    for text in texts:
        last, p, total = 0, 1.0, 0.0
        for token in text:
            row = table[last]
            p *= row[token]
            if p == 0:
                break
            mean = np.sum(row[row > 0] * np.log(row[row > 0]))
            total += np.log(row[token]) - mean
            last = token
            if token in ends:
                # every continuation of an ended text is that text: count it once
                p *= float(text[text.index(token) + 1 :] == (0,) * (2 - text.index(token)))
                break
        probability.append(p)
        value.append(total)
    weights, sums = np.array(probability), np.array(value)
    assert weights.sum() == pytest.approx(1)
    assert weights @ sums == pytest.approx(0, abs=1e-12)
    walks = [walk(tree, tree.draw(10, 0).tokens)]
    found = sums_of_walks(tree, walks).cumulants
    assert found == pytest.approx((10 * weights @ sums**2, 10 * weights @ sums**3))


def test_the_tail_of_a_skewed_sum_is_not_the_normal_one() -> None:
    """A sum of log p of a peaked distribution: how often is the p-value at most .001?"""
    row = np.array([0.9, 0.05, 0.03, 0.02])
    d = np.log(row) - row @ np.log(row)
    counts = np.random.default_rng(0).multinomial(800, row, size=200_000)
    z = counts @ d / np.sqrt(800 * row @ d**2)
    skew = (row @ d**3) / (row @ d**2) ** 1.5 / np.sqrt(800)
    assert abs(skew) < 0.1
    tails = stats.pearson3(skew)
    ours = np.mean(2 * np.minimum(tails.cdf(z), tails.sf(z)) <= 0.001)
    assert abs(ours - 0.001) < 3.5 * np.sqrt(0.001 / 200_000)
    lower = np.mean(z < stats.norm.ppf(0.0005))  # twin: one side of the normal tail alone
    assert lower > 0.0005 + 3.5 * np.sqrt(0.0005 / 200_000)
    sums = Sums(800, float(z[0] * np.sqrt(800 * row @ d**2)), 0.0, 800 * row @ d**2, 0.0,
                cumulants=(800 * row @ d**2, 800 * row @ d**3))  # fmt: skip
    assert martingale("log p", sums).p == pytest.approx(2 * min(tails.cdf(z[0]), tails.sf(z[0])))


def test_the_tail_of_two_samples_with_few_expected() -> None:
    """Ten cells of five expected each: chi-square's tail is too heavy, ours is nearer."""
    random = np.random.default_rng(1)
    tables = random.multinomial(50, np.full(10, 0.1), size=(20_000, 2)).astype(float)
    tables = tables[(tables.sum(axis=1) > 0).all(axis=1)]  # (tables, 2, 10)
    expected = tables.sum(axis=1, keepdims=True) / 2
    found = ((tables - expected) ** 2 / expected).sum(axis=(1, 2))
    mean, variance = np.array([contingency_moments(table) for table in tables]).T
    p = stats.gamma.sf(found, mean**2 / variance, scale=variance / mean)
    assert homogeneity("a", *tables[0]).p == pytest.approx(p[0])
    ours, usual = np.sum(p <= 0.01), np.sum(stats.chi2.sf(found, 9) <= 0.01)
    assert ours < 200 + 3.5 * np.sqrt(200)  # never more alarms than the level says
    assert usual < ours  # twin: chi-square's p-values of the same tables miss more


def test_a_gamma_tail_with_chi_square_moments_is_chi_square() -> None:
    assert gamma_tail(20.0, 7.0, 14.0, 56.0) == pytest.approx(stats.chi2.sf(20.0, 7))


def test_right_samplers_are_counted_and_a_wrong_one_shows() -> None:
    few = [measure(kind, 3, progress=False) for kind in KINDS if kind.vocab_size == 8]
    assert together(few).audits == 3 * len(few)
    assert together(few).alarms <= 2
    assert upper_bound(0, 10) < upper_bound(1, 10) < 1
    with_alpha = measure(Kind("too many alarms", 8, n=20), 3, progress=False)  # inconclusive
    assert with_alpha.alarms == 3


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_false_alarms_of_every_kind_of_right_sampler() -> None:
    """A hundred audits of each of seventeen kinds: at 1%, over 31 alarms have probability .001.

    The bound of 1.5% takes ten thousand audits: ``python -m specviz.bench false-alarms``.
    """
    found = together([measure(kind, 100, progress=False) for kind in KINDS])
    assert found.audits == 1_700
    assert found.alarms <= 31
