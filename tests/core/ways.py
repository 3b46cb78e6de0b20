"""Ways of tampering with a trace: every field of every column and of the settings, and the rest."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

import specviz as sv
from specviz.core.rules import RULES
from specviz.core.tabular import TabularModel, TabularPair
from specviz.core.trace.trace import Trace

VOCAB = 24
NEVER = 20
"""A token of probability 0."""
FLAGS = ("emitted", "closing_emitted")
CODES = ("verdict", "q_draw", "closing_kind", "closing_draw")

Way = tuple[str, Trace]


KINDS: dict[str, dict[str, Any]] = {
    "chain": {"gamma": 2},
    "tree": {"drafter": sv.Tree((2, 2))},
    "block": {"gamma": 3, "verify": "block"},
    "match": {"gamma": 2, "verify": "match"},
    "match, tree": {"drafter": sv.Tree((2, 2)), "verify": "match"},
    "coupled": {"gamma": 2, "verify": "coupled"},
    "greedy": {"gamma": 2, "temperature": 0.0},
    "prompt lookup": {"drafter": sv.PromptLookup(gamma=3, min_ngram=1)},
    "target only": {"gamma": 0},
    "typical": {"gamma": 2, "verify": "typical"},
    "top-k": {"gamma": 2, "top_k": 3},
    "eos": {"gamma": 2},
}


@cache
def run(kind: str) -> Trace:
    """A short run of this kind; four of 24 alternatives are kept. Only "eos" ends by a token."""
    target = TabularModel.random(VOCAB, 1, seed=0, concentration=0.1).table.copy()
    other = TabularModel.random(VOCAB, 1, seed=1, concentration=0.1)
    target[:, NEVER] = 0
    target /= target.sum(axis=1, keepdims=True)
    pair = TabularPair(
        TabularModel(target, eos_ids=[2 if kind == "eos" else NEVER]),
        TabularModel(0.6 * target + 0.4 * other.table),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # typical is lossy, and says so
        return sv.generate(
            pair, [0, 1, 5, 7, 0, 1, 5], seed=34, k=4, max_new_tokens=10, progress=False,
            **KINDS[kind],
        )  # fmt: skip


def copied(trace: Trace) -> Trace:
    """The same run, to be changed."""
    twin = Trace(copy.deepcopy(trace.meta), trace.prompt.copy(), trace.k, trace.full_vocab)
    twin.strings = dict(trace.strings)
    twin.pieces, twin.prompt_pieces = list(trace.pieces), list(trace.prompt_pieces)
    for mine, theirs in (
        (trace.node_table, twin.node_table),
        (trace.round_table, twin.round_table),
    ):
        for name in mine.names:
            theirs.replace(name, mine[name].copy())
    return twin


def wrong_value(name: str, value: Any, dtype: Any) -> Any:
    """A value near the right one, of the right type and range."""
    if name in FLAGS:
        return 1 - value
    if name in CODES:
        return (value + 1) % 3
    if dtype.kind == "f":
        return value + 0.01 if value < 0.9 else value - 0.01
    return (value + 1) % VOCAB if name.endswith(("token", "ids")) else value + 1


def changes(column: Any, name: str, most: int, *, last: bool = True) -> list[tuple[int, int, Any]]:
    """(row, entry, new value): some entries that say something, each made a little wrong."""
    flat = column.reshape(len(column), -1 if len(column) else 1)
    said = np.isfinite(flat) if flat.dtype.kind == "f" else flat != -1
    rows, entries = np.nonzero(said)
    if not last:
        rows, entries = rows[rows < len(column) - 1], entries[rows < len(column) - 1]
    chosen = np.random.default_rng(0).permutation(len(rows))[:most]
    return [
        (row, entry, wrong_value(name, flat[row, entry], flat.dtype))
        for row, entry in zip(rows[chosen].tolist(), entries[chosen].tolist(), strict=True)
    ]


def changed(trace: Trace, table: str, name: str, row: int, entry: int, value: Any) -> Trace:
    """The same run with one number changed."""
    twin = copied(trace)
    column = getattr(twin, table)[name].copy()
    column.reshape(len(column), -1)[row, entry] = value
    getattr(twin, table).replace(name, column)
    return twin


def in_columns(trace: Trace, most: int = 1) -> Iterator[Way]:
    """Each column, a number of it changed."""
    for table in ("node_table", "round_table"):
        for name in getattr(trace, table).names:
            for change in changes(getattr(trace, table)[name], name, most):
                yield f"{table.removesuffix('_table')}.{name}", changed(trace, table, name, *change)


def in_settings(trace: Trace) -> Iterator[Way]:
    """Each setting deleted; each setting another value."""
    sampling, reason = trace.meta["sampling"], trace.meta["finish_reason"]

    def other(name: str, **values: Any) -> Way:
        twin = copied(trace)
        twin.meta.update(values)
        return name, twin

    def inside(setting: str, **values: Any) -> Way:
        twin = copied(trace)
        twin.meta[setting].update(values)
        return f"{setting}.{next(iter(values))}", twin

    for name in trace.meta:
        twin = copied(trace)
        del twin.meta[name]
        yield f"{name} deleted", twin
    for name in sampling:
        twin = copied(trace)
        del twin.meta["sampling"][name]
        yield f"sampling.{name} deleted", twin
    if sampling["temperature"]:
        yield "temperature 0", inside("sampling", temperature=0.0)[1]
        yield "top_k 1", inside("sampling", top_k=1)[1]
        yield "top_p .01", inside("sampling", top_p=0.01)[1]
        yield "min_p 1", inside("sampling", min_p=1.0)[1]
    else:
        yield "temperature 1", inside("sampling", temperature=1.0)[1]
    yield inside("sampling", temperature=sampling["temperature"] * 0.9 + (not sampling))
    yield inside("sampling", repetition_penalty=2.0)
    yield other("max_new_tokens less", max_new_tokens=len(trace.tokens) - 1)
    if reason == "length":
        yield other("max_new_tokens more", max_new_tokens=len(trace.tokens) + 1)
    for another in {"length", "context", "eos", "stop", None} - {reason}:
        yield other(f"finish_reason {another}", finish_reason=another)
    yield other("interrupted", interrupted=True)
    yield other("interrupted, and so it says", interrupted=True, finish_reason="interrupted")
    yield other("vocab_size more", vocab_size=VOCAB + 1)
    yield other("vocab_size less", vocab_size=VOCAB - 4)
    for name in ("target", "draft"):
        for key, value in trace.meta[name].items():
            if isinstance(value, str):
                yield inside(name, **{key: value + "x"})
            else:
                yield inside(name, **{key: 10_000 if value is None else value + 1})
    yield "target.context_length less", inside("target", context_length=10)[1]
    yield (
        other("lossless claimed", lossless=True)
        if not trace.lossless
        else other("lossless denied", lossless=False)
    )
    for rule in RULES.values():
        if rule.name != trace.meta["rule"]:
            yield other(
                f"rule {rule.name}", rule=rule.name, rule_settings=dict(rule.settings),
                lossless=rule.lossless,
            )  # fmt: skip
    for key, value in trace.meta["rule_settings"].items():
        yield inside("rule_settings", **{key: value * 2})
    yield other("seed", seed=trace.meta["seed"] + 1)
    yield other("sequence", sequence=trace.meta["sequence"] + 1)
    yield other("stop_ids with a token that closes", stop_ids=[int(trace.round_tokens(0)[-1])])
    yield other("stop_ids empty", stop_ids=[])
    yield other("stop_ids with one that never came", stop_ids=[*trace.meta["stop_ids"], 21])
    yield other("stop with a string that came", stop=[trace.pieces[0]])
    yield other("stop with a string that never came", stop=["zzz"])
    for name in ("kv_projection", "target_only", "prompt_lookup", "draft_model"):
        if name != trace.meta["drafter"]["name"]:
            yield f"drafter.name {name}", inside("drafter", name=name)[1]
    yield inside("drafter", gamma=trace.meta["drafter"]["gamma"] + 1)
    noise = "draft" if trace.meta["drafter"].get("noise") == "target" else "target"
    yield inside("drafter", noise=noise)
    yield inside("versions", torch="0")


def without_last_rounds(trace: Trace, n: int) -> Trace:
    """The run with its last n rounds dropped."""
    twin, kept = copied(trace), len(trace) - n
    nodes = int(trace.round_table["nodes"][:kept].sum())
    for table, rows in ((twin.node_table, nodes), (twin.round_table, kept)):
        for name in table.names:
            table.replace(name, table[name][:rows].copy())
    twin.pieces = twin.pieces[: len(twin.tokens)]
    return twin


def with_another_closing_token(trace: Trace, row: int) -> Trace | None:
    """The closing token of a round replaced by another listed one, its numbers to match."""
    at = {name: trace.round_table[name][row] for name in trace.round_table.names}
    listed = zip(at["closing_ids"], at["closing_top"], at["closing_cdf"], strict=True)
    for token, p, low in listed:
        if token >= 0 and token != at["closing_token"]:
            twin = copied(trace)
            values = {"closing_token": token, "closing_p": p}
            if at["closing_draw"] == 1:
                values |= {"closing_cdf_lo": low, "closing_cdf_hi": low + p}
                values["closing_u"] = (low + p / 2) / at["closing_mass"]
            for name, value in values.items():
                column = twin.round_table[name].copy()
                column[row] = value
                twin.round_table.replace(name, column)
            return twin
    return None


def in_the_rest(trace: Trace) -> Iterator[Way]:
    """Rounds, prompt, texts, and draws that are changed with all that belongs to them."""
    for n in (1, 2):
        yield f"last {n} rounds dropped", without_last_rounds(trace, n)
    for row in range(len(trace)):
        twin = with_another_closing_token(trace, row)
        if twin is not None:
            yield "another closing token", twin
    twin = copied(trace)
    twin.prompt[0] = 2
    yield "prompt", twin
    twin = copied(trace)
    twin.prompt, twin.prompt_pieces = twin.prompt[1:], twin.prompt_pieces[1:]
    yield "prompt shorter", twin
    twin = copied(trace)
    twin.pieces[3] = "zz"
    yield "pieces", twin
    twin = copied(trace)
    twin.strings[int(trace.tokens[0])] = "zz"
    yield "strings", twin
    twin = copied(trace)
    twin.k += 1
    yield "k", twin


def every_way(trace: Trace) -> Iterator[Way]:
    """All of these."""
    yield from in_columns(trace)
    yield from in_settings(trace)
    yield from in_the_rest(trace)
