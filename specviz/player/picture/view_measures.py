"""Running measures: tokens per pass, alpha and the speed-up, with the last rounds as bars."""

from __future__ import annotations

import math

from specviz.core.formatting import format_number
from specviz.player.picture.scene import Scene
from specviz.player.steps.frames import Frame
from specviz.player.steps.run import Run
from specviz.player.steps.views import measures_at

ROUNDS = 32
CHART = 42.0


def height(run: Run, width: float) -> float:
    """Return how high the view is."""
    return 164.0


def draw(scene: Scene, run: Run, frame: Frame, x: float, y: float, width: float) -> None:
    """Draw four numbers and a bar per round."""
    now = measures_at(run, frame)
    baseline = run.header["baseline"]
    measured = baseline and baseline["measured"]
    faster = "times faster" if measured else "times faster at most (upper bound)"
    most = "" if measured else "≤ "
    facts = (
        ("–" if math.isnan(now.per_pass) else f"{now.per_pass:.2f}", "tokens per target pass"),
        (format_number(now.alpha), "alpha"),
        (f"{now.accepted} / {now.proposed}", "accepted / proposed"),
        ("–" if math.isnan(now.speedup) else f"{most}{now.speedup:.2f}×", faster),
    )
    for i, (value, name) in enumerate(facts):
        left, top = x + (i % 2) * width / 2, y + (i // 2) * 48
        scene.text(left, top + 21, value, 21, bold=True)
        scene.text(left, top + 38, name, 13.5, "muted", room=width / 2 - 8)
    _chart(scene, run, frame, now.rounds, x, y + 100, width)


def _chart(
    scene: Scene, run: Run, frame: Frame, over: int, x: float, y: float, width: float
) -> None:
    first = max(0, min(frame.round - ROUNDS + 6, len(run) - ROUNDS))
    many = min(ROUNDS, len(run) - first)
    tokens = [int(run.out_start[r + 1] - run.out_start[r]) for r in range(len(run))]
    most = max(1, *tokens, 1)
    wide = min(18.0, width / max(1, many))
    for i in range(many):
        r, left = first + i, x + i * wide
        if r < over:
            high, cap = CHART * tokens[r] / most, CHART / most
            scene.box(left, y + CHART - high, wide - 2, high, fill="accepted")
            scene.box(left, y + CHART - high, wide - 2, min(cap, high), fill="p")
        else:
            scene.box(left, y + CHART - 2, wide - 2, 2, fill="line")
        if r == frame.round:
            scene.box(left, y + CHART + 1, wide - 2, 3, fill="text")
    base = y + CHART + 19
    scene.box(x, base - 11, 12, 12, fill="accepted")
    at = x + 34 + scene.text(x + 18, base, "accepted", 13.5, "muted")
    scene.box(at, base - 11, 12, 12, fill="p")
    scene.text(at + 18, base, "closing token, per round", 13.5, "muted")
