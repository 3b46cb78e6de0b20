"""A race on one clock: how many tokens each run had written when."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from specviz.core.contract import FloatArray, IntArray
from specviz.core.formatting import format_duration
from specviz.figures.drawing import Look, figure, plotly_text, safe_text
from specviz.figures.measured import round_seconds, round_tokens, traces_of
from specviz.figures.summary import target_alone

if TYPE_CHECKING:
    import plotly.graph_objects as go
    from matplotlib.axes import Axes

    from specviz.core.trace.trace import Trace

MOST = 600
"""How many rounds of a run have a step; of more every so many-th is drawn."""
DASHES = ("solid", (0, (6, 2)), (0, (2, 1.5)), (0, (6, 2, 1, 2)), (0, (1, 1)), (0, (9, 3)))


@dataclass(frozen=True)
class Runner:
    """One run: seconds and tokens written so far, ``(steps,)`` each, from (0, 0) on."""

    name: str
    seconds: FloatArray
    tokens: IntArray
    alone: bool


@dataclass(frozen=True)
class RaceData:
    """The runs of a race, in the order given; ``thinned`` says that not every round has a step."""

    runners: list[Runner]
    thinned: bool

    @property
    def title(self) -> str:
        """Who was first to write what all of them wrote."""
        goal = min(int(one.tokens[-1]) for one in self.runners)
        times = {one.name: float(np.interp(goal, one.tokens, one.seconds)) for one in self.runners}
        first = min(times, key=times.__getitem__)
        said = f"{goal:,} tokens: {first} first, after {format_duration(times[first])}"
        return f"{said}; not every round drawn" if self.thinned else said

    @property
    def alt(self) -> str:
        """When each run ended."""
        return "; ".join(
            f"{one.name}: {int(one.tokens[-1]):,} tokens in {format_duration(one.seconds[-1])}"
            for one in self.runners
        )


def _draw(data: RaceData, ax: Axes | None, look: Look) -> Axes:
    ax, colours, points = look.axes(ax), look.colours, look.points
    fast = 0
    inks = (colours.q_ink, colours.accepted_ink, colours.rejected_ink, colours.muted)
    for one in data.runners:
        how: dict[str, Any] = {"color": colours.p, "linestyle": "solid"}
        if not one.alone:
            how = {"color": inks[fast % len(inks)], "linestyle": DASHES[(fast + 1) % len(DASHES)]}
            fast += 1
        ax.step(one.seconds, one.tokens, where="post", linewidth=0.2 * points,
                label=safe_text(one.name), **how)  # fmt: skip
        ax.plot(one.seconds[-1], one.tokens[-1], "o", color=how["color"], markersize=0.6 * points)
    ax.set_xlim(0)
    ax.set_ylim(0)
    look.frame(ax, "time, s", "tokens written", left=True)
    look.legend(ax, 2)
    look.title(ax, data.title)
    return ax


def _plotly(data: RaceData, look: Look) -> go.Figure:
    import plotly.graph_objects as go

    drawn, colours = go.Figure(), look.colours
    inks = (colours.q_ink, colours.accepted_ink, colours.rejected_ink, colours.muted)
    for i, one in enumerate(data.runners):
        drawn.add_scatter(x=one.seconds, y=one.tokens, mode="lines", name=plotly_text(one.name),
                          line={"shape": "hv", "width": 3,
                                "color": colours.p if one.alone else inks[i % 4]},
                          hovertemplate="%{y:,} tokens after %{x:.3g} s")  # fmt: skip
    return look.plotly(drawn, title=plotly_text(data.title), xaxis={"title": "time, s"},
                       yaxis={"title": "tokens written"})  # fmt: skip


@figure(_draw, _plotly)
def race(traces: Trace | Any) -> RaceData:
    """Draw how many tokens several runs had written when, on one clock.

    Parameters
    ----------
    traces : sequence or mapping of Trace
        Runs with times; one of them may be the target alone.

    Returns
    -------
    matplotlib Axes, or plotly Figure; ``race.data`` returns :class:`RaceData`

    Raises
    ------
    TypeError, ValueError
        If there is no run, or one has no times.

    Examples
    --------
    >>> race([trace, plain])  # doctest: +SKIP
    """
    runners, thinned = [], False
    for name, run in traces_of(traces).items():
        seconds = np.concatenate([[0.0], np.cumsum(round_seconds(run))])
        tokens = np.concatenate([[0], np.cumsum(round_tokens(run))])
        step = -(-len(seconds) // MOST)
        keep = np.unique(np.append(np.arange(0, len(seconds), step), len(seconds) - 1))
        thinned = thinned or step > 1
        runners.append(Runner(name, seconds[keep], tokens[keep], target_alone(run)))
    return RaceData(runners, thinned)
