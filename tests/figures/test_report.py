"""A report: one page of figures with words, of a run, of runs, of a benchmark, of an audit."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import specviz as sv
from specviz.figures import report_page
from tests.figures.runs import hostile, story
from tests.figures.test_data import bench
from tests.figures.test_drawing import REPORT


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Figures are drawn elsewhere: here their names, and what they refuse, is enough."""
    asked: list[str] = []

    def html_of(drawn: object) -> str:
        asked.append(drawn.alt)  # type: ignore[attr-defined]
        return "<i>drawn</i>"

    monkeypatch.setattr(report_page, "html_of", html_of)
    return asked


def test_a_run_s_report_reads_from_the_text_to_the_settings(
    tmp_path: Path, quick: list[str]
) -> None:
    page = sv.report(sv.recorded("stories/draft-model"), tmp_path / "run.html").read_text("utf-8")
    heads = re.findall("<h2>(.*?)</h2>", page)
    assert heads[:3] == ["The text", "One round of the loop", "What decides about a token"]
    assert heads[-3:] == ["Does the record hold?", "Measures", "Settings"]
    assert len(quick) == 11
    assert "0 × does not follow" in page
    assert "<script" not in page
    assert "default-src" in page


def test_what_cannot_be_drawn_is_said(tmp_path: Path, quick: list[str]) -> None:
    page = sv.report(story(), tmp_path / "run.html").read_text("utf-8")
    assert page.count("Not drawn") == 0  # no target-only time: theory alone is drawn
    match = sv.recorded("stories/coupled")
    page = sv.report(match, tmp_path / "match.html").read_text("utf-8")
    assert "Not drawn: the rule &#39;coupled&#39; compares no draw u" in page


def test_a_stranger_s_run_stays_text(tmp_path: Path, quick: list[str]) -> None:
    trace = hostile()
    trace.meta["note"] = "</pre><script>alert(1)</script>"
    page = sv.report(trace, tmp_path / "run.html").read_text("utf-8")
    assert "<script" not in page
    assert "<img src=x" not in page
    assert "\u202e" not in page


def test_runs_and_audits_have_reports_too(tmp_path: Path, quick: list[str]) -> None:
    runs = {one: sv.recorded(f"prose/{one}") for one in ("target-only", "eagle")}
    page = sv.report(runs, tmp_path / "runs.html").read_text("utf-8")
    assert re.findall("<h2>(.*?)</h2>", page)[:2] == ["Runs", "Methods"]
    page = sv.report(bench(), tmp_path / "bench.html").read_text("utf-8")
    assert re.findall("<h2>(.*?)</h2>", page) == [
        "Does it pay here?", "Numbers", "Gain against gamma", "Settings",
    ]  # fmt: skip
    page = sv.report(REPORT, tmp_path / "battery.html").read_text("utf-8")
    assert "What was tested" in page
    with pytest.raises(TypeError, match="what must be a Trace, or several of them"):
        sv.report(3, tmp_path / "no.html")
    assert not (tmp_path / "no.html").exists()
