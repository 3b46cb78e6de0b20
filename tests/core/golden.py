"""The exact values in golden.json, computed once by enumeration in rational arithmetic."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from specviz.core.contract import FloatArray

GOLDEN: dict[str, Any] = json.loads(Path(__file__).with_name("golden.json").read_text("utf-8"))


def number(value: Any) -> float:
    """ "13/20" or 0.65 → 0.65."""
    return float(Fraction(value)) if isinstance(value, str) else float(value)


def distribution(values: list[Any]) -> FloatArray:
    """A distribution given as fractions → ``(vocab,)``."""
    return np.array([number(value) for value in values])
