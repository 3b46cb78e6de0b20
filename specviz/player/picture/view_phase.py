"""The phase: draft one by one, verify in one pass, accept or reject, resample, roll back."""

from __future__ import annotations

from specviz.core.formatting import format_number
from specviz.core.names import PHASES
from specviz.player.picture.marks import GLYPHS, LOOKS, Look
from specviz.player.picture.scene import Scene, measure
from specviz.player.steps.frames import Frame
from specviz.player.steps.run import Run
from specviz.player.steps.words import evidence, in_blocks, trimmed

SLIM = 126.0
"""Below this width a phase has no room for a hint."""
STRIP, CARD, GAP = 56.0, 88.0, 8.0
ACROSS, MOST = 9, 17
"""Cards in a row, and of a round, the closing token's included."""
COLOURS = {"draft": "q", "verify": "p", "decide": "accepted", "close": "p", "rollback": "muted"}


def height(run: Run, width: float) -> float:
    """Return how high the view is: rows for the round with most proposals, none for a tree."""
    rows = -(-_cards(run) // _across(run, width))
    return STRIP + (rows * (_tall(run) + GAP) + 4 if rows else 0)


def draw(scene: Scene, run: Run, frame: Frame, x: float, y: float, width: float) -> None:
    """Draw the five phases and a card for each proposal."""
    _strip(scene, run, frame, x, y, width)
    if not _cards(run):
        return
    across = _across(run, width)
    wide = (width - (across - 1) * GAP) / across
    top = y + STRIP + GAP + 2
    if frame.phase == "verify":
        rows = -(-_cards(run) // across)
        scene.box(
            x - 5, top - 5, width + 10, rows * (_tall(run) + GAP) + 2, fill="p_tint", stroke="p",
            width=2, radius=8,
        )  # fmt: skip
    shown = min(len(frame.status), MOST - 1)
    for k in range(shown):
        place = (x + (k % across) * (wide + GAP), top + (k // across) * (_tall(run) + GAP))
        _card(scene, run, frame, k, *place, wide)
    k = min(shown, _cards(run) - 1)
    if frame.closing != "hidden":
        place = (x + (k % across) * (wide + GAP), top + (k // across) * (_tall(run) + GAP))
        _closing(scene, run, frame, *place, wide)
    left = len(frame.status) - shown
    if left:
        scene.text(x + width, y + STRIP + 2, f"and {left} more", 14, "muted", anchor="right")


def _cards(run: Run) -> int:
    """Return how many cards the run's widest round needs; a tree has a view of its own."""
    if run.is_tree or not len(run):
        return 0
    return min(MOST, int(run.round["nodes"].max()) + 1)


def _tall(run: Run) -> float:
    """Return how high a card is: a block's has room for its own test."""
    return CARD + (20 if in_blocks(run) else 0)


def _across(run: Run, width: float) -> int:
    fits = max(2, int(width // 118))
    return max(3, min(ACROSS, fits, _cards(run)))


def _says(run: Run, frame: Frame, phase: str) -> tuple[str, str]:
    kind = run.round["closing_kind"][frame.round]
    if phase == "draft":
        return "Draft", "from q, left to right" if run.right_to_left else "one by one, from q"
    if phase == "verify":
        return "Verify", "one pass, all at once"
    if phase == "decide":
        return "Accept?", run.header["hints"]["asks"]
    if phase == "rollback":
        return "Roll back", "both caches"
    if kind == 1:
        return "Resample", run.header["hints"]["instead"]
    return ("Bonus" if kind == 2 else "Sample"), "from the target's p"


def _strip(scene: Scene, run: Run, frame: Frame, x: float, y: float, width: float) -> None:
    wide = (width - 4 * GAP) / 5
    now = PHASES.index(frame.phase)
    for i, phase in enumerate(PHASES):
        left, colour = x + i * (wide + GAP), COLOURS[phase]
        on = i == now
        off = not frame.status and phase not in ("verify", "close")
        ground = f"{colour}_tint" if on and colour != "muted" else "panel"
        scene.box(left, y, wide, STRIP, fill=ground, radius=6)
        if on:
            scene.box(left, y + STRIP - 5, wide, 5, fill=colour)
        name, hint = _says(run, frame, phase)
        ink = "text" if on else "muted"
        if wide < SLIM:  # a column of a phone: the name alone, in letters that fit
            size = min(18.0, 18 * (wide - 10) / measure(name, 18, bold=True))
            scene.text(left + wide / 2, y + 32, name, size, ink, bold=on, anchor="middle")
            continue
        name += " ✓" if i < now and not off else ""
        name = f"▸ {name}" if on else name
        scene.text(left + 12, y + 23, name, 18, ink, bold=on, room=wide - 20)
        hint = "not needed" if off else hint
        size = max(11.0, min(14.0, 14 * (wide - 22) / measure(hint, 14)))
        scene.text(left + 12, y + 43, hint, size, ink, room=wide - 14)


def _frame_of(
    scene: Scene, look: Look, x: float, y: float, wide: float, tall: float, focus: bool
) -> None:
    ground = look.ground or "background"
    if look.dash:
        scene.box(x, y, wide, tall, fill=ground, stroke=look.border, width=2, dash=look.dash)
    else:
        scene.box(x, y, wide, tall, fill=ground, stroke=look.border, width=2, radius=6)
    if look.double:
        scene.box(x + 4, y + 4, wide - 8, tall - 8, stroke=look.border, width=1, radius=4)
    if focus:
        scene.box(x - 4, y - 4, wide + 8, tall + 8, stroke="text", width=3, radius=8)


def _card(scene: Scene, run: Run, frame: Frame, node: int, x: float, y: float, wide: float) -> None:
    status = frame.status[node]
    if status == "hidden":
        return
    it = evidence(run, frame.first + node)
    mark = "cut" if status == "accepted" and not it.emitted else status
    look = LOOKS[mark]
    _frame_of(scene, look, x, y, wide, _tall(run), node == frame.node)
    glyph = GLYPHS[mark]
    room = wide - 20 - (24 if glyph else 0)
    bold = mark in ("accepted", "rejected")
    italic = mark in ("never", "cut")
    ink = "text" if mark == "ghost" else look.ink
    scene.text(x + 10, y + 28, trimmed(it.text), 20, ink, bold=bold, italic=italic, room=room)
    if glyph:
        scene.text(x + wide - 10, y + 28, glyph, 20, look.glyph_ink, bold=True, anchor="right")
    _mini(
        scene,
        x + 10,
        y + 42,
        wide - 20,
        "q",
        1.0 if it.one_hot else it.q,
        "1" if it.one_hot else it.said["q"],
    )
    _mini(scene, x + 10, y + 64, wide - 20, "p", it.p, it.said["p"] if frame.seen_p else "")
    said = test_said(run, frame, node)
    if said:
        colour = "accepted_ink" if _passes(run, frame.first + node) else "rejected_ink"
        ink = colour if mark in ("accepted", "rejected") else "text"
        scene.text(x + 10, y + CARD + 10, said, 15, ink, room=wide - 20)


def test_said(run: Run, frame: Frame, node: int) -> str:
    """Return a block's own test at a position, once it is known."""
    if not in_blocks(run) or frame.phase in ("draft", "verify"):
        return ""
    if frame.phase == "decide" and node > frame.node:
        return ""
    return "test ✓ passes" if _passes(run, frame.first + node) else "test ✗ fails"


def _passes(run: Run, row: int) -> bool:
    return bool(run.node["u"][row] < run.node["acceptance"][row])


def _mini(
    scene: Scene, x: float, y: float, wide: float, distribution: str, share: float, number: str
) -> None:
    track = wide - 80
    if track > 20:
        scene.box(x, y + 2, track, 10, fill="panel")
        scene.box(x, y + 2, track * min(1.0, share) if number else 0, 10, fill=distribution)
    said = f"{distribution} {number or '?'}"
    scene.text(x + wide, y + 13, said, 15, f"{distribution}_ink", anchor="right")


def _closing(scene: Scene, run: Run, frame: Frame, x: float, y: float, wide: float) -> None:
    r = frame.round
    mark = frame.closing if run.round["closing_emitted"][r] else "cut"
    look = LOOKS[mark]
    _frame_of(scene, look, x, y, wide, _tall(run), frame.phase == "close")
    text = trimmed(run.text(int(run.round["closing"][r])))
    scene.text(x + 10, y + 28, text, 20, look.ink, bold=mark != "cut", room=wide - 46)
    glyph = GLYPHS[mark]
    scene.text(x + wide - 10, y + 28, glyph, 20, look.glyph_ink, bold=True, anchor="right")
    scene.text(x + 10, y + 55, frame.closing, 15, "p_ink", room=wide - 20)
    p = float(run.round["closing_p"][r])
    _mini(scene, x + 10, y + 64, wide - 20, "p", p, format_number(p))
