"""A race's page in a real browser: its controls, its height, what its lanes line up with."""

from __future__ import annotations

from copy import copy
from pathlib import Path
from typing import Any

import pytest

import specviz as sv
from specviz.core.trace.trace import Trace
from specviz.figures.theme import contrast
from tests.browser.pages import INKS, Opened, hexadecimal
from tests.player.runs import decoded

pytestmark = pytest.mark.browser
NAMES = [
    "draft model", "prompt lookup", "medusa, with five heads of its own for each token", "eagle",
    "n-gram", "replay", "lookahead", "self",
]  # fmt: skip


def named(name: str, seed: int) -> Trace:
    run = copy(decoded(seed=seed))
    run.meta = dict(run.meta) | {"drafter": {"name": name}}
    return run


def runs() -> list[Trace]:
    return [decoded(), decoded(gamma=0), decoded(seed=1)]


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sv.to_html(runs(), tmp_path_factory.mktemp("race") / "three.html")


def seconds(opened: Opened) -> float:
    return float(opened.page.locator(".svp").get_attribute("data-seconds"))


def ends() -> list[float]:
    """Ends of rounds of any of the three, in order."""
    found: set[float] = {0.0}
    for run in runs():
        at = 0.0
        for one in run.rounds:
            at += one.draft_seconds + one.verify_seconds + one.other_seconds
            found.add(round(at, 5))
    return sorted(found)


def test_keys_and_buttons_go_from_end_to_end_of_a_round(browser: Any, three: Path) -> None:
    opened = Opened(browser, three)
    all_ends = ends()
    assert seconds(opened) == 0
    opened.page.keyboard.press("ArrowRight")  # nothing has focus yet
    assert seconds(opened) == pytest.approx(all_ends[1], abs=1e-5)
    opened.page.click('[data-testid="svp-next"]')
    assert seconds(opened) == pytest.approx(all_ends[2], abs=1e-5)
    opened.page.click('[data-testid="svp-back"]')
    assert seconds(opened) == pytest.approx(all_ends[1], abs=1e-5)
    opened.press("End")
    assert seconds(opened) == pytest.approx(all_ends[-1], abs=1e-5)
    assert "60 tokens, done after" in opened.page.locator(".svp-live").text_content()
    opened.page.click('[data-testid="svp-restart"]')
    assert seconds(opened) == 0
    opened.page.click('[data-testid="svp-end"]')
    assert seconds(opened) == pytest.approx(all_ends[-1], abs=1e-5)
    assert opened.page.locator(".svp-racer[data-first]").count() == 1
    opened.press("+", "+")
    assert opened.page.locator(".svp-bar select").input_value() == "1"
    opened.press("-")
    assert opened.page.locator(".svp-bar select").input_value() == "0.5"
    opened.press("?")
    assert opened.page.locator(".svp-help").is_visible()
    opened.press("Escape")
    assert not opened.page.locator(".svp-help").is_visible()
    opened.press("f")
    opened.until(lambda: opened.page.evaluate("document.fullscreenElement !== null"))
    assert opened.complaints == []
    assert opened.requests == [three.as_uri()]


def test_it_plays_to_the_end_and_starts_again(browser: Any, three: Path) -> None:
    opened = Opened(browser, three)
    opened.page.select_option(".svp-bar select", "4")
    opened.press(" ")
    opened.until(lambda: seconds(opened) > 0)
    opened.until(lambda: opened.words(".svp-play") == "▶")
    assert seconds(opened) == pytest.approx(ends()[-1], abs=1e-5)
    opened.press(" ")
    opened.until(lambda: seconds(opened) < ends()[-1])


def test_a_link_opens_its_moment(browser: Any, three: Path) -> None:
    opened = Opened(browser, three, "#t=0.1")
    assert seconds(opened) == pytest.approx(0.1)
    opened.press("ArrowRight", "c")
    assert opened.page.evaluate("location.hash") == f"#t={round(seconds(opened), 6):g}"
    opened.page.evaluate("location.hash = '#t=0.2'")
    opened.until(lambda: abs(seconds(opened) - 0.2) < 1e-9)
    opened.page.evaluate("location.hash = '#t=<img>'")
    assert opened.complaints == []


@pytest.mark.parametrize("height", [500, 900])
def test_with_a_height_it_is_as_high_and_its_controls_are_in_sight(
    browser: Any, tmp_path: Path, height: int
) -> None:
    eight = [named(name, seed) for seed, name in enumerate(NAMES)]
    where = sv.to_html(eight, tmp_path / "eight.html", height=height)
    for width in (1280, 700):
        opened = Opened(browser, where, viewport={"width": width, "height": 1200})
        root = opened.page.locator(".svp").bounding_box()
        bar = opened.page.locator(".svp-bar").bounding_box()
        assert root["height"] == height
        assert bar["y"] + bar["height"] == pytest.approx(root["y"] + height, abs=2)


def test_without_a_height_the_controls_of_a_large_race_stay_in_sight(
    browser: Any, tmp_path: Path
) -> None:
    eight = [named(name, seed) for seed, name in enumerate(NAMES)]
    where = sv.to_html(eight, tmp_path / "eight.html")
    opened = Opened(browser, where, viewport={"width": 700, "height": 700})
    assert opened.page.evaluate("document.documentElement.scrollHeight") > 900
    bar = opened.page.locator(".svp-bar").bounding_box()
    assert bar["y"] + bar["height"] <= 701
    assert opened.words("h1").startswith("Race of 8: ")
    assert len(opened.words("h1")) < 80


def test_lanes_side_by_side_line_up(browser: Any, tmp_path: Path) -> None:
    eight = [named(name, seed) for seed, name in enumerate(NAMES)]
    where = sv.to_html(eight, tmp_path / "eight.html")
    opened = Opened(browser, where, "#t=0.1", viewport={"width": 1280, "height": 900})
    tops = opened.page.evaluate(
        """() => [...document.querySelectorAll('.svp-racer')].map(lane => [lane,
        ...lane.querySelectorAll('.svp-progress, .svp-sofar, .svp-text')].map(
        one => Math.round(one.getBoundingClientRect().top)))"""
    )
    rows = {tuple(lane) for lane in tops}
    assert len(tops) == 8
    assert len(rows) == len({lane[0] for lane in tops})


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_its_letters_can_be_read(browser: Any, three: Path, scheme: str) -> None:
    opened = Opened(browser, three, "#t=9", color_scheme=scheme)
    opened.press("?")
    found = opened.page.evaluate(INKS)
    assert len(found) > 40
    for words, ink, ground in found:
        assert contrast(hexadecimal(ink), hexadecimal(ground)) >= 4.5, words


def test_it_fits_a_telephone(browser: Any, three: Path) -> None:
    opened = Opened(browser, three, "#t=9", viewport={"width": 320, "height": 640})
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= 320
    opened.press("c")
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= 320
