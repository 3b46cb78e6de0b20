"""The draws at a frame: u against the acceptance, the inverse CDF, and races where no u decides."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from specviz.core.formatting import format_number
from specviz.player.steps.frames import Frame
from specviz.player.steps.run import NONE, Run
from specviz.player.steps.sentences import RACE, in_blocks
from specviz.player.steps.words import evidence, told, trimmed

REST = "residual, stacked from 0 to 1: the draw picks the new token"
OWN_DRAW = "the proposal: the draft's own draw from q"


@dataclass(frozen=True)
class Piece:
    """A token's interval [lo, lo + p) of the cumulative distribution."""

    token: int
    p: float
    lo: float


@dataclass(frozen=True)
class Draw:
    """The draws at a frame.

    ``test`` is (acceptance, u, kept) or None; ``distribution`` with its ``pieces``, the draw ``v``
    in it and the piece that was ``hit``; ``contests`` what decided without a u. ``says`` tells it.
    """

    says: str
    test: tuple[float, float, bool] | None = None
    title: str = ""
    colour: str = ""
    pieces: list[Piece] = field(default_factory=list)
    v: float = math.nan
    hit: Piece | None = None
    contests: list[Contest] = field(default_factory=list)


def distribution_pieces(run: Run, table: str, name: str, row: int) -> list[Piece]:
    """Return the tokens of a distribution with their pieces of it, likeliest first."""
    columns = run.node if table == "node" else run.round
    listed = zip(
        columns[name][row], columns[f"{name}_p"][row], columns[f"{name}_lo"][row], strict=True
    )
    return [Piece(int(t), float(p), float(lo)) for t, p, lo in listed if t != NONE and p > 0]


def draw_at(run: Run, frame: Frame) -> Draw:
    """Return the draws at a frame: u against the acceptance, then what it leads to."""
    if frame.phase == "draft":
        return _draft_draw(run, frame)
    if frame.phase == "verify":
        return Draw(told(run, frame, "says"))
    return _test_draw(run, frame) if frame.phase == "decide" else _closing_draw(run, frame)


def _draft_draw(run: Run, frame: Frame) -> Draw:
    row = frame.first + frame.node
    if run.node["q_draw"][row] == 0:
        return Draw(told(run, frame, "says"))
    race = draft_race(run, row)
    if race:
        return Draw(told(run, frame, "says"), contests=[race])
    stacked = _draft_distribution(run, row, "draft q, stacked from 0 to 1")
    return Draw(told(run, frame, "says"), **stacked)


def _draft_distribution(run: Run, row: int, title: str) -> dict[str, Any]:
    """Return the draft's own inverse CDF: where its draw fell."""
    listed = zip(run.node["top"][row], run.node["top_q"][row], run.node["top_lo"][row], strict=True)
    pieces = [Piece(int(t), float(q), float(lo)) for t, q, lo in listed if t != NONE and q > 0]
    return {
        "title": title,
        "colour": "q",
        "pieces": pieces,
        "v": float(run.node["q_u"][row]),
        "hit": next((one for one in pieces if one.token == run.node["token"][row]), None),
    }


def _test_draw(run: Run, frame: Frame) -> Draw:
    row, says = frame.first + frame.node, told(run, frame, "says")
    it = evidence(run, row)
    if not run.judged_by_u:
        return _contested(run, row, says)
    blocks = in_blocks(run)
    # a block's position passes or not; what is kept the last of them decides
    test = (it.a, it.u, it.u < it.a if blocks else it.kept)
    last = len(frame.status) - 1 if blocks else int(run.round["rejected"][frame.round])
    if it.kept or frame.node != last or run.round["closing_kind"][frame.round] != 1:
        return Draw(says, test)
    # under block verification a share of p goes into the residual: the distribution is the round's
    # own
    table, name, at = (
        ("round", "distribution", frame.round) if blocks else ("node", "residual", row)
    )
    pieces = _with_closing(run, frame, distribution_pieces(run, table, name, at))
    if not pieces:
        return Draw(says, test)
    v, hit = float(run.round["closing_u"][frame.round]), _closing_piece(run, frame, pieces)
    return Draw(says, test, title=REST, colour="r", pieces=pieces, v=v, hit=hit)


def _contested(run: Run, row: int, says: str) -> Draw:
    """Return the draws of a proposal that was compared with the target's own token."""
    race = target_race(run, row)
    if race is None and run.header["rule"] == "greedy":
        race = top_two(run, "node", row)
    own_draw = _draft_distribution(run, row, OWN_DRAW) if run.node["q_draw"][row] == 1 else {}
    contests = [one for one in (race, draft_race(run, row)) if one]
    return Draw(says, contests=contests, **own_draw)


def _closing_draw(run: Run, frame: Frame) -> Draw:
    r, says = frame.round, told(run, frame, "says")
    how = run.round["closing_draw"][r]
    if how == 0:
        return Draw(says, contests=[top_two(run, "round", r)])
    if how == RACE:
        return Draw(says, contests=[closing_race(run, r)])
    pieces = _with_closing(run, frame, distribution_pieces(run, "round", "distribution", r))
    v = float(run.round["closing_u"][r])
    residual = run.round["closing_kind"][r] == 1 and run.judged_by_u
    return Draw(
        says,
        title="residual, stacked from 0 to 1" if residual else "target p, stacked from 0 to 1",
        colour="r" if residual else "p",
        pieces=pieces,
        v=v,
        hit=_closing_piece(run, frame, pieces),
    )


def closing_pieces(run: Run, frame: Frame) -> list[Piece]:
    """Return the pieces of the distribution that closes a round, the token drawn among them."""
    pieces = distribution_pieces(run, "round", "distribution", frame.round)
    return _with_closing(run, frame, pieces)


def _with_closing(run: Run, frame: Frame, pieces: list[Piece]) -> list[Piece]:
    """Return a distribution's pieces; the token drawn is always one of them."""
    r, token = frame.round, int(run.round["closing"][frame.round])
    if any(one.token == token for one in pieces):
        return pieces
    lo = float(run.round["closing_lo"][r])
    p = float(run.round["closing_hi"][r]) - lo
    return [*pieces, Piece(token, p, lo)] if p > 0 else pieces


def _closing_piece(run: Run, frame: Frame, pieces: list[Piece]) -> Piece | None:
    token = int(run.round["closing"][frame.round])
    return next((one for one in pieces if one.token == token), None)


# -- races, and the target's most likely token ----------------------------------------------------


REACH, BEHIND = 3, 1.3
"""How far a lane reaches, in arrivals of the runner-up."""

TARGETS = "the target's race: likelier tokens run faster"
DRAFTS = "the draft's race: the same noise, speeds from q"


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
    time = first if own == token else float(run.node["late"][row])
    second = float(run.node["own_second"][row])
    proposal = (trimmed(run.text(token)), own == token, time)
    return _race(TARGETS, trimmed(run.text(own)), first, second, proposal)


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
    lanes = [Lane(winner, role, mark, "first", 0.0, at(first), format_number(first))]
    runner_up = lost and abs(time - second) <= 1e-5 * second
    if second < math.inf:
        told = (text, "second: the proposal", "✗", "lost") if runner_up else ("", "second", "", "")
        lanes.append(Lane(*told[:3], told[3] or "second", 0.0, at(second), format_number(second)))
    if lost and not runner_up:
        known = time >= 0
        look = "lost" if known and time <= end else "open"
        value = "never" if time == math.inf else format_number(time) if known else "later"
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
                value=format_number(p),
            )
        )
    return Contest("the target's most likely tokens", lanes)
