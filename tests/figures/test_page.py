"""The page: one file, nothing fetched, nothing run, every token escaped, whole or not at all."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import specviz as sv
from specviz.core.trace.trace import Trace
from specviz.figures.comparison import Comparison
from specviz.figures.page import page
from tests.figures.runs import HOSTILE, branching, hostile, long_story, story, trace_of
from tests.figures.test_coloured_text import Reader

FETCHES = ("src", "srcset", "href", "action", "data", "poster", "background", "formaction")


def target_only() -> Trace:
    return trace_of([([], (f" w{i}", "plain")) for i in range(12)])


def test_one_file_that_fetches_nothing_and_runs_nothing() -> None:
    for run in (story(), hostile(), branching()):
        text = page(run, compare=target_only())
        seen = Reader(text)
        assert not seen.open
        assert "script" not in seen.tags
        assert "link" not in seen.tags
        assert not [a for _, a, _ in seen.attributes if a in FETCHES or a.startswith("on")]
        (sheet,) = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
        assert "url(" not in sheet
        assert "@import" not in sheet


def test_the_browser_is_told_to_allow_nothing_else() -> None:
    (policy,) = [
        value
        for tag, name, value in Reader(page(story())).attributes
        if tag == "meta" and name == "content" and "default-src" in value
    ]
    assert "default-src 'none'" in policy
    assert "style-src 'unsafe-inline'" in policy
    assert "script" not in policy


def test_the_page_says_its_language_encoding_and_title() -> None:
    text = page(story(), title="A <b>fox</b>")
    assert text.startswith('<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">')
    assert "<title>A &lt;b&gt;fox&lt;/b&gt;</title>" in text
    assert 'name="viewport"' in text
    assert "<title>Once</title>" in page(story())


def test_hostile_tokens_titles_and_settings_are_text() -> None:
    run = hostile()
    run.meta["target"] = HOSTILE[0]
    run.meta["<img src=x>"] = {"note": HOSTILE[0]}
    run.meta["finish_reason"] = HOSTILE[0]
    seen = Reader(page(run, title=HOSTILE[0]))
    assert "img" not in seen.tags
    assert "script" not in seen.tags
    assert not seen.open
    assert not set("\u2028\u202e\x1b\udc80") & set(page(run))


def test_the_evidence_of_every_decision_is_in_the_page() -> None:
    seen = Reader(page(story()))
    text = " ".join(seen.text)
    for value in (
        ".550",
        ".909",
        ".990",
        ".750",
        "✗ rejected",
        "– never examined",
        "↻ correction",
    ):
        assert value in text
    assert "u = .500 fell in [.400, .650)" in text
    assert "target cache 5 → 9 → 7 tokens" in text
    assert seen.tags.count("details") == 4 + 1  # rounds 2 and 3 share a line; the settings
    assert seen.tags.count("tr") == 4 + 9 + 5 + 2  # heads, proposals, closing tokens, settings


def test_nodes_of_a_tree_say_what_they_follow() -> None:
    text = page(branching())
    assert "<bdi>␣fox</bdi><small>node 3, after node 1</small>" in text
    assert "<bdi>␣a</bdi><small>node 0, after the text</small>" in text
    assert "<small>" not in page(story())


def test_the_first_rejection_is_open() -> None:
    opened = page(story()).split("<details open>")
    assert len(opened) == 2
    assert '<span class="sv-n">1</span>' in opened[1][:100]


def test_the_ruler_stands_only_where_a_draw_was_compared() -> None:
    def rulers(text: str) -> int:
        return text.count('class="sv-ruler"')

    assert rulers(page(story())) == 8  # 9 proposals, one of them never examined
    assert rulers(page(trace_of([([("a", "accepted")], ("b", "bonus"))], rule="greedy"))) == 0


def test_comparison_is_measured_and_says_where() -> None:
    text = page(story(), compare=target_only())
    # 61.5 ms for 12 tokens against 126 ms for 12 tokens, from the recorded times
    assert "2.05× (faster)" in text
    assert "5.12 ms per token" in text
    assert "10.5 ms per token" in text
    assert "on the machine of this run" in text
    assert "Against the target alone" not in page(story())


def test_a_loss_is_called_a_loss() -> None:
    slow = Comparison([0.03, 0.01, 0.02], [0.015])
    assert slow.ratio == pytest.approx(0.75)
    assert "speculation lost here" in slow.verdict()
    assert "3 of" not in slow.verdict()
    assert "speculation lost here" in page(story(), compare=slow)


def test_what_cannot_be_compared_is_refused() -> None:
    with pytest.raises(ValueError, match="compare must be a trace of the target alone"):
        page(story(), compare=story())
    with pytest.raises(ValueError, match="compare has no measured times"):
        page(story(), compare=Trace({}, np.array([0])))
    with pytest.raises(TypeError, match="compare must be a Trace or a Comparison, got float"):
        page(story(), compare=2.0)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="target_only must be positive"):
        Comparison([1.0], [0.0])


def test_a_long_run_makes_a_page_that_opens() -> None:
    text = page(long_story(5_000))
    assert len(text) < 6_000_000
    assert "are not on this page" in text
    assert text.count("<details") > 500


def test_it_is_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    where = tmp_path / "run.html"
    assert sv.figures.to_html(story(), where) == where
    before = where.read_bytes()
    assert before.decode("utf-8") == page(story())

    def full(self: Path, target: Path) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="disk full"):
        sv.figures.to_html(hostile(), where)
    assert where.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["run.html"]


def test_a_place_that_cannot_be_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="the folder of path does not exist"):
        sv.figures.to_html(story(), tmp_path / "no" / "run.html")
    with pytest.raises(IsADirectoryError, match="path is a folder"):
        sv.figures.to_html(story(), tmp_path)
    with pytest.raises(TypeError, match="path must be a file name"):
        sv.figures.to_html(story(), 3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="trace must be a Trace, got str"):
        sv.figures.to_html("story", tmp_path / "run.html")  # type: ignore[arg-type]
