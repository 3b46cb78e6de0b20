"""The draw u of every proposal on [0, 1], against its acceptance probability min(1, p/q)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from specviz.core.checks import whole
from specviz.core.contract import FloatArray
from specviz.core.formatting import format_number
from specviz.figures.cards import short
from specviz.figures.drawing import Look, figure, plotly_text, safe_text
from specviz.figures.escaping import word
from specviz.figures.marks import MARKS
from specviz.figures.summary import judged_by_u

if TYPE_CHECKING:
    import plotly.graph_objects as go
    from matplotlib.axes import Axes

    from specviz.core.trace.trace import Trace
    from specviz.core.trace.views import Node

ROWS = 14
"""How many proposals are drawn at most."""


@dataclass(frozen=True)
class DrawsData:
    """What the figure shows, one entry per proposal.

    ``acceptance`` is the probability that it is accepted, ``u`` its draw. ``left_out`` counts the
    proposals of the chosen rounds that have no row.
    """

    labels: list[str]
    rounds: list[int]
    acceptance: FloatArray
    u: FloatArray
    verdicts: list[str]
    rule: str
    left_out: int

    @property
    def title(self) -> str:
        """Which rounds, and what decides."""
        first, last = self.rounds[0], self.rounds[-1]
        where = f"round {first}" if first == last else f"rounds {first}–{last}"
        test = "min(1, p/q)" if self.rule == "rejection" else "its acceptance probability"
        more = f"; {self.left_out:,} more proposals not drawn" if self.left_out else ""
        return f"{where}: accepted if the draw u lies below {test}{more}"

    @property
    def alt(self) -> str:
        """Every row in words."""
        rows = zip(self.labels, self.acceptance, self.u, self.verdicts, strict=True)
        return "; ".join(
            f"{label}: {format_number(a)} against u = {format_number(u)}, {verdict}"
            for label, a, u, verdict in rows
        )


def _draw(data: DrawsData, ax: Axes | None, look: Look) -> Axes:
    ax, colours, points = look.axes(ax), look.colours, look.points
    rows = np.arange(len(data.labels))
    ax.barh(rows, data.acceptance, 0.62, color=colours.accepted_tint, edgecolor=colours.accepted,
            label="accept")  # fmt: skip
    ax.barh(rows, 1 - data.acceptance, 0.62, left=data.acceptance, color=colours.rejected_tint,
            edgecolor=colours.rejected, hatch="////", linewidth=0.5, label="reject")  # fmt: skip
    for verdict, marker, colour in (
        ("accepted", "o", colours.accepted_ink),
        ("rejected", "X", colours.rejected_ink),
        ("never examined", "d", colours.muted),
    ):
        at = np.array([one == verdict for one in data.verdicts])
        if at.any():
            hollow = colours.background if verdict == "never examined" else colour
            ax.plot(data.u[at], rows[at], marker, color=colour, markersize=0.85 * points,
                    markerfacecolor=hollow, markeredgecolor=colour, clip_on=False, zorder=4,
                    label=f"u, {MARKS[verdict].glyph} {verdict}")  # fmt: skip
    for i in range(1, len(rows)):
        if data.rounds[i] != data.rounds[i - 1]:
            ax.axhline(i - 0.5, color=colours.line, linewidth=0.08 * points)
    ax.set_yticks(rows, [safe_text(short(one, 12 * points, points)) for one in data.labels])
    ax.set(xlim=(0, 1), ylim=(len(rows) - 0.5, -0.5))
    look.frame(ax, "u, and the probability of acceptance")
    look.legend(ax, 3)
    look.title(ax, data.title)
    return ax


def _plotly(data: DrawsData, look: Look) -> go.Figure:
    import plotly.graph_objects as go

    colours = look.colours
    rows = list(range(len(data.labels)))
    labels = [plotly_text(one) for one in data.labels]
    drawn = go.Figure()
    drawn.add_bar(y=rows, x=data.acceptance, orientation="h", name="accept",
                  marker={"color": colours.accepted_tint, "line": {"color": colours.accepted}},
                  hovertemplate="accepted with probability %{x:.4f}<extra></extra>")  # fmt: skip
    drawn.add_bar(y=rows, x=1 - data.acceptance, orientation="h", name="reject",
                  marker={"color": colours.rejected_tint, "line": {"color": colours.rejected}},
                  hovertemplate="rejected with probability %{x:.4f}<extra></extra>")  # fmt: skip
    look_up = {
        "accepted": ("circle", colours.accepted_ink),
        "rejected": ("x", colours.rejected_ink),
    }
    symbols = [look_up.get(one, ("diamond-open", colours.muted)) for one in data.verdicts]
    drawn.add_scatter(
        y=rows, x=data.u, mode="markers", name="draw u", text=data.verdicts,
        marker={"symbol": [s for s, _ in symbols], "color": [c for _, c in symbols],
                "size": look.points},
        hovertemplate="u = %{x:.4f}: %{text}<extra></extra>",
    )  # fmt: skip
    return look.plotly(
        drawn, title=plotly_text(data.title), barmode="stack", xaxis={"range": [0, 1]},
        yaxis={"tickvals": rows, "ticktext": labels, "autorange": "reversed"},
    )  # fmt: skip


@figure(_draw, _plotly)
def draws(trace: Trace, *, round: int | None = None, rounds: int = 1) -> DrawsData:
    """Draw each proposal's draw u on [0, 1] against its acceptance probability.

    Parameters
    ----------
    trace : Trace
        The run.
    round : int, optional
        The first round drawn, counted from 0; by default the first with a rejection, or else the
        first with a proposal.
    rounds : int
        How many rounds with proposals, up to :data:`ROWS` rows.

    Returns
    -------
    matplotlib Axes, or plotly Figure; ``draws.data`` returns :class:`DrawsData`

    Raises
    ------
    ValueError
        If there is no such round, it proposed nothing, or the rule compares no u.

    Examples
    --------
    >>> draws(trace, rounds=3)  # doctest: +SKIP
    """
    whole("rounds", rounds, 1)
    rule = str(trace.meta.get("rule"))
    if not judged_by_u(trace):
        raise ValueError(
            f"the rule {rule!r} compares no draw u with a probability: nothing to draw"
        )
    start = chosen_round(trace, round)
    nodes: list[tuple[int, Node]] = []
    for i in range(start, len(trace)):
        if rounds == 0 or len(nodes) > ROWS:
            break
        if trace.round_table["nodes"][i]:
            nodes += [(i, node) for node in trace.rounds[i].nodes]
            rounds -= 1
    shown = nodes[:ROWS]
    return DrawsData(
        labels=[word(node.text) for _, node in shown],
        rounds=[i for i, _ in shown],
        acceptance=np.array([min(1.0, max(0.0, node.acceptance)) for _, node in shown]),
        u=np.array([node.u for _, node in shown]),
        verdicts=[node.verdict for _, node in shown],
        rule=rule,
        left_out=len(nodes) - len(shown),
    )


def chosen_round(trace: Trace, round: int | None, *, proposals: bool = True) -> int:
    """Return which round is drawn: the one asked for, or the first that shows most.

    That is the first with a rejection after something was accepted, else with a rejection, else
    with a proposal.

    Raises
    ------
    ValueError
        If there is none, or the one asked for proposed nothing.
    """
    sizes = trace.round_table["nodes"].astype(np.int64)
    if not len(trace):
        raise ValueError("trace has no round yet")
    if round is not None:
        at = whole("round", round, -len(trace), len(trace) - 1) % len(trace)
        if proposals and not sizes[at]:
            raise ValueError(f"round {at} proposed nothing: choose a round with proposals")
        return int(at)
    if proposals and not sizes.any():
        raise ValueError("trace has no proposals: nothing was drafted in it")
    of_round = np.repeat(np.arange(len(trace)), sizes)
    verdict = trace.node_table["verdict"]
    refused = np.bincount(of_round[verdict == 2], minlength=len(trace)) > 0
    kept = np.bincount(of_round[verdict == 1], minlength=len(trace)) > 0
    for which in (refused & kept, refused, sizes > 0):
        if which.any():
            return int(np.argmax(which))
    return 0
