"""The widget: what it holds, what it shows without a front end, what it leaves behind."""

from __future__ import annotations

import base64
import gzip
from html import unescape
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import specviz as sv
from specviz.player import widget
from specviz.player.assets import packed
from specviz.player.projection import MAGIC, run_of
from tests.figures.runs import story
from tests.player.runs import branching, decoded


def test_it_holds_the_run_and_the_script_once() -> None:
    player = sv.play(decoded(), guided=True)
    assert player.kind == "player"
    assert [gzip.decompress(run)[:4] for run in player.data] == [MAGIC]
    assert player.script.code == packed()
    assert player.options["guided"] is True
    assert sum(len(v) for v in [player.script.code, *player.data]) < 80_000
    player.close()


def test_all_widgets_share_one_script_made_anew_if_it_was_closed() -> None:
    first, second = sv.play(decoded()), sv.play(decoded(seed=1))
    assert first.script is second.script
    state = second.get_state()
    assert state["script"] == f"IPY_MODEL_{first.script.model_id}"
    assert sum(len(value) for value in state.values() if isinstance(value, bytes)) == 0
    first.script.close()
    third = sv.play(decoded())
    assert third.script is not first.script
    assert third.script.comm is not None
    for one in (first, second, third):
        one.close()


def test_a_front_end_without_a_manager_is_sent_the_script(monkeypatch: pytest.MonkeyPatch) -> None:
    player = sv.play(decoded())
    sent: list[Any] = []
    monkeypatch.setattr(player, "send", lambda content, buffers: sent.append((content, buffers)))
    player._handle_custom_msg({"ask": "weather"}, [])
    player._handle_custom_msg("script", [])
    assert sent == []
    player._handle_custom_msg({"ask": "script"}, [])
    assert sent == [({"script": player.digest}, [player.script.code])]
    player.close()


def test_a_place_can_be_set_from_python() -> None:
    player = sv.play(decoded())
    opening = player.step
    run = run_of(decoded())
    assert player.round == run.header["opening"]
    assert opening == run.first_step[player.round]
    player.round = 3
    assert (player.round, player.step) == (3, opening)
    player.close()


@pytest.mark.parametrize("run", [story, decoded, branching])
def test_its_twin_needs_no_front_end(run: Any) -> None:
    player = sv.play(run())
    data, _ = player._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in data
    assert data["text/plain"] == str(run())
    assert base64.b64decode(data["image/png"]).startswith(b"\x89PNG")
    player.close()


def test_only_a_run_without_rounds_has_no_picture() -> None:
    for trace, has in ((decoded(gamma=0), True), (sv.Trace({}, np.array([1])), False)):
        player = sv.play(trace)
        assert ("image/png" in player._repr_mimebundle_()[0]) == has
        player.close()


def test_running_a_cell_again_closes_what_it_made_before(monkeypatch: pytest.MonkeyPatch) -> None:
    cell = {"id": "a"}
    shell = SimpleNamespace(get_parent=lambda: {"metadata": {"cellId": cell["id"]}})
    monkeypatch.setitem(widget.sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    first = sv.play(decoded())
    other = sv.race([decoded(), decoded(seed=1)])
    again = sv.play(decoded())
    assert first.comm is None
    assert again.comm is not None
    assert other.comm is not None  # another kind of widget in the same cell stays
    cell["id"] = "b"
    elsewhere = sv.play(decoded())
    assert again.comm is not None
    for one in (other, again, elsewhere):
        one.close()
    widget._by_cell.clear()


def test_a_race_needs_runs_with_times() -> None:
    race = sv.race([decoded(), decoded(gamma=0)])
    assert len(race.data) == 2
    assert "target alone: 60 tokens in 60 target passes" in race.plain_text()
    assert base64.b64decode(race._repr_mimebundle_()[0]["image/png"]).startswith(b"\x89PNG")
    race.close()
    with pytest.raises(ValueError, match="traces must be 2 to 8 runs, got 1"):
        sv.race([decoded()])
    with pytest.raises(ValueError, match=r"traces\[1\] has no measured times"):
        sv.race([decoded(), decoded(timed=False)])
    with pytest.raises(TypeError, match=r"traces\[1\] must be a Trace, got int"):
        sv.race([decoded(), 3])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="traces must be a list of traces, got Trace"):
        sv.race(decoded())  # type: ignore[arg-type]


def test_what_is_no_trace_is_refused() -> None:
    with pytest.raises(TypeError, match="trace must be a Trace, got str"):
        sv.play("fox.specviz")  # type: ignore[arg-type]


def test_a_saved_notebook_holds_the_player_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[Any] = []
    monkeypatch.setattr("IPython.display.display", lambda data, **how: shown.append(data))
    player = sv.play(decoded())
    player._ipython_display_()
    assert [sorted(one) for one in shown] == [
        ["image/png", "text/html", "text/plain"],
        ["application/vnd.jupyter.widget-view+json", "text/plain"],
    ]
    assert player.name in shown[0]["text/html"]
    assert len(shown[0]["text/html"]) < 250_000
    player.close()


def test_hostile_tokens_stay_inside_the_saved_page(monkeypatch: pytest.MonkeyPatch) -> None:
    evil = "\"></iframe><script>alert('x')</script>"
    player = sv.play(decoded())
    monkeypatch.setattr(type(player), "plain_text", lambda self: evil)
    monkeypatch.setattr(type(player), "described", lambda self: evil)
    html = player.saved()["text/html"]
    assert "<script>alert" not in html
    assert html.count("</iframe>") == 1
    assert "<script>alert" in unescape(html)  # twin: without escaping it would get out
    player.close()


@pytest.mark.parametrize("of", ["race", "editor"])
def test_races_and_the_editor_are_saved_too(of: str) -> None:
    made = sv.race([decoded(), decoded(gamma=0)]) if of == "race" else sv.one_position()
    page = made.page()
    assert page.startswith("<!doctype html>") or page.startswith("<!DOCTYPE html>")
    assert '"standalone": true' in page
    assert "http://" not in page.replace("http://www.w3.org", "")
    made.close()
