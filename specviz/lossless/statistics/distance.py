"""How far the sampler is from the target in total variation, and the event that shows it best.

A total variation is the largest difference on any event. The *witness* is the event that shows most
of it: chosen on one half of the texts and measured on the other, so that its lower bound holds
although the event was searched for. The *distance* is what was seen on one table, with what chance
shows (the noise floor) and the bounds from below and above.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import exp, log, sqrt

import numpy as np
from scipy import stats

from specviz.core.contract import FloatArray
from specviz.lossless.statistics.power import noise_floor, noise_floor_of_two
from specviz.lossless.statistics.sample import Words
from specviz.lossless.statistics.tables import Table
from specviz.lossless.statistics.transform import BINS, Uniforms

EXCESSES = (0.0, 1.0, 2.0)
"""Thresholds in standard deviations: cells seen more often than that are joined."""


@dataclass(frozen=True)
class Witness:
    """An event: its probability under the target, and how often it happened.

    Parameters
    ----------
    event : str
        What it is, in words.
    table : str
        Where it was found.
    expected : float
        The target's probability of it (for two samples: an upper confidence bound).
    observed : float
        How often it happened in the half it was measured on, as a share.
    n : int
        How many texts (tokens, if ``per_token``) that half had.
    low : float
        Lower confidence bound on the total variation between sampler and target; 0 if the half it
        was measured on does not confirm it.
    span : int
        How many emitted tokens the event looks at.
    per_token : bool
        Whether ``low`` bounds the mean total variation of one token's distribution, not of a whole
        text's.
    confidence : float
        Confidence of ``low``.
    """

    event: str
    table: str
    expected: float
    observed: float
    n: int
    low: float
    span: int
    per_token: bool
    confidence: float

    def excess(self, margin: float) -> float:
        """Return by how much ``low`` exceeds a tolerated total variation per token."""
        return self.low - margin * (1 if self.per_token else self.span)


def _events(expected: FloatArray, counts: FloatArray, n: float) -> Iterator[np.ndarray]:
    """Yield sets of cells seen too often: the most telling one, and unions."""
    spread = np.sqrt(np.maximum(expected * (1 - expected), 1e-300) / n)
    away = (counts / n - expected) / spread
    yield np.arange(len(away)) == int(np.argmax(away))
    for least in EXCESSES:
        yield away > least


def _promise(expected: float, seen: float, n: float) -> float:
    """Return what an event will probably bound, for choosing among them."""
    return seen - expected - 2.6 * float(np.sqrt(max(seen * (1 - seen), 1 / n) / n))


def table_witness(
    tables: Sequence[Table], alpha: float, margin: float = 0.0, words: Words | None = None
) -> Witness | None:
    """Return the best event of any table; its bound holds with confidence ``1 - alpha``.

    The upper side of its probability is Clopper and Pearson's exact bound (1934) on the half of
    the texts that had no part in choosing the event.
    """
    best: tuple[float, Table, np.ndarray] | None = None
    for table in tables:
        if table.pooling.cells < 2:
            continue
        chosen = table.pooled_counts()[0]
        n = float(chosen.sum())
        for event in _events(table.pooled_distribution, chosen, n):
            expected, seen = (
                float(table.pooled_distribution[event].sum()),
                float(chosen[event].sum()) / n,
            )
            value = _promise(expected, seen, n) - margin * table.span
            if best is None or value > best[0]:
                best = (value, table, event)
    if best is None:
        return None
    _, table, event = best
    measured = table.pooled_counts()[1]
    n, k = int(measured.sum()), int(measured[event].sum())
    expected = float(table.pooled_distribution[event].sum())
    low = max(0.0, share_at_least(k, n, alpha) - expected)
    text = describe_event(table, event, words)
    return Witness(text, table.name, expected, k / max(1, n), n, low, table.span, False, 1 - alpha)


def describe_event(table: Table, event: np.ndarray, words: Words | None) -> str:
    """Return an event in words: its first cell, and how many more."""
    cells = np.flatnonzero(event)
    if not len(cells):
        return "no cell"
    first = table.describe_pooled(int(cells[0]), words)
    return first if len(cells) == 1 else f"{len(cells)} cells seen too often, among them {first}"


def share_at_least(k: int, n: int, alpha: float) -> float:
    """Return the one-sided Clopper–Pearson lower bound on a share of which k in n were seen.

    Examples
    --------
    >>> round(share_at_least(5, 10, 0.05), 3)
    0.222
    """
    return 0.0 if k == 0 or n == 0 else float(stats.beta.ppf(alpha, k, n - k + 1))


def share_at_most(k: int, n: int, alpha: float) -> float:
    """Return the one-sided Clopper–Pearson upper bound on a share.

    Examples
    --------
    >>> round(share_at_most(0, 100, 0.05), 4)
    0.0295
    """
    return 1.0 if n == 0 or k >= n else float(stats.beta.ppf(1 - alpha, k + 1, n - k))


def token_witness(uniforms: Uniforms, alpha: float) -> Witness | None:
    """Return the set of values of u seen too often, with its bound on a token's total variation.

    The bound is on the mean total variation, over the tokens of the second half, between the
    distribution that each was drawn from and the target's. Tokens depend on each other, so it is a
    martingale bound (Hoeffding's moment bound, at a rate fixed on the first half).
    """
    first, second = (half.astype(np.float64) for half in uniforms.bins)
    n, m = float(first.sum()), int(second.sum())
    if n < BINS or m < BINS:
        return None
    flat = np.full(BINS, 1 / BINS)
    event = max(
        _events(flat, first, n),
        key=lambda e: _promise(float(e.sum()) / BINS, float(first[e].sum()) / n, n),
    )
    width = float(event.sum()) / BINS
    k = int(second[event].sum())
    rate = rate_for(float(first[event].sum()) / n, int(n), alpha)
    mean = mean_at_least(k, m, rate, alpha)
    bins = ", ".join(f"{i / BINS:.2f}" for i in np.flatnonzero(event))
    return Witness(
        f"u in one of the bins of width {1 / BINS} that begin at {bins}", "transform u",
        width, k / m, m, max(0.0, mean - width), 1, True, 1 - alpha,
    )  # fmt: skip


def mean_at_least(k: int, n: int, rate: float, alpha: float) -> float:
    """Return a lower bound on the mean conditional probability of n events, k of which happened.

    For any rate r > 0, ``exp(r k) / prod(1 + P_t (e^r - 1))`` is a nonnegative supermartingale of
    mean at most 1 whatever the P_t, and the product is at most its value at the mean. The rate must
    not depend on these n events; :func:`rate_for` gives a good one.
    """
    return max(0.0, (exp((rate * k - log(1 / alpha)) / n) - 1) / (exp(rate) - 1))


def rate_for(guess: float, n: int, alpha: float) -> float:
    """Return the rate that bounds closest if a share ``guess`` of n events happens."""
    guess = min(max(guess, 1 / n), 1 - 1 / n)
    return min(5.0, sqrt(2 * log(1 / alpha) / (n * guess * (1 - guess))))


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

    The upper bound is McDiarmid's (1989, "On the method of bounded differences"): the plug-in moves
    by at most 1/n with every text, and its distance from the true distribution's is at most
    ½ sqrt((cells - 1) / n) on average.
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
