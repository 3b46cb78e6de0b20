"""Observed counts against expected, for looking closer: drawn with plotly."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from specviz.figures._against_expected_data import AgainstData
from specviz.figures._canvas import plotly_text
from specviz.figures.theme import Palette


def draw(data: AgainstData, colours: Palette, points: float) -> go.Figure:
    """Return the figure: cells that say their numbers when pointed at."""
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
    figure.update_layout(
        title=f"{_lines(data.title)}<br><b>{_lines(data.verdict)}</b>",
        font={"size": 1.3 * points, "color": colours.text},
        paper_bgcolor=colours.background,
        plot_bgcolor=colours.background,
        xaxis={"title": data.unit, "gridcolor": colours.line},
        yaxis={"tickvals": rows, "ticktext": labels, "autorange": "reversed"},
        legend={"orientation": "h", "y": -0.15},
        bargap=0.3,
        margin={"t": 130},
    )
    return figure


def _lines(text: str) -> str:
    return "<br>".join(plotly_text(line) for line in text.split("\n"))
