"""The total variation of a table: what was seen, what chance shows, and what it may be."""

from __future__ import annotations

from dataclasses import dataclass
from math import log, sqrt

import numpy as np

from specviz.lossless.statistics.power import noise_floor, noise_floor_of_two
from specviz.lossless.statistics.tables import Table


@dataclass(frozen=True)
class Distance:
    """Total variation between the sampler's distribution and the target's, on one pooled table.

    Parameters
    ----------
    table : str
        Which table.
    cells : int
        How many cells it has after pooling.
    plug_in : float
        Total variation between the shares that were seen and the target's distribution. It is
        above 0 for a perfect sampler too.
    noise_floor : float
        What a perfect sampler shows on average at this n.
    low : float
        Lower confidence bound, from the witness event.
    high : float
        Upper confidence bound on this table (McDiarmid): a distribution that differs within its
        cells only may be further away.
    confidence : float
        Confidence of ``low`` and ``high`` together.
    """

    table: str
    cells: int
    plug_in: float
    noise_floor: float
    low: float
    high: float
    confidence: float


def distance(table: Table, low: float, alpha: float) -> Distance:
    """Return the distance seen on a table; ``low`` must hold with confidence ``1 - alpha / 2``.

    The upper bound: the plug-in moves by at most 1/n with every text, and its distance from the
    true distribution's is at most ½ sqrt((cells - 1) / n) on average.
    """
    counts = table.pooled_counts().sum(axis=0)
    n = int(counts.sum())
    distribution = table.pooled_distribution
    plug_in = float(np.abs(counts / n - distribution).sum() / 2)
    slack = 0.5 * sqrt((len(distribution) - 1) / n) + sqrt(log(2 / alpha) / (2 * n))
    high = min(1.0, plug_in + slack)
    floor = noise_floor(distribution, n)
    return Distance(table.name, len(distribution), plug_in, floor, min(low, high), high, 1 - alpha)


def distance_of_two(
    name: str, subject: np.ndarray, reference: np.ndarray, low: float, alpha: float
) -> Distance:
    """Return the distance between two samples on a table of pooled counts ``(pooled,)`` each."""
    n, m = int(subject.sum()), int(reference.sum())
    share = (subject + reference) / (n + m)
    plug_in = float(np.abs(subject / n - reference / m).sum() / 2)
    cells = len(share)
    slack = sum(0.5 * sqrt((cells - 1) / k) + sqrt(log(4 / alpha) / (2 * k)) for k in (n, m))
    floor = noise_floor_of_two(share, n, m)
    high = min(1.0, plug_in + slack)
    return Distance(name, cells, plug_in, floor, min(low, high), high, 1 - alpha)
