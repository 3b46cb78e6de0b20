"""Where one is in a run: a position (round, phase, node) and its number, counted in steps.

This is ``js/timeline.js`` in Python: a round's steps are each proposal drafted, one pass of the
target, each examined proposal judged, the closing token drawn, the caches rolled back; without
proposals the pass and the closing token.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from specviz.player.run import REJECTED, Run

PHASES = ("draft", "verify", "decide", "close", "rollback")


@dataclass(frozen=True)
class Position:
    """A place in a run; ``node`` is -1 where no single proposal is in question."""

    round: int
    phase: str
    node: int = -1


def examined(run: Run, round: int) -> list[int]:
    """Return a round's judged proposals, in the order in which they were judged."""
    first, last = run.start[round], run.start[round + 1]
    found = np.flatnonzero(run.node["verdict"][first:last])
    if run.is_tree:
        found = found[np.argsort(run.depth[first + found], kind="stable")]
    return [int(i) for i in found]


def position_at(run: Run, step: int) -> Position:
    """Return where a step is.

    Raises
    ------
    IndexError
        If the run has no such step.
    """
    if not 0 <= step < run.steps:
        raise IndexError(f"step must be within 0..{run.steps - 1}, got {step}")
    # a round always has steps, so the last round that starts at or before this one has it
    round_ = int(np.searchsorted(run.first_step, step, side="right")) - 1
    n, k = int(run.round["nodes"][round_]), step - int(run.first_step[round_])
    if not n:
        return Position(round_, "close" if k else "verify")
    if k < n:
        return Position(round_, "draft", k)
    if k == n:
        return Position(round_, "verify")
    judged, j = examined(run, round_), k - n - 1
    if j < len(judged):
        return Position(round_, "decide", judged[j])
    return Position(round_, "close" if j == len(judged) else "rollback")


def step_of(run: Run, position: Position) -> int:
    """Return the number of a position; of a proposal that was not judged, the pass before it."""
    r, n = position.round, int(run.round["nodes"][position.round])
    begin, last = int(run.first_step[r]), int(run.first_step[r + 1]) - 1
    if position.phase == "rollback":
        return last
    if not n:
        return last if position.phase == "close" else begin
    if position.phase == "close":
        return last - 1
    if position.phase == "verify":
        return begin + n
    if position.phase == "decide":
        judged = examined(run, r)
        return begin + n + 1 + judged.index(position.node) if position.node in judged else begin + n
    return begin + min(max(position.node, 0), n - 1)


def chosen(run: Run, round: Any = None, node: Any = None, phase: Any = None) -> Position:
    """Return the position that a reader asked for, with what was left out filled in.

    Without a round it is the first one with a rejection (else the first with a proposal, else
    the first). Without a node it is the round's rejected proposal (else the last one judged).
    Without a phase it is the decision about that proposal, or its drafting if it was not judged;
    in a round without rejection the closing token.

    Raises
    ------
    TypeError, ValueError
        If there is no such round, node or phase, in one sentence.
    """
    for name, value in (("round", round), ("node", node)):
        if value is not None and (
            isinstance(value, bool) or not isinstance(value, (int, np.integer))
        ):
            raise TypeError(f"{name} must be a whole number, got {value!r}")
    if phase is not None and phase not in PHASES:
        raise ValueError(f"phase must be one of {', '.join(PHASES)}, got {phase!r}")
    if not len(run):
        raise ValueError("trace has no rounds, so there is nothing to show; decode a token first")
    if round is None:
        if node is not None:
            raise ValueError(f"node needs a round as well, as in round=0, node={node}")
        round = _telling_round(run)
    if not 0 <= round < len(run):
        raise ValueError(f"round must be within 0..{len(run) - 1}, got {round}")
    round, n = int(round), int(run.round["nodes"][round])
    if node is not None and not 0 <= node < n:
        has = f"within 0..{n - 1} in round {round}" if n else f"left out: round {round} has none"
        raise ValueError(f"node must be {has}, got {node}")
    if not n:
        if phase not in (None, "verify", "close"):
            raise ValueError(f"phase must be verify or close in round {round}, which has no "
                             f"proposals, got {phase!r}")  # fmt: skip
        return Position(round, phase or "close")
    return _filled(run, round, None if node is None else int(node), phase)


def _filled(run: Run, round: int, node: int | None, phase: str | None) -> Position:
    """Return a position in a round with proposals, the node or the phase perhaps left out."""
    verdicts = run.node["verdict"][run.start[round] : run.start[round + 1]]
    judged = examined(run, round)
    rejected = [i for i in judged if verdicts[i] == REJECTED]
    if phase is None:
        if node is None:
            if not rejected:
                return Position(round, "close")
            return Position(round, "decide", rejected[0])
        return Position(round, "decide" if verdicts[node] else "draft", node)
    if phase == "draft":
        return Position(round, phase, len(verdicts) - 1 if node is None else node)
    if phase == "decide":
        if not judged:
            raise ValueError(f"phase 'decide' is not in round {round}: no proposal was judged")
        if node is not None and not verdicts[node]:
            raise ValueError(f"node {node} in round {round} was never examined: it has no decision")
        return Position(round, phase, node if node is not None else (rejected or judged[-1:])[0])
    if node is not None:
        raise ValueError(f"node is for the phases draft and decide, not for {phase!r}")
    return Position(round, phase)


def _telling_round(run: Run) -> int:
    """Return the first round with a rejection, else with a proposal, else the first."""
    for rows in (np.flatnonzero(run.node["verdict"] == REJECTED), np.arange(len(run.depth))):
        if len(rows):
            return int(np.searchsorted(run.start, rows[0], side="right")) - 1
    return 0
