"""The colours that a picture of few colours has: a theme's own, and what letters blend into."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from specviz.figures.theme import Palette

if TYPE_CHECKING:
    from PIL.Image import Image

MOST = 255
"""One entry less than a palette has, which a film needs for what did not change."""
GROUNDS = ("background", "panel", "p_tint", "q_tint", "accepted_tint", "rejected_tint")
INKS = {
    "background": ("text", "muted", "p_ink", "q_ink", "rejected_ink"),
    "panel": ("text", "muted"),
    "p_tint": ("text", "p_ink", "muted"),
    "q_tint": ("text",),
    "accepted_tint": ("text", "accepted_ink", "q_ink", "p_ink"),
    "rejected_tint": ("text", "rejected_ink", "q_ink", "p_ink"),
}
"""What is written on each ground."""
STEPS = 4


@cache
def few_colours(colours: Palette) -> Image:
    """Return an image that holds the palette, as Pillow wants it.

    Every colour of the theme is in it exactly; letters get steps between ink and ground.
    """
    from PIL import Image

    found = dict.fromkeys(_rgb(value) for value in vars(colours).values())
    for ground in GROUNDS:
        for ink in INKS[ground]:
            one, other = _rgb(getattr(colours, ground)), _rgb(getattr(colours, ink))
            for step in range(1, STEPS):
                share = step / STEPS
                found[_between(one, other, share)] = None
    flat = [channel for colour in list(found)[:MOST] for channel in colour]
    held = Image.new("P", (1, 1))
    held.putpalette(flat + flat[:3] * (256 - len(flat) // 3))
    return held


def reduced(image: Any, colours: Palette) -> Image:
    """Return an image in the theme's few colours, without dither."""
    from PIL import Image

    made: Image.Image = image.quantize(palette=few_colours(colours), dither=Image.Dither.NONE)
    return made


def _rgb(colour: str) -> tuple[int, int, int]:
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return red, green, blue


def _between(
    one: tuple[int, int, int], other: tuple[int, int, int], share: float
) -> tuple[int, int, int]:
    red, green, blue = (round(a + share * (b - a)) for a, b in zip(one, other, strict=True))
    return red, green, blue
