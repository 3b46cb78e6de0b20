"""Numbers and sentences: what a still, a film and an alternative text say at a step.

This is ``js/words.js`` in Python; a test compares the two frame by frame.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from specviz.player.block import in_blocks, kept_of, passes
from specviz.player.columns import NONE
from specviz.player.frames import Frame, rejected_row, seconds_at
from specviz.player.judging import looks_at_p
from specviz.player.run import ACCEPTED, REJECTED, Run

LONGEST_QUOTE = 32


@dataclass(frozen=True)
class Evidence:
    """The numbers of a proposal, as the rule used them."""

    text: str
    p: float
    q: float
    a: float
    u: float
    overlap: float
    kept: bool
    one_hot: bool
    own: int
    emitted: bool


def number(x: float) -> str:
    """Return a probability or a ratio for reading.

    Examples
    --------
    >>> number(0.123), number(0.05), number(1.0), number(12.34), number(0.00004)
    ('.12', '.050', '1', '12.3', '4e-5')
    """
    if not math.isfinite(x):
        return "–"
    if x in (0, 1):
        return str(int(x))
    if x < 0.0005:
        mantissa, exponent = f"{x:.0e}".split("e")
        return f"{mantissa}e{int(exponent)}"
    if 0.99995 < x < 1:
        return ">.9999"
    if 0.995 <= x < 1:
        digits = 4 if x > 0.9995 else 3
    else:
        digits = 3 if x < 0.0995 else 2 if x < 10 else 1 if x < 100 else 0
    text = f"{x:.{digits}f}"
    return text[1:] if text.startswith("0.") else text


def duration(seconds: float) -> str:
    """Return seconds for reading.

    Examples
    --------
    >>> duration(0.01234), duration(2.5), duration(95)
    ('12.3 ms', '2.50 s', '95.0 s')
    """
    if not math.isfinite(seconds):
        return "–"
    if seconds < 1:
        return f"{float(f'{1000 * seconds:.3g}'):g} ms"
    return f"{seconds:.{2 if seconds < 10 else 1}f} s"


def trimmed(text: str) -> str:
    """Return a token as written in lists: the blank before a word shown as nothing."""
    return text.removeprefix(" ") if len(text) > 1 else text


def quoted(text: str) -> str:
    """Return a token in a sentence: without the blank before it."""
    cut = text.strip() or text
    return f"“{cut if len(cut) <= LONGEST_QUOTE else cut[: LONGEST_QUOTE - 1] + '…'}”"


def count(n: int, one: str) -> str:
    """Return a number with its noun."""
    return f"{n:,} {one if n == 1 else one + 's'}"


def evidence(run: Run, row: int) -> Evidence:
    """Return the numbers of a proposal, given by its row in the table."""
    at = {name: column[row] for name, column in run.node.items() if column.ndim == 1}
    return Evidence(
        text=run.text(int(at["token"])),
        p=float(at["p"]),
        q=float(at["q"]),
        a=float(at["acceptance"]),
        u=float(at["u"]),
        overlap=float(at["overlap"]),
        kept=bool(at["verdict"] == ACCEPTED),
        one_hot=bool(at["q_draw"] == 0),
        own=_own(run, row),
        emitted=bool(at["emitted"] == 1),
    )


def _own(run: Run, row: int) -> int:
    """Return the target's own token: of its race, or at temperature 0 its most likely one."""
    if run.header["rule"] != "greedy":
        return int(run.node["own"][row])
    ids, p = run.node["top"][row], run.node["top_p"][row]
    best, most = NONE, 0.0
    for token, share in zip(ids, p, strict=True):
        if token != NONE and share > most:
            best, most = int(token), float(share)
    return best


def caption(run: Run, frame: Frame) -> str:
    """Return one or two sentences about a frame, with this token's numbers."""
    says = {"draft": _drafted, "verify": _verified, "decide": _judged, "close": _closed}
    return says.get(frame.phase, _rolled_back)(run, frame)


def spoken(run: Run, frame: Frame) -> str:
    """Return the same for who cannot see it: where one is, then the caption."""
    return f"Round {frame.round}. {caption(run, frame)}"


def alone_at(run: Run, frame: Frame) -> float:
    """Return how many tokens the target alone would have by now; NaN if that is not known."""
    baseline = run.header["baseline"]
    return seconds_at(run, frame) / baseline["seconds"] if baseline else math.nan


def _drafted(run: Run, frame: Frame) -> str:
    it, n = evidence(run, frame.first + frame.node), len(frame.status)
    which = "" if n == 1 else f" ({frame.node + 1} of {n})"
    if it.one_hot:
        return (
            f"The draft proposes {quoted(it.text)} outright, without a draw: its q is 1 "
            f"there{which}."
        )
    return (
        f"The draft draws {quoted(it.text)} from its own distribution q, where it has probability "
        f"{number(it.q)}{which}. Nobody has checked it yet."
    )


def _verified(run: Run, frame: Frame) -> str:
    n = len(frame.status)
    took = float(run.round["verify_seconds"][frame.round])
    time = f" It took {duration(took)}" if took > 0 else ""
    if not n:
        return (
            "Nothing was proposed: one pass of the target gives the distribution of the next token."
            f"{time and time + '.'}"
        )
    draft = float(run.round["draft_seconds"][frame.round])
    if time and draft > 0:
        beside = f"{time}; drafting took {duration(draft)}."
    else:
        beside = time and time + "."
    what = "the proposal" if n == 1 else f"all {n} proposals at once"
    return (
        f"One pass of the target reads {what} and gives {count(n + 1, 'distribution')} p: one "
        f"after each, "
        f"and one before.{beside}"
    )


