"""Counting proposals by their depth: chains and trees alike, whole columns at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from specviz.core.contract import IntArray


def reached(lengths: IntArray) -> IntArray:
    """Return how many of the lengths exceed each depth 0, 1, …, up to the largest."""
    at_least = np.bincount(lengths)[::-1].cumsum()[::-1]  # at_least[i]: lengths >= i
    return at_least[1:].astype(np.int64)


def depths(parents: Any, counts: IntArray) -> tuple[IntArray, IntArray]:
    """Return each node's depth within its round, and its parent's row in the table (or -1)."""
    starts = np.repeat(np.cumsum(counts) - counts, counts)  # (nodes,)
    parent = np.where(parents >= 0, parents + starts, -1).astype(np.int64)
    # pointer doubling: after i steps `up` is the ancestor 2**i levels above; row n is the root
    root = len(parent)
    up = np.append(np.where(parent >= 0, parent, root), root)
    levels = np.append(np.ones(root, dtype=np.int64), 0)
    while np.any(up != root):
        levels += levels[up]
        up = up[up]
    return levels[:-1] - 1, parent


def deepest(of_round: IntArray, depth: IntArray, passes: int) -> IntArray:
    """Return how many levels of proposals each round has, ``(rounds,)``."""
    levels = np.zeros(passes, dtype=np.int64)
    np.maximum.at(levels, of_round, depth + 1)
    return levels


def first_siblings(of_round: IntArray, parent: IntArray) -> NDArray[np.bool_]:
    """Return which nodes are the first candidate at their place in the text, ``(nodes,)``."""
    place = np.where(parent >= 0, parent, -1 - of_round)
    first = np.zeros(len(parent), dtype=bool)
    first[np.unique(place, return_index=True)[1]] = True
    return first


def by_depth(lengths: IntArray, heights: IntArray) -> IntArray:
    """Return how many rounds accepted a proposal at each depth that was proposed."""
    out = np.zeros(int(heights.max(initial=0)), dtype=np.int64)
    accepted = reached(lengths)
    out[: len(accepted)] = accepted
    return out
