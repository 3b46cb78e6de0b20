"""The picture of a step: one pass beside many, the bar on which u falls, how the residual grows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from specviz.core.formatting import format_number
from specviz.player.picture import view_caches
from specviz.player.picture.scene import Scene, measure
from specviz.player.steps.draws import Piece, closing_pieces
from specviz.player.steps.frames import Frame
from specviz.player.steps.run import NONE, Run
from specviz.player.steps.sentences import Words
from specviz.player.steps.views import Part, end_of, parts_at
from specviz.player.steps.words import evidence, lines_of, mass_left, trimmed

HIGH, NARROW = 216.0, 700.0
PAD, HEADING, ROW = 16.0, 17.0, 25.0
LABEL, VALUE = 96.0, 58.0


def height(run: Run, width: float) -> float:
    """Return how high the picture is, at every step; a narrow one is higher."""
    return HIGH if width >= NARROW else HIGH + 190


def draw(scene: Scene, run: Run, frame: Frame, x: float, y: float, width: float) -> None:
    """Draw the picture of the step, in a frame."""
    high = height(run, width)
    scene.box(x, y, width, high, stroke="line", width=1, radius=8)
    words = run.header["words"][int(run.step["words"][frame.step])]
    name = words[Words._fields.index("picture")]
    lines = lines_of(run, frame)
    _PICTURES[name](scene, run, frame, lines, x + PAD, y + PAD, width - 2 * PAD)


def _heading(scene: Scene, text: str, x: float, y: float, width: float) -> float:
    """Write a heading, in smaller letters if it is long; return the y below it."""
    fits = 0.96 * width / max(1.0, measure(text, HEADING, bold=True))
    size = max(12.0, HEADING * min(1.0, fits))
    scene.text(x, y + 13, text, size, bold=True, room=width)
    return y + 26


def _rows(
    scene: Scene,
    parts: Sequence[Part],
    mode: str,
    say: Callable[[Part], str],
    x: float,
    y: float,
    width: float,
) -> None:
    """Draw a bar per token on one scale: of q, of p, or what both have and what p has above q."""
    left, track = x + LABEL, width - LABEL - VALUE
    end = end_of(max(one.q if mode == "q" else max(one.p, one.q) for one in parts))
    for i, one in enumerate(parts):
        top = y + i * ROW
        ink = "muted" if one.others else "text"
        wide = scene.text(left - 8, top + 15, one.text, 15.5, ink, bold=one.proposed,
                          italic=one.others, anchor="right", room=LABEL - 10)  # fmt: skip
        if one.proposed:
            scene.line([(left - 8 - wide, top + 19), (left - 8, top + 19)], "text", width=2)
        if mode != "both":
            share = one.q if mode == "q" else one.p
            scene.box(left, top, track * share / end, 17, fill=mode)
        else:
            scene.box(left, top, track * one.over / end, 17, fill="accepted")
            scene.stripes(left + track * one.over / end, top, track * one.rest / end, 17, "p",
                          "p_tint")  # fmt: skip
            at = left + track * one.q / end
            scene.line([(at, top - 2), (at, top + 19)], "q", width=3)
        scene.text(x + width, top + 15, say(one), 15, anchor="right")
    low = y + len(parts) * ROW
    scene.line([(left, y - 2), (left, low)], "muted", width=1)
    scene.text(left, low + 12, "0", 12.5, "muted")
    scene.text(left + track, low + 12, format_number(end), 12.5, "muted", anchor="right")


def _drafted(
    scene: Scene, run: Run, frame: Frame, lines: list[str], x: float, y: float, width: float
) -> None:
    top = _heading(scene, lines[0], x, y, width)
    parts = parts_at(run, frame.first + frame.node, "q")
    _rows(scene, parts, "q", lambda one: format_number(one.q), x, top, width)


def _passes(
    scene: Scene, run: Run, frame: Frame, lines: list[str], x: float, y: float, width: float
) -> None:
    """Draw drafting and the one pass, and in outline the passes that they replace."""
    r, n = frame.round, len(frame.status)
    baseline = run.header["baseline"]
    verify, each, drafting = 1.0, 1.0, 0.25 * n
    if baseline and baseline["measured"] and run.round["verify_seconds"][r] > 0:
        verify, each = float(run.round["verify_seconds"][r]), float(baseline["seconds"])
        drafting = float(run.round["draft_seconds"][r])
    whole = max(drafting + verify, (n + 1) * each)
    top = _heading(scene, lines[0], x, y, width)
    scene.box(x, top, width * drafting / whole, 42, fill="q", radius=4)
    left, wide = x + width * drafting / whole, width * verify / whole
    scene.box(left, top, wide, 42, fill="p_tint", stroke="p", width=3, radius=4)
    scene.text(left + wide / 2, top + 27, "1 pass", 17, "p_ink", bold=True, anchor="middle",
               room=wide - 8)  # fmt: skip
    if not n:
        return
    top = _heading(scene, lines[1], x, top + 62, width)
    wide = width * each / whole
    for i in range(n + 1):
        scene.box(x + i * wide, top, wide - 3, 42, stroke="muted", width=2, dash=(6, 4))
        scene.text(x + (i + 0.5) * wide, top + 27, f"{i + 1}", 16, "muted", anchor="middle",
                   room=wide - 4)  # fmt: skip


def _on_the_bar(
    scene: Scene, run: Run, frame: Frame, lines: list[str], x: float, y: float, width: float
) -> None:
    """Draw the bar of height 1, the green share of it, and the dot where u fell."""
    it = evidence(run, frame.first + frame.node)
    high, wide = HIGH - 2 * PAD - 6, 92.0
    left, top = x + 18, y + 3
    low, share = top + high, high * min(1.0, max(0.0, it.a))
    scene.box(left, top, wide, high, fill="background")
    scene.box(left, low - share, wide, share, fill="accepted_tint", stroke="accepted", width=2)
    scene.line([(left, low - share), (left + wide, low - share)], "accepted", width=4)
    scene.box(left, top, wide, high, stroke="q", width=3)
    scene.text(left - 6, top + 12, "1", 13, "muted", anchor="right")
    scene.text(left - 6, low, "0", 13, "muted", anchor="right")
    near = abs(it.u - it.a) * high < 20
    if it.a < 0.97 and not near:
        scene.text(left + wide + 10, low - share + 6, it.said["a"], 16, "accepted_ink", bold=True)
    if math.isfinite(it.u):
        at = low - high * min(1.0, max(0.0, it.u))
        scene.box(left + wide / 2 - 9, at - 9, 18, 18, fill="text", stroke="background", width=2,
                  radius=9)  # fmt: skip
        scene.text(left + wide + 10, min(low, max(top + 12, at + 6)), f"u {it.said['u']}", 16,
                   bold=True)  # fmt: skip
    _verdict(scene, lines, left + wide + 92, y, width - wide - 110)


def _verdict(scene: Scene, lines: list[str], x: float, y: float, width: float) -> None:
    """Write the verdict in large letters, and the lines that explain it."""
    ink = {"✓": "accepted_ink", "✗": "rejected_ink"}.get(lines[0][:1], "text")
    scene.text(x, y + 40, lines[0], 34, ink, bold=True, room=width)
    at = y + 76
    for line in lines[1:]:
        at += 24 * scene.paragraph(x, at, width, line, 17.5, 3 if width < 400 else 2) + 4


def _same(
    scene: Scene, run: Run, frame: Frame, lines: list[str], x: float, y: float, width: float
) -> None:
    """Draw the proposal and the target's own token side by side."""
    row = frame.first + frame.node
    own = int(run.node["own"][row])
    words = (run.text(int(run.node["token"][row])), "another one" if own == NONE else run.text(own))
    wide = min(190.0, (width - 60) / 2 if width < NARROW else 190.0)
    for i, (says, colour) in enumerate((("the draft proposed", "q"), ("the target's own", "p"))):
        left = x + i * (wide + 56)
        scene.box(left, y + 40, wide, 90, stroke=colour, width=3, radius=8)
        scene.text(left + wide / 2, y + 66, says, 14.5, anchor="middle", room=wide - 12)
        scene.text(left + wide / 2, y + 106, trimmed(words[i]), 24, bold=True, anchor="middle",
                   room=wide - 16)  # fmt: skip
    sign = "=" if lines[0].startswith("✓") else "≠"
    scene.text(x + wide + 28, y + 96, sign, 30, bold=True, anchor="middle")
    if width < NARROW:
        return _verdict(scene, lines, x, y + 140, width)
    return _verdict(scene, lines, x + 2 * wide + 90, y + 10, width - 2 * wide - 90)


