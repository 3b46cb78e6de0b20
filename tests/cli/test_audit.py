"""``specviz audit``: three exit codes, reports, and one line for wrong input."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from specviz.cli import main
from specviz.lossless import Recorded, write_jsonl
from tests.cli.conftest import tables

Captured = pytest.CaptureFixture[str]
LENGTH = 4


def texts(model: Any, n: int = 1500, first: int = 0) -> list[Recorded]:
    rng = np.random.default_rng(first)
    rows = []
    for seed in range(first, first + n):
        text = [0, 1]
        for _ in range(LENGTH):
            text.append(int(rng.choice(model.vocab_size, p=model.distribution(text))))
        rows.append(Recorded((0, 1), tuple(text[2:]), {"temperature": 1.0}, seed))
    return rows


@pytest.fixture
def samples(here: Path) -> Path:
    write_jsonl(here / "right.jsonl", texts(tables().target))
    write_jsonl(here / "wrong.jsonl", texts(tables().draft))
    write_jsonl(here / "few.jsonl", texts(tables().target, n=10))
    return here


@pytest.mark.parametrize(
    ("name", "code", "verdict"),
    [
        ("right", 0, "NO_DISCREPANCY_FOUND"),
        ("wrong", 1, "DISCREPANCY"),
        ("few", 2, "INCONCLUSIVE"),
    ],
)
def test_the_exit_code_says_what_was_found(
    name: str, code: int, verdict: str, pair: Any, samples: Path, capsys: Captured
) -> None:
    arguments = ["--samples", f"{name}.jsonl", "--target", "big", "--json", "out.json"]
    assert main(["audit", *arguments, "--html", "out.html"]) == code
    plain = samples / "plain"
    plain.write_text("", "utf-8")
    assert {Path(f"out.{end}").stat().st_mode for end in ("json", "html")} == {plain.stat().st_mode}
    plain.unlink()
    said = capsys.readouterr()
    assert said.out.startswith(verdict)
    assert "error" not in said.err
    report = json.loads(Path("out.json").read_text("utf-8"), parse_constant=pytest.fail)
    assert (report["verdict"], report["exit_code"]) == (verdict, code)
    page = Path("out.html").read_text("utf-8")
    assert verdict in page
    assert "<b>" not in page  # a word of the tables' vocabulary
    assert "http:" not in page and "https:" not in page
    assert page.count('<img src="data:image/png;base64,') == 1
    assert "<script" not in page
    assert pair == [("big", {"draft": None, "device": "auto", "dtype": "auto"})]
    assert {p.name for p in samples.iterdir()} == {
        "right.jsonl", "wrong.jsonl", "few.jsonl", "out.json", "out.html",
    }  # fmt: skip


def test_texts_from_standard_input(
    pair: Any, samples: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(Path("wrong.jsonl").read_text("utf-8")))
    assert main(["audit", "--samples", "-", "--target", "big"]) == 1


def test_a_margin_and_other_settings_are_heard(pair: Any, samples: Path) -> None:
    audit = ["audit", "--target", "big", "--samples"]
    assert main([*audit, "wrong.jsonl", "--margin", "0.9"]) != 1
    assert main([*audit, "right.jsonl", "--temperature", "2"]) == 1


def test_against_a_reference(pair: Any, samples: Path) -> None:
    audit = ["audit", "--reference", "right.jsonl", "--samples"]
    write_jsonl("again.jsonl", texts(tables().target, first=1500))
    write_jsonl("other.jsonl", texts(tables().draft, first=1500))
    assert main([*audit, "again.jsonl"]) == 0
    assert main([*audit, "other.jsonl"]) == 1
    assert main([*audit, "wrong.jsonl"]) == 2  # drawn with the reference's seeds
    assert pair == []  # no model is loaded


def test_a_copy_of_the_samples_is_no_reference(samples: Path, capsys: Captured) -> None:
    rows = Path("right.jsonl").read_text("utf-8").splitlines()
    unseeded = [{**json.loads(row), "seed": None} for row in rows]
    for name, order in (("same", unseeded), ("turned", unseeded[::-1])):
        Path(f"{name}.jsonl").write_text("\n".join(map(json.dumps, order)), "utf-8")
    audit = ["audit", "--reference", "same.jsonl", "--samples"]
    for name in ("right", "turned"):
        assert main([*audit, f"{name}.jsonl"]) == 2
        assert capsys.readouterr().out.startswith("NOT_INDEPENDENT")
    assert main([*audit, "./same.jsonl"]) == 2
    assert "--reference is the same file" in capsys.readouterr().err
    assert main(["audit", "--reference", "-", "--samples", "-"]) == 2
    assert "--reference is the same file" in capsys.readouterr().err


def test_one_endless_text_is_one_line(samples: Path, pair: Any, capsys: Captured) -> None:
    ids = ", ".join(["1"] * 2_000_000)
    long = f'{{"prompt_ids": [0, 1], "token_ids": [{ids}]}}\n'
    Path("long.jsonl").write_text(long + Path("few.jsonl").read_text("utf-8"), "utf-8")
    for against in (["--reference", "right.jsonl"], ["--target", "big"]):
        assert main(["audit", "--samples", "long.jsonl", *against]) == 2
        said = capsys.readouterr().err
        assert "2,000,000 tokens" in said
        assert said.startswith("specviz: error: ")
        assert said.count("\n") == 1


@pytest.mark.parametrize("error", [MemoryError(), RecursionError("deep"), KeyError("x")])
@pytest.mark.parametrize("how", [[], ["--traceback"]])
def test_what_nobody_expected_is_never_a_discrepancy(
    error: Exception, how: list[str], samples: Path, pair: Any, capsys: Captured,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    def broken(*_: Any, **__: Any) -> Any:
        raise error

    monkeypatch.setattr("specviz.lossless.audit.run.battery", broken)
    assert main(["audit", "--samples", "right.jsonl", "--target", "big", *how]) == 2
    said = capsys.readouterr().err
    assert type(error).__name__ in said
    assert ("Traceback" in said) == bool(how)
    assert how or said.count("\n") == 1


@pytest.mark.parametrize(("fault", "code"), [([], 130), (["--fault", "always_accept"], 1)])
def test_an_interrupt_is_no_pass(
    fault: list[str], code: int, pair: Any, here: Path, capsys: Captured,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    from specviz.lossless.audit import own_loop

    machine = own_loop._machine

    def interrupted(*arguments: Any) -> Any:
        draw, _, engine = machine(*arguments)

        def some(n: int, first: int) -> Any:
            if first >= 500:
                raise KeyboardInterrupt
            return draw(n, first)

        return some, 500, engine

    monkeypatch.setattr(own_loop, "_machine", interrupted)
    audit = ["audit", "--bundled", "-n", "2000", "--length", "4", "--gamma", "2", *fault]
    assert main([*audit, "--json", "out.json"]) == code
    report = json.loads(Path("out.json").read_text("utf-8"))
    assert report["interrupted"]
    assert report["verdict"] == ("DISCREPANCY" if fault else "INCONCLUSIVE")
    assert "500 of 2,000" in report["text"]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ([], 0),
        (["--drafter", "prompt_lookup"], 0),
        (["--drafter", "draft_model", "--verify", "block", "--gamma", "2"], 0),
        (["--fault", "always_accept", "--gamma", "2"], 1),
    ],
)
def test_our_own_loop(arguments: list[str], code: int, pair: Any, here: Path) -> None:
    assert main(["audit", "--bundled", "-n", "2000", "--length", "4", *arguments]) == code


def test_our_loop_on_a_pair_that_is_named(pair: Any, here: Path) -> None:
    how = ["audit", "--target", "big", "--draft", "small", "-n", "2000", "--length", "4"]
    assert main(how) == 0
    assert main([*how, "--fault", "always_accept", "--gamma", "2"]) == 1


def test_our_loops_texts_can_be_kept(pair: Any, here: Path) -> None:
    assert main(["audit", "--bundled", "-n", "1000", "--save", "texts.jsonl"]) == 0
    assert len(Path("texts.jsonl").read_text("utf-8").splitlines()) == 1000


WRONG = [
    ([], "give --samples FILE"),
    (["--samples", "right.jsonl"], "--target is needed"),
    (["--samples", "right.jsonl", "--target", "x", "--bundled"], "name two targets"),
    (["--samples", "right.jsonl", "--target", "x", "--fault", "no_draw"], "--fault is for"),
    (["--samples", "missing.jsonl", "--target", "x"], "No such file"),
    (
        ["--samples", "right.jsonl", "--target", "x", "--json", "no/where"],
        "folder of --json does not exist",
    ),
    (["--samples", "right.jsonl", "--target", "x", "--html", "."], "--html is a folder"),
    (["--samples", "right.jsonl", "--target", "x", "--alpha", "2"], "alpha must lie between"),
    (["--samples", "right.jsonl", "--target", "x", "--margin", "-1"], "margin must be"),
    (["--samples", "right.jsonl", "--target", "x", "--method", "hope"], "method must be one of"),
    (["--samples", "bad.jsonl", "--target", "x"], "line 1: not JSON"),
    (["--bundled", "--fault", "none"], "fault must be one of"),
    (["--bundled", "--drafter", "nobody"], "--drafter must be one of"),
    (["--bundled", "--drafter", "early-exit"], "early-exit needs a layer"),
    (["--bundled", "--target", "x"], "name two targets"),
    (["--bundled", "--verify", "hope"], "verify must be one of"),
    (["--bundled", "--reference", "right.jsonl"], "--reference goes with --samples"),
    (["-n", "a"], "argument -n: invalid int value: 'a'"),
    (["--samples", "right.jsonl", "--target", "x", "-n", "0"], "n must be a whole number >= 1"),
    (["--bundled", "--save", "no/where.jsonl"], "the folder of --save does not exist"),
    (["--samples", "right.jsonl", "--target", "x", "--method", "enumeration"], "method='enumerat"),
]


@pytest.mark.parametrize(("arguments", "message"), WRONG, ids=[m for _, m in WRONG])
def test_wrong_input_is_one_line_without_a_report(
    arguments: list[str], message: str, pair: Any, here: Path, capsys: Captured
) -> None:
    write_jsonl("right.jsonl", texts(tables().target, n=2))
    Path("bad.jsonl").write_text("{\n", "utf-8")
    assert main(["audit", *arguments]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("specviz: error: ")
    assert message in said.err
    assert said.err.count("\n") == 1


def test_a_wrong_file_is_said_before_a_model_is_loaded(pair: Any, here: Path) -> None:
    assert main(["audit", "--samples", "missing.jsonl", "--target", "x"]) == 2
    assert pair == []
