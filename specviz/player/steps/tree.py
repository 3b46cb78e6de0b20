"""Where a round's proposals stand when they are drawn as a tree.

All of a small tree is drawn; of a large one the path to the proposal in question, the siblings
along it and what may come next. The rest is counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from specviz.player.steps.run import NONE, Array, Run

if TYPE_CHECKING:
    from specviz.player.steps.frames import Frame

MOST = 24
"""Largest number of proposals drawn."""
LEVELS, LEAST = 10, 2
"""Levels of a path that are drawn, and the fewest siblings at each."""


@dataclass(frozen=True)
class Places:
    """Level and row of the proposals drawn, and of the root: the text so far, or a proposal."""

    root: int
    nodes: list[int]
    x: dict[int, int]
    y: dict[int, float]
    folds: list[tuple[int, int, float]]
    """Below which proposal (or the root) how many are not drawn, and in which row they are told."""
    leaves: int
    levels: int


def places(run: Run, frame: Frame) -> Places:
    """Return where each proposal is drawn at a frame of a run with trees."""
    found = run.header["trees"][int(run.step["tree"][frame.step])]
    drawn = {int(i): (up, x, y) for i, up, x, y in found["nodes"]}
    root = int(found["root"])
    return Places(
        root,
        sorted(drawn),
        {root: 0} | {i: x for i, (_, x, _) in drawn.items()},
        {root: found["at"]} | {i: y for i, (_, _, y) in drawn.items()},
        [(parent, more, row) for parent, more, row in found["folds"]],
        found["leaves"],
        found["levels"],
    )


def windows(run: Run, of: Array, phase: Array, node: Array) -> tuple[list[dict[str, Any]], Array]:
    """Return the different pictures of a run's trees, and which of them each step shows.

    Parameters
    ----------
    run : Run
        With trees; without any there is nothing to draw.
    of, phase, node : array
        ``(steps,)`` round, phase and proposal (-1 for none) of each step.
    """
    at = np.zeros(len(of), dtype=np.int64)
    if not run.is_tree:
        return [], at
    found: dict[tuple[tuple[int, ...], int], int] = {}
    made: list[dict[str, Any]] = []
    last: dict[int, int] = {}
    for step, (r, kind, i) in enumerate(
        zip(of.tolist(), phase.tolist(), node.tolist(), strict=True)
    ):
        parents = tuple(run.node["parent"][run.start[r] : run.start[r + 1]].tolist())
        about = -1
        if len(parents) > MOST:
            if r not in last:
                last[r] = _last_judged(run, r)
            about = i if i >= 0 else last[r] if kind > 2 else -1
        key = parents, about
        if key not in found:
            found[key] = len(made)
            made.append(_laid_out(*_window(parents, about)))
        at[step] = found[key]
    return made, at


def _last_judged(run: Run, r: int) -> int:
    """Return the deepest judged proposal of a round, the last of several; -1 for none."""
    rows = np.flatnonzero(run.node["verdict"][run.start[r] : run.start[r + 1]])
    return max(rows.tolist(), key=lambda i: (int(run.depth[run.start[r] + i]), i), default=-1)


def _laid_out(root: int, under: dict[int, tuple[list[int], int]]) -> dict[str, Any]:
    """Return where to draw each proposal: leaves below each other, parents beside their middle."""
    x: dict[int, int] = {root: 0}
    y: dict[int, float] = {}
    nodes: list[int] = []
    up: dict[int, int] = {}
    folds: list[list[float]] = []
    leaves, levels = 0, 0
    stack = [(root, 0)]
    while stack:  # a parent is placed when all of its children are
        at, k = stack.pop()
        shown, more = under[at]
        if k < len(shown):
            stack += [(at, k + 1), (shown[k], 0)]
            x[shown[k]] = x[at] + 1
            up[shown[k]] = at
            nodes.append(shown[k])
            continue
        rows = [y[i] for i in shown]
        if more:
            folds.append([at, more, leaves])
            rows.append(float(leaves))
            leaves += 1
        levels = max(levels, x[at] + (1 if more else 0))
        if not rows:
            rows.append(float(leaves))
            leaves += 1
        y[at] = (rows[0] + rows[-1]) / 2
    return {
        "root": root,
        "at": y[root],
        "nodes": [[i, up[i], x[i], y[i]] for i in sorted(nodes)],
        "folds": folds,
        "leaves": max(1, leaves),
        "levels": levels,
    }


def _window(parents: tuple[int, ...], about: int) -> tuple[int, dict[int, tuple[list[int], int]]]:
    """Return the root, and of each proposal drawn its children drawn and how many are not."""
    n = len(parents)
    children: list[list[int]] = [[] for _ in range(n + 1)]
    for i, parent in enumerate(parents):
        children[n if parent == NONE else parent].append(i)
    if n <= MOST:
        return n, {i: (own, 0) for i, own in enumerate(children)}
    below = [1] * n  # a proposal and all under it
    for i in reversed(range(n)):
        if parents[i] != NONE:
            below[parents[i]] += below[i]
    path: list[int] = []
    while about not in (-1, NONE):
        path.insert(0, about)
        about = parents[about]
    cut = max(0, len(path) - LEVELS)
    root = path[cut - 1] if cut else n
    depth: list[int] = []
    for parent in parents:
        depth.append(0 if parent == NONE else depth[parent] + 1)
    levels = max(depth) + 1
    each = max(LEAST, MOST // min(levels, LEVELS))
    under: dict[int, tuple[list[int], int]] = {}
    for k, parent in enumerate([root, *path[cut:]]):
        own = children[parent]
        on = own.index(path[cut + k]) if cut + k < len(path) else 0
        # page by page, so that a step to the next sibling seldom moves anything
        start = min(on // each * each, max(0, len(own) - each))
        shown = own[start : start + each]
        under[parent] = shown, sum(below[i] for i in own if i not in shown)
    for shown, _ in list(under.values()):
        for i in shown:
            under.setdefault(i, ([], below[i] - 1))
    return root, under
