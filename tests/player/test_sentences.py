"""What the player says of every judged proposal is what is on record, under every rule."""

from __future__ import annotations

import json
import re
import subprocess
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import specviz as sv
from specviz.core.tabular import TabularModel, TabularPair
from specviz.core.trace.trace import Trace
from specviz.player.picture.view_phase import test_said as card_of
from specviz.player.projection import pack, project, run_of
from specviz.player.steps.draws import draw_at
from specviz.player.steps.frames import frame_at
from specviz.player.steps.words import caption
from tests.player.node import NODE
from tests.player.runs import WORDS, pair

BY_U = ("rejection", "lenience")
BY_P = ("typical", "threshold")
DRAFTERS: dict[str, Callable[[], Any]] = {
    "chain": lambda: None,
    "tree": lambda: sv.Tree([3, 2]),
    "prompt lookup": lambda: sv.PromptLookup(gamma=3),
    "target's noise": lambda: sv.DraftModel(gamma=4, noise="target"),
}
RUNS = [
    *[(rule, how) for rule in (*BY_U, *BY_P, "match") for how in ("chain", "tree")],
    *[(rule, "prompt lookup") for rule in ("rejection", "block", "typical", "match")],
    ("block", "chain"),
    ("coupled", "target's noise"),
    ("greedy", "chain"),
    ("greedy", "tree"),
]


def unlike() -> TabularPair:
    """A draft whose likeliest tokens are often others."""
    distributions = [TabularModel.random(len(WORDS), order=1, seed=seed) for seed in (5, 6)]
    return TabularPair(
        distributions[0],
        TabularModel((distributions[0].table + distributions[1].table) / 2),
        words=WORDS,
    )


@cache
def made(rule: str, how: str) -> Trace:
    with warnings.catch_warnings():  # that it is lossy
        warnings.simplefilter("ignore")
        pairs = pair()
        options: dict[str, Any] = {"drafter": DRAFTERS[how]()}
        if options["drafter"] is None:
            options = {"gamma": 4}
        if rule == "greedy":
            options["temperature"] = 0
            pairs = unlike()
        else:
            options["verify"] = rule
        prompt = [2, 3, 2, 3, 4, 2] if how == "prompt lookup" else [2]
        return sv.generate(pairs, prompt, max_new_tokens=50, seed=7, progress=False, **options)


def by_script(trace: Trace, folder: Path) -> list[dict[str, Any]]:
    """What the script says of every judged proposal."""
    (folder / "run").write_bytes(pack(project(trace)))
    done = subprocess.run(
        [NODE, str(Path(__file__).with_name("js") / "sentences.mjs"), str(folder / "run")],
        capture_output=True, encoding="utf-8", check=False, timeout=100,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.split("\n") if line]


def on_record(trace: Trace) -> list[dict[str, Any]]:
    """What the record has of every judged proposal, and what Python says of it, in order."""
    run, found = run_of(trace), []
    for step in range(run.steps):
        frame = frame_at(run, step)
        if frame.phase != "decide":
            continue
        nodes = trace.rounds[frame.round].nodes
        at = nodes[frame.node]
        found.append({
            "step": step, "u": at.u, "a": at.acceptance, "kept": at.accepted,
            "n": len(nodes), "node": frame.node,
            "verdicts": [one.accepted for one in nodes],
            "passes": [one.u < one.acceptance for one in nodes],
            "caption": caption(run, frame), "says": draw_at(run, frame).says,
            "card": card_of(run, frame, frame.node), "status": list(frame.status),
        })  # fmt: skip
    return found


def verdicts_in(text: str) -> set[bool]:
    """The verdicts that a text gives: accepted or rejected."""
    words = re.findall(r"\b(accepted|rejected)\b(?!\?| if | or | with probability| siblings)", text)
    return {word == "accepted" for word in words}


def untrue(rule: str, one: dict[str, Any], said: dict[str, Any]) -> list[str]:
    """What is said of a proposal otherwise than the record has it."""
    wrong = []

    def check(good: bool, text: str) -> None:
        if not good:
            wrong.append(f"step {one['step']}: {text}")

    below, kept = one["u"] < one["a"], one["kept"]
    if rule != "block":
        for text in (said["caption"], said["says"]):
            plain = re.sub(r"always accepted|it is accepted if", "", text)
            check(verdicts_in(plain) == {kept}, text)
        check(said["status"][one["node"]] == ("accepted" if kept else "rejected"), "status")
        if rule in BY_U:
            check(("falls below" in said["says"]) == below == kept, said["says"])
        return wrong
    kept_in_all = sum(one["verdicts"])
    for text in (said["caption"], said["says"]):
        check(("falls below" in text) == below, text)
        check((", it passes." in text) == below, text)
        check(("does not pass" in text) == (not below), text)
        last = one["node"] == one["n"] - 1
        told = re.search(r"The last that passes is position (\d+)", text)
        if last and 0 < kept_in_all < one["n"]:
            check(bool(told) and told is not None and int(told[1]) == kept_in_all, text)
        else:
            check(told is None, text)
        check(("whole block is rejected" in text or "It is rejected" in text)
              == (last and not kept_in_all), text)  # fmt: skip
        check(("whole block is accepted" in text or "It is accepted" in text)
              == (last and kept_in_all == one["n"]), text)  # fmt: skip
    check(said["card"] == ("test ✓ passes" if below else "test ✗ fails"), said["card"])
    for i, status in enumerate(said["status"]):
        check(status == "ghost" or (status == "accepted") == one["verdicts"][i], f"status of {i}")
    return wrong


