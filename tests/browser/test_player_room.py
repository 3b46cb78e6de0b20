"""The player's page where room or colours are few: large trees, frames in a page, high contrast."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import specviz as sv
from tests.browser.pages import Opened
from tests.figures.runs import story

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
    shown.goto(f"{where.as_uri()}#round=1&node=1")
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
