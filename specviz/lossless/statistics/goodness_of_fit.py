"""Pearson's chi-square on tables of emitted tokens: one sample against p, or two samples."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np
from scipy import stats

from specviz.core.contract import FloatArray
from specviz.lossless.statistics.findings import Finding
from specviz.lossless.statistics.sample import Words
from specviz.lossless.statistics.tables import Table


def goodness_of_fit(table: Table, words: Words | None = None) -> Finding:
    """Return whether a table follows the target's distribution.

    Cells are pooled to at least five expected each; with one cell left there is nothing to test.

    Parameters
    ----------
    table : Table
        Distribution and counts.
    words : mapping or sequence, optional
        Token strings, for the description of the cell that departs most.
    """
    expected = table.pooling.expected
    if len(expected) < 2:
        return _untestable(table.name, table.n, expected)
    counts = table.pooled_counts().sum(axis=0)
    statistic, p = pearson(counts, expected)
    worst = int(np.argmax(np.abs(counts - expected) / np.sqrt(expected)))
    detail = (
        f"{table.describe_pooled(worst, words)}: {counts[worst]:,.0f} seen, "
        f"{expected[worst]:,.1f} expected"
    )
    return Finding(table.name, "chi-square", statistic, len(expected) - 1, table.n, p, detail)


def pearson(counts: FloatArray, expected: FloatArray) -> tuple[float, float]:
    """Return Pearson's statistic and p-value; expectations are scaled to the total in float64.

    With cells that expect about five, chi-square's tail is too light: p-values below .001 come up
    to 1.4 times too often, and Holm's correction lives there. So the p-value is that of a gamma
    distribution with the statistic's exact mean, variance and skewness (:func:`moments`).

    Raises
    ------
    ValueError
        If a cell expects nothing: pool it, for the ratio would be NaN or infinite.
    """
    if np.any(expected <= 0):
        raise ValueError("a cell with expected count 0 must be pooled before it is tested")
    n = float(counts.sum())
    scaled = np.asarray(expected, dtype=np.float64) * (n / float(expected.sum()))
    statistic = float(stats.chisquare(counts, scaled).statistic)
    return statistic, gamma_tail(statistic, *moments(scaled / n, n))


def gamma_tail(statistic: float, mean: float, variance: float, third: float) -> float:
    """Return the upper tail of a gamma distribution with these moments (third: central)."""
    if third <= 0 or variance <= 0:  # two cells of nearly a half
        return float(stats.chi2.sf(statistic, mean))
    shape = 4 * variance**3 / third**2
    place = shape + (statistic - mean) / sqrt(variance) * sqrt(shape)
    return float(stats.gamma.sf(place, shape))


def moments(distribution: FloatArray, n: float) -> tuple[float, float, float]:
    """Return mean, variance and third central moment of Pearson's statistic, exactly.

    For n texts of distribution ``(cells,)``, from the factorial moments of the multinomial
    (Haldane 1937, "The exact value of the moments of the distribution of χ²"). For large n they
    are chi-square's: cells - 1, 2 (cells - 1) and 8 (cells - 1).

    Examples
    --------
    >>> [round(moment, 3) for moment in moments(np.array([0.5, 0.5]), n=10)]
    [1.0, 1.8, 5.76]
    """
    k = len(distribution)
    once, twice = float(np.sum(1 / distribution)), float(np.sum(1 / distribution**2))
    variance = 2 * (k - 1) + (once - k**2 - 2 * k + 2) / n
    third = 8 * (k - 1) + (22 * once - 18 * k**2 - 36 * k + 32) / n
    third += (twice - 3 * once * k - 22 * once + 2 * k**3 + 18 * k**2 + 28 * k - 24) / n**2
    return k - 1.0, variance, third


def homogeneity(
    name: str, subject: FloatArray, reference: FloatArray, label: Any = None
) -> Finding:
    """Return whether two rows of pooled counts come from one distribution (no Yates correction).

    Given both margins the statistic's mean and variance are known exactly; the p-value is that of a
    gamma distribution with them (Haldane 1940; Dawson 1954, "A simplified expression for the
    variance of the χ² function on a contingency table").

    Parameters
    ----------
    name : str
        The table's name.
    subject, reference : FloatArray
        ``(pooled,)`` counts; every cell must expect five in both rows.
    label : callable, optional
        Pooled cell → description.
    """
    both = np.stack([subject, reference])  # (2, pooled)
    total = both.sum(axis=0)
    n = int(both.sum())
    expected = both.sum(axis=1, keepdims=True) * total / max(1, n)
    if both.shape[1] < 2:
        return _untestable(name, n, expected[0])
    found: Any = stats.chi2_contingency(both, correction=False)
    gap = (subject - expected[0]) / np.sqrt(expected[0])
    worst = int(np.argmax(np.abs(gap)))
    detail = "" if label is None else (
        f"{label(worst)}: {subject[worst]:,.0f} seen, {reference[worst]:,.0f} in the reference"
    )  # fmt: skip
    mean, variance = contingency_moments(both)
    p = float(stats.gamma.sf(found.statistic, mean**2 / variance, scale=variance / mean))
    return Finding(name, "chi-square", float(found.statistic), int(found.dof), n, p, detail)


def contingency_moments(counts: FloatArray) -> tuple[float, float]:
    """Return mean and variance of a contingency table's chi-square, given its margins.

    Parameters
    ----------
    counts : FloatArray
        ``(rows, columns)``.

    Examples
    --------
    >>> [round(x, 4) for x in contingency_moments(np.array([[3.0, 1.0], [1.0, 3.0]]))]
    [1.1429, 2.351]
    """
    n = float(counts.sum())
    (r, rows), (c, columns) = ((len(m), m) for m in (counts.sum(axis=1), counts.sum(axis=0)))
    v = [(k - 1) * (n - k) / (n - 1) for k in (r, c)]
    w = [(n * np.sum(1 / m) - k**2) / (n - 2) for k, m in ((r, rows), (c, columns))]
    variance = 2 * n / (n - 3) * (v[0] - w[0]) * (v[1] - w[1]) + n**2 / (n - 1) * w[0] * w[1]
    return n * (r - 1) * (c - 1) / (n - 1), float(variance)


def _untestable(name: str, n: int, expected: FloatArray) -> Finding:
    detail = (
        f"all {n:,} texts fall into one cell of at least 5 expected: no degrees of freedom"
        if len(expected) < 2
        else ""
    )
    return Finding(name, "chi-square", None, None, n, None, detail)