def _enough(
    scene: Scene, run: Run, frame: Frame, lines: list[str], x: float, y: float, width: float
) -> None:
    parts = parts_at(run, frame.first + frame.node, "p")
    narrow = width < NARROW
    half = width if narrow else width / 2 - 16
    _rows(scene, parts, "p", lambda one: format_number(one.p), x, y + 8, half)
    _verdict(scene, lines, *((x, y + 190) if narrow else (x + half + 40, y + 6)), half - 20)


def _residual(
    scene: Scene, run: Run, frame: Frame, lines: list[str], x: float, y: float, width: float
) -> None:
    """Draw what p has above q, the same in one bar, and the bar stretched to 1."""
    r, mass = frame.round, mass_left(run, frame.round)
    row = int(run.start[r]) + int(run.round["rejected"][r])
    narrow = width < NARROW
    first = width if narrow else 0.4 * width - 16
    top = _heading(scene, lines[0], x, y, first)
    parts = parts_at(run, row, "rest")
    _rows(scene, parts, "both", lambda one: format_number(one.rest) if one.rest else "", x, top,
          first)  # fmt: skip
    left, wide = (x, width) if narrow else (x + 0.4 * width + 16, 0.6 * width - 16)
    pieces = closing_pieces(run, frame)
    top = _heading(scene, lines[1], left, y + 205 if narrow else y, wide)
    _bar(scene, run, pieces, NONE, mass, math.nan, left, top, wide)
    top = _heading(scene, lines[2], left, top + 62, wide)
    v = float(run.round["closing_u"][r]) if run.round["closing_draw"][r] == 1 else math.nan
    _bar(scene, run, pieces, int(run.round["closing"][r]), 1.0, v, left, top, wide)


