"""What was seen of each table, beside what was expected: the numbers that plots of a report show.

Every drawn cell has an exact interval (Clopper & Pearson 1934), narrow enough that all cells of its
table together keep the confidence.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import log, sqrt

import numpy as np
from scipy import stats

from specviz.core.contract import FloatArray, IntArray
from specviz.lossless.statistics.distance import distance, distance_of_two
from specviz.lossless.statistics.goodness_of_fit import goodness_of_fit, homogeneity
from specviz.lossless.statistics.power import noise_floor
from specviz.lossless.statistics.sample import Words
from specviz.lossless.statistics.tables import Table
from specviz.lossless.statistics.transform import BINS, Uniforms, uniformity

CELLS = 14
"""How many cells of a table are kept; where there are more, those that depart most."""

CONFIDENCE = 0.99

_ID = re.compile(r"⟨(\d+)⟩")
_MORE = re.compile(r" or one of (\d+) other cells$")


@dataclass(frozen=True)
class TableSeen:
    """One table: what was seen and what was expected.

    Parameters
    ----------
    table : str
        Which table.
    unit : {"texts", "tokens"}
        What is counted.
    n : int
        How many of them.
    cells : int
        How many cells the table has after pooling.
    labels : tuple of str
        The cells kept, the likeliest first: their tokens as ``⟨id⟩``.
    expected, observed : tuple of float
        Counts of each kept cell. Between two samples a count is expected to be this sample's share
        of both.
    low, high : tuple of float
        Bounds of the true expectation, for all cells of the table together.
    tv : float
        Total variation seen over all cells, kept or not.
    floor : float
        What a perfect sampler shows on average.
    chance : float
        What it exceeds with probability ``1 - confidence`` at most.
    p : float or None
        The chi-square test's p-value.
    confidence : float
        Of all intervals together, and of ``chance``.
    against : str
        What is expected: ``"target p"``, ``"a uniform u"`` or ``"the reference alike"``.
    words : mapping
        Token id → text, for the ids in ``labels`` where it is known.
    """

    table: str
    unit: str
    n: int
    cells: int
    labels: tuple[str, ...]
    expected: tuple[float, ...]
    observed: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    tv: float
    floor: float
    chance: float
    p: float | None
    confidence: float
    against: str = "target p"
    words: Mapping[int, str] = field(default_factory=dict)


def table_seen(
    table: Table, words: Words | None = None, cells: int = CELLS, confidence: float = CONFIDENCE
) -> TableSeen | None:
    """Return what was seen of a table; None where one cell holds everything.

    Parameters
    ----------
    table : Table
        Distribution and counts.
    words : mapping or sequence of str, optional
        Token strings.
    cells : int
        Number of cells to keep.
    confidence : float
        Of all intervals together.
    """
    expected, n = table.pooling.expected, table.n
    if len(expected) < 2:
        return None
    seen = table.pooled_counts().sum(axis=0)
    low, high = (n * bound for bound in share_bounds(seen, n, len(seen), confidence))
    found = distance(table, 0.0, 1 - confidence)
    # one text more or less moves the total variation by 1/n at most (McDiarmid 1989)
    chance = found.noise_floor + sqrt(log(1 / (1 - confidence)) / (2 * n))
    kept = _kept(expected, seen, cells)
    return _seen(
        table.name, "texts", n, kept, expected, seen, low, high, found.plug_in,
        found.noise_floor, chance, goodness_of_fit(table).p, confidence, "target p",
        lambda cell: table.describe_pooled(cell), words,
    )  # fmt: skip


def two_seen(
    name: str, subject: FloatArray, reference: FloatArray, describe: Callable[[int], str],
    confidence: float = CONFIDENCE,
) -> TableSeen | None:  # fmt: skip
    """Return what was seen of a table of two samples, ``(pooled,)`` counts each.

    Given how many texts of both fell into a cell, those of the first sample are binomial.
    """
    if len(subject) < 2:
        return None
    n, m = int(subject.sum()), int(reference.sum())
    both = subject + reference
    expected = both * n / (n + m)
    low, high = (
        both * bound for bound in share_bounds(subject, both, len(both), confidence)
    )  # fmt: skip
    found = distance_of_two(name, subject, reference, 0.0, 1 - confidence)
    chance = found.noise_floor + sqrt(log(1 / (1 - confidence)) * (1 / n + 1 / m) / 2)
    return _seen(
        name, "texts", n, _kept(expected, subject, CELLS), expected, subject, low, high,
        found.plug_in, found.noise_floor, chance, homogeneity(name, subject, reference).p,
        confidence, "the reference alike", describe, None,
    )  # fmt: skip


def u_seen(uniforms: Uniforms, confidence: float = CONFIDENCE) -> TableSeen | None:
    """Return what was seen of the transform u, all twenty bins; None where it is not testable."""
    finding = uniformity(uniforms)
    if finding.p is None:
        return None
    seen = uniforms.bins.sum(axis=0).astype(np.float64)
    n = int(seen.sum())
    expected = np.full(BINS, n / BINS)
    low, high = (n * bound for bound in share_bounds(seen, n, BINS, confidence))
    floor = noise_floor(np.full(BINS, 1 / BINS), n)
    chance = floor + sqrt(log(1 / (1 - confidence)) / (2 * n))
    tv = float(np.abs(seen - expected).sum() / (2 * n))
    return _seen(
        finding.name, "tokens", n, np.arange(BINS), expected, seen, low, high, tv, floor, chance,
        finding.p, confidence, "a uniform u",
        lambda cell: f"u in [{cell / BINS:.2f}, {(cell + 1) / BINS:.2f})", None,
    )  # fmt: skip


def share_bounds(
    seen: FloatArray, n: FloatArray | float, cells: int, confidence: float
) -> tuple[FloatArray, FloatArray]:
    """Return Clopper and Pearson's bounds on shares, for all ``cells`` cells together."""
    tail = (1 - confidence) / cells / 2
    left = n - seen
    low = np.where(seen > 0, stats.beta.ppf(tail, np.maximum(seen, 1), left + 1), 0.0)
    high = np.where(left > 0, stats.beta.isf(tail, seen + 1, np.maximum(left, 1)), 1.0)
    return low, high


