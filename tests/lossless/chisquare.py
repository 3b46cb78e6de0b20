"""Pearson's chi-square for texts: cells pooled by a fixed order until each expects enough."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import sqrt
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.stats import chi2, ncx2

LEAST = 5.0
"""A cell expects at least so many: below, the chi-square distribution is no approximation."""


def pooled(distribution: Mapping[Any, float], n: int) -> tuple[dict[Any, int], np.ndarray]:
    """Return (outcome -> cell, expected counts); neighbours in sorted order share a cell.

    Depends on the distribution and n only, never on what was drawn.
    """
    cell: dict[Any, int] = {}
    expected = [0.0]
    for outcome in sorted(outcome for outcome, mass in distribution.items() if mass > 0):
        if expected[-1] >= LEAST:
            expected.append(0.0)
        cell[outcome] = len(expected) - 1
        expected[-1] += n * distribution[outcome]
    if expected[-1] < LEAST and len(expected) > 1:  # the last cell joins the one before it
        last = len(expected) - 1
        cell = {outcome: min(at, last - 1) for outcome, at in cell.items()}
        rest = expected.pop()
        expected[-1] += rest
    return cell, np.array(expected)


def p_value(drawn: Iterable[Any], distribution: Mapping[Any, float]) -> float:
    """Return the chi-square p-value of independent draws; 0 if one of them was impossible."""
    drawn = list(drawn)
    cell, expected = pooled(distribution, len(drawn))
    assert len(expected) > 1, "one cell is no test"
    if any(outcome not in cell for outcome in drawn):
        return 0.0
    found = np.bincount([cell[outcome] for outcome in drawn], minlength=len(expected))
    statistic = float(((found - expected) ** 2 / expected).sum())
    return float(chi2.sf(statistic, len(expected) - 1))


def detectable(
    distribution: Mapping[Any, float], n: int, level: float, power: float = 0.9
) -> float:
    """Return the TV that the pooled test sees with the given power, if it is spread evenly."""
    _, expected = pooled(distribution, n)
    freedom = len(expected) - 1
    critical = chi2.isf(level, freedom)
    noncentral = brentq(lambda x: ncx2.sf(critical, freedom, x) - power, 1e-6, 1e4)
    return 0.5 * sqrt(noncentral / n)


def power(
    distribution: Mapping[Any, float], other: Mapping[Any, float], n: int, level: float
) -> float:
    """Return how likely the test is to reject draws from ``other``; 0 where it has one cell."""
    cell, expected = pooled(distribution, n)
    freedom = len(expected) - 1
    if freedom == 0:
        return 0.0
    found = np.zeros(len(expected))
    for outcome, mass in other.items():
        if mass > 0 and outcome not in cell:
            return 1.0 - (1.0 - mass) ** n
        found[cell.get(outcome, 0)] += n * mass
    noncentral = float(((found - expected) ** 2 / expected).sum())
    return float(ncx2.sf(chi2.isf(level, freedom), freedom, noncentral))
