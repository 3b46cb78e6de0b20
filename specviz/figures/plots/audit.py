"""An audit in pictures: a table against what was expected, every test, the evidence over texts."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup

from specviz.core.checks import one_of
from specviz.core.formatting import format_p_value
from specviz.figures.drawing import Look, figure, only_panels, plotly_text, safe_text
from specviz.figures.plots.against_expected import AgainstData, data_of, draw_table, plotly_table
from specviz.figures.plots.p_values import (
    PValues,
    add_p_values,
    battery_of,
    draw_p_values,
    p_values_of,
)
from specviz.figures.theme import Palette
from specviz.lossless.report.audit_report import AuditReport
from specviz.lossless.report.battery_report import BatteryReport
from specviz.lossless.report.eprocess_path import EProcessPath
from specviz.lossless.statistics.findings import Answer, Finding

if TYPE_CHECKING:
    import plotly.graph_objects as go
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

HIGHEST_E, LOWEST_E = 1e8, 1e-3
"""e-values are drawn within these."""
DPI = 110
"""Of the picture in a report's page."""


@dataclass(frozen=True)
class AuditData:
    """The panels of an audit: a table (None if all have one cell), the tests, the e-process."""

    title: str
    exit_code: int
    table: AgainstData | None
    tests: PValues
    eprocess: EProcessPath | None

    @property
    def alt(self) -> str:
        """What the plots show, in words."""
        said = []
        if self.table is not None:
            outside = int(self.table.outside.sum())
            said += [self.table.title, self.table.verdict,
                     f"{outside} of the cells drawn lie outside their interval"]  # fmt: skip
        said.append(self.tests.title)
        if self.eprocess is not None:
            said.append(f"The e-process {_crossing(self.eprocess)}")
        return ". ".join(said)


def _draw(data: AuditData, ax: Axes | None, look: Look) -> Figure:
    from matplotlib import pyplot

    only_panels(ax, "audit")
    colours, points = look.colours, look.points
    # a column has all panels under each other; elsewhere the last two stand side by side
    width, height = (1.0 if look.column else 1.5) * look.inches[0], look.inches[1]
    columns = 1 if data.eprocess is None else 2
    tall = 0.36 * height + 0.026 * points * max(6, len(data.tests.names))
    tall *= columns if look.column else 1
    tops = [] if data.table is None else [(0.5 + 0.045 * len(data.table.labels)) * height]
    figure = pyplot.figure(figsize=(width, sum(tops) + tall), layout="constrained")
    figure.set_facecolor(colours.background)
    figure.suptitle(
        safe_text(data.title), x=0.01, ha="left", color=colours.text, fontsize=1.25 * points,
        fontweight="bold",
    )  # fmt: skip
    parts = figure.subfigures(len(tops) + 1, 1, height_ratios=[*tops, tall], squeeze=False)[:, 0]
    if data.table is not None:
        draw_table(data.table, parts[0].subplots(), look)
    shape = (columns, 1) if look.column else (1, columns)
    below = parts[-1].subfigures(*shape, squeeze=False).ravel()
    draw_p_values(data.tests, below[0].subplots(), look)
    if data.eprocess is not None:
        _draw_eprocess(data.eprocess, below[1].subplots(), look)
    for part in (*parts, *below):
        part.set_facecolor(colours.background)
    for ax in figure.axes:
        ax.set_facecolor(colours.background)
    return figure


def _draw_eprocess(data: EProcessPath, ax: Axes, look: Look) -> None:
    """Draw the e-process and its line at 1/alpha."""
    from matplotlib.ticker import MaxNLocator

    colours, points = look.colours, look.points
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
        fontsize=points, transform=ax.get_yaxis_transform(),
    )  # fmt: skip
    ax.set_xlim(0, data.n[-1])
    ax.xaxis.set_major_locator(MaxNLocator(4, integer=True))
    ax.xaxis.set_major_formatter(lambda x, _: f"{x:,.0f}")
    look.frame(ax, data.unit, "e-value", left=True)
    look.title(ax, f"e-process: {_crossing(data)}{_clipped(data)}\n{data.of}")


