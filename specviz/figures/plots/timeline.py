"""Where the time goes: draft and target in turn, beside the target alone, on one clock."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from specviz.core.checks import whole
from specviz.core.contract import FloatArray, IntArray
from specviz.core.formatting import format_duration, format_number
from specviz.core.trace.columns import TIMES
from specviz.figures.drawing import Look, figure, plotly_text
from specviz.figures.measured import baseline_of, round_seconds, round_tokens

if TYPE_CHECKING:
    import plotly.graph_objects as go
    from matplotlib.axes import Axes

    from specviz.core.trace.trace import Trace

ROUNDS = 12
LANES = ("draft", "target", "rest")


@dataclass(frozen=True)
class TimelineData:
    """What the figure shows: rounds ``first`` to ``last``, in seconds from the first one's start.

    ``starts`` and ``lasts`` are ``(3, rounds)``: draft, target, and the rest (deciding, rolling
    back, recording). ``tokens`` ``(rounds,)`` were emitted at the end of each round. ``alone`` is
    the time of one target-only token, None where it is not on record.
    """

    first: int
    last: int
    of: int
    starts: FloatArray
    lasts: FloatArray
    tokens: IntArray
    alone: float | None

    @property
    def whole(self) -> float:
        """Seconds of all rounds drawn."""
        return float(self.lasts.sum())

    @property
    def title(self) -> str:
        """How long both took for the same number of tokens."""
        drawn = f"rounds {self.first}–{self.last} of {self.of:,}"
        count = int(self.tokens.sum())
        said = f"{drawn}: {count:,} tokens in {format_duration(self.whole)}"
        if self.alone is None:
            return f"{said}; the target alone was not measured"
        alone = self.alone * count
        return (
            f"{said}\nthe target alone: {format_duration(alone)}, "
            f"so {format_number(alone / self.whole)}× as long"
        )

    @property
    def alt(self) -> str:
        """The share of each lane."""
        shares = self.lasts.sum(axis=1) / self.whole
        parts = (f"{name} {share:.0%}" for name, share in zip(LANES, shares, strict=True))
        return f"Of the time: {', '.join(parts)}"


def _draw(data: TimelineData, ax: Axes | None, look: Look) -> Axes:
    ax, colours, points = look.axes(ax), look.colours, look.points
    unit, scale = _unit(data)
    ends = scale * (data.starts[2] + data.lasts[2])
    for row, colour in enumerate((colours.q, colours.p, colours.muted)):
        spans = list(zip(scale * data.starts[row], scale * data.lasts[row], strict=True))
        ax.broken_barh(spans, (row - 0.36, 0.72), facecolor=colour, edgecolor=colours.background,
                       linewidth=0.04 * points)  # fmt: skip
    ax.vlines(ends, -0.5, 2.5, color=colours.line, linewidth=0.1 * points)
    wide = scale * max(data.whole, (data.alone or 0.0) * int(data.tokens.sum()))
    for end, count in zip(ends, data.tokens, strict=True):
        if count and scale * data.lasts.sum(axis=0).min() > 0.035 * wide:
            ax.text(end, -0.56, f"+{count}", ha="center", va="bottom", **look.words())
    lanes = ["draft q", "target p", "rest"]
    if data.alone is not None:
        count = int(data.tokens.sum())
        spans = [(scale * data.alone * i, scale * data.alone) for i in range(count)]
        ax.broken_barh(spans, (2.94, 0.72), facecolor=colours.p_tint, edgecolor=colours.p,
                       linewidth=0.08 * points)  # fmt: skip
        lanes.append("target\nalone")
    ax.set_yticks(range(len(lanes)), lanes)
    ax.set(ylim=(len(lanes) - 0.2, -0.95), xlim=(0, 1.02 * wide))
    look.frame(ax, f"time, {unit}; +n: tokens emitted at the end of a round")
    look.title(ax, data.title)
    return ax


def _unit(data: TimelineData) -> tuple[str, float]:
    return ("ms", 1000.0) if data.whole < 1 else ("s", 1.0)


def _plotly(data: TimelineData, look: Look) -> go.Figure:
    import plotly.graph_objects as go

    unit, scale = _unit(data)
    drawn = go.Figure()
    rounds = np.arange(data.first, data.last + 1)
    colours = (look.colours.q, look.colours.p, look.colours.muted)
    for row, (name, colour) in enumerate(zip(LANES, colours, strict=True)):
        drawn.add_bar(y=[name] * len(rounds), x=scale * data.lasts[row], name=name,
                      base=scale * data.starts[row], orientation="h", customdata=rounds,
                      marker={"color": colour},
                      hovertemplate=f"round %{{customdata}}: %{{x:.3g}} {unit}<extra></extra>",
                      )  # fmt: skip
    if data.alone is not None:
        count = int(data.tokens.sum())
        drawn.add_bar(y=["target alone"] * count, x=[scale * data.alone] * count,
                      base=[scale * data.alone * i for i in range(count)], orientation="h",
                      name="target alone", marker={"color": look.colours.p_tint,
                                                   "line": {"color": look.colours.p}},
                      hovertemplate=f"one token: %{{x:.3g}} {unit}<extra></extra>")  # fmt: skip
    return look.plotly(drawn, title=plotly_text(data.title), barmode="overlay",
                       xaxis={"title": f"time, {unit}"},
                       yaxis={"autorange": "reversed"})  # fmt: skip


@figure(_draw, _plotly)
def timeline(trace: Trace, *, first: int = 0, rounds: int = ROUNDS) -> TimelineData:
    """Draw when draft and target work, round after round, beside the target alone.

    Parameters
    ----------
    trace : Trace
        A run with times.
    first : int
        The first round drawn, counted from 0.
    rounds : int
        How many rounds.

    Returns
    -------
    matplotlib Axes, or plotly Figure; ``timeline.data`` returns :class:`TimelineData`

    Raises
    ------
    ValueError
        If the run has no times, or there is no such round.

    Examples
    --------
    >>> timeline(trace, rounds=8)  # doctest: +SKIP
    """
    whole("rounds", rounds, 1, 400)
    round_seconds(trace)  # it has times
    first = whole("first", first, 0, len(trace) - 1)
    here = slice(first, min(len(trace), first + rounds))
    lasts = np.stack([trace.round_table[name][here] for name in TIMES]).astype(np.float64)
    before = np.concatenate([[0.0], np.cumsum(lasts.sum(axis=0))[:-1]])
    starts = before + np.cumsum(lasts, axis=0) - lasts
    return TimelineData(
        first, here.stop - 1, len(trace), starts, lasts, round_tokens(trace)[here],
        baseline_of({"": trace}),
    )  # fmt: skip
