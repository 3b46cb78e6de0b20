"""The editor's and the watch's pages in a real browser, opened from disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import specviz as sv
from specviz.figures.theme import contrast
from tests.browser.pages import INKS, Opened, hexadecimal
from tests.core.one_position import P, Q

pytestmark = pytest.mark.browser
NARROW: Any = {"viewport": {"width": 320, "height": 640}}
HOSTILE = "</script><img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("lab")
    twelve = [1 / 12] * 12
    return {
        "fox": sv.one_position_html(folder / "fox.html", seed=3),
        "worked": sv.one_position_html(folder / "worked.html", P, Q, list("abcd")),
        "hostile": sv.one_position_html(
            folder / "hostile.html", [0.5, 0.3, 0.2], [0.2, 0.3, 0.5], [HOSTILE, "\n" * 99, "é"]
        ),
        "twelve": sv.one_position_html(folder / "twelve.html", twelve, twelve),
        "watch": sv.watch_html(folder / "watch.html", limit=2000),
        "broken": sv.watch_html(folder / "broken.html", P, Q, fault="resample_from_p", limit=2000),
    }


class Lab(Opened):
    """A page of the editor or the watch."""

    def part(self, name: str) -> Any:
        return self.page.locator(f'[data-testid="svp-{name}"]').first

    def said(self, name: str) -> str:
        return str(self.part(name).inner_text())

    def bar(self, which: str, token: str) -> Any:
        return self.page.get_by_role("slider", name=f"{which} of “{token}”")

    def value(self, which: str, token: str) -> float:
        return float(self.bar(which, token).get_attribute("aria-valuenow"))

    def sample(self) -> str:
        self.part("sample").click()
        self.until(lambda: "…" not in self.said("verdict"))
        return self.said("verdict")


def test_a_bar_is_dragged_and_the_distribution_still_sums_to_one(
    browser: Any, pages: dict[str, Path]
) -> None:
    lab = Lab(browser, pages["fox"])
    before = lab.said("masses")
    box = lab.bar("target p", "quick").bounding_box()
    y = box["y"] + box["height"] / 2
    lab.page.mouse.move(box["x"] + 0.2 * box["width"], y)
    lab.page.mouse.down()
    lab.page.mouse.move(box["x"] + 0.4 * box["width"], y, steps=4)
    lab.page.mouse.move(box["x"] + 0.9 * box["width"], y, steps=4)
    lab.page.mouse.up()
    assert lab.value("target p", "quick") == pytest.approx(0.45, abs=0.01)  # the scale ends at .5
    words = ["the", "quick", "brown", "fox", "lazy"]
    assert sum(lab.value("target p", word) for word in words) == pytest.approx(1, abs=0.005)
    assert lab.value("draft q", "quick") == 0.2
    assert lab.said("masses") != before
    assert "target p of “quick”" in lab.said("change")
    assert "your own bars" in lab.part("begin-with").locator("option:checked").inner_text()
    assert lab.complaints == []


def test_a_bar_is_moved_by_keys_and_locked(browser: Any, pages: dict[str, Path]) -> None:
    lab = Lab(browser, pages["fox"])
    lab.bar("draft q", "lazy").focus()
    for key in ("ArrowRight", "ArrowRight", "Shift+ArrowLeft"):
        lab.page.keyboard.press(key)
    assert lab.value("draft q", "lazy") == pytest.approx(0.22)
    lab.page.keyboard.press("l")
    lab.page.keyboard.press("End")
    assert lab.value("draft q", "lazy") == pytest.approx(0.22)
    assert lab.bar("draft q", "lazy").get_attribute("aria-valuetext") == ".22, locked"
    lab.bar("draft q", "the").focus()
    lab.page.keyboard.press("End")
    assert lab.value("draft q", "the") == pytest.approx(0.78)
    lab.press("r")
    assert lab.value("draft q", "the") == 0.3


def test_one_draw_goes_step_by_step_to_a_token(browser: Any, pages: dict[str, Path]) -> None:
    lab = Lab(browser, pages["worked"])
    seen = []
    for _ in range(8):
        lab.press("ArrowRight")
        seen.append(lab.said("step").split(":")[0])
        assert lab.page.locator('[data-testid="svp-live"]').text_content()
    assert seen[:3] == ["propose", "compare", "judge"]
    assert not lab.part("emitted").is_visible() or seen[-1] in ("judge", "draw instead")
    while lab.said("step").split(":")[0] not in ("draw instead",):
        lab.press("ArrowRight")
    assert lab.part("emitted").is_visible()
    assert "instead" in lab.said("emitted")


def test_playing_a_draw_and_reduced_motion(browser: Any, pages: dict[str, Path]) -> None:
    lab = Lab(browser, pages["worked"])
    lab.press(" ")
    lab.until(lambda: lab.part("emitted").is_visible())
    lab.until(lambda: "one draw" in lab.part("play").inner_text())
    calm = Lab(browser, pages["worked"], reduced_motion="reduce")
    calm.press(" ")
    assert calm.part("emitted").is_visible()


def test_ten_thousand_draws_right_and_then_with_a_fault(
    browser: Any, pages: dict[str, Path]
) -> None:
    lab = Lab(browser, pages["worked"])
    assert "show no difference" in lab.sample()
    assert "seed 0, draws 0 – 9,999" in lab.said("numbers")
    lab.part("planted-fault").select_option("resample_from_p")
    assert "off by a total variation of .15" in lab.said("fault")
    assert "Draw a sample" in lab.said("verdict")
    verdict = lab.sample()
    assert "differ from p" in verdict
    assert "agrees with the faulty distribution" in verdict
    assert lab.page.locator(".svp-orow[data-outside]").count() >= 2
    lab.press("0")
    assert "show no difference" in lab.sample()
    lab.press("]")
    assert "forgotten" in lab.said("fault")


def test_a_sample_goes_on_arriving_while_one_draw_is_looked_at(
    browser: Any, pages: dict[str, Path]
) -> None:
    lab = Lab(browser, pages["fox"])
    lab.part("how-many").select_option("100000")
    lab.press("d", "ArrowRight", "ArrowRight")
    assert "of 100,000 draws" in lab.said("verdict")
    lab.until(lambda: "100,000 draws show no difference" in lab.said("verdict"))
    lab.press("d", "]")  # other distributions: what was drawn is no longer about them
    lab.page.wait_for_timeout(300)
    assert "Draw a sample" in lab.said("verdict")


def test_the_same_seed_shows_the_same_counts(browser: Any, pages: dict[str, Path]) -> None:
    def counts() -> str:
        lab = Lab(browser, pages["fox"])
        lab.sample()
        return str(lab.page.locator(".svp-orows").inner_text())

    assert counts() == counts()


def test_every_preset_way_and_number_of_tokens(browser: Any, pages: dict[str, Path]) -> None:
    lab = Lab(browser, pages["fox"])
    for name in ("begin-with", "judged-as", "planted-fault"):
        values = lab.part(name).locator("option").evaluate_all("all => all.map(one => one.value)")
        for value in values:
            lab.part(name).select_option(value)
            lab.press("ArrowRight")
    more = lab.page.get_by_role("button", name="One token more")
    while more.is_enabled():
        more.click()
    assert lab.page.locator('[role="slider"]:visible').count() == 24
    assert lab.complaints == []


@pytest.mark.parametrize("name", ["fox", "hostile", "twelve", "watch", "broken"])
def test_it_asks_for_nothing_and_fits_a_telephone(
    browser: Any, pages: dict[str, Path], name: str
) -> None:
    lab = Lab(browser, pages[name], **NARROW)
    lab.press("ArrowRight", "d", " ", "?")
    lab.page.wait_for_timeout(1200)
    assert lab.requests == [pages[name].as_uri()]
    assert lab.complaints == []
    assert lab.page.evaluate("document.documentElement.scrollWidth") <= 320
    assert lab.page.evaluate("document.querySelectorAll('img').length") == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["worked", "broken"])
def test_every_letter_can_be_read(
    browser: Any, pages: dict[str, Path], name: str, scheme: str
) -> None:
    lab = Lab(browser, pages[name], color_scheme=scheme, reduced_motion="reduce")
    low: dict[str, float] = {}
    for keys in (["?"], ["]", "d"], ["ArrowRight"] * 4, [" "], ["r"]):
        lab.press(*keys)
        lab.page.wait_for_timeout(400)
        found = lab.page.evaluate(INKS)
        assert len(found) > 20
        for words, ink, ground in found:
            ratio = contrast(hexadecimal(ink), hexadecimal(ground))
            if ratio < 4.5:
                low[words] = ratio
    assert low == {}


def test_a_right_decoder_runs_to_its_end_without_an_alarm(
    browser: Any, pages: dict[str, Path]
) -> None:
    lab = Lab(browser, pages["watch"])
    lab.part("rate").select_option("10000")
    lab.press(" ")
    lab.until(lambda: "2,000 of 2,000" in lab.said("count"))
    assert "no evidence against" in lab.said("verdict")
    assert "no certainty" in lab.said("verdict")
    lab.press(" ")
    lab.until(lambda: "run 1: 2,000" in lab.said("count"))
    assert "2 runs of the right decoder" in lab.said("tally")
    path = lab.page.locator(".svp-eline").get_attribute("d")
    assert path.count("L") > 100


def test_a_fault_alarms_pauses_and_is_switched_off(browser: Any, pages: dict[str, Path]) -> None:
    lab = Lab(browser, pages["broken"])
    assert "fresh draw from p" in lab.said("fault")
    lab.press(" ")
    lab.until(lambda: "e reached 100" in lab.said("verdict"))
    lab.press(" ")
    told = lab.said("count")
    lab.page.wait_for_timeout(400)
    assert lab.said("count") == told  # paused
    assert "e reached 100" in lab.page.locator('[data-testid="svp-live"]').text_content()
    lab.part("sampler").select_option("")
    assert "run 1: 0 of" in lab.said("count")
    assert "right decoder" in lab.said("fault")
    lab.press("]")
    assert "Planted" in lab.said("fault")


def test_without_scripts_there_are_the_distributions(browser: Any, pages: dict[str, Path]) -> None:
    shown = browser.new_context(java_script_enabled=False, **NARROW).new_page()
    for name in pages:
        shown.goto(pages[name].as_uri())
        assert shown.evaluate("document.documentElement.scrollWidth") == 320, name
        assert shown.locator("noscript th[scope=row]").count() >= 3
    shown.goto(pages["fox"].as_uri())
    assert "accepted with probability .700" in shown.locator("noscript").inner_text()
