"""Evidence while samples arrive: a p-value looked at again and again, and an e-process.

Both are drawn on one axis of evidence: 1/p and e. A p-value may be looked at once, so that its line
crosses 1/alpha for right samplers too, sooner or later; an e-process crosses it with probability
alpha at most, however often one looks (Ville 1939; Lindon & Malek 2022).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from specviz.core.contract import FloatArray, IntArray
from specviz.figures.theme import FONT_POINTS, Palette, palette
from specviz.figures.theme import size as size_of
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
class EvidenceData:
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
        return out[0], out[1]


@overload
def evidence_over_samples(
    streams: Any,
    distribution: Any,
    *,
    alpha: float = ...,
    every: int | None = ...,
    ax: Axes | None = ...,
    backend: Literal["matplotlib"] = ...,
    size: str = ...,
    dark: bool = ...,
) -> Axes | Figure: ...
@overload
def evidence_over_samples(
    streams: Any,
    distribution: Any,
    *,
    alpha: float = ...,
    every: int | None = ...,
    backend: Literal["plotly"],
    size: str = ...,
    dark: bool = ...,
) -> go.Figure: ...
def evidence_over_samples(
    streams: Any,
    distribution: Any,
    *,
    alpha: float = 0.01,
    every: int | None = None,
    ax: Axes | None = None,
    backend: str = "matplotlib",
    size: str = "paper",
    dark: bool = False,
) -> Any:
    """Draw the evidence against a distribution over samples.

    For one sampler or several side by side.

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
    ax : matplotlib Axes, optional
        Where to draw a single stream; by default a new figure.
    backend : {"matplotlib", "plotly"}
        For print, or for looking closer.
    size : {"paper", "slide"}
        Of a new figure, and of the letters.
    dark : bool
        For a dark background.

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
    if backend not in ("matplotlib", "plotly"):
        raise ValueError(f"backend must be 'matplotlib' or 'plotly', got {backend!r}")
    if backend == "plotly" and ax is not None:
        raise ValueError("ax is for backend='matplotlib'; with plotly a new figure is returned")
    several = isinstance(streams, Mapping)
    if several and ax is not None:
        raise ValueError("ax takes one stream: call it once for each of several Axes")
    width, height = size_of(size)
    named = dict(streams) if several else {"": streams}
    if not named:
        raise ValueError("streams is empty: name at least one sampler's samples")
    data = [
        evidence_data(stream, distribution, alpha=alpha, every=every, name=str(name))
        for name, stream in named.items()
    ]
    colours, points = palette(dark), FONT_POINTS[size]
    if backend == "plotly":
        from specviz.figures._evidence_over_samples_plotly import draw

        return draw(data, colours, points)
    if not several:
        from specviz.figures._canvas import new_axes

        ax = ax if ax is not None else new_axes((width, height), colours)
        _panel(ax, data[0], colours, points)
        _legend(ax, colours, points)
        return ax
    return _panels(data, colours, (width, height), points)


def evidence_data(
    stream: Any, distribution: Any, *, alpha: float = 0.01, every: int | None = None, name: str = ""
) -> EvidenceData:
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
    return EvidenceData(
        name=name,
        n=looks.n,
        p=looks.p,
        log_e=log_e[looks.n - 1],
        alpha=alpha,
        p_crossed=looks.first_below(alpha),
        e_crossed=watch.crossed_at,
    )


def _panels(
    data: list[EvidenceData], colours: Palette, inches: tuple[float, float], points: float
) -> Figure:
    from matplotlib import pyplot

    width, height = inches
    figure, grid = pyplot.subplots(
        1, len(data), figsize=(max(width, 0.72 * width * len(data)), height),
        sharey=True, squeeze=False, layout="constrained",
    )  # fmt: skip
    figure.set_facecolor(colours.background)
    for ax, one in zip(grid[0], data, strict=True):
        ax.set_facecolor(colours.background)
        _panel(ax, one, colours, points)
    low = min(float(one.against_e.min()) for one in data)
    grid[0, 0].set_ylim(_limits(low, data[0].alpha))
    for ax in grid[0, 1:]:
        ax.set_ylabel("")
    _legend(grid[0, 0], colours, points)
    return figure


def _limits(low: float, alpha: float) -> tuple[float, float]:
    return min(0.5, 0.6 * low), 1.6 * CEILING / alpha


def _panel(ax: Axes, data: EvidenceData, colours: Palette, points: float) -> None:
    from matplotlib.ticker import MaxNLocator

    from specviz.figures._canvas import safe_text

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
        fontsize=0.9 * points, transform=ax.get_yaxis_transform(), zorder=5,
        bbox={"facecolor": colours.background, "edgecolor": "none", "alpha": 0.8, "pad": 1},
    )  # fmt: skip
    ax.set_xlabel("samples", color=colours.text, fontsize=points)
    ax.set_ylabel("evidence: 1/p and e", color=colours.text, fontsize=points)
    ax.tick_params(which="both", colors=colours.muted, labelsize=0.9 * points, length=2)
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["bottom", "left"]].set_color(colours.line)
    lines = [*([data.name] if data.name else []), *data.says]
    ax.set_title("\n".join(map(safe_text, lines)), loc="left", color=colours.text, fontsize=points)


def _legend(ax: Axes, colours: Palette, points: float) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=colours.rejected, linewidth=0.9, marker="X",
               label="1/p, p looked at again and again"),
        Line2D([], [], color=colours.accepted, linewidth=2.2, marker="o", label="e-process"),
    ]  # fmt: skip
    ax.legend(
        handles=handles, loc="upper left", bbox_to_anchor=(0, -0.17), ncols=2, borderpad=0,
        frameon=False, fontsize=0.9 * points, labelcolor=colours.text,
    )  # fmt: skip
