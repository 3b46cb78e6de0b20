"""The text so far; the round's proposals stand after it until their fate is known."""

from __future__ import annotations

from dataclasses import dataclass, replace

from specviz.figures.escaping import direction
from specviz.player.picture.marks import GLYPHS, TOKEN_STYLES
from specviz.player.picture.scene import SLACK, Scene, drawable, fitted, measure
from specviz.player.steps.frames import Frame, pending
from specviz.player.steps.run import Run

SIZE, LINE = 24.0, 40.0
SIGN = 15.0
SIGNED = ("rejected", "correction", "bonus")
"""Marks that write their sign before the token."""


@dataclass(frozen=True)
class Word:
    """A token with what is before it and what became of it."""

    gap: bool
    text: str
    mark: str
    focus: bool = False


@dataclass(frozen=True)
class Placed:
    """A word with its line and place."""

    word: Word
    line: int
    x: float
    width: float


def height(run: Run, width: float, lines: int = 2) -> float:
    """Return how high the view is."""
    return lines * LINE + 4


def words_at(run: Run, frame: Frame) -> list[Word]:
    """Return everything that is written at a frame, in order."""
    upto = frame.emitted if frame.settled else int(run.out_start[frame.round])
    found = [_word(part, "prompt") for part in _split(str(run.header["prompt"]))]
    found += [_word(run.piece(i), run.mark(i)) for i in range(upto)]
    for node in pending(run, frame):
        row = frame.first + node
        cut = frame.status[node] == "accepted" and not run.node["emitted"][row]
        mark = "cut" if cut else frame.status[node]
        found.append(_word(run.text(int(run.node["token"][row])), mark, node == frame.node))
    if frame.closing != "hidden" and not frame.settled:
        mark = frame.closing if run.round["closing_emitted"][frame.round] else "cut"
        found.append(_word(run.text(int(run.round["closing"][frame.round])), mark, True))
    return [one for one in found if one.text or one.focus]


def draw(
    scene: Scene, run: Run, frame: Frame, x: float, y: float, width: float, lines: int = 2
) -> None:
    """Draw the last lines of the text."""
    placed = in_reading_order(broken(words_at(run, frame), width), width)
    first = max(0, (placed[-1].line if placed else 0) - lines + 1)
    for one in placed:
        if one.line >= first:
            _draw_word(scene, one, x + one.x, y + (one.line - first) * LINE + SIZE + 3)


def broken(words: list[Word], width: float) -> list[Placed]:
    """Return words in lines: broken before a word that has a blank before it, or is too long."""
    placed: list[Placed] = []
    words = [_cut(word, width) for word in words]
    line, at, i = 0, 0.0, 0
    while i < len(words):
        end = i + 1
        while end < len(words) and not words[end].gap and not _breaks(words[end - 1]):
            end += 1
        wide = [_width(word) for word in words[i:end]]
        gap = measure(" ", SIZE) if words[i].gap and at else 0.0
        if at and at + gap + sum(wide) > width:
            line, at, gap = line + 1, 0.0, 0.0
        at += gap
        for word, long in zip(words[i:end], wide, strict=True):
            if at and at + long > width:
                line, at = line + 1, 0.0
            placed.append(Placed(word, line, at, long))
            at += long
        if _breaks(words[end - 1]):
            line, at = line + 1, 0.0
        i = end
    return placed


def in_reading_order(placed: list[Placed], width: float) -> list[Placed]:
    """Return the words of each line where they are read: runs from right to left are turned round.

    As a browser does (the Unicode bidirectional algorithm), word by word: the first letter of the
    text decides the direction of its lines, and within a line neighbours of the other direction
    form a run of their own.
    """
    ways = [direction(one.word.text) for one in placed]
    base = next(filter(None, ways), "L")
    if base == "L" and "R" not in ways:
        return placed
    out = [replace(one, x=width - one.x - one.width) if base == "R" else one for one in placed]
    i = 0
    while i < len(out):
        end = i + 1
        if ways[i] not in (base, ""):
            last = i
            while end < len(out) and out[end].line == out[i].line and ways[end] != base:
                last = end if ways[end] else last
                end += 1
            end = last + 1
            left = min(one.x for one in out[i:end])
            right = max(one.x + one.width for one in out[i:end])
            turned = [replace(one, x=left + right - one.x - one.width) for one in out[i:end]]
            out[i:end] = turned
        i = end
    return out


def _word(text: str, mark: str, focus: bool = False) -> Word:
    gap = len(text) > 1 and text.startswith(" ")
    return Word(gap, text[1:] if gap else text, mark, focus)


def _split(text: str) -> list[str]:
    """Return a text in words that keep the blank before them, line breaks apart."""
    parts = text.replace("⏎", "⏎\0").split("\0")
    return [
        (" " if i or part.startswith(" ") else "") + word
        for part in parts
        for i, word in enumerate(part.removeprefix(" ").split(" "))
        if word
    ]


def _cut(word: Word, width: float) -> Word:
    """Return a word that fits a line; one that is longer loses its end."""
    if len(word.text) < 12 or _width(word) <= width:
        return word
    room = width - _width(replace(word, text=""))
    return replace(word, text=fitted(word.text, room, SIZE, *_style(word)))


def _breaks(word: Word) -> bool:
    return word.text.endswith("⏎")


def _style(word: Word) -> tuple[bool, bool]:
    look = TOKEN_STYLES.get(word.mark)
    return (look.bold, look.italic) if look else (False, False)


def _width(word: Word) -> float:
    bold, italic = _style(word)
    sign = measure(GLYPHS[word.mark], SIGN, bold=True) + 2 if word.mark in SIGNED else 0.0
    pad = 10.0 if word.focus else 2.0 if word.mark != "prompt" else 0.0
    # in pixels letters may be a little wider than measured, and the next token follows at once
    return measure(drawable(word.text, bold, italic), SIZE, bold, italic) / SLACK + sign + pad


def _draw_word(scene: Scene, one: Placed, x: float, base: float) -> None:
    word, (bold, italic) = one.word, _style(one.word)
    if word.mark == "prompt":
        scene.text(x, base, word.text, SIZE, "muted")
        return
    look = TOKEN_STYLES[word.mark]
    inner = one.width - (10 if word.focus else 2)
    x += 4 if word.focus else 0
    if look.ground and word.mark != "accepted":
        scene.box(x, base - SIZE * 0.95, inner, SIZE * 1.3, fill=look.ground, radius=3)
    under = base + 8
    scene.line([(x, under), (x + inner, under)], look.border, width=look.width, dash=look.dash)
    if look.double:
        scene.line([(x, under - 4), (x + inner, under - 4)], look.border, width=1.5)
    at = x
    if word.mark in SIGNED:
        at += scene.text(x, base - 1, GLYPHS[word.mark], SIGN, look.glyph_ink, bold=True) + 2
    wide = scene.text(at, base, word.text, SIZE, look.ink, bold=bold, italic=italic)
    if look.struck:
        middle = base - SIZE * 0.28
        scene.line([(at, middle), (at + wide, middle)], look.struck, width=2)
    if word.focus:
        scene.box(
            x - 4, base - SIZE * 0.95 - 3, inner + 8, SIZE * 1.3 + 9, stroke="text", width=2.5,
            radius=5,
        )  # fmt: skip
