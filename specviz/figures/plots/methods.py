"""Methods side by side: acceptance, tokens per pass, and the gain over the target alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from specviz.core.contract import FloatArray
from specviz.core.formatting import format_number
from specviz.figures.drawing import Look, figure, plotly_text, safe_text
from specviz.figures.escaping import visible
from specviz.figures.measured import (
    baseline_of,
    gain_of,
    mean_interval,
    round_tokens,
    share_interval,
    traces_of,
)

if TYPE_CHECKING:
    import plotly.graph_objects as go
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from specviz.core.trace.trace import Trace

PANELS = {
    "acceptance": "accepted / examined",
    "tokens": "tokens per target pass",
    "gain": "gain, × target alone",
}


@dataclass(frozen=True)
class MethodsData:
    """What the figure shows: for each panel of :data:`PANELS` an array ``(methods, 3)``.

    A row is a value and its 95% bounds; NaN where there is nothing to measure it from. ``heads``
    say what the panels are, ``sentence`` what a benchmark concludes.
    """

    names: list[str]
    values: dict[str, FloatArray]
    heads: dict[str, str] = field(default_factory=lambda: dict(PANELS))
    sentence: str = ""
    note: str = ""

    @property
    def title(self) -> str:
        """Which method gained most."""
        if self.sentence:
            return fill(self.sentence, 76)
        gains = self.values["gain"][:, 0]
        if np.all(np.isnan(gains)):
            return "Methods side by side; without times, or the target alone, no gain"
        best = int(np.nanargmax(gains))
        return f"Largest gain: {self.names[best]}, {format_number(float(gains[best]), 3)}×"

    @property
    def alt(self) -> str:
        """All numbers."""
        rows = []
        for i, name in enumerate(self.names):
            said = ", ".join(
                f"{head} {format_number(float(self.values[key][i, 0]), 3)}"
                for key, head in self.heads.items()
            )
            rows.append(f"{name}: {said}")
        return "; ".join(rows)


def _draw(data: MethodsData, ax: Axes | None, look: Look) -> Figure:
    colours, points = look.colours, look.points
    tall = max(1.0, (0.9 + 0.028 * points * len(data.names)) / look.inches[1])
    made, axes = look.panels(1, 3, width=1.35, height=tall, sharey=True)
    rows = np.arange(len(data.names))
    hues = ((colours.accepted_tint, colours.accepted), (colours.q_tint, colours.q),
            (colours.p_tint, colours.p))  # fmt: skip
    plate = {"facecolor": colours.background, "edgecolor": "none", "pad": 0.5}
    for one, (key, head), (tint, edge) in zip(axes[0], data.heads.items(), hues, strict=True):
        value, low, high = data.values[key].T
        one.barh(rows, np.nan_to_num(value), 0.6, color=tint, edgecolor=edge)
        away = np.nan_to_num(np.maximum(np.stack([value - low, high - value]), 0))
        ends = np.nan_to_num(np.fmax(high, value))
        one.errorbar(np.nan_to_num(value), rows, xerr=away, fmt="none", ecolor=colours.text,
                     elinewidth=0.12 * points, capsize=0.25 * points)  # fmt: skip
        room = max(1e-9, float(ends.max()))
        for row, end, number in zip(rows, ends, value, strict=True):
            one.text(end + 0.04 * room, row, format_number(float(number)), va="center",
                     bbox=plate, **look.words())  # fmt: skip
        if key == "gain":
            one.axvline(1, color=colours.text, linewidth=0.12 * points, linestyle=(0, (4, 2)))
        one.set(xlim=(0, 1.4 * room), ylim=(len(rows) - 0.4, -0.6))
        one.set_yticks(rows, [safe_text(name) for name in data.names])
        one.locator_params(axis="x", nbins=3)
        look.frame(one, head)
    look.heading(made, data.title)
    return made


def _plotly(data: MethodsData, look: Look) -> go.Figure:
    from plotly.subplots import make_subplots

    drawn = make_subplots(rows=1, cols=3, shared_yaxes=True, subplot_titles=[*data.heads.values()])
    names = [plotly_text(name) for name in data.names]
    hues = (look.colours.accepted, look.colours.q, look.colours.p)
    for column, ((key, head), hue) in enumerate(
        zip(data.heads.items(), hues, strict=True), start=1
    ):
        value, low, high = data.values[key].T
        drawn.add_bar(y=names, x=value, orientation="h", name=head, marker={"color": hue},
                      error_x={"array": high - value, "arrayminus": value - low},
                      hovertemplate=f"%{{y}}<br>{head}: %{{x:.3f}}<extra></extra>",
                      row=1, col=column)  # fmt: skip
    drawn.update_yaxes(autorange="reversed")
    return look.plotly(drawn, title=plotly_text(data.title), showlegend=False, margin={"t": 100})


def is_bench(what: Any) -> bool:
    """Whether something is what :func:`specviz.bench.measure` returns; its room is not imported."""
    return hasattr(what, "ways") and hasattr(what, "sentence")


@figure(_draw, _plotly, panels=True)
def methods(traces: Trace | Any) -> MethodsData:
    """Draw methods side by side: acceptance, tokens per pass, gain over the target alone.

    Parameters
    ----------
    traces : sequence or mapping of Trace, or Bench
        Runs, the best comparison being of one prompt and seed; gains are against a target-only run
        among them, or on record in one. Or what :func:`specviz.bench.measure` returns: its alpha,
        and gains with their quartiles over turns.

    Returns
    -------
    matplotlib Figure, or plotly Figure; ``methods.data`` returns :class:`MethodsData`

    Raises
    ------
    TypeError, ValueError
        If there is no run, or one of them is something else.

    Examples
    --------
    >>> import specviz as sv
    >>> runs = [sv.recorded(f"stories/{one}") for one in ("target-only", "draft-model", "eagle")]
    >>> methods.data(runs).names
    ['target alone', 'draft model, rejection', 'EAGLE, rejection']
    """
    if is_bench(traces):
        return _of_bench(traces)
    runs = traces_of(traces)
    base = baseline_of(runs)
    rows: dict[str, list[tuple[float, float, float]]] = {key: [] for key in PANELS}
    nothing = (float("nan"),) * 3
    for run in runs.values():
        found = run.measures()
        accepted, examined = found["accepted"].value, found["examined"].value
        if examined:
            low, high = share_interval(accepted, examined)
            share = float(accepted) / float(examined)  # type: ignore[arg-type]
            rows["acceptance"].append((share, float(low), float(high)))
        else:
            rows["acceptance"].append(nothing)
        tokens = round_tokens(run).astype(np.float64)
        rows["tokens"].append(mean_interval(tokens) if len(tokens) else nothing)
        timed = base is not None and found["verify_seconds"].value
        rows["gain"].append(gain_of(run, base) if timed and base is not None else nothing)
    return MethodsData([*runs], {key: np.array(values) for key, values in rows.items()})


def _of_bench(bench: Any) -> MethodsData:
    """Return the numbers of :func:`specviz.bench.measure`; its gains have quartiles over turns."""
    nothing = float("nan")
    ways = bench.ways
    values = {
        "acceptance": [[nothing if way.alpha is None else way.alpha] for way in ways],
        "tokens": [[nothing if way.tokens_per_pass is None else way.tokens_per_pass]
                   for way in ways],
        "gain": [[way.gain, way.low, way.high] for way in ways],
    }  # fmt: skip
    return MethodsData(
        names=[visible(way.name, limit=60) for way in ways],
        values={key: np.array([(row + [nothing] * 2)[:3] for row in rows])
                for key, rows in values.items()},
        heads={**PANELS, "acceptance": "alpha"},
        sentence=bench.sentence,
        note=" · ".join(f"{key} {value}" for key, value in bench.settings.items()),
    )  # fmt: skip
