"""The target's distribution over short texts as a tree of contexts, and a sample walked down it.

One walk gives a count table per position, and every table test reads only those: positions, pairs,
the joint continuation. Which contexts are in the tree depends on the distribution alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from specviz.core.contract import FloatArray, IntArray
from specviz.lossless.statistics.conditional_distribution import (
    Conditional,
    ConditionalDistribution,
)
from specviz.lossless.statistics.sample import END, Sample

MAX_CONTEXTS = 4096
MAX_CELLS = 2**21
"""Largest size of a tree in numbers: a large vocabulary leaves fewer contexts."""


@dataclass(frozen=True)
class Level:
    """All contexts at one position, in prefix order; the symbols are the tokens, then END.

    Two rows come after the ``contexts`` ordinary ones: the *ended* texts, after which END has
    probability 1, and the *elsewhere* row (distribution NaN) of texts whose context is not in the
    tree.

    Parameters
    ----------
    prefixes : IntArray
        ``(contexts, position)`` the emitted tokens so far.
    mass : FloatArray
        ``(contexts + 2,)`` probability of each row.
    start : FloatArray
        ``(contexts,)`` probability of all texts before this one in prefix order.
    distribution : FloatArray
        ``(contexts + 2, vocab + 1)`` conditional distributions.
    below : FloatArray
        ``(contexts + 2, vocab + 1)`` F(x-): the conditional probability of smaller symbols.
    child : IntArray
        ``(contexts + 2, vocab + 1)`` the row at the next position.
    """

    prefixes: IntArray
    mass: FloatArray
    start: FloatArray
    distribution: FloatArray
    below: FloatArray
    child: IntArray

    @property
    def contexts(self) -> int:
        """How many ordinary rows there are; also the index of the ended row."""
        return len(self.prefixes)


@dataclass(frozen=True)
class PrefixTree:
    """The distribution of the first ``length`` tokens; contexts beyond its size are one cell each.

    Build it with :func:`grow`; pass it to the battery again and again, for it is the costly part.
    """

    levels: tuple[Level, ...]
    vocab_size: int
    end_ids: frozenset[int]

    @property
    def length(self) -> int:
        """How many tokens of each text it covers."""
        return len(self.levels)

    @property
    def contexts(self) -> int:
        """How many conditional distributions it holds."""
        return sum(level.contexts for level in self.levels)

    @property
    def covered(self) -> float:
        """Expected share of the tokens whose context is in the tree; 1 if it holds all."""
        return float(np.mean([1.0 - level.mass[-1] for level in self.levels]))

    def draw(self, n: int, seed: int | np.random.Generator) -> Sample:
        """Return what a perfect sampler emits: n independent texts from the tree's distribution.

        Raises
        ------
        ValueError
            If the tree does not hold every context.
        """
        if any(level.mass[-1] > 0 for level in self.levels):
            raise ValueError(
                "texts cannot be drawn from a tree that lacks contexts: raise max_contexts"
            )
        rng = np.random.default_rng(seed)
        tokens = np.empty((n, self.length), dtype=np.int64)
        rows = np.zeros(n, dtype=np.int64)
        for position, level in enumerate(self.levels):
            cdf = np.cumsum(level.distribution[:-1], axis=1)
            cdf = cdf / cdf[:, -1:] + np.arange(len(cdf))[:, None]  # rows one after another
            u = rng.random(n) * (1 - 1e-10) + rows
            flat = np.searchsorted(cdf.ravel(), u, side="right")
            symbol = flat - rows * (self.vocab_size + 1)
            tokens[:, position] = np.where(symbol == self.vocab_size, END, symbol)
            rows = level.child.ravel()[flat]
        return Sample(tokens, self.vocab_size, self.end_ids)


def grow(
    distribution: Conditional | ConditionalDistribution,
    vocab_size: int,
    length: int,
    *,
    end_ids: Iterable[int] = (),
    max_contexts: int = MAX_CONTEXTS,
    progress: bool = False,
) -> PrefixTree:
    """Return the tree of contexts of a conditional distribution.

    Parameters
    ----------
    distribution : callable
        ``prefix -> (vocab,)``; see
        :class:`~specviz.lossless.statistics.conditional_distribution.ConditionalDistribution`.
    vocab_size, length : int
        How many tokens there are, and how many are emitted.
    end_ids : iterable of int
        Tokens that end a text.
    max_contexts : int
        Largest number of distributions asked for, the same number per position; the most likely
        contexts are taken, and what lies beyond them is tested as one cell ("elsewhere").
    progress : bool
        Show a bar when it takes longer than two seconds.
    """
    asked = (
        distribution
        if isinstance(distribution, ConditionalDistribution)
        else ConditionalDistribution(distribution, vocab_size)
    )
    if asked.vocab_size != vocab_size:
        raise ValueError(
            f"distribution and sample must have one vocabulary, got {asked.vocab_size} and "
            f"{vocab_size} tokens"
        )
    ends = sorted(end_ids)
    room = max(1, min(max_contexts, MAX_CELLS // (vocab_size + 1)) // length)
    prefixes = np.zeros((1, 0), dtype=np.int64)
    mass, start = np.array([1.0, 0.0, 0.0]), np.zeros(1)
    levels: list[Level] = []
    for position in range(length):
        rows = _distributions(asked, prefixes, progress, position)
        below = np.cumsum(rows, axis=1) - rows
        below[:-2] = np.maximum(below[:-2], 0.0)
        flow = mass[: len(prefixes), None] * rows[:-2]  # (contexts, vocab + 1)
        if position == length - 1:
            none = np.zeros(rows.shape, dtype=np.int64)
            levels.append(Level(prefixes, mass, start, rows, below, none))
            break
        child, taken = _children(flow, ends, room)
        levels.append(Level(prefixes, mass, start, rows, below, child))
        parent, symbol = np.divmod(taken, vocab_size + 1)
        prefixes = np.column_stack([prefixes[parent], symbol])
        start = start[parent] + mass[parent] * below[parent, symbol]
        ended = float(mass[-2]) + float(flow[:, ends].sum())
        left = 1.0 - ended - float(flow.ravel()[taken].sum())
        complete = len(taken) == np.count_nonzero(np.delete(flow, ends, axis=1))
        elsewhere = 0.0 if complete and mass[-1] == 0 else max(0.0, left)
        mass = np.concatenate([flow.ravel()[taken], [ended, elsewhere]])
    return PrefixTree(tuple(levels), vocab_size, frozenset(ends))


def _distributions(
    distribution: ConditionalDistribution, prefixes: IntArray, progress: bool, position: int
) -> FloatArray:
    """Return ``(contexts + 2, vocab + 1)``: distributions, the ended row, the row elsewhere."""
    from tqdm.auto import tqdm

    rows = np.zeros((len(prefixes) + 2, distribution.vocab_size + 1))
    chunks = [prefixes[i : i + 64] for i in range(0, len(prefixes), 64)]
    bar = tqdm(
        chunks, desc=f"target's distributions at position {position}", disable=not progress,
        delay=2,
        leave=False,
    )  # fmt: skip
    done = 0
    for chunk in bar:
        rows[done : done + len(chunk), :-1] = distribution.rows(
            [tuple(row) for row in chunk.tolist()]
        )
        done += len(chunk)
    rows[-2, -1] = 1.0
    rows[-1] = np.nan
    return rows


def _children(flow: FloatArray, ends: list[int], room: int) -> tuple[IntArray, IntArray]:
    """Return where each cell leads, and the flat cells that get a row of their own."""
    open_ = flow.copy()
    open_[:, ends] = 0.0
    open_[:, -1] = 0.0
    taken = np.flatnonzero(open_)
    if len(taken) > room:
        order = np.argsort(-open_.ravel()[taken], kind="stable")
        taken = np.sort(taken[order[:room]])
    ended, elsewhere = len(taken), len(taken) + 1
    child = np.full((len(flow) + 2, flow.shape[1]), elsewhere, dtype=np.int64)
    child.ravel()[taken] = np.arange(len(taken))
    for token in ends:
        child[:-2, token] = np.where(flow[:, token] > 0, ended, elsewhere)
    child[-2, -1] = ended
    return child, taken


@dataclass(frozen=True)
class Walk:
    """A sample walked down a tree.

    Parameters
    ----------
    cells : list of IntArray
        Per position ``(n,)`` the flat cell ``row * (vocab + 1) + symbol`` of each text.
    counts : list of arrays
        Per position ``(contexts + 2, vocab + 1)`` how many texts took each cell.
    """

    cells: list[IntArray]
    counts: list[NDArray[Any]]


def walk(tree: PrefixTree, tokens: Any) -> Walk:
    """Return which cells the texts ``tokens`` ``(n, length)`` take."""
    wide = tree.vocab_size + 1
    row = np.zeros(len(tokens), dtype=np.int64)
    cells: list[IntArray] = []
    counts: list[NDArray[Any]] = []
    for position, level in enumerate(tree.levels):
        symbol = tokens[:, position]
        cell = row * wide + symbol
        cell += wide * (symbol < 0)  # END (-1) is the last symbol of the row
        cells.append(cell)
        counts.append(
            np.bincount(cell, minlength=level.distribution.size).reshape(level.distribution.shape)
        )
        row = level.child.ravel()[cell]
    return Walk(cells, counts)
