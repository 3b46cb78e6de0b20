"""Target p and draft q at one proposal: what both share is accepted, what p has more is residual.

Leviathan et al. (2023): a proposal is accepted with probability sum(min(p, q)) = 1 − TV(p, q) on
average (Corollary 3.6), and a rejection is corrected from norm(max(0, p − q)) (Algorithm 1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from specviz.core.contract import FloatArray
from specviz.figures.escaping import SPACE, split_gap
from specviz.figures.marks import MARKS
from specviz.figures.theme import FONT_POINTS, Palette, palette
from specviz.figures.theme import size as size_of

if TYPE_CHECKING:
    import plotly.graph_objects as go
    from matplotlib.axes import Axes

    from specviz.core.trace.trace import Trace

TOKENS = 10
"""How many tokens have a row of their own; the others share one."""


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


@overload
def overlap(
    trace: Trace,
    *,
    round: int = ...,
    node: int = ...,
    ax: Axes | None = ...,
    backend: Literal["matplotlib"] = ...,
    size: str = ...,
    dark: bool = ...,
) -> Axes: ...
@overload
def overlap(
    trace: Trace,
    *,
    round: int = ...,
    node: int = ...,
    backend: Literal["plotly"],
    size: str = ...,
    dark: bool = ...,
) -> go.Figure: ...
def overlap(
    trace: Trace,
    *,
    round: int = 0,
    node: int = 0,
    ax: Axes | None = None,
    backend: str = "matplotlib",
    size: str = "paper",
    dark: bool = False,
) -> Any:
    """Draw target p and draft q at one proposal, with their overlap and the residual.

    Parameters
    ----------
    trace : Trace
        The run.
    round, node : int
        Which proposal, both counted from 0.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure.
    backend : {"matplotlib", "plotly"}
        For print, or for looking closer.
    size : {"paper", "slide"}
        Of a new figure, and of the letters.
    dark : bool
        For a dark background.

    Returns
    -------
    matplotlib Axes, or plotly Figure

    Raises
    ------
    ValueError
        If there is no such round or node, or an unknown backend or size is asked for.

    Examples
    --------
    >>> ax = overlap(trace, round=3, node=0)  # doctest: +SKIP
    """
    if backend not in ("matplotlib", "plotly"):
        raise ValueError(f"backend must be 'matplotlib' or 'plotly', got {backend!r}")
    if backend == "plotly" and ax is not None:
        raise ValueError("ax is for backend='matplotlib'; with plotly a new figure is returned")
    inches = size_of(size)
    data = overlap_data(trace, round, node)
    if backend == "plotly":
        from specviz.figures._overlap_plotly import draw

        return draw(data, palette(dark), FONT_POINTS[size])
    return _matplotlib(data, palette(dark), ax, inches, FONT_POINTS[size])


def overlap_data(trace: Trace, round: int, node: int) -> OverlapData:
    """Return what :func:`overlap` draws.

    Raises
    ------
    TypeError, ValueError
        If there is no such round or node, or its distributions were not recorded.
    """
    for name, value in (("round", round), ("node", node)):
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
            raise TypeError(f"{name} must be a whole number, got {value!r}")
    if not 0 <= round < len(trace):
        raise ValueError(f"round must be within 0..{len(trace) - 1}, got {round!r}")
    view = trace.rounds[round]
    if not view.nodes:
        raise ValueError(f"round {round} has no proposal to draw; choose one that has")
    if not 0 <= node < len(view.nodes):
        raise ValueError(
            f"node must be within 0..{len(view.nodes) - 1} in round {round}, got {node!r}"
        )
    one = view.nodes[node]
    p, q = one.distributions.p, one.distributions.q
    if not len(p) or not (np.all(np.isfinite(p)) and np.all(np.isfinite(q))):
        raise ValueError(f"the distributions of node {node} in round {round} were not recorded")
    order = np.argsort(-np.maximum(p, q), kind="stable")[:TOKENS]
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
        labels=[_label(one.distributions.texts[i]) for i in order] + ["all others"],
        p=np.append(p[order], rest[0]),
        q=np.append(q[order], rest[1]),
        shared=np.append(shared, min(rest)),
        proposed=int(np.flatnonzero(order == at)[0]),
        overlap=one.overlap,
        by_ratio=trace.meta.get("rule") == "rejection",
        title=f"round {round}, proposal {node}: “{_label(one.text)}” {mark.glyph} {mark.name}",
    )


def _label(text: str) -> str:
    gap, rest = split_gap(text)
    return f"{SPACE if gap else ''}{rest}"


def _matplotlib(
    data: OverlapData,
    colours: Palette,
    ax: Axes | None,
    inches: tuple[float, float],
    points: float,
) -> Axes:
    from specviz.figures._canvas import new_axes, safe_text

    ax = ax if ax is not None else new_axes(inches, colours)
    rows = np.arange(len(data.labels))
    half = 0.3

    # the overlap stands behind both bars; the bars are whole distributions, their surplus is
    # hatched
    ax.barh(rows, data.shared, 0.92, color=colours.accepted, alpha=0.28, linewidth=0)
    for distribution, shift, colour, over, tint in (
        (data.p, -half / 2, colours.p, colours.p, colours.p_tint),
        (data.q, half / 2, colours.q, colours.rejected, colours.rejected_tint),
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
    _legend(ax, colours, points, data.by_ratio)
    ax.set_yticks(rows, [safe_text(label) for label in data.labels])
    labels: list[Any] = ax.get_yticklabels()
    labels[data.proposed].set_fontweight("bold")
    labels[-1].set_fontstyle("italic")
    ax.set_ylim(len(rows) - 0.4, -0.65)
    ax.set_xlim(0, min(1.0, 1.08 * max(float(data.p.max()), float(data.q.max()))))
    ax.set_xlabel("probability of the next token", color=colours.text, fontsize=points)
    ax.tick_params(colors=colours.muted, labelsize=points, length=0)
    ax.tick_params(axis="y", labelcolor=colours.text)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.spines["bottom"].set_color(colours.line)
    _strip(ax, data, colours, points)
    ax.set_title(
        safe_text(data.title),
        loc="left",
        color=colours.text,
        fontsize=1.1 * points,
        pad=3.4 * points,
    )
    return ax


def _legend(ax: Axes, colours: Palette, points: float, by_ratio: bool) -> None:
    from matplotlib.patches import Patch

    handles = [
        Patch(facecolor=colours.p, edgecolor=colours.p, label="target p"),
        Patch(facecolor=colours.q, edgecolor=colours.q, label="draft q"),
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
    ax.legend(
        handles=handles,
        loc="upper left",
        bbox_to_anchor=(0, -0.17),
        ncols=3,
        borderpad=0,
        columnspacing=1.5,
        frameon=False,
        fontsize=0.9 * points,
        labelcolor=colours.text,
    )


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
    strip.set(xlim=(0, 1), ylim=(-0.5, 0.5))
    strip.axis("off")
    words: Any = {"va": "center", "color": colours.text, "fontsize": points}
    plate = {"facecolor": colours.p_tint, "edgecolor": "none", "pad": 1.5}
    accepted, left = f"1 − TV = {data.overlap:.3f}", f"TV = {1 - data.overlap:.3f}"
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
