"""Why verifying k tokens costs about one pass, and how the gain fades as batches grow.

A pass reads every weight once, however many tokens it takes, and computes 2 operations a weight
for each token. The larger of the two times is what it costs (the roofline model, Williams et al.
2009): reading, until as many tokens share it as the machine computes operations per byte.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np

from specviz.core.checks import number, one_of, whole
from specviz.core.contract import FloatArray, IntArray
from specviz.core.formatting import format_number
from specviz.figures.drawing import Look, figure, only_panels, plotly_text
from specviz.figures.plots.acceptance import alpha_of
from specviz.theory import expected_tokens

if TYPE_CHECKING:
    import plotly.graph_objects as go
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from specviz.core.trace.trace import Trace


@dataclass(frozen=True)
class Machine:
    """A device: operations and bytes per second, as its maker says (dense, 16 bit)."""

    name: str
    operations: float
    bandwidth: float


MACHINES = {
    "H200": Machine("H200", 989e12, 4.8e12),
    "H100": Machine("H100 SXM", 989e12, 3.35e12),
    "A100": Machine("A100 80 GB", 312e12, 2.04e12),
    "RTX 4090": Machine("RTX 4090", 165e12, 1.01e12),
    "laptop": Machine("a laptop's CPU", 1e12, 0.06e12),
}


@dataclass(frozen=True)
class RooflineData:
    """What the figure shows, without drawing it.

    ``tokens`` ``(k,)`` in a pass and ``seconds`` of it; ``ridge`` is the number of tokens from
    which computing takes longer than reading. ``batch`` ``(b,)`` and ``gain`` over the target alone
    at that batch, with ``alpha``, ``gamma`` and ``c``.
    """

    machine: Machine
    parameters: float
    tokens: IntArray
    seconds: FloatArray
    ridge: float
    batch: IntArray
    gain: FloatArray
    alpha: float
    gamma: int
    c: float

    @property
    def title(self) -> str:
        """The model, the machine, and where the ridge is."""
        return (
            f"{self.parameters / 1e9:.3g} billion weights, 16 bit, on {self.machine.name}: "
            f"up to {self.ridge:,.0f} tokens cost about one (theory)"
        )

    @property
    def pays_to(self) -> int | None:
        """The largest batch at which speculation still gains."""
        pays = np.flatnonzero(self.gain > 1)
        return int(self.batch[pays[-1]]) if len(pays) else None

    @property
    def alt(self) -> str:
        """The two ends."""
        last = "nowhere" if self.pays_to is None else f"up to a batch of {self.pays_to:,}"
        return f"Gain {format_number(float(self.gain[0]), 3)}× for one text; it pays {last}"


def _draw(data: RooflineData, ax: Axes | None, look: Look) -> Figure:
    only_panels(ax, "roofline")
    colours, points = look.colours, look.points
    made, axes = look.panels(1, 2, width=1.4)
    left, right = axes[0]
    for panel in (left, right):
        panel.set_xscale("log", base=2)
        panel.xaxis.set_major_formatter(lambda x, _: f"{x:,.0f}")
    scale = 1000 if data.seconds[0] < 1 else 1
    left.set_yscale("log")
    left.axvspan(data.tokens[0], data.ridge, color=colours.accepted, alpha=0.12, linewidth=0)
    left.plot(data.tokens, scale * data.seconds, color=colours.p, linewidth=0.25 * points)
    k = data.gamma + 1
    at = np.interp(k, data.tokens, scale * data.seconds)
    left.plot(k, at, "D", color=colours.q_ink, markersize=0.7 * points,
              label=f"a round of gamma {data.gamma}: {k} tokens")  # fmt: skip
    middle = float(np.sqrt(data.tokens[0] * data.ridge))
    low, high = float(scale * data.seconds[0]), float(scale * data.seconds[-1])
    left.set_ylim(low / 2.2, 1.5 * high)
    left.text(middle, low / 1.25, "reading weights", ha="center", va="top",
              **look.words(color=colours.accepted_ink))  # fmt: skip
    left.text(data.tokens[-1], low / 1.25, "computing", ha="right", va="top", **look.words())
    look.frame(left, "tokens in a pass", "time of a pass, ms" if scale > 1 else "time, s",
               left=True)  # fmt: skip
    right.axhline(1, color=colours.text, linewidth=0.12 * points, linestyle=(0, (4, 2)))
    right.plot(data.batch, data.gain, color=colours.accepted, linewidth=0.25 * points)
    right.fill_between(data.batch, data.gain, 1, where=(data.gain < 1).tolist(), linewidth=0,
                       color=colours.rejected, alpha=0.2)  # fmt: skip
    right.set_ylim(0, 1.1 * float(data.gain.max()))
    look.frame(right, "texts in a batch", "gain, ×", left=True)
    alpha, c = format_number(data.alpha, 3), format_number(data.c)
    look.title(right, f"gain at alpha = {alpha}, c = {c}")
    look.title(left, f"{data.parameters / 1e9:.3g} billion weights, {data.machine.name} (theory)")
    look.legend(left, 1)
    return made


def _plotly(data: RooflineData, look: Look) -> go.Figure:
    from plotly.subplots import make_subplots

    drawn = make_subplots(rows=1, cols=2)
    drawn.add_scatter(x=data.tokens, y=1000 * data.seconds, mode="lines", row=1, col=1,
                      name="time of a pass, ms", line={"color": look.colours.p},
                      hovertemplate="%{x} tokens: %{y:.3g} ms<extra></extra>")  # fmt: skip
    drawn.add_scatter(x=data.batch, y=data.gain, mode="lines", name="gain, ×", row=1, col=2,
                      line={"color": look.colours.accepted},
                      hovertemplate="batch %{x}: %{y:.2f}×<extra></extra>")  # fmt: skip
    drawn.update_xaxes(type="log", title="tokens in a pass", row=1, col=1)
    drawn.update_xaxes(type="log", title="texts in a batch", row=1, col=2)
    drawn.update_yaxes(type="log", title="ms", row=1, col=1)
    return look.plotly(drawn, title=plotly_text(data.title))


@figure(_draw, _plotly, panels=True)
def roofline(
    trace: Trace | None = None, *, machine: str | Machine = "H100", parameters: float = 7e9,
    alpha: float | None = None, gamma: int = 4, c: float | None = None, highest_batch: int = 1024,
) -> RooflineData:  # fmt: skip
    """Draw why verifying gamma + 1 tokens costs about one pass, and how the gain fades in batches.

    It is theory: weights only, no attention to long texts, no overhead. ``c`` is taken as the same
    at every batch.

    Parameters
    ----------
    trace : Trace, optional
        A run whose measured alpha, c and gamma are used.
    machine : str or Machine
        One of :data:`MACHINES`, or your own.
    parameters : float
        Weights of the target, of 16 bits each.
    alpha, c : float, optional
        Instead of the run's; without a run .8 and .05.
    gamma : int
        Tokens drafted in a round, where no run says it.
    highest_batch : int
        Where the axis of batches ends.

    Returns
    -------
    matplotlib Figure, or plotly Figure; ``roofline.data`` returns :class:`RooflineData`

    Raises
    ------
    TypeError, ValueError
        If a setting is out of range, or the run measured no alpha.

    Examples
    --------
    >>> round(roofline.data(machine="A100").ridge)
    153
    """
    if isinstance(machine, str):
        machine = MACHINES[one_of("machine", machine, MACHINES)]
    elif not isinstance(machine, Machine):
        raise TypeError(f"machine must be a name or a Machine, got {type(machine).__name__}")
    number("parameters", parameters, above=0)
    whole("gamma", gamma, 1, 100)
    whole("highest_batch", highest_batch, 2, 2**20)
    if trace is not None:
        alpha = alpha_of(trace) if alpha is None else alpha
        cost = trace.measures()["draft_cost"].value
        c = cast("float | None", cost) if c is None else c
        gamma = max(1, round(float(np.mean(trace.round_table["nodes"])))) if len(trace) else gamma
        if alpha is None:
            raise ValueError("trace has no examined proposals, so it has no alpha: give alpha=")
    alpha = number("alpha", 0.8 if alpha is None else alpha, at_least=0, at_most=1)
    c = number("c", 0.05 if c is None else c, at_least=0)

    def seconds(tokens: FloatArray) -> FloatArray:
        reading = 2 * parameters / machine.bandwidth
        found: FloatArray = np.maximum(reading, 2 * parameters * tokens / machine.operations)
        return found

    ridge = machine.operations / machine.bandwidth
    tokens = np.unique(np.geomspace(1, max(64, 16 * ridge), 200).astype(np.int64))
    batch = np.unique(np.geomspace(1, highest_batch, 120).astype(np.int64))
    alone = seconds(batch.astype(float))
    v = seconds(((gamma + 1) * batch).astype(float)) / alone
    gain = expected_tokens(alpha, gamma) / (gamma * c + v)
    return RooflineData(
        machine, parameters, tokens, seconds(tokens.astype(float)), ridge, batch, gain, alpha,
        gamma, c,
    )  # fmt: skip
