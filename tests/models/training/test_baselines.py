"""Baselines: their mixture, and a refusal."""

from __future__ import annotations

from pathlib import Path

import pytest

from specviz.models.training.baselines import BASELINES, train_baseline
from specviz.models.training.batches import SHARES


def test_text_only_reads_what_the_target_reads_and_prose_only_does_not() -> None:
    assert BASELINES["text-only"] == SHARES
    assert {name for name, share in BASELINES["prose-only"].items() if share} == {"prose"}


def test_an_unknown_name_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="'text-only', 'prose-only', got 'x'"):
        train_baseline(tmp_path, tmp_path / "run", "x")
    assert not (tmp_path / "run").exists()
