"""One run of samples that are looked at as they come, and what is told of it.

This is ``js/watch_run.js`` in Python; a test compares the two. The e-process is
:class:`specviz.lossless.EProcess`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, log
from typing import Any

import numpy as np
from scipy import stats

from specviz.core.contract import FloatArray, IntArray
from specviz.lossless.statistics.eprocess import EProcess
from specviz.lossless.statistics.pooling import LEAST, pool_rare

SHARE = 0.2
"""Cells that expect fewer than five in this share of the longest run are one for the p-value."""
FIRST, GROWTH = 20, 1.02
"""One looks at the p-value from the first few samples on, ever further apart."""
MOST = 99_999
_LARGEST = 1e4


def looks_up_to(limit: int, first: int = FIRST, growth: float = GROWTH) -> list[int]:
    """Return after how many samples one looks.

    Examples
    --------
    >>> looks_up_to(100, first=20, growth=2)
    [20, 40, 80, 100]
    """
    looks, n = [], first
    while n < limit:
        looks.append(n)
        n = max(n + 1, ceil(n * growth))
    return [*looks, limit]


class WatchedRun:
    """Samples of one sampler against the target's distribution, looked at as they come.

    Parameters
    ----------
    distribution : array ``(cells,)``
        The target's distribution.
    alpha : float
        Level of the alarm.
    looks : sequence of int
        After how many samples the p-value is looked at; the last is the longest run.
    """

    def __init__(self, distribution: Any, alpha: float, looks: Sequence[int]) -> None:
        self.watch = EProcess(distribution, alpha=alpha)
        self.alpha, self.looks, self.limit = alpha, list(looks), looks[-1]
        self._pooling = pool_rare(SHARE * self.limit * self.watch.distribution)
        self._distribution = self._pooling.pool(self.watch.distribution)
        self._parts: list[IntArray] = []
        self.e: list[int] = []
        self.p: list[int | None] = []
        self.p_now: float | None = None
        self.p_alarm: int | None = None
        self.log_e = 0.0

    @property
    def n(self) -> int:
        """How many samples there are."""
        return self.watch.n

    @property
    def distribution(self) -> FloatArray:
        """The target's distribution ``(cells,)``."""
        return self.watch.distribution

    @property
    def cells(self) -> IntArray:
        """The samples ``(n,)`` in the order drawn."""
        return np.concatenate(self._parts) if self._parts else np.zeros(0, dtype=np.int64)

    @property
    def ended(self) -> bool:
        """Whether the run is as long as it may be."""
        return self.n >= self.limit

    def take(self, cells: Any) -> None:
        """Take samples in, looking on the way.

        Raises
        ------
        ValueError
            If a cell is outside the distribution, or there are more than the run may have.
        """
        rest = np.asarray(cells)
        if self.n + len(rest) > self.limit:
            raise ValueError(f"a run has {self.limit} samples at most, got {self.n + len(rest)}")
        while len(rest):
            part, rest = np.split(rest, [self.looks[len(self.e)] - self.n])
            self.log_e = min(float(self.watch.update_log(part)[-1]), _LARGEST)
            self._parts.append(part.astype(np.int64))
            if self.n == self.looks[len(self.e)]:
                self._look()

    def _look(self) -> None:
        self.e.append(_hundredths(self.log_e))
        self.p_now = self._p_value()
        self.p.append(None if self.p_now is None else _hundredths(-log(max(self.p_now, 1e-300))))
        if self.p_alarm is None and self.p_now is not None and self.p_now < self.alpha:
            self.p_alarm = self.n

    def _p_value(self) -> float | None:
        """Return Pearson's p-value, valid if this were the only look; None while not testable."""
        expected = self.n * self._distribution
        if len(expected) < 2 or expected.min() < LEAST:
            return None
        seen = self._pooling.pool(self.watch.counts)
        statistic = float(((seen - expected) ** 2 / expected).sum())
        return float(stats.chi2.sf(statistic, len(expected) - 1))

    def told(self) -> dict[str, Any]:
        """Return what the front end is told: plain JSON, a few kilobytes at most."""
        return {
            "n": self.n,
            "counts": self.watch.counts.tolist(),
            "e": self.e,
            "p": self.p,
            "p_now": self.p_now,
            "p_alarm": self.p_alarm,
            "e_alarm": self.watch.crossed_at,
            "log_e": self.log_e,
            "ended": self.ended,
        }


def _hundredths(value: float) -> int:
    """Return hundredths of a power of ten of a natural logarithm, as ``js/watch_run.js`` does."""
    rounded = int(np.floor(100 * value / log(10) + 0.5))
    return max(-MOST, min(MOST, rounded))
