"""The stage in a real browser: what a first visitor sees, and what waits behind "Details"."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import specviz as sv
from tests.browser.pages import Opened

pytestmark = pytest.mark.browser

SMALLEST = """() => Math.min(...[...document.querySelectorAll('.svp *')].filter(one =>
  one.checkVisibility({opacityProperty: true, visibilityProperty: true}) &&
  getComputedStyle(one).position !== 'absolute' && !one.closest('.svp-h') &&
  [...one.childNodes].some(n => n.nodeType === 3 && n.textContent.trim())
).map(one => parseFloat(getComputedStyle(one).fontSize)))"""
KEPT = "#round=0&phase=decide&node=1"


@pytest.fixture(scope="module")
def where(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = sv.recorded("worked/the-quick-brown")
    return sv.to_html(run, tmp_path_factory.mktemp("stage") / "worked.html")


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = sv.recorded("stories/draft-model")
    return sv.to_html(run, tmp_path_factory.mktemp("stage") / "real.html")


def test_a_first_visitor_sees_the_stage_whole_and_a_round_that_explains(
    browser: Any, real: Path
) -> None:
    opened = Opened(browser, real, viewport={"width": 1280, "height": 800})
    run = sv.player.projection.run_of(sv.recorded("stories/draft-model"))
    assert opened.position == f"{run.header['opening']} draft" and run.header["opening"] > 0
    assert "one pass of the expensive target checks them all" in opened.words(".svp-opening")
    assert opened.page.locator(".svp-caption").is_visible()
    for hidden in (".svp-v-bars", ".svp-v-caches", ".svp-v-measures", ".svp-find"):
        assert not opened.page.locator(hidden).is_visible(), hidden
    small, large = (opened.page.locator(f".svp-model-{one}").bounding_box()
                    for one in ("draft", "target"))  # fmt: skip
    assert small["width"] * small["height"] < 0.6 * large["width"] * large["height"]
    for key in ["Home", *["ArrowRight"] * 12]:
        opened.press(key)
        assert opened.page.evaluate("document.documentElement.scrollHeight") <= 800, key
        assert opened.page.evaluate(SMALLEST) >= 13, key


def test_details_are_remembered_in_the_link(browser: Any, where: Path) -> None:
    opened = Opened(browser, where, KEPT)
    opened.page.click('[data-testid="svp-details"]')
    assert opened.page.locator(".svp-v-bars").is_visible()
    address = opened.page.url
    assert address.endswith("&details")
    again = Opened(browser, where, address[address.index("#") :])
    assert again.page.locator(".svp-v-bars").is_visible()
    assert again.position == "0 decide"
    again.press("e")
    assert not again.page.locator(".svp-v-bars").is_visible()
    assert "details" not in again.page.url


def test_the_numbers_of_the_worked_example_are_on_the_stage(browser: Any, where: Path) -> None:
    opened = Opened(browser, where, KEPT, reduced_motion="reduce")
    said = opened.words(".svp-panel")
    for words in ("✗ rejected", "p / q = .10 / .20 = .50", "falls on it: .70, above the green"):
        assert words in said
    opened.press("ArrowRight")
    assert "2. The striped parts side by side: .30 of 1" in opened.words(".svp-panel")
    opened.press("w")
    assert "Green and hatched add up to p" in opened.words(".svp-panel")
    opened.press("w", "ArrowRight")
    assert "gave 2 tokens" in opened.words(".svp-caption")


def test_the_drafts_cache_lacks_a_token_after_all_were_accepted(
    browser: Any, tmp_path: Path
) -> None:
    trace = sv.recorded("worked/capital-of-france")
    opened = Opened(browser, sv.to_html(trace, tmp_path / "a.html"), "#round=0&phase=rollback")
    lacking = opened.page.locator('.svp-panel .svp-cell[data-state="lacks"]')
    assert lacking.count() == 1 and lacking.inner_text() == "large"
    ground = "it => getComputedStyle(it).backgroundColor"
    new = [
        opened.page.locator(f'.svp-panel [data-of="{one}"] [data-state="new"]').first.evaluate(
            ground
        )
        for one in ("target", "draft")
    ]
    assert new[0] != new[1]  # caches have colours of their own


def test_on_a_telephone_the_controls_are_in_view_and_large_enough(browser: Any, real: Path) -> None:
    opened = Opened(browser, real, viewport={"width": 390, "height": 700})
    for key in ("Home", "n"):
        opened.press(key)
        bar = opened.page.locator(".svp-bar").bounding_box()
        assert bar["y"] + bar["height"] <= 701
        sizes = opened.page.locator(".svp-bar button:visible").evaluate_all(
            "all => all.map(one => [one.offsetWidth, one.offsetHeight])"
        )
        assert len(sizes) >= 5
        assert all(wide >= 40 and high >= 40 for wide, high in sizes), sizes
