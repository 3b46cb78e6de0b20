"""Every recorded run opens without torch, follows from its own evidence and shows something."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

import specviz as sv
from specviz.figures.summary import summary
from specviz.player.page import race_page
from specviz.player.projection import project
from specviz.recordings import shelf
from specviz.recordings.record import NOTE, PROMPTS, REPEATS, methods, record, squeeze
from specviz.recordings.worked import capital_of_france
from tests.house.test_torch_free import BLOCK, run
from tests.player.runs import decoded

NAMES = sv.recorded()
MOST_BYTES = 2_500_000


def test_there_is_one_per_domain_and_method() -> None:
    assert sorted(NAMES) == sorted(f"{d}/{m}" for d in PROMPTS for m in methods())
    assert tuple(PROMPTS) == shelf.DOMAINS


@pytest.mark.parametrize("name", NAMES)
def test_it_follows_from_its_own_evidence(name: str) -> None:
    trace = sv.recorded(name)
    replay = trace.check()
    assert replay.ok, replay
    assert replay.counts["follows"] > len(trace)
    assert trace.meta["target"]["name"] == "target"
    assert 20 <= len(trace) <= 96
    prompt, seed = PROMPTS[name.split("/")[0]]
    assert trace.prompt_text == prompt
    assert trace.meta["seed"] == seed
    assert trace.meta["times"] == NOTE


def test_a_wrong_verdict_would_be_reported() -> None:
    trace = sv.recorded("stories/draft-model")
    verdicts = trace.node_table["verdict"].copy()
    (kept,) = (verdicts == 1).nonzero()
    verdicts[kept[0]] = 2
    trace.node_table.replace("verdict", verdicts)
    assert not trace.check().ok


@pytest.mark.parametrize("name", NAMES)
def test_it_shows_what_the_method_does(name: str) -> None:
    trace = sv.recorded(name)
    verdicts = trace.node_table["verdict"]
    if name.endswith("/target-only"):
        assert not len(verdicts)
        return
    if name == "prose/prompt-lookup":  # nothing in free prose comes again: the point of this one
        assert (verdicts == 1).sum() == 0
    else:
        assert (verdicts == 1).any()
        assert (trace.round_table["closing_kind"] == 2).any()
    assert (verdicts == 2).any()
    assert all(round_.verify_seconds > 0 for round_ in trace.rounds)


def test_the_same_noise_gives_the_targets_own_text() -> None:
    for domain in PROMPTS:
        plain, coupled = (sv.recorded(f"{domain}/{m}") for m in ("target-only", "coupled"))
        assert plain.tokens.tolist() == coupled.tokens.tolist()


def test_they_are_small(root: Path) -> None:
    sizes = [path.stat().st_size for path in (root / "specviz/recordings/runs").rglob("*.specviz")]
    assert len(sizes) == len(NAMES) + len(shelf.WORKED)
    assert sum(sizes) <= MOST_BYTES


READ = """
import json
import specviz as sv

pages = {}
for name in sv.recorded()[::4]:
    trace = sv.recorded(name)
    sv.to_html(trace, sys.argv[1])
    pages[name] = len(open(sys.argv[1], encoding="utf-8").read())
    sv.still(trace).png
