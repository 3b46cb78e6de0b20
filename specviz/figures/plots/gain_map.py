"""When speculative decoding pays: the best gain, and the gamma that gives it, over alpha and c.

Leviathan et al. (2023): expected gain (1 − a^(g+1)) / ((1 − a)(g c + 1)) (Theorem 3.8), with the
gamma that makes it largest (their Figures 3 and 4). Below c = alpha nothing is won (Corollary 3.9).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from specviz.core.checks import number, whole
from specviz.core.contract import FloatArray, IntArray
from specviz.core.formatting import format_number
from specviz.figures.drawing import Look, figure, plotly_text
from specviz.theory import speedup

if TYPE_CHECKING:
    import plotly.graph_objects as go
    from matplotlib.axes import Axes

    from specviz.core.trace.trace import Trace

LEVELS = (1.5, 2.0, 3.0, 4.0, 6.0)
"""Gains that have a line of their own, besides the one along which nothing is won."""
ROWS, BETWEEN = (0.12, 0.315, 0.51, 0.705, 0.9), (0.41, 0.22, 0.05)
"""Where the best gammas stand, and the lines' names: shares of the axis of c."""


@dataclass(frozen=True)
class GainMapData:
    """What the figure shows, without drawing it.

    ``alpha`` ``(a,)`` and ``c`` ``(b,)`` span the map; ``gain`` ``(b, a)`` is the largest expected
    gain (1 where nothing is won), ``gamma`` ``(b, a)`` the number of proposals that gives it (0
    where nothing is won). ``measured`` is alpha and c of a run, and the gamma that is best there.
    """

    alpha: FloatArray
    c: FloatArray
    gain: FloatArray
    gamma: IntArray
    measured: tuple[float, float, int] | None

    @property
    def title(self) -> str:
        """What is drawn, and where the run stands."""
        title = "Largest expected gain, and the gamma that gives it (theory)"
        if self.measured is None:
            return title
        alpha, c, gamma = self.measured
        where = f"alpha = {format_number(alpha, 3)}, c = {format_number(c, 3)}"
        best = f"best gamma {gamma}" if gamma else "no gamma pays"
        return f"{title}\nthis run: {where}: {best}"


def _draw(data: GainMapData, ax: Axes | None, look: Look) -> Axes:
    ax, colours, points = look.axes(ax), look.colours, look.points
    from matplotlib.colors import LinearSegmentedColormap

    shades = LinearSegmentedColormap.from_list("gain", [colours.background, colours.accepted])
    ax.pcolormesh(
        data.alpha, data.c, np.log(data.gain), cmap=shades, shading="gouraud", vmin=0,
        vmax=np.log(8), rasterized=True,
    )  # fmt: skip
    ax.plot([0, 1], [0, 1], color=colours.text, linewidth=0.11 * points)  # alpha = c: nothing won
    lines = ax.contour(
        data.alpha, data.c, data.gain, levels=LEVELS, colors=colours.text, linewidths=0.11 * points
    )
    names = {level: f"{level:g}×" for level in LEVELS}
    ax.clabel(
        lines, fmt=names, fontsize=points, colors=colours.text,
        manual=list(_places(data)),
    )  # fmt: skip
    _gammas(ax, data, look)
    if data.measured is not None:
        alpha, c, _ = data.measured
        ax.plot(
            alpha, c, "D", color=colours.q, markersize=0.8 * points,
            markeredgecolor=colours.text, clip_on=False, zorder=5, label="this run, measured",
        )  # fmt: skip
        look.legend(ax, 1)
    ax.set(xlim=(data.alpha[0], data.alpha[-1]), ylim=(data.c[0], data.c[-1]))
    look.frame(ax, "alpha: chance that a proposal is accepted", "c: draft time / target time",
               left=True)  # fmt: skip
    look.title(ax, data.title)
    return ax


def _places(data: GainMapData) -> Iterator[tuple[float, float]]:
    """Yield a place on each line, between the rows of numbers."""
    for level in LEVELS:
        for share in BETWEEN:
            row = int(share * (len(data.c) - 1))
            column = int(np.searchsorted(data.gain[row], level))
            if column < len(data.alpha) - 2:
                yield float(data.alpha[column]), float(data.c[row])
                break


