"""Acceptance by entropy of the target, by temperature, or by kind of text.

A rate per group, with its exact 95% interval, beside what theory expects there: the mean of
sum min(p, q) over the same proposals (Leviathan et al. 2023, corollary 3.6).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from specviz.core.checks import one_of, whole
from specviz.core.contract import FloatArray, IntArray
from specviz.core.formatting import format_number
from specviz.core.trace.measures import depths, first_siblings
from specviz.figures.drawing import Look, figure, plotly_text, safe_text
from specviz.figures.measured import share_interval, traces_of

if TYPE_CHECKING:
    import plotly.graph_objects as go
    from matplotlib.axes import Axes

    from specviz.core.trace.trace import Trace

WHAT = {
    "entropy": "entropy of target p, nats",
    "temperature": "temperature",
    "text": "kind of text",
}


@dataclass(frozen=True)
class AcceptanceByData:
    """What the figure shows, an entry per group.

    ``rate`` is accepted / examined between ``low`` and ``high`` (95%), over ``n`` first candidates;
    ``overlap`` is the mean of sum min(p, q) over the same proposals, what a rule that accepts with
    min(1, p/q) accepts on average.
    """

    by: str
    groups: list[str]
    rate: FloatArray
    low: FloatArray
    high: FloatArray
    overlap: FloatArray
    n: IntArray

    @property
    def title(self) -> str:
        """Over how many proposals."""
        return f"Acceptance by {WHAT[self.by].partition(',')[0]}: {int(self.n.sum()):,} proposals"

    @property
    def alt(self) -> str:
        """Every group's rate."""
        rates = zip(self.groups, self.rate, self.n, strict=True)
        return "; ".join(f"{g}: {format_number(float(r), 3)} of {n:,}" for g, r, n in rates)


def _draw(data: AcceptanceByData, ax: Axes | None, look: Look) -> Axes:
    ax, colours, points = look.axes(ax), look.colours, look.points
    at = np.arange(len(data.groups))
    ax.bar(at, data.overlap, 0.72, color=colours.accepted_tint, edgecolor=colours.accepted,
           label="expected: mean of Σ min(p, q)")  # fmt: skip
    away = np.stack([data.rate - data.low, data.high - data.rate])
    ax.errorbar(at, data.rate, yerr=np.maximum(away, 0), fmt="o", color=colours.accepted_ink,
                markersize=0.7 * points, elinewidth=0.15 * points, capsize=0.3 * points,
                label="accepted / examined, 95%")  # fmt: skip
    for x, n in zip(at.tolist(), data.n, strict=True):
        ax.text(x, 0.015, f"n = {n:,}" if len(at) < 8 else f"{n:,}", ha="center", va="bottom",
                **look.words())  # fmt: skip
    ax.set_xticks(at, [safe_text(one) for one in data.groups])
    ax.set(ylim=(0, 1.03), xlim=(-0.6, len(at) - 0.4))
    look.frame(ax, WHAT[data.by], "share accepted", left=True)
    ax.tick_params(axis="x", length=0, labelcolor=colours.text)
    look.legend(ax, 2)
    look.title(ax, data.title)
    return ax


def _plotly(data: AcceptanceByData, look: Look) -> go.Figure:
    import plotly.graph_objects as go

    names = [plotly_text(one) for one in data.groups]
    drawn = go.Figure()
    drawn.add_bar(x=names, y=data.overlap, name="expected: mean of Σ min(p, q)",
                  marker={"color": look.colours.accepted_tint,
                          "line": {"color": look.colours.accepted}})  # fmt: skip
    drawn.add_scatter(
        x=names, y=data.rate, mode="markers", name="accepted / examined, 95%", customdata=data.n,
        error_y={"array": data.high - data.rate, "arrayminus": data.rate - data.low},
        marker={"color": look.colours.accepted_ink, "size": look.points},
        hovertemplate="%{x}: %{y:.3f} of %{customdata:,}<extra></extra>",
    )  # fmt: skip
    return look.plotly(drawn, title=plotly_text(data.title), yaxis={"range": [0, 1.03]},
                       xaxis={"title": WHAT[data.by], "type": "category"})  # fmt: skip


