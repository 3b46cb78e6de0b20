"""``specviz play`` and ``specviz train``: what they hand on, and what they refuse."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import specviz as sv
from specviz.cli import main


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    pair = sv.tabular.TabularPair(
        sv.tabular.TabularModel([0.5, 0.3, 0.2]), sv.tabular.TabularModel([0.2, 0.3, 0.5])
    )
    path = tmp_path / "run.specviz"
    sv.generate(pair, [0], gamma=2, max_new_tokens=6).save(path)
    return path


def test_play_writes_a_page_and_opens_it(
    recorded: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda url: not opened.append(url))
    assert main(["play", str(recorded)]) == 0
    page = recorded.with_name("run-player.html")
    assert opened == [page.resolve().as_uri()]
    assert "<script" in page.read_text("utf-8")
    assert f"written: {page}" in capsys.readouterr().out
    assert main(["play", str(recorded)]) == 0
    said = capsys.readouterr().out
    assert f"replaced: {page}" in said
    assert "<iframe" not in said  # it would be as high as it needs


def test_play_leaves_the_demos_page_alone(recorded: Path) -> None:
    page = recorded.with_suffix(".html")
    page.write_text("written by another command")
    assert main(["play", str(recorded), "--no-open"]) == 0
    assert main(["play", str(recorded), str(recorded), "--no-open"]) == 0
    assert page.read_text() == "written by another command"
    made = {path.name for path in page.parent.glob("*.html")}
    assert made == {"run.html", "run-player.html", "race-run-run.html"}


def test_play_only_writes_when_asked_to(recorded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("webbrowser.open", lambda url: pytest.fail("a browser was opened"))
    out = recorded.parent / "page.html"
    assert main(["play", str(recorded), "--no-open", "--out", str(out)]) == 0
    assert out.exists()


def test_play_says_how_to_show_it_elsewhere(
    recorded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["--no-open", "--views", "text", "draw", "--height", "420", "--theme", "dark"]
    assert main(["play", str(recorded), *asked]) == 0
    said = capsys.readouterr().out
    assert said.count("<iframe") == 1
    assert '<iframe src="run-player.html"' in said
    assert 'height="420"' in said
    page = recorded.with_name("run-player.html").read_text("utf-8")
    assert '"views": ["text", "draw"]' in page
    assert '"theme": "dark"' in page


def test_play_lets_several_race(recorded: Path) -> None:
    assert main(["play", str(recorded), str(recorded), "--no-open"]) == 0
    assert '"kind": "race"' in recorded.with_name("race-run-run.html").read_text("utf-8")


def test_recorded_runs_are_known_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["play", "stories/draft-model", "--no-open"]) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["stories-draft-model-player.html"]
    assert main(["play", "stories/draft-model", "stories/target-only", "--no-open"]) == 0
    race = tmp_path / "race-stories-draft-model-stories-target-only.html"
    assert '"kind": "race"' in race.read_text("utf-8")
    assert main(["show", "records/eagle"]) == 0
    assert "Shopping list" in capsys.readouterr().out
    assert main(["show", "stories/nothing"]) == 2
    said = capsys.readouterr().err
    assert "'stories/nothing' is neither a file nor a recorded run, such as stories/" in said
    assert "Errno" not in said


def test_play_says_what_is_wrong_with_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = tmp_path / "bad.specviz"
    bad.write_text("no trace")
    assert main(["play", str(bad)]) == 2
    assert "bad.specviz" in capsys.readouterr().err
    assert not bad.with_suffix(".html").exists()


def test_train_hands_its_arguments_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: dict[str, Any] = {}

    def stand_in(target: str, text: str, out: str, **rest: Any) -> dict[str, Path]:
        asked.update(target=target, text=text, out=out, **rest)
        return {"eagle": Path(out) / "eagle"}

    monkeypatch.setattr("specviz.models.training.train_heads.train_heads", stand_in)
    arguments = ["train", "heads", "--target", "T", "--text", "F", "--out", "O"]
    assert main([*arguments, "--kinds", "eagle", "--steps", "7", "--seed", "3"]) == 0
    assert asked == {
        "target": "T", "text": "F", "out": "O", "kinds": ["eagle"], "steps": 7, "seed": 3,
    }  # fmt: skip
    assert "eagle" in capsys.readouterr().out


def test_train_names_a_missing_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(
        ["train", "heads", "--target", str(tmp_path), "--text", str(tmp_path / "no.txt"),
         "--out", str(tmp_path / "out")]
    )  # fmt: skip
    assert code == 2
    assert capsys.readouterr().err.startswith("specviz: error: ")
