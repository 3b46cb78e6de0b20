"""The page is one file that asks for nothing, and nothing in a token gets out of its place."""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import specviz as sv
from specviz.core.formatting import format_duration
from specviz.core.trace.trace import Trace
from specviz.figures.comparison import Comparison
from specviz.player.page import iframe, page, race_page, story_frames
from specviz.player.projection import run_of
from specviz.player.steps.words import spoken
from specviz.player.still import still
from tests.figures.runs import HOSTILE, hostile, long_story, story
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
        assert tag not in ("link", "iframe", "object", "embed", "base", "form")
        assert not {"href", "action"} & set(attributes)
        assert str(attributes.get("srcset", "data:image/webp")).startswith("data:image/webp")
        if tag == "img":  # the picture for readers without scripts is in the page itself
            assert str(attributes["src"]).startswith("data:image/webp;base64,")
            assert attributes["alt"]
        else:
            assert "src" not in attributes
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
    assert text.count("<img") == text.count('<img class="svp-still"') == 1
    values = Elements(text).scripts["application/vnd.specviz+json"]
    assert "<" not in values
    assert json.loads(values)["kind"] == "player"


def test_readers_without_scripts_get_the_text() -> None:
    without = page(story()).split("<noscript>")[1].split("</noscript>")[0]
    assert "upon" in without
    assert "rejected" in without
    assert '<script type="module"' not in without
    assert 'aria-label="Player of a run of speculative decoding: 12 tokens' in page(story())


def test_they_get_the_story_in_pictures(tmp_path: Path) -> None:
    for theme in ("light", "dark"):
        text = page(decoded(), theme=theme)
        (image,) = (a for t, a in Elements(text).found if t == "img")
        data = base64.b64decode(str(image["src"]).removeprefix("data:image/webp;base64,"))
        with Image.open(io.BytesIO(data)) as picture:
            assert picture.size == (int(str(image["width"])), int(str(image["height"])))
            ground = picture.convert("RGB").getpixel((1, 1))
        assert ground == ((21, 23, 28) if theme == "dark" else (255, 255, 255))
        steps = story_frames(run_of(decoded()))
        assert {one.phase for one in steps} == {"draft", "verify", "decide", "close", "rollback"}
        assert image["alt"] == " ".join(spoken(run_of(decoded()), one) for one in steps)
        assert still(decoded()).alt in str(image["alt"])
        assert len(data) < 60_000


def test_a_page_that_follows_its_reader_has_both_pictures() -> None:
    text = page(decoded(), theme="auto", views=["text", "bars"])
    (dark,) = (a for t, a in Elements(text).found if t == "source")
    (light,) = (a for t, a in Elements(text).found if t == "img")
    assert dark["media"] == "screen and (prefers-color-scheme: dark)"
    for source, theme in ((dark["srcset"], "dark"), (light["src"], "light")):
        one = page(decoded(), theme=theme, views=["text", "bars"])
        assert [a["src"] for t, a in Elements(one).found if t == "img"] == [source]


def test_a_race_without_scripts_has_a_picture_its_words_and_a_table() -> None:
    without = race_page([decoded(), decoded(seed=3)]).split("<noscript>")[1].split("</noscript>")[0]
    (image,) = (a for t, a in Elements(without).found if t == "img")
    assert str(image["alt"]).startswith("Race at its end. draft model, rejection: 60 tokens in ")
    assert without.count('<th scope="row">') == 2


def test_a_run_without_rounds_has_no_picture() -> None:
    assert "<img" not in page(Trace({"rule": "rejection"}, np.array([1])))


def test_views_that_were_not_asked_for_are_nowhere() -> None:
    text = page(story(), views=["draw", "bars"])
    without = text.split("<noscript>")[1].split("</noscript>")[0]
    assert "<img" in without
    assert "sv-trace" not in without  # the coloured text
    assert "<h1>" not in text
    assert 'class="svp-body-auto svp-bare"' in text
    with_text = page(story(), views=["text"]).split("<noscript>")[1]
    assert "sv-trace" in with_text


@pytest.mark.parametrize("rounds", [1, 2_000])
def test_a_page_is_small(rounds: int) -> None:
    trace = long_story(rounds) if rounds > 1 else story()
    assert len(page(trace).encode()) <= 200_000 + 200 * len(trace.node_table)


@pytest.mark.parametrize(
    ("options", "height"),
    [
        ({"views": ["text", "draw"], "height": 420}, 420),
        ({"views": ["text"]}, 330),
        ({"height": 500}, 500),
    ],
)
def test_a_page_for_another_one_prints_what_shows_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: dict[str, Any], height: int
) -> None:
    where = sv.to_html(story(), tmp_path / "run.html", **options)
    assert capsys.readouterr().out == iframe(where, height=height) + "\n"


def test_a_page_of_its_own_prints_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sv.to_html(story(), tmp_path / "run.html", theme="dark", guided=True, title="A run")
    assert capsys.readouterr().out == ""


def test_several_runs_race(tmp_path: Path) -> None:
    runs = [decoded(), decoded(seed=1), decoded(verify="match")]
    where = sv.to_html(runs, tmp_path / "race.html", title="Who is first?", theme="dark")
    text = where.read_text("utf-8")
    elements = Elements(text)
    values = json.loads(elements.scripts["application/vnd.specviz+json"])
    assert values["kind"] == "race"
    assert values["options"]["theme"] == "dark"
    assert text.count('<script type="application/vnd.specviz.run">') == 3
    assert "<h1><bdi>Who is first?</bdi></h1>" in text
    without = text.split("<noscript>")[1].split("</noscript>")[0]
    assert without.count("<tr>") == 4
    assert without.count("(first)") == 1
    for run in runs:
        took = sum(r.draft_seconds + r.verify_seconds + r.other_seconds for r in run.rounds)
        assert f"<td>{len(run)}</td><td>{format_duration(took)}</td>" in without


@pytest.mark.parametrize(
    ("traces", "options", "kind", "said"),
    [
        ([story()], {}, ValueError, "traces must be 2 to 8 runs, got 1"),
        ([], {}, ValueError, "traces must be 2 to 8 runs, got 0"),
        ([story(), 3], {}, TypeError, r"traces\[1\] must be a Trace, got int"),
        ([story(), decoded(timed=False)], {}, ValueError, r"traces\[1\] has no measured times"),
        ([story(), story()], {"views": ["text"]}, ValueError, "views is for one trace; a race"),
        ([story(), story()], {"guided": True}, ValueError, "guided is for one trace; a race"),
        ([story(), story()], {"compare": story()}, ValueError, "compare is for one trace; a race"),
        ([story(), story()], {"title": 5}, TypeError, "title must be a str, got int"),
    ],
)
def test_what_cannot_race_is_refused(
    tmp_path: Path, traces: Any, options: dict[str, Any], kind: type[Exception], said: str
) -> None:
    with pytest.raises(kind, match=said):
        sv.to_html(traces, tmp_path / "race.html", **options)
    assert list(tmp_path.iterdir()) == []


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
        (
            {"views": ["texts"]},
            ValueError,
            "views must be a list of names out of 'text', 'phase'",
        ),
        ({"views": []}, ValueError, "views must be a list of names out of"),
        ({"height": 10}, ValueError, "height must be a whole number >= 200, got 10"),
        ({"height": "tall"}, TypeError, "height must be a whole number >= 200, got 'tall'"),
        ({"theme": "sepia"}, ValueError, "theme must be 'auto', 'light' or 'dark', got 'sepia'"),
        ({"title": 5}, TypeError, "title must be a str, got int"),
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
