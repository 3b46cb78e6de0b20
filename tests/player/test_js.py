"""The script's own tests, run by Node's test runner, on runs made by hand and one from Python."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from specviz.core.names import VERDICTS
from specviz.figures.escaping import split_gap
from specviz.player.assets import ENTRY, LAB, LAB_PAGE, PAGE_ENTRY, script
from specviz.player.projection import pack, project
from tests.player.node import NODE
from tests.player.runs import decoded


def test_drawing_without_a_browser(root: Path, tmp_path: Path) -> None:
    trace = decoded()
    (tmp_path / "run").write_bytes(pack(project(trace)))
    shown = ["".join(split_gap(trace.strings[int(t)])) for t in trace.tokens]
    told = {
        "text": "".join(shown),
        "nodes": [
            {
                "text": "".join(split_gap(node.text)),
                "verdict": VERDICTS.index(node.verdict),
                **{n: getattr(node, n) for n in ("p", "q", "u", "acceptance", "overlap")},
            }
            for one in trace.rounds
            for node in one.nodes
        ],
        "rounds": [
            {"closing": "".join(split_gap(r.closing.text)), "verify_seconds": r.verify_seconds}
            for r in trace.rounds
        ],
        "alpha": trace.measures()["alpha"].value,
        "tokens_per_pass": trace.measures()["tokens_per_pass"].value,
    }
    (tmp_path / "told.json").write_text(json.dumps(told), "utf-8")
    done = subprocess.run(
        [
            NODE,
            "--test",
            "--test-reporter=spec",
            *map(str, sorted((root / TESTS).glob("*.test.mjs"))),
        ],
        env=os.environ
        | {"SPECVIZ_RUN": str(tmp_path / "run"), "SPECVIZ_TOLD": str(tmp_path / "told.json")},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert done.returncode == 0, done.stdout[-4000:]
    assert "skipped 0" in done.stdout


TESTS = "tests/player/js"


@pytest.mark.parametrize("entry", [ENTRY, PAGE_ENTRY, LAB, LAB_PAGE])
def test_what_is_sent_is_a_program(tmp_path: Path, entry: str) -> None:
    where = tmp_path / "joined.mjs"
    where.write_text(script(entry), "utf-8")
    done = subprocess.run(
        [NODE, "--check", str(where)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