def untrue_what_ifs(rule: str, one: dict[str, Any], said: dict[str, Any]) -> list[str]:
    """What is said of another u, or of the same, otherwise than the rule would have it."""
    wrong = []
    if rule in BY_U:
        words = set(re.findall(r"^What if u were \S+\? .*? would (?:still )?be (accepted|rejected)",
                               said["same"]))  # fmt: skip
        if words != {"accepted" if one["kept"] else "rejected"}:
            wrong.append(said["same"])
        for node, kept in said["walk"] or []:
            if kept != one["verdicts"][node]:
                wrong.append(f"step {one['step']}: the walk with the same u is another at {node}")
        if "would be rejected" in said["low"] and one["a"] > 0:
            wrong.append(said["low"])
        if "be accepted" in said["high"].split(".")[1] and one["a"] <= 0.9999:
            wrong.append(said["high"])
    if rule == "block":
        if "nothing else would change" not in said["same"]:
            wrong.append(said["same"])
        for u, text in ((0.0, said["low"]), (0.9999, said["high"])):
            passes = [
                u < one["a"] if i == one["node"] else good for i, good in enumerate(one["passes"])
            ]
            would = max((i + 1 for i, good in enumerate(passes) if good), default=0)
            if ("nothing else would change" in text) != (would == sum(one["verdicts"])):
                wrong.append(text)
            if would and f"position {would} (" not in text:
                wrong.append(text)
            if not would and "no position would pass" not in text.lower():
                wrong.append(text)
    return wrong


def given_away(rule: str, said: dict[str, Any]) -> list[str]:
    """What tells the answer while the question stands."""
    found = [text for text in said["asked"][:2] if verdicts_in(text)]
    found += ["rejected" for one in said["asked"][2:] if rule == "block" and one == "rejected"]
    found += [text for text in said["asked"][:2] if re.search(r"\bpasses\b|does not pass", text)]
    return found + [said["hiddenCard"]] * bool(said["hiddenCard"])


@pytest.mark.parametrize(("rule", "how"), RUNS)
def test_what_is_said_is_on_record(rule: str, how: str, tmp_path: Path) -> None:
    trace = made(rule, how)
    ours, theirs = on_record(trace), by_script(trace, tmp_path)
    assert len(ours) == len(theirs) > 10
    assert {one["kept"] for one in ours} == {True, False}
    wrong: list[str] = []
    for one, said in zip(ours, theirs, strict=True):
        assert one["step"] == said["step"]
        wrong += untrue(rule, one, one) + untrue(rule, one, said)
        wrong += untrue_what_ifs(rule, one, said) + given_away(rule, said)
    assert not wrong, wrong[:5]


@pytest.mark.parametrize(("rule", "how"), RUNS)
def test_a_verdict_that_were_another_is_noticed(rule: str, how: str) -> None:
    ours = on_record(made(rule, how))
    missed = []
    for one in ours:
        other = one | {"kept": not one["kept"]}
        if rule == "block":
            other = one | {"u": one["a"] + 0.1 if one["u"] < one["a"] else one["a"] - 0.1}
        if not untrue(rule, other, one):
            missed.append(one["says"])
    assert not missed, missed[:3]


def test_some_of_a_block_is_kept_that_did_not_pass() -> None:
    ours = on_record(made("block", "chain"))
    assert any(one["kept"] and not one["u"] < one["a"] for one in ours)
    assert any(not one["kept"] for one in ours)


@pytest.mark.parametrize(("rule", "how"), RUNS)
def test_an_answer_in_a_question_is_noticed(rule: str, how: str, tmp_path: Path) -> None:
    for said in by_script(made(rule, how), tmp_path):
        given = said | {"asked": [said["caption"], said["says"]]}
        assert given_away(rule, given)


@pytest.mark.parametrize(("rule", "how"), [one for one in RUNS if one[0] in (*BY_U, "block")])
def test_a_what_if_of_another_record_is_noticed(rule: str, how: str, tmp_path: Path) -> None:
    trace = made(rule, how)
    for one, said in zip(on_record(trace), by_script(trace, tmp_path), strict=True):
        other = one | {"kept": not one["kept"]}
        if rule == "block":  # one more or one less is accepted
            kept = sum(one["verdicts"])
            more = kept + 1 if kept < one["n"] else kept - 1
            other = one | {"verdicts": [i < more for i in range(one["n"])]}
            # at either end of u, if the other end says the same
            other["passes"] = [i == more - 1 for i in range(one["n"])]
        assert untrue_what_ifs(rule, other, said), said["same"]
