"""What a sampler emitted against what the target makes one expect, cell by cell.

Every cell has an exact interval (Clopper & Pearson 1934), narrow enough that all cells together
keep the confidence. Above the cells stands the total variation that was seen, on top of the one
that chance alone shows: it is above 0 for a perfect sampler too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from specviz.core.checks import number, one_of, whole
from specviz.core.contract import FloatArray
from specviz.core.formatting import format_number, format_p_value
from specviz.figures.drawing import Look, figure, plotly_text, safe_text
from specviz.figures.escaping import word
from specviz.lossless.report.table_summary import CELLS, TableSeen, table_seen
from specviz.lossless.statistics.conditional_distribution import (
    Conditional,
    ConditionalDistribution,
)
from specviz.lossless.statistics.prefix_tree import PrefixTree, grow, walk
from specviz.lossless.statistics.sample import Sample, Words
from specviz.lossless.statistics.tables import all_tables

if TYPE_CHECKING:
    import plotly.graph_objects as go
    from matplotlib.axes import Axes

NICE = (1.01, 1.02, 1.05, 1.1, 1.2, 1.5, 2, 3, 5, 10, 20)
"""Ratios that may stand at the second axis; it ends at the widest."""
_ID = re.compile(r"⟨(\d+)⟩")
_LONGEST = 24


@dataclass(frozen=True)
class AgainstData:
    """What the figure shows, without drawing it.

    ``labels``, ``expected``, ``observed`` (both in texts), ``low``, ``high`` (bounds of the true
    expectation) and ``outside`` (the target's is not within them) have one entry per drawn cell,
    the likeliest first. ``tv`` is the total variation seen over all ``cells`` cells, ``floor``
    what a perfect sampler shows on average, ``chance`` what it exceeds with probability
    ``1 - confidence`` at most. ``p`` is the chi-square test's, NaN where it is not testable.
    ``unit`` is what is counted, ``against`` what is expected.
    """

    labels: list[str]
    expected: FloatArray
    observed: FloatArray
    low: FloatArray
    high: FloatArray
    outside: NDArray[np.bool_]
    table: str
    n: int
    cells: int
    tv: float
    floor: float
    chance: float
    p: float
    confidence: float
    unit: str = "texts"
    against: str = "target p"

    @property
    def title(self) -> str:
        """Which table of how many texts, and which of its cells are drawn."""
        p = "" if np.isnan(self.p) else f", p = {format_p_value(self.p)}"
        title = f"{self.table}: {self.n:,} {self.unit}, {self.cells:,} cells{p}"
        if len(self.labels) < self.cells:
            title += f"\ndrawn: the {len(self.labels)} cells that depart most"
        return title

    @property
    def above_chance(self) -> bool:
        """Whether the total variation exceeds what chance shows."""
        return self.tv > self.chance

    @property
    def verdict(self) -> str:
        """What the total variation is, and what chance shows."""
        tv, floor, chance = (format_number(x, 3) for x in (self.tv, self.floor, self.chance))
        return (
            f"TV seen: {tv}, {'above' if self.above_chance else 'no more than'} chance\n"
            f"chance: {floor} on average, up to {chance} ({self.confidence:.0%})"
        )


def data_of(seen: TableSeen) -> AgainstData:
    """Return a table of a report as it is drawn: token texts made visible."""
    expected, low, high = (np.array(x) for x in (seen.expected, seen.low, seen.high))
    return AgainstData(
        labels=[visible_label(label, seen.words) for label in seen.labels],
        expected=expected,
        observed=np.array(seen.observed),
        low=low,
        high=high,
        outside=(expected < low) | (expected > high),
        table=seen.table,
        n=seen.n,
        cells=seen.cells,
        tv=seen.tv,
        floor=seen.floor,
        chance=seen.chance,
        p=float("nan") if seen.p is None else seen.p,
        confidence=seen.confidence,
        unit=seen.unit,
        against=seen.against,
    )


def visible_label(label: str, words: Words) -> str:
    """Return a cell's name: its tokens' texts where known, cut where it is long."""
    tokens, plus, more = label.partition(" + ")
    name = _ID.sub(lambda found: _word(int(found[1]), words), tokens)
    name = name if len(name) <= _LONGEST else name[: _LONGEST - 1] + "…"
    return f"{name}{plus}{more}"


def _word(token: int, words: Words) -> str:
    known = token in words if isinstance(words, Mapping) else token < len(words)
    if not known:
        return f"⟨{token}⟩"
    return word(words[token])


def _draw(data: AgainstData, ax: Axes | None, look: Look) -> Axes:
    ax = look.axes(ax)
    draw_table(data, ax, look)
    return ax


def draw_table(data: AgainstData, ax: Axes, look: Look) -> None:
    """Draw cells, ratios and total variation into one Axes and two in it."""
    from matplotlib.ticker import MaxNLocator

    colours, points = look.colours, look.points

    rows = np.arange(len(data.labels))
    ax.barh(
        rows, data.expected, 0.62, color=colours.p_tint, edgecolor=colours.p,
        label=f"expected: {data.against}",
    )  # fmt: skip
    _points(ax, data, look, data.observed, data.low, data.high)
    most = float(max(data.expected.max(), data.high.max()))
    ax.set_xlim(0, 1.6 * most)  # the second axis stands in the free part
    ax.set_xticks([x for x in MaxNLocator(4).tick_values(0, most) if x <= most])
    ax.set_yticks(rows, [safe_text(label) for label in data.labels])
    ax.set_ylim(len(rows) - 0.4, -0.6)
    look.frame(ax, data.unit, loc="left")
    _ratios(ax, data, look)
    _strip(ax, data, look)
    look.legend(ax, 2)
    look.title(ax, data.title, fontsize=1.1 * points, pad=6.2 * points)


def _ratios(ax: Axes, data: AgainstData, look: Look) -> None:
    """Draw seen ÷ expected beside the bars, where small departures show; logarithmic."""
    colours, points = look.colours, look.points
    low, seen, high = (x / data.expected for x in (data.low, data.observed, data.high))
    furthest = max(float(high.max()), float(1 / max(1e-9, low.min())))
    nice = next((x for x in NICE if x >= furthest), NICE[-1])
    end = nice**1.25
    closer = ax.inset_axes((0.64, 0, 0.36, 1))
    closer.set_facecolor(colours.panel)
    closer.set_xscale("log")
    closer.axvline(1, color=colours.p, linewidth=1.2)
    low, seen, high = (np.clip(x, 1 / end, end) for x in (low, seen, high))
    _points(closer, data, look, seen, low, high)
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
    look: Look,
    seen: FloatArray,
    low: FloatArray,
    high: FloatArray,
) -> None:
    """Mark what was seen, with its interval."""
    colours, points = look.colours, look.points
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


def _strip(ax: Axes, data: AgainstData, look: Look) -> None:
    """Draw the total variation above the cells: chance first, then what was seen."""
    colours, points = look.colours, look.points
    strip = ax.inset_axes((0, 1.03, 1, 0.04))
    strip.barh(0, data.chance, 1, color=colours.line, alpha=0.55, linewidth=0)
    strip.barh(0, data.floor, 1, color=colours.muted, alpha=0.75, linewidth=0)
    wrong = data.above_chance
    colour, marker = (colours.rejected, "X") if wrong else (colours.accepted, "o")
    strip.plot([0, data.tv], [0, 0], color=colour, linewidth=0.3 * points)
    strip.plot(data.tv, 0, marker, color=colour, markersize=0.9 * points, clip_on=False)
    strip.set(xlim=(0, 1.3 * max(data.tv, data.chance)), ylim=(-0.5, 0.5), xticks=[], yticks=[])
    strip.axis("off")
    strip.text(
        0, 0.9, data.verdict, ha="left", va="bottom", color=colours.text, fontsize=points,
        fontweight="bold" if wrong else "normal",
    )  # fmt: skip


def plotly_table(data: AgainstData, look: Look) -> go.Figure:
    """Return the figure: cells that say their numbers when pointed at."""
    import plotly.graph_objects as go

    colours, points = look.colours, look.points
    rows = np.arange(len(data.labels))
    labels = [plotly_text(label) for label in data.labels]
    figure = go.Figure()
    figure.add_bar(
        name=f"expected: {data.against}",
        y=rows,
        x=data.expected,
        orientation="h",
        customdata=labels,
        hovertemplate="%{customdata}<br>expected %{x:,.1f}<extra></extra>",
        marker={"color": colours.p_tint, "line": {"color": colours.p, "width": 1}},
    )
    for which, colour, symbol, name in (
        (~data.outside, colours.accepted, "circle", f"seen, interval ({data.confidence:.0%} all)"),
        (data.outside, colours.rejected, "x", "seen, interval misses p"),
    ):
        if not which.any():
            continue
        at = np.flatnonzero(which)
        figure.add_scatter(
            name=name,
            mode="markers",
            y=rows[which],
            x=data.observed[which],
            error_x={
                "type": "data",
                "symmetric": False,
                "array": (data.high - data.observed)[which],
                "arrayminus": (data.observed - data.low)[which],
                "color": colour,
            },
            customdata=[
                [labels[i], data.low[i], data.high[i], data.observed[i] / data.expected[i]]
                for i in at
            ],
            hovertemplate="%{customdata[0]}<br>seen %{x:,.0f}, interval %{customdata[1]:,.1f} to "
            "%{customdata[2]:,.1f}<br>seen ÷ expected = %{customdata[3]:.4f}<extra></extra>",
            marker={"color": colour, "symbol": symbol, "size": points},
        )
    return look.plotly(
        figure,
        title=f"{plotly_text(data.title)}<br><b>{plotly_text(data.verdict)}</b>",
        xaxis={"title": data.unit},
        yaxis={"tickvals": rows, "ticktext": labels, "autorange": "reversed"},
        margin={"t": 130},
    )


@figure(_draw, plotly_table)
def against_expected(
    sample: Sample,
    target: Conditional | ConditionalDistribution | PrefixTree,
    *,
    table: str | None = None,
    words: Words | None = None,
    cells: int = CELLS,
    confidence: float = 0.99,
) -> AgainstData:
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
    number("confidence", confidence, above=0, below=1)
    whole("cells", cells, 2)
    tree = target if isinstance(target, PrefixTree) else grow(
        target, sample.vocab_size, sample.length, end_ids=sample.end_ids
    )  # fmt: skip
    if (tree.length, tree.vocab_size) != (sample.length, sample.vocab_size):
        raise ValueError(
            f"target covers {tree.length} tokens of {tree.vocab_size}, sample has "
            f"{sample.length} of {sample.vocab_size}: they must be about the same texts"
        )
    tables = {one.name: one for one in all_tables(tree, [walk(tree, sample.tokens)])}
    name = next(reversed(tables)) if table is None else table
    one_of("table", name, tables)
    seen = table_seen(tables[name], words, cells, confidence)
    if seen is None:
        raise ValueError(
            f"{name} has one cell that expects at least 5 of {len(sample):,} texts, so that there "
            f"is nothing to compare: draw more texts"
        )
    return data_of(seen)