def _bar(
    scene: Scene,
    run: Run,
    pieces: Sequence[Piece],
    hit: int,
    share: float,
    v: float,
    x: float,
    y: float,
    width: float,
) -> None:
    """Draw a bar of length 1 in the pieces of a distribution, and where a number fell."""
    high = 42.0
    scene.box(x, y, width, high, fill="panel", stroke="muted")
    for one in sorted(pieces, key=lambda one: one.token == hit):
        left, wide = x + width * one.lo * share, max(1.0, width * one.p * share)
        wide = min(wide, x + width - left)
        scene.stripes(left, y, wide, high, "line", "p_tint")
        on = one.token == hit
        if on:
            scene.box(left, y + high - 8, wide, 8, fill="p")
        scene.box(left, y, wide, high, stroke="text" if on else "muted", width=2 if on else 1)
        text = trimmed(run.text(one.token))
        long = measure(text, 15.5, bold=on)
        if long + 8 < wide:
            middle = left + wide / 2
            scene.box(middle - long / 2 - 3, y + 9, long + 6, 22, fill="p_tint")
            scene.text(middle, y + 26, text, 15.5, bold=on, anchor="middle")
    if math.isfinite(v):
        at = x + width * min(1.0, max(0.0, v))
        scene.line([(at, y - 5), (at, y + high + 5)], "text", width=4)


def _drawn(
    scene: Scene, run: Run, frame: Frame, lines: list[str], x: float, y: float, width: float
) -> None:
    """Draw the distribution that closes a round, and its likeliest tokens."""
    r, token = frame.round, int(run.round["closing"][frame.round])
    pieces = closing_pieces(run, frame)
    top = _heading(scene, lines[0], x, y, width)
    if run.round["closing_draw"][r] == 1:
        _bar(scene, run, pieces, token, 1.0, float(run.round["closing_u"][r]), x, top + 4, width)
        top += 60
    parts = [
        Part(trimmed(run.text(one.token)), one.p, 0.0, 0.0, one.p, one.token == token)
        for one in pieces[:4]
    ]
    _rows(scene, parts, "p", lambda one: format_number(one.p), x, top, width)


def _caches(
    scene: Scene, run: Run, frame: Frame, lines: list[str], x: float, y: float, width: float
) -> None:
    top = _heading(scene, lines[0], x, y, width)
    view_caches.draw(scene, run, frame, x, top + 10, width)


_PICTURES = {
    "rows": _drafted,
    "passes": _passes,
    "u": _on_the_bar,
    "token": _same,
    "p": _enough,
    "residual": _residual,
    "drawn": _drawn,
    "caches": _caches,
}
