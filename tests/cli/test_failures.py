"""How commands fail: one line, an exit code, and nothing that was recorded lost."""

from __future__ import annotations

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
    (["trace", "--prompt", "x", "--out", "no/where.specviz"], "--out: there is no folder 'no'"),
    (["trace", "--prompt", "x", "--out", "."], "--out must be a file"),
    (["trace", "--prompt", "x", "--out", "a", "--html", "a"], "are the same file"),
    (["trace", "--prompt", "x", "--out", "a", "--gamma", "-1"], "gamma must be"),
    (
        ["trace", "--prompt", "x", "--out", "a", "--temperature", "-1"],
        "temperature must be a number",
    ),
    (["trace", "--prompt", "x", "--out", "a", "--verify", "hope"], "verify must be one of"),
    (["trace", "--prompt", "x", "--out", "a", "--top-p", "0"], "top_p must be a number above 0"),
    (["demo", "--max-new-tokens", "-3"], "max_new_tokens must be >= 0"),
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


@pytest.mark.parametrize("arguments", [["dance"], [], ["show"], ["demo", "--seed", "x"]])
def test_usage_errors_are_exit_code_2(arguments: list[str], capsys: Captured) -> None:
    assert main(arguments) == 2
    assert "usage: specviz" in capsys.readouterr().err


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
