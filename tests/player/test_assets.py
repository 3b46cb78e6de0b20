"""The script is whole, needs nothing from outside, and its colours can be read."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

from specviz.figures.theme import DARK, LIGHT, Palette, contrast
from specviz.player.assets import (
    _EXPORT,
    _IMPORT,
    ENTRY,
    LAB,
    LAB_PAGE,
    LAB_SHEETS,
    PAGE_ENTRY,
    SHEETS,
    packed,
    script,
)

SOURCES = sorted(
    (path.name, path.read_text("utf-8"))
    for path in files("specviz.player").joinpath("js").iterdir()
    if path.name.endswith(".js")
)


def test_every_module_but_the_loaders_is_in_the_page() -> None:
    for name, source in SOURCES:
        if name.endswith("_loader.js"):
            continue
        pages = script(PAGE_ENTRY) + script(LAB_PAGE)
        assert f"const m_{name.removesuffix('.js')}=" in pages, name
        assert re.search(r"^// \S", source), f"{name} does not say what it is"


@pytest.mark.parametrize("entry", [ENTRY, PAGE_ENTRY, LAB, LAB_PAGE])
def test_joining_leaves_no_import_and_no_comment(entry: str) -> None:
    source = script(entry)
    assert not re.search(r"^(import|export (?!default))", source, re.MULTILINE)
    assert not re.search(r"^\s*(//|/\*\*)", source, re.MULTILINE)
    assert len(packed(entry)) < 60_000


def test_what_a_module_imports_the_joined_one_exports() -> None:
    exported = {name: set(_EXPORT.findall(source)) for name, source in SOURCES}
    for name, source in SOURCES:
        for names, other in _IMPORT.findall(source):
            wanted = {one.split(" as ")[0].strip() for one in names.strip("{} ").split(",")}
            assert wanted - {""} <= exported[f"{other}.js"], f"{name} imports from {other}"


@pytest.mark.parametrize(("name", "source"), SOURCES)
def test_text_never_becomes_markup_and_nothing_is_fetched(name: str, source: str) -> None:
    for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
        assert word not in source, f"{name} uses {word}"
    assert not re.search(r"\bfetch\(|XMLHttpRequest|WebSocket|https?://(?!www\.w3\.org)", source)


# What is written on what: text colour, ground.
WRITTEN = [
    *[("text", ground) for ground in ("background", "panel", "p_tint", "q_tint")],
    *[("text", ground) for ground in ("accepted_tint", "rejected_tint")],
    *[("muted", ground) for ground in ("background", "panel")],
    *[("q_ink", ground) for ground in ("background", "q_tint", "accepted_tint", "rejected_tint")],
    *[("p_ink", ground) for ground in ("background", "p_tint", "accepted_tint", "rejected_tint")],
    *[("p_ink", ground) for ground in ("q_tint",)],
    ("accepted_ink", "accepted_tint"),
    ("accepted_ink", "background"),
    ("rejected_ink", "rejected_tint"),
]


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_what_is_written_can_be_read(colours: Palette) -> None:
    low = {
        pair: round(contrast(getattr(colours, pair[0]), getattr(colours, pair[1])), 2)
        for pair in WRITTEN
        if contrast(getattr(colours, pair[0]), getattr(colours, pair[1])) < 4.5
    }
    assert low == {}


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_bars_and_borders_stand_out(colours: Palette) -> None:
    # q's orange is named in the key and beside every bar; the others reach what graphics need
    for name in ("p", "accepted", "rejected"):
        assert contrast(getattr(colours, name), colours.background) >= 3


def test_a_pale_ink_would_be_reported() -> None:
    assert contrast("#999999", "#ffffff") < 4.5


def test_the_sheet_touches_nothing_but_the_player() -> None:
    text = "".join(
        files("specviz.player").joinpath(f"css/{name}").read_text("utf-8")
        for name in {*SHEETS, *LAB_SHEETS}
    )
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    text = re.sub(r"@keyframes[^{]*\{(?:[^{}]*\{[^{}]*\})*[^{}]*\}", "", text)
    for selectors in re.findall(r"([^{}]+)\{", text):
        if selectors.strip().startswith("@"):
            continue
        for selector in re.split(r",(?![^(]*\))", selectors):
            assert selector.strip().startswith(".svp"), selector
