"""A scene: boxes, lines and letters with places in pixels and colours named after their meaning.

Letters are measured when they are placed, in DejaVu Sans, which matplotlib brings along; so every
back end puts them where the layout expects them, on any machine, offline.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

Dash = tuple[float, float]
Point = tuple[float, float]
MEASURED_AT = 64.0
STRIPE = 7.0
SLACK = 0.97
"""Small letters in pixels may be a little wider than measured: their widths are rounded."""


@dataclass(frozen=True)
class Box:
    """A rectangle; ``fill`` and ``stroke`` name colours of the palette."""

    x: float
    y: float
    w: float
    h: float
    fill: str | None = None
    stroke: str | None = None
    width: float = 1.0
    dash: Dash | None = None
    radius: float = 0.0


@dataclass(frozen=True)
class Line:
    """A line through points."""

    points: tuple[Point, ...]
    stroke: str
    width: float = 1.0
    dash: Dash | None = None


@dataclass(frozen=True)
class Letters:
    """A text that stands on ``y`` and begins, ends or has its middle at ``x``."""

    x: float
    y: float
    text: str
    size: float
    colour: str
    bold: bool = False
    italic: bool = False
    anchor: str = "left"


@dataclass
class Scene:
    """What is drawn, in order, on ``width`` times ``height`` pixels."""

    width: float
    height: float = 0.0
    items: list[Box | Line | Letters] = field(default_factory=list)

    def box(self, x: float, y: float, w: float, h: float, **style: Any) -> None:
        """Add a rectangle; one without extent is left out."""
        if w > 0 and h > 0:
            self.items.append(Box(x, y, w, h, **style))

    def line(self, points: Sequence[Point], stroke: str, **style: Any) -> None:
        """Add a line."""
        self.items.append(Line(tuple(points), stroke, **style))

    def text(
        self,
        x: float,
        y: float,
        text: str,
        size: float,
        colour: str = "text",
        *,
        bold: bool = False,
        italic: bool = False,
        anchor: str = "left",
        room: float | None = None,
    ) -> float:
        """Add a text and return its width; what does not fit ``room`` is cut with an ellipsis."""
        shown = drawable(text, bold, italic)
        if room is not None:
            shown = fitted(shown, room, size, bold, italic)
        if shown.strip():
            self.items.append(Letters(x, y, shown, size, colour, bold, italic, anchor))
        return measure(shown, size, bold, italic)

    def paragraph(
        self, x: float, y: float, w: float, text: str, size: float, lines: int, **style: Any
    ) -> int:
        """Add a text broken into at most so many lines and return how many it took."""
        broken = wrapped(text, w, size, style.get("bold", False))
        for i, line in enumerate(broken[:lines]):
            end = "" if i < lines - 1 or len(broken) <= lines else " …"
            self.text(x, y + i * size * 1.36, line + end, size, room=w, **style)
        return min(len(broken), lines)

    def stripes(self, x: float, y: float, w: float, h: float, colour: str, ground: str) -> None:
        """Add a rectangle with slanting stripes, which tell it from a plain one without colour."""
        self.box(x, y, w, h, fill=ground)
        if w <= 0:
            return
        at = x - h + STRIPE / 2
        while at < x + w:
            # from the bottom at `at` to the top at `at + h`, as far as it is inside
            left, right = max(at, x), min(at + h, x + w)
            if right > left:
                self.line(
                    [(left, y + h - (left - at)), (right, y + h - (right - at))], colour, width=2.4
                )
            at += STRIPE
        self.box(x, y, w, h, stroke=colour, width=1.0)


@cache
def font_file(bold: bool = False, italic: bool = False) -> Path:
    """Return the file of the face: DejaVu Sans, as matplotlib brings it."""
    import matplotlib

    name = {
        (False, False): "DejaVuSans",
        (True, False): "DejaVuSans-Bold",
        (False, True): "DejaVuSans-Oblique",
        (True, True): "DejaVuSans-BoldOblique",
    }[bold, italic]
    return Path(matplotlib.get_data_path()) / "fonts" / "ttf" / f"{name}.ttf"


@cache
def font(size: float, bold: bool = False, italic: bool = False, ordered: bool = False) -> Any:
    """Return a face for Pillow; an ordered one writes from right to left where the text does.

    The other is the same to the pixel on every machine, and writes letters as they are stored.
    """
    from PIL import ImageFont, features

    layout = ImageFont.Layout
    engine = layout.RAQM if ordered and features.check("raqm") else layout.BASIC
    return ImageFont.truetype(str(font_file(bold, italic)), size, layout_engine=engine)


@cache
def _face(bold: bool, italic: bool) -> Any:
    from matplotlib.ft2font import FT2Font

    return FT2Font(str(font_file(bold, italic)))


@cache
def _has_glyph(character: str, bold: bool, italic: bool) -> bool:
    return bool(_face(bold, italic).get_char_index(ord(character)))


def drawable(text: str, bold: bool = False, italic: bool = False) -> str:
    """Return a text in letters that the face has; others are written as their number.

    Examples
    --------
    >>> drawable("✓ 狐")
    '✓ ⟨U+72D0⟩'
    """
    return "".join(c if _has_glyph(c, bold, italic) else f"⟨U+{ord(c):04X}⟩" for c in text)


@cache
def _unit(text: str, bold: bool, italic: bool) -> float:
    return float(font(MEASURED_AT, bold, italic).getlength(text)) / MEASURED_AT


def measure(text: str, size: float, bold: bool = False, italic: bool = False) -> float:
    """Return how wide a text is, in pixels."""
    return size * sum(_unit(part, bold, italic) for part in _parts(text))


def _parts(text: str) -> list[str]:
    """Return a text in words and blanks, which come again and again, for the cache."""
    words = text.split(" ")
    return (
        [part for word in words for part in (word, " ") if part][: 2 * len(words) - 1]
        if (len(words) > 1 and all(words))
        else [text]
    )


def fitted(text: str, room: float, size: float, bold: bool = False, italic: bool = False) -> str:
    """Return a text, cut with an ellipsis if it is wider than its room."""
    if measure(text, size, bold, italic) <= room * SLACK:
        return text
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if measure(text[:middle].rstrip() + "…", size, bold, italic) <= room * SLACK:
            low = middle
        else:
            high = middle - 1
    return text[:low].rstrip() + "…" if low else ""


def wrapped(text: str, room: float, size: float, bold: bool = False) -> list[str]:
    """Return a text in lines no wider than its room, broken at blanks where there are any."""
    lines: list[str] = []
    line = ""
    for word in drawable(text, bold).split(" "):
        longer = f"{line} {word}" if line else word
        if measure(longer, size, bold) <= room * SLACK:
            line = longer
            continue
        if line:
            lines.append(line)
        while measure(word, size, bold) > room and len(word) > 1:
            head = fitted(word, room, size, bold)[:-1] or word[0]
            lines.append(head)
            word = word[len(head) :]
        line = word
    return [*lines, line] if line else lines
