"""The command line: what it prints, what it writes, how it fails. Run in-process, on tables."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import specviz as sv
from specviz.cli import main
from specviz.cli.output import Output

WORDS = [" the", " fox", " ran", ",", "es", "\n", " <b>", " home"]


class WordyPair(sv.tabular.TabularPair):
    """Tables that take a text as a prompt: it is always their first two words."""

    def encode(self, prompt: Any = None, messages: Any = None) -> Any:
        if isinstance(prompt, str):
            return np.array([0, 1])
        return super().encode(prompt, messages)


def tables(**options: Any) -> WordyPair:
    target = sv.tabular.TabularModel.random(8, seed=1, name="big table", **options)
    draft = sv.tabular.TabularModel(0.5 * target.table + 0.5 / 8, name="small table")
    return WordyPair(target, draft, words=WORDS)


@pytest.fixture
def pair(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """Loading gives tables; the list holds what was asked for."""
    asked: list[tuple[Any, ...]] = []

    def load(target: Any = None, **options: Any) -> WordyPair:
        asked.append((target, options))
        return tables()

    monkeypatch.setattr("specviz.models.load.load", load)
    monkeypatch.setattr("specviz.cli.demo.load", load)
    return asked


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


Captured = pytest.CaptureFixture[str]


def lines_of_rounds(text: str) -> list[str]:
    return re.findall(r"^ +\d+(?:–\d+)?  .*[✓✗↻+·].*$", text, re.MULTILINE)


def test_demo_shows_every_round_measures_and_writes(
    pair: Any, here: Path, capsys: Captured
) -> None:
    assert main(["demo", "--max-new-tokens", "40", "--seed", "3"]) == 0
    said = capsys.readouterr()
    assert "\x1b" not in said.out
    assert said.err == ""
    trace = sv.Trace.load(here / "specviz-demo" / "demo.specviz")
    assert len(trace.tokens) == 40
    assert len(lines_of_rounds(said.out)) == len(trace)
    found = dict(re.findall(r"^(\S.*?)  +(\S.*)$", said.out, re.MULTILINE))
    measured = trace.measures()
    assert found["tokens per target pass"] == f"{measured['tokens_per_pass'].value:.2f}"
    assert found["alpha (mean overlap of p and q)"] == f"{measured['alpha'].value:.3f}"
    assert found["accepted / proposed"].startswith(f"{measured['accepted'].value} / ")
    assert ", 0 does not follow," in found["check"]
    assert re.fullmatch(r"\d+\.\d\d× \(.+\)", found["measured ratio"])
    assert "median of 3" in found["speculative"]
    assert "median of 3" in found["target only"]
    assert "on this machine" in said.out
    assert "big table" in found["target"]
    page = (here / "specviz-demo" / "demo.html").read_text("utf-8")
    assert found["measured ratio"] in page
    assert "specviz-demo/demo.html" in said.out


def test_demo_is_the_same_run_for_the_same_seed(pair: Any, here: Path) -> None:
    for out, seed in (("a", "3"), ("b", "3"), ("c", "4")):
        assert main(["demo", "--runs", "1", "--seed", seed, "--out", out]) == 0
    first, again, other = (sv.Trace.load(here / out / "demo.specviz") for out in "abc")
    assert first.same_as(again)
    assert not first.same_as(other)


def test_the_ratio_is_measured_not_made_up(
    pair: Any, here: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clock by which each target-only token costs 3 s and each speculative one 2 s."""
    now = [0.0]
    generate = sv.generate
    order: list[tuple[int, int]] = []

    def slow(*arguments: Any, gamma: int, **options: Any) -> sv.Trace:
        trace = generate(*arguments, gamma=gamma, **options)
        now[0] += (2.0 if gamma else 3.0) * len(trace.tokens)
        order.append((gamma, options["max_new_tokens"]))
        return trace

    monkeypatch.setattr("specviz.cli.demo.generate", slow)
    monkeypatch.setattr("specviz.cli.demo.perf_counter", lambda: now[0])
    assert main(["demo", "--runs", "2"]) == 0
    assert "1.50× (faster)" in capsys.readouterr().out
    # both are warmed up, then timed in turn
    assert order == [(4, 8), (0, 8), (4, 96), (0, 96), (4, 96), (0, 96)]


