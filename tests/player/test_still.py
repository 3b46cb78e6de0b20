"""A still shows what the frame says, whole, in both themes, in letters that exist."""

from __future__ import annotations

import io
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, features

import specviz as sv
from specviz.core.formatting import format_number
from specviz.core.trace.trace import Trace
from specviz.figures.theme import DARK, LIGHT, contrast
from specviz.player.picture import view_caches
from specviz.player.picture.colours import GROUNDS, INKS
from specviz.player.picture.layout import DRAWN, MARGIN, pictured
from specviz.player.picture.marks import GLYPHS, TOKEN_STYLES
from specviz.player.picture.pixels import paint
from specviz.player.picture.scene import (
    Letters,
    Line,
    Scene,
    drawable,
    fitted,
    font,
    measure,
    wrapped,
)
from specviz.player.picture.view_text import _word, broken, in_reading_order, words_at
from specviz.player.projection import run_of
from specviz.player.steps.frames import frame_at
from specviz.player.steps.views import slots_at
from specviz.player.steps.words import evidence, trimmed
from specviz.player.still import DRAWABLE, SUFFIXES, Still, still
from tests.figures.runs import hostile, story, trace_of
from tests.player.runs import WORDS, branching, decoded, pair

EVERYTHING = (*DRAWN, "caption")


def words(scene: Scene) -> str:
    """Everything that is written on a scene."""
    return "\n".join(item.text for item in scene.items if isinstance(item, Letters))


def scenes(trace: Trace, width: float = 1280) -> list[Scene]:
    run = run_of(trace)
    some = range(0, run.steps, 1 + run.steps // 100)
    return [pictured(run, frame_at(run, step), EVERYTHING, width) for step in some]


def bushy() -> Trace:
    """One round with a tree of 156 proposals, every fourth judged."""
    parents = [-1] * 5 + [p for p in range(31) for _ in range(5)][:151]
    fates = ["accepted", "rejected", "never examined", "never examined"]
    proposals = [(f" word{i}", fates[i % 4]) for i in range(156)]
    return trace_of([(proposals, (" end", "correction"))], tree=[parents])


@pytest.mark.parametrize("run", [story, branching, decoded, hostile, bushy])
@pytest.mark.parametrize("width", [420, 1280])
def test_no_step_changes_the_height_or_leaves_the_picture(run: Any, width: float) -> None:
    made = scenes(run(), width)
    assert len({scene.height for scene in made}) == 1
    for scene in made:
        for item in scene.items:
            if isinstance(item, Letters):
                long = measure(item.text, item.size, item.bold, item.italic)
                left = item.x - {"left": 0, "middle": long / 2, "right": long}[item.anchor]
                assert left >= 0 and left + long <= width + 1, item
                assert 0 < item.y < scene.height
            elif isinstance(item, Line):
                assert all(0 <= x <= width and 0 <= y <= scene.height for x, y in item.points)
            else:
                assert item.x >= 0 and item.x + item.w <= width + 0.5, item
                assert item.y >= 0 and item.y + item.h <= scene.height, item


def test_the_first_rejection_is_shown_by_default() -> None:
    picture = still(story())
    assert picture.alt.startswith("Round 1. The draft gave “an”")
    said = words(picture.scene)
    assert "an" in said and "✗" in said
    assert "round 1 (the last is 4)" in said


def test_numbers_of_the_proposal_are_on_it() -> None:
    trace = decoded()
    at = [(r.index, n.index) for r in trace.rounds for n in r.nodes if n.verdict == "rejected"]
    for round_, node in at[:4]:
        said = words(still(trace, round=round_, node=node).scene)
        run = run_of(trace)
        numbers = evidence(run, int(run.start[round_]) + node).said
        for shown in numbers.values():
            assert shown in said, (shown, said)
        bars = words(still(trace, round=round_, node=node, views=["bars"]).scene)
        assert format_number(trace.rounds[round_].nodes[node].overlap) in bars


def test_verdicts_are_told_without_colour() -> None:
    """Every fate has a sign, a border or a line of its own."""
    looks = {
        mark: (GLYPHS[mark], look.dash, look.double, look.struck is not None)
        for mark, look in TOKEN_STYLES.items()
    }
    del looks["cut"]  # never examined and past the end differ by the sign alone
    assert len(set(looks.values())) == len(looks)
    assert GLYPHS["cut"] != GLYPHS["never"]


@pytest.mark.parametrize("colours", [LIGHT, DARK])
def test_what_is_written_can_be_read(colours: Any) -> None:
    for ground in GROUNDS:
        for ink in INKS[ground]:
            assert contrast(getattr(colours, ink), getattr(colours, ground)) >= 4.5, (ground, ink)
    for look in TOKEN_STYLES.values():
        ground = getattr(colours, look.ground or "background")
        for ink in (look.ink, look.glyph_ink):
            assert contrast(getattr(colours, ink), ground) >= 4.5, look


def test_every_sign_has_a_letter_in_every_face() -> None:
    signs = "".join(GLYPHS.values()) + "▸×−Σ≤“”…⏎␣⟨⟩"
    for bold in (False, True):
        for italic in (False, True):
            assert drawable(signs, bold, italic) == signs
    assert drawable("狐") == "⟨U+72D0⟩"


def test_hostile_tokens_are_letters() -> None:
    picture = still(hostile(), round=0, size=900)
    ET.fromstring(picture.svg)
    assert "<script" not in picture.svg.lower()
    assert "<img" not in picture.svg.lower()
    assert still(hostile(), round=14, size=900).png.startswith(b"\x89PNG")  # "$x^2$ and \$"
    assert "$x^2$ and" in words(still(hostile(), round=14, size=900).scene)


def test_it_is_vector_and_says_what_it_shows() -> None:
    picture = still(decoded(), round=3)
    root = ET.fromstring(picture.svg)
    assert root.attrib["role"] == "img"
    assert root.attrib["aria-label"] == picture.alt
    assert (root.attrib["width"], root.attrib["height"]) == ("1280", "720")
    assert "<image" not in picture.svg
    assert not re.search(r'href="(?!#)', picture.svg)  # nothing outside itself
    assert picture.svg == still(decoded(), round=3).svg
    assert picture.pdf.startswith(b"%PDF")


def test_a_png_has_the_themes_colours() -> None:
    for theme, colours in (("light", LIGHT), ("dark", DARK)):
        with Image.open(io.BytesIO(still(decoded(), theme=theme).png)) as held:
            image = held.convert("RGB")
        assert image.size == (2560, 1440)
        seen = {"#{:02x}{:02x}{:02x}".format(*c) for _, c in image.getcolors(1 << 24) or []}
        for name in ("background", "panel", "p", "q", "accepted", "rejected_tint", "text"):
            assert getattr(colours, name) in seen, (theme, name)


def test_verdict_and_theme_change_the_picture() -> None:
    trace = story()
    pictures = [
        still(trace, round=1, node=0).png,
        still(trace, round=1, node=1).png,
        still(trace, round=1, node=1, theme="dark").png,
        still(trace, round=1, phase="draft").png,
        still(trace, round=1, phase="verify").png,
        still(trace, round=1, phase="close").png,
        still(trace, round=1, phase="rollback").png,
    ]
    assert len(set(pictures)) == len(pictures)


@pytest.mark.parametrize("name", DRAWABLE)
def test_a_view_stands_alone(name: str) -> None:
    trace = branching() if name == "tree" else decoded()
    picture = still(trace, views=[name], size=900)
    assert picture.scene.height < 600
    assert len(picture.scene.items) > 3


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_it_is_written_by_the_suffix(tmp_path: Path, suffix: str) -> None:
    where = tmp_path / f"a{suffix}"
    made = still(story(), where)
    assert isinstance(made, Still)
    data = where.read_bytes()
    assert data == {".svg": made.svg.encode(), ".png": made.png, ".pdf": made.pdf}[suffix]
    assert [path.name for path in tmp_path.iterdir()] == [where.name]


def test_it_is_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    where = tmp_path / "a.png"
    still(story(), where)
    before = where.read_bytes()

    def full(self: Path, target: Path) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="disk full"):
        still(story(), where, theme="dark")
    assert where.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["a.png"]


