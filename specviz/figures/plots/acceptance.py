"""Acceptance by position, and how many proposals each round accepted, measured beside theory.

The theory takes one alpha for every position (Leviathan et al. 2023, section 3.1): a round accepts
n of gamma proposals with probability alpha^n (1 − alpha), all of them with alpha^gamma. Where a
measured interval misses it, alpha is not constant along a round, and the figure says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from specviz.core.contract import FloatArray, IntArray
from specviz.core.formatting import format_number
from specviz.figures.drawing import Look, figure, plotly_text
from specviz.figures.measured import (
    accepted_lengths,
    examined_overlaps,
    is_chain,
    share_interval,
)

if TYPE_CHECKING:
    import plotly.graph_objects as go
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from specviz.core.trace.trace import Trace


@dataclass(frozen=True)
class AcceptanceData:
    """What the figure shows, without drawing it.

    ``given`` ``(gamma,)`` is the share accepted at each position of those examined there, between
    ``low`` and ``high`` (95%, exact); ``overall`` the share of those proposed. ``examined`` and
    ``proposed`` count them. ``lengths`` ``(gamma + 1,)`` counts rounds by how many proposals they
    accepted, ``expected`` is what theory makes of ``alpha``; both None in a tree, where siblings
    share a position.
    """

    given: FloatArray
    low: FloatArray
    high: FloatArray
    overall: FloatArray
    examined: IntArray
    proposed: IntArray
    lengths: IntArray
    expected: FloatArray | None
    alpha: float | None
    rounds: int

    @property
    def outside(self) -> list[int]:
        """Positions whose interval misses alpha."""
        if self.alpha is None:
            return []
        out = (self.alpha < self.low) | (self.alpha > self.high)
        return [int(i) for i in np.flatnonzero(out)]

    @property
    def title(self) -> str:
        """What is measured, and whether theory fits."""
        said = f"{self.rounds:,} rounds with proposals"
        if self.alpha is None:
            return f"{said}; a tree: no theory with one alpha"
        alpha = f"theory: alpha = {format_number(self.alpha, 3)} everywhere"
        if not self.outside:
            return f"{said}\n{alpha}; every interval holds it"
        which = ", ".join(map(str, self.outside))
        return f"{said}\n{alpha}; not so at position{'s' * (len(self.outside) > 1)} {which}"

    @property
    def alt(self) -> str:
        """The numbers of both panels."""
        shares = ", ".join(format_number(float(x)) for x in self.given)
        return (
            f"Accepted of examined, position 0 on: {shares}. Rounds by accepted proposals, 0 on: "
            f"{', '.join(map(str, self.lengths))}"
        )


def _draw(data: AcceptanceData, ax: Axes | None, look: Look) -> Figure:
    colours, points = look.colours, look.points
    made, axes = look.panels(1, 2, width=1.35)
    left, right = axes[0]
    at = np.arange(len(data.given))
    left.bar(at, data.overall, 0.72, color=colours.accepted_tint, edgecolor=colours.accepted,
             label="accepted / proposed")  # fmt: skip
    away = np.stack([data.given - data.low, data.high - data.given])
    left.errorbar(at, data.given, yerr=away, fmt="o", color=colours.accepted_ink,
                  markersize=0.7 * points, elinewidth=0.15 * points, capsize=0.3 * points,
                  label="accepted / examined, 95%")  # fmt: skip
    if data.alpha is not None:
        steps = data.alpha ** (at + 1)
        left.axhline(data.alpha, color=colours.text, linestyle=(0, (5, 2.5)), label="theory: alpha")
        left.plot(at, steps, "_", color=colours.text, markersize=2.2 * points, markeredgewidth=1.5,
                  label="theory: alpha^(i+1)")  # fmt: skip
    left.set(ylim=(0, 1.02), xticks=at[:: max(1, len(at) // 8)])
    look.frame(left, "position in the round, i", "share accepted", left=True)
    runs = np.arange(len(data.lengths))
    right.bar(runs, data.lengths, 0.72, color=colours.accepted_tint, edgecolor=colours.accepted,
              label="measured")  # fmt: skip
    if data.expected is not None:
        right.plot(runs, data.expected, "D", color=colours.text, markersize=0.55 * points,
                   label="theory")  # fmt: skip
    right.yaxis.get_major_locator().set_params(integer=True)
    right.set_xticks(runs[:: max(1, len(runs) // 8)])
    look.frame(right, "accepted proposals in a round", "rounds", left=True)
    look.legend(left, 1)
    look.legend(right, 1)
    look.heading(made, data.title)
    return made


def _plotly(data: AcceptanceData, look: Look) -> go.Figure:
    from plotly.subplots import make_subplots

    colours = look.colours
    drawn = make_subplots(rows=1, cols=2, subplot_titles=["by position", "by round"])
    at = np.arange(len(data.given))
    drawn.add_bar(x=at, y=data.overall, name="accepted / proposed", row=1, col=1,
                  marker={"color": colours.accepted_tint, "line": {"color": colours.accepted}},
                  customdata=data.proposed,
                  hovertemplate="%{y:.3f} of %{customdata:,} proposed<extra></extra>")  # fmt: skip
    error: dict[str, Any] = {"array": data.high - data.given, "arrayminus": data.given - data.low}
    drawn.add_scatter(x=at, y=data.given, mode="markers", name="accepted / examined, 95%",
                      error_y=error, marker={"color": colours.accepted_ink, "size": look.points},
                      customdata=data.examined, row=1, col=1,
                      hovertemplate="%{y:.3f} of %{customdata:,} examined<extra></extra>",
                      )  # fmt: skip
    runs = np.arange(len(data.lengths))
    drawn.add_bar(x=runs, y=data.lengths, name="rounds, measured", row=1, col=2,
                  marker={"color": colours.accepted_tint, "line": {"color": colours.accepted}},
                  hovertemplate="%{y:,} rounds accepted %{x}<extra></extra>")  # fmt: skip
    if data.expected is not None and data.alpha is not None:
        drawn.add_scatter(x=at, y=np.full(len(at), data.alpha), mode="lines", name="theory: alpha",
                          line={"color": colours.text, "dash": "dash"}, row=1, col=1)  # fmt: skip
        drawn.add_scatter(x=runs, y=data.expected, mode="markers", name="rounds, theory",
                          marker={"color": colours.text, "symbol": "diamond"}, row=1, col=2,
                          hovertemplate="theory: %{y:.1f} rounds<extra></extra>")  # fmt: skip
    drawn.update_xaxes(title="position in the round", row=1, col=1)
    drawn.update_xaxes(title="accepted proposals in a round", row=1, col=2)
    return look.plotly(drawn, title=plotly_text(data.title), margin={"t": 120})


@figure(_draw, _plotly, panels=True)
def acceptance(trace: Trace) -> AcceptanceData:
    """Draw acceptance by position, and rounds by accepted proposals, measured beside theory.

    Parameters
    ----------
    trace : Trace
        The run.

    Returns
    -------
    matplotlib Figure, or plotly Figure; ``acceptance.data`` returns :class:`AcceptanceData`

    Raises
    ------
    ValueError
        If the run proposed nothing.

    Examples
    --------
    >>> acceptance(trace)  # doctest: +SKIP
    """
    lengths, heights = accepted_lengths(trace)
    lengths, heights = lengths[heights > 0], heights[heights > 0]
    if not len(heights):
        raise ValueError("trace has no proposals, so nothing was accepted or rejected in it")
    at = np.arange(int(heights.max()))
    proposed = (heights[:, None] > at).sum(axis=0)
    examined = (np.minimum(lengths + 1, heights)[:, None] > at).sum(axis=0)
    accepted = (lengths[:, None] > at).sum(axis=0)
    seen = examined > 0
    given = np.divide(accepted, examined, out=np.full(len(at), np.nan), where=seen)
    low, high = share_interval(accepted, examined)
    alpha = alpha_of(trace) if is_chain(trace) else None
    expected = None
    if alpha is not None:
        n = np.arange(len(at) + 1)
        chances = alpha**n * np.where(n < heights[:, None], 1 - alpha, 1.0)  # (rounds, gamma + 1)
        expected = np.where(n <= heights[:, None], chances, 0.0).sum(axis=0)
    return AcceptanceData(
        given=given, low=np.where(seen, low, np.nan), high=np.where(seen, high, np.nan),
        overall=accepted / proposed, examined=examined, proposed=proposed,
        lengths=np.bincount(lengths, minlength=len(at) + 1), expected=expected, alpha=alpha,
        rounds=len(heights),
    )  # fmt: skip


def alpha_of(trace: Trace) -> float | None:
    """Return the alpha that theory takes: the mean overlap, or the share accepted of examined.

    Under a rule that does not accept with min(1, p/q) the overlap is not its acceptance.
    """
    if trace.meta.get("rule", "rejection") == "rejection":
        overlaps = examined_overlaps(trace)
        return float(overlaps.mean()) if len(overlaps) else None
    value = trace.measures()["accepted_per_examined"].value
    return None if value is None else float(cast(float, value))
