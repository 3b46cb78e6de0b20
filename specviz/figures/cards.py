"""Tokens as cards on a sheet measured in points, so that every text fits its box."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from specviz.figures.drawing import Look, safe_text
from specviz.figures.theme import Palette

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def hues(mark: str, colours: Palette) -> tuple[str, str, str]:
    """Return fill, edge and ink of a token with a mark; "draft" and "target" for none yet."""
    if mark == "accepted":
        return colours.accepted_tint, colours.accepted, colours.accepted_ink
    if mark == "rejected":
        return colours.rejected_tint, colours.rejected, colours.rejected_ink
    if mark == "draft":
        return colours.q_tint, colours.q, colours.q_ink
    if mark in ("never examined", "past the end", "text"):
        return colours.panel, colours.line, colours.muted
    return colours.p_tint, colours.p, colours.p_ink  # the target's own token


def wide(text: str, points: float, bold: bool = False) -> float:
    """Return how wide a text is drawn, in points."""
    shown = safe_text(text).replace("\\$", "$")
    return points * sum(_advance(letter, bold) for letter in shown)


@cache
def _advance(letter: str, bold: bool) -> float:
    """Return how far a letter moves the pen, in its own size."""
    from matplotlib.font_manager import FontProperties, findfont, get_font

    font = get_font(findfont(FontProperties(weight="bold" if bold else "normal")))
    font.set_size(100, 72)
    return float(font.load_char(ord(letter)).linearHoriAdvance) / 65_536 / 100


def short(text: str, most: float, points: float) -> str:
    """Return a text cut to a width: at its end, or at its start where that is an ellipsis."""
    if wide(text, points) <= most:
        return text
    left = text.startswith("…")
    text = text.removeprefix("…")
    while text and wide(text + "…", points) > most:
        text = text[1:] if left else text[:-1]
    return f"…{text.lstrip()}" if left else f"{text}…"


def card(
    ax: Axes, x: float, y: float, width: float, height: float, mark: str, look: Look, *,
    said: str, below: str = "",
) -> None:  # fmt: skip
    """Draw a card with its upper left corner at (x, y): a token, and a line of numbers below it."""
    from matplotlib.patches import FancyBboxPatch

    fill, edge, ink = hues(mark, look.colours)
    dashed = mark in ("rejected", "never examined", "past the end")
    style = f"round,pad=0,rounding_size={0.35 * look.points}"
    ax.add_patch(
        FancyBboxPatch(
            (x, y), width, height, boxstyle=style, facecolor=fill, edgecolor=edge,
            linewidth=0.11 * look.points, linestyle=(0, (4, 2)) if dashed else "solid",
        )
    )  # fmt: skip
    middle = y + height / 2
    how: dict[str, Any] = {"ha": "center", "va": "center", "clip_on": False}
    words = look.words(color=ink, **how)
    lift = 0.62 * look.points if below else 0.0
    room = width - 0.5 * look.points
    ax.text(x + width / 2, middle - lift, safe_text(short(said, room, look.points)), **words)
    if below:
        ax.text(x + width / 2, middle + lift, safe_text(below), **words)
    if mark == "rejected":
        half = min(wide(said, look.points), room) / 2
        ax.plot([x + width / 2 - half, x + width / 2 + half], [middle - lift] * 2, color=edge,
                linewidth=0.1 * look.points)  # fmt: skip


def arrow(
    ax: Axes, start: tuple[float, float], end: tuple[float, float], look: Look, **how: Any
) -> None:
    """Draw an arrow."""
    from matplotlib.patches import FancyArrowPatch

    ax.add_patch(
        FancyArrowPatch(
            start, end, arrowstyle="-|>", mutation_scale=1.2 * look.points, shrinkA=0, shrinkB=0,
            **{"color": look.colours.muted, "linewidth": 0.14 * look.points, **how},
        )
    )  # fmt: skip


def sheet(look: Look, ax: Axes | None, height: float) -> tuple[Axes, float, float]:
    """Return axes measured in points from the upper left, with their width and height.

    New axes get the theme's width and the height asked for; those given keep their size.
    """
    if ax is None:
        from matplotlib import pyplot

        figure = pyplot.figure(figsize=(look.inches[0], height / 72))
        figure.set_facecolor(look.colours.background)
        ax = figure.add_axes((0.0, 0.0, 1.0, 1.0))
        ax.set_facecolor(look.colours.background)
        across, down = 72 * look.inches[0], height
    else:
        drawn: Any = ax.get_figure(root=True)
        box = ax.get_window_extent()
        across, down = 72 * box.width / drawn.dpi, 72 * box.height / drawn.dpi
    look.blank(ax, across, down)
    return ax, across, down
