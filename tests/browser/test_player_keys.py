"""Where the keyboard goes: it outlives the control that had it, and finds the only player."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import specviz as sv
from specviz.player.page import page
from tests.browser.pages import Opened
from tests.figures.runs import story
from tests.player.runs import decoded

pytestmark = pytest.mark.browser

FOCUS = "document.activeElement.className || document.activeElement.tagName"
REJECTED = "#round=1&node=1&details"


@pytest.fixture(scope="module")
def where(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sv.to_html(story(), tmp_path_factory.mktemp("keys") / "story.html")


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sv.to_html(decoded(), tmp_path_factory.mktemp("keys") / "run.html")


def dragged(opened: Opened) -> None:
    """Drag u with the mouse, to about 0.2."""
    slider = opened.page.locator(".svp-test .svp-drag")
    slider.evaluate("it => it.scrollIntoView({block: 'center'})")
    box = slider.bounding_box()
    y = box["y"] + box["height"] / 2
    opened.page.mouse.move(box["x"] + box["width"] * 0.9, y)
    opened.page.mouse.down()
    opened.page.mouse.move(box["x"] + box["width"] * 0.5, y, steps=3)
    opened.page.mouse.move(box["x"] + box["width"] * 0.2, y, steps=3)
    opened.page.mouse.up()
    assert opened.page.locator(".svp-draw .svp-badge").is_visible()


def is_on_the_player(opened: Opened) -> bool:
    return opened.page.evaluate("document.activeElement.matches('.svp')")


def test_after_a_drag_with_the_mouse_the_arrows_step(browser: Any, where: Path) -> None:
    opened = Opened(browser, where, REJECTED)
    step = opened.step
    dragged(opened)
    opened.until(lambda: is_on_the_player(opened))
    opened.page.keyboard.press("ArrowRight")
    assert opened.step == step + 1


def test_arrows_on_a_slider_reached_by_keys_move_it(browser: Any, where: Path) -> None:
    opened = Opened(browser, where, REJECTED)
    slider = opened.page.locator(".svp-test .svp-drag")
    slider.focus()
    before, step = slider.input_value(), opened.step
    opened.page.keyboard.press("ArrowLeft")
    assert (opened.step, slider.input_value() == before) == (step, False)


@pytest.mark.parametrize("key", ["p", "b"])
@pytest.mark.parametrize("by", ["mouse", "keys"])
def test_what_hides_a_slider_does_not_take_the_keyboard(
    browser: Any, running: Path, by: str, key: str
) -> None:
    opened = Opened(browser, running, "#details")
    opened.press("Home", "n")
    slider = opened.page.locator(".svp-test .svp-drag")
    if by == "mouse":
        dragged(opened)
    slider.focus()
    opened.page.keyboard.press(key)
    opened.page.wait_for_timeout(50)
    assert opened.page.evaluate(FOCUS) != "BODY"
    opened.page.keyboard.press("Escape")
    step = opened.step
    opened.page.keyboard.press("Home")
    assert opened.step != step


@pytest.mark.parametrize("by", ["mouse", "keys"])
def test_answers_and_the_way_back_do_not_take_the_keyboard(
    browser: Any, where: Path, by: str
) -> None:
    opened = Opened(browser, where, REJECTED)

    def act(selector: str) -> None:
        button = opened.page.locator(selector).first
        if by == "mouse":
            button.click()
        else:
            button.focus()
            opened.page.keyboard.press("Enter")

    dragged(opened)
    act(".svp-reset")
    assert not opened.page.locator(".svp-draw .svp-badge").is_visible()
    assert is_on_the_player(opened)
    opened.page.keyboard.press("p")
    act(".svp-answers button")
    assert "guess right" in opened.words(".svp-predict")
    assert is_on_the_player(opened)
    step = opened.step
    opened.page.keyboard.press("ArrowRight")
    assert opened.step == step + 1


def test_keys_pressed_nowhere_are_the_only_players(browser: Any, where: Path) -> None:
    opened = Opened(browser, where, viewport={"width": 800, "height": 300})
    assert opened.page.evaluate("document.activeElement === document.body")
    step = opened.step
    opened.page.keyboard.press("ArrowRight")
    assert opened.step == step + 1
    assert is_on_the_player(opened)
    opened.page.evaluate("document.activeElement.blur()")
    opened.page.keyboard.press(" ")
    assert opened.words(".svp-play") == "❚❚"
    assert opened.page.evaluate("scrollY") == 0
    opened.page.evaluate("document.activeElement.blur()")
    opened.page.keyboard.press("/")
    assert "svp-find" in opened.page.evaluate(FOCUS)


def test_keys_that_are_not_the_players_stay_the_pages(browser: Any, where: Path) -> None:
    opened = Opened(browser, where)
    opened.page.evaluate(
        "addEventListener('keydown', e => (window.kept = (window.kept ?? 0) + !e.defaultPrevented))"
    )
    step = opened.step
    opened.page.keyboard.press("d")
    opened.page.keyboard.press("Control+ArrowRight")
    assert opened.page.evaluate("window.kept") >= 2
    assert opened.step == step
    assert opened.page.evaluate("document.activeElement === document.body")


def test_of_several_players_none_is_meant(browser: Any, tmp_path: Path) -> None:
    text = page(story())
    start = text.index('<div class="svp-host"')
    one = text[start : text.index("<noscript>")]
    two = tmp_path / "two.html"
    two.write_text(text.replace(one, one + one), "utf-8")
    opened = Opened(browser, two)
    opened.until(lambda: opened.page.locator(".svp-bar").count() == 2)
    opened.page.keyboard.press("ArrowRight")
    steps = opened.page.locator(".svp").evaluate_all("all => all.map(one => one.dataset.step)")
    assert steps[0] == steps[1]


def test_a_link_in_a_frame_is_shown_to_be_copied(browser: Any, where: Path) -> None:
    outer = where.with_name("outer.html")
    outer.write_text(f'<iframe src="{where.name}" width="900" height="900"></iframe>', "utf-8")
    shown = browser.new_context().new_page()
    shown.goto(outer.as_uri())
    inner = shown.frame_locator("iframe")
    inner.locator(".svp").focus()
    shown.keyboard.press("ArrowDown")
    shown.keyboard.press("c")
    address = inner.locator(".svp-address")
    address.wait_for(state="visible")
    said = address.input_value()
    assert said.startswith(where.as_uri() + "#round=2")
    assert address.evaluate("one => one.selectionEnd - one.selectionStart") == len(said)
    shown.keyboard.press("Escape")
    assert not address.is_visible()
    assert inner.locator(".svp").evaluate("one => one === document.activeElement")


def test_a_link_that_may_not_be_copied_is_shown(browser: Any, where: Path) -> None:
    opened = Opened(browser, where)
    opened.page.evaluate(
        "Object.defineProperty(navigator, 'clipboard',"
        " {value: {writeText: () => Promise.reject()}})"
    )
    opened.press("ArrowRight", "c")
    opened.until(lambda: opened.page.locator(".svp-address").is_visible())
    assert opened.page.locator(".svp-address").input_value() == opened.page.url
    opened.press("ArrowRight")
    assert not opened.page.locator(".svp-address").is_visible()
