"""Evidence over samples, for looking closer: drawn with plotly."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from specviz.figures._canvas import plotly_text
from specviz.figures._evidence_over_samples import EvidenceData
from specviz.figures.theme import Palette


def draw(data: Sequence[EvidenceData], colours: Palette, points: float) -> go.Figure:
    """Return the figure: a panel per sampler; lines say their numbers when pointed at."""
    titles = ["<br>".join(map(plotly_text, (one.name, *one.says))) for one in data]
    figure = make_subplots(rows=1, cols=len(data), shared_yaxes=True, subplot_titles=titles)
    for column, one in enumerate(data, start=1):
        where = {"row": 1, "col": column}
        for name, values, at, colour, width, symbol in (
            (
                "1/p, p looked at again and again",
                one.against_p,
                one.p_crossed,
                colours.rejected,
                1,
                "x",
            ),
            ("e-process", one.against_e, one.e_crossed, colours.accepted, 3, "circle"),
        ):
            figure.add_scatter(
                x=one.n,
                y=values,
                mode="lines",
                name=name,
                legendgroup=name,
                showlegend=column == 1,
                line={"color": colour, "width": width},
                hovertemplate=f"%{{x:,}} samples<br>{name}: %{{y:.3g}}<extra></extra>",
                **where,
            )
            if at is not None:
                figure.add_scatter(
                    x=[at],
                    y=[1 / one.alpha],
                    mode="markers",
                    legendgroup=name,
                    showlegend=False,
                    marker={"color": colour, "symbol": symbol, "size": points},
                    hovertemplate=f"{name} crosses at {at:,} samples<extra></extra>",
                    **where,
                )
        figure.add_scatter(  # add_hline would place its words at 10 to the power of 1/alpha
            x=[0, int(one.n[-1])],
            y=[1 / one.alpha] * 2,
            mode="lines",
            name=f"1/α = {1 / one.alpha:g}",
            legendgroup="line",
            showlegend=column == 1,
            hoverinfo="name",
            line={"color": colours.text, "dash": "dash", "width": 1.5},
            **where,
        )
        figure.update_xaxes(title="samples", gridcolor=colours.line, **where)
        figure.update_yaxes(type="log", exponentformat="power", gridcolor=colours.line, **where)
    figure.update_yaxes(title="evidence: 1/p and e", row=1, col=1)
    figure.update_annotations(font={"size": 1.3 * points, "color": colours.text})
    figure.update_layout(
        font={"size": 1.3 * points, "color": colours.text},
        paper_bgcolor=colours.background,
        plot_bgcolor=colours.background,
        legend={"orientation": "h", "y": -0.2},
        margin={"t": 110},
    )
    return figure
