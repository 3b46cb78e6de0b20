"""Texts as a stream of cells, for tests that are watched while texts arrive.

An e-process needs cells that were fixed beforehand; here they are one position's tokens, or whole
texts pooled for the number of texts that will be drawn at most.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from specviz.core.contract import FloatArray, IntArray
from specviz.lossless.statistics.pooling import pool_neighbours, pool_rare
from specviz.lossless.statistics.prefix_tree import PrefixTree, walk
from specviz.lossless.statistics.sample import Sample
from specviz.lossless.statistics.tables import leaves, position_table


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
        >>> from specviz.lossless import EProcess, grow
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