@figure(_draw, _plotly)
def acceptance_by(traces: Trace | Any, *, by: str = "entropy", bins: int = 5) -> AcceptanceByData:
    """Draw the share accepted by entropy of the target, by temperature, or by kind of text.

    Parameters
    ----------
    traces : Trace, or sequence or mapping of them
        The runs. By kind of text, a mapping names the kinds: ``{"stories": …, "prose": …}``.
    by : {"entropy", "temperature", "text"}
        What makes a group: about equally many proposals by the target's entropy; a recorded
        temperature; or a run's name.
    bins : int
        How many groups of entropy.

    Returns
    -------
    matplotlib Axes, or plotly Figure

    Raises
    ------
    TypeError, ValueError
        If there is no such grouping, or nothing was examined.

    Examples
    --------
    >>> import specviz as sv
    >>> data = acceptance_by.data({kind: sv.recorded(f"{kind}/eagle") for kind in
    ...                            ("stories", "prose", "records")}, by="text")
    >>> data.groups
    ['stories', 'prose', 'records']
    """
    one_of("by", by, WHAT)
    whole("bins", bins, 2, 20)
    runs = traces_of(traces)
    keys, kept, overlaps = [], [], []
    for name, run in runs.items():
        nodes, counts = run.node_table, run.round_table["nodes"].astype(np.int64)
        _, parent = depths(nodes["parent"], counts)
        first = first_siblings(np.repeat(np.arange(len(run)), counts), parent)
        used = first & (nodes["verdict"] != 0) & ~np.isnan(nodes["overlap"])
        kept.append(nodes["verdict"][used] == 1)
        overlaps.append(nodes["overlap"][used].astype(np.float64))
        if by == "entropy":
            keys.append(nodes["entropy_p"][used].astype(np.float64))
        else:
            key = name if by == "text" else _temperature(run, name)
            keys.append(np.full(int(used.sum()), key, dtype=object))
    found, accepted, overlap = (np.concatenate(part) for part in (keys, kept, overlaps))
    if not len(found):
        raise ValueError("traces hold no examined proposal, so nothing was accepted or rejected")
    if by == "entropy":
        known = ~np.isnan(found.astype(float))
        entropy, accepted, overlap = found[known].astype(float), accepted[known], overlap[known]
        edges = np.unique(np.quantile(entropy, np.linspace(0, 1, bins + 1)))
        label = np.searchsorted(edges, entropy, side="right") - 1
        label = np.clip(label, 0, max(0, len(edges) - 2))
        groups = [
            f"{format_number(float(a))}–{format_number(float(b))}" for a, b in pairwise(edges)
        ] or [format_number(float(edges[0]))]
    else:
        order = sorted(set(found)) if by == "temperature" else list(dict.fromkeys(found))
        label = np.array([order.index(one) for one in found])
        groups = [f"{one:g}" if by == "temperature" else str(one) for one in order]
    n = np.bincount(label, minlength=len(groups))
    there = n > 0
    hits = np.bincount(label[accepted], minlength=len(groups))[there]
    sums = np.bincount(label, weights=overlap, minlength=len(groups))[there]
    low, high = share_interval(hits, n[there])
    return AcceptanceByData(
        by=by, groups=[g for g, known in zip(groups, there, strict=True) if known],
        rate=hits / n[there], low=low, high=high, overlap=sums / n[there], n=n[there],
    )  # fmt: skip


def _temperature(run: Trace, name: str) -> float:
    sampling = run.meta.get("sampling")
    found = sampling.get("temperature") if isinstance(sampling, dict) else None
    if not isinstance(found, int | float):
        raise ValueError(f"{name} has no recorded temperature: group it by='text' or by='entropy'")
    return float(found)
