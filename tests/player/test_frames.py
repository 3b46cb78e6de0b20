"""Frame by frame, Python shows what the player's script shows."""

from __future__ import annotations

import json
import math
import subprocess
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import specviz as sv
from specviz.core.tabular import TabularModel, TabularPair
from specviz.core.trace.trace import Trace
from specviz.player.captions import caption
from specviz.player.draw_state import draw_at
from specviz.player.frames import (
    Position,
    cache_at,
    chosen,
    frame_at,
    pending,
    position_at,
    seconds_at,
    step_of,
)
from specviz.player.picture.tree import places
from specviz.player.projection import pack, project
from specviz.player.run import run_of
from specviz.player.view_state import bars_at, measures_at, slots_at
from tests.figures.runs import hostile, story
from tests.player.node import NODE
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


def told(trace: Trace, folder: Path) -> list[dict[str, Any]]:
    """Every frame of a run as the script tells it."""
    (folder / "run").write_bytes(pack(project(trace)))
    script = Path(__file__).with_name("js") / "told.mjs"
    done = subprocess.run(
        [NODE, str(script), str(folder / "run")],
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.split("\n")]


def alike(ours: Any, theirs: Any) -> bool:
    """Whether two values are the same; JSON has no word for NaN but null."""
    if isinstance(ours, float) or isinstance(theirs, float):
        if theirs is None:
            return not math.isfinite(ours)
        return math.isclose(ours, theirs, rel_tol=1e-6, abs_tol=1e-7)
    if isinstance(ours, (list, tuple)):
        return len(ours) == len(theirs) and all(map(alike, ours, theirs))
    return bool(ours == theirs)


def differences(trace: Trace, frames: list[dict[str, Any]]) -> list[str]:
    """What Python shows otherwise than the script, frame by frame."""
    run = run_of(trace)
    found = [] if run.steps == len(frames) else [f"{run.steps} steps, not {len(frames)}"]
    for step, theirs in enumerate(frames[: run.steps]):
        frame = frame_at(run, step)
        bars, draw, now = bars_at(run, frame), draw_at(run, frame), measures_at(run, frame)
        tree = places(run, frame)
        caches = [cache_at(run, frame, which) for which in ("target", "draft")]
        ours = {
            "step": step,
            **{n: getattr(frame, n) for n in ("round", "phase", "node", "closing", "emitted")},
            "status": list(frame.status),
            "seen_p": frame.seen_p,
            "settled": frame.settled,
            "pending": pending(run, frame),
            "caption": caption(run, frame),
            "seconds": seconds_at(run, frame),
            "caches": [
                {n: getattr(one, n) for n in ("before", "now", "peak", "after")} for one in caches
            ],
            "slots": [
                [[s.at, s.state, s.text] for s in slots_at(run, frame, which)[1]]
                for which in ("target", "draft")
            ],
            "bars": [
                bars.mode,
                bars.title,
                [[b.text, b.p, b.q, bool(b.proposed)] for b in bars.rows],
            ],
            "overlap": bars.overlap,
            "tail": [bars.tail.p, bars.tail.q, bars.tail.over],
            "draw": {
                "says": draw.says,
                "test": draw.test,
                "pieces": [[run.text(one.token), one.p, one.lo] for one in draw.pieces],
                "title": draw.title,
                "v": draw.v,
                "contests": [
                    [
                        contest.title,
                        [
                            [one.text, one.role, one.mark, one.look, one.start, one.end, one.value]
                            for one in contest.lanes
                        ],
                    ]
                    for contest in draw.contests
                ],
            },
            "measures": {
                "rounds": now.rounds,
                "tokens": now.tokens,
                "perPass": now.per_pass,
                "alpha": now.alpha,
                "accepted": now.accepted,
                "proposed": now.proposed,
                "speedup": now.speedup,
                "seconds": now.seconds,
            },
            "tree": {
                "leaves": tree.leaves,
                "levels": tree.levels,
                "nodes": [[i, tree.x[i], tree.y[i]] for i in tree.nodes],
                "folds": [list(one) for one in tree.folds],
            },
        }
        for name, value in ours.items():
            other = theirs[name]
            if isinstance(value, dict):
                same = all(alike(value[key], other.get(key)) for key in value)
            else:
                same = alike(value, other)
            if not same:
                found.append(f"step {step}, {name}: {value!r} is not {other!r}")
    return found


@pytest.mark.parametrize("name", RUNS)
def test_every_frame_is_the_players(name: str, tmp_path: Path) -> None:
    trace = made(name)
    assert not differences(trace, told(trace, tmp_path))


def test_another_run_would_be_told_apart(tmp_path: Path) -> None:
    frames = told(made("chain"), tmp_path)
    assert len(differences(decoded(seed=1), frames)) > 20


def test_a_fault_in_one_frame_would_be_seen(tmp_path: Path) -> None:
    frames = told(made("chain"), tmp_path)
    frames[7]["emitted"] += 1
    frames[9]["status"][0] = "never"
    assert [line.split(":")[0] for line in differences(made("chain"), frames)] == [
        "step 7, emitted",
        "step 9, status",
    ]


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
