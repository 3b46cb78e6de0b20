"""The page is one file that asks for nothing, and nothing in a token gets out of its place."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import specviz as sv
from specviz.figures.comparison import Comparison
from specviz.player.page import iframe, page
from tests.figures.runs import HOSTILE, hostile, story
from tests.player.runs import branching, decoded


class Elements(HTMLParser):
    """Every element of a page, and the text of its scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = [("", {})]
        self.scripts: dict[str, str] = {}
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attributes)))

    def handle_data(self, data: str) -> None:
        tag, attributes = self.found[-1]
        if tag == "script":
            self.scripts[str(attributes.get("type"))] = data

    def handle_endtag(self, tag: str) -> None:
        self.found.append(("", {}))


@pytest.mark.parametrize("run", [story, hostile, branching, decoded])
def test_it_names_nothing_outside_itself(run: Any) -> None:
    text = page(run())
    for tag, attributes in Elements(text).found:
        assert tag not in ("img", "link", "iframe", "object", "embed", "base", "form")
        assert not {"src", "href", "srcset", "action"} & set(attributes)
        assert not any(name.startswith("on") for name in attributes)
    assert "@import" not in text
    assert "url(" not in text


def test_the_browser_is_told_to_allow_these_two_scripts_only() -> None:
    elements = Elements(page(story()))
    (policy,) = (a["content"] for t, a in elements.found if t == "meta" and "http-equiv" in a)
    packed = elements.scripts["application/vnd.specviz.code"]
    codes = [elements.scripts["module"], gzip.decompress(base64.b64decode(packed)).decode()]
    digests = [base64.b64encode(hashlib.sha256(c.encode()).digest()).decode() for c in codes]
    assert policy is not None
    assert f"script-src 'sha256-{digests[0]}' 'sha256-{digests[1]}'" in policy
    assert "default-src 'none'" in policy
    assert "http" not in policy


def test_script_and_style_are_sent_once_and_small() -> None:
    text = page(story())
    packed = Elements(text).scripts["application/vnd.specviz.code"]
    assert text.count("application/vnd.specviz.code") == 2  # the data, and the loader's look-up
    styles = sum(len(s) for s in re.findall(r"<style>(.*?)</style>", text.split("<noscript>")[0]))
    assert len(packed) + styles < 80_000


def test_hostile_tokens_do_not_leave_their_places() -> None:
    text = page(hostile(), title=HOSTILE[0])
    assert HOSTILE[0] not in text
    assert "<img" not in text
    values = Elements(text).scripts["application/vnd.specviz+json"]
    assert "<" not in values
    assert json.loads(values)["kind"] == "player"


def test_readers_without_scripts_get_the_text() -> None:
    without = page(story()).split("<noscript>")[1].split("</noscript>")[0]
    assert "upon" in without
    assert "rejected" in without
    assert '<script type="module"' not in without
    assert 'aria-label="Player of a run of speculative decoding: 12 tokens' in page(story())


def test_the_same_arguments_give_the_same_page() -> None:
    assert page(decoded(), guided=True) == page(decoded(), guided=True)


def test_options_reach_the_player() -> None:
    text = page(story(), views=["text", "draw"], height=420, theme="dark", guided=True)
    options = json.loads(Elements(text).scripts["application/vnd.specviz+json"])["options"]
    assert options == {
        "views": ["text", "draw"],
        "height": 420,
        "theme": "dark",
        "guided": True,
        "title": None,
        "standalone": True,
    }
    assert "<h1>" not in text  # chosen views are for embedding


@pytest.mark.parametrize(
    ("wrong", "kind", "said"),
    [
        ({"views": "text"}, TypeError, "views must be a list of names"),
        ({"views": ["texts"]}, ValueError, "views must be some of text, phase, bars"),
        ({"views": []}, ValueError, "views must be some of"),
        ({"height": 10}, ValueError, "height must be at least 200 pixels, got 10"),
        ({"height": "tall"}, TypeError, "height must be a number of pixels, got str"),
        ({"theme": "sepia"}, ValueError, "theme must be one of auto, light, dark; got 'sepia'"),
        ({"compare": 3}, TypeError, "compare must be a Trace or a Comparison, got int"),
        ({"compare": story()}, ValueError, "compare must be a trace of the target alone"),
    ],
)
def test_wrong_arguments_are_refused_before_anything_is_written(
    tmp_path: Path, wrong: dict[str, Any], kind: type[Exception], said: str
) -> None:
    with pytest.raises(kind, match=said):
        sv.to_html(story(), tmp_path / "run.html", **wrong)
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="the folder of path does not exist"):
        sv.to_html(story(), tmp_path / "no" / "run.html")
    with pytest.raises(TypeError, match="trace must be a Trace, got str"):
        sv.to_html("story", tmp_path / "run.html")  # type: ignore[arg-type]


def test_it_is_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    where = tmp_path / "run.html"
    assert sv.to_html(story(), where) == where
    before = where.read_bytes()
    assert before.decode("utf-8") == page(story())

    def full(self: Path, target: Path) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="disk full"):
        sv.to_html(hostile(), where)
    assert where.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["run.html"]


def test_a_comparison_is_shown_as_measured() -> None:
    text = page(decoded(), compare=Comparison([0.01], [0.02]))
    assert "2.00× (faster)" in text
    run = Elements(text).scripts["application/vnd.specviz.run"]
    header = gzip.decompress(base64.b64decode(run))
    assert b'"baseline":{"seconds":0.02,"measured":true}' in header


def test_a_snippet_for_another_page() -> None:
    said = iframe('a"b/fox&co.html', height=600)
    assert 'src="fox&amp;co.html"' in said
    assert 'height="600"' in said
    assert said.count("<") == 2
