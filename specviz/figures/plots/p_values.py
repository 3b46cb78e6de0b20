"""Every test's p-value of an audit, with the line that Holm's correction draws (Holm 1979)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from specviz.core.checks import whole
from specviz.core.contract import FloatArray
from specviz.figures.drawing import Look, figure, plotly_text, safe_text
from specviz.lossless.report.audit_report import AuditReport
from specviz.lossless.report.battery_report import BatteryReport
from specviz.lossless.statistics.findings import Answer

if TYPE_CHECKING:
    import plotly.graph_objects as go
    from matplotlib.axes import Axes

LEAST_P = 1e-12
"""Smaller p-values are drawn at the edge."""


@dataclass(frozen=True)
class PValues:
    """Every test that has a p-value, smallest first, and the line that Holm's correction draws.

    ``names``, ``p``, ``differs`` and ``line`` have one entry per test. The test of rank i differs
    if its p and all smaller ones lie below their ``line``, ``alpha / (tests - i)``. ``untestable``
    names the tests without a p-value, ``impossible`` counts tokens of probability 0.
    """

    names: list[str]
    p: FloatArray
    differs: NDArray[np.bool_]
    line: FloatArray
    alpha: float
    untestable: list[str]
    impossible: int
    decides: bool

    @property
    def title(self) -> str:
        """What the tests say together."""
        if not self.names:
            return f"no test had enough in its cells\n{self._token}"
        wrong = int(self.differs.sum())
        said = f"{wrong} of {len(self.names)} tests differ" if wrong else (
            f"none of {len(self.names)} tests differs"
        )  # fmt: skip
        edge = f"\np below {LEAST_P:g} stands at the edge" if np.any(self.p < LEAST_P) else ""
        out = f"{said} (level {self.alpha:g}, all together){edge}\n{self._token}"
        return out if self.decides else f"{out}; with a margin declared they do not decide"

    @property
    def _token(self) -> str:
        if self.impossible:
            return f"✗ tokens of probability 0: {self.impossible:,}"
        return "✓ no token of probability 0"


def battery_of(report: AuditReport | BatteryReport, prompt: int | None) -> BatteryReport:
    """Return the report of one prompt: by default the one that decided the verdict."""
    if isinstance(report, BatteryReport):
        return report
    if not isinstance(report, AuditReport):
        raise TypeError(f"report must be what sv.audit returns, got {type(report).__name__}")
    if not report.reports:
        raise ValueError(
            "report is of a distribution that was computed: nothing was sampled to be drawn"
        )
    if prompt is None:
        return report.report
    return report.reports[whole("prompt", prompt, 0, len(report.reports) - 1)]


def p_values_of(one: BatteryReport) -> PValues:
    """Return the tests of a battery, smallest p-value first."""
    tested = sorted(
        (finding for finding in one.findings if finding.p is not None),
        key=lambda finding: finding.p or 0.0,
    )
    m = len(tested)
    return PValues(
        names=[finding.name for finding in tested],
        p=np.array([finding.p for finding in tested], dtype=np.float64),
        differs=np.array([finding.answer is Answer.DIFFERS for finding in tested], dtype=bool),
        line=one.alpha / (m - np.arange(m)),
        alpha=one.alpha,
        untestable=[f.name for f in one.findings if f.answer is Answer.NOT_TESTABLE],
        impossible=0 if one.impossible is None else one.impossible.count,
        decides=one.margin == 0,
    )


def draw_p_values(data: PValues, ax: Axes | None, look: Look) -> Axes:
    """Draw a row per test; evidence grows to the right, the region beyond Holm's line is tinted."""
    ax, colours, points = look.axes(ax), look.colours, look.points
    look.title(ax, data.title)
    rows = np.arange(len(data.names))
    if not len(rows):
        ax.set_axis_off()
        return ax
    least = float(np.min(np.append(data.p, 0.1 * data.alpha)))
    end = max(LEAST_P, 10 ** np.floor(np.log10(max(least, 1e-300)) - 0.3))
    ax.set_xscale("log")
    ax.set_xlim(1.4, end)  # evidence grows to the right
    steps = np.append(data.line, data.line[-1])
    edges = np.arange(len(rows) + 1) - 0.5
    ax.fill_betweenx(
        edges, steps, end, step="post", color=colours.rejected, alpha=0.1, linewidth=0,
    )  # fmt: skip
    ax.step(
        steps, edges, where="pre", color=colours.text, linewidth=0.13 * points,
        linestyle=(0, (5, 2.5)), label="Holm's line",
    )  # fmt: skip
    ax.axvline(1, color=colours.line, linewidth=0.8)
    shown = np.clip(data.p, end * 1.3, 1)
    for which, colour, marker, name in (
        (~data.differs, colours.accepted, "o", "as expected"),
        (data.differs, colours.rejected, "X", "differs"),
    ):
        if which.any():
            ax.hlines(rows[which], 1, shown[which], color=colour, linewidth=0.1 * points)
            ax.plot(
                shown[which], rows[which], marker, color=colour, markersize=0.75 * points,
                markeredgecolor=colours.background, markeredgewidth=0.05 * points, label=name,
                clip_on=False, zorder=4,
            )  # fmt: skip
    ax.set_yticks(rows, [safe_text(name) for name in data.names])
    ax.set_ylim(len(rows) - 0.5, -0.5)
    look.frame(ax, "p-value")
    look.legend(ax, 3, handletextpad=0.4)
    return ax