print(json.dumps({"pages": pages, "loaded": sorted(BLOCKED & set(sys.modules))}))
"""


def test_pages_and_stills_are_made_without_torch(tmp_path: Path) -> None:
    done = run(BLOCK + READ, str(tmp_path / "page.html"))
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen["loaded"] == []
    assert len(seen["pages"]) == 7
    for name, size in seen["pages"].items():
        assert size <= 200_000 + 200 * len(sv.recorded(name).node_table), name


def test_a_name_that_is_not_there_is_refused_with_what_is() -> None:
    with pytest.raises(ValueError, match=r"such as 'stories/draft-model'.*got 'stories/draft'"):
        sv.recorded("stories/draft")
    with pytest.raises(ValueError, match=r"one of sv\.recorded\(\); got '\.\./secrets'"):
        sv.recorded("../secrets")
    with pytest.raises(TypeError, match="name must be a str such as"):
        sv.recorded(3)  # type: ignore[call-overload]


def test_the_list_may_be_changed_without_harm() -> None:
    sv.recorded().clear()
    assert sv.recorded() == NAMES


def test_a_file_packed_tighter_is_the_same_run(tmp_path: Path) -> None:
    decoded().save(tmp_path / "a.specviz")
    before = (tmp_path / "a.specviz").read_bytes()
    squeeze(tmp_path / "a.specviz")
    assert (tmp_path / "a.specviz").stat().st_size < len(before)
    again = sv.Trace.load(tmp_path / "a.specviz")
    again.save(tmp_path / "b.specviz")
    assert (tmp_path / "b.specviz").read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.specviz", "b.specviz"]


def copied(trace: sv.Trace, folder: Path) -> sv.Trace:
    path = folder / "copy"
    trace.save(path)
    again = sv.Trace.load(path)
    path.unlink()
    return again


def test_how_the_times_were_taken_is_said_wherever_they_are_shown() -> None:
    trace = sv.recorded("stories/draft-model")
    assert NOTE in dict(summary(trace))["time"]
    assert project(trace).header["times"] == NOTE
    assert NOTE in race_page([trace, sv.recorded("stories/eagle")])
    own = decoded()
    assert NOTE not in race_page([own, own])
    assert project(own).header["times"] == ""


def test_the_recipe_keeps_each_rounds_quickest_times(tmp_path: Path) -> None:
    made: list[sv.Trace] = []

    def run(prompt: str, seed: int, **method: object) -> sv.Trace:
        trace = copied(decoded(), tmp_path)
        times = np.full(len(trace), 9.0)
        times[len(made) // 27] = 1.0  # each time another round is quick
        trace.round_table.replace("other_seconds", times)
        made.append(trace)
        return trace

    record(tmp_path / "runs", run)
    assert len(made) == 27 * REPEATS
    kept = sv.Trace.load(tmp_path / "runs" / "prose" / "tree.specviz")
    times = kept.round_table["other_seconds"]
    assert times.tolist() == [1.0] * REPEATS + [9.0] * (len(kept) - REPEATS)
    assert kept.meta["times"] == NOTE
    assert kept.tokens.tolist() == decoded().tokens.tolist()


def test_the_recipe_refuses_what_contradicts_itself(tmp_path: Path) -> None:
    def wrong(prompt: str, seed: int, **method: object) -> sv.Trace:
        trace = copied(decoded(), tmp_path)
        trace.round_table.replace("closing_p", np.full(len(trace), 0.5))
        return trace

    with pytest.raises(RuntimeError, match=re.escape("stories/target-only contradicts itself")):
        record(tmp_path / "more", wrong)

    def other(prompt: str, seed: int, **method: object) -> sv.Trace:
        others.append(copied(decoded(seed=len(others) // 27), tmp_path))
        return others[-1]

    others: list[sv.Trace] = []
    with pytest.raises(RuntimeError, match="the same method, prompt and seed gave another text"):
        record(tmp_path / "more", other)
    assert not (tmp_path / "more").exists()


@pytest.mark.parametrize("name", shelf.WORKED)
def test_a_worked_iteration_replays_and_is_one_pass(name: str) -> None:
    trace = sv.recorded(name)
    assert trace.check().ok and len(trace) == 1
    assert name not in NAMES  # the list is of runs by method
    assert project(trace).header["baseline"] is None  # of a table, times say nothing


def test_one_accepted_and_one_replaced_are_two_tokens_not_three() -> None:
    """Claim 1, with its numbers: q .3, p .4; q .2, p .1, u .7."""
    (round_,) = sv.recorded("worked/the-quick-brown").rounds
    first, second = round_.nodes
    assert (first.text, second.text) == (" the", " quick")
    assert [first.q, first.p, second.q, second.p] == pytest.approx([0.3, 0.4, 0.2, 0.1])
    assert first.accepted and not second.accepted
    assert second.acceptance == pytest.approx(0.5) and second.u == pytest.approx(0.7, abs=0.005)
    assert (round_.closing.text, round_.closing.kind) == (" brown", "correction")
    assert len(sv.recorded("worked/the-quick-brown").tokens) == 2


def test_all_accepted_gives_a_fifth_token_and_the_drafts_cache_lacks_one() -> None:
    trace = sv.recorded("worked/capital-of-france")
    (round_,) = trace.rounds
    assert [node.accepted for node in round_.nodes] == [True] * 4
    assert (round_.closing.text, round_.closing.kind) == (" city", "bonus")
    assert trace.round_table["target_after"][0] - trace.round_table["draft_after"][0] == 1


def test_a_worked_iteration_is_what_its_recipe_makes() -> None:
    made = capital_of_france()
    assert made.tokens.tolist() == sv.recorded("worked/capital-of-france").tokens.tolist()
    assert made.meta["seed"] == sv.recorded("worked/capital-of-france").meta["seed"]
