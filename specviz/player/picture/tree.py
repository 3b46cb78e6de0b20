"""Where a round's proposals stand when they are drawn as a tree; the twin of ``tree_window.js``.

All of a small tree is drawn; of a large one the path to the proposal in question, the siblings
along it and what may come next. The rest is counted.
"""

from __future__ import annotations

from dataclasses import dataclass

from specviz.player.frames import Frame, path_to
from specviz.player.projection import NONE
from specviz.player.run import Run

MOST = 24
"""Largest number of proposals drawn."""
LEVELS, LEAST = 10, 2
"""Levels of a path that are drawn, and the fewest siblings at each."""
JUDGED = ("accepted", "rejected")


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
    """Return where to draw each proposal: leaves below each other, parents beside their middle."""
    root, under = _window(run, frame)
    x: dict[int, int] = {root: 0}
    y: dict[int, float] = {}
    nodes: list[int] = []
    folds: list[tuple[int, int, float]] = []
    leaves, levels = 0, 0
    stack = [(root, 0)]
    while stack:  # a parent is placed when all of its children are
        at, k = stack.pop()
        shown, more = under[at]
        if k < len(shown):
            stack += [(at, k + 1), (shown[k], 0)]
            x[shown[k]] = x[at] + 1
            nodes.append(shown[k])
            continue
        rows = [y[i] for i in shown]
        if more:
            folds.append((at, more, float(leaves)))
            rows.append(float(leaves))
            leaves += 1
        levels = max(levels, x[at] + (1 if more else 0))
        if not rows:
            rows.append(float(leaves))
            leaves += 1
        y[at] = (rows[0] + rows[-1]) / 2
    return Places(root, sorted(nodes), x, y, folds, max(1, leaves), levels)


def _about(run: Run, frame: Frame) -> int:
    """Return the proposal in question, or the last one judged; -1 if none was."""
    if frame.node >= 0:
        return frame.node
    judged = [i for i, status in enumerate(frame.status) if status in JUDGED]
    return max(judged, key=lambda i: (int(run.depth[frame.first + i]), i), default=-1)


def _window(run: Run, frame: Frame) -> tuple[int, dict[int, tuple[list[int], int]]]:
    """Return the root, and of each proposal drawn its children drawn and how many are not."""
    first, n = frame.first, len(frame.status)
    parents = [int(p) for p in run.node["parent"][first : first + n]]
    children: list[list[int]] = [[] for _ in range(n + 1)]
    for i, parent in enumerate(parents):
        children[n if parent == NONE else parent].append(i)
    if n <= MOST:
        return n, {i: (own, 0) for i, own in enumerate(children)}
    below = [1] * n  # a proposal and all under it
    for i in reversed(range(n)):
        if parents[i] != NONE:
            below[parents[i]] += below[i]
    node = _about(run, frame)
    path = path_to(run, frame, node) if node >= 0 else []
    cut = max(0, len(path) - LEVELS)
    root = path[cut - 1] if cut else n
    levels = int(run.depth[first : first + n].max()) + 1
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
