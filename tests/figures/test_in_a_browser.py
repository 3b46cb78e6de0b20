"""The page and the notebook's view in a real browser: what it asks for, how wide, how legible."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import specviz as sv
from specviz.figures.coloured_text import html
from specviz.figures.theme import contrast
from tests.figures.runs import branching, hostile, story, trace_of

pytestmark = pytest.mark.browser

# Every element with text of its own: its words, its colour and the first ground behind it.
INKS = """() => {
  const seen = [];
  for (const one of document.querySelectorAll('.sv-trace *')) {
    const own = [...one.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
    if (!own || one.tagName === 'STYLE' || !one.checkVisibility()) continue;
    let ground = one;
    while (ground && /, 0\\)$|transparent/.test(getComputedStyle(ground).backgroundColor))
      ground = ground.parentElement;
    seen.push([one.textContent.slice(0, 30), getComputedStyle(one).color,
               ground ? getComputedStyle(ground).backgroundColor : 'rgb(255, 255, 255)']);
  }
  return seen;
}"""


class Opened:
    """A page, and everything it asked for or complained about."""

    def __init__(self, browser: Any, where: Path, **options: Any) -> None:
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page = browser.new_context(**options).new_page()
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: self.complaints.append(dialog.message))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(where.as_uri())


def hexadecimal(colour: str) -> str:
    numbers = colour[colour.index("(") + 1 : -1].split(",")[:3]
    return "#" + "".join(f"{int(n):02x}" for n in numbers)


@pytest.fixture
def pages(tmp_path: Path) -> dict[str, Path]:
    plain = trace_of([([], (f" w{i}", "plain")) for i in range(12)])
    made = {
        name: sv.figures.to_html(run, tmp_path / f"{name}.html", compare=plain)
        for name, run in (("story", story()), ("hostile", hostile()), ("tree", branching()))
    }
    notebook = tmp_path / "notebook.html"
    notebook.write_text(f"<!DOCTYPE html><meta charset=utf-8><body>{html(hostile())}", "utf-8")
    return made | {"notebook": notebook}


@pytest.mark.parametrize("name", ["story", "hostile", "tree", "notebook"])
def test_it_asks_for_nothing_and_fits_a_telephone(
    browser: Any, pages: dict[str, Path], name: str
) -> None:
    opened = Opened(browser, pages[name], viewport={"width": 320, "height": 640})
    assert opened.requests == [pages[name].as_uri()]
    assert opened.complaints == []
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= 320
    assert opened.page.evaluate("document.querySelectorAll('img, script').length") == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["story", "notebook"])
def test_every_letter_can_be_read(
    browser: Any, pages: dict[str, Path], name: str, scheme: str
) -> None:
    opened = Opened(browser, pages[name], color_scheme=scheme)
    found = opened.page.evaluate(INKS)
    assert len(found) > 40
    low = {
        words: contrast(hexadecimal(ink), hexadecimal(ground))
        for words, ink, ground in found
        if contrast(hexadecimal(ink), hexadecimal(ground)) < 4.5
    }
    assert low == {}
    grounds = {hexadecimal(ground) for _, _, ground in found}
    assert ("#15171c" in grounds) is (scheme == "dark")


def test_a_wide_table_scrolls_and_is_not_cut_off(browser: Any, pages: dict[str, Path]) -> None:
    page = Opened(browser, pages["story"], viewport={"width": 320, "height": 640}).page
    table = page.locator("details[open] .sv-scroll")
    assert table.evaluate("one => one.scrollWidth > one.clientWidth")
    table.focus()
    assert table.evaluate("one => { one.scrollLeft = 9999; return one.scrollLeft; }") > 0


def test_a_round_opens_by_keyboard_and_shows_its_evidence(
    browser: Any, pages: dict[str, Path]
) -> None:
    page = Opened(browser, pages["story"]).page
    first = page.locator("details").first
    assert not first.locator("table").is_visible()
    first.locator("summary").focus()
    page.keyboard.press("Enter")
    assert first.locator("table").is_visible()
    assert "✓ accepted" in first.inner_text()


def test_the_host_decides_between_light_and_dark(browser: Any, tmp_path: Path) -> None:
    where = tmp_path / "lab.html"
    grounds = {}
    for light in ("true", "false"):
        where.write_text(
            f"<!DOCTYPE html><meta charset=utf-8><body data-jp-theme-light={light} "
            f"style='--jp-layout-color1:{'#fff' if light == 'true' else '#111'};"
            f"--jp-ui-font-color1:{'#111' if light == 'true' else '#eee'}'>{html(story())}",
            "utf-8",
        )
        # the reader's own preference is the opposite, and does not count in a host with a theme
        opened = Opened(browser, where, color_scheme="dark" if light == "true" else "light")
        inks = opened.page.evaluate(INKS)
        grounds[light] = {hexadecimal(ground) for _, _, ground in inks}
        assert min(contrast(hexadecimal(i), hexadecimal(g)) for _, i, g in inks) >= 4.5
    assert "#ffffff" in grounds["true"]
    assert "#111111" in grounds["false"]
    assert not grounds["true"] & grounds["false"]
