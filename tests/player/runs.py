"""Runs for the tests of the player: real ones, decoded from small tables of words."""

from __future__ import annotations

from functools import cache

import numpy as np

import specviz as sv
from specviz.core.tabular import TabularModel, TabularPair
from specviz.core.trace.trace import Trace

WORDS = ("\n", ".", " the", " old", " fox", " met", " a", " young", " rabbit", " and", " ran", "s")


def pair() -> TabularPair:
    """A target and a draft that agree about two times of three."""
    target = TabularModel.random(len(WORDS), order=1, seed=5, concentration=0.4)
    other = TabularModel.random(len(WORDS), order=1, seed=6, concentration=0.4)
    draft = TabularModel(0.6 * target.table + 0.4 * other.table)
    return TabularPair(target, draft, words=WORDS)


@cache
def decoded(
    tokens: int = 60, gamma: int = 4, seed: int = 0, timed: bool = True, verify: str = "rejection"
) -> Trace:
    """A run, with times that depend on nothing but the round."""
    trace = sv.generate(
        pair(), [2], gamma=gamma, max_new_tokens=tokens, seed=seed, verify=verify, progress=False
    )
    n = len(trace)
    proposals = trace.round_table["nodes"]
    seconds = {
        "draft_seconds": 0.001 * proposals,
        "verify_seconds": np.full(n, 0.010),
        "other_seconds": np.full(n, 0.0005),
    }
    for name, values in seconds.items():
        trace.round_table.replace(name, values if timed else np.full(n, np.nan))
    return trace


@cache
def branching() -> Trace:
    """A run with trees."""
    return sv.generate(
        pair(), [2], drafter=sv.Tree([2, 2]), max_new_tokens=20, seed=1, progress=False
    )
