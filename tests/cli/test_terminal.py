"""What a command writes to different terminals, and what it costs to start."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import specviz as sv
from specviz.cli import main
from specviz.cli.output import Output

Captured = pytest.CaptureFixture[str]


class Screen(io.TextIOWrapper):
    """A stream of an encoding, which may be a terminal."""

    def __init__(self, encoding: str, terminal: bool) -> None:
        super().__init__(io.BytesIO(), encoding=encoding)
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal

    @property
    def text(self) -> str:
        self.flush()
        return self.buffer.getvalue().decode(self.encoding)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("terminal", "environment", "flags", "colour"),
    [
        (True, {}, [], True),
        (False, {}, [], False),
        (True, {"NO_COLOR": "1"}, [], False),
        (True, {"NO_COLOR": ""}, [], True),
        (True, {"TERM": "dumb"}, [], False),
        (True, {}, ["--no-color"], False),
    ],
)
def test_colour_is_for_terminals_that_want_it(
    terminal: bool,
    environment: dict[str, str],
    flags: list[str],
    colour: bool,
    recorded: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    screen = Screen("utf-8", terminal)
    monkeypatch.setattr(sys, "stdout", screen)
    assert main(["show", str(recorded), *flags]) == 0
    assert ("\x1b[" in screen.text) is colour
    assert "✓" in screen.text


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp437"])
def test_terminals_without_the_glyphs_get_ascii(
    encoding: str, recorded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = Screen(encoding, False)
    monkeypatch.setattr(sys, "stdout", screen)
    assert main(["show", str(recorded)]) == 0
    assert screen.text.isascii()
    assert "= accepted" in screen.text


@pytest.mark.parametrize("terminal", [True, False])
def test_a_person_who_waits_is_told_why(
    terminal: bool, pair: Any, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = Screen("utf-8", terminal)
    monkeypatch.setattr(sys, "stderr", screen)
    assert main(["info"]) == 0
    assert screen.text == "specviz: loading torch and the models\n" * terminal


def test_output_without_a_known_encoding_is_ascii() -> None:
    assert Output(io.StringIO()).ascii


def test_a_closed_pipe_is_quiet(
    recorded: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Closed(Screen):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stdout", Closed("utf-8", False))
    assert main(["show", str(recorded)]) == 141
    assert capsys.readouterr().err == ""


def test_version_and_help_start_without_torch() -> None:
    code = (
        "import sys\nfrom specviz.cli import main\n"
        "codes = [main(['--version']), main(['--help']), main(['demo', '--help'])]\n"
        "heavy = {'torch', 'transformers', 'numpy', 'matplotlib'} & set(sys.modules)\n"
        "print(codes, sorted(heavy))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.startswith(f"specviz {sv.__version__}\n")
    assert done.stdout.endswith("[0, 0, 0] []\n")
    assert "usage: specviz" in done.stdout


def test_python_m_specviz_is_the_same_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "specviz", "--version"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout == f"specviz {sv.__version__}\n"


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
@pytest.mark.parametrize(
    "command", [[], *([name] for name in ("demo", "trace", "show", "play", "train", "audit"))]
)
def test_help_is_shown_on_every_terminal(
    encoding: str, command: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = Screen(encoding, False)
    monkeypatch.setattr(sys, "stdout", screen)
    assert main([*command, "--help"]) == 0
    assert screen.text.startswith("usage: specviz")


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_a_trace_is_printed_on_every_terminal(
    encoding: str, recorded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = sv.Trace.load(recorded)
    screen = Screen(encoding, False)
    monkeypatch.setattr(sys, "stdout", screen)
    print(trace, trace.measures())
    assert screen.text.isascii()
    assert "= accepted" in screen.text


def test_trace_prints_the_text_too(pair: Any, here: Path, capsys: Captured) -> None:
    assert main(["trace", "--prompt", "x", "--out", "run.specviz", "--max-new-tokens", "9"]) == 0
    assert str(sv.Trace.load("run.specviz")) in capsys.readouterr().out
