"""What figures measure of runs: names, shares with intervals, times, and gains.

Intervals hold 95%. A share has Clopper and Pearson's exact one (1934); a mean over rounds has
Student's, a gain a bootstrap over rounds. All take rounds as independent, which they are only
nearly: the text goes on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from specviz.core.checks import shown
from specviz.core.contract import FloatArray, IntArray
from specviz.core.trace.columns import TIMES
from specviz.core.trace.measures import ACCEPTED, depths, first_siblings
from specviz.core.trace.trace import Trace
from specviz.figures.escaping import visible
from specviz.figures.summary import run_label, target_alone

CONFIDENCE = 0.95
RESAMPLES = 400


def traces_of(runs: Any, name: str = "traces") -> dict[str, Trace]:
    """Return runs by name: of one trace, a sequence of them, or a mapping.

    Runs without a name get their method's, and its number where two are the same.

    Raises
    ------
    TypeError, ValueError
        If there is none, or one of them is no trace.
    """
    if isinstance(runs, Trace):
        runs = [runs]
    if isinstance(runs, Mapping):
        named = {visible(str(key), limit=60): run for key, run in runs.items()}
    elif isinstance(runs, Sequence) and not isinstance(runs, str):
        named = {}
        for run in runs:
            label = run_label(run) if isinstance(run, Trace) else ""
            taken = sum(key.partition(" (")[0] == label for key in named)
            named[f"{label} ({taken + 1})" if taken else label] = run
    else:
        raise TypeError(f"{name} must be a Trace, or several of them, got {shown(runs)}")
    if not named:
        raise ValueError(f"{name} is empty: give at least one Trace")
    for run in named.values():
        if not isinstance(run, Trace):
            raise TypeError(f"{name} must hold traces only, got {type(run).__name__}")
    return named


def share_interval(k: Any, n: Any) -> tuple[FloatArray, FloatArray]:
    """Return the exact 95% bounds of shares of which k in n were seen (Clopper & Pearson 1934).

    Examples
    --------
    >>> [round(float(bound), 3) for bound in share_interval(8, 10)]
    [0.444, 0.975]
    """
    from scipy import stats

    seen, whole = np.asarray(k, dtype=float), np.asarray(n, dtype=float)
    tail = (1 - CONFIDENCE) / 2
    low = np.where(seen > 0, stats.beta.ppf(tail, np.maximum(seen, 1), whole - seen + 1), 0.0)
    left = np.maximum(whole - seen, 1)
    high = np.where(seen < whole, stats.beta.ppf(1 - tail, seen + 1, left), 1.0)
    return low, high


def mean_interval(values: FloatArray) -> tuple[float, float, float]:
    """Return the mean of values and its 95% bounds (Student's t); NaN bounds for one value.

    Examples
    --------
    >>> [round(x, 2) for x in mean_interval(np.array([1.0, 2.0, 3.0]))]
    [2.0, -0.48, 4.48]
    """
    from scipy import stats

    mean = float(np.mean(values))
    if len(values) < 2:
        return mean, float("nan"), float("nan")
    away = stats.t.ppf((1 + CONFIDENCE) / 2, len(values) - 1) * np.std(values, ddof=1)
    away = float(away / np.sqrt(len(values)))
    return mean, mean - away, mean + away


def examined_overlaps(trace: Trace) -> FloatArray:
    """Return sum min(p, q) of the proposals that alpha is taken over, ``(m,)``."""
    nodes, counts = trace.node_table, trace.round_table["nodes"].astype(np.int64)
    of_round = np.repeat(np.arange(len(trace)), counts)
    _, parent = depths(nodes["parent"], counts)
    used = first_siblings(of_round, parent) & (nodes["verdict"] != 0)
    overlap: FloatArray = nodes["overlap"][used].astype(np.float64)
    return overlap[~np.isnan(overlap)]


def accepted_lengths(trace: Trace) -> tuple[IntArray, IntArray]:
    """Return how many proposals each round accepted, and how deep they went, ``(rounds,)``."""
    from specviz.core.trace.measures import deepest

    counts = trace.round_table["nodes"].astype(np.int64)
    of_round = np.repeat(np.arange(len(trace)), counts)
    depth, _ = depths(trace.node_table["parent"], counts)
    accepted = trace.node_table["verdict"] == ACCEPTED
    return (
        np.bincount(of_round[accepted], minlength=len(trace)),
        deepest(of_round, depth, len(trace)),
    )


def is_chain(trace: Trace) -> bool:
    """Whether no round proposed siblings."""
    counts = trace.round_table["nodes"].astype(np.int64)
    place = np.arange(len(trace.node_table)) - np.repeat(np.cumsum(counts) - counts, counts)
    return bool(np.all(trace.node_table["parent"] == place - 1))


def round_seconds(trace: Trace) -> FloatArray:
    """Return the time of each round, ``(rounds,)``.

    Raises
    ------
    ValueError
        If the run has no times.
    """
    parts = np.stack([trace.round_table[name] for name in TIMES]).astype(np.float64)
    if not len(trace) or np.isnan(parts).any() or not parts.sum() > 0:
        raise ValueError("trace has no measured times: they are recorded while decoding")
    return parts.sum(axis=0)  # type: ignore[no-any-return]


def round_tokens(trace: Trace) -> IntArray:
    """Return how many tokens each round emitted, ``(rounds,)``."""
    counts: IntArray = trace.round_table["emitted"].astype(np.int64)
    return counts


def baseline_of(traces: Mapping[str, Trace]) -> float | None:
    """Return the seconds of one target-only token: of a run given, or of a record in a trace."""
    for trace in traces.values():
        if target_alone(trace) and len(trace.tokens):
            return float(round_seconds(trace).sum()) / len(trace.tokens)
    for trace in traces.values():
        known = trace.meta.get("target_only")
        took = known.get("seconds_per_token") if isinstance(known, dict) else None
        if isinstance(took, float) and np.isfinite(took) and took > 0:
            return took
    return None


def gain_of(trace: Trace, seconds_per_token: float) -> tuple[float, float, float]:
    """Return how many times faster a run was than the target alone, with bootstrap bounds."""
    seconds, tokens = round_seconds(trace), round_tokens(trace)
    pick = np.random.default_rng(0).integers(0, len(trace), (RESAMPLES, len(trace)))
    gains = seconds_per_token * tokens[pick].sum(axis=1) / seconds[pick].sum(axis=1)
    tail = 50 * (1 - CONFIDENCE)
    low, high = np.percentile(gains, [tail, 100 - tail])
    return float(seconds_per_token * tokens.sum() / seconds.sum()), float(low), float(high)
