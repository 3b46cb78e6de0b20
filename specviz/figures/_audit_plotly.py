"""An audit in pictures, for looking closer: drawn with plotly."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from specviz.figures import _against_expected_plotly
from specviz.figures._audit_data import AuditData
from specviz.figures._canvas import plotly_text
from specviz.figures.theme import Palette


def draw(data: AuditData, colours: Palette, points: float) -> go.Figure:
    """Return the figure: panels under each other, everything says its numbers when pointed at."""
    titles, heights = [], []
    if data.table is not None:
        titles.append(_lines(f"{data.table.title}\n{data.table.verdict}"))
        heights.append(1.6)
    titles.append(_lines(data.tests.title))
    heights.append(1.2)
    if data.evidence is not None:
        titles.append(f"e-process: {plotly_text(data.evidence.of)}")
        heights.append(1.0)
    figure = make_subplots(
        rows=len(titles), cols=1, subplot_titles=titles, row_heights=heights,
        vertical_spacing=0.32 / len(titles),
    )  # fmt: skip
    row = 1
    if data.table is not None:
        alone = _against_expected_plotly.draw(data.table, colours, points)
        for trace in alone.data:
            figure.add_trace(trace, row=row, col=1)
        figure.update_xaxes(title=data.table.unit, row=row, col=1)
        figure.update_yaxes(
            tickvals=alone.layout.yaxis.tickvals, ticktext=alone.layout.yaxis.ticktext,
            autorange="reversed", row=row, col=1,
        )  # fmt: skip
        row += 1
    _tests(figure, data, colours, points, row)
    if data.evidence is not None:
        _evidence(figure, data, colours, row + 1)
    figure.update_annotations(font={"size": 1.2 * points}, x=0, xanchor="left", align="left")
    figure.update_layout(
        title=f"<b>{plotly_text(data.title)}</b>",
        font={"size": 1.2 * points, "color": colours.text},
        paper_bgcolor=colours.background,
        plot_bgcolor=colours.background,
        height=330 * len(titles) + 120,
        legend={"orientation": "h", "y": -0.08},
        bargap=0.3,
        margin={"t": 150, "l": 150},
    )
    figure.update_xaxes(gridcolor=colours.line)
    return figure


def _tests(figure: go.Figure, data: AuditData, colours: Palette, points: float, row: int) -> None:
    tests = data.tests
    rows = np.arange(len(tests.names))
    figure.add_scatter(
        x=np.append(tests.line, tests.line[-1:]), y=np.arange(len(rows) + 1) - 0.5,
        mode="lines", line={"color": colours.text, "dash": "dash", "shape": "vh"},
        name="Holm's line", hovertemplate="Holm's line: %{x:.2g}<extra></extra>", row=row, col=1,
    )  # fmt: skip
    for which, colour, symbol, name in (
        (~tests.differs, colours.accepted, "circle", "as expected"),
        (tests.differs, colours.rejected, "x", "differs"),
    ):
        if not which.any():
            continue
        figure.add_scatter(
            x=np.maximum(tests.p[which], 1e-300), y=rows[which], mode="markers", name=name,
            marker={"color": colour, "symbol": symbol, "size": points},
            customdata=[plotly_text(tests.names[i]) for i in np.flatnonzero(which)],
            hovertemplate="%{customdata}<br>p = %{x:.3g}<extra></extra>", row=row, col=1,
        )  # fmt: skip
    figure.update_xaxes(
        title="p-value", type="log", autorange="reversed", exponentformat="power", row=row, col=1
    )
    figure.update_yaxes(
        tickvals=rows, ticktext=[plotly_text(name) for name in tests.names], autorange="reversed",
        row=row, col=1,
    )  # fmt: skip


def _evidence(figure: go.Figure, data: AuditData, colours: Palette, row: int) -> None:
    evidence = data.evidence
    assert evidence is not None
    wrong = evidence.crossed_at is not None
    figure.add_scatter(
        x=evidence.n, y=np.exp(np.clip(evidence.log_e, -20, 200)), mode="lines", name="e-process",
        line={"color": colours.rejected if wrong else colours.accepted, "width": 3},
        hovertemplate=f"%{{x:,}} {evidence.unit}<br>e = %{{y:.3g}}<extra></extra>", row=row, col=1,
    )  # fmt: skip
    figure.add_scatter(  # add_hline would place its words at 10 to the power of 1/alpha
        x=[0, evidence.n[-1]], y=[1 / evidence.alpha] * 2, mode="lines",
        name=f"1/α = {1 / evidence.alpha:g}", hoverinfo="name",
        line={"color": colours.text, "dash": "dash", "width": 1.5}, row=row, col=1,
    )  # fmt: skip
    figure.update_xaxes(title=evidence.unit, row=row, col=1)
    figure.update_yaxes(
        title="e-value", type="log", exponentformat="power", gridcolor=colours.line, row=row, col=1
    )


def _lines(text: str) -> str:
    return "<br>".join(plotly_text(line) for line in text.split("\n"))
