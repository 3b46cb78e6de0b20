"""The drafts to compare with: what they have not learned costs them acceptance."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

import specviz as sv
from specviz.models.load import BUNDLED_DRAFTS, bundled


@pytest.fixture(scope="module")
def story(pair: sv.Pair) -> np.ndarray:
    """Return a text that the target writes by itself."""
    trace = sv.generate(pair, "Once upon a time", gamma=0, max_new_tokens=150, seed=0)
    return np.concatenate([trace.prompt, trace.tokens])


def alpha(name: str, ids: np.ndarray) -> float:
    """Return the mean overlap of target and draft along a text."""
    pair = sv.load(draft=name)
    with torch.inference_mode():
        p, q = (
            model.model(torch.as_tensor(ids)[None]).logits[0].softmax(-1)
            for model in (pair.target, pair.draft)
        )
    return float(torch.minimum(p, q).sum(-1).mean())


def test_similar_data_and_the_targets_distributions_both_buy_acceptance(story: np.ndarray) -> None:
    found = {name: alpha(name, story) for name in BUNDLED_DRAFTS}
    assert found["distilled"] > found["text-only"] > found["prose-only"]
    assert found["distilled"] > 0.88
    assert found["prose-only"] < 0.7


def test_the_default_is_the_distilled_one(story: np.ndarray, pair: sv.Pair) -> None:
    assert pair.draft is not None
    named = sv.load(draft="distilled").draft
    assert named is not None
    weights = [model.model.state_dict() for model in (pair.draft, named)]
    assert all(torch.equal(weights[0][key], weights[1][key]) for key in weights[0])


@pytest.mark.parametrize("name", ["text-only", "prose-only"])
def test_the_text_is_the_targets_all_the_same(pair: sv.Pair, name: str) -> None:
    """A poor draft costs time, never correctness."""
    settings = {"temperature": 0.0, "max_new_tokens": 40}
    plain = sv.generate(pair, "Once upon a time", gamma=0, **settings)
    assert (
        sv.generate(sv.load(draft=name), "Once upon a time", **settings).tokens == plain.tokens
    ).all()


@pytest.mark.parametrize("name", ["text-only", "prose-only"])
def test_the_card_says_what_was_measured(name: str) -> None:
    folder = bundled() / BUNDLED_DRAFTS[name]
    measured = json.loads((folder / "measured.json").read_text("utf-8"))
    card = (folder / "README.md").read_text("utf-8")
    for domain, row in measured.items():
        assert f"| {domain} | {row['loss_draft']:.3f} | {row['loss_target']:.3f} " in card


def test_an_unknown_draft_names_those_there_are() -> None:
    with pytest.raises(ValueError, match="'text-only'"):
        sv.load(draft="nonsense")
