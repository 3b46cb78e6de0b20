"""The widget's loader in a real browser, with a stand-in for the notebook's model."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

import specviz as sv
from specviz.figures.theme import contrast
from specviz.player.widget import Widget
from tests.browser.pages import INKS, Opened, hexadecimal
from tests.figures.runs import story
from tests.player.runs import decoded, pair

pytestmark = pytest.mark.browser

# A host such as JupyterLab: a model with bytes, two views of it, and a signal that ends one.
HOST = """
const bytes = (text) => new DataView(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer);
const said = JSON.parse(document.getElementById('values').textContent);
const values = {...said, script: 'IPY_MODEL_s', data: said.data.map(bytes)};
const heard = [];
const script = {digest: said.digest, code: bytes(said.code)};
window.asked = [];
window.saved = 0;
window.model = {
  get: (name) => values[name],
  set(name, value) { if (values[name] === value) return; values[name] = value;
    for (const [event, does] of [...heard]) if (event === `change:${name}`) does(value); },
  save_changes() { window.saved++; },
  widget_manager: said.manager && {get_model: async (id) => (window.asked.push(id),
    {get: (name) => script[name]})},
  send(content) { window.asked.push(content);
    for (const [event, does] of [...heard]) if (event === 'msg:custom' && said.answers)
      does({script: said.digest}, [script.code]); },
  on(event, does) { heard.push([event, does]); },
  off(event, does) { const at = heard.findIndex(([e, d]) => e === event && d === does);
    if (at >= 0) heard.splice(at, 1); },
};
window.listeners = () => heard.length;
window.ends = [];
for (const el of document.querySelectorAll('.host')) {
  const end = new AbortController();
  window.ends.push(end);
  loader.render({ model: window.model, el, signal: end.signal });
}
"""


def hosted(widget: Widget, where: Path, *, manager: bool = True, answers: bool = True) -> Path:
    values: dict[str, Any] = {"manager": manager, "answers": answers} | {
        name: getattr(widget, name)
        for name in ("kind", "digest", "options", "step", "round", "settings", "status")
        if hasattr(widget, name)
    }
    values["code"] = base64.b64encode(widget.script.code).decode()
    values["data"] = [base64.b64encode(run).decode() for run in widget.data]
    told = json.dumps(values).replace("<", "\\u003c")
    loader = str(widget._esm).replace("export default", "const loader =")
    where.write_text(
        f"<!DOCTYPE html><meta charset=utf-8><body><div class=host></div><div class=host></div>"
        f"<script type=application/json id=values>{told}</script>"
        f"<script type=module>{loader}\n{HOST}</script>",
        "utf-8",
    )
    widget.close()
    return where


def test_two_views_follow_the_model_and_leave_nothing_behind(browser: Any, tmp_path: Path) -> None:
    opened = Opened(browser, hosted(sv.play(story(), guided=True), tmp_path / "lab.html"))
    page = opened.page
    opened.until(lambda: page.locator(".svp-bar").count() == 2)

    def steps() -> list[str]:
        return page.locator(".svp").evaluate_all("all => all.map(one => one.dataset.step)")

    opened.press("Home", "ArrowRight", "ArrowRight", "ArrowRight")
    opened.until(lambda: steps() == ["3", "3"])  # the second view follows, through the model
    page.wait_for_timeout(300)
    assert page.evaluate("window.saved") <= 4  # acts, not frames
    assert page.evaluate("[model.get('step'), model.get('round')]") == [3, 0]
    page.evaluate("model.set('round', 2)")
    opened.until(lambda: opened.position == "2 verify")
    page.evaluate("window.ends.forEach(end => end.abort())")
    assert page.locator(".svp").count() == 0
    assert page.evaluate("window.listeners()") == 0
    assert opened.complaints == []
    assert [url for url in opened.requests if not url.startswith(("file:", "blob:"))] == []


def test_the_script_is_looked_up_once_or_asked_for_once(browser: Any, tmp_path: Path) -> None:
    opened = Opened(browser, hosted(sv.play(story()), tmp_path / "lab.html"))
    opened.until(lambda: opened.page.locator(".svp-bar").count() == 2)
    assert opened.page.evaluate("window.asked") == ["s"]
    without = hosted(sv.play(story()), tmp_path / "without.html", manager=False)
    opened = Opened(browser, without)
    opened.until(lambda: opened.page.locator(".svp-bar").count() == 2)
    assert opened.page.evaluate("window.asked") == [{"ask": "script"}]


def test_a_script_that_does_not_come_is_said_in_a_sentence(browser: Any, tmp_path: Path) -> None:
    where = hosted(sv.play(story()), tmp_path / "silent.html", manager=False, answers=False)
    where.write_text(where.read_text("utf-8").replace("10_000", "100"), "utf-8")
    page = browser.new_context().new_page()
    page.goto(where.as_uri())
    page.wait_for_selector('[role="alert"]')
    assert "run the cell again" in page.locator('[role="alert"]').first.inner_text()


def test_playing_sends_nothing_until_it_pauses(browser: Any, tmp_path: Path) -> None:
    opened = Opened(browser, hosted(sv.play(decoded()), tmp_path / "lab.html"))
    opened.press("e")  # the pace is among the details
    opened.page.locator("select").first.select_option("30")
    begin = opened.step
    opened.press(" ")
    opened.until(lambda: opened.step > begin + 10)
    assert opened.page.evaluate("window.saved") == 0
    opened.press(" ")
    opened.until(lambda: opened.page.evaluate("window.saved") == 1)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_live_run_can_be_read_and_fits(browser: Any, tmp_path: Path, scheme: str) -> None:
    live = sv.play_live(pair(), [2], max_new_tokens=40, guided=True)
    live.wait(20)
    live.run(rule="greedy")  # an error to read, above the run before
    live.wait(20)
    where = hosted(live, tmp_path / "live.html")
    opened = Opened(browser, where, color_scheme=scheme, viewport={"width": 320, "height": 900})
    opened.until(lambda: opened.page.locator(".svp-bar").count() == 2)
    over = "all => all.map(one => one.scrollWidth - one.clientWidth)"
    assert opened.page.locator(".svp").evaluate_all(over) == [0] * 4
    opened.page.wait_for_timeout(250)
    found = opened.page.evaluate(INKS)
    assert any("verify='greedy'" in words for words, _, _ in found)
    assert [
        words
        for words, ink, ground in found
        if contrast(hexadecimal(ink), hexadecimal(ground)) < 4.5
    ] == []
    names = opened.page.locator("[data-field]").evaluate_all("all => all.map(x => x.labels.length)")
    assert names == [1] * 14  # every field has its words
    opened.page.locator('[data-field="prompt"]').first.focus()
    for _ in range(8):  # and is reached by the keyboard, the buttons too (Cancel has no use now)
        opened.page.keyboard.press("Tab")
    assert opened.page.evaluate("document.activeElement.type") == "checkbox"
    assert opened.complaints == []


def test_a_race_runs_to_its_end(browser: Any, tmp_path: Path) -> None:
    race = sv.race([decoded(), decoded(gamma=0)])
    opened = Opened(browser, hosted(race, tmp_path / "race.html"))
    racers = opened.page.locator(".svp-race").first.locator(".svp-racer")
    assert racers.count() == 2
    opened.press(*["ArrowRight"] * 50)
    told = racers.all_inner_texts()
    assert "target alone" in told[1]
    opened.press("End")
    assert "60 tokens" in racers.nth(0).inner_text()
    assert "first:" in racers.nth(0).inner_text()
    assert "After" in opened.page.locator('[data-testid="svp-live"]').first.text_content()
    assert opened.complaints == []
