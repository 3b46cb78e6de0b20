"""The player's page in a real browser, opened from disk: it plays, and asks for nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import specviz as sv
from specviz.figures.theme import contrast
from specviz.player.page import embedded, page, policy
from tests.browser.pages import INKS, Opened, hexadecimal
from tests.figures.runs import hostile, story
from tests.player.runs import branching, decoded
from tests.player.test_frames import coupled, greedy

pytestmark = pytest.mark.browser
NARROW = {"viewport": {"width": 320, "height": 640}}


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    runs = {"story": story, "hostile": hostile, "tree": branching, "run": decoded}
    made = {n: sv.to_html(run(), folder / f"{n}.html", guided=True) for n, run in runs.items()}
    made["match"] = sv.to_html(decoded(verify="match"), folder / "match.html", guided=True)
    made["coupled"] = sv.to_html(coupled(), folder / "coupled.html", guided=True)
    made["greedy"] = sv.to_html(greedy(), folder / "greedy.html", guided=True)
    made["few"] = sv.to_html(decoded(), folder / "few.html", views=["text", "draw"], height=400)
    return made


@pytest.mark.parametrize(
    "name", ["story", "hostile", "tree", "run", "match", "coupled", "greedy", "few"]
)
def test_it_plays_through_asks_for_nothing_and_fits_a_telephone(
    browser: Any, pages: dict[str, Path], name: str
) -> None:
    opened = Opened(browser, pages[name], **NARROW)
    opened.press("Home", *["ArrowRight"] * 40, "End", "ArrowLeft", "n", "N", "b", "B")
    assert opened.requests == [pages[name].as_uri()]
    assert opened.complaints == []
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= 320
    assert opened.page.evaluate("document.querySelectorAll('img').length") == 0


def test_stepping_by_keys_buttons_and_scrubbing(browser: Any, pages: dict[str, Path]) -> None:
    opened = Opened(browser, pages["story"])
    assert opened.position == "1 draft"  # the round with a rejection
    opened.press("Home")
    assert (opened.step, opened.position) == (0, "0 draft")
    opened.press("ArrowRight", "ArrowRight")
    assert opened.step == 2
    opened.press("Shift+ArrowRight")
    assert opened.position == "0 verify"
    opened.press("ArrowDown")
    assert opened.position == "1 draft"
    opened.press("n")
    assert opened.position == "1 decide"
    assert "rejected" in opened.words(".svp-caption")
    opened.press("b")
    assert opened.position == "4 close"
    opened.page.click('[data-testid="svp-back"]')
    assert opened.position == "4 decide"
    opened.page.locator('[data-testid="svp-scrub"]').fill("0")
    assert opened.step == 0
    opened.press("End")
    assert opened.position == "4 rollback"
    assert "Round 4." in opened.page.locator('[data-testid="svp-live"]').text_content()


def test_playing_stops_at_the_end_and_starts_again(browser: Any, pages: dict[str, Path]) -> None:
    opened = Opened(browser, pages["story"], "#details")
    opened.press("Home")
    opened.page.select_option("select", "30")
    opened.press(" ")
    opened.until(lambda: opened.step > 3)
    opened.until(lambda: opened.words(".svp-play") == "▶")
    assert opened.position == "4 rollback"
    opened.press(" ")
    opened.until(lambda: opened.step < 9)


def test_a_link_opens_its_place_and_the_address_can_change(
    browser: Any, pages: dict[str, Path]
) -> None:
    opened = Opened(browser, pages["story"], "#round=1&node=1")
    assert opened.position == "1 decide"
    opened.press("ArrowDown", "c")
    assert opened.page.evaluate("location.hash").startswith("#round=2&phase=verify")
    opened.page.evaluate("location.hash = '#round=0&phase=close'")
    opened.until(lambda: opened.position == "0 close")
    opened.page.evaluate("location.hash = '#round=999&phase=<img>'")
    assert opened.complaints == []


def test_what_if_is_marked_and_taken_back(browser: Any, pages: dict[str, Path]) -> None:
    opened = Opened(browser, pages["story"], "#round=1&node=1&details")
    badge = opened.page.locator(".svp-draw .svp-badge")
    assert not badge.is_visible()
    opened.page.locator(".svp-test .svp-drag").fill("0.01")
    assert badge.is_visible()
    assert "would be accepted" in opened.words(".svp-says")
    assert opened.position == "1 decide"
    opened.page.click(".svp-reset")
    assert not badge.is_visible()
    assert "rejected" in opened.words(".svp-says")


def test_what_if_in_a_tree_says_what_would_follow(browser: Any, pages: dict[str, Path]) -> None:
    opened = Opened(browser, pages["tree"], "#details")
    opened.press("Home", "n")
    before = opened.words(".svp-says")
    opened.page.locator(".svp-test .svp-drag").fill("0")
    assert opened.page.locator(".svp-draw .svp-badge").is_visible()
    assert opened.page.locator(".svp-tree .svp-badge").is_visible()
    assert opened.page.locator(".svp-tn[data-would]").count() >= 1
    assert "What if u were 0?" in opened.words(".svp-says")
    opened.press("Escape")
    assert opened.page.locator(".svp-tn[data-would]").count() == 0
    assert opened.words(".svp-says") == before


# How far what is shown reaches beyond the player's own area, and its smallest letters.
ROOM = """() => {
  const root = document.querySelector('.svp'), ground = root.querySelector('.svp-bar');
  const low = ground.getBoundingClientRect().top, wide = root.clientWidth;
  let over = 0, least = Infinity;
  for (const one of root.querySelectorAll('.svp-view, .svp-view *')) {
    if (!one.checkVisibility({opacityProperty: true, visibilityProperty: true})) continue;
    if (!one.closest('.svp-v-text') && !one.matches('i')) {
      const box = one.getBoundingClientRect();
      if (box.width > 1) over = Math.max(over, box.bottom - low, box.right - wide);
    }
    const own = [...one.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
    if (!own || one.closest('.svp-h') || getComputedStyle(one).position === 'absolute') continue;
    const scale = one instanceof SVGElement ? one.getScreenCTM().a : 1;
    least = Math.min(least, scale * parseFloat(getComputedStyle(one).fontSize));
  }
  return {over, least, scrolls: root.scrollHeight - root.clientHeight};
}"""


@pytest.mark.parametrize("name", ["run", "tree", "match", "coupled", "greedy"])
def test_a_projector_shows_everything_in_letters_of_20_pixels(
    browser: Any, pages: dict[str, Path], name: str
) -> None:
    opened = Opened(browser, pages[name], viewport={"width": 1920, "height": 1080})
    assert opened.page.evaluate("document.documentElement.scrollHeight") <= 1080
    opened.press("f")
    opened.until(lambda: opened.page.evaluate("document.fullscreenElement !== null"))
    opened.page.wait_for_timeout(200)
    for key in ["Home", *["Shift+ArrowRight"] * 4, "n", "n", "b"]:
        opened.press(key)
        found = opened.page.evaluate(ROOM)
        assert found["scrolls"] <= 0 and found["over"] <= 1, (key, found)
        assert found["least"] >= 20, (key, found)


def test_a_small_window_does_scroll_and_has_smaller_letters(
    browser: Any, pages: dict[str, Path]
) -> None:
    """The measure above can fail."""
    opened = Opened(browser, pages["run"], viewport={"width": 1000, "height": 500})
    found = opened.page.evaluate(ROOM)
    assert found["over"] > 1 and found["least"] < 20


# Of every view whether its end can be seen above the controls, once one has scrolled to it.
REACHED = """() => [...document.querySelectorAll('.svp-view')].map(view => {
  view.scrollIntoView({block: 'end'});
  const low = document.querySelector('.svp-bar').getBoundingClientRect().top;
  return [view.className, view.getBoundingClientRect().bottom - low, low - innerHeight];
}).filter(([, over, bar]) => over > 1 || bar > -20)"""


def test_full_screen_on_a_small_screen_hides_nothing_for_good(
    browser: Any, pages: dict[str, Path]
) -> None:
    for width, height in ((1280, 800), (1024, 600)):
        opened = Opened(browser, pages["run"], viewport={"width": width, "height": height})
        opened.press("f")
        opened.until(lambda opened=opened: opened.page.evaluate("!!document.fullscreenElement"))
        opened.page.wait_for_timeout(200)
        opened.press("n", "p", "k")
        assert opened.page.evaluate(REACHED) == []
        inner = opened.page.locator(".svp-text .svp-inner").bounding_box()
        assert inner["y"] - opened.page.locator(".svp-text").bounding_box()["y"] < 2


@pytest.mark.parametrize("height", [300, 500])
def test_with_a_height_the_inside_scrolls_above_the_controls(
    browser: Any, tmp_path: Path, height: int
) -> None:
    where = sv.to_html(decoded(), tmp_path / "high.html", height=height)
    opened = Opened(browser, where, viewport={"width": 1000, "height": 900})
    root = opened.page.locator(".svp").bounding_box()
    bar = opened.page.locator(".svp-bar").bounding_box()
    assert root["height"] == height
    assert bar["y"] + bar["height"] == pytest.approx(root["y"] + height, abs=2)
    opened.press("n")
    assert opened.page.evaluate(REACHED) == []


def test_predict_asks_hides_reveals_and_counts(browser: Any, pages: dict[str, Path]) -> None:
    opened = Opened(browser, pages["story"], "#round=1&node=1")
    opened.press("p")
    assert "Accepted or rejected?" in opened.words(".svp-predict")
    shown = opened.page.locator(".svp-stage").inner_text()
    assert "u = .99" not in shown
    assert opened.page.locator('.svp-card[data-status="rejected"]').count() == 0
    opened.press("x")
    assert "Right: rejected" in opened.words(".svp-predict")
    assert "1 of 1 guess right" in opened.words(".svp-predict")
    opened.press("ArrowLeft", " ")
    assert "accepted" in opened.page.locator(".svp-card").first.get_attribute("aria-label")


def test_search_and_help(browser: Any, pages: dict[str, Path]) -> None:
    opened = Opened(browser, pages["story"])
    opened.press("Home", "/")
    opened.page.keyboard.type("fox")
    opened.page.keyboard.press("Enter")
    assert opened.position == "2 close"
    opened.page.locator(".svp-find").fill("zebra")
    opened.page.keyboard.press("Enter")
    scrub = opened.page.locator(".svp-scrub").bounding_box()["width"]
    assert "not in this run" in opened.words(".svp-notice")
    opened.page.keyboard.press("Escape")
    assert opened.words(".svp-notice") == ""
    assert opened.page.locator(".svp-scrub").bounding_box()["width"] == scrub
    opened.press("/")
    opened.page.keyboard.press("Enter")
    assert "not in this run" in opened.words(".svp-notice")
    opened.press("ArrowRight")
    assert opened.words(".svp-notice") == ""
    opened.press("?")
    assert opened.page.locator(".svp-help").is_visible()
    opened.press("Escape")
    assert not opened.page.locator(".svp-help").is_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["story", "tree", "match", "coupled"])
def test_every_letter_can_be_read_at_every_phase(
    browser: Any, pages: dict[str, Path], name: str, scheme: str
) -> None:
    opened = Opened(browser, pages[name], color_scheme=scheme, reduced_motion="reduce")
    low: dict[str, float] = {}
    for key in [
        "Home",
        "ArrowDown",
        *["Shift+ArrowRight"] * 4,
        "n",
        "w",
        "w",
        "e",
        "Home",
        "ArrowDown",
        *["Shift+ArrowRight"] * 4,
        "n",
        "b",
        "p",
        "?",
    ]:
        opened.press(key)
        found = opened.page.evaluate(INKS)
        assert len(found) > 25
        for words, ink, ground in found:
            ratio = contrast(hexadecimal(ink), hexadecimal(ground))
            if ratio < 4.5:
                low[words] = ratio
    assert low == {}


def test_chosen_views_and_a_theme(browser: Any, pages: dict[str, Path], tmp_path: Path) -> None:
    opened = Opened(browser, pages["few"])
    assert opened.page.locator(".svp-view").count() == 2
    assert opened.page.locator(".svp").bounding_box()["height"] == 400
    dark = sv.to_html(story(), tmp_path / "dark.html", theme="dark")
    grounds = Opened(browser, dark, color_scheme="light").page.evaluate(INKS)
    assert "#15171c" in {hexadecimal(ground) for _, _, ground in grounds}


def test_reduced_motion_shows_completed_states(browser: Any, pages: dict[str, Path]) -> None:
    opened = Opened(browser, pages["story"], "#details", reduced_motion="reduce")
    opened.press("Home")
    opened.page.evaluate(
        """() => { window.seen = new Set(); new MutationObserver(() => window.seen.add(
        document.querySelector('.svp').dataset.phase)).observe(document.querySelector('.svp'),
        {attributes: true, attributeFilter: ['data-phase']}); }"""
    )
    opened.page.select_option("select", "30")
    opened.press(" ")
    opened.until(lambda: opened.position.startswith("4"))
    assert set(opened.page.evaluate("[...window.seen]")) <= {"rollback", "close"}


def test_without_scripts_there_is_the_text(browser: Any, pages: dict[str, Path]) -> None:
    context = browser.new_context(java_script_enabled=False, **NARROW)
    shown = context.new_page()
    for name in pages:
        shown.goto(pages[name].as_uri())
        assert shown.evaluate("document.documentElement.scrollWidth") == 320, name
    shown.goto(pages["story"].as_uri())
    assert "upon" in shown.locator(".sv-trace").inner_text()


def test_a_damaged_run_is_one_sentence(browser: Any, tmp_path: Path) -> None:
    text = page(story())
    start = text.index('specviz.run">') + len('specviz.run">')
    where = tmp_path / "damaged.html"
    where.write_text(text[: start + 200] + text[text.index("</script>", start) :], "utf-8")
    context = browser.new_context()
    shown = context.new_page()
    shown.goto(where.as_uri())
    shown.wait_for_selector('[role="alert"]')
    assert shown.locator('[role="alert"]').inner_text().startswith("specviz:")


def test_a_foreign_script_does_not_run(browser: Any, tmp_path: Path) -> None:
    where = tmp_path / "foreign.html"
    text = page(story()).replace("</main>", "<script>window.foreign = 1</script></main>")
    where.write_text(text, "utf-8")
    opened = Opened(browser, where)
    assert opened.page.evaluate("window.foreign") is None
    assert any("Content Security Policy" in said for said in opened.complaints)
    assert "unsafe-inline" not in policy().split("style-src")[0]


def test_two_players_on_one_page_do_not_disturb_each_other(browser: Any, tmp_path: Path) -> None:
    text = page(story())
    start = text.index('<div class="svp-host"')
    one = text[start : text.index("<noscript>")]
    where = tmp_path / "two.html"
    where.write_text(text.replace(one, one + one), "utf-8")
    opened = Opened(browser, where)
    opened.until(lambda: opened.page.locator(".svp-bar").count() == 2)
    opened.press("ArrowRight")
    steps = opened.page.locator(".svp").evaluate_all("all => all.map(one => one.dataset.step)")
    assert int(steps[0]) == int(steps[1]) + 1
    assert embedded.__doc__
