"""How commands fail: one line, an exit code, and nothing that was recorded lost."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import specviz as sv
from specviz.cli import main

Captured = pytest.CaptureFixture[str]


WRONG = [
    (["show", "missing.specviz"], "no such trace file: 'missing.specviz'"),
    (["show", "."], "path is a folder"),
    (
        ["trace", "--prompt", "x", "--out", "no/where.specviz"],
        "the folder of --out does not exist: 'no'",
    ),
    (["trace", "--prompt", "x", "--out", "."], "--out is a folder"),
    (["trace", "--prompt", "x", "--out", "a", "--html", "a"], "are the same file"),
    (["trace", "--prompt", "x", "--out", "a", "--gamma", "-1"], "gamma must be"),
    (
        ["trace", "--prompt", "x", "--out", "a", "--temperature", "-1"],
        "temperature must be a number",
    ),
    (["trace", "--prompt", "x", "--out", "a", "--verify", "hope"], "verify must be one of"),
    (["trace", "--prompt", "x", "--out", "a", "--top-p", "0"], "top_p must be a number above 0"),
    (["demo", "--max-new-tokens", "-3"], "max_new_tokens must be a whole number >= 0"),
    (["demo", "--gamma", "0"], "--gamma must be at least 1 in the demo"),
    (["demo", "--runs", "0"], "--runs must be at least 1"),
]


@pytest.mark.parametrize(("arguments", "message"), WRONG, ids=[m for _, m in WRONG])
def test_wrong_input_is_one_line_and_exit_code_2(
    arguments: list[str], message: str, pair: Any, here: Path, capsys: Captured
) -> None:
    assert main(arguments) == 2
    said = capsys.readouterr().err
    assert said.startswith("specviz: error: ")
    assert message in said
    assert said.count("\n") == 1
    assert "Traceback" not in said


def test_a_wrong_place_is_refused_before_a_model_is_loaded(pair: Any, here: Path) -> None:
    assert main(["trace", "--prompt", "x", "--out", "no/where.specviz"]) == 2
    assert pair == []


def test_a_damaged_file_is_one_line(here: Path, capsys: Captured) -> None:
    Path("bad\x1b[31m.specviz").write_bytes(b"\x80\x04pickle")
    assert main(["show", "bad\x1b[31m.specviz"]) == 2
    said = capsys.readouterr().err
    assert "is a pickle" in said
    assert said.count("\n") == 1
    assert "\x1b" not in said


def test_a_traceback_can_be_asked_for(here: Path) -> None:
    with pytest.raises(FileNotFoundError):
        main(["show", "missing.specviz", "--traceback"])


USAGE = [
    (["dmo"], "got 'dmo': did you mean demo? (specviz --help says more)"),
    ([], "the following arguments are required: command (specviz --help says more)"),
    (["show"], "are required: file (specviz show --help says more)"),
    (["demo", "--seed", "x"], "argument --seed: invalid int value: 'x'"),
    (["demo", "--gama", "3"], "there is no --gama here: did you mean --gamma?"),
    (["trace", "--promt", "x", "--out", "f"], "required: --prompt: did you mean --prompt?"),
    (["audit", "--bundeld"], "did you mean --bundled? (specviz audit --help says more)"),
    (["train", "hands", "--target", "a", "--text", "b", "--out", "c"], "did you mean heads?"),
]


@pytest.mark.parametrize(("arguments", "message"), USAGE, ids=[" ".join(a) for a, _ in USAGE])
def test_usage_errors_are_one_line_with_a_guess(
    arguments: list[str], message: str, capsys: Captured
) -> None:
    assert main(arguments) == 2
    said = capsys.readouterr().err
    assert said.startswith("specviz: error: ")
    assert message in said
    assert said.count("\n") == 1


WRITERS = {
    "demo": ["demo", "--out", "locked/demo"],
    "trace": ["trace", "--prompt", "x", "--out", "locked/run.specviz"],
    "trace --html": ["trace", "--prompt", "x", "--out", "run.specviz", "--html", "locked/x.html"],
    "audit --save": ["audit", "--bundled", "--save", "locked/texts"],
    "audit --json": ["audit", "--bundled", "--json", "locked/x.json"],
    "audit --html": ["audit", "--bundled", "--html", "locked/x.html"],
    "train": ["train", "heads", "--target", "a", "--text", "b", "--out", "locked/heads"],
    "play": ["play", "stories/block", "--no-open", "--out", "locked/x.html"],
}


@pytest.mark.parametrize("command", WRITERS)
def test_a_folder_that_is_read_only_is_refused_before_a_model_runs(
    command: str, pair: Any, here: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "locked").mkdir()

    def refused(dir: Path) -> Any:  # the tests may run as a user that may write anywhere
        if "locked" in str(dir):
            raise PermissionError(13, "Permission denied", str(dir))
        return io.BytesIO()

    monkeypatch.setattr("specviz.core.atomic_writing.TemporaryFile", refused)
    assert main(WRITERS[command]) == 2
    said = capsys.readouterr().err
    assert "cannot be written, folder" in said
    assert "Permission denied" in said
    assert pair == []
    assert not list((here / "locked").iterdir())


def interrupt_after(rounds: int) -> Callable[..., Any]:
    """A target that is interrupted in a later pass, as by Ctrl-C."""
    verify = sv.tabular.TabularSession.verify
    passes = [0]

    def interrupted(self: Any, *arguments: Any) -> Any:
        passes[0] += self.model.name == "big table"
        if passes[0] > rounds:
            raise KeyboardInterrupt
        return verify(self, *arguments)

    return interrupted


@pytest.mark.parametrize("command", ["demo", "trace"])
def test_ctrl_c_keeps_what_was_recorded(
    command: str, pair: Any, here: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sv.tabular.TabularSession, "verify", interrupt_after(3))
    where = "specviz-demo" if command == "demo" else "run.specviz"
    extra = [] if command == "demo" else ["--prompt", "x"]
    assert main([command, *extra, "--out", where]) == 130
    trace = sv.Trace.load(here / where / "demo.specviz" if command == "demo" else where)
    assert len(trace) == 3
    assert trace.interrupted
    assert "interrupted" in capsys.readouterr().out


def test_ctrl_c_while_measuring_keeps_run_and_page(
    pair: Any, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr("specviz.cli.demo.generate", interrupted)
    assert main(["demo"]) == 130
    assert len(sv.Trace.load("specviz-demo/demo.specviz").tokens) == 96
    assert "Against the target alone" not in Path("specviz-demo/demo.html").read_text("utf-8")
