"""The proposals of a round as a tree, beside the attention mask that verifies them in one pass.

A node attends to the text, to its ancestors and to itself, and stands at its depth (SpecInfer, Miao
et al. 2023; Medusa, Cai et al. 2024). For a chain this is the ordinary causal mask.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from specviz.core.contract import FloatArray, IntArray
from specviz.core.formatting import format_number
from specviz.figures.cards import hues, short
from specviz.figures.drawing import Look, figure, plotly_text, safe_text
from specviz.figures.escaping import word
from specviz.figures.marks import MARKS
from specviz.figures.plots.draws import chosen_round

if TYPE_CHECKING:
    import plotly.graph_objects as go
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from specviz.core.trace.trace import Trace

MOST = 24
"""How many nodes are drawn at most, in the order drafted."""


@dataclass(frozen=True)
class TreeData:
    """What the figure shows of ``n`` nodes, in the order drafted.

    ``parents`` (-1: the text), ``depth`` (from 0 on) and ``row`` (where a node stands, from above)
    are ``(n,)``; ``mask`` ``(n, n)`` says which node attends to which. ``left_out`` counts nodes
    that are not drawn.
    """

    index: int
    labels: list[str]
    verdicts: list[str]
    q: FloatArray
    p: FloatArray
    parents: IntArray
    depth: IntArray
    row: FloatArray
    mask: NDArray[np.bool_]
    left_out: int

    @property
    def title(self) -> str:
        """How large, and what was kept."""
        n, deep = len(self.labels) + self.left_out, int(self.depth.max()) + 1
        kept = self.verdicts.count("accepted")
        kind = (
            "a chain" if np.all(self.parents == np.arange(-1, len(self.parents) - 1)) else "a tree"
        )
        more = f", {self.left_out} not drawn" if self.left_out else ""
        return f"Round {self.index}: {kind} of {n} proposals, {deep} deep, {kept} accepted{more}"

    @property
    def alt(self) -> str:
        """Every node with its parent."""
        return "; ".join(
            f"{i} {label} after {'the text' if up < 0 else up}: {verdict}"
            for i, (label, up, verdict) in enumerate(
                zip(self.labels, self.parents, self.verdicts, strict=True)
            )
        )


def _draw(data: TreeData, ax: Axes | None, look: Look) -> Figure:
    colours, points = look.colours, look.points
    deep, tall = int(data.depth.max()) + 1, float(data.row.max()) + 1
    height = max(1.0, (1.6 + 0.033 * points * max(tall, len(data.labels))) / look.inches[1])
    made, axes = look.panels(1, 2, width=1.5, height=height,
                             width_ratios=[max(1.3, 0.45 * deep), 1])  # fmt: skip
    tree, mask = axes[0]
    look.blank(tree, 1, 1)
    tree.set(xlim=(-1.35, deep - 0.35), ylim=(tall - 0.3, -0.8))
    share = max(1.3, 0.45 * deep) / (1 + max(1.3, 0.45 * deep))
    inches = 0.9 * look.inches[0] * (1 if look.column else share if look.fixed else 1.5 * share)
    room = 72 * inches / (deep + 1) - 1.6 * points
    root = float(np.mean(data.row[data.parents < 0]))
    for i, up in enumerate(data.parents):
        start = (-1.0, root) if up < 0 else (float(data.depth[up]), float(data.row[up]))
        kept = data.verdicts[i] == "accepted"
        tree.plot([start[0], data.depth[i]], [start[1], data.row[i]], zorder=1,
                  color=colours.accepted if kept else colours.line,
                  linewidth=(0.25 if kept else 0.14) * points)  # fmt: skip
    _label(tree, -1.0, root, "text", "the text", room, look)
    for i, verdict in enumerate(data.verdicts):
        said = f"{MARKS[verdict].glyph} {i} {data.labels[i]}"
        _label(tree, float(data.depth[i]), float(data.row[i]), verdict, said, room, look)
    n = len(data.labels)
    for i in range(n):
        fill, edge, ink = hues(data.verdicts[i], colours)
        mask.add_patch(_cell(-1, i, colours.panel, colours.line))
        for j in np.flatnonzero(data.mask[i]):
            mask.add_patch(_cell(float(j), i, fill, edge))
            mask.text(j, i, "•", ha="center", va="center", **look.words(color=ink))
        mask.text(-1, i, "•", ha="center", va="center", **look.words(color=colours.muted))
    mask.set(xlim=(-1.6, n - 0.4), ylim=(n - 0.4, -0.6), aspect="equal")
    step = max(1, n // 10)
    mask.set_yticks(range(0, n, step), [str(i) for i in range(0, n, step)])
    mask.set_xticks([-1, *range(0, n, step)], ["text", *map(str, range(0, n, step))])
    mask.tick_params(axis="x", rotation=90 if n > 8 else 0)
    look.frame(mask, "attends to", "node")
    look.heading(made, data.title)
    return made


def _cell(x: float, y: float, fill: str, edge: str) -> object:
    from matplotlib.patches import Rectangle

    return Rectangle((x - 0.5, y - 0.5), 1, 1, facecolor=fill, edgecolor=edge, linewidth=0.6)


def _label(ax: Axes, x: float, y: float, mark: str, said: str, room: float, look: Look) -> None:
    fill, edge, ink = hues(mark, look.colours)
    dashed = (0, (3, 2)) if mark in ("rejected", "never examined") else "solid"
    plate = {"boxstyle": "round,pad=0.25", "facecolor": fill, "edgecolor": edge,
             "linestyle": dashed, "linewidth": 0.1 * look.points}  # fmt: skip
    ax.text(x, y, safe_text(short(said, room, look.points)), ha="center", va="center", zorder=3,
            bbox=plate, **look.words(color=ink))  # fmt: skip


def _plotly(data: TreeData, look: Look) -> go.Figure:
    import plotly.graph_objects as go

    colours = look.colours
    drawn = go.Figure()
    root = float(np.mean(data.row[data.parents < 0]))
    for i, up in enumerate(data.parents):
        start = (-1.0, root) if up < 0 else (float(data.depth[up]), float(data.row[up]))
        drawn.add_scatter(x=[start[0], data.depth[i]], y=[start[1], data.row[i]], mode="lines",
                          line={"color": colours.line}, hoverinfo="skip")  # fmt: skip
    inks = [hues(verdict, colours) for verdict in data.verdicts]
    drawn.add_scatter(
        x=[-1, *data.depth], y=[root, *data.row], mode="markers+text", textposition="bottom center",
        text=["the text", *(plotly_text(one) for one in data.labels)],
        marker={"size": 1.6 * look.points, "color": [colours.panel, *(one[0] for one in inks)],
                "line": {"color": [colours.line, *(one[1] for one in inks)], "width": 2}},
        hovertext=["the text", *(
            f"node {i}, {verdict}<br>q {format_number(q, 3)}, p {format_number(p, 3)}"
            for i, (verdict, q, p) in enumerate(zip(data.verdicts, data.q, data.p, strict=True))
        )], hoverinfo="text",
    )  # fmt: skip
    return look.plotly(drawn, title=plotly_text(data.title), showlegend=False,
                       xaxis={"visible": False},
                       yaxis={"visible": False, "autorange": "reversed"})  # fmt: skip


@figure(_draw, _plotly, panels=True)
def tree(trace: Trace, *, round: int | None = None) -> TreeData:
    """Draw the proposals of a round as a tree, beside the attention mask that verifies them.

    Parameters
    ----------
    trace : Trace
        The run; of a chain the mask is the causal one.
    round : int, optional
        Counted from 0; by default the first in which something was accepted and then rejected.

    Returns
    -------
    matplotlib Figure, or plotly Figure; ``tree.data`` returns :class:`TreeData`

    Raises
    ------
    ValueError
        If there is no such round, or it proposed nothing.

    Examples
    --------
    >>> import specviz as sv
    >>> int(tree.data(sv.recorded("stories/tree"), round=0).mask.sum(axis=1).max())
    3
    """
    one = trace.rounds[chosen_round(trace, round)]
    nodes = one.nodes[:MOST]
    n = len(nodes)
    parents = np.array([node.parent for node in nodes])
    mask = np.eye(n, dtype=bool)
    depth = np.zeros(n, dtype=np.int64)
    for i, up in enumerate(parents):  # parents stand before their children
        if up >= 0:
            mask[i] |= mask[up]
            depth[i] = depth[up] + 1
    return TreeData(
        index=one.index, labels=[word(node.text) for node in nodes],
        verdicts=[node.verdict for node in nodes], q=np.array([node.q for node in nodes]),
        p=np.array([node.p for node in nodes]), parents=parents, depth=depth, row=_rows(parents),
        mask=mask, left_out=len(one.nodes) - n,
    )  # fmt: skip


def _rows(parents: IntArray) -> FloatArray:
    """Return where each node stands: leaves under each other, a parent amid its children."""
    rows = np.zeros(len(parents))
    free = 0

    def place(i: int) -> float:
        nonlocal free
        children = np.flatnonzero(parents == i)
        if not len(children):
            rows[i], free = free, free + 1
        else:
            rows[i] = float(np.mean([place(int(j)) for j in children]))
        return float(rows[i])

    for i in np.flatnonzero(parents < 0):
        place(int(i))
    return rows
