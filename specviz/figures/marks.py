"""What a reader of a run sees: each token with a mark that says what became of it.

The text front end, the terminal and the page all draw from the lines built here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from specviz.core.formatting import format_number
from specviz.core.names import KINDS, VERDICTS
from specviz.core.trace.views import Closing, Node, Round
from specviz.figures.escaping import direction, split_gap

if TYPE_CHECKING:
    from specviz.core.trace.trace import Trace

PLAIN_PER_LINE = 16
"""How many rounds without proposals, of one token each, share a line."""
UNEXAMINED_SHOWN = 8
"""How many never examined tokens of a round are shown before the rest is only counted."""


@dataclass(frozen=True)
class Mark:
    """A fate, its sign, and what it means in words."""

    name: str
    glyph: str
    ascii: str
    meaning: str

    @property
    def css(self) -> str:
        """Its class in HTML, as in ``sv-acc``."""
        return f"sv-{'end' if self.name == 'past the end' else self.name[:3]}"


MARKS = {
    mark.name: mark
    for mark in (
        Mark("accepted", "✓", "=", "proposed by the draft, kept by the target"),
        Mark("rejected", "✗", "/", "proposed by the draft, turned down"),
        Mark("never examined", "–", "-", "proposed, not judged: the round was decided"),
        Mark("correction", "↻", ">", "drawn by the target instead of a rejected one"),
        Mark("bonus", "+", "+", "drawn by the target when all were kept"),
        Mark("plain", "·", ".", "drawn by the target, nothing was proposed"),
        Mark("past the end", "¦", "#", "decided, but the text had ended before it"),
    )
}


@dataclass(frozen=True)
class Chip:
    """One token with its mark, in the order in which it is shown.

    ``gap`` is the blank before a word, ``text`` the rest, safe to show. ``alternative`` says that
    it stands for the same position as the chip before it (a sibling in a tree). ``hidden`` counts
    further tokens that this chip stands for.
    """

    mark: Mark
    gap: str
    text: str
    alternative: bool
    source: Node | Closing | None
    hidden: int = 0


@dataclass(frozen=True)
class RoundLine:
    """A round, or several in a row in which nothing was proposed: ``first`` to ``last``."""

    first: int
    last: int
    chips: list[Chip]

    @property
    def label(self) -> str:
        """The round's number, or the range of them."""
        return str(self.first) if self.first == self.last else f"{self.first}–{self.last}"


@dataclass(frozen=True)
class Gap:
    """``count`` rounds that are not shown, ``first`` to ``last``."""

    first: int
    last: int

    @property
    def count(self) -> int:
        """How many rounds."""
        return self.last - self.first + 1

    @property
    def many(self) -> str:
        """How many rounds, with the noun."""
        return f"{self.count:,} round{'' if self.count == 1 else 's'}"


def chips(one: Round) -> list[Chip]:
    """Return the tokens of a round: what was proposed, by position, then what closed the round.

    A chain reads from left to right as it was proposed. In a tree the candidates for a position
    stand together, in the order in which they were drawn; what grew on other branches than the
    one that was followed is only counted.
    """
    is_chain = all(node.parent == node.index - 1 for node in one.nodes)
    on_path = {-1, *one.path}
    depth = [node.position - one.position for node in one.nodes]
    order = sorted(range(len(depth)), key=depth.__getitem__)
    shown: list[Chip] = []
    unexamined, hidden, before = 0, 0, -1
    for i in order:
        node = one.nodes[i]
        if node.verdict == "never examined":
            if unexamined >= UNEXAMINED_SHOWN or not (is_chain or node.parent in on_path):
                hidden += 1
                continue
            unexamined += 1
        cut = node.accepted and not node.emitted
        mark = MARKS["past the end" if cut else node.verdict]
        shown.append(Chip(mark, *split_gap(node.text), depth[i] == before, node))
        before = depth[i]
    if hidden:
        shown.append(
            Chip(MARKS["never examined"], " ", f"{hidden} more", False, None, hidden=hidden)
        )
    closing = one.closing
    mark = MARKS[closing.kind if closing.emitted else "past the end"]
    return [*shown, Chip(mark, *split_gap(closing.text), False, closing)]


def marks_of(trace: Trace) -> list[Mark]:
    """Return the marks that occur in a run, in the order of a legend."""
    nodes, rounds = trace.node_table, trace.round_table
    seen = {VERDICTS[code] for code in np.unique(nodes["verdict"])}
    seen |= {KINDS[code] for code in np.unique(rounds["closing_kind"])}
    if np.any((nodes["verdict"] == 1) & (nodes["emitted"] == 0)) or np.any(
        rounds["closing_emitted"] == 0
    ):
        seen.add("past the end")
    return [mark for mark in MARKS.values() if mark.name in seen]


