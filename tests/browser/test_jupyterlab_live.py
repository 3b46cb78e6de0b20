"""A live run in a real JupyterLab: watched, changed while it runs, cancelled, run again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.browser.lab import Book, Lab

pytestmark = pytest.mark.browser

CELLS = (
    "import threading\nimport specviz as sv\nfrom tests.player.runs import pair\n"
    "from tests.player.slow import Slow",
    "live = sv.play_live(pair(), [2], drafter=Slow(gamma=4), max_new_tokens=2000)\nlive",
)
THREADS = "print(sum(t.name.startswith('specviz-live') for t in threading.enumerate()))"


@pytest.fixture(scope="module")
def one_book(browser: Any, lab: Lab) -> Iterator[Book]:
    book = Book(browser, lab, lab.write("live.ipynb", *CELLS))
    yield book
    book.close()


@pytest.fixture
def book(one_book: Book) -> Iterator[Book]:
    """The notebook, its cells run anew: a run has just begun."""
    one_book.run_all()
    one_book.until(lambda: one_book.page.locator(".svp-bar").count() == 1)
    one_book.until(lambda: state(one_book) == ("running", 1))
    yield one_book
    assert one_book.outside == []
    assert one_book.complaints == []


def state(book: Book) -> tuple[str, int]:
    """The state, and the number of the run."""
    data = book.page.locator(".svp-lv").evaluate("one => ({...one.dataset})")
    return data["state"], int(data["run"])


def current_round(book: Book) -> int:
    return int(book.page.locator(".svp-below .svp").get_attribute("data-round"))


def test_it_is_followed_changed_while_it_runs_cancelled_and_run_again(book: Book) -> None:
    page = book.page
    before = current_round(book)
    book.until(lambda: current_round(book) > before + 3)  # it follows
    slider = page.locator('[data-field="temperature"]')
    slider.focus()
    page.keyboard.press("ArrowRight")
    book.until(lambda: state(book) == ("running", 2))  # the kernel hears it while it runs
    assert book.python("print(live.settings['temperature'])") == "1.05"
    book.until(lambda: current_round(book) > 3)
    assert slider.evaluate("one => one === document.activeElement")  # the focus stays
    page.locator(".svp-below .svp").focus()
    page.keyboard.press("ArrowLeft")
    stays = current_round(book)
    tokens = "print(len(live.trace.tokens))"
    known = int(book.python(tokens))
    book.until(lambda: int(book.python(tokens)) > known + 20)
    assert abs(current_round(book) - stays) <= 1  # and the reader's place
    page.click(".svp-follow")
    book.until(lambda: current_round(book) > stays + 3)
    page.click('[data-testid="svp-cancel"]')
    book.until(lambda: state(book) == ("cancelled", 2))
    assert book.python("print(live.trace.finish_reason, live.running)") == "interrupted False"
    assert "cancelled: " in page.locator('[data-testid="svp-state"]').inner_text()
    page.click('[data-testid="svp-run"]')
    book.until(lambda: state(book) == ("running", 3))
    page.locator('[data-field="max_new_tokens"]').fill("12")
    page.keyboard.press("Enter")
    book.until(lambda: state(book)[0] == "done")
    assert "12 of 12 tokens" in page.locator('[data-testid="svp-state"]').inner_text()


def test_what_is_wrong_is_one_sentence_in_the_widget(book: Book) -> None:
    assert book.page.locator('[data-field="rule"] option[value="greedy"]').is_disabled()
    book.page.locator('[data-field="prompt"]').fill("99")
    book.page.click('[data-testid="svp-run"]')
    book.until(lambda: state(book)[0] == "error")
    said = book.page.locator('[data-testid="svp-error"]').inner_text()
    assert said == "prompt has id 99, outside the vocabulary of 12 tokens"
    outputs = " ".join(book.page.locator(".jp-OutputArea-output").all_inner_texts())
    assert "Traceback" not in outputs
    book.page.locator('[data-field="prompt"]').fill("2")
    book.page.click('[data-testid="svp-run"]')
    book.until(lambda: state(book)[0] == "running")
    assert not book.page.locator('[data-testid="svp-error"]').is_visible()


def test_running_the_cell_again_or_a_restart_stops_the_thread(book: Book) -> None:
    assert book.python(THREADS) == "1"
    models = book.models()
    book.run_all()
    book.until(lambda: book.page.locator(".svp-bar").count() == 1)
    book.until(lambda: book.python(THREADS) == "1")
    assert book.models() == models
    book.python("live.close()")
    book.until(lambda: book.python(THREADS) == "0")
    book.run_all()
    book.until(lambda: state(book)[0] == "running")
    book.restart()
    assert book.python("import threading; " + THREADS) == "0"
    book.page.locator(".svp-below .svp").focus()
    book.page.keyboard.press("ArrowLeft")  # the old view is still a player
    book.page.click('[data-testid="svp-run"]')  # but has nobody to ask, and says so
    book.until(lambda: book.page.locator('[data-testid="svp-error"]').is_visible())
    assert "run again" in book.page.locator('[data-testid="svp-error"]').inner_text()
    book.run_all()
    book.until(lambda: state(book) == ("running", 1))


def test_its_keys_stay_its_own_and_it_fits_a_telephone(book: Book) -> None:
    page = book.page
    cells = "window.jupyterapp.shell.currentWidget.content.widgets.length"
    before = page.evaluate(cells)
    page.locator('[data-field="prompt"]').focus()
    for key in ["End", " ", "5", "Escape", "b", "a", "d", "d", "ArrowDown", "Backspace"]:
        page.keyboard.press(key)
    page.locator('[data-field="gamma"]').focus()
    for key in ["Escape", "b", "a", "d", "d", "ArrowRight"]:
        page.keyboard.press(key)
    assert page.evaluate(cells) == before
    book.narrow()
    over = "all => all.map(one => one.scrollWidth - one.clientWidth)"
    assert page.locator(".svp").evaluate_all(over) == [0, 0]
