"""The editor and the watch as widgets in a real browser, with a stand-in for the notebook."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

import specviz as sv
from specviz.core.tabular import TabularModel, TabularPair
from specviz.player.widget import Widget
from tests.browser.pages import Opened
from tests.browser.test_player_widget import HOST

pytestmark = pytest.mark.browser
COIN = TabularPair(TabularModel([0.5, 0.5]), TabularModel([0.9, 0.1]))
NOTEBOOK = "window.keys = []; document.addEventListener('keydown', (e) => window.keys.push(e.key));"


def hosted(widget: Widget, where: Path, **values: Any) -> Path:
    told = {"manager": True, "answers": True, "data": [], **values} | {
        "kind": widget.kind,
        "digest": widget.digest,
        "options": widget.options,
        "code": base64.b64encode(widget.script.code).decode(),
    }
    loader = str(widget._esm).replace("export default", "const loader =")
    escaped = json.dumps(told).replace("<", "\\u003c")
    where.write_text(
        f"<!DOCTYPE html><meta charset=utf-8><body><div class=host></div><div class=host></div>"
        f"<script type=application/json id=values>{escaped}</script>"
        f"<script type=module>{NOTEBOOK}{loader}\n{HOST}</script>",
        "utf-8",
    )
    widget.close()
    return where


def edited(where: Path) -> Path:
    editor = sv.one_position([0.5, 0.3, 0.2], [0.2, 0.3, 0.5], ["a", "b", "c"])
    names = ("words", "p", "q", "way", "fault", "seed")
    return hosted(editor, where, **{name: getattr(editor, name) for name in names})


def test_two_editors_follow_the_model_and_leave_nothing_behind(
    browser: Any, tmp_path: Path
) -> None:
    opened = Opened(browser, edited(tmp_path / "lab.html"))
    page = opened.page
    opened.until(lambda: page.locator(".svp-bar").count() == 2)
    views = [page.locator(".svp-editor").nth(i) for i in range(2)]
    views[0].get_by_role("slider", name="target p of “a”").focus()
    page.keyboard.press("End")
    opened.until(lambda: page.evaluate("model.get('p')") == [1, 0, 0])
    second = views[1].get_by_role("slider", name="target p of “a”")
    opened.until(lambda: second.get_attribute("aria-valuenow") == "1.000")
    page.evaluate("model.set('fault', 'always_accept'); model.set('p', [0.25, 0.25, 0.5])")
    opened.until(lambda: second.get_attribute("aria-valuenow") == "0.250")
    fault = page.locator('[data-testid="svp-fault"]').nth(1)
    assert "every proposal is accepted" in fault.inner_text()
    views[0].get_by_role("button", name="One token more").click()
    opened.until(lambda: page.evaluate("model.get('words').length") == 4)
    opened.until(lambda: views[1].locator('[role="slider"]:visible').count() == 8)
    page.evaluate("window.ends.forEach(end => end.abort())")
    assert page.locator(".svp").count() == 0
    assert page.evaluate("window.listeners()") == 0
    assert opened.complaints == []
    assert [url for url in opened.requests if not url.startswith(("file:", "blob:"))] == []


def test_drawing_sends_nothing_and_no_key_reaches_the_notebook(
    browser: Any, tmp_path: Path
) -> None:
    opened = Opened(browser, edited(tmp_path / "lab.html"))
    opened.press("ArrowRight", "d", " ", "]", "[", "?")
    opened.page.locator(".svp-half").first.focus()
    for key in ("ArrowLeft", "Home", "l"):
        opened.page.keyboard.press(key)
    assert opened.page.evaluate("window.keys") == []
    assert opened.page.evaluate("window.saved") <= 3  # acts, not draws
    opened.press("b")
    assert opened.page.evaluate("window.keys") == ["b"]
    root = opened.page.locator(".svp").first
    assert root.get_attribute("data-lm-suppress-shortcuts") == "true"


def test_a_watch_shows_what_python_sends_and_asks_by_messages(browser: Any, tmp_path: Path) -> None:
    live = sv.watch(COIN, faults=["always_accept"], limit=1000)
    live.draw(300)
    state = live.state
    live.choose("always_accept")
    live.draw(500)
    later = live.state
    opened = Opened(browser, hosted(live, tmp_path / "watch.html", state=state))
    page = opened.page
    assert "300 samples" in page.locator('[data-testid="svp-verdict"]').first.inner_text()
    page.evaluate("state => model.set('state', state)", later)
    opened.until(
        lambda: "e reached 100" in page.locator('[data-testid="svp-verdict"]').nth(1).inner_text()
    )
    opened.press(" ")
    page.locator('[data-testid="svp-sampler"]').first.select_option("right")
    asked = [one for one in page.evaluate("window.asked") if one != "s"]
    assert asked == [{"do": "start", "value": None}, {"do": "sampler", "value": "right"}]
    page.evaluate("window.ends.forEach(end => end.abort())")
    assert page.evaluate("window.listeners()") == 0
    assert opened.complaints == []