def _crossing(data: EProcessPath) -> str:
    if data.crossed_at is None:
        return "never crosses"
    return f"crosses after {data.crossed_at:,} {data.unit}"


def _clipped(data: EProcessPath) -> str:
    """Return how far a line goes on that is drawn only up to an edge."""
    most = max(data.log_e) / np.log(10)
    return f"\ndrawn up to 10⁸, reaches 10^{most:.0f}" if most > np.log10(HIGHEST_E) else ""


def _plotly(data: AuditData, look: Look) -> go.Figure:
    """Return the figure: panels under each other, everything says its numbers when pointed at."""
    from plotly.subplots import make_subplots

    titles, heights = [], []
    if data.table is not None:
        titles.append(plotly_text(f"{data.table.title}\n{data.table.verdict}"))
        heights.append(1.6)
    titles.append(plotly_text(data.tests.title))
    heights.append(1.2)
    if data.eprocess is not None:
        titles.append(plotly_text(f"e-process: {_crossing(data.eprocess)}\n{data.eprocess.of}"))
        heights.append(1.0)
    figure = make_subplots(
        rows=len(titles), cols=1, subplot_titles=titles, row_heights=heights,
        vertical_spacing=0.32 / len(titles),
    )  # fmt: skip
    row = 1
    if data.table is not None:
        alone = plotly_table(data.table, look)
        for trace in alone.data:
            figure.add_trace(trace, row=row, col=1)
        figure.update_xaxes(title=data.table.unit, row=row, col=1)
        figure.update_yaxes(
            tickvals=alone.layout.yaxis.tickvals, ticktext=alone.layout.yaxis.ticktext,
            autorange="reversed", row=row, col=1,
        )  # fmt: skip
        row += 1
    add_p_values(figure, data.tests, look, row=row, col=1)
    if data.eprocess is not None:
        _add_eprocess(figure, data.eprocess, look.colours, row=row + 1, col=1)
    figure.update_annotations(font={"size": 1.2 * look.points}, x=0, xanchor="left", align="left")
    return look.plotly(
        figure, title=f"<b>{plotly_text(data.title)}</b>", height=330 * len(titles) + 120,
        legend={"orientation": "h", "y": -0.08}, margin={"t": 150, "l": 150},
    )  # fmt: skip


def _add_eprocess(figure: go.Figure, path: EProcessPath, colours: Palette, **where: int) -> None:
    wrong = path.crossed_at is not None
    figure.add_scatter(
        x=path.n, y=np.exp(np.clip(path.log_e, -20, 200)), mode="lines", name="e-process",
        line={"color": colours.rejected if wrong else colours.accepted, "width": 3},
        hovertemplate=f"%{{x:,}} {path.unit}<br>e = %{{y:.3g}}<extra></extra>", **where,
    )  # fmt: skip
    figure.add_scatter(  # add_hline would place its words at 10 to the power of 1/alpha
        x=[0, path.n[-1]], y=[1 / path.alpha] * 2, mode="lines",
        name=f"1/α = {1 / path.alpha:g}", hoverinfo="name",
        line={"color": colours.text, "dash": "dash", "width": 1.5}, **where,
    )  # fmt: skip
    figure.update_xaxes(title=path.unit, **where)
    figure.update_yaxes(
        title="e-value", type="log", exponentformat="power", gridcolor=colours.line, **where
    )


