"""The text of a run, a line per round: what the draft proposed and what the target made of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from specviz.core.checks import whole
from specviz.core.names import DRAFTERS
from specviz.figures.cards import hues, sheet, short, wide
from specviz.figures.drawing import Look, figure, safe_text
from specviz.figures.escaping import visible
from specviz.figures.marks import MARKS, Mark, chips, marks_of
from specviz.figures.summary import target_alone

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from specviz.core.trace.trace import Trace

ROUNDS = 12
LONGEST = 40
"""How many rounds a picture can hold."""


@dataclass(frozen=True)
class TextData:
    """What the figure shows: rounds ``first`` on, ``of`` so many.

    ``lines`` has for each its tokens as (mark, gap before it, text). ``legend`` are the marks that
    occur in the run.
    """

    first: int
    of: int
    prompt: str
    lines: list[list[tuple[str, str, str]]]
    legend: list[Mark]
    alone: bool

    @property
    def title(self) -> str:
        """Which rounds, and how many tokens they wrote."""
        emitted = [
            sum(mark in ("accepted", "correction", "bonus", "plain") for mark, _, _ in line)
            for line in self.lines
        ]
        last = self.first + len(self.lines) - 1
        who = f"{DRAFTERS['target_only']}, " if self.alone else ""
        return (
            f"{who}rounds {self.first}–{last} of {self.of:,}: {sum(emitted):,} tokens from "
            f"{len(emitted)} target passes"
        )

    @property
    def alt(self) -> str:
        """The lines in words."""
        return "; ".join(
            " ".join(f"{MARKS[mark].glyph}{text}" for mark, _, text in line) for line in self.lines
        )


def _draw(data: TextData, ax: Axes | None, look: Look) -> Axes:
    colours, points = look.colours, look.points
    line, margin = 1.95 * points, 1.1 * points
    given = ax is not None
    across = _across(ax, look)
    label = wide("000", points) + points
    rows: list[tuple[int, list[tuple[str, str, float, float]]]] = []  # round, chips with x, width
    for number, chips_of in enumerate(data.lines, start=data.first):
        row: list[tuple[str, str, float, float]] = []
        x, left = margin + label, number
        for mark, gap, text in chips_of:
            said = short(f"{MARKS[mark].glyph} {text}", across - 2 * margin - label, points)
            width = wide(said, points) + 0.7 * points
            x += 0.45 * points if gap else 0.16 * points
            if row and x + width > across - margin:
                rows.append((left, row))
                row, x, left = [], margin + label, -1
            row.append((mark, said, x, width))
            x += width
        rows.append((left, row))
    legend = _wrapped(
        [f"{mark.glyph} {mark.name}" for mark in data.legend], across - 2 * margin, look
    )
    below = 1.5 * points * len(legend)
    height = 5.6 * points + line * len(rows) + below + margin
    ax, across, down = sheet(look, ax, height)
    top = margin
    ax.text(margin, top, safe_text(short(data.title, across - 2 * margin, points)), va="top",
            **look.words(fontweight="bold"))  # fmt: skip
    ax.text(margin, top + 1.7 * points, safe_text(short(data.prompt, across - 2 * margin, points)),
            va="top", **look.words(color=colours.muted))  # fmt: skip
    y = top + 3.9 * points
    fit = len(rows) if not given else int((down - y - below - margin) / line)
    for number, row in rows[:fit]:
        if number >= 0:
            ax.text(margin + label - points, y + line / 2, str(number), ha="right", va="center",
                    **look.words(color=colours.muted))  # fmt: skip
        for mark, said, x, width in row:
            _chip(ax, mark, said, x, y, width, look)
        y += line
    if fit < len(rows):
        ax.text(margin, y + 0.2 * points, "… more lines than fit here", va="top",
                **look.words(color=colours.muted))  # fmt: skip
    y = down - margin - below + 0.4 * points
    for row_of in legend:
        x = margin
        for i, said in row_of:
            ax.text(x, y, said, va="top",
                    **look.words(color=hues(data.legend[i].name, colours)[2]))  # fmt: skip
            x += wide(said, points) + 1.6 * points
        y += 1.5 * points
    return ax


def _wrapped(words: list[str], room: float, look: Look) -> list[list[tuple[int, str]]]:
    """Return words with their numbers, in lines that fit."""
    lines: list[list[tuple[int, str]]] = [[]]
    used = 0.0
    for i, said in enumerate(words):
        width = wide(said, look.points) + 1.6 * look.points
        if lines[-1] and used + width > room:
            lines.append([])
            used = 0.0
        lines[-1].append((i, said))
        used += width
    return lines


def _across(ax: Axes | None, look: Look) -> float:
    if ax is None:
        return 72 * look.inches[0]
    drawn = ax.get_figure(root=True)
    assert drawn is not None
    return float(72 * ax.get_window_extent().width / drawn.dpi)


def _chip(ax: Axes, mark: str, said: str, x: float, y: float, width: float, look: Look) -> None:
    from matplotlib.patches import FancyBboxPatch

    points = look.points
    fill, edge, ink = hues(mark, look.colours)
    dashed = mark in ("rejected", "never examined", "past the end")
    ax.add_patch(
        FancyBboxPatch(
            (x, y + 0.2 * points), width, 1.5 * points,
            boxstyle=f"round,pad=0,rounding_size={0.3 * points}", facecolor=fill, edgecolor=edge,
            linewidth=0.08 * points, linestyle=(0, (3, 2)) if dashed else "solid",
        )
    )  # fmt: skip
    ax.text(x + width / 2, y + 0.97 * points, safe_text(said), ha="center", va="center",
            **look.words(color=ink))  # fmt: skip
    if mark == "rejected":
        start = x + 0.35 * points + wide(f"{MARKS[mark].glyph} ", points)
        ax.plot([start, x + width - 0.35 * points], [y + 0.97 * points] * 2, color=edge,
                linewidth=0.09 * points)  # fmt: skip


@figure(_draw)
def text(trace: Trace, *, first: int = 0, rounds: int = ROUNDS) -> TextData:
    """Draw the text of a run, a line per round, each token with its mark.

    Parameters
    ----------
    trace : Trace
        The run; ``print(trace)`` and a notebook show the whole of it.
    first : int
        The first round drawn, counted from 0.
    rounds : int
        How many rounds, at most 40.

    Returns
    -------
    matplotlib Axes; ``text.data`` returns :class:`TextData`

    Raises
    ------
    ValueError
        If there is no such round.

    Examples
    --------
    >>> text(trace, rounds=6)  # doctest: +SKIP
    """
    whole("rounds", rounds, 1, LONGEST)
    if not len(trace):
        raise ValueError("trace has no round yet, so there is no text to draw")
    first = whole("first", first, 0, len(trace) - 1)
    lines = [
        [(chip.mark.name, chip.gap, chip.text) for chip in chips(trace.rounds[i])]
        for i in range(first, min(len(trace), first + rounds))
    ]
    return TextData(
        first, len(trace), f"prompt: {visible(trace.prompt_text, limit=300)}", lines,
        marks_of(trace), target_alone(trace),
    )  # fmt: skip