def _judged(run: Run, frame: Frame) -> str:
    it = evidence(run, frame.first + frame.node)
    token = quoted(it.text)
    if not run.judged_by_u:
        return _by_token(run, it, token)
    siblings = later_sibling(run, frame)
    who = (
        "what is left of the target's distribution after its siblings" if siblings else "the target"
    )
    if it.one_hot:
        gave = f"The draft proposed {token} outright (q = 1), {who} gives it {number(it.p)}"
    else:
        gave = f"The draft gave {token} {number(it.q)}, {who} {number(it.p)}"
    if in_blocks(run):
        return f"{gave}. {tested_in_block(run, frame)}"
    always = it.a >= 1
    chance = "so it is always kept" if always else f"so it is kept with probability {number(it.a)}"
    draw, verdict = f"The draw was u = {number(it.u)}", "kept" if it.kept else "rejected"
    left = len(frame.status) - 1 - frame.node
    rest = "" if it.kept or run.is_tree or not left else " Everything after it is discarded."
    return f"{gave}, {chance}. {draw}: {verdict}.{rest}"


def tested_in_block(run: Run, frame: Frame) -> str:
    """Return a block's test at a position, and what is settled by then."""
    row, n = frame.first + frame.node, len(frame.status)
    passed = passes(run, row)
    u, h = number(float(run.node["u"][row])), number(float(run.node["acceptance"][row]))
    falls = "falls below" if passed else "does not fall below"
    says = "passes" if passed else "does not pass"
    test = f"Test {frame.node + 1} of {n}: u = {u} {falls} h = {h}, it {says}."
    return f"{test} {_settled_in_block(run, frame, passed)}"


def _settled_in_block(run: Run, frame: Frame, passed: bool) -> str:
    n = len(frame.status)
    if frame.node < n - 1:
        if passed:
            return "Everything up to it is kept; a later one that passes keeps more."
        return "That does not settle it: the last position that passes decides."
    if passed:
        return "It is kept." if n == 1 else "It is the last one, so the whole block is kept."
    kept = kept_of(run, frame.round)
    if not kept:
        return "It is rejected." if n == 1 else "No position passes: the whole block is rejected."
    last = quoted(run.text(int(run.node["token"][frame.first + kept - 1])))
    return (
        f"The last that passes is position {kept} ({last}): everything up to it is kept, "
        "the rest is rejected."
    )


def _by_token(run: Run, it: Evidence, token: str) -> str:
    rule = run.header["rule"]
    # a race is run over p itself, also for a later sibling
    gives = number(it.a if rule in ("match", "coupled") else it.p)
    if looks_at_p(run):
        enough = "enough: kept" if it.kept else "too little: rejected"
        return f"The draft proposed {token}; the target gives it {gives}, which is {enough}."
    if it.kept:
        return f"The target's own token here is {token} too (p = {gives}): kept."
    own = "" if it.own == NONE else run.text(it.own)
    other = quoted(own) if own else "another one"
    return f"The draft proposed {token}; the target's own token here is {other}: rejected."


def later_sibling(run: Run, frame: Frame) -> bool:
    """Whether a candidate for the same place was rejected before: p is then a residual."""
    first, parents, verdicts = frame.first, run.node["parent"], run.node["verdict"]
    return any(
        parents[first + i] == parents[first + frame.node] and verdicts[first + i] == REJECTED
        for i in range(frame.node)
    )


def _closed(run: Run, frame: Frame) -> str:
    r, n = frame.round, len(frame.status)
    token = quoted(run.text(int(run.round["closing"][r])))
    p = number(float(run.round["closing_p"][r]))
    if not run.round["closing_emitted"][r]:
        return f"The text had already ended: {token} is not part of it."
    if frame.closing == "plain":
        return f"The target draws {token} itself; its distribution gave it {p}."
    if frame.closing == "bonus":
        kept = "It was kept" if n == 1 else f"All {n} were kept"
        if run.is_tree:
            kept = "A whole branch was kept"
        return (
            f"{kept}, so the distribution after the last one gives one more token for free: "
            f"{token} (p = {p})."
        )
    if run.header["rule"] == "block":
        return (
            "In place of the rest one token is drawn from what the kept block leaves of p, "
            f"less q: {token}, which has probability {p} there."
        )
    if looks_at_p(run):
        return (
            f"In its place one token is drawn from the target's own distribution: {token}, "
            f"which has probability {p} there."
        )
    if not run.judged_by_u:
        return f"The target's own token takes the place: {token}."
    row = rejected_row(run, frame)
    mass = 1 - float(run.node["overlap"][row]) if row >= 0 else math.nan
    scaled = f", scaled up by 1 / {number(mass)}" if mass > 0 else ""
    return (
        f"In its place one token is drawn from the residual max(0, p − q){scaled}: {token}, "
        f"which has probability {p} there."
    )


def _rolled_back(run: Run, frame: Frame) -> str:
    r, n = frame.round, len(frame.status)
    gave = int(run.out_start[r + 1] - run.out_start[r])
    gone = n - int(run.sums["accepted"][r + 1] - run.sums["accepted"][r])
    peak, after = int(run.round["target_verified"][r]), int(run.round["target_after"][r])
    forgets = " Nothing has to be rolled back."
    if peak > after:
        forgets = f" The target's cache rolls back from {peak} to {after} tokens."
    thrown = f" {count(gone, 'proposal')} {'was' if gone == 1 else 'were'} wasted." if gone else ""
    return f"This pass of the target gave {count(gave, 'token')}.{thrown}{forgets}"
