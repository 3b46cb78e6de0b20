"""A run's steps, listed once: what happens at each, which words fit it, when each fate is known.

A round's steps: each proposal drafted (n), one pass of the target (1), each examined proposal
judged, the closing token drawn (1), the caches rolled back (1). Without proposals: the pass and
the closing token.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from specviz.core.names import PHASES
from specviz.player.steps.run import ACCEPTED, NONE, REJECTED, Array, Projection, Run
from specviz.player.steps.sentences import (
    RACE,
    Closed,
    Drafted,
    Judged,
    Verified,
    Words,
    closed,
    drafted,
    hints,
    in_blocks,
    judged,
    verified,
)
from specviz.player.steps.tree import windows

DRAFT, VERIFY, DECIDE, CLOSE, ROLLBACK = range(len(PHASES))


class Steps(NamedTuple):
    """For each step its round, its number within the round, its phase and proposal ``(steps,)``."""

    round: Array
    k: Array
    phase: Array
    node: Array


def told(run: Run, projection: Projection) -> Projection:
    """Return a projection with the columns and the header's words that tell its steps."""
    steps, more = _steps(run), _proposals(run)
    run = replace(run, node=run.node | more, round=run.round | {"rejected": _rejected(run)})
    words, at = _words(run, steps)
    shown, tree = windows(run, steps.round, steps.phase, steps.node)
    target, draft = _caches(run, steps)
    fates = _settled(run)
    node_columns = projection.node_columns | {
        "settled": (fates, "u2", ""),
        "ratio": (more["ratio"], "u1", ""),
        "own": (more["own"], "u2", ""),
        "late": (more["late"], "f4", ""),
    }
    columns = {
        "phase": (steps.phase, "u1", ""),
        "node": (np.where(steps.node < 0, NONE, steps.node), "u2", ""),
        "words": (at, "u2", ""),
        "target_new": (target, "i4", ""),
        "draft_new": (draft, "i4", ""),
    }
    if run.is_tree:
        columns["tree"] = (tree, "u2", "")
    header = projection.header | {
        "steps": len(steps.round),
        "words": [list(one) for one in words],
        "hints": hints(run),
        "opening": opening_round(run),
        "trees": shown,
    }
    rounds = projection.round_columns | {"rejected": (run.round["rejected"], "u2", "")}
    return Projection(header, node_columns, rounds, columns)


def _steps(run: Run) -> Steps:
    """Return the list of steps."""
    proposed = run.round["nodes"].astype(np.int64)
    many = np.diff(run.first_step)
    of = np.repeat(np.arange(len(run)), many)
    k = np.arange(run.steps) - run.first_step[of]
    n, seen = proposed[of], (many - 3)[of]  # with proposals: drafted and judged ones together
    phase = np.select(
        [n == 0, k < n, k == n, k < seen + 1, k == seen + 1],
        [np.where(k == 0, VERIFY, CLOSE), DRAFT, VERIFY, DECIDE, CLOSE],
        ROLLBACK,
    )
    # judged in the order of drawing; of a tree by depth
    rows = np.flatnonzero(run.node["verdict"])
    starts = np.repeat(run.start[:-1], proposed)
    owner = np.repeat(np.arange(len(run)), proposed)
    order = rows[np.lexsort((rows, run.depth[rows], owner[rows]))]
    node = np.full(len(k), -1)
    node[phase == DRAFT] = k[phase == DRAFT]
    node[phase == DECIDE] = order - starts[order]
    return Steps(of, k, phase, node)


