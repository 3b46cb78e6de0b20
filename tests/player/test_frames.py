"""Where one is in a run: positions, steps, and the round to begin at."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

import specviz as sv
from specviz.core.tabular import TabularModel, TabularPair
from specviz.core.trace.trace import Trace
from specviz.player.projection import run_of
from specviz.player.steps.frames import (
    Position,
    chosen,
    frame_at,
    position_at,
    step_of,
)
from tests.figures.runs import hostile, story
from tests.player import handmade
from tests.player.runs import branching, decoded, pair


def plain() -> Trace:
    return sv.generate(pair(), [2], gamma=0, max_new_tokens=12, seed=3, progress=False)


def greedy() -> Trace:
    return sv.generate(
        pair(), [2], gamma=3, temperature=0, max_new_tokens=30, seed=3, progress=False
    )


def looked_up() -> Trace:
    """Prompt lookup: one-hot proposals, and rounds in which nothing was found."""
    return sv.generate(
        pair(), [2, 3, 2, 3, 4, 2], drafter=sv.PromptLookup(gamma=3), max_new_tokens=40, seed=5,
        progress=False,
    )  # fmt: skip


def ended() -> Trace:
    """The text ends within a run of accepted proposals."""
    table = np.array([[0.0, 0.6, 0.4], [0.0, 0.3, 0.7], [0.35, 0.35, 0.3]])
    model = TabularModel(table, eos_ids=[0])
    short = TabularPair(model, model, words=("</s>", " a", " b"))
    for seed in range(40):
        trace = sv.generate(short, [1], gamma=4, max_new_tokens=40, seed=seed, progress=False)
        if trace.finish_reason == "eos" and not trace.round_table["closing_emitted"][-1]:
            return trace
    raise AssertionError("no seed ends within a run of accepted proposals")


def coupled() -> Trace:
    """The draft runs its race with the target's own noise."""
    return sv.generate(
        pair(), [2], drafter=sv.DraftModel(gamma=4, noise="target"), verify="coupled",
        max_new_tokens=60, seed=4, progress=False,
    )  # fmt: skip


def match_tree() -> Trace:
    return sv.generate(
        pair(), [2], drafter=sv.Tree([2, 2]), verify="match", max_new_tokens=30, seed=2,
        progress=False,
    )  # fmt: skip


def bushy() -> Trace:
    """Trees too large to be drawn whole."""
    return sv.generate(
        pair(), [2], drafter=sv.Tree([3, 3, 3]), max_new_tokens=8, seed=2, progress=False
    )


def typical() -> Trace:
    with warnings.catch_warnings():  # that it is lossy
        warnings.simplefilter("ignore")
        return decoded(verify="typical")


def of(verify: str) -> Callable[[], Trace]:
    return lambda: decoded(verify=verify)


RUNS = {
    "chain": decoded,
    "tree": branching,
    "block": of("block"),
    "match": of("match"),
    "coupled": coupled,
    "trees of 39": bushy,
    "match in trees": match_tree,
    "greedy": greedy,
    "typical": typical,
    "prompt lookup": looked_up,
    "plain rounds": plain,
    "every mark": story,
    "hostile tokens": hostile,
    "end inside a run": ended,
    "no times": lambda: decoded(timed=False),
}


@cache
def made(name: str) -> Trace:
    return RUNS[name]()


@pytest.mark.parametrize("name", RUNS)
def test_positions_and_steps_are_inverse(name: str) -> None:
    run = run_of(made(name))
    assert [step_of(run, position_at(run, step)) for step in range(run.steps)] == list(
        range(run.steps)
    )
    for step in (-1, run.steps):
        with pytest.raises(IndexError, match="step must be within"):
            position_at(run, step)


def test_the_text_at_the_end_is_the_whole_text() -> None:
    for name in RUNS:
        run = run_of(made(name))
        assert frame_at(run, run.steps - 1).emitted == len(made(name).tokens)


def test_what_is_left_out_of_a_position_is_filled_in() -> None:
    run = run_of(story())
    assert chosen(run) == Position(1, "decide", 1)  # the first rejection
    assert chosen(run, 0) == Position(0, "close")  # a bonus
    assert chosen(run, 2) == Position(2, "close")  # nothing proposed
    assert chosen(run, 1, 0) == Position(1, "decide", 0)
    assert chosen(run, 1, 2) == Position(1, "draft", 2)  # never examined
    assert chosen(run, 0, None, "draft") == Position(0, "draft", 3)
    assert chosen(run, 1, None, "decide") == Position(1, "decide", 1)
    assert chosen(run, 1, phase="rollback") == Position(1, "rollback")
    assert chosen(run_of(plain())) == Position(0, "close")


def test_the_player_begins_at_the_round_that_explains_most() -> None:
    run = handmade.run(
        [
            {"nodes": [(" one", 1, 0.5, 0.4, 0.1)], "closing": " two", "kind": 2},
            {"nodes": [(" a", 2, 0.001, 0.4, 0.9)], "closing": " b", "kind": 1},
            {
                "nodes": [
                    (" the", 1, 0.6, 0.5, 0.3), (" old", 1, 0.3, 0.4, 0.2),
                    (" fox", 2, 0.2, 0.4, 0.9),
                ],
                "closing": " cat",
                "kind": 1,
            },
            {
                "nodes": [
                    ("x1", 1, 0.6, 0.5, 0.3), ("x2", 1, 0.3, 0.4, 0.2), ("x3", 2, 0.2, 0.4, 0.9),
                ],
                "closing": "x4",
                "kind": 1,
            },
        ]
    )  # fmt: skip
    assert run.header["opening"] == 2
    assert chosen(run) == Position(2, "decide", 2)


@pytest.mark.parametrize(
    ("asked", "kind", "said"),
    [
        ({"round": 5}, ValueError, r"round must be within 0\.\.4, got 5"),
        ({"round": -1}, ValueError, r"round must be within 0\.\.4, got -1"),
        ({"round": "one"}, TypeError, "round must be a whole number, got 'one'"),
        ({"round": True}, TypeError, "round must be a whole number, got True"),
        ({"node": 1}, ValueError, "node needs a round as well, as in round=0, node=1"),
        ({"round": 1, "node": 3}, ValueError, r"node must be within 0\.\.2 in round 1, got 3"),
        ({"round": 2, "node": 0}, ValueError, "node must be left out: round 2 has none, got 0"),
        ({"phase": "sleep"}, ValueError, "phase must be one of draft, verify, decide, close, "),
        ({"round": 2, "phase": "draft"}, ValueError, "phase must be verify or close in round 2"),
        ({"round": 1, "node": 2, "phase": "decide"}, ValueError, "was never examined"),
        ({"round": 1, "node": 0, "phase": "verify"}, ValueError, "node is for the phases draft"),
    ],
)
def test_a_place_that_is_not_there_is_refused(
    asked: dict[str, Any], kind: type[Exception], said: str
) -> None:
    with pytest.raises(kind, match=said):
        chosen(run_of(story()), **asked)


def test_an_empty_run_has_nothing_to_show() -> None:
    with pytest.raises(ValueError, match="trace has no rounds"):
        chosen(run_of(Trace({"rule": "rejection"}, np.array([1]))))
