"""The editor of one position in Python: its values, its twin, its page."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import traitlets

import specviz as sv
from specviz.player.assets import LAB, LAB_PAGE, packed, script
from specviz.player.page import policy

HOSTILE = "</script><img src=x onerror=alert(1)>"


def test_it_holds_the_distributions_and_its_own_script() -> None:
    editor = sv.one_position([0.5, 0.3, 0.2], [0.2, 0.3, 0.5], ["a", "b", "c"], fault="no_draw")
    assert (editor.kind, editor.fault, editor.way, editor.seed) == ("editor", "no_draw", "one", 0)
    assert editor.p == [0.5, 0.3, 0.2]
    assert editor.script.code == packed(LAB)
    assert len(packed(LAB)) < 50_000
    editor.close()


def test_an_editor_and_a_player_have_scripts_of_their_own() -> None:
    from tests.player.runs import decoded

    editor, player = sv.one_position(), sv.play(decoded())
    assert editor.digest != player.digest
    assert sv.one_position().script is editor.script
    assert "m_player" not in script(LAB)
    editor.close()
    player.close()


def test_by_default_it_begins_with_the_fox() -> None:
    editor = sv.one_position()
    assert editor.words == ["the", "quick", "brown", "fox", "lazy"]
    assert np.minimum(editor.p, editor.q).sum() == pytest.approx(0.7)
    other = sv.one_position(preset="peaked")
    assert other.options["preset"] == "peaked"
    assert "no browser has opened" in other.plain_text()
    editor.close()
    other.close()


def test_its_twin_needs_no_front_end() -> None:
    editor = sv.one_position([0.5, 0.5], [0.9, 0.1])
    data, _ = editor._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in data
    assert base64.b64decode(data["image/png"]).startswith(b"\x89PNG")
    assert "accepted with probability .600 = sum min(p, q)" in data["text/plain"]
    editor.close()


def test_distributions_can_be_set_and_only_distributions() -> None:
    editor = sv.one_position([0.5, 0.5], [0.9, 0.1])
    editor.p = [0.25, 0.75]
    editor.fault = "always_accept"
    with pytest.raises(ValueError, match=r"p must sum to 1, got 1\.5"):
        editor.p = [0.75, 0.75]
    with pytest.raises(traitlets.TraitError, match="fault must be '' or one of"):
        editor.fault = "bad_luck"
    assert editor.p == [0.25, 0.75]
    editor.close()


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ({"p": [0.5, 0.5]}, ValueError, "p and q must be given together, got only p"),
        ({"p": [0.5, 0.6], "q": [0.5, 0.5]}, ValueError, "p must sum to 1, got 1.1"),
        ({"p": [1.5, -0.5], "q": [0.5, 0.5]}, ValueError, "p must have probabilities of 0 or more"),
        ({"p": [np.nan, 1], "q": [0.5, 0.5]}, ValueError, "p must have probabilities of 0 or more"),
        ({"p": [1.0], "q": [1.0]}, ValueError, "p must have 2 to 12 probabilities"),
        ({"p": [1 / 13] * 13, "q": [1 / 13] * 13}, ValueError, "p must have 2 to 12"),
        ({"p": "half", "q": [0.5, 0.5]}, TypeError, "p must be a list of probabilities, got str"),
        ({"p": [0.5, 0.5], "q": [0.2, 0.3, 0.5]}, ValueError, "must have one length, got 2 and 3"),
        ({"labels": ["a", "b"]}, ValueError, "labels must come with p and q"),
        (
            {"p": [0.5, 0.5], "q": [0.5, 0.5], "labels": "ab"},
            TypeError,
            "labels must be a list of str, got str",
        ),
        (
            {"p": [0.5, 0.5], "q": [0.5, 0.5], "labels": ["a", 2]},
            TypeError,
            r"labels\[1\] must be a str, got int",
        ),
        (
            {"p": [0.5, 0.5], "q": [0.5, 0.5], "labels": ["a"]},
            ValueError,
            "labels must name each of the 2 tokens, got 1",
        ),
        ({"preset": "hound"}, ValueError, "preset must be one of 'fox'"),
        ({"p": [0.5, 0.5], "q": [0.5, 0.5], "preset": "fox"}, ValueError, "preset must be left"),
        ({"way": "luck"}, ValueError, "way must be one of 'one'"),
        ({"fault": "bad_luck"}, ValueError, "fault must be one of 'bare_threshold'"),
        ({"seed": -1}, ValueError, "seed must be a whole number"),
        ({"theme": "pink"}, ValueError, "theme must be 'auto', 'light' or 'dark'"),
    ],
)
def test_wrong_input_is_one_sentence(
    arguments: dict[str, Any], error: type[Exception], says: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=says):
        sv.one_position(**arguments)
    with pytest.raises(error, match=says):
        sv.one_position_html(tmp_path / "no.html", **arguments)
    assert list(tmp_path.iterdir()) == []


def test_the_page_is_whole_small_and_says_what_it_is_without_scripts(tmp_path: Path) -> None:
    where = sv.one_position_html(tmp_path / "one.html", [0.5, 0.5], [0.9, 0.1], [HOSTILE, "b"])
    text = where.read_text("utf-8")
    assert HOSTILE not in text
    assert policy(LAB_PAGE) in text
    assert "accepted with probability .600" in text
    assert len(text) < 80_000
    again = sv.one_position_html(tmp_path / "two.html", [0.5, 0.5], [0.9, 0.1], [HOSTILE, "b"])
    assert again.read_text("utf-8") == text
    with pytest.raises(FileNotFoundError, match="the folder of path does not exist"):
        sv.one_position_html(tmp_path / "no" / "one.html")
    with pytest.raises(IsADirectoryError, match="path is a folder"):
        sv.one_position_html(tmp_path)
    with pytest.raises(TypeError, match="path must be a file name"):
        sv.one_position_html(3)  # type: ignore[arg-type]
