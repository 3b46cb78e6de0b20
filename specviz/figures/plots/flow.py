"""Where one token's probability goes: from draft q by accept or reject to target p.

Leviathan et al. (2023), appendix A.1: a token is emitted with probability min(p, q) because it was
proposed and accepted, plus max(0, p − q) from the residual after a rejection; together p. What is
rejected, sum max(0, q − p), is exactly what the residual has to give: both are TV(p, q).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from specviz.core.contract import FloatArray
from specviz.core.formatting import format_number
from specviz.figures.cards import short
from specviz.figures.drawing import Look, figure, plotly_text, safe_text
from specviz.figures.plots.overlap import OverlapData, overlap

if TYPE_CHECKING:
    import plotly.graph_objects as go
    from matplotlib.axes import Axes

    from specviz.core.trace.trace import Trace

TOKENS = 6
"""How many tokens have a band of their own; the others share one."""
GAP = 0.07
"""Between two tokens' bars: room for a label, however small the bar."""
LEFT, MIDDLE, RIGHT, BAR = 0.0, 0.5, 1.0, 0.025


class FlowData(OverlapData):
    """The numbers of :class:`specviz.figures.plots.overlap.OverlapData`, for the likeliest tokens.

    A token's flow is ``shared`` (accepted), ``q - shared`` (rejected) and ``p - shared`` (given
    again by the residual).
    """

    @property
    def alt(self) -> str:
        """What the bands say."""
        return (
            f"{format_number(self.overlap, 3)} of the probability is accepted, "
            f"{format_number(1 - self.overlap, 3)} is rejected and drawn again from the residual"
        )


def _draw(data: FlowData, ax: Axes | None, look: Look) -> Axes:
    ax, colours, points = look.axes(ax), look.colours, look.points
    tall = 1 + GAP * (len(data.labels) - 1)
    look.blank(ax, 1, tall)
    ax.set(xlim=(-0.3, 1.3), ylim=(tall + 0.02, -0.17))
    tops_q, tops_p = _tops(data.q), _tops(data.p)
    lost, given = data.q - data.shared, data.p - data.shared
    middle = (tall - float(lost.sum())) / 2  # where the rejected part passes
    entered, left = middle, middle
    for i, label in enumerate(data.labels):
        _band(ax, (LEFT + BAR, RIGHT - BAR), (tops_q[i], tops_p[i]), data.shared[i],
              facecolor=colours.accepted, alpha=0.35)  # fmt: skip
        for here, share, ends, entry in (
            (LEFT + BAR, lost, (tops_q[i] + data.shared[i], entered), True),
            (RIGHT - BAR, given, (left, tops_p[i] + data.shared[i]), False),
        ):
            xs = (here, MIDDLE) if entry else (MIDDLE, here)
            tint, edge = (colours.rejected_tint, colours.rejected) if entry else (
                colours.p_tint, colours.p)  # fmt: skip
            _band(ax, xs, ends, share[i], facecolor=tint, edgecolor=edge, hatch="////",
                  linewidth=0.4)  # fmt: skip
        entered, left = entered + float(lost[i]), left + float(given[i])
        bold = "bold" if i == data.proposed else "normal"
        for x, tops, values, colour, ha in (
            (LEFT, tops_q, data.q, colours.q, "right"),
            (RIGHT, tops_p, data.p, colours.p, "left"),
        ):
            ax.bar(x, values[i], 2 * BAR, bottom=tops[i], color=colour, linewidth=0)
            said = f"{short(label, 9 * points, points)}  {format_number(float(values[i]))}"
            away = -1.6 * BAR if ha == "right" else 1.6 * BAR
            ax.text(x + away, tops[i] + values[i] / 2, safe_text(said), ha=ha, va="center",
                    **look.words(fontweight=bold))  # fmt: skip
    how: Any = {"ha": "center", "va": "bottom"}
    ax.text(LEFT, -0.03, "draft q", **how, **look.words(color=colours.q_ink, fontweight="bold"))
    ax.text(RIGHT, -0.03, "target p", **how, **look.words(color=colours.p_ink, fontweight="bold"))
    plate = {"facecolor": colours.background, "edgecolor": "none", "pad": 1.5, "alpha": 0.85}
    said = f"accepted: {format_number(data.overlap, 3)} = 1 − TV"
    ax.text(MIDDLE, -0.03, said, **how, **look.words(color=colours.accepted_ink))
    ax.text(MIDDLE, middle + float(lost.sum()) / 2,
            f"rejected: {format_number(1 - data.overlap, 3)}\n↓ residual", ha="center",
            va="center", bbox=plate, **look.words())  # fmt: skip
    look.title(ax, data.title, fontsize=1.1 * points)
    return ax


