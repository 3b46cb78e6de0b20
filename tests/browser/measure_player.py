"""How fast the player draws, measured in a real browser: a benchmark, not a test.

    python -m tests.browser.measure_player

Prints frames per second and the page's own work per second while a run of 2,000 rounds × 8
proposals plays at 4, 16 and 30 steps a second, and how long 10,000 rounds take from the
page's start to the first drawn step. On a shared machine read the work (task seconds of the page's
main thread per second): the rest of a second is what is left for frames.
"""

from __future__ import annotations

import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import specviz as sv
from tests.browser.pages import EXECUTABLE, FLAGS, Opened
from tests.player.runs import decoded

SECONDS = 8
FRAMES = """seconds => new Promise(done => {
  const times = [];
  const tick = now => {
    times.push(now);
    now - times[0] < seconds * 1000 ? requestAnimationFrame(tick) : done(times);
  };
  requestAnimationFrame(tick);
})"""


def work(session: Any) -> dict[str, float]:
    """Return the page's counters: seconds of tasks, scripts, layout and style."""
    found = session.send("Performance.getMetrics")["metrics"]
    return {one["name"]: one["value"] for one in found}


def playing(browser: Any, where: Path, speed: int, size: dict[str, int]) -> str:
    """Return one line about a page while it plays."""
    opened = Opened(browser, where, viewport=size)
    page = opened.page
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")
    page.select_option(".svp-bar select", str(speed))
    opened.press(" ")
    page.wait_for_timeout(500)
    before, step = work(session), opened.step
    times = page.evaluate(FRAMES, SECONDS)
    after, steps = work(session), opened.step - step
    spent = (times[-1] - times[0]) / 1000
    gaps = sorted(b - a for a, b in pairwise(times))
    each = {
        name: (after[name] - before[name]) / spent
        for name in ("TaskDuration", "ScriptDuration", "LayoutDuration", "RecalcStyleDuration")
    }
    page.context.close()
    return (
        f"{speed:3d} steps/s asked, {steps / spent:5.1f} done: "
        f"{(len(times) - 1) / spent:5.1f} fps, "
        f"99% of frames within {gaps[int(0.99 * len(gaps))]:.0f} ms; main thread busy "
        f"{each['TaskDuration']:.0%} (script {each['ScriptDuration']:.0%}, layout "
        f"{each['LayoutDuration']:.0%}, style {each['RecalcStyleDuration']:.0%})"
    )


def opening(browser: Any, where: Path) -> float:
    """Return the seconds from the page's start to the first drawn step."""
    page = browser.new_context().new_page()
    page.add_init_script(
        "new MutationObserver((_, self) => { if (document.querySelector('[data-step]')) {"
        "self.disconnect(); requestAnimationFrame(() => requestAnimationFrame(now => {"
        "window.drawnAt = performance.now(); })); } })"
        ".observe(document, {subtree: true, childList: true, attributes: true});"
    )
    page.goto(where.as_uri())
    page.wait_for_selector("[data-step]")
    while (at := page.evaluate("window.drawnAt ?? null")) is None:
        page.wait_for_timeout(20)
    page.context.close()
    return float(at) / 1000


def main() -> None:
    """Measure and print."""
    from playwright.sync_api import sync_playwright  # not needed to collect doctests

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as play:
        many, more = Path(folder, "2000.html"), Path(folder, "10000.html")
        run, long = decoded(tokens=7_300, gamma=8), decoded(tokens=36_500, gamma=8)
        sv.to_html(run, many)
        sv.to_html(long, more)
        browser = play.chromium.launch(executable_path=EXECUTABLE, args=FLAGS)
        for name, size in {
            "1280 x 900": {"width": 1280, "height": 900},
            "1920 x 1080": {"width": 1920, "height": 1080},
        }.items():
            print(f"{len(run):,} rounds × 8 proposals, {name}")
            for speed in (4, 16, 30):
                print("  " + playing(browser, many, speed, size))
        took = sorted(opening(browser, more) for _ in range(5))
        print(
            f"{len(long):,} rounds × 8 proposals open in {took[2]:.2f} s "
            f"(median of 5, best {took[0]:.2f})"
        )
        browser.close()


if __name__ == "__main__":
    main()
