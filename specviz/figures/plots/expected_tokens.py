"""Expected tokens per target pass against alpha, a line per gamma, and where runs lie.

Leviathan et al. (2023), equation 1: (1 − a^(g+1)) / (1 − a), with its limit 1 / (1 − a). It takes
alpha as the same and independent at every position; a run off its line has an alpha that is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from specviz.core.checks import whole
from specviz.core.contract import FloatArray
from specviz.core.formatting import format_number
from specviz.figures.drawing import Look, figure, plotly_text, safe_text
from specviz.figures.measured import (
    accepted_lengths,
    examined_overlaps,
    mean_interval,
    traces_of,
)
from specviz.theory import expected_tokens as expected

if TYPE_CHECKING:
    import plotly.graph_objects as go
    from matplotlib.axes import Axes

    from specviz.core.trace.trace import Trace

GAMMAS = (1, 2, 3, 5, 10)
MARKERS = "Dosv^P"


@dataclass(frozen=True)
class MeasuredRun:
    """A run's place: alpha and tokens per pass, each with its 95% bounds.

    ``gamma`` is the mean number of positions that a round proposed, ``theory`` what that gives at
    alpha.
    """

    name: str
    alpha: tuple[float, float, float]
    tokens: tuple[float, float, float]
    gamma: float
    theory: float
    rounds: int


@dataclass(frozen=True)
class ExpectedTokensData:
    """What the figure shows: ``alpha`` ``(a,)``, ``tokens`` ``(len(gammas), a)``, and the runs."""

    alpha: FloatArray
    gammas: tuple[int, ...]
    tokens: FloatArray
    runs: list[MeasuredRun]

    @property
    def title(self) -> str:
        """What is drawn, and the one run's numbers."""
        title = "Expected tokens per target pass, (1 − α^(γ+1)) / (1 − α)"
        if len(self.runs) != 1:
            return title
        (run,) = self.runs
        measured, low, high = (format_number(x, 3) for x in run.tokens)
        return (
            f"{title}\nthis run: {measured} ({low} to {high}); "
            f"theory at its alpha and gamma: {format_number(run.theory, 3)}"
        )

    @property
    def alt(self) -> str:
        """Every run's place."""
        return "; ".join(
            f"{run.name}: alpha {format_number(run.alpha[0], 3)}, {format_number(run.tokens[0], 3)}"
            f" tokens per pass, theory {format_number(run.theory, 3)}"
            for run in self.runs
        )


def _draw(data: ExpectedTokensData, ax: Axes | None, look: Look) -> Axes:
    ax, colours, points = look.axes(ax), look.colours, look.points
    top = max([float(data.tokens.max()), *(run.tokens[0] for run in data.runs)])
    with np.errstate(divide="ignore"):
        limit = 1 / (1 - data.alpha)
    ax.plot(data.alpha, limit, color=colours.muted, linestyle=":", linewidth=0.15 * points)
    where = float(1 - 1 / (0.93 * top))
    ax.text(where - 0.012, 0.93 * top, "γ → ∞", ha="right", va="center",
            **look.words(color=colours.muted))  # fmt: skip
    for i, line in enumerate(data.tokens):
        shade = 0.35 + 0.65 * i / max(1, len(data.gammas) - 1)
        ax.plot(data.alpha, line, color=colours.p, alpha=shade, linewidth=0.2 * points)
    heights = _apart([gamma + 1 for gamma in data.gammas], 0.075 * top)
    for gamma, height in zip(data.gammas, heights, strict=True):
        ax.text(1.012, height, f"γ = {gamma}", va="center", **look.words(color=colours.p_ink))
    for run, marker in zip(data.runs, MARKERS * len(data.runs), strict=False):
        sides = [np.array([[b[0] - b[1]], [b[2] - b[0]]]) for b in (run.alpha, run.tokens)]
        xerr, yerr = (np.nan_to_num(np.maximum(one, 0)) for one in sides)
        ax.errorbar(run.alpha[0], run.tokens[0], xerr=xerr, yerr=yerr, fmt=marker,
                    color=colours.q_ink, markersize=0.75 * points, elinewidth=0.15 * points,
                    capsize=0.25 * points, zorder=5, label=safe_text(run.name))  # fmt: skip
    ax.set(xlim=(float(data.alpha[0]), 1), ylim=(1, 1.02 * top))
    look.frame(ax, "alpha: chance that a proposal is accepted", "tokens per pass", left=True)
    if data.runs:
        look.legend(ax, 2 if len(data.runs) > 1 else 1)
    look.title(ax, data.title)
    return ax


