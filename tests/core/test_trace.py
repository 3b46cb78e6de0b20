"""The trace: what it holds, what it shows, that it only grows, and how large it is."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import specviz as sv
from specviz.core.trace.columns import NODES, ROUNDS, TIMES, Columns
from specviz.core.trace.trace import Trace
from tests.core.handmade import ONE_OF_EACH_TOKENS, add_round, decoded, empty, one_of_each


@pytest.fixture(scope="module")
def trace() -> Trace:
    return one_of_each()


# -- what was emitted -----------------------------------------------------------------------------


def test_tokens_come_in_the_order_of_the_text(trace: Trace) -> None:
    assert trace.tokens.dtype == np.int64
    assert trace.tokens.tolist() == ONE_OF_EACH_TOKENS
    by_round = [trace.round_tokens(i).tolist() for i in range(len(trace))]
    assert by_round == [[1, 2, 4], [5, 6, 0], [9], [2, 4, 6], [1, 2]]
    assert [r.tokens.tolist() for r in trace.rounds] == by_round


def test_text_is_that_of_its_pieces_or_else_of_its_tokens() -> None:
    trace = one_of_each()
    assert trace.text == "bcefgajcegbc"
    assert trace.prompt_text == "hi"
    trace.pieces, trace.prompt_pieces = ["Once", " upon"], ["A", " prompt"]
    assert trace.text == "Once upon"
    assert trace.prompt_text == "A prompt"
    assert empty().text == ""


def test_a_token_without_a_string_shows_its_id() -> None:
    trace = empty()
    trace.strings = {}
    add_round(trace, [3], path=[0], closing=5)
    assert trace.text == "⟨3⟩⟨5⟩"
    assert [node.text for node in trace.rounds[0].nodes] == ["⟨3⟩"]


def test_settings_and_the_end(trace: Trace) -> None:
    assert trace.settings["rule"] == "rejection"
    assert trace.finish_reason is None and not trace.interrupted
    ended = empty(finish_reason="eos", interrupted=True)
    assert ended.finish_reason == "eos" and ended.interrupted


def test_repr_says_how_much_in_how_many_passes(trace: Trace) -> None:
    assert repr(trace) == (
        "<Trace: 12 tokens in 5 target passes (2.40 per pass), rule 'rejection'>"
    )
    assert repr(empty()) == "<Trace: 0 tokens in 0 target passes (0.00 per pass), rule 'rejection'>"


# -- rounds and nodes -----------------------------------------------------------------------------


def test_a_round_shows_its_verdicts(trace: Trace) -> None:
    first = trace.rounds[0]
    assert [node.verdict for node in first.nodes] == ["accepted", "accepted", "rejected"]
    assert [node.text for node in first.nodes] == ["b", "c", "d"]
    assert (first.closing.kind, first.closing.text, first.closing.position) == (
        "correction",
        "e",
        4,
    )
    assert first.path == [0, 1] and first.accepted == 2 and first.is_chain
    node = first.nodes[1]
    assert (node.position, node.parent, node.ratio, node.u) == (3, 0, 0.5, 0.75)
    assert node.tv == pytest.approx(0.2)
    assert (first.draft_seconds, first.verify_seconds, first.other_seconds) == (0.4, 1.0, 0.1)


def test_a_bonus_a_plain_token_and_what_was_never_examined(trace: Trace) -> None:
    assert [r.closing.kind for r in trace.rounds] == [
        "correction", "bonus", "plain", "correction", "bonus",
    ]  # fmt: skip
    assert trace.rounds[2].nodes == [] and trace.rounds[2].accepted == 0
    lone = empty()
    add_round(lone, [1, 2, 3], closing=4)
    assert [n.verdict for n in lone.rounds[0].nodes] == ["rejected"] + ["never examined"] * 2


def test_a_tree_has_depths_for_positions(trace: Trace) -> None:
    tree = trace.rounds[3]
    assert not tree.is_chain
    assert [node.position - tree.position for node in tree.nodes] == [0, 0, 1, 1, 2]
    assert tree.path == [1, 3]
    assert tree.closing.position == tree.position + 2


def test_what_a_stop_cut_off_is_accepted_but_not_emitted(trace: Trace) -> None:
    last = trace.rounds[-1]
    assert [node.accepted for node in last.nodes] == [True, True, True]
    assert [node.emitted for node in last.nodes] == [True, True, False]
    assert not last.closing.emitted
    assert last.accepted == 2 and last.path == [0, 1, 2]


def test_rounds_are_a_sequence(trace: Trace) -> None:
    rounds = trace.rounds
    assert len(rounds) == 5 and repr(rounds) == "<5 rounds>"
    assert rounds[-1].index == 4
    assert [r.index for r in rounds[1:4]] == [1, 2, 3]
    assert [r.index for r in reversed(rounds)] == [4, 3, 2, 1, 0]
    for index in (5, -6):
        with pytest.raises(IndexError, match=r"round must be within 0\.\.4"):
            _ = rounds[index]


# -- tables ---------------------------------------------------------------------------------------


def test_frame_has_a_row_per_proposal_and_per_closing_token(trace: Trace) -> None:
    frame = trace.to_frame()
    assert type(frame).__name__ == "DataFrame"
    assert len(frame) == 13 + 5
    drawn = frame[frame.verdict == "drawn"]
    assert drawn.kind.tolist() == ["correction", "bonus", "plain", "correction", "bonus"]
    assert frame[frame.emitted].token.tolist() == ONE_OF_EACH_TOKENS
    assert frame[frame.verdict == "accepted"].ratio.tolist() == [0.5] * 9
    assert len(empty().to_frame()) == 0


def test_without_pandas_the_frame_is_a_dict(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = trace.to_frame()
    monkeypatch.setitem(sys.modules, "pandas", None)
    columns = trace.to_frame()
    assert type(columns) is dict
    assert list(columns) == list(frame.columns)
    assert columns["token"] == frame.token.tolist()
    assert columns["text"] == frame.text.tolist()


def test_columns_only_grow(trace: Trace) -> None:
    table = Columns(NODES, k=3)
    kept = []
    for row in range(300):
        table.append(1, {"token": row, "u": 0.5})
        kept.append(table["token"])
    assert all(view.tolist() == list(range(i + 1)) for i, view in enumerate(kept))
    assert len(table) == 300
    assert np.isnan(table["p"]).all() and (table["parent"] == -1).all()
    owners = {id(view.base) for view in kept}
    assert len(owners) <= 6  # 16, 32, 64, … rows: grown by doubling
    with pytest.raises(ValueError, match="read-only"):
        table["token"][0] = 1


def test_a_column_that_does_not_exist_is_refused_and_nothing_added() -> None:
    trace = one_of_each()
    before = trace.tokens.tolist()
    with pytest.raises(KeyError, match="no_such"):
        trace.append({"nodes": 1}, {"token": [1], "no_such": [2]})
    with pytest.raises(KeyError, match="no_such"):
        trace.append({"nodes": 1, "no_such": 2}, {"token": [1]})
    with pytest.raises(ValueError, match="broadcast"):
        trace.append({"nodes": 2}, {"token": [1, 2, 3]})
    assert len(trace) == 5 and len(trace.node_table) == 13
    assert trace.tokens.tolist() == before
    add_round(trace, [1], path=[0], closing=2)
    assert trace.rounds[5].tokens.tolist() == [1, 2]


# -- how large it is ------------------------------------------------------------------------------


def nbytes(trace: Trace) -> int:
    tables = (trace.node_table, trace.round_table)
    return sum(table[name].nbytes for table in tables for name in table.names)


def test_a_proposed_token_takes_at_most_a_kilobyte() -> None:
    trace = decoded(40, k=10, gamma=4)
    proposed = len(trace.node_table)
    assert proposed > 100
    # all rounds but the last propose four tokens
    assert set(trace.round_table["nodes"][:-4]) == {4}
    assert nbytes(trace) / proposed <= 1024


def test_size_does_not_depend_on_the_vocabulary() -> None:
    small, large = decoded(30), decoded(400)
    per_row = [
        {name: t[name].nbytes / len(t) for t in (tr.node_table, tr.round_table) for name in t.names}
        for tr in (small, large)
    ]
    assert per_row[0] == per_row[1]
    whole = decoded(30, full_distributions=True)
    assert whole.node_table["full_p"].shape == (len(whole.node_table), 30)
    assert nbytes(whole) > nbytes(small)


# -- the same run ---------------------------------------------------------------------------------


def changed(trace: Trace, table: str, name: str) -> Trace:
    """The trace with one cell of one column changed."""
    column = getattr(trace, table)[name].copy()
    flat = column.reshape(-1)
    flat[0] = 1 if np.isnan(flat[0]) or flat[0] != 1 else 0
    getattr(trace, table).replace(name, column)
    return trace


@pytest.mark.parametrize(
    ("table", "name"),
    [("node_table", name) for name in NODES] + [("round_table", name) for name in ROUNDS],
)
def test_same_as_sees_every_column_but_the_times(table: str, name: str) -> None:
    other = changed(one_of_each(), table, name)
    assert one_of_each().same_as(other) is (name in TIMES)


def test_the_same_seed_gives_the_same_trace_and_another_seed_another() -> None:
    assert decoded(seed=5).same_as(decoded(seed=5))
    assert not decoded(seed=5).same_as(decoded(seed=6))


def test_same_as_sees_prompt_and_length() -> None:
    other: Any = one_of_each()
    other.prompt = np.array([7, 9])
    assert not one_of_each().same_as(other)
    assert not one_of_each().same_as(empty())


def test_a_snapshot_does_not_grow_with_the_run() -> None:
    coin = sv.tabular.TabularModel([0.5, 0.5])
    stream = sv.stream(sv.tabular.TabularPair(coin, coin), [0], gamma=2, max_new_tokens=90, seed=1)
    next(stream)
    seen = stream.trace.snapshot()
    tokens, rounds = seen.tokens.tolist(), len(seen)
    for _ in stream:  # far enough for every column to be moved
        pass
    assert (seen.tokens.tolist(), len(seen)) == (tokens, rounds) == (tokens, 1)
    assert seen.check().ok
    assert len(stream.trace) > 16
    assert stream.trace.tokens[: len(tokens)].tolist() == tokens
