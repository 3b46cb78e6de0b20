"""Draw a scene in vectors, with matplotlib: sharp at any size, for slides and print."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape

from specviz.figures.theme import Palette
from specviz.player.picture.scene import Box, Letters, Line, Scene, font_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure

POINTS = 72.0
"""A pixel of the scene is a point on paper."""

# Letters as outlines: the same on every machine, whatever fonts it has; and nothing that changes
# from one writing to the next.
_SETTINGS: Any = {"svg.fonttype": "path", "pdf.fonttype": 42, "svg.hashsalt": "specviz"}


def draw(scene: Scene, colours: Palette) -> Figure:
    """Return the scene as a matplotlib figure."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(scene.width / POINTS, scene.height / POINTS), dpi=POINTS)
    figure.set_facecolor(colours.background)
    ax = figure.add_axes((0, 0, 1, 1))
    ax.set(xlim=(0, scene.width), ylim=(scene.height, 0))
    ax.axis("off")
    for order, item in enumerate(scene.items):
        if isinstance(item, Letters):
            _letters(ax, item, colours, order)
        elif isinstance(item, Line):
            _line(ax, item, colours, order)
        else:
            _box(ax, item, colours, order)
    return figure


def written(scene: Scene, colours: Palette, format: str, title: str) -> bytes:
    """Return the scene as a file of a vector format: "svg" or "pdf"."""
    from matplotlib import rc_context

    held = io.BytesIO()
    told = {"Title": title, **({"Date": None} if format == "svg" else {"CreationDate": None})}
    with rc_context(_SETTINGS):
        draw(scene, colours).savefig(held, format=format, metadata=told)
    return _named(held.getvalue(), title) if format == "svg" else held.getvalue()


def _named(svg: bytes, title: str) -> bytes:
    """Return an SVG that is measured in pixels and says what it shows."""
    head, tag, rest = svg.partition(b"<svg ")
    attributes, end, body = rest.partition(b">")
    told = escape(title, {'"': "&quot;"})
    attributes = re.sub(rb'((?:width|height)="[\d.]+)pt"', rb'\1"', attributes)
    attributes += f' role="img" aria-label="{told}"'.encode()
    return b"".join([head, tag, attributes, end, f"\n <title>{told}</title>".encode(), body])


def _letters(ax: Any, item: Letters, colours: Palette, order: int) -> None:
    from matplotlib.font_manager import FontProperties

    ax.text(
        item.x,
        item.y,
        item.text,
        color=getattr(colours, item.colour),
        fontproperties=FontProperties(fname=font_file(item.bold, item.italic), size=item.size),
        va="baseline",
        ha={"left": "left", "middle": "center", "right": "right"}[item.anchor],
        parse_math=False,
        zorder=order,
    )


def _line(ax: Any, item: Line, colours: Palette, order: int) -> None:
    xs, ys = zip(*item.points, strict=True)
    ax.plot(
        xs,
        ys,
        color=getattr(colours, item.stroke),
        linewidth=item.width,
        linestyle=_style(item.dash, item.width),
        solid_capstyle="butt",
        dash_capstyle="butt",
        zorder=order,
        scalex=False,
        scaley=False,
    )


def _box(ax: Any, item: Box, colours: Palette, order: int) -> None:
    from matplotlib.patches import FancyBboxPatch, Rectangle

    half = item.width / 2 if item.stroke else 0.0
    x, y, w, h = item.x + half, item.y + half, item.w - 2 * half, item.h - 2 * half
    style: Any = {
        "facecolor": getattr(colours, item.fill) if item.fill else "none",
        "edgecolor": getattr(colours, item.stroke) if item.stroke else "none",
        "linewidth": item.width if item.stroke else 0.0,
        "linestyle": _style(item.dash, item.width),
        "zorder": order,
    }
    if item.radius and item.dash is None:
        rounding = f"round,pad=0,rounding_size={min(item.radius, max(w, 0) / 2, max(h, 0) / 2)}"
        ax.add_patch(FancyBboxPatch((x, y), w, h, boxstyle=rounding, **style))
    else:
        ax.add_patch(Rectangle((x, y), w, h, **style))


def _style(dash: tuple[float, float] | None, width: float) -> Any:
    # matplotlib counts dashes in line widths
    return "solid" if dash is None else (0, tuple(part / max(width, 1e-9) for part in dash))
