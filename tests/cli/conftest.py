"""What the command line runs on in its tests: two tables in place of loaded models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import specviz as sv

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


@pytest.fixture
def recorded(here: Path) -> Path:
    sv.generate(tables(), [0, 1], seed=3, max_new_tokens=30).save(here / "run.specviz")
    return here / "run.specviz"
