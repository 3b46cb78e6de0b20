"""An audit in pictures: a table against what was expected, every test, the evidence over texts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from specviz.figures._audit_data import LEAST_P, AuditData, PValues, audit_data
from specviz.figures.theme import FONT_POINTS, Palette, palette
from specviz.figures.theme import size as size_of
from specviz.lossless.report.audit_report import AuditReport
from specviz.lossless.report.battery_report import BatteryReport
from specviz.lossless.report.evidence_over_texts import Evidence

if TYPE_CHECKING:
    import plotly.graph_objects as go
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

HIGHEST_E, LOWEST_E = 1e8, 1e-3
"""e-values are drawn within these."""


@overload
def audit(
    report: AuditReport | BatteryReport,
    *,
    prompt: int | None = ...,
    table: str | None = ...,
    backend: Literal["matplotlib"] = ...,
    size: str = ...,
    dark: bool = ...,
) -> Figure: ...
@overload
def audit(
    report: AuditReport | BatteryReport,
    *,
    prompt: int | None = ...,
    table: str | None = ...,
    backend: Literal["plotly"],
    size: str = ...,
    dark: bool = ...,
) -> go.Figure: ...
def audit(
    report: AuditReport | BatteryReport,
    *,
    prompt: int | None = None,
    table: str | None = None,
    backend: str = "matplotlib",
    size: str = "paper",
    dark: bool = False,
) -> Any:
    """Draw what an audit found.

    On top a table of emitted tokens against what was expected, with intervals, under the total
    variation and what chance shows of it. Below every test's p-value with the line that Holm's
    correction draws, and an e-process while the texts arrived, where the target's distribution is
    known.

    Parameters
    ----------
    report : AuditReport or BatteryReport
        From :func:`specviz.audit`.
    prompt : int, optional
        Whose report, where there are several; by default the one that decided the verdict.
    table : str, optional
        Which table, for example ``"positions 0, 1"``; by default the one that differs most, or
        whole texts.
    backend : {"matplotlib", "plotly"}
        For print, or for looking closer.
    size : {"paper", "slide"}
        Of the letters; the figure is as large as three of that size need.
    dark : bool
        For a dark background.

    Returns
    -------
    matplotlib Figure, or plotly Figure

    Raises
    ------
    TypeError, ValueError
        If there is no such prompt or table, or if nothing was sampled.

    Examples
    --------
    >>> import specviz as sv
    >>> pair = sv.tabular.TabularPair(
    ...     sv.tabular.TabularModel([0.5, 0.5]), sv.tabular.TabularModel([0.9, 0.1])
    ... )
    >>> figure = audit(sv.audit(pair, [0], gamma=2, n=500), size="slide")
    >>> len(figure.axes)
    3
    """
    width, height = size_of(size)
    if backend not in ("matplotlib", "plotly"):
        raise ValueError(f"backend must be 'matplotlib' or 'plotly', got {backend!r}")
    data = audit_data(report, prompt=prompt, table=table)
    colours, points = palette(dark), FONT_POINTS[size]
    if backend == "plotly":
        from specviz.figures._audit_plotly import draw

        return draw(data, colours, points)
    return _matplotlib(data, colours, (1.5 * width, height), points)


def _matplotlib(
    data: AuditData, colours: Palette, inches: tuple[float, float], points: float
) -> Figure:
    from matplotlib import pyplot

    from specviz.figures._against_expected import draw_table
    from specviz.figures._canvas import safe_text

    width, height = inches
    tall = 0.36 * height + 0.026 * points * max(6, len(data.tests.names))
    tops = [] if data.table is None else [(0.5 + 0.045 * len(data.table.labels)) * height]
    figure = pyplot.figure(figsize=(width, sum(tops) + tall), layout="constrained")
    figure.set_facecolor(colours.background)
    figure.suptitle(
        safe_text(data.title), x=0.01, ha="left", color=colours.text, fontsize=1.25 * points,
        fontweight="bold",
    )  # fmt: skip
    parts = figure.subfigures(len(tops) + 1, 1, height_ratios=[*tops, tall], squeeze=False)[:, 0]
    if data.table is not None:
        draw_table(data.table, colours, parts[0].subplots(), points)
    columns = 1 if data.evidence is None else 2
    below = parts[-1].subfigures(1, columns, squeeze=False)[0]
    draw_p_values(data.tests, colours, below[0].subplots(), points)
    if data.evidence is not None:
        draw_evidence(data.evidence, colours, below[1].subplots(), points)
    for part in (*parts, *below):
        part.set_facecolor(colours.background)
    for ax in figure.axes:
        ax.set_facecolor(colours.background)
    return figure


def p_values(
    report: AuditReport | BatteryReport,
    *,
    prompt: int | None = None,
    ax: Axes | None = None,
    size: str = "paper",
    dark: bool = False,
) -> Axes:
    """Draw every test's p-value with the line that Holm's correction draws.

    Parameters
    ----------
    report : AuditReport or BatteryReport
        From :func:`specviz.audit` or :func:`specviz.lossless.battery`.
    prompt : int, optional
        Whose report, where there are several; by default the one that decided the verdict.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure.
    size : {"paper", "slide"}
        Of a new figure, and of the letters.
    dark : bool
        For a dark background.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from specviz.lossless import Sample, battery
    >>> coin = Sample.of([[0], [1], [1], [0]] * 50, vocab_size=2)
    >>> p_values(battery(coin, lambda prefix: [0.5, 0.5])).get_xlabel()
    'p-value'
    """
    from specviz.figures._audit_data import battery_of, p_values_of

    inches = size_of(size)
    data = p_values_of(battery_of(report, prompt))
    colours = palette(dark)
    if ax is None:
        from specviz.figures._canvas import new_axes

        ax = new_axes(inches, colours)
    draw_p_values(data, colours, ax, FONT_POINTS[size])
    return ax


def draw_p_values(data: PValues, colours: Palette, ax: Axes, points: float) -> None:
    """Draw a row per test; evidence grows to the right, the region beyond Holm's line is tinted."""
    from specviz.figures._canvas import below, safe_text

    title = "\n".join(safe_text(line) for line in data.title.split("\n"))
    ax.set_title(title, loc="left", color=colours.text, fontsize=points)
    rows = np.arange(len(data.names))
    if not len(rows):
        ax.set_axis_off()
        return
    least = float(np.min(np.append(data.p, 0.1 * data.alpha)))
    end = max(LEAST_P, 10 ** np.floor(np.log10(max(least, 1e-300)) - 0.3))
    ax.set_xscale("log")
    ax.set_xlim(1.4, end)  # evidence grows to the right
    steps = np.append(data.line, data.line[-1])
    edges = np.arange(len(rows) + 1) - 0.5
    ax.fill_betweenx(
        edges, steps, end, step="post", color=colours.rejected, alpha=0.1, linewidth=0,
    )  # fmt: skip
    ax.step(
        steps, edges, where="pre", color=colours.text, linewidth=0.13 * points,
        linestyle=(0, (5, 2.5)), label="Holm's line",
    )  # fmt: skip
    ax.axvline(1, color=colours.line, linewidth=0.8)
    shown = np.clip(data.p, end * 1.3, 1)
    for which, colour, marker, name in (
        (~data.differs, colours.accepted, "o", "as expected"),
        (data.differs, colours.rejected, "X", "differs"),
    ):
        if which.any():
            ax.hlines(rows[which], 1, shown[which], color=colour, linewidth=0.1 * points)
            ax.plot(
                shown[which], rows[which], marker, color=colour, markersize=0.75 * points,
                markeredgecolor=colours.background, markeredgewidth=0.05 * points, label=name,
                clip_on=False, zorder=4,
            )  # fmt: skip
    ax.set_yticks(rows, [safe_text(name) for name in data.names])
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.set_xlabel("p-value", color=colours.text, fontsize=points)
    ax.tick_params(which="both", colors=colours.muted, labelsize=0.9 * points, length=0)
    ax.tick_params(axis="y", labelcolor=colours.text)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.spines["bottom"].set_color(colours.line)
    ax.legend(
        loc="upper left", bbox_to_anchor=(0, 0), bbox_transform=below(ax, 3.6 * points), ncols=3,
        borderpad=0, borderaxespad=0, frameon=False, fontsize=0.9 * points, labelcolor=colours.text,
        handletextpad=0.4, columnspacing=1.2,
    )  # fmt: skip


