"""The draw: u on [0, 1] against the acceptance, then the distribution of the next token."""

from __future__ import annotations

import math

from specviz.core.formatting import format_number
from specviz.player.picture.scene import Scene, fitted, measure
from specviz.player.steps.draws import DRAFTS, Contest, Draw, draw_at
from specviz.player.steps.frames import Frame
from specviz.player.steps.run import Run
from specviz.player.steps.sentences import in_blocks
from specviz.player.steps.words import trimmed

RULER, TOP, LANE = 40.0, 46.0, 26.0


def height(run: Run, width: float, says: bool = True) -> float:
    """Return how high the view is."""
    return 2 * (TOP + RULER + 28) + (66 if says else 0)


def draw(
    scene: Scene, run: Run, frame: Frame, x: float, y: float, width: float, says: bool = True
) -> None:
    """Draw the rulers, and say what fell where unless a caption does."""
    seen = draw_at(run, frame)
    at = y
    if seen.test:
        against = "its h" if in_blocks(run) else run.header["hints"]["chance"]
        scene.text(x, at + 16, f"u on [0, 1] against {against}", 16, "muted", room=width)
        _test(scene, seen.test, in_blocks(run), x, at + TOP, width)
        at += TOP + RULER + 28
    for contest in seen.contests:
        scene.text(x, at + 16, contest.title, 16, "muted", room=width)
        _contest(scene, contest, x, at + 28, width)
        at += TOP + RULER + 28
    if seen.pieces:
        scene.text(x, at + 16, seen.title, 16, "muted", room=width)
        _distribution(scene, run, seen, x, at + TOP, width)
        at += TOP + RULER + 28
    if says or at == y:
        scene.paragraph(x, at + 18, width, seen.says, 16.5, 3)


def _test(
    scene: Scene, test: tuple[float, float, bool], blocks: bool, x: float, y: float, width: float
) -> None:
    a, u, kept = test
    if not math.isfinite(a):
        return
    share = width * min(1.0, max(0.0, a))
    scene.box(x, y, share, RULER, fill="accepted_tint")
    scene.box(x + share, y, width - share, RULER, fill="rejected_tint")
    scene.box(x, y + RULER - 8, share, 8, fill="accepted")
    scene.stripes(x + share, y + RULER - 8, width - share, 8, "rejected", "rejected_tint")
    scene.box(x, y, width, RULER, stroke="muted")
    said = (
        f"passes ✓ below h = {format_number(a)}"
        if blocks
        else f"accepted ✓ below {format_number(a)}"
    )
    missed = "does not pass ✗" if blocks else "rejected ✗"
    if measure(said, 15) + 16 < share:
        scene.text(x + 9, y + 20, said, 15, "accepted_ink")
    told = measure(missed, 15) + 16
    if told < width - share:
        # the needle does not stand on the words
        left = width * u > width - told - 14 and told + 8 < width - share
        at, anchor = (x + share + 9, "left") if left else (x + width - 9, "right")
        scene.text(at, y + 20, missed, 15, "rejected_ink", anchor=anchor)
    _needle(scene, x, y, width, u, f"u = {format_number(u)} {'✓' if kept else '✗'}")
    _ends(scene, x, y, width)


def _distribution(scene: Scene, run: Run, seen: Draw, x: float, y: float, width: float) -> None:
    scene.stripes(x, y, width, RULER, "line", "background")
    tint = "q_tint" if seen.colour == "q" else "p_tint"
    strong = "q" if seen.colour == "q" else "p"
    ordered = sorted(seen.pieces, key=lambda one: one is seen.hit)
    for one in ordered:
        left, wide = x + width * one.lo, width * one.p
        on = one is seen.hit
        scene.box(left, y, max(wide, 1.0), RULER, fill=tint, stroke="muted", width=1)
        if on:
            scene.box(left, y + RULER - 8, max(wide, 2.0), 8, fill=strong)
            scene.box(left, y, max(wide, 2.0), RULER, stroke="text", width=2)
        text = trimmed(run.text(one.token))
        if wide > 26:
            long = min(measure(text, 14.5, bold=on), wide - 8)
            middle, room = _beside(left, wide, x + width * seen.v if on else math.nan, long)
            if room > 14:
                scene.text(middle, y + 22, text, 14.5, bold=on, anchor="middle", room=room)
    _needle(scene, x, y, width, seen.v, format_number(seen.v))
    _ends(scene, x, y, width)


def _beside(left: float, wide: float, needle: float, long: float) -> tuple[float, float]:
    """Return where the middle of a piece's text goes, and its room, off the needle."""
    middle = left + wide / 2
    if not abs(needle - middle) < long / 2 + 6:  # also if there is no needle
        return middle, wide - 8
    before, after = needle - left, left + wide - needle
    room = max(before, after) - 12
    return (left + before / 2 if before > after else needle + after / 2), room


def _needle(scene: Scene, x: float, y: float, width: float, share: float, said: str) -> None:
    if not math.isfinite(share):
        return
    at = x + width * min(1.0, max(0.0, share))
    scene.line([(at, y - 5), (at, y + RULER + 4)], "text", width=3)
    half = measure(said, 15, bold=True) / 2
    middle = min(max(at, x + half), x + width - half)
    scene.text(middle, y - 11, said, 15, bold=True, anchor="middle")


def _ends(scene: Scene, x: float, y: float, width: float) -> None:
    scene.text(x, y + RULER + 17, "0", 13, "muted")
    scene.text(x + width, y + RULER + 17, "1", 13, "muted", anchor="right")


def _contest(scene: Scene, contest: Contest, x: float, y: float, width: float) -> None:
    winner = "q" if contest.title == DRAFTS else "p"
    wide = min(200.0, 0.42 * width)
    left, room = x + wide + 8, width - wide - 68
    for i, one in enumerate(contest.lanes[:3]):
        top = y + i * LANE
        named = one.text != ""
        told = fitted(f"{one.mark} {one.text or 'another token'}".strip(), wide, 14.5, named)
        ink = {"✓": "accepted_ink", "✗": "rejected_ink"}.get(one.mark, "text")
        scene.text(x, top + 15, told, 14.5, ink if named else "muted", bold=named)
        after = measure(told, 14.5, bold=named) + 8
        if wide - after > 36:
            scene.text(x + after, top + 15, one.role, 12.5, "muted", room=wide - after)
        scene.box(left, top, room, 18, fill="panel")
        start, end = left + room * one.start, left + room * one.end
        if one.look == "open":
            scene.stripes(start, top, max(end - start, 2.0), 18, "rejected", "rejected_tint")
        else:
            fill = {"first": winner, "second": "muted", "lost": "rejected"}[one.look]
            scene.box(start, top, max(end - start, 2.0), 18, fill=fill)
        scene.text(x + width, top + 15, one.value, 14.5, anchor="right", room=56)
