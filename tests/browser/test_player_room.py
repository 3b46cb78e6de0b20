"""The player's page where room or colours are few: large trees, frames in a page, high contrast."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import specviz as sv
from specviz.figures.theme import DARK, LIGHT, contrast
from tests.browser.pages import INKS, Opened, hexadecimal
from tests.figures.runs import story, trace_of

pytestmark = pytest.mark.browser


def test_a_tree_of_hundreds_plays_and_stays_bounded(browser: Any, tmp_path: Path) -> None:
    model = sv.tabular.TabularModel
    pair = sv.tabular.TabularPair(
        model.random(20, order=1, seed=0), model.random(20, order=1, seed=1)
    )
    trace = sv.generate(
        pair, [0], drafter=sv.Tree((8, 8, 4)), max_new_tokens=4, seed=0, progress=False
    )
    opened = Opened(browser, sv.to_html(trace, tmp_path / "big.html"))
    for place in ("phase=verify", "phase=decide&node=0", "phase=close"):
        opened.page.goto(f"{(tmp_path / 'big.html').as_uri()}#round=0&{place}")
        opened.until(lambda: opened.page.locator(".svp-fold:visible").count() > 0)
        assert opened.page.evaluate("document.documentElement.scrollHeight") < 2_400
        assert opened.page.locator(".svp-tree *").count() < 400
    assert opened.page.locator(".svp-maskon").get_attribute("d")
    assert not opened.complaints


def test_in_high_contrast_bars_and_what_is_current_can_be_seen(
    browser: Any, tmp_path: Path
) -> None:
    where = sv.to_html(story(), tmp_path / "story.html")
    shown = browser.new_context(forced_colors="active").new_page()
    shown.goto(f"{where.as_uri()}#round=1&node=1&details")
    shown.wait_for_selector(".svp-card[data-focus]")

    def style(selector: str, name: str) -> str:
        return str(
            shown.locator(selector).first.evaluate(f"(it) => getComputedStyle(it)['{name}']")
        )

    ground = style(".svp", "backgroundColor")
    for bar in (".svp-card .svp-track i.svp-q", ".svp-row i.svp-p", ".svp-block", ".svp-mover"):
        assert style(bar, "backgroundColor") != ground, bar
    for current in (".svp-step[data-now]", ".svp-w[data-focus]", ".svp-card[data-focus]"):
        assert style(current, "outlineStyle") == "solid", current
    assert style(".svp-step:not([data-now])", "outlineStyle") == "none"


HOST = """<style>:root { --jp-layout-color1: %s; --jp-layout-color2: %s; --jp-border-color1: %s;
--jp-ui-font-color1: %s; }</style></head>"""
LIGHT_ONLY = HOST % ("white", "#eee", "#bdbdbd", "rgba(0, 0, 0, .87)")
DARK_ONLY = HOST % ("#111111", "#424242", "#616161", "rgba(255, 255, 255, 1)")


@pytest.mark.parametrize(("host", "ground"), [(LIGHT_ONLY, "#ffffff"), (DARK_ONLY, "#111111")])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_tints_are_of_the_theme_of_a_host_that_does_not_name_it(
    browser: Any, tmp_path: Path, host: str, ground: str, scheme: str
) -> None:
    """An exported notebook has ipywidgets' colours, and its reader any system."""
    where = sv.to_html(story(), tmp_path / "story.html", guided=True)
    where.write_text(where.read_text("utf-8").replace("</head>", host, 1), "utf-8")
    opened = Opened(browser, where, "#round=1&node=1", color_scheme=scheme)
    low = {
        words: (ink, seen)
        for words, ink, seen in opened.page.evaluate(INKS)
        if contrast(hexadecimal(ink), hexadecimal(seen)) < 4.5
    }
    assert low == {}
    own = opened.page.locator(".svp").evaluate("it => getComputedStyle(it).backgroundColor")
    assert hexadecimal(own) == ground


def test_a_dark_system_prints_on_white(browser: Any, tmp_path: Path) -> None:
    where = sv.to_html(story(), tmp_path / "story.html", guided=True)
    opened = Opened(browser, where, "#round=1&node=1", color_scheme="dark")
    ground = "it => getComputedStyle(it).backgroundColor"
    assert hexadecimal(opened.page.locator(".svp").evaluate(ground)) == DARK.background
    opened.page.emulate_media(media="print", color_scheme="dark")
    assert hexadecimal(opened.page.locator(".svp").evaluate(ground)) == LIGHT.background
    assert hexadecimal(opened.page.locator("body").evaluate(ground)) == LIGHT.background
    for words, ink, seen in opened.page.evaluate(INKS):
        assert contrast(hexadecimal(ink), hexadecimal(seen)) >= 4.5, words


def test_right_to_left_text_is_in_reading_order_and_cards_in_the_order_of_drawing(
    browser: Any, tmp_path: Path
) -> None:
    chips = [(" אחת", "accepted"), (" שתיים", "accepted"), (" שלוש", "rejected")]
    trace = trace_of([(chips, (" ארבע", "correction"))])
    opened = Opened(browser, sv.to_html(trace, tmp_path / "rtl.html"), "#round=0&phase=close")
    left = "them => them.map((one) => one.getBoundingClientRect().left)"
    text = opened.page.locator(".svp-text .svp-t .svp-w:visible").evaluate_all(left)
    assert len(text) == 4 and text == sorted(text, reverse=True)
    cards = opened.page.locator(".svp-card:visible").evaluate_all(left)
    assert len(cards) == 4 and cards == sorted(cards)
    assert "Cards stand in the order of drawing" in opened.words(".svp-more")


@pytest.mark.parametrize("options", [{"views": ["text", "draw"]}, {"height": 420}])
def test_a_snippets_height_is_kept(
    browser: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], options: dict[str, Any]
) -> None:
    sv.to_html(story(), tmp_path / "inner.html", **options)
    (tmp_path / "outer.html").write_text(f"<!doctype html>{capsys.readouterr().out}", "utf-8")
    for width in (360, 1200):
        shown = browser.new_context(viewport={"width": width, "height": 900}).new_page()
        shown.goto((tmp_path / "outer.html").as_uri())
        inner = shown.frame_locator("iframe").locator("html")
        shown.frame_locator("iframe").locator(".svp-bar").wait_for()
        high, needs = inner.evaluate("(it) => [innerHeight, it.scrollHeight]")
        assert needs <= high, width
        bar = shown.frame_locator("iframe").locator(".svp-bar").bounding_box()
        frame = shown.locator("iframe").bounding_box()
        assert bar["y"] + bar["height"] <= frame["y"] + frame["height"] + 1
