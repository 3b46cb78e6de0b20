"""The phase: draft one by one, verify in one pass, accept or reject, resample, roll back."""

from __future__ import annotations

from specviz.core.formatting import format_number
from specviz.core.names import PHASES
from specviz.player.picture import view_text
from specviz.player.picture.marks import GLYPHS, TOKEN_STYLES, TokenStyle
from specviz.player.picture.scene import Scene, measure, wrapped
from specviz.player.steps.frames import Frame
from specviz.player.steps.run import Run
from specviz.player.steps.sentences import in_blocks
from specviz.player.steps.words import evidence, trimmed

SLIM = 126.0
"""Below this width a phase has no room for a hint."""
STRIP, CARD, GAP = 56.0, 88.0, 8.0
SMALL, LARGE, BESIDE, MODEL = 130.0, 165.0, 18.0, 44.0
"""Widths of the draft's and the target's box, the gap beside them, their height on a phone."""
NARROW, LINES = 700.0, 2
ACROSS, MOST = 9, 17
"""Cards in a row, and of a round, the closing token's included."""
COLOURS = {"draft": "q", "verify": "p", "decide": "accepted", "close": "p", "rollback": "muted"}


def height(run: Run, width: float, text: bool = True) -> float:
    """Return how high the view is: rows for the round with most proposals, none for a tree."""
    return STRIP + 10 + _stage(run, width, text)


def _stage(run: Run, width: float, text: bool) -> float:
    """Return how high the part between the models is."""
    if width < NARROW:
        return MODEL + 10 + _deck(run, width)
    written = view_text.height(run, _middle(width), LINES) + 8 if text else 0.0
    return max(120.0, written + _deck(run, _middle(width)))


def _middle(width: float) -> float:
    return width - SMALL - LARGE - 2 * BESIDE


def _deck(run: Run, width: float) -> float:
    """Return how high the cards are."""
    rows = -(-_cards(run) // _across(run, width))
    return rows * (_tall(run) + GAP) + 4 if rows else 0.0


def draw(
    scene: Scene, run: Run, frame: Frame, x: float, y: float, width: float, text: bool = True
) -> None:
    """Draw the five phases, and the cards between the two models, with the text above them."""
    _strip(scene, run, frame, x, y, width)
    top, high = y + STRIP + 10, _stage(run, width, text)
    if width < NARROW:
        half = (width - GAP) / 2
        _model(scene, run, frame, "draft", x, top, half, MODEL)
        _model(scene, run, frame, "target", x + half + GAP, top, half, MODEL)
        _deal(scene, run, frame, x, top + MODEL + 14, width)
        return
    left, wide = x + SMALL + BESIDE, _middle(width)
    tall = min(110.0, high)
    _model(scene, run, frame, "draft", x + 2, top + high - tall - 2, SMALL - 2, tall)
    _model(scene, run, frame, "target", left + wide + BESIDE, top + 2, LARGE - 2, high - 4)
    if text:
        view_text.draw(scene, run, frame, left, top, wide, LINES)
        top += view_text.height(run, wide, LINES) + 8
    _deal(scene, run, frame, left, top + 4, wide)


def _model(
    scene: Scene, run: Run, frame: Frame, which: str, x: float, y: float, wide: float, high: float
) -> None:
    """Draw a model as a thing: its name, what it does, and a strong border while it works."""
    name, says = run.header["hints"]["models"][which]
    colour = "q" if which == "draft" else "p"
    at_work = "draft" if which == "draft" else ("verify", "decide", "close")
    on = frame.phase in at_work
    ground = f"{colour}_tint" if on else "panel"
    scene.box(x, y, wide, high, fill=ground, stroke=colour, width=5 if on else 2, radius=10)
    size = 19.0 if which == "draft" else 24.0
    slim = high < 70
    middle = x + wide / 2
    base = y + high / 2 + (size * 0.36 if slim else -10)
    scene.text(middle, base, name, size, f"{colour}_ink", bold=True, anchor="middle",
               room=wide - 12)  # fmt: skip
    if slim:
        return
    for i, line in enumerate(wrapped(says, wide - 16, 14.5)[:3]):
        scene.text(middle, base + 22 + 19 * i, line, 14.5, anchor="middle", room=wide - 10)


def _deal(scene: Scene, run: Run, frame: Frame, x: float, top: float, width: float) -> None:
    """Draw a card for each proposal, and one for the token that closes the round."""
    if not _cards(run):
        return
    across = _across(run, width)
    wide = (width - (across - 1) * GAP) / across
    if frame.phase == "verify":
        rows = -(-_cards(run) // across)
        scene.box(
            x - 5, top - 5, width + 10, rows * (_tall(run) + GAP) + 2, fill="p_tint", stroke="p",
            width=3, radius=8,
        )  # fmt: skip
    shown = min(len(frame.status), MOST - 1)

    def place(k: int) -> tuple[float, float]:
        return x + (k % across) * (wide + GAP), top + (k // across) * (_tall(run) + GAP)

    for k in range(shown):
        _card(scene, run, frame, k, *place(k), wide)
    k = min(shown, _cards(run) - 1)
    if frame.closing != "hidden":
        _closing(scene, run, frame, *place(k), wide)
    elif frame.seen_p and frame.status:
        left, y = place(k)
        scene.box(left, y, wide, _tall(run), fill="background", stroke="p", width=2, dash=(2, 3))
        for i, line in enumerate(wrapped("one more p, after the last", wide - 24, 15)[:3]):
            scene.text(left + 10, y + 30 + 20 * i, line, 15, "p_ink", room=wide - 16)
    more = len(frame.status) - shown
    if more:
        scene.text(x + width, top - 5, f"and {more} more", 14, "muted", anchor="right")


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
    scene: Scene, look: TokenStyle, x: float, y: float, wide: float, tall: float, focus: bool
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
    look = TOKEN_STYLES[mark]
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
    look = TOKEN_STYLES[mark]
    _frame_of(scene, look, x, y, wide, _tall(run), frame.phase == "close")
    text = trimmed(run.text(int(run.round["closing"][r])))
    scene.text(x + 10, y + 28, text, 20, look.ink, bold=mark != "cut", room=wide - 46)
    glyph = GLYPHS[mark]
    scene.text(x + wide - 10, y + 28, glyph, 20, look.glyph_ink, bold=True, anchor="right")
    scene.text(x + 10, y + 55, frame.closing, 15, "p_ink", room=wide - 20)
    p = float(run.round["closing_p"][r])
    _mini(scene, x + 10, y + 64, wide - 20, "p", p, format_number(p))
