"""What n texts would show: minimum detectable effect, samples needed, power, noise floor.

Pearson's statistic is noncentral chi-square with noncentrality n sum (w - p)^2 / p when the texts
follow w instead of p. By Cauchy and Schwarz that is at least 4 n TV(w, p)^2, so every w at total
variation TV is caught with at least the power computed for 4 n TV^2.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, log, sqrt
from typing import Any

import numpy as np
from scipy import optimize, stats

from specviz.core import checks
from specviz.core.contract import FloatArray
from specviz.lossless.statistics.pooling import neighbours_pooled, sums_by_cell
from specviz.lossless.statistics.prefix_tree import PrefixTree, Walk, walk
from specviz.lossless.statistics.tables import all_tables


def chi_square_power(dof: int, noncentrality: float, alpha: float) -> float:
    """Return the probability that Pearson's test at level ``alpha`` rejects."""
    _check(dof, alpha)
    if noncentrality <= 0:
        return alpha
    critical = stats.chi2.isf(alpha, dof)
    power = float(stats.ncx2.sf(critical, dof, noncentrality))
    if np.isfinite(power):
        return min(1.0, max(0.0, power))
    return float(  # far out the noncentral distribution is normal to all digits that matter
        stats.norm.sf((critical - dof - noncentrality) / sqrt(2 * (dof + 2 * noncentrality)))
    )


@lru_cache(maxsize=4096)
def noncentrality(dof: int, alpha: float, power: float = 0.8) -> float:
    """Return the noncentrality that a chi-square test catches with the given power.

    Examples
    --------
    >>> [round(noncentrality(dof, 0.01), 1) for dof in (7, 19, 63)]
    [19.8, 27.6, 43.8]
    """
    _check(dof, alpha)
    if not alpha < checks.number("power", power) < 1:
        raise ValueError(f"power must lie between alpha={alpha} and 1, got {power}")
    high = 10.0 + dof
    while chi_square_power(dof, high, alpha) < power:
        high *= 2
    root: Any = optimize.brentq(lambda x: chi_square_power(dof, x, alpha) - power, 0.0, high)
    return float(root)


def detectable_tv(n: float, dof: int, alpha: float = 0.01, power: float = 0.8) -> float:
    """Return the total variation on the pooled table that n texts reveal with the given power.

    ``½ sqrt(λ(dof, alpha, power) / n)``; for two samples n is ``n₁ n₂ / (n₁ + n₂)``.

    Examples
    --------
    >>> round(detectable_tv(50_000, dof=7), 4)
    0.0099
    """
    if checks.number("n", n) <= 0:
        raise ValueError(f"n must be at least 1 text, got {n}")
    return min(1.0, 0.5 * sqrt(noncentrality(dof, alpha, power) / n))


def samples_for_tv(tv: float, dof: int, alpha: float = 0.01, power: float = 0.8) -> int:
    """Return how many texts reveal a total variation of ``tv`` with the given power.

    Parameters
    ----------
    tv : float
        Total variation on the pooled table, between 0 and 1.
    dof : int
        Degrees of freedom of the pooled table.
    alpha : float
        Level of the test: divide it by the number of tests where Holm's correction applies.
    power : float
        Probability of catching it.

    Examples
    --------
    >>> samples_for_tv(0.01, dof=7)
    49469
    """
    if not 0 < checks.number("tv", tv) <= 1:
        raise ValueError(f"tv must lie between 0 and 1, got {tv}")
    return ceil(noncentrality(dof, alpha, power) / (4 * tv * tv))


def texts_for_effect(
    distribution: FloatArray, effect: float, alpha: float, power: float = 0.8, samples: int = 1
) -> int | None:
    """Return about the smallest n whose pooled table of ``distribution`` reveals ``effect``.

    Pooling depends on n, so that both are found together; to 10%, rounded up. For two ``samples``
    n is the size of each. None if no n up to 10⁹ does.
    """
    cumulative = np.cumsum(distribution)
    grid = 10.0 * 1.05 ** np.arange(ceil(log(1e8) / log(1.05)))  # 10 … 10⁹

    def reveals(index: int) -> bool:
        n = float(grid[index])
        cells = neighbours_pooled(cumulative, n)
        return cells > 1 and detectable_tv(n / samples, cells - 1, alpha, power) <= effect

    # the more texts, the smaller the effect that shows: leap up the grid, then search the last leap
    leap = 16
    for high in range(0, len(grid) + leap, leap):
        if reveals(min(high, len(grid) - 1)):
            first = bisect_left(range(len(grid)), True, max(0, high - leap), high, key=reveals)
            return ceil(1.05 * float(grid[min(first, len(grid) - 1)]))
    return None


