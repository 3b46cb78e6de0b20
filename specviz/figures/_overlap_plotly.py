"""The overlap of target p and draft q, for looking closer: drawn with plotly."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from specviz.figures._canvas import plotly_text
from specviz.figures._overlap import OverlapData
from specviz.figures.theme import Palette


def draw(data: OverlapData, colours: Palette, points: float) -> go.Figure:
    """Return the figure: bars that say their numbers when pointed at."""
    rows = list(range(len(data.labels)))
    labels = [plotly_text(label) for label in data.labels]
    figure = go.Figure()
    for name, distribution, surplus, fills in (
        ("target p", data.p, "residual: p above q", (colours.p, colours.p, colours.p_tint)),
        (
            "draft q",
            data.q,
            "q above p: rejected" if data.by_ratio else "q above p",
            (colours.q, colours.rejected, colours.rejected_tint),
        ),
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
    figure.update_layout(
        title=f"{plotly_text(data.title)}<br><b>1 − TV = {data.overlap:.3f}</b>",
        barmode="group",
        font={"size": 1.3 * points, "color": colours.text},
        paper_bgcolor=colours.background,
        plot_bgcolor=colours.background,
        xaxis={"title": "probability of the next token", "gridcolor": colours.line},
        yaxis={"tickvals": rows, "ticktext": labels, "autorange": "reversed"},
        legend={"orientation": "h", "y": -0.15},
        bargap=0.3,
    )
    return figure
