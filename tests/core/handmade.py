"""Small traces whose every number is known: made by hand, or decoded from tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import specviz as sv
from specviz.core.tabular import TabularModel, TabularPair
from specviz.core.trace.trace import Trace

NEVER, ACCEPTED, REJECTED = 0, 1, 2
PLAIN, CORRECTION, BONUS = 0, 1, 2


def add_round(
    trace: Trace,
    tokens: Sequence[int] = (),
    *,
    closing: int,
    path: Sequence[int] | None = None,
    parent: Sequence[int] | None = None,
    rejected: Sequence[int] | None = None,
    emitted: int | None = None,
    overlap: float | Sequence[float] = 0.5,
    seconds: tuple[float, float, float] = (0.4, 1.0, 0.1),
) -> None:
    """Append a round that accepted the nodes of ``path``, emitted that many tokens, and closed.

    By default a chain whose first node after the path was rejected, all of it emitted.
    """
    n, taken = len(tokens), list(path or ())
    up = list(range(-1, n - 1)) if parent is None else list(parent)
    last = taken[-1] if taken else -1
    refused = [i for i in range(n) if up[i] == last] if rejected is None else list(rejected)
    verdict = np.full(n, NEVER)
    verdict[refused], verdict[taken] = REJECTED, ACCEPTED
    count = len(taken) + 1 if emitted is None else emitted
    kept = np.zeros(n, dtype=int)
    kept[taken[:count]] = 1
    kind = PLAIN if n == 0 else (CORRECTION if refused else BONUS)
    trace.append(
        {
            "position": len(trace.prompt) + len(trace.tokens),
            "nodes": n,
            "gamma": n,
            "emitted": count,
            "closing_token": closing,
            "closing_kind": kind,
            "closing_emitted": int(count == len(taken) + 1),
            "closing_p": 0.5,
            **dict(zip(("draft_seconds", "verify_seconds", "other_seconds"), seconds, strict=True)),
        },
        {
            "token": np.array(tokens, dtype=int),
            "parent": np.array(up, dtype=int),
            "verdict": verdict,
            "emitted": kept,
            "p": 0.25,
            "q": 0.5,
            "acceptance": 0.5,
            "u": 0.75,
            "overlap": overlap,
        },
    )


def empty(**meta: Any) -> Trace:
    """A trace without rounds: prompt [7, 8], three alternatives kept."""
    trace = Trace({"rule": "rejection", "vocab_size": 10, **meta}, np.array([7, 8]), k=3)
    trace.strings = {token: "abcdefghij"[token] for token in range(10)}
    return trace


def one_of_each() -> Trace:
    """A correction, full acceptance, a plain step, a tree, and a text that ends in mid-round."""
    trace = empty()
    add_round(trace, [1, 2, 3], path=[0, 1], closing=4, overlap=[0.9, 0.8, 0.1])
    add_round(trace, [5, 6], path=[0, 1], closing=0, overlap=[0.7, 0.6])
    add_round(trace, closing=9)
    # 0, 1: first position; 2, 3: after node 1; 4: after node 3
    add_round(
        trace, [1, 2, 3, 4, 5], parent=[-1, -1, 1, 1, 3], path=[1, 3], rejected=[0, 2, 4],
        closing=6, overlap=[0.5, 0.01, 0.4, 0.02, 0.3],
    )  # fmt: skip
    add_round(trace, [1, 2, 3], path=[0, 1, 2], closing=4, emitted=2, overlap=[1.0, 1.0, 1.0])
    return trace


ONE_OF_EACH_TOKENS = [1, 2, 4, 5, 6, 0, 9, 2, 4, 6, 1, 2]


def decoded(vocab_size: int = 8, *, tokens: int = 60, **options: Any) -> Trace:
    """A trace of random tables, decoded by the package."""
    pair = TabularPair(
        TabularModel.random(vocab_size, order=1, seed=0),
        TabularModel.random(vocab_size, order=1, seed=1, concentration=2.0),
    )
    options = {"gamma": 4, "seed": 3, **options}
    return sv.generate(pair, [0, 1], max_new_tokens=tokens, progress=False, **options)


def assert_equal(a: Trace, b: Trace) -> None:
    """Every number, times included, and every string."""
    assert a.same_as(b) and b.same_as(a)
    for mine, theirs in ((a.node_table, b.node_table), (a.round_table, b.round_table)):
        assert mine.names == theirs.names
        for name in mine.names:
            assert mine[name].dtype == theirs[name].dtype
            assert mine[name].tobytes() == theirs[name].tobytes()
    for name in ("meta", "k", "full_vocab", "strings", "prompt_pieces", "pieces", "text"):
        assert getattr(a, name) == getattr(b, name)
    assert a.prompt.tolist() == b.prompt.tolist()
