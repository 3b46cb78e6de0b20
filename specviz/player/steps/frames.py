"""What there is to see at a step: everything that a still or a film draws, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from specviz.core.names import PHASES
from specviz.player.steps.run import KINDS, NONE, REJECTED, Run


@dataclass(frozen=True)
class Frame:
    """What is shown at a step.

    ``status`` has for each proposal of the round: hidden, ghost (it waits for a verdict),
    accepted, rejected or never. ``closing`` is hidden or the kind of the token that closed the
    round. ``seen_p`` says whether the target has looked, ``settled`` whether the round is over;
    ``emitted`` counts the tokens in the text as far as they are decided. ``first`` is the round's
    first row in the table of proposals.
    """

    step: int
    round: int
    phase: str
    node: int
    first: int
    status: tuple[str, ...]
    closing: str
    seen_p: bool
    settled: bool
    emitted: int


@dataclass(frozen=True)
class Cache:
    """Lengths of a cache: before the round, now, at its longest, after the round."""

    before: int
    now: int
    peak: int
    after: int

    @property
    def used(self) -> bool:
        """Whether there is such a cache on record."""
        return self.peak > 0


def frame_at(run: Run, step: int) -> Frame:
    """Return what there is to see at a step.

    Raises
    ------
    IndexError
        If the run has no such step.
    """
    at = position_at(run, step)
    r, k = at.round, step - int(run.first_step[at.round])
    first, n = int(run.start[r]), int(run.round["nodes"][r])
    rows = slice(first, first + n)
    fates = np.array(("never", "accepted", "rejected"))[run.node["verdict"][rows]]
    status = np.where(k < run.node["settled"][rows], "ghost", fates)
    if at.phase == "draft":
        status[at.node + 1 :] = "hidden"
    over = at.phase in ("close", "rollback")
    kept = (status == "accepted") & (run.node["emitted"][rows] == 1)
    return Frame(
        step=step,
        round=r,
        phase=at.phase,
        node=at.node,
        first=first,
        status=tuple(status.tolist()),
        closing=KINDS[int(run.round["closing_kind"][r])] if over else "hidden",
        seen_p=at.phase != "draft",
        settled=at.phase == "rollback",
        emitted=int(run.out_start[r + 1] if over else run.out_start[r] + kept.sum()),
    )


def cache_at(run: Run, frame: Frame, which: str) -> Cache:
    """Return the lengths of the target's or the draft's cache at a frame."""

    def of(name: str) -> int:
        return int(run.round[f"{which}_{name}"][frame.round])

    before, after = of("before"), of("after")
    peak = of("verified" if which == "target" else "proposed")
    return Cache(before, before + int(run.step[f"{which}_new"][frame.step]), peak, after)


def seconds_at(run: Run, frame: Frame) -> float:
    """Return the seconds run until a frame, as measured; within the drafting in equal parts."""
    r, n = frame.round, len(frame.status)
    before = float(run.sums["seconds"][r])
    draft, verify = float(run.round["draft_seconds"][r]), float(run.round["verify_seconds"][r])
    if frame.phase == "draft":
        return before + draft * (frame.node + 1) / n
    if frame.phase == "verify":
        return before + draft + verify
    if frame.settled or not n:
        return float(run.sums["seconds"][r + 1])
    return before + draft + verify + float(run.round["other_seconds"][r]) / 2


def path_to(run: Run, frame: Frame, node: int) -> list[int]:
    """Return the proposals from the root of the round's tree to one of them, itself last."""
    path: list[int] = []
    i = node
    while i != NONE:
        path.insert(0, i)
        i = int(run.node["parent"][frame.first + i])
    return path


def pending(run: Run, frame: Frame) -> list[int]:
    """Return which of a round's proposals stand behind the text at a frame, in order."""
    everything = range(len(frame.status))
    if frame.settled:
        return []
    if not run.is_tree:
        return [i for i in everything if frame.status[i] != "hidden"]
    # of a tree: what was judged, and the branch in question
    if frame.phase == "draft":
        return path_to(run, frame, frame.node)
    told = [i for i in everything if frame.status[i] in ("accepted", "rejected")]
    if told or frame.phase != "verify":
        return sorted(told, key=lambda i: (run.depth[frame.first + i], i))
    chain: list[int] = []
    parent = NONE
    for i in everything:
        if run.node["parent"][frame.first + i] == parent:
            chain.append(i)
            parent = i
    return chain


# -- where one is: a position and its step --------------------------------------------------------


@dataclass(frozen=True)
class Position:
    """A place in a run; ``node`` is -1 where no single proposal is in question."""

    round: int
    phase: str
    node: int = -1


def examined(run: Run, round: int) -> list[int]:
    """Return a round's judged proposals, in the order in which they were judged."""
    steps = slice(run.first_step[round], run.first_step[round + 1])
    judged = run.step["phase"][steps] == PHASES.index("decide")
    return [int(node) for node in run.step["node"][steps][judged]]


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
    node = int(run.step["node"][step])
    return Position(round_, PHASES[run.step["phase"][step]], -1 if node == NONE else node)


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

    Without a round it is the one that explains most (``opening``). Without a node it is the
    round's rejected proposal (else the last one judged). Without a phase it is the decision about
    that proposal, or its drafting if it was not judged; in a round without rejection the closing
    token.

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
        round = int(run.header["opening"])
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
