"""The KV caches of target and draft: what is in them, what the round adds, what it takes back."""

from __future__ import annotations

from dataclasses import replace

from specviz.player.picture.scene import Scene, measure
from specviz.player.steps.frames import Frame
from specviz.player.steps.run import Run
from specviz.player.steps.views import SLOTS_BEFORE, Slot, slots_at
from specviz.player.steps.words import trimmed

CELL, GAP, STRIP = 30.0, 3.0, 66.0
COLOUR = {"target": "p", "draft": "q"}
NARROWEST, WIDE, TITLE = 58.0, 900.0, 230.0
SAID = (("kept", 0), ("written now", 1), ("rolled back", 2), ("the draft lacks", 3))


def height(run: Run, width: float) -> float:
    """Return how high the view is; where there is room the strips stand beside each other."""
    if width > WIDE:
        return STRIP + (0 if _key_fits(width) else 22)
    return 2 * STRIP + 22


def draw(scene: Scene, run: Run, frame: Frame, x: float, y: float, width: float) -> None:
    """Draw a strip of places for each cache."""
    wide = width > WIDE
    strip = (width - 36) / 2 if wide else width
    for i, which in enumerate(("target", "draft")):
        left, top = (x + i * (strip + 36), y) if wide else (x, y + i * STRIP)
        _strip(scene, run, frame, which, left, top, strip)
    if wide and _key_fits(width):
        _key(scene, x + width - _key_width(), y + 15)
    else:
        _key(scene, x, y + (1 if wide else 2) * STRIP + 10, width)


def _strip(
    scene: Scene, run: Run, frame: Frame, which: str, x: float, y: float, width: float
) -> None:
    cache, slots = slots_at(run, frame, which)
    name = scene.text(x, y + 17, f"{which} cache", 16, f"{COLOUR[which]}_ink", bold=True)
    if not cache.used:
        none = "has none of its own" if which == "draft" else "not recorded"
        scene.text(x + name + 10, y + 17, none, 15, "muted")
        return
    change = ""
    if frame.settled and cache.peak > cache.after:
        change = f" (−{cache.peak - cache.after})"
    elif cache.now > cache.before:
        change = f" (+{cache.now - cache.before})"
    scene.text(x + name + 10, y + 17, f"{cache.now} tokens{change}", 15, "muted")
    _cells(scene, run, frame, slots, x, y + 24, width, COLOUR[which])


def _cells(
    scene: Scene, run: Run, frame: Frame, slots: list[Slot], x: float, y: float, width: float,
    colour: str,
) -> None:  # fmt: skip
    fits = max(4, int((width + GAP) // (NARROWEST + GAP)))
    most = min(fits, max(8, SLOTS_BEFORE + 2 + int(run.round["nodes"].max())))
    slots = _around(run, frame, slots, most)
    wide = (width - (most - 1) * GAP) / most
    for i, slot in enumerate(slots):
        left = x + i * (wide + GAP)
        text = trimmed(slot.text) or "·"
        middle = left + wide / 2
        if slot.state == "empty":
            scene.box(left, y, wide, CELL, stroke="line", dash=(2, 3))
            continue
        if slot.state == "gone":
            scene.box(left, y, wide, CELL, stroke="rejected", width=1.5, dash=(5, 3))
            long = scene.text(middle, y + 20, text, 14, "muted", anchor="middle", room=wide - 6)
            struck = [(middle - long / 2, y + 15.5), (middle + long / 2, y + 15.5)]
            scene.line(struck, "rejected", width=1.5)
            continue
        if slot.state == "lacks":
            scene.box(left, y, wide, CELL, stroke="q", width=2, dash=(2, 3))
            scene.text(middle, y + 20, text, 14, "q_ink", anchor="middle", room=wide - 6)
            continue
        new = slot.state == "new"
        ground, border = (f"{colour}_tint", colour) if new else ("panel", "line")
        scene.box(left, y, wide, CELL, fill=ground, stroke=border, width=1.5 if new else 1)
        if new:
            scene.box(left, y + CELL - 4, wide, 4, fill=colour)
        ink = "text" if new else "muted"
        scene.text(middle, y + 20, text, 14, ink, anchor="middle", room=wide - 6)


def _around(run: Run, frame: Frame, slots: list[Slot], most: int) -> list[Slot]:
    """Return as many places as fit, the round's own first of all, the newest always.

    What is left out before them is told by "…" in the first place.
    """
    if not slots:
        return []
    spare = len(slots) - most
    first = int(run.round["position"][frame.round])
    skip = max(0, min(spare, first - slots[0].at - 1))
    filled = 1 + max((i for i, one in enumerate(slots) if one.state != "empty"), default=-1)
    skip = max(skip, filled - most)
    shown = slots[skip : skip + most]
    if shown[0].at and filled:
        shown[0] = replace(shown[0], text="…")
    return shown


def _key_fits(width: float) -> bool:
    """Whether there is room for the key beside the name and the length of a cache."""
    return (width - 36) / 2 - TITLE > _key_width()


def _key_width() -> float:
    return sum(36 + measure(name, 13.5) for name, _ in SAID) - 16


def _key(scene: Scene, x: float, y: float, width: float | None = None) -> None:
    at = x
    gaps = 36.0 * len(SAID) - 16
    size = 13.5
    if width is not None:
        size *= min(1.0, (width - gaps) / (_key_width() - gaps))
    for name, state in SAID:
        if state > 1:
            border, dash = ("rejected", (3.0, 2.0)) if state == 2 else ("q", (2.0, 2.0))
            scene.box(at, y - 11, 12, 12, stroke=border, width=1.5, dash=dash)
        else:
            scene.box(at, y - 11, 12, 12, fill="panel", stroke="muted")
            scene.box(at, y - 3 if state else y + 1, 12, 4 if state else 0, fill="muted")
        at += 18 + scene.text(at + 18, y, name, size, "muted") + 18