def draw_evidence(data: Evidence, colours: Palette, ax: Axes, points: float) -> None:
    """Draw the e-process and its line at 1/alpha."""
    from matplotlib.ticker import MaxNLocator

    line = 1 / data.alpha
    e = np.exp(np.clip(data.log_e, np.log(LOWEST_E), np.log(HIGHEST_E)))
    wrong = data.crossed_at is not None
    colour = colours.rejected if wrong else colours.accepted
    ax.set_yscale("log")
    ax.set_ylim(min(0.5, 0.6 * float(e.min())), max(30 * line, 2 * float(e.max())))
    ax.axhspan(line, ax.get_ylim()[1], color=colours.rejected, alpha=0.1, linewidth=0)
    ax.axhline(line, color=colours.text, linewidth=0.13 * points, linestyle=(0, (5, 2.5)))
    ax.plot(data.n, e, color=colour, linewidth=0.22 * points, solid_joinstyle="round")
    if data.crossed_at is not None:
        ax.plot(
            data.crossed_at, line, "X", color=colour, markersize=0.9 * points,
            markeredgecolor=colours.background, zorder=4,
        )  # fmt: skip
    ax.text(
        0.01, line * 1.2, f"1/α = {line:,.4g}", ha="left", va="bottom", color=colours.text,
        fontsize=0.9 * points, transform=ax.get_yaxis_transform(),
    )  # fmt: skip
    ax.set_xlim(0, data.n[-1])
    ax.xaxis.set_major_locator(MaxNLocator(4, integer=True))
    ax.xaxis.set_major_formatter(lambda x, _: f"{x:,.0f}")
    ax.set_xlabel(data.unit, color=colours.text, fontsize=points)
    ax.set_ylabel("e-value", color=colours.text, fontsize=points)
    ax.tick_params(which="both", colors=colours.muted, labelsize=0.9 * points, length=2)
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["bottom", "left"]].set_color(colours.line)
    when = "never crosses" if data.crossed_at is None else (
        f"crosses after {data.crossed_at:,} {data.unit}"
    )  # fmt: skip
    ax.set_title(f"e-process: {when}\n{data.of}", loc="left", color=colours.text, fontsize=points)


__all__ = ["audit", "p_values"]
