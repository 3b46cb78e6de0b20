"""Pearson's chi-square for texts: cells pooled by a fixed order until each expects enough."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import sqrt
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.stats import chi2, ncx2

LEAST = 5.0
"""A cell expects at least so many: below, the chi-square law is no approximation."""


def pooled(law: Mapping[Any, float], n: int) -> tuple[dict[Any, int], np.ndarray]:
    """Return (outcome -> cell, expected counts); neighbours in sorted order share a cell.

    Depends on the law and n only, never on what was drawn.
    """
    cell: dict[Any, int] = {}
    expected = [0.0]
    for outcome in sorted(outcome for outcome, mass in law.items() if mass > 0):
        if expected[-1] >= LEAST:
            expected.append(0.0)
        cell[outcome] = len(expected) - 1
        expected[-1] += n * law[outcome]
    if expected[-1] < LEAST and len(expected) > 1:  # the last cell joins the one before it
        last = len(expected) - 1
        cell = {outcome: min(at, last - 1) for outcome, at in cell.items()}
        expected[-2] += expected.pop()
    return cell, np.array(expected)


def p_value(drawn: Iterable[Any], law: Mapping[Any, float]) -> float:
    """Return the chi-square p-value of independent draws; 0 if one of them was impossible."""
    drawn = list(drawn)
    cell, expected = pooled(law, len(drawn))
    assert len(expected) > 1, "one cell is no test"
    if any(outcome not in cell for outcome in drawn):
        return 0.0
    found = np.bincount([cell[outcome] for outcome in drawn], minlength=len(expected))
    statistic = float(((found - expected) ** 2 / expected).sum())
    return float(chi2.sf(statistic, len(expected) - 1))


def detectable(law: Mapping[Any, float], n: int, level: float, power: float = 0.9) -> float:
    """Return the TV that the pooled test sees with the given power, if it is spread evenly."""
    _, expected = pooled(law, n)
    freedom = len(expected) - 1
    critical = chi2.isf(level, freedom)
    noncentral = brentq(lambda x: ncx2.sf(critical, freedom, x) - power, 1e-6, 1e4)
    return 0.5 * sqrt(noncentral / n)


def merged(law: Mapping[Any, float], n: int) -> dict[int, float]:
    """Return the law of the pooled cells, for the TV that the test can see at all."""
    cell, _ = pooled(law, n)
    out: dict[int, float] = {}
    for outcome, mass in law.items():
        if outcome in cell:
            out[cell[outcome]] = out.get(cell[outcome], 0.0) + mass
    return out
