"""What a trace must hold so that every reader can rely on it: numbers in range, a sound structure.

Used when a trace is written and when one is read (:mod:`specviz.core.trace.files`). Whether the
numbers *follow* from each other is another question, which ``trace.check()`` answers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from specviz.core.trace.columns import FULL_NODES, FULL_ROUNDS, Table
from specviz.core.trace.trace import Trace

ROUNDING = 1e-6  # distributions are float32 or better
SUMMED = 1e-2  # what sums of float32 probabilities over a large vocabulary may be off by
ACCEPTED = 1


@dataclass(frozen=True)
class Range:
    """The numbers a column may hold; ``missing``: or NaN, which says nothing."""

    low: float
    high: float
    missing: bool = False


LAST = float(np.finfo(np.float64).max)
FLAG, CODE = Range(0, 1), Range(0, 2)
COUNT, ID, ID_OR_NONE = Range(0, LAST), Range(0, LAST), Range(-1, LAST)
PROBABILITY, MASS = Range(0, 1 + ROUNDING), Range(0, 1 + SUMMED)
UNIFORM, CDF = Range(0, 1, missing=True), Range(0, 1 + SUMMED, missing=True)
ALTERNATIVE = Range(0, 1 + ROUNDING, missing=True)  # NaN only where there is no id
AMOUNT = Range(0, LAST, missing=True)
RUNNER_UP = Range(0, np.inf, missing=True)  # infinite where no other token can arrive

NODE_RANGES: dict[str, Range] = {
    **dict.fromkeys(("token",), ID),
    **dict.fromkeys(("parent", "own_token", "top_ids", "residual_ids"), ID_OR_NONE),
    **dict.fromkeys(("verdict", "q_draw"), CODE),
    "emitted": FLAG,
    **dict.fromkeys(("p", "q", "acceptance"), PROBABILITY),
    "overlap": MASS,
    **dict.fromkeys(("u", "q_u"), UNIFORM),
    **dict.fromkeys(("entropy_p", "entropy_q", "q_time", "own_time"), AMOUNT),
    **dict.fromkeys(("q_second", "own_second"), RUNNER_UP),
    **dict.fromkeys(("q_cdf_lo", "q_cdf_hi", "q_mass", "top_q_cdf", "residual_cdf"), CDF),
    **dict.fromkeys((f"tail_{x}_{side}" for x in "pq" for side in ("above", "below")), CDF),
    **dict.fromkeys(("top_p", "top_q", "residual_p"), ALTERNATIVE),
}

ROUND_RANGES: dict[str, Range] = {
    **dict.fromkeys(("position", "nodes", "gamma", "emitted"), COUNT),
    **dict.fromkeys(("target_before", "target_verified", "target_after"), COUNT),
    **dict.fromkeys(("draft_before", "draft_proposed", "draft_after"), COUNT),
    "closing_token": ID,
    "closing_ids": ID_OR_NONE,
    **dict.fromkeys(("closing_kind", "closing_draw"), CODE),
    "closing_emitted": FLAG,
    "closing_p": PROBABILITY,
    "closing_top": ALTERNATIVE,
    "closing_u": UNIFORM,
    **dict.fromkeys(("closing_cdf_lo", "closing_cdf_hi", "closing_mass", "closing_cdf"), CDF),
    **dict.fromkeys(("closing_entropy", "closing_time"), AMOUNT),
    "closing_second": RUNNER_UP,
    **dict.fromkeys(("draft_seconds", "verify_seconds", "other_seconds"), AMOUNT),
}

# Columns of alternatives, and the ids they belong to.
BESIDE = {
    "top_p": "top_ids",
    "top_q": "top_ids",
    "residual_p": "residual_ids",
    "closing_top": "closing_ids",
}


def problem(trace: Trace) -> str | None:
    """Return what is wrong with a trace, in words that follow "it is damaged: ", or None.

    Examples
    --------
    >>> trace = Trace({}, np.array([1]), k=2)
    >>> problem(trace) is None
    True
    >>> trace.prompt = np.array([-1])
    >>> problem(trace)
    'the prompt has a negative id'
    """
    return next(_problems(trace), None)


def _problems(trace: Trace) -> Iterator[str]:
    nodes, rounds = trace.node_table, trace.round_table
    if len(trace.prompt) and trace.prompt.min() < 0:
        yield "the prompt has a negative id"
    yield from _out_of_range("nodes", nodes, NODE_RANGES)
    yield from _out_of_range("rounds", rounds, ROUND_RANGES)
    yield from _past_the_vocabulary(trace)
    counts = rounds["nodes"].astype(np.int64)  # (rounds,)
    if counts.sum() != len(nodes):
        yield f"its rounds have {counts.sum()} proposals in all, but {len(nodes)} are recorded"
        return
    yield from _unsound(nodes, rounds, counts)
    yield from _not_text(trace)


def _out_of_range(folder: str, table: Table, ranges: dict[str, Range]) -> Iterator[str]:
    for name in table.names:
        values = table[name]
        full = name in FULL_NODES or name in FULL_ROUNDS
        allowed = PROBABILITY if full else ranges[name]
        if values.size == 0:
            continue
        low, high = _extremes(values)  # NaN if no number is there
        if low < allowed.low or high > allowed.high:
            worst = low if low < allowed.low else high
            yield f"{folder}/{name} holds {worst:g}, which must be {_words(allowed)}"
        if values.dtype.kind != "f":
            continue
        needed = values[table[BESIDE[name]] >= 0] if name in BESIDE else values
        if (name in BESIDE or not allowed.missing) and bool(np.isnan(needed).any()):
            yield f"{folder}/{name} holds NaN where a number must be"


def _extremes(values: NDArray[Any]) -> tuple[float, float]:
    """Return the smallest and largest number, NaN aside (without a warning if there is none)."""
    return float(np.fmin.reduce(values, axis=None)), float(np.fmax.reduce(values, axis=None))


def _words(allowed: Range) -> str:
    if allowed.high >= LAST:
        return f"a {'' if allowed.high == np.inf else 'finite '}number from {allowed.low:g} on"
    return f"within {allowed.low:g}..{allowed.high:.0f}"


def _past_the_vocabulary(trace: Trace) -> Iterator[str]:
    size = trace.full_vocab or trace.meta.get("vocab_size")
    if type(size) is not int:
        return
    of_nodes = ("token", "own_token", "top_ids", "residual_ids")
    of_rounds = ("closing_token", "closing_ids")
    for table, names in ((trace.node_table, of_nodes), (trace.round_table, of_rounds)):
        for name in names:
            if table[name].size and table[name].max() >= size:
                yield f"{name} holds {table[name].max()}, but the vocabulary has {size} tokens"


def _unsound(nodes: Table, rounds: Table, counts: NDArray[np.int64]) -> Iterator[str]:
    """Parents before children; the accepted nodes are one path; only they are emitted."""
    starts = np.cumsum(counts) - counts  # (rounds,)
    of_round = np.repeat(np.arange(len(rounds)), counts)  # (nodes,)
    local = np.arange(len(nodes)) - starts[of_round]  # index within the round
    if np.any(nodes["parent"] >= local):
        yield "a proposal stands before its parent"
    accepted = nodes["verdict"] == ACCEPTED
    if np.any(nodes["emitted"] > accepted):
        yield "a proposal that was not accepted is marked as emitted"
    path = np.flatnonzero(accepted)
    before = np.full(len(path), -1)  # the accepted node before this one in the same round
    same = of_round[path[1:]] == of_round[path[:-1]]
    before[1:][same] = local[path[:-1]][same]
    if np.any(nodes["parent"][path] != before):
        yield "the accepted proposals of a round are not one path"
    kept = np.bincount(of_round, weights=nodes["emitted"], minlength=len(rounds))
    if np.any(kept + rounds["closing_emitted"] != rounds["emitted"]):
        yield "a round's number of emitted tokens does not agree with the tokens themselves"


def _not_text(trace: Trace) -> Iterator[str]:
    texts = [*trace.strings.values(), *trace.prompt_pieces, *trace.pieces]
    if not all(isinstance(text, str) for text in texts):
        yield "strings and pieces must all be text"
    for name, found, wanted in (
        ("prompt_pieces", len(trace.prompt_pieces), len(trace.prompt)),
        ("pieces", len(trace.pieces), len(trace.tokens)),
    ):
        if found not in (0, wanted):
            yield f"it has {found} {name} for {wanted} tokens"
