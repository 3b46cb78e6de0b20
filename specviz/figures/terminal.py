"""A run as lines of a terminal: glyphs always, colours where they can be shown."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from specviz.core.trace.views import Round
from specviz.figures.escaping import can_show, columns, plain_ascii, visible
from specviz.figures.marks import Chip, Gap, RoundLine, chips, lines, marks_of
from specviz.figures.summary import summary

if TYPE_CHECKING:
    from specviz.core.trace.trace import Trace

SHOWN = 4_000
"""How many tokens ``print(trace)`` shows at most."""

# Select Graphic Rendition codes: the terminal's own green, red and cyan, so that its theme holds.
_SGR = {
    "accepted": "32",
    "rejected": "9;31",
    "never examined": "2",
    "correction": "1;36",
    "bonus": "1;36",
    "plain": "36",
    "past the end": "2;3",
}


@dataclass(frozen=True)
class Style:
    """How a terminal is written to.

    Parameters
    ----------
    colour : bool
        Whether escape sequences may be used.
    width : int or None
        Columns at which lines are wrapped; None for never.
    ascii : bool
        Whether only ASCII can be shown.
    """

    colour: bool = False
    width: int | None = None
    ascii: bool = False

    def dim(self, text: str) -> str:
        """Return text that steps back."""
        return self._paint(text, "2")

    def bold(self, text: str) -> str:
        """Return text that stands out."""
        return self._paint(text, "1")

    def text(self, text: str) -> str:
        """Return text as this terminal can show it."""
        return plain_ascii(text) if self.ascii else text

    def chip(self, chip: Chip) -> str:
        """Return a token with its mark."""
        glyph = chip.mark.ascii if self.ascii else chip.mark.glyph
        return self._paint(self.text(glyph + chip.text), _SGR[chip.mark.name])

    def _paint(self, text: str, code: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.colour else text


def for_stdout(text: str) -> str:
    """Return text with plain signs for those that the standard output cannot show."""
    return text if can_show(getattr(sys.stdout, "encoding", None)) else plain_ascii(text)


def plain(trace: Trace) -> str:
    """Return the run as text without colours: what ``print(trace)`` shows.

    Plain signs stand for the others where the standard output cannot show them.

    Examples
    --------
    >>> print(plain(trace))  # doctest: +SKIP
       0  ✓Once ✓upon ✗the ↻a
    """
    return ansi(trace, colour=False, ascii=not can_show(getattr(sys.stdout, "encoding", None)))


def ansi(
    trace: Trace,
    colour: bool = True,
    width: int | None = None,
    *,
    ascii: bool = False,
    budget: int | None = SHOWN,
) -> str:
    """Return the run for a terminal: a line per round, a legend and a summary.

    Parameters
    ----------
    trace : Trace
        The run.
    colour : bool
        Whether to use colours (ANSI escape sequences). The glyphs are there anyway.
    width : int, optional
        Columns at which lines are wrapped.
    ascii : bool
        For terminals that show ASCII only.
    budget : int, optional
        About how many tokens to show at most, from both ends; None for all.
    """
    style = Style(colour, width, ascii)
    prompt = visible(trace.prompt_text, limit=400)
    shown = [style.dim(style.text(f"prompt: {prompt}"))]
    for line in lines(trace, budget):
        shown.append(gap_text(line, style) if isinstance(line, Gap) else line_text(line, style))
    return "\n".join([*shown, "", legend_text(trace, style), "", summary_text(trace, style)])


def round_text(one: Round, style: Style) -> str:
    """Return the line of a single round, as it happens."""
    return line_text(RoundLine(one.index, one.index, chips(one)), style)


def line_text(line: RoundLine, style: Style) -> str:
    """Return a round's number and its tokens, wrapped with the tokens under each other."""
    label = style.text(f"{line.label:>5}  ")
    rows, row, used = [], style.dim(label), len(label)
    for chip in line.chips:
        gap = "|" if chip.alternative else chip.gap
        wide = columns(style.text(chip.text)) + 1
        if style.width and used + len(gap) + wide > style.width and used > len(label):
            rows.append(row)
            row, used, gap = " " * len(label), len(label), ""
        row += gap + style.chip(chip)
        used += len(gap) + wide
    return "\n".join([*rows, row])


def gap_text(gap: Gap, style: Style) -> str:
    """Return the line that stands for rounds left out."""
    note = f"    … {gap.many} not shown ({gap.first}–{gap.last}): trace.rounds has all"
    return style.dim(style.text(note))


def legend_text(trace: Trace, style: Style) -> str:
    """Return what the marks of the run mean, one a line."""
    return "\n".join(
        style.chip(Chip(mark, "", f" {mark.name:<15}", False, None))
        + style.dim(style.text(f" {mark.meaning}"))
        for mark in marks_of(trace)
    )


def summary_text(trace: Trace, style: Style) -> str:
    """Return the summary as two columns."""
    rows = summary(trace)
    wide = max(len(name) for name, _ in rows)
    return "\n".join(style.text(f"{name:<{wide}}  {value}") for name, value in rows)
