"""The bundled pair, loaded once; it must be there, so nothing is skipped."""

from __future__ import annotations

from typing import Any

import pytest

import specviz as sv
from tests.decoding.cached_pair import memoised


@pytest.fixture(scope="session")
def pair() -> sv.Pair:
    """The pair that ``sv.load()`` gives, in float32, with texts that never end by themselves."""
    loaded = sv.load()
    assert loaded.target.dtype == loaded.draft.dtype == "float32"
    loaded.stop_ids = frozenset()
    return loaded


@pytest.fixture(scope="session")
def remembered(pair: sv.Pair) -> Any:
    """The same pair, whose forward passes are remembered."""
    return memoised(pair)
