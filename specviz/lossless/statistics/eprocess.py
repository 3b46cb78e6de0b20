"""Tests that may be watched while samples arrive (e-processes), beside p-values that may not.

A p-value holds for one look. Looked at again and again it falls below any level sooner or later. An
e-process may be looked at after every sample: under the hypothesis it is a nonnegative martingale
that starts at 1, so the probability that it *ever* reaches 1/alpha is at most alpha (Ville 1939).

It needs cells that are fixed beforehand: the tokens of one position (:func:`cells_of_position`), or
whole texts, pooled for the number of texts that will be drawn at most (:func:`cells_of_texts`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special, stats

from specviz.core import checks
from specviz.core.contract import FloatArray, IntArray
from specviz.lossless.statistics.conditional_distribution import checked_distribution
from specviz.lossless.statistics.pooling import LEAST, pool_neighbours, pool_rare
from specviz.lossless.statistics.prefix_tree import PrefixTree, walk
from specviz.lossless.statistics.sample import Sample
from specviz.lossless.statistics.tables import leaves, position_table

CONCENTRATIONS = (30.0, 300.0, 3_000.0, 30_000.0)
"""How closely the alternatives gather round the distribution; the e-process averages over all."""


class EProcess:
    """Evidence against a fixed distribution, sample by sample, that may be looked at any time.

    The alternatives are Dirichlet distributions round the null, ``Dirichlet(k θ)``; the Bayes
    factor of each is a product of ``(k θ_x + count_x) / ((k + n) θ_x)`` (Lindon & Malek 2022,
    "Anytime-Valid Inference For Multinomial Count Data"), and their average is an
    e-process too. A cell of probability 0 makes it infinite at once.

    Parameters
    ----------
    distribution : array ``(cells,)``
        The hypothesis: the target's distribution of the cells (tokens at one position, or pooled
        texts).
    alpha : float
        Level; the hypothesis is rejected when ``e`` first reaches ``1 / alpha``.
    concentrations : sequence of float
        The k of the alternatives, averaged with equal weights.

    Examples
    --------
    >>> watch = EProcess([0.5, 0.5], alpha=0.01)
    >>> watch.update([0, 1, 1, 0]).shape
    (4,)
    >>> bool(watch.update([0] * 40)[-1] > 100), watch.crossed_at is not None
    (True, True)
    """

    def __init__(
        self,
        distribution: Any,
        *,
        alpha: float = 0.01,
        concentrations: Sequence[float] = CONCENTRATIONS,
    ) -> None:
        checks.number("alpha", alpha, above=0, below=1)
        if not concentrations or min(concentrations) <= 0:
            raise ValueError(f"concentrations must be positive, got {concentrations!r}")
        size = int(np.size(distribution))
        self.distribution: FloatArray = checked_distribution(distribution, size, "distribution")
        self.alpha = alpha
        self.concentrations = np.asarray(concentrations, dtype=np.float64)
        self.counts: IntArray = np.zeros(size, dtype=np.int64)
        self.n = 0
        self.crossed_at: int | None = None
        """How many samples it took to reach 1/alpha; None if it has not."""
        self.largest_log_e = 0.0
        self._log_factors = np.zeros(len(self.concentrations))

    def update(self, cells: Any) -> FloatArray:
        """Take in samples and return ``(samples,)`` the e-value after each of them.

        Raises
        ------
        ValueError
            If a cell is outside the distribution.
        """
        log_e = self.update_log(cells)
        return np.exp(np.minimum(log_e, 700.0)) if len(log_e) else log_e

    def update_log(self, cells: Any) -> FloatArray:
        """Take in samples and return ``(samples,)`` log e after each of them."""
        x = np.asarray(cells)
        if x.ndim != 1 or (x.size and x.dtype.kind not in "iu"):
            raise ValueError(f"cells must be a list of whole numbers, got {x.dtype} {x.shape}")
        if x.size == 0:
            return np.zeros(0)
        if x.min() < 0 or x.max() >= len(self.distribution):
            raise ValueError(f"cells has a value outside 0 … {len(self.distribution) - 1}")
        before = self.counts[x] + _earlier(x)  # (samples,) how often each cell was seen before
        theta = self.distribution[x]
        k = self.concentrations[:, None]  # (concentrations, 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            steps = np.log(k + before / theta) - np.log(k + self.n + np.arange(len(x)))
        steps[:, theta == 0] = np.inf
        paths = self._log_factors[:, None] + np.cumsum(steps, axis=1)
        self._log_factors = paths[:, -1]
        self.counts = self.counts + np.bincount(x, minlength=len(self.distribution))
        log_e: FloatArray = special.logsumexp(paths, axis=0) - np.log(len(self.concentrations))
        over = np.flatnonzero(log_e >= -np.log(self.alpha))
        if self.crossed_at is None and len(over):
            self.crossed_at = self.n + int(over[0]) + 1
        self.n += len(x)
        self.largest_log_e = max(self.largest_log_e, float(log_e.max()))
        return log_e

    @property
    def e(self) -> float:
        """The e-value now (at most exp(700))."""
        log_e = special.logsumexp(self._log_factors) - np.log(len(self._log_factors))
        return float(np.exp(min(float(log_e), 700.0)))

    @property
    def p(self) -> float:
        """An anytime-valid p-value: 1 / the largest e-value so far."""
        return float(np.exp(-min(self.largest_log_e, 700.0)))

    @property
    def rejected(self) -> bool:
        """Whether 1/alpha was ever reached."""
        return self.crossed_at is not None


def _earlier(x: IntArray) -> IntArray:
    """Return ``(samples,)`` how often each sample's value came before it in ``x``."""
    order = np.argsort(x, kind="stable")
    ordered = x[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    sizes = np.diff(np.r_[starts, len(x)])
    out = np.empty(len(x), dtype=np.int64)
    out[order] = np.arange(len(x)) - np.repeat(starts, sizes)
    return out


def e_values(
    cells: Any, distribution: Any, *, concentrations: Sequence[float] = CONCENTRATIONS
) -> Any:
    """Return ``(samples,)`` the e-value after each sample of a recorded stream."""
    return EProcess(distribution, concentrations=concentrations).update(cells)


def merged(log_e: Any) -> FloatArray:
    """Return log of the average of several e-processes ``(processes, samples)``: also one.

    For instance one per position of a text: however they depend on each other, their average is an
    e-process, and log e is lower by log(processes) at most.
    """
    every = np.asarray(log_e, dtype=np.float64)
    out: FloatArray = special.logsumexp(every, axis=0) - np.log(len(every))
    return out


@dataclass(frozen=True)
class Looks:
    """A chi-square p-value at every look while samples arrive.

    Parameters
    ----------
    n : IntArray
        ``(looks,)`` how many samples had arrived.
    p : FloatArray
        ``(looks,)`` the p-value, valid if this had been the only look; NaN where a cell expected
        fewer than five.
    """

    n: IntArray
    p: FloatArray

    def first_below(self, alpha: float) -> int | None:
        """Return after how many samples p first fell below alpha; None if it did not."""
        below = np.flatnonzero(self.p < alpha)
        return int(self.n[below[0]]) if len(below) else None


def peeking(cells: Any, distribution: Any, *, every: int) -> Looks:
    """Return the p-value of Pearson's chi-square at every look: no test, if one acts on the best.

    Parameters
    ----------
    cells : array ``(samples,)``
        The stream.
    distribution : array ``(cells,)``
        The hypothesis; every cell must have mass (pool the others).
    every : int
        Number of samples between looks.

    Examples
    --------
    >>> peeking([0, 1] * 50, [0.5, 0.5], every=50).p.tolist()
    [1.0, 1.0]
    """
    x = np.asarray(cells)
    p = checked_distribution(distribution, int(np.size(distribution)), "distribution")
    if every < 1:
        raise ValueError(f"every must be at least 1 sample, got {every}")
    if np.any(p == 0):
        raise ValueError(
            "distribution has a cell of probability 0: pool it before looking at p-values"
        )
    looks = len(x) // every
    block = np.arange(looks * every) // every
    counts = np.bincount(block * len(p) + x[: looks * every], minlength=looks * len(p))
    seen = np.cumsum(counts.reshape(looks, len(p)), axis=0)  # (looks, cells)
    n = every * np.arange(1, looks + 1)
    expected = n[:, None] * p
    found: Any = stats.chisquare(seen, expected, axis=1)
    values = np.where(expected.min(axis=1, initial=np.inf) >= LEAST, found.pvalue, np.nan)
    return Looks(n, values)


@dataclass(frozen=True)
class Cells:
    """Cells of texts, and their distribution under the target.

    Parameters
    ----------
    distribution : FloatArray
        ``(cells,)`` the target's probability of each: the hypothesis of an e-process.
    tree : PrefixTree
        Whose texts they are cells of.
    label : tuple of IntArray
        Per position, the cell of each flat cell of the tree's level; -1 where the text goes on.
    """

    distribution: FloatArray
    tree: PrefixTree
    label: tuple[IntArray, ...]

    def of(self, sample: Sample) -> IntArray:
        """Return ``(n,)`` the cell of each text, in the order drawn.

        Examples
        --------
        >>> from specviz.lossless import grow
        >>> tree = grow(lambda prefix: [0.5, 0.5], vocab_size=2, length=3)
        >>> cells = cells_of_texts(tree, n=1000)
        >>> watch = EProcess(cells.distribution)
        >>> watch.update(cells.of(tree.draw(1000, seed=0))).shape
        (1000,)
        """
        out = np.full(len(sample), -1, dtype=np.int64)
        steps = walk(self.tree, sample.tokens).cells
        for label, step in zip(self.label, steps, strict=True):
            out = np.where(out < 0, label[step], out)
        return out


def cells_of_texts(tree: PrefixTree, n: int) -> Cells:
    """Return whole texts as cells, pooled so that each expects five among ``n``.

    Parameters
    ----------
    tree : PrefixTree
        The target's distribution.
    n : int
        How many texts will be drawn at most; the cells must not depend on what is drawn.
    """
    distribution, places = leaves(tree)
    pooling = pool_neighbours(n * distribution)
    label = []
    for position, level in enumerate(tree.levels):
        here = places[:, 0] == position
        cells = np.full(level.distribution.size, -1, dtype=np.int64)
        cells[places[here, 1]] = pooling.label[here]
        label.append(cells)
    return Cells(pooling.pool(distribution), tree, tuple(label))


def cells_of_position(tree: PrefixTree, position: int, n: int) -> Cells:
    """Return the tokens of one position as cells, rare ones pooled so that each expects five.

    Raises
    ------
    ValueError
        If the texts have no such position.
    """
    if not 0 <= position < tree.length:
        raise ValueError(f"position must lie in 0 … {tree.length - 1}, got {position}")
    distribution = position_table(
        tree, [walk(tree, np.zeros((0, tree.length), int))], n, position
    ).distribution
    pooling = pool_rare(n * distribution)
    wide = tree.vocab_size + 1
    label = []
    for t, level in enumerate(tree.levels):
        cells = np.full(level.distribution.size, -1, dtype=np.int64)
        if t == position:
            cells = pooling.label[np.arange(level.distribution.size) % wide]
            cells[-wide:] = pooling.label[wide]  # the row of contexts that are not in the tree
        label.append(cells)
    return Cells(pooling.pool(distribution), tree, tuple(label))
