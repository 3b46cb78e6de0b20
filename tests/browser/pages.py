"""A page in a real browser, everything it asks for or complains about written down."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

EXECUTABLE = "/usr/bin/chromium"
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

# Every element with words of its own that is shown: its words, its colour, the ground behind it.
INKS = """() => {
  const seen = [];
  for (const one of document.querySelectorAll('.svp *')) {
    const own = [...one.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
    if (!own || /^(STYLE|OPTION)$/.test(one.tagName)) continue;
    if (!one.checkVisibility({opacityProperty: true, visibilityProperty: true})) continue;
    let ground = one;
    while (ground && /, 0\\)$|transparent/.test(getComputedStyle(ground).backgroundColor))
      ground = ground.parentElement;
    const ink = one instanceof SVGElement ? getComputedStyle(one).fill : getComputedStyle(one).color;
    seen.push([one.textContent.slice(0, 30), ink,
               ground ? getComputedStyle(ground).backgroundColor : 'rgb(255, 255, 255)']);
  }
  return seen;
}"""  # noqa: E501


def hexadecimal(colour: str) -> str:
    """The colour ``rgb(…)`` of the browser as ``#rrggbb``."""
    numbers = colour[colour.index("(") + 1 : -1].split(",")[:3]
    return "#" + "".join(f"{int(float(n)):02x}" for n in numbers)


class Opened:
    """A page opened from disk, in a context of its own."""

    def __init__(self, browser: Any, where: Path, place: str = "", **options: Any) -> None:
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page = browser.new_context(**options).new_page()
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: self.complaints.append(dialog.message))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(where.as_uri() + place)
        self.page.wait_for_selector(".svp-bar, .svp-none")

    def press(self, *keys: str) -> None:
        """Press keys with the player focused."""
        self.page.focus(".svp")
        for key in keys:
            self.page.keyboard.press(key)

    def until(self, holds: Callable[[], object], polls: int = 600) -> None:
        """Wait until something holds; the page's policy forbids the browser's own waiting."""
        for _ in range(polls):
            if holds():
                return
            self.page.wait_for_timeout(50)
        raise AssertionError("it did not come about")

    @property
    def position(self) -> str:
        """Round and phase, as the player says."""
        data = self.page.locator(".svp").first.evaluate("one => ({...one.dataset})")
        return f"{data['round']} {data['phase']}"

    @property
    def step(self) -> int:
        """The number of the step."""
        return int(self.page.locator(".svp").first.get_attribute("data-step"))

    def words(self, selector: str) -> str:
        """The words of an element."""
        return self.page.locator(selector).first.inner_text()
