"""The shape of a token tree that is fixed before any token is: which rank follows which.

A node is named by its ranks from the root: ``(0,)`` is the first choice for the next token,
``(0, 2)`` the third choice after it. Nodes are kept level by level, siblings by rank.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from specviz.core.contract import ROOT
from specviz.decoding.hf.cache import refuse

Path = tuple[int, ...]

MOST_NODES = 1024


@dataclass(frozen=True)
class Topology:
    """A fixed tree of ranks; see :func:`checked_topology` for what can be made into one.

    Parameters
    ----------
    paths : tuple of tuple of int
        Every node, level by level, siblings by rank.

    Examples
    --------
    >>> tree = checked_topology((2, 1))
    >>> tree.paths, tree.parent, tree.depth
    (((0,), (1,), (0, 0), (1, 0)), (-1, -1, 0, 1), 2)
    """

    paths: tuple[Path, ...]

    def __len__(self) -> int:
        return len(self.paths)

    @property
    def depth(self) -> int:
        """The number of levels."""
        return len(self.paths[-1])

    @cached_property
    def parent(self) -> tuple[int, ...]:
        """Index of each node's parent, -1 for those that follow the text."""
        index = {path: i for i, path in enumerate(self.paths)}
        return tuple(index[path[:-1]] if len(path) > 1 else ROOT for path in self.paths)

    def children(self, node: int) -> list[int]:
        """Return the nodes that follow ``node`` (-1: the text), by rank."""
        return [i for i, parent in enumerate(self.parent) if parent == node]

    def level(self, depth: int) -> list[int]:
        """Return the nodes of one level; 0 is the first."""
        return [i for i, path in enumerate(self.paths) if len(path) == depth + 1]

    def cut(self, depth: int) -> Topology:
        """Return the tree without anything deeper than ``depth`` levels."""
        return Topology(tuple(path for path in self.paths if len(path) <= depth))


def checked_topology(tree: Any, name: str = "tree") -> Topology:
    """Return the topology that a person typed.

    Parameters
    ----------
    tree : sequence of int, sequence of paths, or Topology
        ``(4, 2, 1)``: every node of level d has that many children. ``[(0,), (1,), (0, 0)]``:
        the nodes themselves, in any order.
    name : str
        What an error calls it.

    Raises
    ------
    TypeError, ValueError
        In one sentence, if it is empty, has a node without its parent or elder sibling, or is
        larger than 1024 nodes.
    """
    if isinstance(tree, Topology):
        return tree
    wanted = (
        f"{name} must be children per level such as (4, 2, 1), or nodes such as "
        f"[(0,), (1,), (0, 0)]"
    )
    if isinstance(tree, (str, bytes)) or not isinstance(tree, Iterable):
        raise TypeError(f"{wanted}, got {tree!r}")
    entries = list(tree)
    if not entries:
        raise ValueError(f"{wanted}; an empty one proposes nothing")
    if all(_is_whole(entry) for entry in entries):
        return _full(entries, name)
    if not all(isinstance(entry, (tuple, list)) and entry for entry in entries):
        raise TypeError(f"{wanted}, got {tree!r}")
    paths = {tuple(entry) for entry in entries}
    if not all(_is_whole(rank) and rank >= 0 for path in paths for rank in path):
        raise ValueError(f"{name}: ranks must be whole numbers >= 0, got {tree!r}")
    for path in sorted(paths):
        *above, rank = path
        if above and tuple(above) not in paths:
            raise ValueError(f"{name} has the node {path}, but not its parent {tuple(above)}")
        if rank and (*above, rank - 1) not in paths:
            before = (*above, rank - 1)
            raise ValueError(f"{name} has the node {path}, but not the sibling before it, {before}")
    _check_size(len(paths), name)
    return Topology(tuple(sorted(paths, key=lambda path: (len(path), path))))


def best_tree(shares: Sequence[Sequence[float]], nodes: int) -> Topology:
    """Return the tree of ``nodes`` nodes that is accepted furthest, levels being independent.

    A node is worth the product of the shares along its path; the most valuable nodes are taken
    (Cai et al. 2024, Medusa, section 2.3.3).

    Parameters
    ----------
    shares : sequence of sequence of float
        ``shares[d][r]``: how often the choice of rank r is accepted at level d.
    nodes : int
        How many to take, at most.

    Examples
    --------
    >>> best_tree([[0.6, 0.2], [0.5, 0.1]], 3).paths
    ((0,), (1,), (0, 0))
    """
    taken: list[Path] = []
    heap: list[tuple[float, Path]] = [(-shares[0][0], (0,))]
    while heap and len(taken) < nodes:
        value, path = heapq.heappop(heap)
        if value == 0:
            break
        taken.append(path)
        level, rank = len(path) - 1, path[-1]
        if rank + 1 < len(shares[level]) and shares[level][rank] > 0:
            later = value / shares[level][rank] * shares[level][rank + 1]
            heapq.heappush(heap, (later, (*path[:-1], rank + 1)))
        if level + 1 < len(shares):
            heapq.heappush(heap, (value * shares[level + 1][0], (*path, 0)))
    return checked_topology(taken)


def check_room(size: int, depth: int, target: Any) -> None:
    """Refuse a tree that does not fit into the target's context, in one sentence.

    Raises
    ------
    ValueError
        Naming both sizes.
    """
    context = target.context_length
    if context is not None and max(size, depth) >= context:
        raise ValueError(
            f"tree has {size} nodes on {depth} levels, but the target's context holds {context} "
            f"tokens: it must be smaller"
        )


def check_trees(target: Any) -> None:
    """Refuse a target that cannot verify a tree in one pass, in one sentence."""
    if hasattr(target, "kind"):
        refuse(target.kind, trees=True)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _check_size(size: int, name: str) -> None:
    if size > MOST_NODES:
        raise ValueError(f"{name} has {size:,} nodes; at most {MOST_NODES:,} are taken")


def _full(counts: Sequence[int], name: str) -> Topology:
    if min(counts) < 1:
        raise ValueError(f"{name} must have at least one child per level, got {tuple(counts)}")
    size, width = 0, 1
    for count in counts:
        width *= count
        size += width
        _check_size(size, name)
    level: list[Path] = [()]
    paths: list[Path] = []
    for count in counts:
        level = [(*path, rank) for path in level for rank in range(count)]
        paths += level
    return Topology(tuple(paths))


__all__ = ["Topology", "best_tree", "check_room", "check_trees", "checked_topology"]
