"""Draws for very many replicas at once: the numbers of :mod:`specviz.core.draws`, as arrays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from specviz.core import philox
from specviz.core.contract import FloatArray, IntArray

BLOCK = 2**14
"""Keyed numbers are computed so many at a time: they stay in the processor's cache."""

FEW = 8
"""A distribution drawn from so seldom is compared with, not searched."""

ROWS = 128
"""Distributions that are compared with at a time."""


class Keyed:
    """Uniforms by key: those of :class:`specviz.core.draws.Sampler`."""

    def __init__(self, seed: int, first: int) -> None:
        self._seed, self._first = seed, first

    def __call__(
        self, purpose: int, who: IntArray, position: int, when: IntArray, lane: IntArray
    ) -> FloatArray:
        """Return a uniform for each replica in ``who`` ``(n,)``, in its round and lane."""
        out = np.empty(len(who))
        for start in range(0, len(who), BLOCK):
            part = slice(start, start + BLOCK)
            sequence = who[part] + self._first
            what, where = (np.full(len(sequence), word) for word in (int(purpose), position))
            key: Any = (self._seed, sequence)
            high, low, _, _ = philox.philox((what, where, when[part], lane[part]), key)
            out[part] = (((high << 20) | (low >> 12)) + 0.5) * 2.0**-52
        return out


class Generator:
    """Uniforms of one generator, in the order asked for."""

    def __init__(self, seed: int, first: int) -> None:
        self._rng = np.random.default_rng([seed, first])

    def __call__(
        self, purpose: int, who: IntArray, position: int, when: IntArray, lane: IntArray
    ) -> FloatArray:
        """Return a uniform for each replica in ``who`` ``(n,)``."""
        out: FloatArray = self._rng.random(len(who))
        return out


def groups(labels: IntArray, size: int) -> Iterator[tuple[int, IntArray]]:
    """Yield each label and the places that have it."""
    small = labels.astype(np.uint16) if size < 2**16 else labels  # sorts faster
    order = np.argsort(small, kind="stable")
    ends = np.cumsum(np.bincount(labels, minlength=size))
    start = 0
    for label, end in enumerate(ends.tolist()):
        if end > start:
            yield label, order[start:end]
        start = end


def distinct(numbers: IntArray) -> tuple[IntArray, IntArray]:
    """Return the distinct numbers in order, and for each number which of them it is.

    Examples
    --------
    >>> distinct(np.array([7, 3, 7]))
    (array([3, 7]), array([1, 0, 1]))
    """
    size = int(numbers.max(initial=-1)) + 1
    if size > 4 * len(numbers) + 2**16:
        return np.unique(numbers, return_inverse=True)
    there = np.zeros(size, dtype=bool)  # without sorting
    there[numbers] = True
    return np.flatnonzero(there), (np.cumsum(there) - 1)[numbers]


def inverted(distributions: FloatArray, row: IntArray, u: FloatArray) -> IntArray:
    """Return the tokens that :func:`specviz.core.draws.invert` gives, all at once.

    Parameters
    ----------
    distributions : FloatArray
        ``(m, vocab)``.
    row : IntArray
        ``(n,)`` which distribution each token is drawn from.
    u : FloatArray
        ``(n,)`` the uniforms.

    Examples
    --------
    >>> inverted(np.array([[0.5, 0.5], [0.9, 0.1]]), np.array([0, 1]), np.array([0.7, 0.7]))
    array([1, 0])
    """
    out = np.empty(len(row), dtype=np.int64)
    often = np.bincount(row, minlength=len(distributions)) > FEW
    many, rare = np.flatnonzero(often[row]), np.flatnonzero(~often[row])
    for label, some in groups(row[many], len(distributions)):
        cdf = np.cumsum(distributions[label])
        out[many[some]] = np.searchsorted(cdf, u[many[some]] * cdf[-1], side="right")
        last = np.searchsorted(cdf, cdf[-1], side="left")
        out[many[some]] = np.minimum(out[many[some]], last)
    for start in range(0, len(rare), ROWS):
        some = rare[start : start + ROWS]
        cdf = np.cumsum(distributions[row[some]], axis=1)  # (rows, vocab)
        mass = cdf[:, -1:]
        tokens = np.count_nonzero(cdf <= u[some, None] * mass, axis=1)
        out[some] = np.minimum(tokens, np.count_nonzero(cdf < mass, axis=1))
    return out
