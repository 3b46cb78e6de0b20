"""Numbers and sentences: what a still, a film and an alternative text say at a step.

This is ``js/words.js`` in Python; a test compares the two frame by frame.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from specviz.core.formatting import format_duration, format_number
from specviz.player.frames import Frame, in_blocks, kept_of, passes, rejected_row, seconds_at
from specviz.player.projection import NONE
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
    ratio: bool
    said: dict[str, str]


def apart(x: float, y: float) -> int:
    """Return how many digits tell two numbers apart: ".50 below .50" becomes ".498 below .501"."""
    digits = 2
    while digits < 6 and x != y and format_number(x, digits) == format_number(y, digits):
        digits += 1
    return digits


def in_step(p: float, q: float, ratio: float, of: int = 2) -> int:
    """Return how many digits p and q need for p / q, as a reader works it out, to be the ratio.

    Examples
    --------
    >>> in_step(0.0009, 0.0041, 0.0009 / 0.0041), in_step(0.00305, 0.00095, 3.21)
    (2, 3)
    """
    for digits in range(2, 6):
        shown = float(f"{p:.{digits - 1}e}") / float(f"{q:.{digits - 1}e}")
        if format_number(shown, of) == format_number(ratio, of):
            return digits
    return of


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
    p, q, a, u = (float(at[name]) for name in ("p", "q", "acceptance", "u"))
    au, ratio = apart(a, u), q > 0 and a < 1 and abs(p - a * q) <= 1e-5 * p
    pq = in_step(p, q, a, au) if ratio else 2
    return Evidence(
        text=run.text(int(at["token"])),
        p=p,
        q=q,
        a=a,
        u=u,
        ratio=ratio,
        # as they are shown: enough digits that p / q gives a, and that u and a differ
        said={
            "p": format_number(p, pq),
            "q": "1" if at["q_draw"] == 0 else format_number(q, pq),
            "a": format_number(a, au),
            "u": format_number(u, au),
        },
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


def _is(shown: str) -> str:
    """Return what a number is, as a sentence has it: "= .50", "> .9999"."""
    return f"> {shown[1:]}" if shown.startswith(">") else f"= {shown}"


def _drafted(run: Run, frame: Frame) -> str:
    it, n = evidence(run, frame.first + frame.node), len(frame.status)
    which = "" if n == 1 else f" ({frame.node + 1} of {n})"
    if it.one_hot:
        return f"The draft chooses {quoted(it.text)} without a draw: it has q = 1{which}."
    return (
        f"The draft samples {quoted(it.text)} from its own distribution, q {_is(it.said['q'])}"
        f"{which}. The target has not checked it yet."
    )


def _verified(run: Run, frame: Frame) -> str:
    n = len(frame.status)
    took = float(run.round["verify_seconds"][frame.round])
    time = f" It took {format_duration(took)}" if took > 0 else ""
    if not n:
        return (
            "Nothing was proposed: one pass of the target gives the distribution p of the next "
            "token."
            f"{time and time + '.'}"
        )
    draft = float(run.round["draft_seconds"][frame.round])
    if time and draft > 0:
        beside = f"{time}; drafting took {format_duration(draft)}."
    else:
        beside = time and time + "."
    what = "the proposal" if n == 1 else f"all {n} proposals at once"
    return (
        f"One pass of the target reads {what} and gives {count(n + 1, 'distribution')} p: one "
        f"before the first and one after each.{beside}"
    )


def _judged(run: Run, frame: Frame) -> str:
    it = evidence(run, frame.first + frame.node)
    token = quoted(it.text)
    if not run.judged_by_u:
        return _by_token(run, it, token)
    siblings = later_sibling(run, frame)
    who = "what its rejected siblings leave of the target" if siblings else "the target"
    if it.one_hot:
        gave = (
            f"The draft chose {token} without a draw (q = 1), {who} gives it p {_is(it.said['p'])}"
        )
    else:
        gave = f"The draft gave {token} q {_is(it.said['q'])}, {who} p {_is(it.said['p'])}"
    if in_blocks(run):
        return f"{gave}. {tested_in_block(run, frame)}"
    always = it.a >= 1
    how = "p / q " if it.ratio and not it.one_hot else ""
    chance = (
        "always accepted"
        if always
        else f"accepted with probability {how + _is(it.said['a']) if how else it.said['a']}"
    )
    draw, verdict = f"The draw was u {_is(it.said['u'])}", "accepted" if it.kept else "rejected"
    left = len(frame.status) - 1 - frame.node
    rest = "" if it.kept or run.is_tree or not left else " Everything after it is discarded."
    return f"{gave}, so it is {chance}. {draw}: {verdict}.{rest}"


def tested_in_block(run: Run, frame: Frame) -> str:
    """Return a block's test at a position, and what is settled by then."""
    row, n = frame.first + frame.node, len(frame.status)
    passed = passes(run, row)
    said = evidence(run, row).said
    falls = "falls below" if passed else "does not fall below"
    says = "passes" if passed else "does not pass"
    test = f"Test {frame.node + 1} of {n}: u = {said['u']} {falls} h = {said['a']}, it {says}."
    return f"{test} {_settled_in_block(run, frame, passed)}"