def _kept(expected: FloatArray, seen: FloatArray, most: int) -> IntArray:
    depart = np.abs(seen - expected) / np.sqrt(expected)
    kept = np.argsort(-depart, kind="stable")[:most]
    return kept[np.argsort(-expected[kept], kind="stable")]


def _seen(
    table: str, unit: str, n: int, kept: IntArray, expected: FloatArray, seen: FloatArray,
    low: FloatArray, high: FloatArray, tv: float, floor: float, chance: float, p: float | None,
    confidence: float, against: str, describe: Callable[[int], str], words: Words | None,
) -> TableSeen:  # fmt: skip
    labels = tuple(_label(describe(int(cell))) for cell in kept)
    ids = {int(found) for label in labels for found in _ID.findall(label)}

    def of_kept(values: FloatArray) -> tuple[float, ...]:
        return tuple(float(x) for x in values[kept])

    return TableSeen(
        table, unit, n, len(expected), labels, of_kept(expected), of_kept(seen), of_kept(low),
        of_kept(high), tv, floor, chance, p, confidence, against, _known(ids, words),
    )  # fmt: skip


def _label(described: str) -> str:
    """Return a short name: the cell's tokens, or its first cell's and how many it is pooled of."""
    place, colon, tokens = described.partition(": ")
    name = tokens if colon and place.startswith("position") else described
    return _MORE.sub(lambda found: f" + {int(found[1]):,} more", name)


def _known(ids: set[int], words: Words | None) -> dict[int, str]:
    if words is None:
        return {}
    if isinstance(words, Mapping):
        return {i: str(words[i]) for i in sorted(ids) if i in words}
    return {i: str(words[i]) for i in sorted(ids) if i < len(words)}
