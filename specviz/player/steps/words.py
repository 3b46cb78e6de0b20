"""What is said at a step: its sentences, their blanks filled with its tokens and numbers."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from specviz.core.formatting import format_duration, format_number
from specviz.player.steps.run import ACCEPTED, NONE, Run
from specviz.player.steps.sentences import Words

if TYPE_CHECKING:
    from specviz.player.steps.frames import Frame

LONGEST_QUOTE = 32


@dataclass(frozen=True)
class RoundEvidence:
    """The numbers of a proposal, as the rule used them; ``said`` has them as they are shown."""

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


def evidence(run: Run, row: int) -> RoundEvidence:
    """Return the numbers of a proposal, given by its row in the table."""
    at = {name: column[row] for name, column in run.node.items() if column.ndim == 1}
    p, q, a, u = (float(at[name]) for name in ("p", "q", "acceptance", "u"))
    au = apart(a, u)
    pq = in_step(p, q, a, au) if at["ratio"] else 2
    return RoundEvidence(
        text=run.text(int(at["token"])),
        p=p,
        q=q,
        a=a,
        u=u,
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
        own=int(at["own"]),
        emitted=bool(at["emitted"] == 1),
    )


# -- filling the blanks ---------------------------------------------------------------------------


_BLANK = re.compile(r"\{(=?)([a-z]+)(\d*)\}")


def lines_of(run: Run, frame: Frame) -> list[str]:
    """Return what is written into the picture of a step."""
    words = run.header["words"][int(run.step["words"][frame.step])]
    return [fill(run, frame, one) for one in words[Words._fields.index("lines")]]


def told(run: Run, frame: Frame, which: str) -> str:
    """Return a sentence of a step: ``caption``, ``says`` (of the draw), ``title`` (of the bars).

    Examples
    --------
    >>> told(run, frame_at(run, 0), "caption")  # doctest: +SKIP
    'The draft guesses “fox” (1 of 4), drawn from its own distribution: q = .35. …'
    """
    words = run.header["words"][int(run.step["words"][frame.step])]
    return fill(run, frame, words[Words._fields.index(which)])


def caption(run: Run, frame: Frame) -> str:
    """Return one or two sentences about a frame, with this token's numbers."""
    return told(run, frame, "caption")


def spoken(run: Run, frame: Frame) -> str:
    """Return the same for who cannot see it: where one is, then the caption."""
    return f"Round {frame.round}. {caption(run, frame)}"


def fill(run: Run, frame: Frame, template: str) -> str:
    """Return a template with its blanks filled."""

    def blank(found: re.Match[str]) -> str:
        sign, name, index = found.groups()
        said = _value(run, frame, name, index)
        if not sign:
            return said
        return f"> {said[1:]}" if said.startswith(">") else f"= {said}"

    return _BLANK.sub(blank, template)


def _value(run: Run, frame: Frame, name: str, index: str) -> str:
    r, row = frame.round, frame.first + max(frame.node, 0)
    if name == "x":
        at = frame.first + int(index) if index else row
        return quoted(run.text(int(run.node["token"][at])))
    if name in ("p", "q", "a", "u"):
        if index:  # by itself: two digits
            return format_number(float(run.node["acceptance" if name == "a" else name][row]))
        return evidence(run, row).said[name]
    if name in ("c", "cp", "v", "verify", "draft", "peak", "after"):
        value = run.round[_OF_ROUND[name]][r]
        if name == "c":
            return quoted(run.text(int(value)))
        if name in ("peak", "after"):
            return f"{int(value)}"
        return (format_number if name in ("cp", "v") else format_duration)(float(value))
    if name in ("ours", "alone"):
        return format_duration(_took(run, r, name))
    if name in ("over", "left"):
        overlap = float(run.node["overlap"][row_in_question(run, frame)])
        return format_number(overlap if name == "over" else 1 - overlap)
    return _of_contest(run, row, name) if name != "mass" else format_number(mass_left(run, r))


def _took(run: Run, r: int, who: str) -> float:
    """Return the seconds of a round's drafting and pass, or of as many passes of the target alone.

    These are as many passes as the round's one pass gives distributions.
    """
    if who == "ours":
        return float(run.round["draft_seconds"][r]) + float(run.round["verify_seconds"][r])
    return (int(run.round["nodes"][r]) + 1) * float(run.header["baseline"]["seconds"])


def row_in_question(run: Run, frame: Frame) -> int:
    """Return the row of the proposal that a step is about; at the end of a round its rejected one.

    Without a rejection it is the last one.
    """
    at, last = int(run.round["rejected"][frame.round]), len(frame.status) - 1
    return frame.first + (frame.node if frame.node >= 0 else last if at == NONE else at)


_OF_ROUND = {
    "c": "closing", "cp": "closing_p", "v": "closing_u", "verify": "verify_seconds",
    "draft": "draft_seconds", "peak": "target_verified", "after": "target_after",
}  # fmt: skip


def _of_contest(run: Run, row: int, name: str) -> str:
    """Return a blank of what decided without a u: the target's own token, arrivals, its top p."""
    if name == "own":
        own = int(run.node["own"][row])
        return "another one" if own == NONE else quoted(run.text(own))
    most, p = float(max(run.node["top_p"][row])), float(run.node["p"][row])
    times = {"first": "own_time", "second": "own_second", "late": "late"}
    value = {"most": most, "gap": most - p}.get(name)
    return format_number(float(run.node[times[name]][row]) if value is None else value)


def mass_left(run: Run, r: int) -> float:
    """Return 1 − Σ min(p, q) at the proposal whose rejection a round's residual follows; or NaN."""
    at = int(run.round["rejected"][r])
    return math.nan if at == NONE else 1 - float(run.node["overlap"][int(run.start[r]) + at])


def alone_at(run: Run, seconds: float) -> float:
    """Return how many tokens the target alone would have by then; NaN if that is not known."""
    baseline = run.header["baseline"]
    return seconds / baseline["seconds"] if baseline else math.nan
