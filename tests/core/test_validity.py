"""Numbers and structures that no trace holds are refused, each in one sentence."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from specviz.core.trace.files import load
from specviz.core.trace.trace import Trace
from tests.core.handmade import one_of_each
from tests.core.tampering import npy, refusal, tampered


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.specviz"


NAN, INF = float("nan"), float("inf")
NUMBERS: list[tuple[str, float, str]] = [
    ("nodes/p", NAN, "nodes/p holds NaN where a number must be"),
    ("nodes/q", INF, "nodes/q holds inf, which must be within 0..1"),
    ("nodes/acceptance", -0.1, "nodes/acceptance holds -0.1, which must be within 0..1"),
    ("nodes/acceptance", 1.1, "nodes/acceptance holds 1.1"),
    ("nodes/overlap", 1.5, "nodes/overlap holds 1.5"),
    ("nodes/u", 1.5, "nodes/u holds 1.5"),
    ("nodes/u", -INF, "nodes/u holds -inf"),
    ("nodes/entropy_p", INF, "nodes/entropy_p holds inf, which must be a finite number from 0 on"),
    ("nodes/q_time", -1, "nodes/q_time holds -1"),
    ("nodes/q_second", -INF, "nodes/q_second holds -inf"),
    ("nodes/token", -1, "nodes/token holds -1"),
    ("nodes/token", 10, "token holds 10, but the vocabulary has 10 tokens"),
    ("nodes/top_ids", -2, "nodes/top_ids holds -2"),
    ("nodes/top_ids", 0, "nodes/top_p holds NaN where a number must be"),
    ("nodes/verdict", 3, "nodes/verdict holds 3, which must be within 0..2"),
    ("nodes/verdict", -1, "nodes/verdict holds -1"),
    ("nodes/emitted", 2, "nodes/emitted holds 2, which must be within 0..1"),
    ("nodes/parent", 0, "a proposal stands before its parent"),
    ("nodes/parent", 2**31 - 1, "a proposal stands before its parent"),
    ("nodes/verdict", 2, "a proposal that was not accepted is marked as emitted"),
    ("nodes/emitted", 0, "number of emitted tokens does not agree"),
    ("rounds/nodes", 4, "its rounds have 14 proposals in all, but 13 are recorded"),
    ("rounds/nodes", 2**31 - 1, "proposals in all, but 13 are recorded"),
    ("rounds/nodes", -3, "rounds/nodes holds -3"),
    ("rounds/emitted", 7, "number of emitted tokens does not agree"),
    ("rounds/closing_p", NAN, "rounds/closing_p holds NaN"),
    ("rounds/closing_kind", 3, "rounds/closing_kind holds 3"),
    ("rounds/closing_token", -1, "rounds/closing_token holds -1"),
    ("rounds/draft_seconds", INF, "rounds/draft_seconds holds inf"),
    ("rounds/target_after", -1, "rounds/target_after holds -1"),
]


def with_first_cell(trace: Trace, member: str, value: float) -> dict[str, bytes | None]:
    folder, name = member.split("/")
    table = trace.node_table if folder == "nodes" else trace.round_table
    column = table[name].copy()
    column.reshape(-1)[0] = value
    return {f"{member}.npy": npy(column)}


@pytest.mark.parametrize(("member", "value", "says"), NUMBERS)
def test_numbers_that_no_trace_holds_are_refused(
    member: str, value: float, says: str, path: Path
) -> None:
    tampered(path, with_first_cell(one_of_each(), member, value))
    assert refusal(path).startswith("is damaged: ")
    assert says in refusal(path)


MAY_BE: list[tuple[str, float]] = [
    ("nodes/u", NAN), ("nodes/q_u", NAN), ("nodes/q_second", INF), ("rounds/closing_second", INF),
    ("nodes/entropy_q", NAN), ("rounds/verify_seconds", NAN), ("rounds/closing_u", NAN),
]  # fmt: skip


@pytest.mark.parametrize(("member", "value"), MAY_BE)
def test_numbers_that_say_nothing_are_fine(member: str, value: float, path: Path) -> None:
    tampered(path, with_first_cell(one_of_each(), member, value))
    assert len(load(path)) == 5


def test_two_accepted_siblings_are_no_path(path: Path) -> None:
    verdict = one_of_each().node_table["verdict"].copy()
    verdict[5] = 1  # a sibling of the accepted first node of the tree
    tampered(path, {"nodes/verdict.npy": npy(verdict)})
    assert "accepted proposals of a round are not one path" in refusal(path)


def test_a_negative_prompt_id_is_refused(path: Path) -> None:
    tampered(path, {"prompt.npy": npy(np.array([-1, 3]))})
    assert "the prompt has a negative id" in refusal(path)
