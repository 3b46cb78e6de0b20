"""The heads that ship: they fit the bundled target, and do what their cards say."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import specviz as sv
from specviz.drafters.eagle import Eagle
from specviz.drafters.medusa import Medusa
from specviz.models.heads import load_heads
from specviz.models.load import bundled
from specviz.models.training.bundled.corpus import HELDOUT_SEED
from specviz.models.training.bundled.stories import story
from specviz.models.training.measure_heads import measure_heads

KINDS = ("medusa", "eagle")
TOLERANCE = 0.05
"""The card measures 16 windows of the corpus's held-out part; here are other stories."""


@cache
def pair() -> Any:
    return sv.load()


def shipped(kind: str) -> Path:
    """The folder of the heads; a checkout without weights has none."""
    try:
        folder = bundled() / kind
    except ValueError:
        pytest.skip("this checkout has no bundled weights")
    if not folder.is_dir():
        pytest.skip(f"this checkout has no bundled {kind} heads")
    return folder


@pytest.mark.parametrize("kind", KINDS)
def test_the_heads_fit_and_are_small(kind: str) -> None:
    folder = shipped(kind)
    assert (folder / "model.safetensors").stat().st_size < 2_100_000
    assert load_heads(None, pair(), kind).config.target == "target"
    assert "## Measured" in (folder / "README.md").read_text("utf-8")


DRAFTERS = [
    ("medusa", Medusa, {}),
    ("eagle", Eagle, {}),
    ("eagle", Eagle, {"tree": (3, 2, 1)}),
    ("eagle", Eagle, {"tree": "dynamic"}),
]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "make", "arguments"), DRAFTERS)
def test_300_greedy_tokens_are_the_targets(kind: str, make: Any, arguments: Any) -> None:
    shipped(kind)
    options = {"max_new_tokens": 300, "temperature": 0}
    trace = sv.generate(pair(), "Once upon a time", drafter=make(**arguments), **options)
    plain = sv.generate(pair(), "Once upon a time", gamma=0, **options)
    assert trace.tokens.tolist() == plain.tokens.tolist()
    assert trace.check().ok
    assert len(trace.rounds) < 0.7 * len(trace.tokens)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_the_card_can_be_measured_again(kind: str) -> None:
    folder = shipped(kind)
    ids: list[int] = []
    seed = HELDOUT_SEED
    while len(ids) < 8 * 512 + 1:
        ids += [0, *pair().tokenizer(story(seed), add_special_tokens=False)["input_ids"]]
        seed += 1
    rows = np.stack([ids[i * 512 : (i + 1) * 512 + 1] for i in range(8)])
    heads = load_heads(None, pair(), kind)
    again = measure_heads(heads, pair().target, {"stories": torch.from_numpy(rows)})["stories"]
    said = json.loads((folder / "config.json").read_text("utf-8"))["measured"]["stories"]
    for name in ("alpha", "top1"):
        assert again[name] == pytest.approx(said[name], abs=TOLERANCE)
