"""What decides where nothing is compared with a u: races, or the target's most likely token.

This is ``js/contests.js`` in Python; a test compares the two frame by frame.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from specviz.player.columns import NONE
from specviz.player.run import ACCEPTED, Run
from specviz.player.words import evidence, number, quoted, trimmed

RACE = 2
REACH, BEHIND = 3, 1.3
"""How far a lane reaches, in arrivals of the runner-up."""

TARGETS = "the target's race: every token runs, the likelier the faster"
DRAFTS = "the draft's race: the same noise, its own speeds q"


@dataclass(frozen=True)
class Lane:
    """A token in a contest: its share of the lane, and its arrival or probability.

    ``look`` is first, second, lost (a proposal that did not win) or open (somewhere from
    ``start`` on); ``text`` is empty for a token that is not on record.
    """

    text: str
    role: str
    mark: str
    look: str
    start: float
    end: float
    value: str


@dataclass(frozen=True)
class Contest:
    """Lanes under a title."""

    title: str
    lanes: list[Lane]


def target_race(run: Run, row: int) -> Contest | None:
    """Return the target's race at a proposal that was judged; None if none is on record."""
    own, first = int(run.node["own"][row]), float(run.node["own_time"][row])
    if own == NONE or not first >= 0:
        return None
    token = int(run.node["token"][row])
    time = first if own == token else arrival(run, row)
    second = float(run.node["own_second"][row])
    proposal = (trimmed(run.text(token)), own == token, time)
    return _race(TARGETS, trimmed(run.text(own)), first, second, proposal)


def arrival(run: Run, row: int) -> float:
    """Return when a proposal arrives in the target's race; NaN where that is not on record.

    The draft's race had the same noise E and took E / q; the target's takes E / p.
    """
    if run.node["q_draw"][row] != RACE or run.is_tree:
        return math.nan
    p = float(run.node["p"][row])
    took = float(run.node["q_time"][row]) * float(run.node["q"][row])
    return took / p if p > 0 else math.inf


def draft_race(run: Run, row: int) -> Contest | None:
    """Return the draft's own race, with the target's noise; None if it had none."""
    if run.node["q_draw"][row] != RACE:
        return None
    text = trimmed(run.text(int(run.node["token"][row])))
    first, second = float(run.node["q_time"][row]), float(run.node["q_second"][row])
    return _race(DRAFTS, text, first, second)


def closing_race(run: Run, r: int) -> Contest:
    """Return the race for the token that closed a round."""
    text = trimmed(run.text(int(run.round["closing"][r])))
    first, second = float(run.round["closing_time"][r]), float(run.round["closing_second"][r])
    return _race(TARGETS, text, first, second)


def _race(
    title: str,
    winner: str,
    first: float,
    second: float,
    proposal: tuple[str, bool, float] | None = None,
) -> Contest:
    """Return a race; a proposal is (text, whether it won, its arrival or NaN)."""
    text, same, time = proposal or ("", False, math.nan)
    lost = proposal is not None and not same
    # an arrival that is not on record lies behind the runner-up: room for that
    unknown = lost and math.isnan(time)
    reach = BEHIND * second if unknown else min(0.0 if math.isnan(time) else time, REACH * second)
    end = max(first, second if second < math.inf else first, reach if reach < math.inf else 0.0)
    end = end or 1.0

    def at(moment: float) -> float:
        return min(1.0, moment / end)

    role, mark = ("first: the proposal", "✓") if same else ("first", "")
    lanes = [Lane(winner, role, mark, "first", 0.0, at(first), number(first))]
    runner_up = lost and abs(time - second) <= 1e-5 * second
    if second < math.inf:
        told = (text, "second: the proposal", "✗", "lost") if runner_up else ("", "second", "", "")
        lanes.append(Lane(*told[:3], told[3] or "second", 0.0, at(second), number(second)))
    if lost and not runner_up:
        known = time >= 0
        look = "lost" if known and time <= end else "open"
        value = "never" if time == math.inf else number(time) if known else "later"
        start = 0.0 if known else at(min(second, end))
        lanes.append(Lane(text, "the proposal", "✗", look, start, 1.0, value))
    return Contest(title, lanes)


def top_two(run: Run, table: str, row: int) -> Contest:
    """Return the target's two most likely tokens, and the proposal."""
    name, columns = ("top", run.node) if table == "node" else ("distribution", run.round)
    x = int(run.node["token"][row]) if table == "node" else NONE
    listed = zip(columns[name][row], columns[f"{name}_p"][row], strict=True)
    every = [(int(token), float(p)) for token, p in listed if token != NONE and p > 0]
    every.sort(key=lambda one: -one[1])
    shown = every[:2]
    if x != NONE and x not in (token for token, _ in shown):
        shown.append((x, dict(every).get(x, 0.0)))
    lanes = []
    for i, (token, p) in enumerate(shown):
        mine = token == x
        ranked = i < len(every) and p > 0
        rank = ("most likely", "second", "the proposal")[i] if ranked else "the proposal"
        lanes.append(
            Lane(
                text=trimmed(run.text(token)),
                role=f"{rank}: the proposal" if mine and rank != "the proposal" else rank,
                mark=("✗" if i else "✓") if mine else "",
                look=("lost" if mine else "second") if i else "first",
                start=0.0,
                end=p,
                value=number(p),
            )
        )
    return Contest("the target's most likely tokens", lanes)


def verdict_of(run: Run, row: int) -> str:
    """Return what a contest says of a proposal."""
    token, own = int(run.node["token"][row]), int(run.node["own"][row])
    x, p = quoted(run.text(token)), float(run.node["p"][row])
    first = float(run.node["own_time"][row])
    if own != NONE and first >= 0:
        second = float(run.node["own_second"][row])
        ahead = f", the next at {number(second)}" if second < math.inf else ""
        won = f"{quoted(run.text(own))} arrived first, at {number(first)}{ahead}"
        if own == token:
            return f"No u here. {won}. The proposal is that token: kept."
        time, late = arrival(run, row), ""
        if time == math.inf:
            late = ": with p = 0 it never arrives"
        elif time >= 0:
            late = f": with the same noise it arrives at {number(time)}"
        return f"No u here. {won}. The proposal {x} is another one{late}: rejected."
    if run.header["rule"] == "greedy":
        best, most = evidence(run, row).own, float(max(run.node["top_p"][row]))
        whole = " At temperature 0 all of p lies on one token." if most == 1 else ""
        said = "No draw: the target's most likely token is"
        if best == token:
            return f"{said} the proposal {x}: kept.{whole}"
        return (
            f"{said} {quoted(run.text(best))} (p = {number(most)}); the proposal {x} has "
            f"{number(p)}, a gap of {number(most - p)}: rejected.{whole}"
        )
    kept = run.node["verdict"][row] == ACCEPTED
    return (
        f"No draw: this rule looks only at p, which gives {x} {number(p)}: "
        f"{'enough, kept' if kept else 'too little, rejected'}."
    )
