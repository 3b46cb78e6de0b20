"""A picture of the player at a frame: the views that were asked for, under and beside each other.

The height depends on the run and the views, never on the frame, so that a film does not jump.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import ModuleType
from typing import Any

from specviz.player.picture import (
    view_bars,
    view_caches,
    view_draw,
    view_lanes,
    view_measures,
    view_panel,
    view_phase,
    view_text,
    view_tree,
)
from specviz.player.picture.scene import Box, Dash, Letters, Line, Scene
from specviz.player.steps.frames import Frame
from specviz.player.steps.run import Run
from specviz.player.steps.words import caption

MARGIN, GAP, BETWEEN = 28.0, 16.0, 36.0
HEAD = 36.0
SAID, LEADING = 18.5, 1.36
NARROW = 760.0
"""Below this width views stand under each other."""

DRAWN: dict[str, ModuleType] = {
    "text": view_text,
    "phase": view_phase,
    "panel": view_panel,
    "tree": view_tree,
    "bars": view_bars,
    "draw": view_draw,
    "caches": view_caches,
    "lanes": view_lanes,
    "measures": view_measures,
}
ROWS = (("text",), ("phase",), ("tree",), ("caption",), ("panel",), ("bars", "draw"), ("caches",
        "lanes", "measures"))  # fmt: skip


def pictured(run: Run, frame: Frame, views: Sequence[str], width: float) -> Scene:
    """Return the scene of the views at a frame.

    Parameters
    ----------
    run, frame
        What to draw, and where one is in it.
    views : sequence of str
        Names of ``DRAWN``, and "caption" for one or two sentences.
    width : float
        In pixels; the height follows.
    """
    scene = Scene(width)
    inner = width - 2 * MARGIN
    _heading(scene, run, frame, inner)
    y = MARGIN / 2 + HEAD + GAP / 2
    for row in _rows(run, views, width):
        wide = (inner - (len(row) - 1) * BETWEEN) / len(row)
        high = 0.0
        for i, name in enumerate(row):
            x = MARGIN + i * (wide + BETWEEN)
            if name == "caption":
                high = _caption(scene, run, frame, x, y, wide)
            else:
                how = _told(name, views)
                DRAWN[name].draw(scene, run, frame, x, y, wide, **how)
                high = max(high, DRAWN[name].height(run, wide, **how))
        y += high + GAP
    scene.height = round(y - GAP + MARGIN / 2 + 6)
    return scene


def _rows(run: Run, views: Sequence[str], width: float) -> list[tuple[str, ...]]:
    """Return what stands beside each other; a tree is drawn only where there is one."""
    rows: list[tuple[str, ...]] = []
    if "phase" in views:  # the picture of the step belongs to the stage
        views = [*(name for name in views if name != "text" or width < NARROW), "panel"]
    for row in ROWS:
        asked = tuple(name for name in row if name in views and (name != "tree" or run.is_tree))
        rows += [(name,) for name in asked] if width < NARROW else [asked] if asked else []
    return rows


def _told(name: str, views: Sequence[str]) -> dict[str, Any]:
    """Return what a view is told about the others."""
    if name == "draw":
        return {"says": "caption" not in views}
    if name == "phase":
        return {"text": "text" in views}
    if name == "text":
        return {"lines": 2 if "phase" in views or "tree" in views else 5}
    return {}


def _heading(scene: Scene, run: Run, frame: Frame, inner: float) -> None:
    base = MARGIN / 2 + 25
    right = f"round {frame.round}"
    if len(run) > 1:
        right += f" (the last is {len(run) - 1})"
    wide = scene.text(MARGIN + inner, base, right, 17, "muted", anchor="right")
    room = inner - wide - 24
    name = scene.text(MARGIN, base, str(run.header["label"]), 19, bold=True, room=room)
    if room - name > 120 and run.header["nodes"]:
        rule, said = str(run.header["rule"]), str(run.header["rule_label"])
        if said.startswith(f"{rule} (") and rule in str(run.header["label"]):
            said = said[len(rule) + 2 : -1]  # the label names the rule already
        scene.text(MARGIN + name + 14, base, said, 16, "muted", room=room - name - 14)


def _caption(scene: Scene, run: Run, frame: Frame, x: float, y: float, width: float) -> float:
    """Write a caption and return its height: narrow ones get more lines."""
    lines = 2 if width > 1000 else 3 if width > 560 else 5
    high = 12 + lines * SAID * LEADING
    scene.box(x, y, width, high, fill="panel")
    scene.box(x, y, 5, high, fill="p")
    scene.paragraph(x + 18, y + 26, width - 32, caption(run, frame), SAID, lines)
    return high


def strip(run: Run, frames: Sequence[Frame], width: float) -> Scene:
    """Return a story in pictures, one below the other: the whole stage first, then each step's."""
    whole = pictured(run, frames[0], ("text", "phase", "caption"), width)
    items, y = list(whole.items), whole.height
    for frame in frames[1:]:
        scene = Scene(width)
        inner = width - 2 * MARGIN
        high = _caption(scene, run, frame, MARGIN, 0, inner)
        view_panel.draw(scene, run, frame, MARGIN, high + GAP / 2, inner)
        items += [_moved(item, 1.0, 0.0, y) for item in scene.items]
        y += high + GAP / 2 + view_panel.height(run, inner) + GAP
    return Scene(width, round(y + MARGIN / 2), items)


def filling(run: Run, frame: Frame, views: Sequence[str], width: float, height: float) -> Scene:
    """Return a frame's scene that fills this size, with letters as large as can be."""
    drawn = [pictured(run, frame, views, width * share) for share in (1.0, 0.9, 0.8, 0.7, 0.6)]
    best = max(drawn, key=lambda one: min(width / one.width, height / one.height))
    return fitted_to(best, width, height)


def fitted_to(scene: Scene, width: float, height: float) -> Scene:
    """Return a scene of exactly this size: as large as fits, and in the middle."""
    scale = min(width / scene.width, height / scene.height)
    left = (width - scale * scene.width) / 2
    top = max(0.0, (height - scale * scene.height) / 2)
    return Scene(width, height, [_moved(item, scale, left, top) for item in scene.items])


def _moved(item: Box | Line | Letters, scale: float, left: float, top: float) -> Any:
    def dashed(dash: Dash | None) -> Dash | None:
        return None if dash is None else (dash[0] * scale, dash[1] * scale)

    if isinstance(item, Line):
        points = tuple((left + scale * x, top + scale * y) for x, y in item.points)
        return replace(item, points=points, width=item.width * scale, dash=dashed(item.dash))
    x, y = left + scale * item.x, top + scale * item.y
    if isinstance(item, Letters):
        return replace(item, x=x, y=y, size=item.size * scale)
    return replace(
        item,
        x=x,
        y=y,
        w=item.w * scale,
        h=item.h * scale,
        width=item.width * scale,
        radius=item.radius * scale,
        dash=dashed(item.dash),
    )
