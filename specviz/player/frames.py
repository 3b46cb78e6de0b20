"""What there is to see at a step: everything that a still or a film draws, and nothing else.

This is ``js/frame.js`` in Python; a test compares the two frame by frame.
"""

from __future__ import annotations

from dataclasses import dataclass

from specviz.player.block import in_blocks, settled
from specviz.player.columns import NONE
from specviz.player.positions import examined, position_at
from specviz.player.run import ACCEPTED, KINDS, REJECTED, Run


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
    first, n = int(run.start[at.round]), int(run.round["nodes"][at.round])
    status = ["ghost"] * n
    emitted = int(run.out_start[at.round])
    if at.phase == "draft":
        status[at.node + 1 :] = ["hidden"] * (n - 1 - at.node)
    blocks = in_blocks(run) and at.phase == "decide"
    if blocks:
        status = settled(run, at.round, at.node)
        emitted += sum(
            one == "accepted" and run.node["emitted"][first + i] == 1
            for i, one in enumerate(status)
        )
    for i in [] if at.phase in ("draft", "verify") or blocks else examined(run, at.round):
        kept = run.node["verdict"][first + i] == ACCEPTED
        status[i] = "accepted" if kept else "rejected"
        emitted += int(kept and run.node["emitted"][first + i] == 1)
        if at.phase == "decide" and i == at.node:
            break
    over = at.phase in ("close", "rollback")
    # in a tree a sibling may still be kept
    turned_down = at.phase == "decide" and not run.is_tree and status[at.node] == "rejected"
    if over or turned_down:
        status = ["never" if one == "ghost" else one for one in status]
    return Frame(
        step=step,
        round=at.round,
        phase=at.phase,
        node=at.node,
        first=first,
        status=tuple(status),
        closing=KINDS[int(run.round["closing_kind"][at.round])] if over else "hidden",
        seen_p=at.phase != "draft",
        settled=at.phase == "rollback",
        emitted=int(run.out_start[at.round + 1]) if over else emitted,
    )


def cache_at(run: Run, frame: Frame, which: str) -> Cache:
    """Return the lengths of the target's or the draft's cache at a frame."""

    def of(name: str) -> int:
        return int(run.round[f"{which}_{name}"][frame.round])

    before, after = of("before"), of("after")
    peak = of("verified" if which == "target" else "proposed")
    n, now = len(frame.status), peak
    if frame.phase == "draft":
        now = before
        if which == "draft":
            # a proposal is drawn from what is in the cache; it is fed only for the next one
            now = peak if run.is_tree else max(before, peak - (n - 1 - frame.node))
    if frame.settled or (frame.phase == "close" and not n):
        now = after
    return Cache(before, now, peak, after)


def rejected_row(run: Run, frame: Frame) -> int:
    """Return the rejected proposal whose residual closes a round; -1 if none.

    It is the last one tried after what was kept; under block verification others follow it.
    """
    first, last = int(run.start[frame.round]), int(run.start[frame.round + 1])
    verdicts, parents = run.node["verdict"], run.node["parent"]
    kept = [i - first for i in range(first, last) if verdicts[i] == ACCEPTED]
    end = kept[-1] if kept else NONE
    rows = [i for i in range(first, last) if verdicts[i] == REJECTED and parents[i] == end]
    return rows[-1] if rows else -1


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