def test_it_shows_itself() -> None:
    made = still(story(), size="paper")
    png, shown = made._repr_png_()
    assert png == made.png
    assert shown["width"] == 760  # of pixels that are finer
    assert made._repr_svg_() == made.svg
    assert repr(made).startswith("<Still: 760 × ")
    assert made.scene.width == 760


@pytest.mark.parametrize(
    ("wrong", "kind", "said"),
    [
        (
            {"theme": "auto"},
            ValueError,
            "got 'auto': a picture follows no system",
        ),
        ({"views": "text"}, TypeError, "views must be a list of names"),
        ({"views": []}, ValueError, "views must be a list of names out of 'text'"),
        (
            {"views": ["words"]},
            ValueError,
            r"views must be a list of names .*got \['words'\]",
        ),
        ({"views": ["tree"]}, ValueError, "views asks only for the tree, and this run has none"),
        (
            {"size": "poster"},
            TypeError,
            "size must be 'slide', '16:9', 'paper' or a width in pixels",
        ),
        ({"size": 10}, ValueError, "size must be 320 to 4,000 pixels, got 10"),
        ({"round": 99}, ValueError, r"round must be within 0\.\.4, got 99"),
        ({"path": "a.bmp"}, ValueError, r"path must end in \.svg or \.png or \.pdf, got 'a\.bmp'"),
        ({"path": 3}, TypeError, "path must be a file name"),
        ({"path": "no-such-folder/a.svg"}, FileNotFoundError, "the folder of path does not exist"),
    ],
)
def test_wrong_arguments_are_refused(
    wrong: dict[str, Any], kind: type[Exception], said: str
) -> None:
    with pytest.raises(kind, match=said):
        still(story(), **wrong)