def _plotly(data: PValues, look: Look) -> go.Figure:
    from plotly.subplots import make_subplots

    alone = make_subplots(rows=1, cols=1)
    add_p_values(alone, data, look, row=1, col=1)
    return look.plotly(alone, title=plotly_text(data.title))


def add_p_values(figure: go.Figure, tests: PValues, look: Look, **where: int) -> None:
    """Add the tests to a panel of a plotly figure."""
    colours, points = look.colours, look.points
    rows = np.arange(len(tests.names))
    figure.add_scatter(
        x=np.append(tests.line, tests.line[-1:]), y=np.arange(len(rows) + 1) - 0.5,
        mode="lines", line={"color": colours.text, "dash": "dash", "shape": "vh"},
        name="Holm's line", hovertemplate="Holm's line: %{x:.2g}<extra></extra>", **where,
    )  # fmt: skip
    for which, colour, symbol, name in (
        (~tests.differs, colours.accepted, "circle", "as expected"),
        (tests.differs, colours.rejected, "x", "differs"),
    ):
        if not which.any():
            continue
        figure.add_scatter(
            x=np.maximum(tests.p[which], 1e-300), y=rows[which], mode="markers", name=name,
            marker={"color": colour, "symbol": symbol, "size": points},
            customdata=[plotly_text(tests.names[i]) for i in np.flatnonzero(which)],
            hovertemplate="%{customdata}<br>p = %{x:.3g}<extra></extra>", **where,
        )  # fmt: skip
    figure.update_xaxes(
        title="p-value", type="log", autorange="reversed", exponentformat="power", **where
    )
    figure.update_yaxes(
        tickvals=rows, ticktext=[plotly_text(name) for name in tests.names], autorange="reversed",
        **where,
    )  # fmt: skip


@figure(draw_p_values, _plotly)
def p_values(report: AuditReport | BatteryReport, *, prompt: int | None = None) -> PValues:
    """Draw every test's p-value with the line that Holm's correction draws.

    Parameters
    ----------
    report : AuditReport or BatteryReport
        From :func:`specviz.audit` or :func:`specviz.lossless.battery`.
    prompt : int, optional
        Whose report, where there are several; by default the one that decided the verdict.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from specviz.lossless import Sample, battery
    >>> coin = Sample.of([[0], [1], [1], [0]] * 50, vocab_size=2)
    >>> p_values(battery(coin, lambda prefix: [0.5, 0.5])).get_xlabel()
    'p-value'
    """
    return p_values_of(battery_of(report, prompt))
