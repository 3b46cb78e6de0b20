"""Evidence while samples arrive: a p-value looked at again and again, and an e-process.

Both are drawn on one axis of evidence: 1/p and e. A p-value may be looked at once, so that its line
crosses 1/alpha for right samplers too, sooner or later; an e-process crosses it with probability
alpha at most, however often one looks (Ville 1939; Lindon & Malek 2022).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from specviz.core.contract import FloatArray, IntArray
from specviz.figures.drawing import Look, figure, only_panels, plotly_text
from specviz.figures.theme import Palette
from specviz.lossless.statistics.eprocess import EProcess, peeking
from specviz.lossless.statistics.pooling import pool_rare

if TYPE_CHECKING:
    import plotly.graph_objects as go
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LOOKS = 800
"""How many looks there are by default."""

CEILING, BOTTOM = 1e4, 1e-3
"""Evidence is drawn up to so many times 1/alpha, and down to so little; lines run along there."""

SHARES = (0.2, 0.5)
"""Cells that expect fewer than five in such a share of the samples are one cell for the p-value:
the first share that leaves two cells or more."""


@dataclass(frozen=True)
class EvidencePanel:
    """What one panel shows, without drawing it.

    ``n`` (samples so far), ``p`` (the p-value, NaN while a cell expects fewer than five) and
    ``log_e`` (natural logarithm of the e-value) have one entry per look. ``p_crossed`` is the first
    look at which p fell below alpha, ``e_crossed`` the sample with which e reached 1/alpha; None
    if that did not happen. ``p_last`` is the p-value of the last look.
    """

    name: str
    n: IntArray
    p: FloatArray
    log_e: FloatArray
    alpha: float
    p_crossed: int | None
    e_crossed: int | None

    @property
    def against_p(self) -> FloatArray:
        """``(looks,)`` 1/p, as drawn."""
        with np.errstate(divide="ignore", over="ignore"):
            return np.clip(1 / self.p, BOTTOM, CEILING / self.alpha)

    @property
    def against_e(self) -> FloatArray:
        """``(looks,)`` e, as drawn."""
        return np.exp(np.clip(self.log_e, np.log(BOTTOM), np.log(CEILING / self.alpha)))

    @property
    def says(self) -> tuple[str, str]:
        """When each line crossed, in words."""
        out = []
        for name, at in (("p-value, peeked at", self.p_crossed), ("e-process", self.e_crossed)):
            out.append(f"{name}: " + ("never crosses" if at is None else f"crosses at {at:,}"))
        top = np.log(CEILING / self.alpha)
        if self.log_e.max() > top:  # the line runs along the upper edge from there on
            out[1] += f",\nreaches 10^{self.log_e.max() / np.log(10):.0f} (cut off here)"
        return out[0], out[1]


@dataclass(frozen=True)
class EvidenceData:
    """The panels of the figure: one of a single stream, or one per named stream."""

    panels: list[EvidencePanel]
    several: bool


def evidence_panel(
    stream: Any, distribution: Any, *, alpha: float = 0.01, every: int | None = None, name: str = ""
) -> EvidencePanel:
    """Return what one panel of :func:`evidence_over_samples` draws."""
    cells = np.asarray(stream)
    watch = EProcess(distribution, alpha=alpha)
    step = max(1, len(cells) // LOOKS) if every is None else every
    if step < 1 or cells.ndim != 1 or len(cells) < step:
        raise ValueError(
            f"streams needs samples in one row, at least as many as every={step}, got shape "
            f"{cells.shape}"
        )
    log_e = watch.update_log(cells)  # also refuses what is no cell of the distribution
    every_pooling = [pool_rare(share * len(cells) * watch.distribution) for share in SHARES]
    pooling = next((one for one in every_pooling if one.cells > 1), None)
    if pooling is None:
        raise ValueError(
            f"streams has {len(cells):,} samples, too few for a p-value: in half of them at least "
            f"two cells of the distribution must expect five"
        )
    looks = peeking(pooling.label[cells], pooling.pool(watch.distribution), every=step)
    return EvidencePanel(
        name=name,
        n=looks.n,
        p=looks.p,
        log_e=log_e[looks.n - 1],
        alpha=alpha,
        p_crossed=looks.first_below(alpha),
        e_crossed=watch.crossed_at,
    )


def _draw(data: EvidenceData, ax: Axes | None, look: Look) -> Axes | Figure:
    if not data.several:
        ax = look.axes(ax)
        _panel(ax, data.panels[0], look)
        look.legend(ax, 2, handles=_handles(look.colours))
        return ax
    only_panels(ax, "a mapping of streams")
    panels = data.panels
    figure, grid = look.panels(1, len(panels), width=max(1.0, 0.72 * len(panels)), sharey=True)
    for ax, one in zip(grid[0], panels, strict=True):
        _panel(ax, one, look)
    low = min(float(one.against_e.min()) for one in panels)
    grid[0, 0].set_ylim(_limits(low, panels[0].alpha))
    for ax in grid[0, 1:]:
        ax.set_ylabel("")
    look.legend(grid[0, 0], 2, handles=_handles(look.colours))
    return figure


def _limits(low: float, alpha: float) -> tuple[float, float]:
    return min(0.5, 0.6 * low), 1.6 * CEILING / alpha


def _panel(ax: Axes, data: EvidencePanel, look: Look) -> None:
    from matplotlib.ticker import MaxNLocator

    colours, points = look.colours, look.points
    line = 1 / data.alpha
    ax.set_yscale("log")
    ax.axhspan(line, 2 * CEILING / data.alpha, color=colours.rejected, alpha=0.07, linewidth=0)
    ax.axhline(line, color=colours.text, linewidth=1, linestyle=(0, (6, 3)))
    for values, at, colour, width, marker in (
        (data.against_e, data.e_crossed, colours.accepted, 2.2, "o"),
        (data.against_p, data.p_crossed, colours.rejected, 0.9, "X"),
    ):
        ax.plot(data.n, values, color=colour, linewidth=width, solid_joinstyle="round")
        if at is not None:
            ax.plot(
                at, line, marker, color=colour, markersize=0.9 * points,
                markeredgecolor=colours.background, zorder=4,
            )  # fmt: skip
    ax.set_xlim(0, int(data.n[-1]))
    ax.xaxis.set_major_locator(MaxNLocator(4))
    ax.set_ylim(_limits(float(data.against_e.min()), data.alpha))
    ax.text(
        0.99, line * 1.15, f"1/α = {line:g}", ha="right", va="bottom", color=colours.text,
        fontsize=points, transform=ax.get_yaxis_transform(), zorder=5,
        bbox={"facecolor": colours.background, "edgecolor": "none", "alpha": 0.8, "pad": 1},
    )  # fmt: skip
    look.frame(ax, "samples", "evidence: 1/p and e", left=True)
    look.title(ax, "\n".join([*([data.name] if data.name else []), *data.says]))


def _handles(colours: Palette) -> list[Any]:
    from matplotlib.lines import Line2D

    return [
        Line2D([], [], color=colours.rejected, linewidth=0.9, marker="X",
               label="1/p, p looked at again and again"),
        Line2D([], [], color=colours.accepted, linewidth=2.2, marker="o", label="e-process"),
    ]  # fmt: skip


def _plotly(data: EvidenceData, look: Look) -> go.Figure:
    """Return the figure: a panel per sampler; lines say their numbers when pointed at."""
    from plotly.subplots import make_subplots

    colours, points = look.colours, look.points
    panels = data.panels
    titles = [plotly_text("\n".join((one.name, *one.says))) for one in panels]
    figure = make_subplots(rows=1, cols=len(panels), shared_yaxes=True, subplot_titles=titles)
    for column, one in enumerate(panels, start=1):
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
    return look.plotly(figure, legend={"orientation": "h", "y": -0.2}, margin={"t": 110})


@figure(_draw, _plotly)
def evidence_over_samples(
    streams: Any, distribution: Any, *, alpha: float = 0.01, every: int | None = None
) -> EvidenceData:
    """Draw the evidence against a distribution as samples arrive, one sampler or several.

    Parameters
    ----------
    streams : array ``(samples,)``, or mapping of name to array
        Cells (tokens of one position, or numbers of whole texts) in the order drawn. A mapping,
        such as ``{"right": …, "broken": …}``, gives a panel per sampler.
    distribution : array ``(cells,)``
        The target's distribution of the cells. Rare ones are one cell for the p-value
        (:data:`SHARES`).
    alpha : float
        Level; the line is at 1/alpha.
    every : int, optional
        The p-value is looked at after each so many samples; by default 800 looks.

    Returns
    -------
    matplotlib Axes (one stream) or Figure (a mapping), or plotly Figure

    Raises
    ------
    ValueError
        If there is no stream, one has fewer samples than a look needs, a cell is outside the
        distribution, or a setting is out of range.

    Examples
    --------
    >>> coin = np.random.default_rng(0).integers(0, 2, size=400)
    >>> evidence_over_samples(coin, [0.5, 0.5], every=4).get_xlabel()
    'samples'
    """
    several = isinstance(streams, Mapping)
    named = dict(streams) if several else {"": streams}
    if not named:
        raise ValueError("streams is empty: name at least one sampler's samples")
    panels = [
        evidence_panel(stream, distribution, alpha=alpha, every=every, name=str(name))
        for name, stream in named.items()
    ]
    return EvidenceData(panels, several)