def _proposals(run: Run) -> dict[str, Array]:
    """Return what else is asked of proposals: whether a is p / q, the target's token, its arrival.

    The draft's race had the same noise E and took E / q; the target's takes E / p. Where the
    proposal was drawn otherwise its arrival is not on record (NaN).
    """
    p, q, a = (run.node[name].astype(np.float64) for name in ("p", "q", "acceptance"))
    own, raced = run.node["own"], run.node["q_draw"] == RACE
    with np.errstate(all="ignore"):
        ratio = (q > 0) & (a < 1) & (np.abs(p - a * q) <= 1e-5 * p)
        late = np.where(p > 0, run.node["q_time"] * q / p, np.inf)
    if run.header["rule"] == "greedy" and len(p):
        top = np.where(run.node["top"] == NONE, -1.0, run.node["top_p"])
        own = np.take_along_axis(run.node["top"], top.argmax(axis=1)[:, None], axis=1)[:, 0]
    late = np.where(raced & ~np.bool_(run.is_tree), late, np.nan)
    return {"ratio": ratio, "own": own, "late": late}


def _rejected(run: Run) -> Array:
    """Return, per round, the rejected proposal whose residual closes it; NONE without one.

    It is the last one tried after what was accepted; under block verification others follow it.
    """
    found = np.full(len(run), NONE)
    end = np.full(len(run), NONE)
    verdict, parent = run.node["verdict"], run.node["parent"]
    rows = np.flatnonzero(verdict)
    owner = np.searchsorted(run.start, rows, side="right") - 1
    local = rows - run.start[owner]
    kept = verdict[rows] == ACCEPTED
    end[owner[kept]] = local[kept]  # the last one wins
    last = (verdict[rows] == REJECTED) & (parent[rows] == end[owner])
    found[owner[last]] = local[last]
    return found


def _settled(run: Run) -> Array:
    """Return, per proposal, from which of its round's steps on its fate is known ``(nodes,)``.

    A block's position is kept for certain only once it, or one after it, has passed its test; the
    rest is known by the last test. What was never examined is discarded by the first rejection of
    a chain, or when the round closes.
    """
    n = run.round["nodes"].astype(np.int64)
    owner = np.repeat(np.arange(len(run)), n)
    local = np.arange(len(owner)) - run.start[owner]
    verdict = run.node["verdict"]
    close = (np.diff(run.first_step) - 2)[owner]
    rows = np.flatnonzero(verdict)
    order = rows[np.lexsort((rows, run.depth[rows], owner[rows]))]
    rank = np.zeros(len(owner), dtype=np.int64)
    examined = np.concatenate([[0], np.cumsum(np.bincount(owner[rows], minlength=len(run)))])
    rank[order] = np.arange(len(order)) - examined[owner[order]]
    tested = n[owner] + 1 + rank
    settled = np.where(verdict != 0, tested, close)
    if in_blocks(run):
        last, passed = n[owner] * 2, np.full(len(owner), -1)
        next_ = -1
        for row in range(len(owner) - 1, -1, -1):
            if row == len(owner) - 1 or owner[row + 1] != owner[row]:
                next_ = -1
            if run.node["u"][row] < run.node["acceptance"][row]:
                next_ = int(local[row])
            passed[row] = next_
        kept = (verdict == ACCEPTED) & (passed >= 0)
        settled = np.where(verdict == 0, close, np.where(kept, n[owner] + 1 + passed, last))
    elif not run.is_tree:
        cut = np.full(len(run), -1)
        turned = rows[verdict[rows] == REJECTED]
        cut[owner[turned]] = tested[turned]
        never = (verdict == 0) & (cut[owner] >= 0)
        settled = np.where(never, cut[owner], settled)
    return settled


def _caches(run: Run, steps: Steps) -> tuple[Array, Array]:
    """Return at each step how many places target and draft cache have more than before the round.

    A proposal is drawn from what is in the draft's cache; it is fed only for the next one.
    """
    of, n = steps.round, run.round["nodes"].astype(np.int64)[steps.round]
    over = (steps.phase == ROLLBACK) | ((steps.phase == CLOSE) & (n == 0))
    out = []
    for which, most in (("target", "verified"), ("draft", "proposed")):
        before, peak, after = (
            run.round[f"{which}_{name}"].astype(np.int64)[of] for name in ("before", most, "after")
        )
        now = np.where(over, after, peak)
        fed = peak if run.is_tree else np.maximum(before, peak - (n - 1 - steps.node))
        now = np.where(steps.phase == DRAFT, before if which == "target" else fed, now)
        out.append(now - before)
    return out[0], out[1]


