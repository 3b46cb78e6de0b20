"""The gain against gamma: what theory promises at one alpha and c, and what runs really took.

Leviathan et al. (2023), theorem 3.8: expected tokens / (gamma c + 1). Its 1 says that verifying
gamma + 1 tokens costs no more than a pass over one; with v, the measured cost of such a pass in
target-only tokens, it is expected tokens / (gamma c + v).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from specviz.core.checks import number, whole
from specviz.core.contract import FloatArray, IntArray
from specviz.core.formatting import format_number
from specviz.figures.drawing import Look, figure, plotly_text, safe_text
from specviz.figures.measured import accepted_lengths, baseline_of, gain_of, traces_of
from specviz.figures.plots.acceptance import alpha_of
from specviz.figures.summary import target_alone
from specviz.theory import best_gamma, speedup

if TYPE_CHECKING:
    import plotly.graph_objects as go
    from matplotlib.axes import Axes

    from specviz.core.trace.trace import Trace


@dataclass(frozen=True)
class GainByGammaData:
    """What the figure shows, without drawing it.

    ``gammas`` ``(g,)``; ``ideal`` the expected gain where verifying costs one pass, ``costly`` with
    the measured ``v`` (None without times). ``best`` is the gamma that is best for ``ideal``, 0
    where none pays. ``points`` are runs: name, gamma, and their measured gain with its 95% bounds.
    """

    alpha: float
    c: float
    v: float | None
    gammas: IntArray
    ideal: FloatArray
    costly: FloatArray | None
    best: int
    points: list[tuple[str, float, tuple[float, float, float]]]

    @property
    def title(self) -> str:
        """Alpha, c, and the best gamma."""
        a, c = format_number(self.alpha, 3), format_number(self.c)
        best = f"best gamma {self.best}" if self.best else "no gamma pays"
        return f"Gain over the target alone, alpha = {a}, c = {c}: {best}"

    @property
    def alt(self) -> str:
        """What was measured."""
        return "; ".join(
            f"{name}: {format_number(gain, 3)}× at gamma {gamma:.3g}"
            for name, gamma, (gain, _, _) in self.points
        )


def _draw(data: GainByGammaData, ax: Axes | None, look: Look) -> Axes:
    ax, colours, points = look.axes(ax), look.colours, look.points
    ax.axhline(1, color=colours.muted, linewidth=0.12 * points)
    ax.plot(data.gammas, data.ideal, color=colours.accepted, linewidth=0.22 * points,
            label="theory: verifying costs one pass")  # fmt: skip
    if data.costly is not None:
        ax.plot(data.gammas, data.costly, color=colours.rejected, linestyle=(0, (5, 2)),
                linewidth=0.2 * points,
                label=f"theory, measured v = {format_number(cast(float, data.v))}")  # fmt: skip
    if data.best:
        top = float(data.ideal.max())
        ax.plot(data.best, top, "*", color=colours.accepted_ink, markersize=1.3 * points, zorder=4)
        ax.annotate(f"γ = {data.best}: {format_number(top)}×", (data.best, top), ha="center",
                    xytext=(0, 0.8 * points), textcoords="offset points",
                    **look.words())  # fmt: skip
    for i, (name, gamma, (gain, low, high)) in enumerate(data.points):
        ax.errorbar(gamma, gain, yerr=[[max(0, gain - low)], [max(0, high - gain)]],
                    fmt="Dosv^P"[i % 6], color=colours.q_ink, markersize=0.75 * points,
                    elinewidth=0.15 * points, capsize=0.25 * points, zorder=5,
                    label=safe_text(f"{name}, measured"))  # fmt: skip
    tops = [float(data.ideal.max()), *(high for _, _, (_, _, high) in data.points)]
    ax.set(xlim=(0.5, data.gammas[-1] + 0.5), ylim=(0, 1.15 * max(tops)))
    look.frame(ax, "gamma: tokens drafted in a round", "gain, ×", left=True)
    look.legend(ax, 1)
    look.title(ax, data.title)
    return ax


def _plotly(data: GainByGammaData, look: Look) -> go.Figure:
    import plotly.graph_objects as go

    drawn = go.Figure()
    lines = [("theory: verifying costs one pass", data.ideal, look.colours.accepted, "solid")]
    if data.costly is not None:
        lines.append((f"theory with v = {data.v:.2f}", data.costly, look.colours.rejected, "dash"))
    for name, line, colour, dash in lines:
        drawn.add_scatter(x=data.gammas, y=line, mode="lines", name=name,
                          line={"color": colour, "dash": dash},
                          hovertemplate="γ = %{x}: %{y:.2f}×<extra></extra>")  # fmt: skip
    for name, gamma, (gain, low, high) in data.points:
        error = {"array": [high - gain], "arrayminus": [gain - low]}
        drawn.add_scatter(x=[gamma], y=[gain], error_y=error, mode="markers",
                          name=plotly_text(f"{name}, measured"),
                          marker={"color": look.colours.q, "size": look.points},
                          hovertemplate="measured: %{y:.2f}×<extra></extra>")  # fmt: skip
    return look.plotly(drawn, title=plotly_text(data.title), yaxis={"title": "gain, ×"},
                       xaxis={"title": "gamma: tokens drafted in a round"})  # fmt: skip


@figure(_draw, _plotly)
def gain_by_gamma(
    traces: Trace | Any = (), *, alpha: float | None = None, c: float | None = None,
    highest_gamma: int = 16,
) -> GainByGammaData:  # fmt: skip
    """Draw the gain over the target alone against gamma, with the best gamma and measured runs.

    Parameters
    ----------
    traces : Trace, or sequence or mapping of them
        Runs with times, for example of several gammas; the first that has them gives alpha, c and
        v. A target-only run among them, or on record in one, is what gains are measured against.
    alpha, c : float, optional
        Instead of measured ones; both are needed where no run is given.
    highest_gamma : int
        Where the axis ends.

    Returns
    -------
    matplotlib Axes, or plotly Figure

    Raises
    ------
    TypeError, ValueError
        If alpha or c is neither given nor measured, or out of range.

    Examples
    --------
    >>> gain_by_gamma.data(alpha=0.8, c=0.05).best
    8
    """
    whole("highest_gamma", highest_gamma, 1, 200)
    runs = {} if isinstance(traces, tuple) and not traces else traces_of(traces)
    drafted = {name: run for name, run in runs.items() if len(run.node_table)}
    if alpha is None:
        alpha = next((a for a in map(alpha_of, drafted.values()) if a is not None), None)
    if c is None:
        costs = (run.measures()["draft_cost"].value for run in drafted.values())
        c = next((cast(float, cost) for cost in costs if cost is not None), None)
    if alpha is None or c is None:
        raise ValueError("alpha and c must be given, or traces must hold a run that measured them")
    alpha = number("alpha", alpha, at_least=0, at_most=1)
    c = number("c", c, at_least=0)
    base = baseline_of(runs)
    points, v = [], None
    for name, run in drafted.items():
        if base is None or target_alone(run):
            continue
        _, heights = accepted_lengths(run)
        points.append((name, float(heights[heights > 0].mean()), gain_of(run, base)))
        if v is None:
            passes = run.round_table["verify_seconds"][heights > 0].astype(np.float64)
            v = float(np.mean(passes[1:] if len(passes) > 1 else passes)) / base
    gammas = np.arange(1, highest_gamma + 1)
    return GainByGammaData(
        alpha=alpha, c=c, v=v, gammas=gammas, ideal=speedup(alpha, gammas, c),
        costly=None if v is None else speedup(alpha, gammas, c * v, v),
        best=best_gamma(alpha, c), points=points,
    )  # fmt: skip
