"""The draws at a frame: the pure half of ``js/view_draw.js`` in Python, what happened only."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from specviz.player.block import in_blocks
from specviz.player.columns import NONE
from specviz.player.contests import (
    RACE,
    Contest,
    closing_race,
    draft_race,
    target_race,
    top_two,
    verdict_of,
)
from specviz.player.frames import Frame, rejected_row
from specviz.player.judging import about_to
from specviz.player.run import ACCEPTED, Run
from specviz.player.words import evidence, number, quoted, tested_in_block

REST = "residual, laid end to end: the token that comes instead"
OWN_DRAW = "how the proposal came: the draft's own draw from q"


@dataclass(frozen=True)
class Piece:
    """A token's piece [lo, lo + p) of a distribution laid end to end."""

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
    """Return the draws at a frame: u against the acceptance.

    Then the distribution that it leads to.
    """
    if frame.phase == "draft":
        return _draft_draw(run, frame)
    if frame.phase == "verify":
        return Draw(about_to(run, proposed=bool(frame.status)))
    return _test_draw(run, frame) if frame.phase == "decide" else _closing_draw(run, frame)


def _draft_draw(run: Run, frame: Frame) -> Draw:
    row = frame.first + frame.node
    it = evidence(run, row)
    if it.one_hot:
        return Draw(f"No draw: the draft chose {quoted(it.text)} outright.")
    race = draft_race(run, row)
    if race:
        said = "won a race over q, run with the noise that the target will use too."
        return Draw(f"{quoted(it.text)} {said}", contests=[race])
    said = f"A uniform number picks the piece of q that it falls into: {quoted(it.text)}."
    return Draw(said, **_draft_distribution(run, row, "draft q, laid end to end"))


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
    row = frame.first + frame.node
    it = evidence(run, row)
    if not run.judged_by_u:
        return _contested(run, row)
    blocks, below = in_blocks(run), it.u < it.a
    # a block's position passes or not; what is kept the last of them decides
    test = (it.a, it.u, below if blocks else it.kept)
    fell = "falls" if below else "does not fall"
    verdict = "kept" if it.kept else "rejected"
    said = f"u = {number(it.u)} {fell} below {number(it.a)}: {verdict}."
    ends = rejected_row(run, frame) == row
    if blocks:
        said, ends = tested_in_block(run, frame), frame.node == len(frame.status) - 1
    if it.kept or not (ends and run.round["closing_kind"][frame.round] == 1):
        return Draw(said + (_goes_on(run, frame) if run.is_tree else ""), test)
    # under block verification a share of p goes into the residual: the distribution is the round's
    # own
    table, name, at = (
        ("round", "distribution", frame.round) if blocks else ("node", "residual", row)
    )
    pieces = _with_closing(run, frame, distribution_pieces(run, table, name, at))
    if not pieces:
        return Draw(said, test)
    hit = _closing_piece(run, frame, pieces)
    which = "closing" if blocks else "next"
    token = quoted(run.text(hit.token)) if hit else "a token that is not listed"
    return Draw(
        f"{said} The {which} draw will fall on {token}.",
        test,
        title=REST,
        colour="r",
        pieces=pieces,
        v=float(run.round["closing_u"][frame.round]),
        hit=hit,
    )


def _goes_on(run: Run, frame: Frame) -> str:
    """Return what comes after a verdict in a tree."""
    parents, row = run.node["parent"], frame.first + frame.node
    kept = run.node["verdict"][row] == ACCEPTED
    up = frame.node if kept else int(parents[row])
    later = range(frame.node + 1, len(frame.status))
    found = next((i for i in later if parents[frame.first + i] == up), -1)
    name = quoted(run.text(int(run.node["token"][frame.first + found]))) if found >= 0 else ""
    if kept:
        if not name:
            return " It has no child: p after it closes the round."
        return f" The walk descends: {name} is next."
    return f" Its sibling {name} is tried next, against what is left of p." if name else ""


def _contested(run: Run, row: int) -> Draw:
    """Return the draws of a proposal that was compared with the target's own token."""
    race = target_race(run, row)
    if race is None and run.header["rule"] == "greedy":
        race = top_two(run, "node", row)
    own_draw = _draft_distribution(run, row, OWN_DRAW) if run.node["q_draw"][row] == 1 else {}
    contests = [one for one in (race, draft_race(run, row)) if one]
    return Draw(verdict_of(run, row), contests=contests, **own_draw)


def _closing_draw(run: Run, frame: Frame) -> Draw:
    r = frame.round
    how, token = run.round["closing_draw"][r], quoted(run.text(int(run.round["closing"][r])))
    if how == 0:
        said = f"No draw: {token} is the target's most likely token."
        return Draw(said, contests=[top_two(run, "round", r)])
    if how == RACE:
        return Draw(
            f"A race of all tokens, each faster the likelier it is: {token} arrived first.",
            contests=[closing_race(run, r)],
        )
    pieces = _with_closing(run, frame, distribution_pieces(run, "round", "distribution", r))
    v = float(run.round["closing_u"][r])
    residual = run.round["closing_kind"][r] == 1 and run.judged_by_u
    return Draw(
        f"The draw {number(v)} falls on {token}.",
        title="residual, laid end to end" if residual else "target p, laid end to end",
        colour="r" if residual else "p",
        pieces=pieces,
        v=v,
        hit=_closing_piece(run, frame, pieces),
    )


def _with_closing(run: Run, frame: Frame, pieces: list[Piece]) -> list[Piece]:
    """Return a distribution's pieces.

    The token drawn among them even if it is not one of the likeliest.
    """
    r, token = frame.round, int(run.round["closing"][frame.round])
    if any(one.token == token for one in pieces):
        return pieces
    lo = float(run.round["closing_lo"][r])
    p = float(run.round["closing_hi"][r]) - lo
    return [*pieces, Piece(token, p, lo)] if p > 0 else pieces


def _closing_piece(run: Run, frame: Frame, pieces: list[Piece]) -> Piece | None:
    token = int(run.round["closing"][frame.round])
    return next((one for one in pieces if one.token == token), None)