def _apart(heights: Sequence[float], least: float) -> list[float]:
    """Return heights moved upwards until no two are closer than ``least``."""
    out: list[float] = []
    for height in heights:
        out.append(max(height, out[-1] + least) if out else height)
    return out


def _plotly(data: ExpectedTokensData, look: Look) -> go.Figure:
    import plotly.graph_objects as go

    drawn = go.Figure()
    for i, (gamma, line) in enumerate(zip(data.gammas, data.tokens, strict=True)):
        drawn.add_scatter(x=data.alpha, y=line, mode="lines", name=f"γ = {gamma}",
                          opacity=0.35 + 0.65 * i / max(1, len(data.gammas) - 1),
                          line={"color": look.colours.p},
                          hovertemplate=f"γ = {gamma}, α = %{{x:.2f}}: %{{y:.2f}}<extra></extra>",
                          )  # fmt: skip
    for run in data.runs:
        errors: list[dict[str, Any]] = [
            {"array": [b[2] - b[0]], "arrayminus": [b[0] - b[1]]} for b in (run.alpha, run.tokens)
        ]
        drawn.add_scatter(x=[run.alpha[0]], y=[run.tokens[0]], error_x=errors[0],
                          error_y=errors[1], mode="markers", name=plotly_text(run.name),
                          marker={"color": look.colours.q, "size": look.points},
                          hovertemplate=f"α = %{{x:.3f}}: %{{y:.2f}} tokens per pass<br>theory "
                          f"{run.theory:.2f}, {run.rounds:,} rounds<extra></extra>")  # fmt: skip
    return look.plotly(
        drawn, title=plotly_text(data.title), yaxis={"title": "tokens per target pass"},
        xaxis={"title": "alpha: chance that a proposal is accepted"},
    )  # fmt: skip


@figure(_draw, _plotly)
def expected_tokens(
    traces: Trace | Any = (), *, gammas: Sequence[int] = GAMMAS
) -> ExpectedTokensData:
    """Draw expected tokens per target pass against alpha, a line per gamma, with runs on it.

    Parameters
    ----------
    traces : Trace, or sequence or mapping of them
        Runs to place on it, with 95% intervals over rounds; none for theory alone.
    gammas : sequence of int
        Which lines.

    Returns
    -------
    matplotlib Axes, or plotly Figure

    Raises
    ------
    TypeError, ValueError
        If a gamma is no whole number from 1 on, or a run proposed nothing.

    Examples
    --------
    >>> data = expected_tokens.data(gammas=[5])
    >>> round(float(np.interp(0.8, data.alpha, data.tokens[0])), 2)
    3.69
    """
    lines = tuple(sorted({whole("gammas", gamma, 1, 200) for gamma in gammas}))
    if not lines:
        raise ValueError("gammas is empty: name at least one")
    alpha = np.linspace(0, 1, 201)
    runs = [] if isinstance(traces, tuple) and not traces else [
        measured_run(name, trace) for name, trace in traces_of(traces).items()
    ]  # fmt: skip
    tokens = np.stack([expected(alpha, gamma) for gamma in lines])
    return ExpectedTokensData(alpha, lines, tokens, runs)


def measured_run(name: str, trace: Trace) -> MeasuredRun:
    """Return where a run lies; tokens per pass as papers count them, the end cutting nothing."""
    overlaps = examined_overlaps(trace)
    lengths, heights = accepted_lengths(trace)
    lengths, heights = lengths[heights > 0], heights[heights > 0]
    if not len(overlaps) or not len(heights):
        raise ValueError(f"{name} has no examined proposals, so it has no alpha")
    alpha = mean_interval(overlaps)
    alpha = (alpha[0], max(0.0, alpha[1]), min(1.0, alpha[2]))
    theory = float(np.mean(expected(min(1.0, alpha[0]), heights)))
    tokens = mean_interval(1 + lengths.astype(np.float64))
    return MeasuredRun(name, alpha, tokens, float(heights.mean()), theory, len(heights))