# -- the words ------------------------------------------------------------------------------------


def _words(run: Run, steps: Steps) -> tuple[list[Words], Array]:
    """Return the different words of a run, and which of them belong to each step ``(steps,)``."""
    found: dict[Words, int] = {}
    at = np.zeros(len(steps.round), dtype=np.int64)
    tables: tuple[tuple[tuple[int, ...], Any, Any, Any], ...] = (
        ((DRAFT,), Drafted, _of_draft, drafted),
        ((VERIFY,), Verified, _of_pass, verified),
        ((DECIDE,), Judged, _of_verdict, judged),
        ((CLOSE, ROLLBACK), Closed, _of_close, closed),
    )
    for phases, kind, ask, say in tables:
        mine = np.flatnonzero(np.isin(steps.phase, phases))
        if len(mine):
            questions = ask(run, *(column[mine] for column in steps))
            at[mine] = _numbered(run, kind, questions, say, found)
    return list(found), at


def _numbered(
    run: Run, kind: Any, questions: list[Array], say: Callable[..., Words], found: dict[Words, int]
) -> Array:
    """Return the number of each row's words; they are made once per different row of answers."""
    table = np.stack([np.asarray(one, dtype=np.int64) for one in questions], axis=1)
    rows, which = np.unique(table, axis=0, return_inverse=True)
    numbers = [found.setdefault(say(run, kind(*map(int, row))), len(found)) for row in rows]
    out: Array = np.array(numbers)[which.ravel()]
    return out


def _of_draft(run: Run, of: Array, k: Array, phase: Array, node: Array) -> list[Array]:
    row = run.start[of] + node
    return [run.round["nodes"][of], node, run.node["q_draw"][row], _siblings(run)[0][row]]


def _of_pass(run: Run, of: Array, k: Array, phase: Array, node: Array) -> list[Array]:
    measured = bool((run.header["baseline"] or {}).get("measured"))
    timed = run.round["verify_seconds"][of] > 0
    return [run.round["nodes"][of], timed, run.round["draft_seconds"][of] > 0, timed & measured]


def _of_verdict(run: Run, of: Array, k: Array, phase: Array, node: Array) -> list[Array]:
    row = run.start[of] + node
    at = {name: run.node[name][row] for name in run.node}
    later, rejected_before = (one[row] for one in _siblings(run))
    corrected = (run.round["closing_kind"][of] == 1) & run.judged_by_u
    n = run.round["nodes"][of].astype(np.int64)
    blocks = in_blocks(run)
    closes = corrected & (node == (n - 1 if blocks else run.round["rejected"][of]))
    if blocks:
        ids, shares = run.round["distribution"][of], run.round["distribution_p"][of]
    else:
        ids, shares = at["residual"], at["residual_p"]
    listed = ((ids != NONE) & (shares > 0)).any(axis=1)
    closing = run.round["closing"][of]
    hit = ((ids == closing[:, None]) & (shares > 0)).any(axis=1)
    hit |= run.round["closing_hi"][of] - run.round["closing_lo"][of] > 0
    listed |= hit
    kept_in_all = run.sums["accepted"][of + 1] - run.sums["accepted"][of]
    no = np.zeros(len(row), dtype=np.int64)
    late = np.select([at["late"] == np.inf, at["late"] >= 0], [2, 1], 0)
    return [
        n, node, at["q_draw"] == 0, at["acceptance"] >= 1, at["ratio"], at["verdict"] == ACCEPTED,
        at["u"] < at["acceptance"], rejected_before, later,
        _next(run, of, node) if run.is_tree else no - 1, closes, listed, hit,
        kept_in_all if blocks else no, at["own"] == at["token"],
        (at["own"] != NONE) & (at["own_time"] >= 0), at["own_second"] < np.inf, late,
        at["top_p"].max(axis=1) == 1,
    ]  # fmt: skip


