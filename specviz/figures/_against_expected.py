"""What a sampler emitted against what the target makes one expect, cell by cell.

Every cell has an exact interval (Clopper & Pearson 1934), narrow enough that all cells together
keep the confidence. Above the cells stands the total variation that was seen, on top of the one
that chance alone shows: it is above 0 for a perfect sampler too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from specviz.core.contract import FloatArray
from specviz.figures._against_expected_data import AgainstData, against_data
from specviz.figures.theme import FONT_POINTS, Palette, palette
from specviz.figures.theme import size as size_of
from specviz.lossless.report.table_summary import CELLS
from specviz.lossless.statistics.conditional_distribution import (
    Conditional,
    ConditionalDistribution,
)
from specviz.lossless.statistics.prefix_tree import PrefixTree
from specviz.lossless.statistics.sample import Sample, Words

if TYPE_CHECKING:
    import plotly.graph_objects as go
    from matplotlib.axes import Axes

NICE = (1.01, 1.02, 1.05, 1.1, 1.2, 1.5, 2, 3, 5, 10, 20)
"""Ratios that may stand at the second axis; it ends at the widest."""


@overload
def against_expected(
    sample: Sample,
    target: Conditional | ConditionalDistribution | PrefixTree,
    *,
    table: str | None = ...,
    words: Words | None = ...,
    cells: int = ...,
    confidence: float = ...,
    ax: Axes | None = ...,
    backend: Literal["matplotlib"] = ...,
    size: str = ...,
    dark: bool = ...,
) -> Axes: ...
@overload
def against_expected(
    sample: Sample,
    target: Conditional | ConditionalDistribution | PrefixTree,
    *,
    table: str | None = ...,
    words: Words | None = ...,
    cells: int = ...,
    confidence: float = ...,
    backend: Literal["plotly"],
    size: str = ...,
    dark: bool = ...,
) -> go.Figure: ...
def against_expected(
    sample: Sample,
    target: Conditional | ConditionalDistribution | PrefixTree,
    *,
    table: str | None = None,
    words: Words | None = None,
    cells: int = CELLS,
    confidence: float = 0.99,
    ax: Axes | None = None,
    backend: str = "matplotlib",
    size: str = "paper",
    dark: bool = False,
) -> Any:
    """Draw observed counts against the target's, with intervals and total variation.

    Parameters
    ----------
    sample : Sample
        Emitted texts.
    target : callable, ConditionalDistribution or PrefixTree
        As in :func:`specviz.lossless.battery`.
    table : str, optional
        ``"position 1"``, ``"positions 0, 1"`` or ``"continuation"``: the battery's names. By
        default its last table, whole texts.
    words : mapping or sequence of str, optional
        Token strings.
    cells : int
        At most so many cells are drawn; where there are more, those that depart most.
    confidence : float
        Of all intervals together, and of the bound on what chance shows.
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
        If there is no such table, it has fewer than two cells, or a setting is out of range.

    Examples
    --------
    >>> coin = Sample.of([[0], [1], [1], [0]] * 50, vocab_size=2)
    >>> against_expected(coin, lambda prefix: [0.5, 0.5]).get_xlabel()
    'texts'
    """
    if backend not in ("matplotlib", "plotly"):
        raise ValueError(f"backend must be 'matplotlib' or 'plotly', got {backend!r}")
    if backend == "plotly" and ax is not None:
        raise ValueError("ax is for backend='matplotlib'; with plotly a new figure is returned")
    inches = size_of(size)
    data = against_data(
        sample, target, table=table, words=words, cells=cells, confidence=confidence
    )
    if backend == "plotly":
        from specviz.figures._against_expected_plotly import draw

        return draw(data, palette(dark), FONT_POINTS[size])
    return _matplotlib(data, palette(dark), ax, inches, FONT_POINTS[size])


def _matplotlib(
    data: AgainstData,
    colours: Palette,
    ax: Axes | None,
    inches: tuple[float, float],
    points: float,
) -> Axes:
    from specviz.figures._canvas import new_axes

    ax = ax if ax is not None else new_axes(inches, colours)
    draw_table(data, colours, ax, points)
    return ax


def draw_table(data: AgainstData, colours: Palette, ax: Axes, points: float) -> None:
    """Draw cells, ratios and total variation into one Axes and two in it."""
    from matplotlib.ticker import MaxNLocator

    from specviz.figures._canvas import below, safe_text

    rows = np.arange(len(data.labels))
    ax.barh(
        rows, data.expected, 0.62, color=colours.p_tint, edgecolor=colours.p,
        label=f"expected: {data.against}",
    )  # fmt: skip
    _points(ax, data, colours, points, data.observed, data.low, data.high)
    most = float(max(data.expected.max(), data.observed.max()))
    ax.set_xlim(0, 1.75 * most)  # the second axis stands in the free part
    ax.set_xticks([x for x in MaxNLocator(4).tick_values(0, most) if x <= most])
    ax.set_xlabel(data.unit, color=colours.text, fontsize=points, loc="left")
    ax.set_yticks(rows, [safe_text(label) for label in data.labels])
    ax.set_ylim(len(rows) - 0.4, -0.6)
    ax.tick_params(colors=colours.muted, labelsize=points, length=0)
    ax.tick_params(axis="y", labelcolor=colours.text)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.spines["bottom"].set_color(colours.line)
    _ratios(ax, data, colours, points)
    _strip(ax, data, colours, points)
    ax.legend(
        loc="upper left", bbox_to_anchor=(0, 0), bbox_transform=below(ax, 3.6 * points), ncols=2,
        borderpad=0, borderaxespad=0, columnspacing=1.5,
        frameon=False, fontsize=0.9 * points, labelcolor=colours.text,
    )  # fmt: skip
    title = "\n".join(safe_text(line) for line in data.title.split("\n"))
    ax.set_title(title, loc="left", color=colours.text, fontsize=1.1 * points, pad=6.2 * points)


def _ratios(ax: Axes, data: AgainstData, colours: Palette, points: float) -> None:
    """Draw seen ÷ expected beside the bars, where small departures show; logarithmic."""
    low, seen, high = (x / data.expected for x in (data.low, data.observed, data.high))
    furthest = max(float(high.max()), float(1 / max(1e-9, low.min())))
    nice = next((x for x in NICE if x >= furthest), NICE[-1])
    end = nice**1.25
    closer = ax.inset_axes((0.64, 0, 0.36, 1))
    closer.set_facecolor(colours.panel)
    closer.set_xscale("log")
    closer.axvline(1, color=colours.p, linewidth=1.2)
    low, seen, high = (np.clip(x, 1 / end, end) for x in (low, seen, high))
    _points(closer, data, colours, points, seen, low, high)
    closer.set_xlim(1 / end / nice**0.1, end * nice**0.1)
    closer.set_ylim(ax.get_ylim())
    closer.set_xticks([1 / nice, 1, nice], [f"÷ {nice:g}", "1", f"× {nice:g}"])
    closer.set_xticks([], minor=True)
    closer.set_yticks([])
    closer.set_xlabel("seen ÷ expected", color=colours.text, fontsize=points)
    closer.tick_params(colors=colours.muted, labelsize=points, length=0)
    closer.spines[:].set_visible(False)


def _points(
    ax: Axes,
    data: AgainstData,
    colours: Palette,
    points: float,
    seen: FloatArray,
    low: FloatArray,
    high: FloatArray,
) -> None:
    """Mark what was seen, with its interval."""
    rows = np.arange(len(data.labels))
    for which, colour, marker, name in (
        (~data.outside, colours.accepted, "o", f"seen, interval ({data.confidence:.0%} all)"),
        (data.outside, colours.rejected, "X", "seen, interval misses p"),
    ):
        if not which.any():
            continue
        away = np.stack([seen - low, high - seen])[:, which]
        ax.errorbar(
            seen[which], rows[which], xerr=np.maximum(away, 0), fmt=marker, color=colour,
            markersize=0.6 * points, elinewidth=0.16 * points, capsize=0.25 * points, label=name,
        )  # fmt: skip


def _strip(ax: Axes, data: AgainstData, colours: Palette, points: float) -> None:
    """Draw the total variation above the cells: chance first, then what was seen."""
    strip = ax.inset_axes((0, 1.03, 1, 0.04))
    strip.barh(0, data.chance, 1, color=colours.line, alpha=0.55, linewidth=0)
    strip.barh(0, data.floor, 1, color=colours.muted, alpha=0.75, linewidth=0)
    wrong = data.above_chance
    colour, marker = (colours.rejected, "X") if wrong else (colours.accepted, "o")
    strip.plot([0, data.tv], [0, 0], color=colour, linewidth=0.3 * points)
    strip.plot(data.tv, 0, marker, color=colour, markersize=0.9 * points, clip_on=False)
    strip.set(xlim=(0, 1.3 * max(data.tv, data.chance)), ylim=(-0.5, 0.5))
    strip.axis("off")
    strip.text(
        0, 0.9, data.verdict, ha="left", va="bottom", color=colours.text, fontsize=points,
        fontweight="bold" if wrong else "normal",
    )  # fmt: skip
