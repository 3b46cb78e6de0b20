"""What a trace must hold so that every reader can rely on it: types, ranges, a sound structure.

Used when a trace is written and when one is read (:mod:`specviz.core.trace.files`). Whether the
numbers *follow* from each other is another question, which ``trace.check()`` answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from specviz.core.checks import SEED_LIMIT, shown
from specviz.core.contract import Sampling
from specviz.core.trace.columns import (
    LAST,
    NODES,
    PROBABILITY,
    ROUNDS,
    Column,
    Columns,
    Range,
    width_of,
)
from specviz.core.trace.trace import Trace

ACCEPTED = 1
FINISH_REASONS = ("length", "context", "eos", "stop", "interrupted", "error")


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
    yield from _not_settings(trace.meta)
    if len(trace.prompt) and trace.prompt.min() < 0:
        yield "the prompt has a negative id"
    yield from _out_of_range("nodes", nodes, NODES, trace.k)
    yield from _out_of_range("rounds", rounds, ROUNDS, trace.k)
    yield from _past_the_vocabulary(trace)
    counts = rounds["nodes"].astype(np.int64)  # (rounds,)
    if counts.sum() != len(nodes):
        yield f"its rounds have {counts.sum()} proposals in all, but {len(nodes)} are recorded"
        return
    yield from _unsound(nodes, rounds, counts)
    yield from _not_text(trace)


# -- settings -------------------------------------------------------------------------------------


def _is_whole(value: Any, least: int = 0, most: float = 2**63) -> bool:
    return type(value) is int and least <= value < most


def _is_number(value: Any) -> bool:
    return type(value) in (int, float)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_sampling(value: Any) -> bool:
    try:
        return isinstance(Sampling(**value), Sampling)
    except (TypeError, ValueError):
        return False


def _is_drafter(value: Any) -> bool:
    if not isinstance(value, dict) or not _is_text(value.get("name")):
        return False
    inside = value.get("drafters", [])
    return isinstance(inside, list) and all(_is_drafter(one) for one in inside)


def _is_model(value: Any) -> bool:
    return isinstance(value, dict) and all(
        is_one(value[name])
        for name, is_one in MODEL.items()
        if name in value
    )  # fmt: skip


MODEL: dict[str, Callable[[Any], bool]] = {
    **dict.fromkeys(("name", "kind", "device", "dtype"), _is_text),
    **dict.fromkeys(("parameters", "vocab_size"), _is_whole),
    "context_length": lambda value: value is None or _is_whole(value),
}

SETTINGS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "rule": ("the name of a rule", _is_text),
    "rule_settings": (
        "an object of numbers",
        lambda value: isinstance(value, dict) and all(map(_is_number, value.values())),
    ),
    "lossless": ("true or false", lambda value: isinstance(value, bool)),
    "drafter": ("an object with the drafter's name", _is_drafter),
    "sampling": ("an object of sampling settings", _is_sampling),
    "seed": ("a whole number below 2**32", lambda value: _is_whole(value, 0, SEED_LIMIT)),
    "sequence": ("a whole number below 2**32", lambda value: _is_whole(value, 0, SEED_LIMIT)),
    "max_new_tokens": ("a whole number", _is_whole),
    "stop": (
        "a list of strings",
        lambda value: isinstance(value, list) and all(map(_is_text, value)),
    ),
    "stop_ids": (
        "a list of token ids",
        lambda value: isinstance(value, list) and all(map(_is_whole, value)),
    ),
    "target": ("an object that describes a model", _is_model),
    "draft": (
        "an object that describes a model, or null",
        lambda value: value is None or _is_model(value),
    ),
    "vocab_size": ("a whole number above 0", lambda value: _is_whole(value, 1)),
    "versions": (
        "an object of strings",
        lambda value: isinstance(value, dict) and all(map(_is_text, value.values())),
    ),
    "interrupted": ("true or false", lambda value: isinstance(value, bool)),
    "finish_reason": (
        f"null or one of {', '.join(FINISH_REASONS)}",
        lambda value: value is None or value in FINISH_REASONS,
    ),
}
"""What the settings of a run must be where they are given; others may stand beside them."""


def _not_settings(meta: Mapping[str, Any]) -> Iterator[str]:
    for name, (wanted, is_one) in SETTINGS.items():
        if name in meta and not is_one(meta[name]):
            yield f"its setting {name} must be {wanted}, and is {shown(meta[name])}"


# -- columns --------------------------------------------------------------------------------------


def _out_of_range(
    folder: str, table: Columns, schema: Mapping[str, Column], k: int
) -> Iterator[str]:
    for name in table.names:
        values, column = table[name], schema.get(name)  # None: a full distribution
        allowed = PROBABILITY if column is None else column.allowed
        if column is not None and values.shape[1:] != width_of(column, k):
            yield f"{folder}/{name} has {values.shape[1:]} numbers a row, which k = {k} rules out"
        if values.size == 0:
            continue
        low, high = _extremes(values)  # NaN if no number is there
        if low < allowed.low or high > allowed.high:
            worst = low if low < allowed.low else high
            yield f"{folder}/{name} holds {worst:g}, which must be {_words(allowed)}"
        if values.dtype.kind != "f":
            continue
        beside = "" if column is None else column.beside
        needed = values[table[beside] >= 0] if beside else values
        if (beside or not allowed.missing) and bool(np.isnan(needed).any()):
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
    if size is None:
        return
    of_nodes = ("token", "own_token", "top_ids", "residual_ids")
    of_rounds = ("closing_token", "closing_ids")
    for table, names in ((trace.node_table, of_nodes), (trace.round_table, of_rounds)):
        for name in names:
            if table[name].size and table[name].max() >= size:
                yield f"{name} holds {table[name].max()}, but the vocabulary has {size} tokens"


# -- structure ------------------------------------------------------------------------------------


def _unsound(nodes: Columns, rounds: Columns, counts: NDArray[np.int64]) -> Iterator[str]:
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