def _settled_in_block(run: Run, frame: Frame, passed: bool) -> str:
    n = len(frame.status)
    if frame.node < n - 1:
        if passed:
            return "Everything up to it is accepted; a later one that passes keeps more."
        return "That does not settle it: the last position that passes decides."
    if passed:
        return (
            "It is accepted." if n == 1 else "It is the last one, so the whole block is accepted."
        )
    kept = kept_of(run, frame.round)
    if not kept:
        return "It is rejected." if n == 1 else "No position passes: the whole block is rejected."
    last = quoted(run.text(int(run.node["token"][frame.first + kept - 1])))
    return (
        f"The last that passes is position {kept} ({last}): everything up to it is accepted, "
        "the rest is rejected."
    )


def _by_token(run: Run, it: Evidence, token: str) -> str:
    rule = run.header["rule"]
    # a race is run over p itself, also for a later sibling
    gives = format_number(it.a if rule in ("match", "coupled") else it.p)
    if looks_at_p(run):
        enough = "enough: accepted" if it.kept else "too little: rejected"
        return f"The draft proposed {token}; the target gives it {gives}, which is {enough}."
    if it.kept:
        return f"The target's own token here is {token} too (p = {gives}): accepted."
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
    p = format_number(float(run.round["closing_p"][r]))
    if not run.round["closing_emitted"][r]:
        return f"The text had already ended: {token} is not part of it."
    if frame.closing == "plain":
        return f"The target samples {token} itself, p {_is(p)}."
    if frame.closing == "bonus":
        kept = "It was accepted" if n == 1 else f"All {n} were accepted"
        if run.is_tree:
            kept = "A whole branch was accepted"
        return (
            f"{kept}, so the same pass gives one more token, the bonus: {token}, sampled from p "
            f"after the last one (p {_is(p)})."
        )
    if run.header["rule"] == "block":
        return (
            "The rest is replaced by one token sampled from the residual of the accepted block: "
            f"{token}, which has probability {p} there."
        )
    if looks_at_p(run):
        return (
            f"It is replaced by a token sampled from the target's own distribution: {token}, "
            f"p {_is(p)}."
        )
    if not run.judged_by_u:
        return f"It is replaced by the target's own token: {token}."
    row = rejected_row(run, frame)
    mass = 1 - float(run.node["overlap"][row]) if row >= 0 else math.nan
    scaled = f", divided by {format_number(mass)} so that it sums to 1" if mass > 0 else ""
    return (
        f"It is replaced by a token sampled from the residual max(0, p − q){scaled}: {token}, "
        f"which has probability {p} there."
    )


def _rolled_back(run: Run, frame: Frame) -> str:
    r, n = frame.round, len(frame.status)
    gave = int(run.out_start[r + 1] - run.out_start[r])
    gone = n - int(run.sums["accepted"][r + 1] - run.sums["accepted"][r])
    peak, after = int(run.round["target_verified"][r]), int(run.round["target_after"][r])
    forgets = " The target's cache needs no cut."
    if peak > after:
        forgets = f" The target's cache is cut back from {peak} to {after} tokens."
    thrown = (
        f" {count(gone, 'proposal')} {'was' if gone == 1 else 'were'} thrown away." if gone else ""
    )
    return f"This pass of the target gave {count(gave, 'token')}.{thrown}{forgets}"


# -- what each rule asks --------------------------------------------------------------------------


_CHANCE = {"rejection": "min(1, p(x) / q(x))", "lenience": "min(1, p(x) / (l q(x)))"}
_ASKS = {
    "rejection": "u < p / q, one by one",
    "lenience": "u < p / (l q)",
    "block": "last to pass decides",
    "typical": "is p enough?",
    "threshold": "is p enough?",
}


def asks(run: Run) -> str:
    """Return what decides, as the phase says it."""
    others = "u < its probability" if run.judged_by_u else "the target's own?"
    return _ASKS.get(str(run.header["rule"]), others)


def looks_at_p(run: Run) -> bool:
    """Whether the rule looks only at how likely the target finds a proposal."""
    return run.header["rule"] in ("typical", "threshold")


def chance(run: Run) -> str:
    """Return what u is compared with."""
    return _CHANCE.get(str(run.header["rule"]), "the rule's acceptance probability")


def about_to(run: Run, proposed: bool) -> str:
    """Return what follows the target's pass."""
    if not proposed:
        return "Next, the target draws a token from its own distribution."
    if run.header["rule"] == "block":
        return (
            "Next, every proposal gets a uniform draw u and passes if u falls below its h: "
            "the last one that passes decides, and everything up to it is accepted."
        )
    if run.judged_by_u:
        return (
            "Next, every proposal x gets its own uniform draw u: it is accepted if "
            f"u < {chance(run)}."
        )
    if looks_at_p(run):
        return "Next, the rule asks of every proposal whether the target's p for it is enough."
    return "Next, every proposal is compared with the target's own token there."


def takes_the_place(run: Run) -> str:
    """Return where the token after a rejection comes from, as the phase says it."""
    if run.header["rule"] == "block":
        return "from the residual"
    if run.judged_by_u:
        return "from the residual"
    return "from the target's p" if looks_at_p(run) else "the target's own"
