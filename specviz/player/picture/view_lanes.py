"""Lanes of time: drafting and verifying as measured, the target alone on the same clock."""

from __future__ import annotations

import numpy as np

from specviz.core.formatting import format_duration
from specviz.player.picture.scene import Scene
from specviz.player.steps.frames import Frame, seconds_at
from specviz.player.steps.run import Run

SPAN = 6
"""How many rounds, of average length, the lanes show."""
LANE, STRIP = 28.0, 62.0
COLOURS = {"draft": "q", "verify": "p", "other": "muted"}


def height(run: Run, width: float) -> float:
    """Return how high the view is."""
    return 2 * STRIP + 40


def draw(scene: Scene, run: Run, frame: Frame, x: float, y: float, width: float) -> None:
    """Draw both lanes around now."""
    seconds = run.sums["seconds"]
    total = float(seconds[-1])
    if not total > 0:
        scene.text(x, y + 17, "This run has no measured times.", 15, "muted", room=width)
        return
    span = SPAN * total / len(run)
    now = seconds_at(run, frame)
    start = max(0.0, float(seconds[frame.round]) - 0.45 * span)
    _title(scene, x, y, width, "speculative", f"{frame.emitted} tokens in {format_duration(now)}")
    scene.box(x, y + 25, width, LANE, fill="panel")
    first = max(0, int(np.searchsorted(seconds, start, side="right")) - 1)
    for r in range(first, len(run)):
        at = float(seconds[r])
        if at >= start + span:
            break
        for kind, colour in COLOURS.items():
            took = float(run.round[f"{kind}_seconds"][r])
            inset = 0 if r == frame.round else 4
            _block(scene, (at - start) / span, took / span, x, y + 25 + inset, width, colour,
                   LANE - 2 * inset)  # fmt: skip
            at += took
    baseline = run.header["baseline"]
    if baseline:
        each = float(baseline["seconds"])
        told = f"{int(now / each)} tokens in the same time"
        _title(scene, x, y + STRIP, width, "target alone", told)
        scene.box(x, y + STRIP + 25, width, LANE, fill="panel")
        for k in range(int(start / each), int((start + span) / each) + 1):
            place = (k * each - start) / span
            _block(scene, place, each / span, x + 1, y + STRIP + 29, width, "p", LANE - 8, 2.0)
    at = x + width * min(1.0, (now - start) / span)
    for top in (y, y + STRIP)[: 2 if baseline else 1]:
        scene.line([(at, top + 22), (at, top + 25 + LANE + 3)], "text", width=2.5)
    _key(scene, run, x, y + 2 * STRIP + 14, width)


def _title(scene: Scene, x: float, y: float, width: float, name: str, told: str) -> None:
    wide = scene.text(x, y + 17, name, 17, bold=True)
    scene.text(x + wide + 10, y + 17, told, 15, "muted", room=width - wide - 10)


def _block(
    scene: Scene,
    place: float,
    size: float,
    x: float,
    y: float,
    width: float,
    colour: str,
    high: float,
    gap: float = 0.0,
) -> None:
    left, right = max(0.0, place), min(1.0, place + size)
    scene.box(x + width * left, y, width * (right - left) - gap, high, fill=colour)


def _key(scene: Scene, run: Run, x: float, y: float, width: float) -> None:
    at = x
    for name, colour in (("draft", "q"), ("target pass", "p"), ("rest", "muted")):
        scene.box(at, y - 11, 12, 12, fill=colour)
        at += 18 + scene.text(at + 18, y, name, 13.5, "muted") + 16
    baseline = run.header["baseline"]
    if baseline:
        measured, bound = "measured in a run of its own", "not measured, slower than it is"
        source = measured if baseline["measured"] else bound
        scene.text(x, y + 19, f"target alone: {source}", 13, "muted", room=width)
