"""``sv.stream``: rounds as they happen, the same run as ``generate``."""

from __future__ import annotations

import copy
from typing import Any

import pytest

import specviz as sv
from tests.api.pairs import failing, tables, texts
from tests.lossless.enumeration import random_pair

SETTINGS: dict[str, Any] = {"gamma": 3, "seed": 5, "max_new_tokens": 30}


@pytest.mark.parametrize("rule", ["rejection", "match", "coupled", "block"])
def test_a_stream_is_what_generate_collects(rule: str) -> None:
    streamed = sv.stream(tables(), [0], verify=rule, **SETTINGS)
    tokens = [token for round_ in streamed for token in round_.tokens.tolist()]
    whole = sv.generate(tables(), [0], verify=rule, progress=False, **SETTINGS)
    assert streamed.trace.same_as(whole)
    assert tokens == whole.tokens.tolist()
    assert streamed.trace.text == whole.text and streamed.trace.meta == whole.meta


def test_a_real_pair_streams() -> None:
    pair = texts()
    running = sv.stream(pair, "the fox", **SETTINGS)
    text = ""
    for round_ in running:
        text = pair.decode(running.trace.tokens)
        assert round_.index == len(running.trace) - 1
    assert running.trace.text == text


def test_the_trace_grows_along_and_rounds_come_one_by_one() -> None:
    running = sv.stream(tables(), [0], **SETTINGS)
    assert len(running.trace) == 0 and running.trace.finish_reason is None
    first = next(running)
    assert first.index == 0 and len(running.trace) == 1
    assert len(first.tokens) == len(running.trace.tokens)
    second = next(running)
    assert second.position == first.position + len(first.tokens)
    assert running.trace.check().ok, "also in mid-run"


def test_nothing_runs_before_the_first_round_is_asked_for() -> None:
    sv.stream(failing(RuntimeError("ran"), passes=0), [0])


def test_a_stream_ends_once_and_for_all() -> None:
    running = sv.stream(tables(), [0], **SETTINGS)
    list(running)
    assert running.trace.finish_reason == "length" and not running.trace.interrupted
    with pytest.raises(StopIteration):
        next(running)
    running.close()
    assert running.trace.finish_reason == "length" and not running.trace.interrupted


def test_a_stream_can_be_closed_early() -> None:
    running = sv.stream(tables(), [0], **SETTINGS)
    next(running)
    running.close()
    trace = running.trace
    assert trace.interrupted and trace.finish_reason == "interrupted" and len(trace) == 1
    assert trace.text == "".join(trace.pieces) != ""
    with pytest.raises(StopIteration):
        next(running)


def test_an_interrupt_reaches_the_reader_and_the_trace_says_so() -> None:
    running = sv.stream(failing(KeyboardInterrupt()), [0], **SETTINGS)
    with pytest.raises(KeyboardInterrupt):
        list(running)
    assert running.trace.interrupted and len(running.trace) > 0


def test_an_error_carries_the_trace() -> None:
    running = sv.stream(failing(OSError("the disk is gone")), [0], **SETTINGS)
    with pytest.raises(OSError, match="the disk is gone") as caught:
        list(running)
    assert caught.value.trace is running.trace  # type: ignore[attr-defined]
    assert running.trace.finish_reason == "error"


def test_two_streams_do_not_disturb_each_other() -> None:
    pair = texts()
    alone = [
        sv.generate(pair, "the fox", progress=False, **{**SETTINGS, "seed": s}) for s in (1, 2)
    ]
    both = [sv.stream(pair, "the fox", **{**SETTINGS, "seed": s}) for s in (1, 2)]
    for _ in range(SETTINGS["max_new_tokens"]):
        for running in both:
            next(running, None)
    assert all(a.same_as(b.trace) for a, b in zip(alone, both, strict=True))


# One recipe, many texts ---------------------------------------------------------------------------

RECIPES = [
    sv.DraftModel(4),
    sv.DraftModel(sv.AdaptiveGamma(start=2)),
    sv.Tree((2, 1)),
    sv.PromptLookup(3),
    sv.Combined(sv.PromptLookup(2, min_ngram=2), sv.DraftModel(3)),
]


@pytest.mark.parametrize("drafter", RECIPES, ids=lambda drafter: drafter.name)
def test_two_texts_that_share_a_drafter_and_take_turns_are_what_each_is_alone(drafter: Any) -> None:
    pair = random_pair(6, order=2, seed=5)

    def run(seed: int) -> Any:
        return sv.stream(pair, [0, 1, 2, 0, 1], drafter=drafter, seed=seed, max_new_tokens=30)

    alone = []
    for seed in (1, 2):
        one = run(seed)
        list(one)
        alone.append(one.trace.tokens.tolist())
    first, second = run(1), run(2)
    for _ in range(60):  # round by round, in turns
        next(first, None)
        next(second, None)
    assert [first.trace.tokens.tolist(), second.trace.tokens.tolist()] == alone
    assert first.trace.check().ok and second.trace.check().ok


def test_recipes_are_frozen_compared_and_hashed() -> None:
    for drafter in RECIPES:
        with pytest.raises(AttributeError):
            drafter.name = "other"
        assert hash(drafter) == hash(copy.deepcopy(drafter)) and drafter == copy.deepcopy(drafter)
    assert sv.DraftModel(3) != sv.DraftModel(4) and sv.EarlyExit(2) == sv.EarlyExit(2, gamma=4)
    assert sv.Medusa(tree=(2, 1)) == sv.Medusa(tree=(2, 1)) and sv.Eagle(gamma=3) == sv.Eagle(
        gamma=3
    )
    assert len({sv.Quantized(), sv.Quantized(bits=8), sv.KVProjection(), sv.TargetOnly()}) == 3
