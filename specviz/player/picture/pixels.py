"""Paint a scene in pixels, with Pillow: quick enough for films."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from specviz.figures.escaping import direction
from specviz.figures.theme import Palette
from specviz.player.picture.scene import Box, Dash, Letters, Line, Point, Scene, font

if TYPE_CHECKING:
    from PIL.Image import Image

ANCHORS = {"left": "ls", "middle": "ms", "right": "rs"}


def paint(scene: Scene, colours: Palette, scale: float = 1.0) -> Image:
    """Return the scene as an image in RGB, each of its pixels ``scale`` wide."""
    from PIL import Image, ImageDraw

    size = (round(scene.width * scale), round(scene.height * scale))
    image = Image.new("RGB", size, colours.background)
    pen = ImageDraw.Draw(image)
    for item in scene.items:
        if isinstance(item, Letters):
            _letters(pen, item, colours, scale)
        elif isinstance(item, Line):
            _line(pen, item.points, item.stroke, item.width, item.dash, colours, scale)
        else:
            _box(pen, item, colours, scale)
    return image


def _letters(pen: Any, item: Letters, colours: Palette, scale: float) -> None:
    ordered = not item.text.isascii() and any(direction(word) == "R" for word in item.text.split())
    face = font(round(item.size * scale * 4) / 4, item.bold, item.italic, ordered)
    at = (item.x * scale, item.y * scale)
    pen.text(
        at, item.text, font=face, fill=getattr(colours, item.colour), anchor=ANCHORS[item.anchor]
    )


def _box(pen: Any, item: Box, colours: Palette, scale: float) -> None:
    x0, y0 = round(item.x * scale), round(item.y * scale)
    x1 = max(x0 + 1, round((item.x + item.w) * scale)) - 1
    y1 = max(y0 + 1, round((item.y + item.h) * scale)) - 1
    fill = getattr(colours, item.fill) if item.fill else None
    if item.stroke is None or item.dash is not None:
        if fill:
            pen.rounded_rectangle((x0, y0, x1, y1), item.radius * scale, fill=fill)
    else:
        pen.rounded_rectangle(
            (x0, y0, x1, y1),
            item.radius * scale,
            fill=fill,
            outline=getattr(colours, item.stroke),
            width=max(1, round(item.width * scale)),
        )
    if item.stroke and item.dash:
        inset = item.width / 2
        left, top = item.x + inset, item.y + inset
        right, bottom = item.x + item.w - inset, item.y + item.h - inset
        corners = ((left, top), (right, top), (right, bottom), (left, bottom), (left, top))
        _line(pen, corners, item.stroke, item.width, item.dash, colours, scale)


def _line(
    pen: Any,
    points: tuple[Point, ...],
    stroke: str,
    width: float,
    dash: Dash | None,
    colours: Palette,
    scale: float,
) -> None:
    colour, thick = getattr(colours, stroke), max(1, round(width * scale))
    for one, other in _pieces(points, dash):
        ends = [(x * scale, y * scale) for x, y in (one, other)]
        if ends[0][1] == ends[1][1] or ends[0][0] == ends[1][0]:
            _bar(pen, ends, thick, colour)
        else:
            pen.line(ends, fill=colour, width=thick)


def _bar(pen: Any, ends: list[Point], thick: int, colour: str) -> None:
    """Draw an upright or level line as a rectangle: sharp, and exactly as thick as asked."""
    (x0, y0), (x1, y1) = sorted(ends)
    if y0 == y1:
        x0, top = round(x0), round(y0 - thick / 2)
        pen.rectangle((x0, top, max(round(x1) - 1, x0), top + thick - 1), colour)
    else:
        y0, left = round(y0), round(x0 - thick / 2)
        pen.rectangle((left, y0, left + thick - 1, max(round(y1) - 1, y0)), colour)


def _pieces(points: tuple[Point, ...], dash: Dash | None) -> Iterator[tuple[Point, Point]]:
    """Yield a line's straight pieces, dashed ones in short pieces."""
    for (x0, y0), (x1, y1) in pairwise(points):
        if dash is None:
            yield (x0, y0), (x1, y1)
            continue
        long = math.hypot(x1 - x0, y1 - y0)
        at, period = 0.0, sum(dash)
        while at < long:
            a, b = at / long, min(1.0, (at + dash[0]) / long)
            yield (x0 + a * (x1 - x0), y0 + a * (y1 - y0)), (x0 + b * (x1 - x0), y0 + b * (y1 - y0))
            at += period
