"""The projection says what the trace says, in few bytes, the same ones each time."""

from __future__ import annotations

import gzip
import json
from typing import Any

import numpy as np
import pytest

import specviz as sv
from specviz.core.trace.trace import Trace
from specviz.figures.comparison import Comparison
from specviz.player.page import page
from specviz.player.projection import (
    MAGIC,
    MOST_STRINGS,
    NONE,
    label,
    node_columns,
    pack,
    project,
    run_of,
)
from specviz.player.steps.frames import frame_at
from specviz.player.steps.views import measures_at
from tests.figures.runs import HOSTILE, hostile, long_story, story
from tests.player.runs import branching, decoded, pair


def header_of(packed: bytes) -> dict[str, Any]:
    assert packed[:4] == MAGIC
    size = int.from_bytes(packed[4:8], "little")
    return json.loads(packed[8 : 8 + size])


def test_the_same_run_gives_the_same_bytes() -> None:
    assert pack(project(decoded())) == pack(project(decoded()))
    assert pack(project(decoded())) != pack(project(decoded(seed=1)))


def test_columns_have_a_row_each_and_describe_themselves() -> None:
    trace = decoded()
    made = project(trace)
    assert {len(v) for v, _, _ in made.node_columns.values()} == {len(trace.node_table)}
    assert {len(v) for v, _, _ in made.round_columns.values()} == {len(trace)}
    header = header_of(pack(made))
    sizes = {"u1": 1, "u2": 2, "i4": 4, "f4": 4}
    body = sum(sizes[k] * w * len(trace.node_table) for _, k, w, _ in header["node_columns"])
    body += sum(sizes[k] * w * len(trace) for _, k, w, _ in header["round_columns"])
    body += sum(sizes[k] * w * header["steps"] for _, k, w, _ in header["step_columns"])
    packed = pack(made)
    assert len(packed) == 8 + int.from_bytes(packed[4:8], "little") + body
    assert (8 + int.from_bytes(packed[4:8], "little")) % 8 == 0


def test_a_page_takes_less_than_200_bytes_per_proposal() -> None:
    trace = decoded(tokens=2_000, gamma=8)
    proposals = len(trace.node_table)
    fixed = len(page(decoded(tokens=1)).encode())
    assert proposals > 4_000
    assert (len(page(trace).encode()) - fixed) / proposals < 200
    # 2,000 rounds of 8, script, style and the text for readers without scripts included
    per_proposal = (len(page(trace).encode()) - fixed) / proposals + fixed / 16_000
    assert per_proposal < 200


def test_races_fit_in_the_same_room() -> None:
    trace = decoded(tokens=1_500, gamma=8, verify="match")
    fixed = len(page(decoded(tokens=1, verify="match")).encode())
    proposals = len(trace.node_table)
    assert proposals > 4_000
    assert (len(page(trace).encode()) - fixed) / proposals + fixed / 16_000 < 200


def test_races_are_told_by_their_first_two_arrivals() -> None:
    trace = decoded(verify="match")
    made = project(trace).node_columns
    for name in ("own_time", "own_second", "q_time", "q_second"):
        assert np.array_equal(made[name][0], trace.node_table[name].astype("<f4"), equal_nan=True)
    raced = trace.node_table["own_token"] >= 0
    assert raced.any()
    assert (made["own_time"][0][raced] < made["own_second"][0][raced]).all()


def test_top_tokens_hold_the_proposal_first_and_all_mass() -> None:
    trace = decoded()
    columns = node_columns(trace, np.unique(trace.node_table["top_ids"][:, 0]).astype(np.int64))
    made = project(trace).node_columns
    assert np.array_equal(made["top"][0][:, 0], made["token"][0])
    for name in ("p", "q"):
        distribution = (made[f"top_{name}"][0] / 65_535) ** 2
        tail = (made[f"tail_{name}"][0] / 65_535) ** 2
        assert np.allclose(distribution.sum(axis=1) + tail.sum(axis=1), 1, atol=1e-3)
    assert columns.keys() <= made.keys()


def test_hostile_tokens_become_signs() -> None:
    header = project(hostile()).header
    joined = "".join([*header["strings"], header["prompt"]])
    assert not any(c in joined for c in "\u2028\u202e\x1b\udc80\n")
    assert any("⏎×10,000" in text for text in header["strings"])
    assert len(header["strings"]) >= len(set(HOSTILE)) - 1
    pack(project(hostile())).decode("latin-1")


def test_an_empty_run_and_one_cut_short() -> None:
    header = header_of(pack(project(Trace({"rule": "rejection"}, np.array([1])))))
    assert header["rounds"] == header["nodes"] == 0
    assert header["baseline"] is None
    pack(project(decoded(tokens=1)))


def test_missing_numbers_do_not_get_into_the_header() -> None:
    untimed = project(decoded(timed=False)).header
    assert untimed["baseline"] is None
    json.dumps(untimed, allow_nan=False)
    strange = story()
    strange.meta["oddity"] = {"value": 3}
    assert ["oddity", '{"value": 3}'] in project(strange).header["settings"]


@pytest.mark.parametrize("name", [n for n in sv.recorded() if not n.endswith("/target-only")])
def test_a_recorded_run_is_measured_against_its_own_target_only_run(name: str) -> None:
    trace, alone = sv.recorded(name), sv.recorded(f"{name.split('/')[0]}/target-only")
    run = run_of(trace)
    last = measures_at(run, frame_at(run, run.steps - 1))
    assert run.header["baseline"]["measured"]
    assert last.speedup == pytest.approx(Comparison.of(trace, alone).ratio, rel=1e-5)


def test_junk_in_place_of_a_measured_time_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = decoded()
    for junk in (3, {}, {"seconds_per_token": "1"}, {"seconds_per_token": float("nan")}):
        monkeypatch.setitem(trace.meta, "target_only", junk)
        assert project(trace).header["baseline"]["measured"] is False


@pytest.mark.parametrize(("name", "said"), [("prompt_lookup", "prompt lookup, match"),
                                            ("eagle", "EAGLE, match"),
                                            ("target_only", "target alone")])  # fmt: skip
def test_the_label_is_the_recorded_drafters_also_before_it_proposed(name: str, said: str) -> None:
    trace = sv.generate(pair(), [2], gamma=0, max_new_tokens=3, seed=3, progress=False)
    trace.meta["drafter"] = {"name": name}
    assert project(trace).header["label"] == said


def test_the_baseline_says_whether_it_was_measured() -> None:
    assert project(decoded()).header["baseline"] == {"seconds": 0.01, "measured": False}
    given = {"seconds": 0.02, "measured": True}
    assert project(decoded(), given).header["baseline"] == given


def test_what_a_run_is_called() -> None:
    assert label(decoded(gamma=0)) == "target alone"
    assert label(decoded()) == "draft model, rejection"  # for people, not as in the code
    assert label(Trace({"rule": "block", "drafter": "early_exit"}, np.array([1]))) == (
        "early exit, block"
    )


def test_trees_keep_their_parents() -> None:
    trace = branching()
    parents = project(trace).node_columns["parent"][0]
    assert np.array_equal(np.where(parents == NONE, -1, parents), trace.node_table["parent"])


def test_more_tokens_than_can_be_numbered_are_refused() -> None:
    with pytest.raises(ValueError, match=f"at most {MOST_STRINGS:,} different tokens"):
        node_columns(story(), np.arange(MOST_STRINGS + 1))


def test_ten_thousand_rounds_stay_small() -> None:
    packed = gzip.compress(pack(project(long_story(10_000))), 6)
    assert len(packed) < 4_000_000