@figure(_draw, _plotly)
def audit(
    report: AuditReport | BatteryReport, *, prompt: int | None = None, table: str | None = None
) -> AuditData:
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
    >>> figure = audit(sv.audit(pair, [0], gamma=2, n=500), theme="slide")
    >>> len(figure.axes)
    3
    """
    one = battery_of(report, prompt)
    subject = report.subject if isinstance(report, AuditReport) else f"against {one.against}"
    seen = {found.table: found for found in one.tables}
    if table is not None:
        one_of("table", table, seen)
    name = most_telling(one.findings, list(seen)) if table is None else table
    sign = {0: "✓", 1: "✗", 2: "–"}[one.exit_code]
    return AuditData(
        title=f"{sign} {one.verdict.value}: {subject}{_shown_by(one)}",
        exit_code=one.exit_code,
        table=None if name is None else data_of(seen[name]),
        tests=p_values_of(one),
        eprocess=one.eprocess,
    )


def _shown_by(one: BatteryReport) -> str:
    """Return which tests decided, since the table that is drawn may show no more than chance."""
    wrong = sorted(
        (f for f in one.findings if f.answer is Answer.DIFFERS), key=lambda f: f.p or 0.0
    )
    if one.exit_code != 1 or not wrong:
        return ""
    names = [f.name + ("" if f.p is None else f" (p = {format_p_value(f.p)})") for f in wrong[:2]]
    more = f" and {len(wrong) - 2} more" if len(wrong) > 2 else ""
    return f"\nshown by: {', '.join(names)}{more}"


def most_telling(findings: Sequence[Finding], tables: list[str]) -> str | None:
    """Return the table to show: the one that differs most, or whole texts where none does."""
    if not tables:
        return None
    wrong = [f for f in findings if f.answer is Answer.DIFFERS and f.name in tables]
    if wrong:
        return min(wrong, key=lambda f: (f.p or 0.0, -(f.statistic or 0.0) / (f.dof or 1))).name
    return "continuation" if "continuation" in tables else tables[0]


# -- as pictures in HTML --------------------------------------------------------------------------


def png(report: AuditReport, *, prompt: int | None = None, theme: str = "light") -> bytes:
    """Return the plots as a PNG file; no figure stays open."""
    from matplotlib import pyplot

    with pyplot.ioff():
        drawn = audit(report, prompt=prompt, theme=theme)
    try:
        out = io.BytesIO()
        drawn.savefig(out, format="png", dpi=DPI, facecolor=drawn.get_facecolor())
    finally:
        pyplot.close(drawn)
    return out.getvalue()


def picture(
    report: AuditReport, *, prompt: int | None = None, themes: bool = False,
    light: bytes | None = None,
) -> Markup:  # fmt: skip
    """Return the plots as an HTML element.

    Parameters
    ----------
    report : AuditReport
        From :func:`specviz.audit`.
    prompt : int, optional
        As in :func:`specviz.figures.audit`.
    themes : bool
        Whether the page may be dark: then a second picture is there for it.
    light : bytes, optional
        The picture for light pages, where it is drawn already.
    """
    light = png(report, prompt=prompt) if light is None else light
    data = audit.data(report, prompt=prompt)
    words = f"{data.title}. {data.alt}.".replace("\n", ", ")
    image = Markup('<img src="{}" alt="{}" style="max-width:100%;height:auto">').format(
        _data(light), words
    )
    if not themes:
        return image
    dark = _data(png(report, prompt=prompt, theme="dark"))
    source = Markup('<source media="(prefers-color-scheme: dark)" srcset="{}">').format(dark)
    return Markup("<picture>{}{}</picture>").format(source, image)


def bundle(report: AuditReport, words: str) -> dict[str, Any]:
    """Return what a notebook shows: HTML words with the plots, a PNG twin, and plain text."""
    out: dict[str, Any] = {"text/plain": repr(report), "text/html": words}
    if report.reports:
        light = png(report)  # drawn once, for both
        out["text/html"] = f"{words}<div>{picture(report, light=light)}</div>"
        out["image/png"] = base64.b64encode(light).decode("ascii")
    return out


def _data(picture: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(picture).decode('ascii')}"