def test_trace_records_what_was_asked_for(pair: Any, here: Path, capsys: Captured) -> None:
    code = main(
        [
            *("trace", "--prompt", "x", "--out", "fox.specviz", "--html", "fox.html"),
            *("--gamma", "2", "--temperature", "0.7", "--top-k", "5", "--top-p", "0.9"),
            *("--seed", "9", "--verify", "match", "--max-new-tokens", "12"),
            *("--target", "org/target", "--draft", "org/draft", "--device", "cpu"),
        ]
    )
    assert code == 0
    trace = sv.Trace.load("fox.specviz")
    expected = sv.generate(
        tables(), "x", gamma=2, temperature=0.7, top_k=5, top_p=0.9, seed=9, verify="match",
        max_new_tokens=12,
    )  # fmt: skip
    assert trace.same_as(expected)
    assert pair == [("org/target", {"draft": "org/draft", "device": "cpu", "dtype": "auto"})]
    assert "match (lossless)" in capsys.readouterr().out
    assert Path("fox.html").read_text("utf-8").startswith("<!DOCTYPE html>")


def test_trace_of_the_target_alone(pair: Any, here: Path, capsys: Captured) -> None:
    assert main(["trace", "--prompt", "x", "--out", "a.specviz", "--gamma", "0"]) == 0
    assert "none: the target alone" in capsys.readouterr().out
    assert len(sv.Trace.load("a.specviz").node_table) == 0


@pytest.mark.filterwarnings("default")
def test_a_lossy_rule_is_called_lossy(
    pair: Any, here: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("specviz.api.arguments._WARNED", set())
    arguments = ["trace", "--prompt", "x", "--out", "a.specviz", "--verify", "typical"]
    assert main(arguments) == 0
    said = capsys.readouterr()
    assert "typical (lossy" in said.out
    assert said.err.startswith("specviz: note: verify='typical' is lossy")
    assert said.err.count("\n") == 1


@pytest.fixture
def recorded(here: Path) -> Path:
    sv.generate(tables(), [0, 1], seed=3, max_new_tokens=30).save(here / "run.specviz")
    return here / "run.specviz"


def test_show_prints_a_run_and_checks_it(recorded: Path, capsys: Captured) -> None:
    assert main(["show", str(recorded)]) == 0
    said = capsys.readouterr().out
    trace = sv.Trace.load(recorded)
    assert len(lines_of_rounds(said)) == len(trace)
    assert str(trace) in said
    assert "check  " in said
    assert "0 does not follow" in said


def test_show_fails_on_a_run_that_does_not_follow(recorded: Path, capsys: Captured) -> None:
    trace = sv.Trace.load(recorded)
    verdicts = np.array(trace.node_table["verdict"])
    first = int(np.flatnonzero(verdicts == 2)[0])
    u = np.array(trace.node_table["u"])
    u[first] = trace.node_table["acceptance"][first] / 2  # it should have been accepted
    trace.node_table.replace("u", u)
    trace.save(recorded)
    assert main(["show", str(recorded)]) == 1
    said = capsys.readouterr().out
    assert re.search(r"[1-9]\d* does not follow", said)
    assert "  round " in said


WRONG = [
    (["show", "missing.specviz"], "no such trace file: 'missing.specviz'"),
    (["show", "."], "path is a folder"),
    (["trace", "--prompt", "x", "--out", "no/where.specviz"], "--out: there is no folder 'no'"),
    (["trace", "--prompt", "x", "--out", "."], "--out must be a file"),
    (["trace", "--prompt", "x", "--out", "a", "--html", "a"], "are the same file"),
    (["trace", "--prompt", "x", "--out", "a", "--gamma", "-1"], "gamma must be"),
    (["trace", "--prompt", "x", "--out", "a", "--temperature", "-1"], "temperature must be 0"),
    (["trace", "--prompt", "x", "--out", "a", "--verify", "hope"], "verify must be one of"),
    (["trace", "--prompt", "x", "--out", "a", "--top-p", "0"], "top_p must be above 0"),
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
    assert "v accepted" in screen.text


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


def test_info_names_versions_and_models(
    pair: Any, here: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("specviz.models.load.bundled", lambda: here)
    (here / "measured.json").write_text(
        '{"corpus": {"stories": {"alpha": 0.951, "loss_target": 0.37, "loss_draft": 0.445}}}'
    )
    assert main(["info"]) == 0
    said = capsys.readouterr().out
    assert f"specviz       {sv.__version__}" in said
    assert "torch  " in said
    assert "held-out stories  alpha 0.951, loss of the target 0.370" in said


def test_info_without_bundled_models_says_so(
    here: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPECVIZ_BUNDLED", str(here))
    assert main(["info"]) == 0
    assert "has no bundled target model" in capsys.readouterr().out


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
