"""Where a round's proposals stand when they are drawn as a tree."""

from __future__ import annotations

from dataclasses import dataclass

from specviz.player.columns import NONE
from specviz.player.run import Run


@dataclass(frozen=True)
class Places:
    """Level and row of each proposal; the last entry is the root, which is the text so far."""

    x: list[int]
    y: list[float]
    leaves: int
    levels: int


def places(run: Run, round: int) -> Places:
    """Return where to draw each proposal: leaves below each other, parents beside their middle."""
    first, n = int(run.start[round]), int(run.round["nodes"][round])
    parents = [int(p) for p in run.node["parent"][first : first + n]]
    children: list[list[int]] = [[] for _ in range(n + 1)]
    for i, parent in enumerate(parents):
        children[n if parent == NONE else parent].append(i)
    x, y = [0] * (n + 1), [0.0] * (n + 1)
    leaves = 0
    stack, order = [n], []
    while stack:  # children in the order in which they were drawn, parents after them
        at = stack.pop()
        order.append(at)
        stack.extend(reversed(children[at]))
    for at in order:
        x[at] = 0 if at == n else int(run.depth[first + at]) + 1
        if not children[at]:
            y[at] = float(leaves)
            leaves += 1
    for at in reversed(order):
        if children[at]:
            y[at] = (y[children[at][0]] + y[children[at][-1]]) / 2
    return Places(x, y, max(1, leaves), max(x))
