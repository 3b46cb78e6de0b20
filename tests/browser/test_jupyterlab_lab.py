"""The editor and the watch in a real JupyterLab: the kernel draws, the browser shows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from specviz.player.assets import LAB, packed
from tests.browser.lab import Book, Lab

pytestmark = pytest.mark.browser

SETUP = (
    "import specviz as sv\nT = sv.tabular.TabularModel\n"
    "coin = sv.tabular.TabularPair(T([.5, .5]), T([.9, .1]))"
)
EDIT = "editor = sv.one_position([.5, .3, .2], [.2, .3, .5], ['a', 'b', 'c'])\neditor"
WATCH = "live = sv.watch(coin, faults=['always_accept'], rate=2500, limit=5000)\nlive"
CELLS = """() => { const { content } = window.jupyterapp.shell.currentWidget;
  return [content.widgets.length, content.activeCellIndex, content.mode]; }"""


@pytest.fixture(scope="module")
def book(browser: Any, lab: Lab) -> Iterator[Book]:
    opened = Book(browser, lab, lab.write("bench.ipynb", SETUP, EDIT, WATCH))
    opened.run_all()
    opened.until(lambda: opened.page.locator(".svp-bar").count() == 2)
    yield opened
    assert opened.outside == []
    assert opened.complaints == []
    opened.close()


def test_bars_moved_here_are_the_kernels_and_the_other_way_round(book: Book) -> None:
    slider = book.page.get_by_role("slider", name="target p of “a”")
    slider.focus()
    before = book.page.evaluate(CELLS)
    for key in ("Home", "ArrowUp", "ArrowUp", "l", "End"):
        book.page.keyboard.press(key)
    assert book.page.evaluate(CELLS) == before
    assert slider.get_attribute("aria-valuetext") == ".020, locked"
    book.until(lambda: book.python("print(round(editor.p[0], 6))") == "0.02")
    book.python("editor.fault = 'always_accept'")
    book.until(
        lambda: "every proposal is accepted" in book.page.locator('[data-testid="svp-fault"]').first
        .inner_text()
    )  # fmt: skip


def test_both_share_one_script_of_their_own(book: Book) -> None:
    assert len([frame for frame in book.received if packed(LAB)[:200] in frame]) == 1


def test_samples_of_the_kernel_arrive_pause_and_alarm(book: Book) -> None:
    root = book.page.locator('[data-testid="specviz-watch"]')
    play = root.locator('[data-testid="svp-play"]')
    play.click()
    book.until(lambda: int(root.get_attribute("data-n")) > 100)
    play.click()
    book.until(lambda: root.get_attribute("data-running") is None)
    seen = root.get_attribute("data-n")
    assert book.python("print(live.run.n, live.running)") == f"{seen} False"
    root.locator('[data-testid="svp-sampler"]').select_option("always_accept")
    book.until(lambda: root.get_attribute("data-n") == "0")
    play.click()
    book.until(lambda: "e reached 100" in root.locator('[data-testid="svp-verdict"]').inner_text())
    play.click()
    sent = [len(frame) for frame in book.received if b'"e_alarm"' in frame]
    assert len(sent) > 3
    assert max(sent) < 40_000  # small messages, a few a second


def test_a_busy_kernel_does_not_stop_the_thread_and_closing_does(book: Book) -> None:
    root = book.page.locator('[data-testid="specviz-watch"]')
    book.python("live.reset(); live.start(); import time; time.sleep(1); live.pause()")
    book.until(lambda: int(root.get_attribute("data-n")) > 50)
    book.python("live.start(); live.close(); time.sleep(1)")
    alive = "import threading; print([t.name for t in threading.enumerate() if 'watch' in t.name])"
    assert book.python(alive) == "[]"
