"""Replicas of the bundled pair, in float32, are the texts that ``generate`` gives."""

from __future__ import annotations

from typing import Any

import pytest

import specviz as sv
from specviz.core.rules import RULES
from specviz.decoding.replicas.engine import replicas
from specviz.decoding.replicas.vectorised_rejection import VectorisedRejection
from tests.bundled.prompts import NOVELS, STORIES

LENGTH = 24


def loop_of(pair: sv.Pair, prompt: str, n: int, **options: Any) -> list[list[int]]:
    return [
        sv.generate(pair, prompt, sequence=i, seed=2, max_new_tokens=LENGTH, **options)
        .tokens.tolist()
        for i in range(n)
    ]  # fmt: skip


@pytest.mark.parametrize("prompt", [STORIES[1], NOVELS[1]])
@pytest.mark.parametrize(
    ("rule", "drafter"),
    [
        ("rejection", sv.DraftModel(4)),
        ("coupled", sv.DraftModel(4, noise="target")),
        ("block", sv.DraftModel(3)),
        ("match", sv.PromptLookup(5)),
    ],
)
def test_in_batches(pair: sv.Pair, prompt: str, rule: str, drafter: Any) -> None:
    ours = replicas(
        pair, prompt, 4, length=LENGTH, drafter=drafter, rule=RULES[rule], seed=2, at_once=3
    )  # fmt: skip
    assert ours.tolist() == loop_of(pair, prompt, 4, drafter=drafter, verify=rule)


@pytest.mark.parametrize("prompt", [STORIES[1], NOVELS[1]])
def test_side_by_side(pair: sv.Pair, prompt: str) -> None:
    many = VectorisedRejection(
        pair.target, pair.draft, pair.encode(prompt), pair.vocab_size, length=LENGTH, gamma=4
    )  # fmt: skip
    assert many.draw(4, seed=2).tolist() == loop_of(pair, prompt, 4, gamma=4)