def test_what_is_no_trace_is_refused() -> None:
    with pytest.raises(TypeError, match="trace must be a Trace, got str"):
        sv.still("story")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="trace has no rounds"):
        sv.still(Trace({"rule": "rejection"}, np.array([1])))


def test_a_long_token_is_cut_and_a_long_text_is_broken() -> None:
    assert fitted("a" * 100, 100, 16).endswith("…")
    assert measure(fitted("a" * 100, 100, 16), 16) <= 100
    lines = wrapped("one two three " + "x" * 200, 120, 16)
    assert "".join(lines).replace(" ", "") == "onetwothree" + "x" * 200
    assert all(measure(line, 16) <= 120 for line in lines)


def test_text_from_right_to_left_stands_in_its_reading_order() -> None:
    def order(words_: str, width: float = 400) -> str:
        placed = broken([_word(f" {one}", "accepted") for one in words_.split()], width)
        seen = sorted(in_reading_order(placed, width), key=lambda one: (one.line, one.x))
        assert all(0 <= one.x <= one.x + one.width <= width + 1 for one in seen)
        return " ".join(one.word.text for one in seen)

    assert order("one two") == "one two"
    assert order("one אחת שתיים two") == "one שתיים אחת two"
    assert order("one אחת … שתיים … two") == "one שתיים … אחת … two"
    assert order("אחת one two שתיים") == "שתיים one two אחת"
    assert order("אחת שתיים", 90) == "אחת שתיים"  # a line each
    assert order("صباح الخير") == "الخير صباح"
    pair_ = sv.tabular.TabularPair(pair().target, pair().draft, words=[" אחת"] * len(WORDS))
    trace = sv.generate(pair_, [2], gamma=2, max_new_tokens=5, seed=1, progress=False)
    assert "from q, left to right" in words(still(trace).scene)


def test_letters_from_right_to_left_are_drawn_in_their_order() -> None:
    """What a face draws that knows no direction, given the letters in the order of sight."""
    if not features.check("raqm"):
        pytest.skip("this Pillow has no raqm")
    pictures = []
    for text, plain in (("אבג", False), ("גבא", True), ("אבג", True)):
        scene = Scene(80, 40)
        scene.text(10, 30, text, 24)
        with pytest.MonkeyPatch.context() as patch:
            if plain:
                patch.setattr("specviz.player.picture.pixels.direction", lambda text: "L")
            pictures.append(np.asarray(paint(scene, LIGHT)))
    assert np.array_equal(pictures[0], pictures[1])
    assert not np.array_equal(pictures[0], pictures[2])


def test_a_round_of_many_proposals_says_how_many_are_not_shown() -> None:
    many = [(f" w{i}", "accepted") for i in range(40)]
    picture = still(trace_of([(many, (" end", "bonus"))]), size=1280)
    assert "and 24 more" in words(picture.scene)


@pytest.mark.parametrize("width", [400, 1280])
def test_the_newest_places_of_a_cache_are_drawn_and_what_is_left_out_is_marked(width: int) -> None:
    run = run_of(decoded())
    marked = 0
    for step in range(run.steps):
        frame = frame_at(run, step)
        _, slots = slots_at(run, frame, "target")
        strip = Scene(width)
        view_caches.draw(strip, run, frame, 0, 0, width)
        y = strip.items[0].y + 27  # of the first strip's letters, below its title
        drawn = [item.text for item in strip.items if isinstance(item, Letters) and item.y == y]
        cells = [trimmed(slot.text) or "·" for slot in slots if slot.state != "empty"]
        if not cells:  # before the first pass
            continue
        shown = drawn[: len(cells)]
        assert cells[-1].startswith(shown[-1].rstrip("…"))
        if len(shown) < len(cells):
            assert shown[0] == "…"
            marked += 1
    assert marked or width == 1280


def test_names_of_phases_and_legends_fit_a_narrow_picture() -> None:
    for scene in scenes(decoded(), 400):
        drawn = [item for item in scene.items if isinstance(item, Letters)]
        said = {item.text for item in drawn}
        assert {"Draft", "Verify", "Accept?", "Roll back"} <= said
        for item in drawn:
            long = measure(item.text, item.size, item.bold, item.italic)
            left = item.x - {"left": 0, "middle": long / 2, "right": long}[item.anchor]
            assert left + long <= 400 - MARGIN + 1, item


def test_no_token_is_drawn_over_the_next_one() -> None:
    for trace in (hostile(), decoded()):
        run = run_of(trace)
        for step in range(run.steps):
            for one in broken(words_at(run, frame_at(run, step)), 1224):
                look = TOKEN_STYLES.get(one.word.mark)
                style = (look.bold, look.italic) if look else (False, False)
                text = drawable(one.word.text, *style)
                wide = font(24, *style).getlength(text)
                sign = font(15, True).getlength(GLYPHS.get(one.word.mark, ""))
                sign = sign if one.word.mark in ("rejected", "correction", "bonus") else 0
                assert wide + sign <= one.width + 1, text
