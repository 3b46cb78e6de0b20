"""What each view shows at a frame: bars, places of the caches, running measures."""

from __future__ import annotations

import math
from dataclasses import dataclass

from specviz.player.steps.draws import distribution_pieces
from specviz.player.steps.frames import Cache, Frame, cache_at, seconds_at
from specviz.player.steps.run import NONE, Run
from specviz.player.steps.sentences import in_blocks
from specviz.player.steps.words import mass_left, told, trimmed

ROWS = 8
SLOTS_BEFORE, MOST_SLOTS = 4, 24


@dataclass(frozen=True)
class Bar:
    """A token, or all others, with its share of p and q and of what both have."""

    text: str
    p: float
    q: float
    over: float
    proposed: bool = False


@dataclass(frozen=True)
class Bars:
    """p and q at a frame; ``mode``: q alone, both, or one distribution."""

    mode: str
    title: str
    rows: list[Bar]
    tail: Bar
    overlap: float
    residual: bool


@dataclass(frozen=True)
class Slot:
    """A place in a cache: kept, new, gone (rolled back) or empty."""

    at: int
    state: str
    text: str


@dataclass(frozen=True)
class Measured:
    """Measures of the rounds that are over, this one included as soon as it is decided."""

    rounds: int
    tokens: int
    per_pass: float
    alpha: float
    accepted: int
    proposed: int
    speedup: float
    seconds: float


def bars_at(run: Run, frame: Frame) -> Bars:
    """Return the p and q of the proposal in question, or the distribution that closes the round."""
    if frame.phase in ("close", "rollback") or not frame.status:
        return _closing_bars(run, frame)
    row = frame.first + max(frame.node, 0)
    x = run.node["token"][row]
    listed = zip(run.node["top"][row], run.node["top_p"][row], run.node["top_q"][row], strict=True)
    own = float(run.node["p"][row]), float(run.node["q"][row])  # of x with all their digits
    rows = []
    for token, *both in listed:
        if token != NONE:
            p, q = own if token == x and min(own) >= 0 else map(float, both)
            rows.append(Bar(trimmed(run.text(int(token))), p, q, min(p, q), token == x))
    rows.sort(key=lambda one: -(max(one.p, one.q) if frame.seen_p else one.q))
    pa, pb = (float(mass) for mass in run.node["tail_p"][row])
    qa, qb = (float(mass) for mass in run.node["tail_q"][row])
    return Bars(
        mode="both" if frame.seen_p else "q",
        title=told(run, frame, "title"),
        rows=rows,
        tail=Bar("all others", pa + pb, qa + qb, qa + pb),  # where p > q the overlap is q
        overlap=float(run.node["overlap"][row]),
        residual=False,
    )


def _closing_bars(run: Run, frame: Frame) -> Bars:
    r = frame.round
    residual = bool(run.round["closing_kind"][r] == 1 and run.judged_by_u)
    x, hidden = run.round["closing"][r], frame.closing == "hidden"
    rows = [
        Bar(trimmed(run.text(one.token)), one.p, 0.0, 0.0, one.token == x and not hidden)
        for one in distribution_pieces(run, "round", "distribution", r)[:ROWS]
    ]
    rest = max(0.0, 1 - sum(one.p for one in rows))
    return Bars(
        mode="distribution",
        title=told(run, frame, "title"),
        rows=rows,
        tail=Bar("all others", rest, 0.0, 0.0),
        overlap=1 - mass_left(run, r) if residual and not in_blocks(run) else math.nan,
        residual=residual,
    )


SHOWN = 5
"""Tokens in the picture of a step, but the rest."""


@dataclass(frozen=True)
class Part:
    """A token, or all others: its p and q, what both have, and what p has above q."""

    text: str
    p: float
    q: float
    over: float
    rest: float
    proposed: bool = False
    others: bool = False


