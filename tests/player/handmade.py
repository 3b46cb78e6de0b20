"""Runs made by hand: small enough to say by heart what is shown of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from specviz.player.steps.run import NONE, Projection, Run, indexed
from specviz.player.steps.story import told

NAN = float("nan")


def run(rounds: Sequence[dict[str, Any]], **more: Any) -> Run:
    """Return a run.

    A round is ``{"nodes": [(word, verdict, p, q, u, parent, own, own time, time in the draft's
    race)], "closing": word, "kind": 0 plain, 1 correction, 2 bonus}``; of a node what is left out
    at the end has a default. Verdicts are 0 never examined, 1 accepted, 2 rejected.
    """
    strings = ["other", "else"]

    def number(word: str) -> int:
        if word not in strings:
            strings.append(word)
        return strings.index(word)

    nodes = [
        (*one, *(i - 1, None, 0.1, NAN)[len(one) - 5 :])
        for each in rounds
        for i, one in enumerate(each["nodes"])
    ]
    word, verdict, p, q, u, parent, own, own_time, q_time = (
        list(column) for column in (zip(*nodes, strict=True) if nodes else [[]] * 9)
    )
    p, q = np.array(p, dtype=float), np.array(q, dtype=float)
    kept, n = np.array(verdict) == 1, len(nodes)
    other = np.full(n, number("other"))
    tokens = np.array([number(one) for one in word], dtype=int)
    raced = np.array([one is not None for one in own], dtype=bool)
    nothing = np.full(n, NONE)
    with np.errstate(all="ignore"):
        accepted = np.minimum(1, p / q)
    node = {
        "token": (tokens, "u2", ""),
        "parent": (np.array([NONE if i < 0 else i for i in parent]), "u2", ""),
        "verdict": (np.array(verdict), "u1", ""),
        "emitted": (kept, "u1", ""),
        "q_draw": (np.full(n, more.get("draw", 1)), "u1", ""),
        "own": (np.array([NONE if one is None else number(one) for one in own]), "u2", ""),
        "p": (p, "f4", ""), "q": (q, "f4", ""), "acceptance": (accepted, "f4", ""),
        "u": (np.array(u, dtype=float), "f4", ""), "overlap": (1 - abs(p - q), "f4", ""),
        "q_time": (np.array(q_time, dtype=float), "f4", ""),
        "own_time": (np.where(raced, np.array(own_time, dtype=float), NAN), "f4", ""),
        "own_second": (np.where(raced, 0.3, NAN), "f4", ""),
        "top": (np.stack([tokens, other, nothing], axis=1), "u2", ""),
        "top_p": (np.stack([p, more.get("rest", 0.9) * (1 - p), 0 * p], axis=1), "f4", ""),
        "top_q": (np.stack([q, 0.9 * (1 - q), 0 * q], axis=1), "f4", ""),
        "tail_p": (np.stack([0.1 * (1 - p), 0 * p], axis=1), "f4", ""),
        "tail_q": (np.tile(0.05 * (1 - q), (2, 1)).T, "f4", ""),
        "top_lo": (np.stack([0 * q, q, 0 * q], axis=1), "f4", ""),
        "q_u": (np.full(n, 0.5), "f4", ""), "q_second": (2 * np.array(q_time, float), "f4", ""),
        "residual_lo": (np.tile([0.2, 0.0], (n, 1)), "f4", ""),
        "residual": (np.tile([number("other"), number("else")], (n, 1)), "u2", ""),
        "residual_p": (np.tile([0.75, 0.2], (n, 1)), "f4", ""),
    }  # fmt: skip
    many = np.array([len(one["nodes"]) for one in rounds])
    emitted = np.array([sum(x[1] == 1 for x in one["nodes"]) + 1 for one in rounds])
    position = 2 + np.concatenate([[0], np.cumsum(emitted)[:-1]]).astype(int)
    r, closing = len(rounds), np.array([number(one["closing"]) for one in rounds])
    fed = position + np.maximum(0, many - 1)
    columns: dict[str, Any] = {
        "position": position, "nodes": many, "closing": closing,
        "closing_kind": [one["kind"] for one in rounds],
        "closing_emitted": [not one.get("cut") for one in rounds],
        "closing_draw": [one.get("how", 1) for one in rounds],
        "closing_p": np.full(r, 0.25), "closing_u": np.full(r, 0.5),
        "closing_lo": np.full(r, 0.4), "closing_hi": np.full(r, 0.65),
        "distribution": np.stack([closing, np.zeros(r)], axis=1),
        "distribution_p": np.tile([0.25, 0.5], (r, 1)),
        "distribution_lo": np.tile([0.4, 0.65], (r, 1)),
        "closing_time": np.full(r, 0.1), "closing_second": np.full(r, 0.2),
        "target_before": position - 1, "target_verified": position + many,
        "target_after": position + emitted - 1, "draft_before": position - 1,
        "draft_proposed": fed, "draft_after": np.minimum(position + emitted - 1, fed),
        "draft_seconds": 0.001 * many, "verify_seconds": np.full(r, 0.01),
        "other_seconds": np.zeros(r),
    }  # fmt: skip
    floats = ("closing_p", "closing_u", "closing_lo", "closing_hi", "distribution_p",
              "distribution_lo", "closing_time", "closing_second",
              "draft_seconds", "verify_seconds", "other_seconds")  # fmt: skip
    round_ = {
        name: (np.array(values), "f4" if name in floats else "i4", "")
        for name, values in columns.items()
    }
    header = {
        "rounds": r, "nodes": n, "strings": strings, "pieces": {}, "prompt": "Once upon",
        "prompt_length": 2, "rule": more.get("rule", "rejection"),
        "judged_by_u": more.get("judged", True), "label": "draft model",
        "right_to_left": False, "baseline": {"seconds": 0.01, "measured": False},
    }  # fmt: skip
    bare = Projection(header, node, round_)
    return indexed(told(indexed(bare), bare))


def story() -> Run:
    """Three rounds: one with a rejection, one without proposals, one with a bonus."""
    return run(
        [
            {
                "nodes": [
                    (" a", 1, 0.6, 0.5, 0.3),
                    (" fox", 2, 0.31, 0.62, 0.71),
                    (" who", 0, 0.4, 0.5, 0.1),
                ],
                "closing": " cat",
                "kind": 1,
            },
            {"nodes": [], "closing": " sat", "kind": 0},
            {
                "nodes": [(" down", 1, 0.5, 0.5, 0.9), (".", 1, 0.9, 0.3, 0.2)],
                "closing": " Then",
                "kind": 2,
            },
        ]
    )


def tree() -> Run:
    """One round with a tree: two candidates for the first place, one and two behind them."""
    nodes = [
        (" a", 2, 0.2, 0.5, 0.9, -1),
        (" the", 1, 0.6, 0.4, 0.1, -1),
        (" cat", 0, 0.3, 0.3, 0.5, 0),
        (" dog", 2, 0.1, 0.6, 0.8, 1),
        (" fox", 1, 0.5, 0.4, 0.2, 1),
    ]
    return run([{"nodes": nodes, "closing": " ran", "kind": 2}])
