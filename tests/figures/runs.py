"""Runs made by hand for the tests of figures: every verdict, any token text, any length."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from specviz.core.trace.trace import Trace

HOSTILE = [
    "</script><img src=x onerror=alert(1)>",
    "<!--",
    "\u2028",
    "\u202eabc",
    "\n" * 10_000,
    "\x1b[31mred",
    "⟨E2 80⟩",
    "\udc80",
    "",
    " ",
    "a\nb",
    "👩‍🚀",
    "שלום",
    "\"&quot;'",
    "$x^2$ and \\$",
    "\u0301",
]


def trace_of(
    rounds: Sequence[tuple[Sequence[tuple[str, str]], tuple[str, str]]],
    *,
    rule: str = "rejection",
    prompt: str = "Once",
    tree: Sequence[Sequence[int]] | None = None,
    **meta: Any,
) -> Trace:
    """Build a trace from words.

    Each round is (proposals, closing): proposals are (text, verdict), closing is (text, kind).
    ``tree`` gives each round's parents; without it every round is a chain.
    """
    trace = Trace({"rule": rule, "finish_reason": "length", **meta}, np.array([0]), k=2)
    trace.strings[0] = prompt
    ids: dict[str, int] = {prompt: 0}
    position = 1

    def number(text: str) -> int:
        token = ids.setdefault(text, len(ids))
        trace.strings[token] = text
        return token

    for index, (proposals, (closing, kind)) in enumerate(rounds):
        n = len(proposals)
        tokens = np.array([number(text) for text, _ in proposals], dtype=int)
        verdicts = [
            ("never examined", "accepted", "rejected", "past the end").index(verdict)
            for _, verdict in proposals
        ]
        cut = "past the end" in [v for _, v in proposals]
        kept = [v == 1 for v in verdicts]
        p, q = np.linspace(0.4, 0.6, n), np.linspace(0.3, 0.8, n)
        other = number("other")
        union = np.array([[t, other, -1, -1, -1] for t in tokens]).reshape(n, 5)
        nodes = {
            "token": tokens,
            "parent": tree[index] if tree else np.arange(n) - 1,
            "verdict": [1 if v == 3 else v for v in verdicts],
            "emitted": kept,
            "p": p,
            "q": q,
            "acceptance": np.minimum(1, p / q) if n else [],
            "u": np.where(kept, 0.1, 0.99),
            "overlap": np.full(n, 0.75),
            "entropy_p": np.full(n, 1.0),
            "entropy_q": np.full(n, 1.1),
            "q_draw": np.ones(n),
            "top_ids": union,
            "top_p": np.column_stack([p, 0.9 * (1 - p), *[np.full(n, np.nan)] * 3]),
            "top_q": np.column_stack([q, 0.9 * (1 - q), *[np.full(n, np.nan)] * 3]),
            "tail_p_above": 0.1 * (1 - p),
            "tail_q_above": 0.05 * (1 - q),
            "tail_p_below": np.zeros(n),
            "tail_q_below": 0.05 * (1 - q),
        }
        emitted = sum(kept) + (not cut)
        trace.append(
            {
                "position": position,
                "nodes": n,
                "gamma": n,
                "emitted": emitted,
                "closing_token": number(closing),
                "closing_kind": ("plain", "correction", "bonus").index(kind),
                "closing_emitted": not cut,
                "closing_draw": 1,
                "closing_p": 0.25,
                "closing_entropy": 1.0,
                "closing_u": 0.5,
                "closing_cdf_lo": 0.4,
                "closing_cdf_hi": 0.65,
                "closing_mass": 1.0,
                "target_before": position - 1,
                "target_verified": position + n,
                "target_after": position + emitted - 1,
                "draft_seconds": 0.001 * n,
                "verify_seconds": 0.010,
                "other_seconds": 0.0005,
            },
            nodes,
        )
        position += emitted
    return trace


STORY = [
    (
        [(" upon", "accepted"), (" a", "accepted"), (" time", "accepted"), (",", "accepted")],
        (" there", "bonus"),
    ),
    (
        [(" lived", "accepted"), (" an", "rejected"), (" old", "never examined")],
        (" a", "correction"),
    ),
    ([], (" fox", "plain")),
    ([], (" who", "plain")),
    ([(" walk", "accepted"), ("ed", "accepted")], (" home", "bonus")),
]


def story() -> Trace:
    """A short run with every kind of mark but the tree's."""
    return trace_of(STORY)


@cache
def long_story(rounds: int) -> Trace:
    """The same, over and over; nobody changes it, so it is made once."""
    return trace_of([STORY[i % len(STORY)] for i in range(rounds)])


def hostile() -> Trace:
    """A run whose tokens try to break out of wherever they are shown."""
    return trace_of(
        [([(text, "accepted")], (text, "bonus")) for text in HOSTILE],
        prompt=HOSTILE[0] + "\u202e\n",
    )


def branching() -> Trace:
    """One round with a tree: two candidates for the first place, two for the second."""
    proposals = [
        (" a", "rejected"),
        (" the", "accepted"),
        (" cat", "never examined"),
        (" fox", "accepted"),
        (" dog", "never examined"),
    ]
    return trace_of([(proposals, (" ran", "bonus"))], tree=[[-1, -1, 0, 1, 1]])