def parts_at(run: Run, row: int, by: str) -> list[Part]:
    """Return the tokens at a proposal with the most of ``p``, ``q`` or ``rest``, the rest last."""
    listed = zip(run.node["top"][row], run.node["top_p"][row], run.node["top_q"][row], strict=True)
    x, own = run.node["token"][row], (float(run.node["p"][row]), float(run.node["q"][row]))
    found = []
    for token, *both in listed:
        if token != NONE:
            p, q = own if token == x and min(own) >= 0 else map(float, both)
            text = trimmed(run.text(int(token)))
            found.append(Part(text, p, q, min(p, q), max(0.0, p - q), bool(token == x)))
    found.sort(key=lambda one: -float(getattr(one, by)))
    kept = found[:SHOWN]
    kept[-1:] = [one for one in found[SHOWN:] if one.proposed] or kept[-1:]
    left = [one for one in found if not any(one is other for other in kept)]
    pa, pb = (float(mass) for mass in run.node["tail_p"][row])
    qa, qb = (float(mass) for mass in run.node["tail_q"][row])
    p, q = pa + pb + sum(one.p for one in left), qa + qb + sum(one.q for one in left)
    over = qa + pb + sum(one.over for one in left)
    return [*kept, Part("all others", p, q, over, max(0.0, p - over), others=True)]


def scale_of(bars: Bars) -> float:
    """Return the end of the bars' scale."""
    return end_of(max(max(0.0 if bars.mode == "q" else b.p, b.q) for b in [*bars.rows, bars.tail]))


def end_of(most: float) -> float:
    """Return the smallest round number that holds every bar."""
    return next((end for end in (0.1, 0.2, 0.5) if most <= end), 1.0)


def slots_at(run: Run, frame: Frame, which: str) -> tuple[Cache, list[Slot]]:
    """Return the places of a cache that matter in a round."""
    cache = cache_at(run, frame, which)
    other = cache_at(run, frame, "draft" if which == "target" else "target")
    end = max(cache.peak, other.peak)
    before = min(cache.before, other.before if other.used else cache.before) - SLOTS_BEFORE
    # the first pass writes the whole prompt: its end, and what follows, is what matters
    low = max(0, before, 0 if frame.round else end - MOST_SLOTS)
    slots = []
    for at in range(low, min(low + MOST_SLOTS, end)):
        if frame.settled and cache.after <= at < cache.peak:
            state = "gone"
        else:
            lacks = frame.settled and cache.used and cache.after <= at < other.after
            empty = "lacks" if lacks else "empty"
            state = empty if at >= cache.now else "kept" if at < cache.before else "new"
        slots.append(Slot(at, state, _slot_text(run, frame.round, at)))
    return cache, slots


def _slot_text(run: Run, r: int, at: int) -> str:
    """Return the token behind a place: of the text, or a proposal of this round."""
    node = at - int(run.round["position"][r])
    if node >= 0:
        row = int(run.start[r]) + node
        return run.text(int(run.node["token"][row])) if row < run.start[r + 1] else ""
    index = at - int(run.header["prompt_length"])
    return "" if index < 0 else run.piece(index)


def measures_at(run: Run, frame: Frame) -> Measured:
    """Return the measures at a frame."""
    rounds = frame.round + (frame.closing != "hidden")
    now = {name: float(sums[rounds]) for name, sums in run.sums.items()}
    baseline = run.header["baseline"]
    known = rounds and baseline and now["seconds"] > 0
    return Measured(
        rounds=rounds,
        tokens=int(now["tokens"]),
        per_pass=now["tokens"] / rounds if rounds else math.nan,
        alpha=now["overlap"] / now["overlaps"] if now["overlaps"] else math.nan,
        accepted=int(now["accepted"]),
        proposed=int(now["proposed"]),
        speedup=now["tokens"] * baseline["seconds"] / now["seconds"] if known else math.nan,
        seconds=seconds_at(run, frame),
    )
