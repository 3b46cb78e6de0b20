"""p and q of the token in question: overlap, residual and what is left in the tails."""

from __future__ import annotations

import math

from specviz.core.formatting import format_number
from specviz.player.picture.scene import Scene, measure
from specviz.player.steps.frames import Frame
from specviz.player.steps.run import Run
from specviz.player.steps.views import Bar, Bars, bars_at, scale_of

ROWS, ROW = 6, 25.0
LABEL, NUMBERS = 104.0, 118.0


def height(run: Run, width: float) -> float:
    """Return how high the view is."""
    return 28 + (ROWS + 1) * ROW + 76


def draw(scene: Scene, run: Run, frame: Frame, x: float, y: float, width: float) -> None:
    """Draw a row per token, the rest in one row, and the unit of probability below."""
    bars = bars_at(run, frame)
    scene.text(x, y + 16, bars.title, 16, "muted", room=width)
    top, left, track = y + 28, x + LABEL, width - LABEL - NUMBERS
    end = scale_of(bars)
    rows = listed(bars)
    for i, bar in enumerate(rows):
        # the tail stays in the last row, however few tokens there are
        k = ROWS if i == len(rows) - 1 else i
        _row(scene, bars, bar, k == ROWS, top + k * ROW, left, track, end)
    low = top + (ROWS + 1) * ROW
    scene.line([(left, top), (left, low)], "muted", width=1)
    for share in (0.0, 0.5, 1.0):
        said = format_number(share * end)
        anchor = {0.0: "left", 0.5: "middle", 1.0: "right"}[share]
        scene.text(left + share * track, low + 13, said, 12, "muted", anchor=anchor)
    if bars.mode != "q" and math.isfinite(bars.overlap) and bars.overlap >= 0:
        _mass(scene, bars, x, low + 20, width)


def listed(bars: Bars) -> list[Bar]:
    """Return the rows that are drawn, the proposal always among them, the rest in the last."""
    rows = bars.rows[:ROWS]
    for bar in bars.rows[ROWS:]:
        if bar.proposed:
            rows[-1] = bar
    rest = [bar for bar in bars.rows if not any(bar is one for one in rows)]
    tail = bars.tail
    return [
        *rows,
        Bar(
            "all others",
            tail.p + sum(bar.p for bar in rest),
            tail.q + sum(bar.q for bar in rest),
            tail.over + sum(bar.over for bar in rest),
        ),
    ]


def _row(
    scene: Scene,
    bars: Bars,
    bar: Bar,
    tail: bool,
    y: float,
    left: float,
    track: float,
    end: float,
) -> None:
    base = y + 17
    mark = "▸ " if bar.proposed else ""
    ink = "muted" if tail else "text"
    wide = scene.text(
        left - 8, base, mark + bar.text, 15.5, ink, bold=bar.proposed, italic=tail,
        anchor="right", room=LABEL - 10,
    )  # fmt: skip
    if bar.proposed:
        scene.line([(left - 8 - wide, base + 4), (left - 8, base + 4)], "text", width=2)
    p, q, over = (track * share / end for share in (bar.p, bar.q, bar.over))
    if bars.mode == "both":
        scene.box(left, y + 1, over, ROW - 2, fill="accepted_tint", stroke="accepted")
        scene.box(left, y + 4, q, 7, fill="q")
        scene.box(left, y + 13, p, 7, fill="p")
        scene.stripes(left + over, y + 13, max(0.0, p - over), 7, "p", "p_tint")
    elif bars.mode == "q":
        scene.box(left, y + 6, q, 13, fill="q")
    elif bars.residual:
        scene.stripes(left, y + 6, p, 13, "p", "p_tint")
    else:
        scene.box(left, y + 6, p, 13, fill="p")
    right = left + track + NUMBERS
    if bars.mode != "distribution":
        scene.text(right - 58, base, format_number(bar.q), 14.5, "q_ink", anchor="right")
    if bars.mode != "q":
        scene.text(right, base, format_number(bar.p), 14.5, "p_ink", anchor="right")


def _mass(scene: Scene, bars: Bars, x: float, y: float, width: float) -> None:
    """Draw the unit of probability: the overlap, and what is left of it."""
    shared = width * min(1.0, bars.overlap)
    scene.stripes(x + shared, y, width - shared, 11, "p", "p_tint")
    scene.box(x, y, shared, 11, fill="accepted")
    scene.text(x, y + 24, "0", 12, "muted")
    scene.text(x + width, y + 24, "1, all of it", 12, "muted", anchor="right")
    base = y + 44
    told = (
        f"overlap Σ min(p, q) = {format_number(bars.overlap)}",
        f"residual = TV = {format_number(1 - bars.overlap)}",
    )
    long = sum(measure(one, 14) for one in told)
    size = min(14.0, 14 * (width - 56) / long)
    scene.box(x, base - 11, 11, 11, fill="accepted")
    at = x + 17 + scene.text(x + 17, base, told[0], size, "muted")
    scene.stripes(at + 18, base - 11, 11, 11, "p", "p_tint")
    scene.text(at + 35, base, told[1], size, "muted")
