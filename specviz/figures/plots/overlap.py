"""Target p and draft q at one proposal: what both share is accepted, what p has more is residual.

Leviathan et al. (2023): a proposal is accepted with probability sum(min(p, q)) = 1 − TV(p, q) on
average (Corollary 3.6), and a rejection is corrected from norm(max(0, p − q)) (Algorithm 1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from specviz.core.checks import whole
from specviz.core.contract import FloatArray
from specviz.core.formatting import format_number
from specviz.figures.drawing import Look, figure, plotly_text, safe_text
from specviz.figures.escaping import word
from specviz.figures.marks import MARKS
from specviz.figures.theme import Palette

if TYPE_CHECKING:
    import plotly.graph_objects as go
    from matplotlib.axes import Axes

    from specviz.core.trace.trace import Trace

REJECTED = 2  # in the column "verdict"
TOKENS = 10
"""How many tokens have a row of their own by default."""


@dataclass(frozen=True)
class OverlapData:
    """What the figure shows, without drawing it.

    ``labels``, ``p``, ``q`` and ``shared`` (min(p, q)) have one entry per row, the last row being
    all other tokens together; ``proposed`` is the row of the proposal. ``by_ratio`` says that the
    run's rule accepts with min(1, p/q), so that the overlap is what it accepts on average.
    """

    labels: list[str]
    p: FloatArray
    q: FloatArray
    shared: FloatArray
    proposed: int
    overlap: float
    by_ratio: bool
    title: str


def _draw(data: OverlapData, ax: Axes | None, look: Look) -> Axes:
    ax, colours = look.axes(ax), look.colours
    rows = np.arange(len(data.labels))
    half = 0.3

    # the overlap stands behind both bars; the bars are whole distributions, their surplus is
    # hatched
    ax.barh(rows, data.shared, 0.92, color=colours.accepted, alpha=0.28, linewidth=0)
    for distribution, shift, colour, over, tint in (  # the draft proposes first, so it is on top
        (data.q, -half / 2, colours.q, colours.rejected, colours.rejected_tint),
        (data.p, half / 2, colours.p, colours.p, colours.p_tint),
    ):
        ax.barh(rows + shift, data.shared, half, color=colour, edgecolor=colour, linewidth=0.8)
        surplus = distribution - data.shared
        ax.barh(
            rows + shift,
            surplus,
            half,
            left=data.shared,
            color=tint,
            edgecolor=np.where(surplus > 0, over, "none"),
            hatch="////",
            linewidth=0.8,
        )
    ax.set_yticks(rows, [safe_text(label) for label in data.labels])
    labels: list[Any] = ax.get_yticklabels()
    labels[data.proposed].set_fontweight("bold")
    labels[-1].set_fontstyle("italic")
    ax.set_ylim(len(rows) - 0.4, -0.65)
    ax.set_xlim(0, min(1.0, 1.08 * max(float(data.p.max()), float(data.q.max()))))
    look.frame(ax, "probability of the next token")
    look.legend(ax, 3, handles=_handles(colours, data.by_ratio))
    _strip(ax, data, colours, look.points)
    look.title(ax, data.title, fontsize=1.1 * look.points, pad=3.4 * look.points)
    return ax


def _handles(colours: Palette, by_ratio: bool) -> list[Any]:
    from matplotlib.patches import Patch

    return [
        Patch(facecolor=colours.q, edgecolor=colours.q, label="draft q"),
        Patch(facecolor=colours.p, edgecolor=colours.p, label="target p"),
        Patch(
            facecolor=colours.accepted,
            alpha=0.28,
            label="overlap: accepted" if by_ratio else "overlap",
        ),
        Patch(
            facecolor=colours.p_tint, edgecolor=colours.p, hatch="////", label="residual: p above q"
        ),
        Patch(
            facecolor=colours.rejected_tint,
            edgecolor=colours.rejected,
            hatch="////",
            label="q above p: rejected" if by_ratio else "q above p",
        ),
    ]


def _strip(ax: Axes, data: OverlapData, colours: Palette, points: float) -> None:
    """Draw the unit of probability above the bars: accepted up to 1 − TV, the rest corrected."""
    strip = ax.inset_axes((0, 1.02, 1, 0.065))
    shared = min(1.0, max(0.0, data.overlap))
    strip.barh(0, shared, 1, color=colours.accepted, alpha=0.28, linewidth=0)
    strip.barh(
        0,
        1 - shared,
        1,
        left=shared,
        color=colours.p_tint,
        edgecolor=colours.p if shared < 1 else "none",
        hatch="////",
        linewidth=0.8,
    )
    strip.axvline(shared, color=colours.accepted, linewidth=2)
    strip.set(xlim=(0, 1), ylim=(-0.5, 0.5), xticks=[], yticks=[])
    strip.axis("off")
    words: Any = {"va": "center", "color": colours.text, "fontsize": points}
    plate = {"facecolor": colours.p_tint, "edgecolor": "none", "pad": 1.5}
    accepted, left = (
        f"1 − TV = {format_number(data.overlap, 3)}",
        (f"TV = {format_number(1 - data.overlap, 3)}"),
    )
    if shared > 0.6:
        said = "accepted on average" if data.by_ratio else "overlap of p and q"
        strip.text(0.015, 0, said, ha="left", **words)
    if shared > 0.3:
        strip.text(shared - 0.015, 0, accepted, ha="right", fontweight="bold", **words)
        if shared < 0.75:
            strip.text((1 + shared) / 2, 0, left, ha="center", bbox=plate, **words)
    else:
        both = f"{accepted}, {left}"
        strip.text(shared + 0.02, 0, both, ha="left", fontweight="bold", bbox=plate, **words)


def _plotly(data: OverlapData, look: Look) -> go.Figure:
    """Return the figure: bars that say their numbers when pointed at."""
    import plotly.graph_objects as go

    colours = look.colours
    rows = list(range(len(data.labels)))
    labels = [plotly_text(label) for label in data.labels]
    figure = go.Figure()
    for name, distribution, surplus, fills in (
        (
            "draft q",
            data.q,
            "q above p: rejected" if data.by_ratio else "q above p",
            (colours.q, colours.rejected, colours.rejected_tint),
        ),
        ("target p", data.p, "residual: p above q", (colours.p, colours.p, colours.p_tint)),
    ):
        solid, line, tint = fills
        for part, base, width, pattern, edge, fill in (
            (f"{name}, shared", np.zeros(len(rows)), data.shared, "", solid, solid),
            (surplus, data.shared, distribution - data.shared, "/", line, tint),
        ):
            figure.add_bar(
                name=part,
                y=rows,
                x=width,
                base=base,
                offsetgroup=name,
                orientation="h",
                customdata=[
                    [label, value] for label, value in zip(labels, distribution, strict=True)
                ],
                hovertemplate=f"%{{customdata[0]}}<br>{name} = %{{customdata[1]:.4f}}<br>"
                f"{part}: %{{x:.4f}}<extra></extra>",
                marker={
                    "color": fill,
                    "line": {"color": edge, "width": 1},
                    "pattern": {"shape": pattern, "fgcolor": edge, "fillmode": "overlay"},
                },
            )
    labels[data.proposed] = f"<b>{labels[data.proposed]}</b>"
    labels[-1] = f"<i>{labels[-1]}</i>"
    said = f"1 − TV = {format_number(data.overlap, 3)}"
    return look.plotly(
        figure,
        title=f"{plotly_text(data.title)}<br><b>{said}</b>",
        barmode="group",
        xaxis={"title": "probability of the next token"},
        yaxis={"tickvals": rows, "ticktext": labels, "autorange": "reversed"},
    )


@figure(_draw, _plotly)
def overlap(
    trace: Trace, *, round: int | None = None, node: int | None = None, tokens: int = TOKENS
) -> OverlapData:
    """Draw target p and draft q at one proposal, with their overlap and the residual.

    Parameters
    ----------
    trace : Trace
        The run.
    round, node : int, optional
        Which proposal, both counted from 0; by default the first that was rejected, where p and q
        differ most visibly, or else the one with the least overlap.
    tokens : int
        How many tokens have a row of their own; the others share one.

    Returns
    -------
    matplotlib Axes, or plotly Figure; ``overlap.data`` returns :class:`OverlapData`

    Raises
    ------
    ValueError
        If there is no such round or node, or its distributions were not recorded.

    Examples
    --------
    >>> ax = overlap(trace, round=3, node=0)  # doctest: +SKIP
    """
    whole("tokens", tokens, 1)
    round, node = _chosen(trace, round, node)
    view = trace.rounds[round]
    one = view.nodes[node]
    p, q = one.distributions.p, one.distributions.q
    if not len(p) or not (np.all(np.isfinite(p)) and np.all(np.isfinite(q))):
        raise ValueError(f"the distributions of node {node} in round {round} were not recorded")
    order = np.argsort(-np.maximum(p, q), kind="stable")[:tokens]
    (at,) = np.flatnonzero(one.distributions.ids == one.token)[:1]
    if at not in order:
        order[-1] = at
    order = order[np.argsort(-p[order], kind="stable")]
    # what has no row of its own, listed or not, is one row; its overlap is known exactly
    whole_p, whole_q = (
        p.sum() + sum(one.distributions.tail_p),
        q.sum() + sum(one.distributions.tail_q),
    )
    shared = np.minimum(p, q)[order]
    rest = [whole_p - p[order].sum(), whole_q - q[order].sum(), one.overlap - shared.sum()]
    rest = [max(0.0, float(value)) for value in rest]
    mark = MARKS[one.verdict]
    return OverlapData(
        labels=[word(one.distributions.texts[i]) for i in order] + ["all others"],
        p=np.append(p[order], rest[0]),
        q=np.append(q[order], rest[1]),
        shared=np.append(shared, min(rest)),
        proposed=int(np.flatnonzero(order == at)[0]),
        overlap=one.overlap,
        by_ratio=trace.meta.get("rule") == "rejection",
        title=f"round {round}, proposal {node}: “{word(one.text)}” {mark.glyph} {mark.name}",
    )


def _chosen(trace: Trace, round: int | None, node: int | None) -> tuple[int, int]:
    """Return which proposal is drawn, with what was left out filled in."""
    nodes, sizes = trace.node_table, trace.round_table["nodes"]
    starts = np.cumsum(sizes) - sizes
    if round is None:
        if node is not None:
            raise ValueError(f"node needs a round as well, as in round=0, node={node}")
        if not len(nodes):
            raise ValueError("trace has no proposal to draw")
        start, stop = 0, len(nodes)
    else:
        round = whole("round", round, 0, len(trace) - 1)
        start, stop = int(starts[round]), int(starts[round] + sizes[round])
        if start == stop:
            raise ValueError(f"round {round} has no proposal to draw; choose one that has")
    if node is not None:
        assert round is not None
        return round, whole("node", node, 0, stop - start - 1)
    rejected = np.flatnonzero(nodes["verdict"][start:stop] == REJECTED)
    overlaps = np.nan_to_num(nodes["overlap"][start:stop], nan=1.0)
    at = start + int(rejected[0] if len(rejected) else np.argmin(overlaps))
    round = int(np.searchsorted(starts, at, side="right")) - 1
    return round, at - int(starts[round])
