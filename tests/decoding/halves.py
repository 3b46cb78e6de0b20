"""Models of three layers to be cut in two, and how their passes are compared and counted."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from specviz.core.contract import Draft, IntArray
from specviz.decoding.hf import split_forward as module
from specviz.decoding.hf.target import HFTarget
from specviz.models.model import Model
from tests.decoding import families as f

PROMPT = np.array([1, 5, 9, 33, 80, 41, 2, 17, 60, 90, 8, 8, 71, 25, 3, 54, 12, 66, 39, 20])
NONE = Draft.empty(f.VOCAB)
CHAIN = Draft.chain([7, 44, 61], None, f.VOCAB)
TREE = f.tree([7, 44, 61, 30, 12], [-1, -1, 0, 1, 2])

THREE = {"num_hidden_layers": 3}
FAMILIES: dict[str, Callable[[], f.Pair]] = {
    "llama": partial(f.make, partial(f.llama, **THREE)),
    "llama-eager": partial(f.make, partial(f.llama, attn_implementation="eager", **THREE)),
    "mistral": partial(f.make, partial(f.mistral, **THREE)),
    "qwen2-mixed": f.FAMILIES["qwen2-mixed"],  # its second layer has a window, its first has none
    "gemma2": partial(f.make, partial(f.gemma2, **THREE)),  # scales its embeddings in forward
}


@functools.cache
def model_of(family: str) -> Model:
    model, _ = FAMILIES[family]()
    for layer in range(1, depth_of(model)):
        HFTarget(model).open_exit(layer)  # its trials are over before anything is planted
    return model


def depth_of(model: Model) -> int:
    return len(model.model.model.layers)


def expect_rows(model: Model, text: IntArray, draft: Draft, logits: np.ndarray) -> None:
    assert logits.shape == (1 + len(draft), f.VOCAB)
    for node in range(-1, len(draft)):
        ids = np.append(text, draft.tokens[draft.path(node)])
        np.testing.assert_allclose(logits[node + 1], f.plain(model, ids), atol=1e-4, rtol=0)


@contextmanager
def counted(model: Model) -> Iterator[Counter[int]]:
    """Count, for each layer, the tokens that go through it."""
    seen: Counter[int] = Counter()
    hooks = [
        layer.register_forward_pre_hook(
            lambda _, args, at=at: seen.update({at: args[0].shape[1]})  # type: ignore[misc]
        )
        for at, layer in enumerate(model.model.model.layers)
    ]
    yield seen
    for hook in hooks:
        hook.remove()


class LayerLeftOut(module.SplitModel):
    """Wrong: the upper half begins one layer too late."""

    def __init__(self, model: Any, layer: int) -> None:
        super().__init__(model, layer)
        self._upper.model.layers[layer] = self._stand_in