def _gammas(ax: Axes, data: GainMapData, look: Look) -> None:
    """Write the best gamma in a grid; a dot where nothing is won."""
    from matplotlib.patheffects import withStroke

    halo = [withStroke(linewidth=0.4 * look.points, foreground=look.colours.background)]
    for i in ROWS:
        for j in np.linspace(0.08, 0.94, 8):
            row, column = int(i * (len(data.c) - 1)), int(j * (len(data.alpha) - 1))
            gamma = int(data.gamma[row, column])
            ax.text(
                data.alpha[column], data.c[row], str(gamma) if gamma else "·", ha="center",
                va="center", color=look.colours.text, fontsize=look.points,
                fontweight="bold", path_effects=halo,
            )  # fmt: skip


def _plotly(data: GainMapData, look: Look) -> go.Figure:
    import plotly.graph_objects as go

    colours = look.colours
    drawn = go.Figure()
    drawn.add_heatmap(
        x=data.alpha, y=data.c, z=data.gain, customdata=data.gamma, zmin=1, zmax=8,
        colorscale=[[0, colours.background], [1, colours.accepted]], colorbar={"title": "gain"},
        hovertemplate="alpha %{x:.2f}, c %{y:.3f}<br>best gamma %{customdata}, gain %{z:.2f}×"
        "<extra></extra>",
    )  # fmt: skip
    if data.measured is not None:
        drawn.add_scatter(
            x=[data.measured[0]], y=[data.measured[1]], mode="markers", name="this run, measured",
            marker={"color": colours.q, "symbol": "diamond", "size": look.points},
        )  # fmt: skip
    return look.plotly(
        drawn,
        title=plotly_text(data.title),
        xaxis={"title": "alpha: chance that a proposal is accepted"},
        yaxis={"title": "c: draft time / target time"},
    )


@figure(_draw, _plotly)
def gain_map(
    trace: Trace | None = None, *, highest_c: float = 0.5, highest_gamma: int = 50
) -> GainMapData:
    """Draw the largest expected gain over alpha and c, and the gamma that gives it.

    The map is theory: it takes alpha as the same at every position, and verifying gamma + 1 tokens
    to cost one target pass. Numbers in it are the best gamma; a dot says that none pays.

    Parameters
    ----------
    trace : Trace, optional
        A run whose measured alpha and c are marked.
    highest_c : float
        Where the axis of c ends: time of one proposal / time of one target pass.
    highest_gamma : int
        No larger gamma is tried.

    Returns
    -------
    matplotlib Axes, or plotly Figure; ``gain_map.data`` returns :class:`GainMapData`

    Raises
    ------
    ValueError
        If a setting is out of range, or the run measured no alpha or no c.

    Examples
    --------
    >>> data = gain_map.data()
    >>> bool(data.gain.min() == 1.0), int(data.gamma[0].max())
    (True, 50)
    """
    number("highest_c", highest_c, above=0, at_most=10)
    whole("highest_gamma", highest_gamma, 1, 200)
    alpha, c = np.linspace(0.02, 0.99, 98), np.linspace(0.0, highest_c, 101)
    gammas = np.arange(1, highest_gamma + 1)
    gains = speedup(alpha[None, :, None], gammas, c[:, None, None])  # (c, alpha, gamma)
    gain = gains.max(axis=2)
    pays = gain > 1 + 1e-9
    measured = None
    if trace is not None:
        numbers = trace.measures()
        here, cost = numbers["alpha"].value, numbers["draft_cost"].value
        if here is None or cost is None:
            raise ValueError("trace has no measured alpha or no times, so it has no place here")
        mine = speedup(float(here), gammas, float(cost))
        best = int(gammas[int(np.argmax(mine))]) if mine.max() > 1 else 0
        measured = (float(here), float(cost), best)
    return GainMapData(
        alpha=alpha,
        c=c,
        gain=np.where(pays, gain, 1.0),
        gamma=np.where(pays, gammas[gains.argmax(axis=2)], 0),
        measured=measured,
    )
