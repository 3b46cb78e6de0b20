"""Tables of emitted tokens: each position, adjacent pairs, the joint continuation.

A table is a list of cells with the probability that the target gives them and how often they were
seen. Texts whose context is not in the tree are a cell of their own ("elsewhere"), so every text
is counted once in every table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from specviz.core.contract import FloatArray, IntArray
from specviz.lossless.statistics.pooling import Pooling, pool_neighbours, pool_rare, sums_by_cell
from specviz.lossless.statistics.prefix_tree import PrefixTree, Walk
from specviz.lossless.statistics.sample import END, Words, word


@dataclass(frozen=True)
class Table:
    """Cells of one table.

    Parameters
    ----------
    name : str
        Which table, for example ``"position 2"``.
    distribution : FloatArray
        ``(cells,)`` the target's probability of each cell.
    counts : array
        ``(halves, cells)`` how many texts of the first and of the second half fell into it.
    n : int
        How many texts there are.
    span : int
        How many tokens of a text a cell depends on: the texts up to there differ by at least the
        total variation seen in this table.
    neighbours : bool
        Whether rare cells are pooled with their neighbours, or all into one.
    describe : callable
        Cell index → what it is, given words for the tokens.
    """

    name: str
    distribution: FloatArray
    counts: NDArray[Any]
    n: int
    span: int
    neighbours: bool
    describe: Callable[[int, Words | None], str]

    @cached_property
    def pooling(self) -> Pooling:
        """Cells pooled until each expects five; depends on ``n`` and the distribution only."""
        expected = self.n * self.distribution
        return pool_neighbours(expected) if self.neighbours else pool_rare(expected)

    @cached_property
    def pooled_distribution(self) -> FloatArray:
        """``(pooled,)`` the target's probability of each pooled cell."""
        return self.pooling.pool(self.distribution)

    def pooled_counts(self) -> FloatArray:
        """Return ``(halves, pooled)``."""
        return np.stack([self.pooling.pool(half) for half in self.counts])

    def describe_pooled(self, cell: int, words: Words | None = None) -> str:
        """Return what a pooled cell is: its one cell, or the likeliest and how many others."""
        members = np.flatnonzero(self.pooling.label == cell)
        possible = members[self.distribution[members] > 0]
        members = possible if len(possible) else members
        likeliest = self.describe(int(members[np.argmax(self.distribution[members])]), words)
        others = len(members) - 1
        return f"{likeliest} or one of {others} other cells" if others else likeliest


def all_tables(tree: PrefixTree, walks: Sequence[Walk], n: int | None = None) -> list[Table]:
    """Return every table of the battery: positions, pairs, joint.

    ``n`` is the number of texts, by default those in ``walks``; pooling depends on it.
    """
    length = tree.length
    n = sum(len(walk.cells[0]) for walk in walks) if n is None else n
    tables = [position_table(tree, walks, n, t) for t in range(length)]
    tables += [pair_table(tree, walks, n, t) for t in range(length - 1)]
    return tables if length == 1 else [*tables, joint_table(tree, walks, n)]


def _symbol(symbol: int, wide: int) -> int:
    return END if symbol == wide - 1 else symbol


def position_table(tree: PrefixTree, walks: Sequence[Walk], n: int, position: int) -> Table:
    """Return how often each token was emitted at one position, whatever came before."""
    level = tree.levels[position]
    distribution = level.mass[:-1] @ level.distribution[:-1]
    counts = np.stack(
        [
            np.append(found[:-1].sum(axis=0), found[-1].sum())
            for found in (walk.counts[position] for walk in walks)
        ]
    )

    def describe(cell: int, words: Words | None) -> str:
        if cell == len(distribution):
            return f"position {position}: any token after a rare beginning"
        return f"position {position}: {word(_symbol(cell, len(distribution)), words)}"

    whole = np.append(distribution, level.mass[-1])
    return Table(f"position {position}", whole, counts, n, position + 1, False, describe)


def pair_table(tree: PrefixTree, walks: Sequence[Walk], n: int, position: int) -> Table:
    """Return how often each pair of tokens was emitted at ``position`` and the next."""
    level = tree.levels[position + 1]
    wide = tree.vocab_size + 1
    last = np.append(level.prefixes[:, -1], wide - 1)  # the ended row comes after an end token
    firsts, group = np.unique(last, return_inverse=True)
    cells = (group[:, None] * wide + np.arange(wide)).ravel()

    def grouped(values: NDArray[Any]) -> FloatArray:
        return sums_by_cell(cells, values[:-1].ravel(), len(firsts) * wide)

    distribution = grouped(level.mass[:, None] * level.distribution)
    counts = np.stack(
        [
            np.append(grouped(found), found[-1].sum())
            for found in (walk.counts[position + 1] for walk in walks)
        ]
    )

    def describe(cell: int, words: Words | None) -> str:
        where = f"positions {position} and {position + 1}"
        if cell == len(distribution):
            return f"{where}: any pair after a rare beginning"
        first, second = divmod(cell, wide)
        a = word(_symbol(int(firsts[first]), wide), words)
        return f"{where}: {a} then {word(_symbol(second, wide), words)}"

    whole = np.append(distribution, level.mass[-1])
    name = f"positions {position}, {position + 1}"
    return Table(name, whole, counts, n, position + 2, False, describe)


def joint_table(tree: PrefixTree, walks: Sequence[Walk], n: int) -> Table:
    """Return how often each continuation was emitted, in prefix order.

    A cell is a whole text, or the beginning shared by all texts whose contexts the tree leaves out.
    """
    wide = tree.vocab_size + 1
    distribution, places = leaves(tree)
    counts = np.zeros((len(walks), len(distribution)))
    for position in range(tree.length):
        here = places[:, 0] == position
        for half, found in enumerate(walks):
            counts[half, here] = found.counts[position].ravel()[places[here, 1]]

    def describe(cell: int, words: Words | None) -> str:
        position, flat = (int(i) for i in places[cell])
        row, symbol = divmod(flat, wide)
        tokens = [*tree.levels[position].prefixes[row].tolist(), _symbol(symbol, wide)]
        more = " …" if position < tree.length - 1 and tokens[-1] not in tree.end_ids else ""
        return " ".join(word(int(token), words) for token in tokens) + more

    return Table("continuation", distribution, counts, n, tree.length, True, describe)


def leaves(tree: PrefixTree) -> tuple[FloatArray, IntArray]:
    """Return the cells of whole texts in prefix order.

    Returns
    -------
    distribution : FloatArray
        ``(cells,)`` their probabilities.
    places : IntArray
        ``(cells, 2)`` the position of a cell's last token, and its flat cell in that level.
    """
    distributions, starts, places = [], [], []
    for position, level in enumerate(tree.levels):
        rows = level.contexts
        leaf = np.flatnonzero(level.child[:rows] >= _next_rows(tree, position))
        begin = level.start[:, None] + level.mass[:rows, None] * level.below[:rows]
        distributions.append((level.mass[:rows, None] * level.distribution[:rows]).ravel()[leaf])
        starts.append(begin.ravel()[leaf])
        places.append(np.column_stack([np.full(len(leaf), position), leaf]))
    order = np.argsort(np.concatenate(starts), kind="stable")
    return np.concatenate(distributions)[order], np.concatenate(places)[order]


def _next_rows(tree: PrefixTree, position: int) -> int:
    """Return how many ordinary rows the next position has; 0 after the last."""
    return tree.levels[position + 1].contexts if position + 1 < tree.length else 0
