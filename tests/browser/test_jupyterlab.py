"""The player in a real JupyterLab, in a real browser, cut off from the world."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import specviz as sv
from specviz.figures.theme import contrast
from specviz.player.assets import packed
from specviz.player.projection import run_of
from tests.browser.lab import Book, Lab
from tests.browser.pages import INKS, hexadecimal
from tests.player.runs import decoded

pytestmark = pytest.mark.browser

RUNS: dict[str, dict[str, int]] = {"run": {}, "other_run": {"seed": 1}, "alone": {"gamma": 0}}
SETUP = "import specviz as sv\n" + "\n".join(  # from files: no kernel has to load torch
    f"{name} = sv.Trace.load('{name}.specviz')" for name in RUNS
)
PLAY = "player = sv.play(run, guided=True)\nplayer"
OTHER = "other = sv.play(other_run)\nother"
RACE = "sv.race([run, alone])"
WIDGETS = "from ipywidgets.widgets import widget; print(len(widget._instances))"
WIDTHS = "all => all.map(one => [one.scrollWidth - one.clientWidth, one.clientWidth])"
STEPS = "all => all.map(one => one.dataset.step)"

FIRST, SECOND = (  # where both players begin
    str(int(one.first_step[one.header["opening"]]))
    for one in (run_of(decoded(**RUNS[name])) for name in ("run", "other_run"))
)


@pytest.fixture(scope="module", autouse=True)
def files(lab: Lab) -> None:
    for name, options in RUNS.items():
        decoded(**options).save(lab.folder / f"{name}.specviz")


@pytest.fixture(scope="module")
def one_book(browser: Any, lab: Lab, files: None) -> Iterator[Book]:
    """A notebook of three widgets, one of them shown twice."""
    book = Book(browser, lab, lab.write("one.ipynb", SETUP, PLAY, "player", OTHER, RACE))
    book.run_all()
    yield book
    book.close()


@pytest.fixture
def book(one_book: Book) -> Iterator[Book]:
    """The same, at its beginning; nothing may go outside or be complained about."""
    one_book.until(lambda: one_book.page.locator(".svp-bar").count() == 4)
    one_book.press("Home")
    yield one_book
    assert one_book.outside == []
    assert one_book.complaints == []


def steps(book: Book) -> list[str]:
    """The step of each player (a race has none)."""
    return [step for step in book.page.locator(".svp").evaluate_all(STEPS) if step is not None]


def test_it_steps_scrubs_and_talks_with_the_kernel(book: Book) -> None:
    book.press("ArrowRight", "ArrowRight", "ArrowRight")
    assert steps(book)[0] == "3"
    book.until(lambda: book.python("print(player.step)") == "3")
    book.page.locator('[data-testid="svp-scrub"]').first.fill("20")
    assert steps(book)[0] == "20"
    book.until(lambda: book.python("print(player.step)") == "20")
    book.python("player.round = 2")
    book.until(lambda: book.page.locator(".svp").first.get_attribute("data-round") == "2")
    before = int(steps(book)[0])
    book.page.locator('[data-testid="svp-play"]').first.click()
    book.until(lambda: int(steps(book)[0]) > before)
    book.page.locator('[data-testid="svp-play"]').first.click()


def test_two_views_of_one_player_follow_each_other(book: Book) -> None:
    book.until(lambda: steps(book) == ["0", "0", SECOND])
    book.press("ArrowRight", "ArrowRight")
    book.until(lambda: steps(book) == ["2", "2", SECOND])  # the other player stays where it is


def test_the_script_is_sent_once_for_all_players(book: Book) -> None:
    assert len([frame for frame in book.received if packed()[:200] in frame]) == 1
    assert book.models() == 7  # three widgets, a layout each, one script


@pytest.mark.parametrize("theme", ["Light", "Dark"])
def test_every_letter_can_be_read_in_both_themes(book: Book, theme: str) -> None:
    book.page.evaluate(
        "(theme) => window.jupyterapp.commands.execute('apputils:change-theme', { theme })",
        f"JupyterLab {theme}",
    )
    named = "document.body.dataset.jpThemeName"
    book.until(lambda: book.page.evaluate(named) == f"JupyterLab {theme}")
    low: dict[str, float] = {}
    for keys in (["Home"], ["n"], ["b"], ["p"], ["?"]):
        book.press(*keys)
        book.page.wait_for_timeout(250)  # the end of a transition
        found = book.page.evaluate(INKS)
        assert len(found) > 40
        grounds = [hexadecimal(ground) for _, _, ground in found]
        usual = max(set(grounds), key=grounds.count)
        assert (contrast("#ffffff", usual) < 4.5) == (theme == "Light")
        for words, ink, ground in found:
            ratio = contrast(hexadecimal(ink), hexadecimal(ground))
            if ratio < 4.5:
                low[words] = ratio
    assert low == {}
    book.press("p", "Escape")


def test_it_fits_a_telephone(book: Book) -> None:
    book.narrow()
    for keys in (["Home"], ["n"], ["b"], ["p"], ["?"], ["End"]):
        book.press(*keys)
        for over, wide in book.page.locator(".svp").evaluate_all(WIDTHS):
            assert over <= 0
            assert 150 < wide < 320
    assert book.page.evaluate("document.documentElement.scrollWidth") <= 320
    book.press("p", "Escape")
    book.page.set_viewport_size({"width": 1280, "height": 720})


def test_a_control_that_hides_does_not_take_the_keyboard(book: Book) -> None:
    focused = "document.activeElement === document.querySelector('.svp')"
    keys = book.page.keyboard
    book.press("e", "n")  # the draws are among the details
    step = int(steps(book)[0])
    slider = book.page.locator(".svp-test .svp-drag").first
    slider.evaluate("it => it.scrollIntoView({block: 'center'})")
    box = slider.bounding_box()
    y = box["y"] + box["height"] / 2
    book.page.mouse.move(box["x"] + 0.9 * box["width"], y)
    book.page.mouse.down()
    book.page.mouse.move(box["x"] + 0.2 * box["width"], y, steps=4)
    book.page.mouse.up()
    book.until(lambda: book.page.evaluate(focused))
    keys.press("ArrowRight")
    assert int(steps(book)[0]) == step + 1
    book.press("n")
    slider.focus()
    keys.press("p")  # hides u
    assert book.page.evaluate(focused)
    book.page.locator(".svp-answers button").first.click()
    assert book.page.evaluate(focused)
    keys.press("Home")
    assert steps(book)[0] == "0"
    keys.press("p")


CELLS = """() => { const { content } = window.jupyterapp.shell.currentWidget;
  return [content.widgets.length, content.activeCellIndex, content.mode,
          content.widgets.map(cell => cell.model.type + cell.model.sharedModel.source).join()]; }"""


def test_its_keys_do_not_touch_the_notebook(book: Book) -> None:
    book.page.evaluate("window.jupyterapp.shell.currentWidget.content.activeCellIndex = 1; null")
    book.page.focus(".svp")
    before = book.page.evaluate(CELLS)
    keys = "ArrowDown ArrowUp ArrowRight ArrowLeft b a d d x c v z m y k j Enter Space 0 0 i i"
    book.press(*keys.split(), "Shift+Enter", "Control+Enter", "Alt+Enter")
    assert book.page.evaluate(CELLS) == before
    book.page.evaluate("document.querySelector('.svp').blur()")
    book.page.evaluate("window.jupyterapp.shell.currentWidget.content.node.focus()")
    book.page.keyboard.press("b")  # twin: the same key in the notebook makes a cell
    book.until(lambda: book.page.evaluate(CELLS)[0] == before[0] + 1)


def test_the_guard_sees_and_stops_what_goes_outside(book: Book) -> None:
    failed = book.page.evaluate("fetch('http://192.0.2.1/x').then(() => false, () => true)")
    assert failed
    assert book.outside == ["http://192.0.2.1/x"]
    book.outside.clear()
    book.until(lambda: book.complaints)  # the browser says so too, a moment later
    book.complaints.clear()


def test_it_survives_running_again_opening_again_and_a_restart(browser: Any, lab: Lab) -> None:
    book = Book(browser, lab, lab.write("again.ipynb", SETUP, PLAY, OTHER))
    book.run_all()
    book.until(lambda: steps(book) == [FIRST, SECOND])
    before = book.python(WIDGETS), book.models()

    for _ in range(3):  # running the cells again leaves nothing behind, on either side
        book.run_all()
    book.until(lambda: steps(book) == [FIRST, SECOND])
    assert book.python(WIDGETS) == before[0]
    book.until(lambda: book.models() == before[1])
    # twin: what is made outside a cell of its own is not closed, and the count shows it
    book.python("kept = [sv.play(run) for _ in range(2)]; [k.step for k in kept]")
    assert int(book.python(WIDGETS)) > int(before[0])

    book.python("player.step = 5")  # a page opened again shows what the kernel still has
    book.save()
    book.page.reload()
    book.ready()
    book.until(lambda: steps(book) == ["5", SECOND])

    book.restart()  # the view of the kernel before is still a player
    book.press("ArrowRight", "ArrowRight")
    assert steps(book) == ["7", SECOND]
    assert book.page.locator('.svp [role="alert"]').count() == 0
    book.run_all()  # and a new one works
    book.until(lambda: steps(book) == [FIRST, SECOND])
    book.press("ArrowRight")
    book.until(lambda: book.python("print(player.step)") == str(int(FIRST) + 1))
    assert (book.outside, book.complaints) == ([], [])
    book.close()


def test_a_notebook_saved_with_its_widgets_plays_without_running(browser: Any, lab: Lab) -> None:
    player = sv.play(decoded())
    book = Book(browser, lab, lab.write_saved("saved.ipynb", player))
    player.close()
    book.until(lambda: steps(book) == [FIRST])
    book.press("ArrowRight", "ArrowRight")
    assert steps(book) == [str(int(FIRST) + 2)]
    assert (book.outside, book.complaints) == ([], [])
    book.close()


SHOWN = "one => one.getBoundingClientRect().height > 0"


def saved_notebook(lab: Lab, name: str, state: bool) -> Any:
    """Run a notebook without a front end and save it, trusted, with or without widget state."""
    import nbformat
    from nbclient import NotebookClient
    from nbformat.sign import NotebookNotary

    where = lab.folder / lab.write(name, SETUP, "sv.play(run, guided=True)", "sv.one_position()")
    book = nbformat.read(where, 4)
    client = NotebookClient(book, store_widget_state=state, resources={"metadata": {}})
    client.resources["metadata"]["path"] = str(lab.folder)
    client.execute()
    nbformat.write(book, where)
    NotebookNotary(data_dir=str(lab.folder.parent / "data")).sign(book)
    return book


def test_a_notebook_opened_without_its_kernel_still_plays(browser: Any, lab: Lab) -> None:
    saved_notebook(lab, "dead.ipynb", state=False)
    book = Book(browser, lab, "dead.ipynb")
    pages = book.page.frame_locator(".specviz-saved iframe")
    book.until(lambda: pages.first.locator(".svp").count() == 1)
    assert book.page.locator("text=model not found").first.is_hidden()
    player = pages.first.locator(".svp")
    book.until(lambda: player.get_attribute("data-step") is not None)
    before = player.get_attribute("data-step")

    def stepped() -> bool:  # the first keys may come before the page listens
        player.press("ArrowRight")
        return bool(player.get_attribute("data-step") != before)

    book.until(stepped, polls=100)
    assert book.page.locator(".specviz-saved img").first.is_hidden()
    assert book.outside == []
    book.run_all()  # with a kernel the widget is there, and its page makes room
    book.until(lambda: book.page.locator(".svp").count() == 2)
    book.until(lambda: not any(book.page.locator(".specviz-saved").evaluate_all(
        "all => all.map(one => one.getBoundingClientRect().height > 0)"
    )))  # fmt: skip
    book.close()


@pytest.mark.parametrize("state", [False, True])
def test_an_exported_notebook_plays_and_asks_nobody(
    browser: Any, lab: Lab, tmp_path: Any, state: bool
) -> None:
    """nbconvert's own page asks for require.js and MathJax; the player in it for nothing."""
    from nbconvert import HTMLExporter

    book = saved_notebook(lab, f"exported-{state}.ipynb", state)
    page = tmp_path / "exported.html"
    page.write_text(HTMLExporter().from_notebook_node(book)[0], "utf-8")
    context = browser.new_context()
    outside: list[str] = []

    def guard(route: Any) -> None:
        if route.request.url.startswith(("file:", "data:", "blob:")):
            route.continue_()
        else:
            outside.append(route.request.url)
            route.abort()

    context.route("**/*", guard)
    opened = context.new_page()
    opened.goto(page.as_uri())
    player = opened.frame_locator(".specviz-saved iframe").first.locator(".svp")
    player.wait_for(timeout=20_000)
    before = player.get_attribute("data-step")
    player.press("ArrowRight")
    assert player.get_attribute("data-step") != before
    assert opened.locator(".specviz-saved img").first.is_hidden()
    assert not any("specviz" in url for url in outside)
    context.close()


def test_where_scripts_are_taken_away_a_picture_stays(browser: Any) -> None:
    player = sv.play(decoded())
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.set_content(player.saved()["text/html"])
    assert page.locator(".specviz-saved img").evaluate(SHOWN)
    assert page.locator(".specviz-saved iframe").is_hidden()
    assert "speculative" in page.locator("img").get_attribute("alt").lower()
    player.close()
    context.close()