def _of_close(run: Run, of: Array, k: Array, phase: Array, node: Array) -> list[Array]:
    over = phase == ROLLBACK
    at = {name: run.round[name][of] for name in run.round}
    n = at["nodes"].astype(np.int64)
    back = at["rejected"] != NONE
    row = np.where(back, run.start[of] + at["rejected"], 0)
    left = 1 - run.node["overlap"][row] if len(run.depth) else np.zeros(len(of))
    accepted = run.sums["accepted"][of + 1] - run.sums["accepted"][of]
    lacks = np.where(at["draft_proposed"] > 0, at["target_after"] - at["draft_after"], 0)
    lacks = np.where(at["closing_kind"] == 2, lacks, 0)
    return [
        over, n, at["closing_emitted"], at["closing_kind"], at["closing_draw"], back & (left > 0),
        np.where(over, run.out_start[of + 1] - run.out_start[of], 0),
        np.where(over, n - accepted, 0),
        over & (at["target_verified"] > at["target_after"]), np.where(over, lacks, 0),
    ]  # fmt: skip


def _siblings(run: Run) -> tuple[Array, Array]:
    """Return of each proposal whether an earlier sibling exists, and whether one was rejected.

    Only where the rule's p and q of a later sibling are changed by that.
    """
    many = len(run.depth)
    before, rejected = np.zeros(many, dtype=bool), np.zeros(many, dtype=bool)
    if not (run.is_tree and run.judged_by_u):
        return before, rejected
    for first, last in zip(run.start[:-1], run.start[1:], strict=True):
        seen: dict[int, bool] = {}
        for row in range(first, last):
            parent = int(run.node["parent"][row])
            before[row], rejected[row] = parent in seen, seen.get(parent, False)
            seen[parent] = rejected[row] or run.node["verdict"][row] == REJECTED
    return before, rejected


def _next(run: Run, of: Array, node: Array) -> Array:
    """Return the child of an accepted proposal, the next sibling of a rejected one; -1 for none."""
    found = []
    for r, i in zip(of, node, strict=True):
        first, last = int(run.start[r]), int(run.start[r + 1])
        parents = run.node["parent"][first:last]
        up = i if run.node["verdict"][first + i] == ACCEPTED else parents[i]
        later = np.flatnonzero(parents[i + 1 :] == up)
        found.append(int(later[0]) + i + 1 if len(later) else -1)
    return np.array(found, dtype=np.int64)


# -- where to begin -------------------------------------------------------------------------------


LOOKED_AT = 400
"""Rounds among which the opening is looked for."""
NEAT = 0.05
"""Probabilities below this are no good first examples."""


def opening_round(run: Run) -> int:
    """Return the round that explains most: kept easily, kept although p < q, rejected, replaced.

    Of whole words, with numbers that are easy to read; the first of those that show as much.
    """
    best, most = 0, -1.0
    for r in range(min(len(run), LOOKED_AT)):
        score = _explains(run, r)
        if score > most:
            best, most = r, score
    return best


def _explains(run: Run, r: int) -> float:
    """Return how much a round shows of the idea."""
    first, last = int(run.start[r]), int(run.start[r + 1])
    if first == last:
        return 0.0
    at = {name: run.node[name][first:last] for name in ("verdict", "p", "q", "acceptance", "token")}
    kept, rejected = at["verdict"] == ACCEPTED, at["verdict"] == REJECTED
    parts = [kept.any(), rejected.any(), run.round["closing_kind"][r] == 1]
    if run.judged_by_u and not in_blocks(run):
        parts += [(kept & (at["acceptance"] >= 1)).any(), (kept & (at["acceptance"] < 1)).any()]
    texts = [run.text(int(token)) for token in [*at["token"], run.round["closing"][r]]]
    whole = sum(one.startswith(" ") and one[2:].isalpha() for one in texts) / len(texts)
    judged_ = kept | rejected
    numbers = np.concatenate([at["p"][judged_], at["q"][judged_]])
    neat = float((numbers >= NEAT).mean()) if len(numbers) else 0.0
    few = 1.0 if last - first <= 6 else 0.0
    return 2.0 * sum(map(bool, parts)) + 5 * whole + 4 * neat + few
