"""A recorded trace opens, shows itself and draws where torch is not installed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import specviz as sv

BLOCK = """
import sys

BLOCKED = {"torch", "transformers", "tokenizers", "safetensors", "accelerate"}


class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in BLOCKED:
            raise ModuleNotFoundError(f"{name} is not installed here", name=name)


sys.meta_path.insert(0, Refuse())
"""

READ = """
import json
import specviz as sv

trace = sv.Trace.load(sys.argv[1])
page = sys.argv[2]
sv.to_html(trace, page)
seen = {
    "tokens": trace.tokens.tolist(),
    "text": trace.text,
    "plain": str(trace),
    "html": trace._repr_html_(),
    "page": open(page, encoding="utf-8").read(),
    "axes": type(sv.figures.overlap(trace, round=0)).__name__,
    "follows": trace.check().ok,
    "rule": sv.rules.get_rule("rejection").name,
    "loaded": sorted(BLOCKED & set(sys.modules)),
}
print(json.dumps(seen))
"""


def run(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run code in a fresh interpreter, in the checkout."""
    return subprocess.run(
        [sys.executable, "-X", "utf8", "-c", code, *arguments],
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=100,
    )


@pytest.fixture
def trace() -> sv.Trace:
    """A run on tables: twelve tokens, some rejected proposals."""
    target = sv.tabular.TabularModel.random(5, seed=1)
    draft = sv.tabular.TabularModel.random(5, seed=2)
    pair = sv.tabular.TabularPair(target, draft)
    return sv.generate(pair, [0, 1], gamma=3, seed=7, max_new_tokens=12)


def test_a_trace_opens_and_draws_without_torch(trace: sv.Trace, tmp_path: Path) -> None:
    path = tmp_path / "run.specviz"
    trace.save(path)
    done = run(BLOCK + READ, str(path), str(tmp_path / "page.html"))
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)

    assert seen["tokens"] == trace.tokens.tolist()
    assert len(seen["tokens"]) == 12
    assert seen["text"] == trace.text
    assert seen["plain"] == str(trace)
    assert seen["html"] == trace._repr_html_()
    assert seen["page"].lstrip().lower().startswith("<!doctype html>")
    assert seen["axes"] == "Axes"
    assert seen["follows"] is True
    assert seen["rule"] == "rejection"
    assert seen["loaded"] == []


def test_the_block_really_blocks() -> None:
    done = run(BLOCK + "import torch")
    assert done.returncode != 0
    assert "torch is not installed here" in done.stderr


def test_what_needs_torch_says_so_only_when_used() -> None:
    done = run(BLOCK + "import specviz as sv\nprint('light')\nsv.load")
    assert done.stdout.strip() == "light"
    assert "is not installed here" in done.stderr