def lines(trace: Trace, budget: int | None) -> Iterator[RoundLine | Gap]:
    """Yield what is shown of a run, a line per round.

    Parameters
    ----------
    trace : Trace
        The run.
    budget : int or None
        About how many tokens may be shown. If there are more, the first two thirds and the last
        third of the budget are, with a :class:`Gap` between them. None shows everything.

    Examples
    --------
    >>> from specviz.core.trace.trace import Trace
    >>> list(lines(Trace({}, np.array([1])), budget=100))
    []
    """
    head, tail = _window(trace, budget)
    yield from _rounds(trace, 0, head)
    if head < tail:
        yield Gap(head, tail - 1)
    yield from _rounds(trace, tail, len(trace))


def _window(trace: Trace, budget: int | None) -> tuple[int, int]:
    """Return where the shown head ends and where the shown tail begins."""
    rounds = len(trace)
    sizes = np.minimum(trace.round_table["nodes"], trace.round_table["gamma"] + UNEXAMINED_SHOWN)
    ends = np.cumsum(sizes + 1)
    if budget is None or rounds == 0 or ends[-1] <= budget:
        return rounds, rounds
    head = max(1, int(np.searchsorted(ends, budget * 2 / 3)))
    tail = min(rounds - 1, int(np.searchsorted(ends, ends[-1] - budget / 3)) + 1)
    return (head, tail) if head < tail else (rounds, rounds)


def _rounds(trace: Trace, start: int, stop: int) -> Iterator[RoundLine]:
    counts = trace.round_table["nodes"]
    index = start
    while index < stop:
        last = index
        while (
            counts[index] == 0
            and last + 1 < stop
            and counts[last + 1] == 0
            and last + 1 - index < PLAIN_PER_LINE
        ):
            last += 1
        together = [chip for i in range(index, last + 1) for chip in chips(trace.rounds[i])]
        yield RoundLine(index, last, together)
        index = last + 1


def reading_runs(chips: Sequence[Chip]) -> list[tuple[bool, list[Chip]]]:
    """Return the chips in stretches that read one way, each with whether that is leftward.

    Hebrew and Arabic read from right to left across tokens. What has no direction of its own (a
    comma) belongs to a leftward stretch only if it stands inside one.
    """
    ways = [direction(chip.text) for chip in chips]
    runs: list[tuple[bool, list[Chip]]] = []
    at = 0
    while at < len(chips):
        leftward = ways[at] == "R"
        if leftward:
            stop = next((i for i in range(at, len(ways)) if ways[i] == "L"), len(ways))
            end = 1 + max(i for i in range(at, stop) if ways[i] == "R")
        else:
            end = next((i for i in range(at, len(ways)) if ways[i] == "R"), len(ways))
        runs.append((leftward, list(chips[at:end])))
        at = end
    return runs


def in_words(chip: Chip, how: str) -> str:
    """Return a chip's evidence as a sentence.

    Parameters
    ----------
    chip : Chip
        From :func:`chips`.
    how : str
        What the rule judged by, from :func:`specviz.figures.summary.judging`.
    """
    source = chip.source
    if source is None:
        many = "proposal that was" if chip.hidden == 1 else "proposals that were"
        return f"{chip.hidden} more {many} never examined"
    name = chip.mark.name
    if isinstance(source, Closing):
        return f"{name}: {chip.mark.meaning}; it had probability {number(source.p)}"
    distributions = f"target p = {number(source.p)}, draft q = {number(source.q)}"
    if source.one_hot:
        distributions = f"target p = {number(source.p)}, the draft made no draw (q = 1)"
    if name == "never examined":
        return f"{name}: {chip.mark.meaning}; {distributions}"
    ratio = "" if source.one_hot else f", p/q = {number(source.ratio)}"
    chance = f"accepted with probability {number(source.acceptance)}"
    if how == "token":
        return (
            f"{name}: {distributions}{ratio}; {chance}, by comparing it with the target's own token"
        )
    if how == "p":
        return (
            f"{name}: {distributions}{ratio}; the rule looks only at p: {_enough(source.accepted)}"
        )
    below = source.u < source.acceptance
    relation = "below that" if below else "not below that"
    if how == "block":
        chance = f"its own test passes with probability {number(source.acceptance)}"
        passed = "it passes" if below else "it does not pass"
        relation += f": {passed}; the last one that passes decides"
    return (
        f"{name}: {distributions}{ratio}; {chance}, the draw u = {number(source.u)} is {relation}"
    )


def _enough(accepted: bool) -> str:
    return "enough" if accepted else "too little"


def number(value: float) -> str:
    """Return a probability or ratio with three digits: evidence is read more closely than captions.

    Examples
    --------
    >>> number(0.123456), number(1.0), number(1e-9), number(float("nan"))
    ('.123', '1', '1.00e-9', 'not recorded')
    """
    return format_number(value, 3, "not recorded")
