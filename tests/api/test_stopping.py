"""Where a text ends: end tokens, stop strings, the length asked for, the context."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import specviz as sv
from specviz.core.tabular import TabularModel, TabularPair
from specviz.core.trace.trace import Trace
from specviz.drafters.draft_model import DraftModel
from tests.api.pairs import VOCAB, equal_tables, tables, texts
from tests.drafters.changed import Changed

RULES = ["rejection", "match", "coupled"]


def run(pair: Any, prompt: Any = (0, 1), **arguments: Any) -> Trace:
    return sv.generate(pair, prompt, progress=False, **arguments)


# -- length ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [0, 1, 2, 4, 5, 6, 11])
@pytest.mark.parametrize("rule", RULES)
def test_exactly_as_many_tokens_as_asked_for(rule: str, length: int) -> None:
    trace = run(equal_tables(), gamma=4, verify=rule, max_new_tokens=length)
    assert len(trace.tokens) == length
    assert trace.finish_reason == "length"
    assert trace.check().ok
    assert trace.round_table["emitted"].sum() == length
    if length == 1:
        assert len(trace) == 1 and len(trace.node_table) == 0, "no proposal could have been used"


@pytest.mark.parametrize("gamma", [0, 1, 5, 15])
@pytest.mark.parametrize("prompt", [1, 2, 10, 14, 15])
def test_the_context_is_never_passed(prompt: int, gamma: int) -> None:
    trace = run(equal_tables(context_length=16), [0] * prompt, gamma=gamma)
    assert prompt + len(trace.tokens) == 16
    assert trace.finish_reason == "context"
    assert trace.round_table["target_verified"].max() <= 16
    assert trace.check().ok


def test_the_context_of_a_real_model_is_never_passed() -> None:
    pair = texts(context=16, eos_token_id=None)
    pair.stop_ids = frozenset()
    for prompt, gamma in ((14, 5), (15, 5), (3, 5), (1, 15)):
        trace = run(pair, [7] * prompt, gamma=gamma)
        assert prompt + len(trace.tokens) == 16, (prompt, gamma)
        assert trace.check().ok


@pytest.mark.parametrize("shorter", [1, 4, 8, 12])
def test_a_draft_with_a_shorter_context_falls_back_to_plain_steps(shorter: int) -> None:
    whole = equal_tables(context_length=20)
    pair = TabularPair(whole.target, TabularModel(whole.target.table, context_length=shorter))
    trace = run(pair, [0, 1], gamma=3)
    assert 2 + len(trace.tokens) == 20
    assert trace.round_table["draft_proposed"].max() <= shorter
    late = trace.round_table["position"] >= shorter
    assert late.any() and trace.round_table["nodes"][late].max() == 0
    assert trace.check().ok


# -- end tokens -----------------------------------------------------------------------------------


def counting(length: int = 6) -> TabularPair:
    """0, 1, 2, … and around again: what comes next is certain."""
    table = np.roll(np.eye(length), 1, axis=1)
    return TabularPair(TabularModel(table), TabularModel(table))


@pytest.mark.parametrize("gamma", [0, 1, 2, 3, 8])
@pytest.mark.parametrize("rule", RULES)
def test_an_end_token_within_an_accepted_run_ends_the_text_there(rule: str, gamma: int) -> None:
    pair = counting()
    pair.target.eos_ids = frozenset({3})
    trace = run(pair, [0], gamma=gamma, verify=rule)
    assert trace.tokens.tolist() == [1, 2, 3]
    assert trace.finish_reason == "eos"
    assert trace.text == "bcd"
    assert trace.round_table["emitted"].sum() == 3
    assert trace.to_frame()["emitted"].sum() == 3
    assert trace.check().ok


def test_an_end_token_that_a_drafter_goes_past_still_ends_the_text() -> None:
    class Heedless(Changed, DraftModel):
        def change(self, inner: Any, context: Any, draws: Any) -> Any:
            from dataclasses import replace

            return inner.propose(replace(context, stop_ids=frozenset()), draws)

    pair = counting()
    pair.target.eos_ids = frozenset({2})
    trace = run(pair, [0], drafter=Heedless(4))
    assert trace.tokens.tolist() == [1, 2]
    last = trace.rounds[-1]
    assert [node.verdict for node in last.nodes] == ["accepted"] * 4
    assert [node.emitted for node in last.nodes] == [True, True, False, False]
    assert not last.closing.emitted
    assert trace.check().ok
    assert last.target_cache.after == 3


@pytest.mark.parametrize("gamma", [0, 3])
def test_an_end_token_in_the_prompt_ends_nothing(gamma: int) -> None:
    pair = counting()
    pair.target.eos_ids = frozenset({3})
    assert run(pair, [3, 3], gamma=gamma, max_new_tokens=9).tokens.tolist() == [4, 5, 0, 1, 2, 3]


def test_without_an_end_token_the_length_ends_it() -> None:
    trace = run(counting(), [0], gamma=3, max_new_tokens=20)
    assert trace.tokens.tolist() == [(1 + i) % 6 for i in range(20)]
    assert trace.finish_reason == "length"


# -- stop strings ---------------------------------------------------------------------------------


def worded(words: list[str]) -> TabularPair:
    pair = counting(len(words))
    pair.words = words
    return pair


@pytest.mark.parametrize("gamma", [0, 1, 3, 7])
@pytest.mark.parametrize(
    ("stop", "text"),
    [
        ("ten", "the often"),
        ("often", "the often"),
        ("the", "the"),
        (" said", "the often said"),
        ("said.", "the often said. "),
        (["zebra", "ofte"], "the often"),
        ("nothing", "the often said. "),
    ],
    ids=str,
)
def test_a_stop_string_across_tokens_ends_the_text_at_its_last_token(
    stop: Any, text: str, gamma: int
) -> None:
    pair = worded(["<", "the", " of", "ten", " sa", "id", ". "])
    trace = run(pair, [0], gamma=gamma, stop=stop, max_new_tokens=6)
    assert trace.text == text
    assert trace.finish_reason == ("length" if stop == "nothing" else "stop")
    assert trace.check().ok


def test_a_stop_string_in_the_prompt_ends_nothing() -> None:
    pair = worded(["stop", "a", "b", "c"])
    trace = run(pair, [0], gamma=2, stop="stop", max_new_tokens=9)
    assert trace.text == "abcstop"


def test_a_stop_string_that_begins_in_the_prompt_ends_nothing() -> None:
    pair = worded(["st", "op", "b", "c"])
    assert run(pair, [0], gamma=2, stop="stop", max_new_tokens=4).text == "opbcst"[:6]


def test_a_stop_string_of_a_real_tokenizer() -> None:
    pair = texts()
    free = run(pair, "the fox", gamma=3, max_new_tokens=40, seed=1)
    stop = free.text[9:14]
    trace = run(pair, "the fox", gamma=3, max_new_tokens=40, seed=1, stop=stop)
    assert trace.finish_reason == "stop"
    assert stop in trace.text and free.text.startswith(trace.text)
    assert stop not in pair.decode(trace.tokens[:-1])
    assert trace.check().ok


@pytest.mark.parametrize("seed", range(8))
def test_what_ends_a_text_does_not_change_what_came_before(seed: int) -> None:
    """Lossless rules: the text with an end token is the text without, cut at its first one."""
    free = run(tables(), gamma=0, seed=seed, max_new_tokens=30).tokens.tolist()
    ending = tables(eos_ids=[VOCAB - 1])
    cut = free.index(VOCAB - 1) + 1 if VOCAB - 1 in free else len(free)
    for rule in ("match", "coupled"):
        found = run(ending, gamma=3, verify=rule, seed=seed, max_new_tokens=30)
        assert found.tokens.tolist() == free[:cut]