def noise_floor(distribution: FloatArray, n: int) -> float:
    """Return the total variation that a perfect sampler shows by chance, on average.

    Half the sum of the cells' mean absolute deviations, each exact (de Moivre 1730):
    ``E|X - np| = 2 ν (1 - p) P(X = ν)`` with ``ν = floor(np) + 1``.

    Examples
    --------
    >>> round(noise_floor(np.full(4096, 1 / 4096), 10_000), 3)
    0.259
    """
    p = np.asarray(distribution, dtype=np.float64)
    p = p[(p > 0) & (p < 1)]
    above = np.floor(n * p) + 1
    deviation = 2 * above * (1 - p) * stats.binom.pmf(above, n, p)
    return float(deviation.sum() / (2 * n))


def noise_floor_of_two(share: FloatArray, n: int, m: int) -> float:
    """Return the plug-in TV between two samples of one distribution (normal approximation)."""
    spread = np.sqrt(share * (1 - share) * (1 / n + 1 / m))
    return float(0.5 * sqrt(2 / np.pi) * spread.sum())


@dataclass(frozen=True)
class TablePower:
    """What one table reveals of a known wrong distribution.

    Parameters
    ----------
    name : str
        The table.
    dof : int
        Degrees of freedom after pooling.
    tv : float
        Total variation between the two distributions on the pooled table.
    noncentrality : float
        ``n sum (w - p)^2 / p`` on the pooled table.
    power : float
        Probability that this table alone rejects at ``alpha / tests``.
    """

    name: str
    dof: int
    tv: float
    noncentrality: float
    power: float


def power_against(
    tree: PrefixTree,
    wrong: Mapping[tuple[int, ...], float],
    n: int,
    *,
    alpha: float = 0.01,
    tests: int | None = None,
) -> list[TablePower]:
    """Return what every table reveals of a sampler whose distribution is ``wrong``, best first.

    The battery catches it with at least the power of the best table, for Holm's first step tests
    at ``alpha / tests``. A distribution that puts mass on impossible texts is caught by the
    support check, which is not in this list.

    Parameters
    ----------
    tree : PrefixTree
        The target's distribution.
    wrong : mapping
        Text of the tree's length (tuple of ids, -1 after its end) → probability.
    n : int
        How many texts would be drawn.
    alpha : float
        Family-wise level.
    tests : int, optional
        How many tests share it; by default those of the battery without a draft's distribution.
    """
    texts = np.array(sorted(wrong), dtype=np.int64)
    if texts.ndim != 2 or texts.shape[1] != tree.length:
        raise ValueError(f"wrong must have texts of {tree.length} tokens, got shape {texts.shape}")
    weights = np.array([wrong[tuple(text)] for text in texts.tolist()])
    if abs(float(weights.sum()) - 1) > 1e-6:
        raise ValueError(f"wrong must sum to 1, got {weights.sum():.6g}")
    cells = walk(tree, texts).cells
    mass = [
        sums_by_cell(cell, weights, level.distribution.size).reshape(level.distribution.shape)
        for cell, level in zip(cells, tree.levels, strict=True)
    ]
    tables = all_tables(tree, [Walk(cells, mass)], n=n)
    share = alpha / (tests or len(tables) + 3)
    found = []
    for table in tables:
        expected = table.pooling.expected / n
        if len(expected) < 2:
            continue
        gap = table.pooled_counts().sum(axis=0) - expected
        strength = float(n * np.sum(gap * gap / expected))
        power = chi_square_power(len(expected) - 1, strength, share)
        tv = float(np.abs(gap).sum() / 2)
        found.append(TablePower(table.name, len(expected) - 1, tv, strength, power))
    return sorted(found, key=lambda table: -table.power)


def _check(dof: int, alpha: float) -> None:
    if checks.whole("dof", dof) < 1:
        raise ValueError(f"dof must be at least 1, got {dof}: a table of one cell tests nothing")
    checks.number("alpha", alpha, above=0, below=1)