def _tops(values: FloatArray) -> FloatArray:
    """Return where each bar begins, from above, with a gap after each."""
    tops: FloatArray = np.cumsum(values + GAP) - values - GAP
    return tops


def _band(
    ax: Axes, xs: tuple[float, float], tops: tuple[float, float], height: float, **how: Any
) -> None:
    """Draw a band of one height that leaves and arrives level."""
    if height <= 0:
        return
    t = np.linspace(0, 1, 40)
    bend = t * t * (3 - 2 * t)
    upper = tops[0] + (tops[1] - tops[0]) * bend
    ax.fill_between(xs[0] + (xs[1] - xs[0]) * t, upper, upper + height, **{"linewidth": 0, **how})


def _plotly(data: FlowData, look: Look) -> go.Figure:
    import plotly.graph_objects as go

    colours, n = look.colours, len(data.labels)
    labels = [plotly_text(label) for label in data.labels]
    nodes = [f"{one} (q)" for one in labels] + [f"{one} (p)" for one in labels]
    nodes += [f"rejected {format_number(1 - data.overlap, 3)}"]
    lost, given = data.q - data.shared, data.p - data.shared
    links: list[tuple[int, int, float, str]] = []
    for i in range(n):
        for a, b, much, tint in (
            (i, n + i, data.shared[i], colours.accepted),
            (i, 2 * n, lost[i], colours.rejected),
            (2 * n, n + i, given[i], colours.p),
        ):
            if much > 1e-9:
                links.append((a, b, float(much), _see_through(tint)))
    source, target, value, colour = zip(*links, strict=True)
    drawn = go.Figure(
        go.Sankey(
            node={"label": nodes, "color": [colours.q] * n + [colours.p] * n + [colours.rejected]},
            link={"source": source, "target": target, "value": value, "color": colour},
            valueformat=".4f",
        )
    )
    said = f"accepted {format_number(data.overlap, 3)} = 1 − TV"
    return look.plotly(drawn, title=f"{plotly_text(data.title)}<br><b>{said}</b>")


def _see_through(colour: str) -> str:
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.4)"


@figure(_draw, _plotly)
def flow(trace: Trace, *, round: int | None = None, node: int | None = None) -> FlowData:
    """Draw where the probability of one token goes: draft q, accept or reject, residual, target p.

    Parameters
    ----------
    trace : Trace
        The run.
    round, node : int, optional
        Which proposal, both counted from 0; by default the first that was rejected.

    Returns
    -------
    matplotlib Axes, or plotly Figure

    Raises
    ------
    ValueError
        If there is no such proposal, its distributions were not recorded, or the run's rule does
        not accept with min(1, p/q).

    Examples
    --------
    >>> flow(trace, round=3)  # doctest: +SKIP
    """
    found = overlap.data(trace, round=round, node=node, tokens=TOKENS)
    if not found.by_ratio:
        raise ValueError(
            f"flow draws the rule rejection, which accepts with min(1, p/q); the run used "
            f"{trace.meta.get('rule')!r}: sv.figures.overlap shows p and q under any rule"
        )
    return FlowData(**vars(found))
