"""Cells pooled until each expects enough for Pearson's chi-square; no cell is ever dropped.

The labels depend only on how many texts there are and on the distribution, never on what was
drawn: pooling by the counts would break the level of every test. Unpooled joint tables alarm
falsely 14–30% of the time at a nominal 5%.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from specviz.core.contract import FloatArray, IntArray

LEAST = 5.0
"""Least expected count of a pooled cell."""


@dataclass(frozen=True)
class Pooling:
    """Which pooled cell every cell belongs to.

    Parameters
    ----------
    label : IntArray
        ``(cells,)`` index of the pooled cell.
    expected : FloatArray
        ``(pooled,)`` expected counts, each at least :data:`LEAST` unless there is only one.
    """

    label: IntArray
    expected: FloatArray

    @property
    def cells(self) -> int:
        """How many pooled cells there are."""
        return len(self.expected)

    def pool(self, values: Any) -> FloatArray:
        """Return ``(pooled,)`` the sums of ``values`` ``(cells,)`` over each pooled cell."""
        return sums_by_cell(self.label, values, self.cells)


def sums_by_cell(cells: IntArray, values: Any, size: int) -> FloatArray:
    """Return ``(size,)`` the sums of ``values`` that share a cell."""
    sums: Any = np.bincount(cells, np.asarray(values, dtype=np.float64), size)
    out: FloatArray = sums
    return out


def pool_rare(expected: FloatArray) -> Pooling:
    """Pool all cells that expect fewer than five into one "other" cell.

    For tables whose cells have no natural neighbours (a position, a pair). If "other" itself
    expects too few, the smallest of the kept cells joins it.

    Examples
    --------
    >>> pooling = pool_rare(np.array([50.0, 3.0, 40.0, 4.0, 0.0]))
    >>> pooling.label.tolist(), pooling.expected.tolist()
    ([0, 2, 1, 2, 2], [50.0, 40.0, 7.0])
    """
    kept = np.flatnonzero(expected >= LEAST)
    rare = np.ones(len(expected), dtype=bool)
    rare[kept] = False
    if rare.any() and float(expected[rare].sum()) < LEAST and len(kept):
        smallest = int(kept[np.argmin(expected[kept])])
        rare[smallest] = True
        kept = kept[kept != smallest]
    label = np.full(len(expected), len(kept), dtype=np.int64)
    label[kept] = np.arange(len(kept))
    return Pooling(label, sums_by_cell(label, expected, int(label.max()) + 1))


def pool_neighbours(expected: FloatArray) -> Pooling:
    """Pool each cell with those after it until five are expected; a short rest joins the last.

    For cells in prefix order, where neighbours are texts that begin alike.

    Examples
    --------
    >>> pooling = pool_neighbours(np.array([2.0, 4.0, 9.0, 1.0, 1.0]))
    >>> pooling.label.tolist(), pooling.expected.tolist()
    ([0, 0, 1, 1, 1], [6.0, 11.0])
    """
    firsts = _firsts(np.cumsum(expected), LEAST)
    opens = np.zeros(len(expected), dtype=np.int64)
    opens[firsts] = 1
    label = np.cumsum(opens) - 1
    return Pooling(label, sums_by_cell(label, expected, int(label.max()) + 1))


def neighbours_pooled(cumulative: FloatArray, n: float) -> int:
    """Return how many cells :func:`pool_neighbours` leaves of n texts.

    Parameters
    ----------
    cumulative : FloatArray
        ``(cells,)`` cumulative sums of the distribution.
    n : float
        How many texts.
    """
    return len(_firsts(cumulative, LEAST / n))


def _firsts(cumulative: FloatArray, least: float) -> list[int]:
    """Return the first cell of each pooled one, by a search from each to the next."""
    least *= 1 - 1e-9  # what sums to `least` but for rounding has it
    firsts: list[int] = []
    first, before, end = 0, 0.0, len(cumulative)
    while first < end:
        firsts.append(first)
        # the cell in which the sum since `before` reaches what is needed
        first = int(cumulative.searchsorted(before + least)) + 1
        if first > end:  # a short rest joins the last
            if len(firsts) > 1:
                firsts.pop()
            break
        before = float(cumulative[first - 1])
    return firsts
