"""What each command prints and writes. Run in-process, on tables."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import specviz as sv
from specviz.cli import main
from tests.cli.conftest import tables

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
    assert "big table" in found["target p"]
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


@pytest.mark.parametrize(
    ("asked", "drafter"),
    [
        (["--drafter", "prompt-lookup"], {"name": "prompt_lookup", "gamma": 8}),
        (["--drafter", "draft-model", "--gamma", "2"], {"name": "draft_model", "gamma": 2}),
        (["--drafter", "tree:2,1"], {"name": "tree", "widths": [2, 1]}),
    ],
)
def test_trace_takes_a_drafter(
    pair: Any, here: Path, asked: list[str], drafter: dict[str, Any]
) -> None:
    assert main(["trace", "--prompt", "x", "--out", "fox.specviz", *asked]) == 0
    recorded = sv.Trace.load("fox.specviz").settings["drafter"]
    assert drafter.items() <= recorded.items()


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["--drafter", "fox"], "--drafter must be one of draft-model"),
        (["--drafter", "medsua"], "did you mean medusa?"),
        (["--drafter", "early-exit"], "early-exit needs a layer, as in early-exit:4"),
        (["--drafter", "early-exit:0"], "early-exit needs a layer"),
        (["--drafter", "tree:2,x"], "tree takes its widths"),
        (["--drafter", "medusa", "--gamma", "3"], "--gamma 3 has no meaning"),
    ],
)
def test_a_wrong_drafter_is_refused_before_a_model_is_loaded(
    here: Path, capsys: Captured, asked: list[str], said: str
) -> None:
    assert main(["trace", "--prompt", "x", "--out", "fox.specviz", "--target", "no", *asked]) == 2
    assert said in capsys.readouterr().err
    assert not (here / "fox.specviz").exists()


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
