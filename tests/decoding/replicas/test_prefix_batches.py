"""Contexts on top of their parents' caches: the logits are those of each text alone."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from specviz.decoding.replicas import prefix_batches as levels
from specviz.models.model import Model
from tests.decoding import families

PROMPT = [1, 2, 3]
EVERY = {**families.FAMILIES, **families.CHAINS_ONLY}


def errors(model: Model) -> list[float]:
    """Three levels that branch, then one context that grows past the sliding windows."""
    tree = levels.PrefixBatches(model, np.array(PROMPT), families.VOCAB)
    found = []

    def seen(level: levels.PrefixBatch) -> levels.PrefixBatch:
        assert level.logits is not None
        for context, row in zip(level.contexts, level.logits, strict=True):
            found.append(float(np.abs(row - families.plain(model, [*PROMPT, *context])).max()))
        return level

    root = seen(tree.root())
    first = seen(tree.grown(root, np.array([0, 0]), np.array([7, 9])))
    second = seen(tree.grown(first, np.array([1, 0, 1]), np.array([4, 5, 6])))
    assert second.contexts == [(9, 4), (7, 5), (9, 6)]
    other = tree.grown(first, np.array([0, 1]), np.array([50, 51]))  # first was not spent
    last = tree.grown(second, np.arange(3), np.array([8, 8, 8]), spent=True)
    seen(other)
    seen(last)
    for token in range(60, 72):
        last = tree.grown(last, np.array([0]), np.array([token]), spent=True)
    seen(last)
    return found


@pytest.mark.parametrize("build", EVERY.values(), ids=list(EVERY))
def test_levels_say_what_the_model_says(build: Callable[[], families.Pair]) -> None:
    assert max(errors(build()[0])) < 1e-3


def test_caches_of_other_parents_show(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = levels._chosen
    monkeypatch.setattr(levels, "_chosen", lambda cache, rows: chosen(cache, rows[::-1].copy()))
    assert max(errors(EVERY["llama"]()[0])) > 0.05


def test_where_a_text_is_too_long_nothing_is_computed() -> None:
    model = EVERY["gpt2"]()[0]
    model.context_length = 4
    tree = levels.PrefixBatches(model, np.array(PROMPT), families.VOCAB)
    level = tree.grown(tree.root(), np.array([0]), np.array([7]))
    assert level.logits is not None
    assert tree.grown(level, np.array([0]), np.array([7])).logits is None
