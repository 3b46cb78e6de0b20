"""A pass in two halves is the pass: same logits, and no token goes twice through a layer.

Each assertion has planted twins: the same check on a half made wrong in one way must fail.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import specviz.decoding.hf.split_forward as module
from specviz.core.contract import Draft, IntArray
from specviz.decoding.hf.cache import held
from specviz.decoding.hf.target import HFTarget
from specviz.models.model import Model
from tests.decoding import families as f

from .halves import (
    CHAIN,
    FAMILIES,
    NONE,
    PROMPT,
    TREE,
    LayerLeftOut,
    counted,
    depth_of,
    expect_rows,
    model_of,
)

every_family = pytest.mark.parametrize("family", FAMILIES)


@pytest.fixture
def model(family: str) -> Model:
    return model_of(family)


@pytest.fixture
def llama() -> Model:
    return model_of("llama")


@pytest.fixture
def target(llama: Model) -> HFTarget:
    return HFTarget(llama, fast=False)


def walk(model: Model, layer: int, shapes: str = "430214", *, fast: bool = False) -> None:
    """Rounds that draft and verify n tokens, keep some of them and go on, all compared."""
    rng = np.random.default_rng(5)
    target, text = HFTarget(model, fast=fast), PROMPT
    for n in map(int, shapes):
        tokens: list[int] = []
        for _ in range(n):
            target.draft_step(np.append(text[target.length :], tokens).astype(np.int64), layer)
            tokens.append(int(rng.integers(f.VOCAB)))
        draft = Draft.chain(tokens, None, f.VOCAB)
        expect_rows(model, text, draft, target.verify(text[target.length :], draft))
        path = list(range(int(rng.integers(0, n + 1))))
        target.keep(path)
        assert target.length == held(target.cache) == len(text) + len(path)
        text = np.concatenate([text, draft.tokens[path], rng.integers(0, f.VOCAB, 1)])


# Same logits ------------------------------------------------------------------------------------


@every_family
def test_verification_adds_the_other_layers(model: Model) -> None:
    for layer in range(1, depth_of(model)):
        walk(model, layer)
        walk(model, layer, fast=True)


@every_family
def test_the_exit_is_the_model_without_its_last_layers(model: Model) -> None:
    for layer in range(1, depth_of(model)):
        short = copy.deepcopy(model.model)
        short.model.layers = short.model.layers[:layer]
        short.config.num_hidden_layers = layer
        target = HFTarget(model, fast=layer == 1)
        for end in (18, 19, 20):
            with torch.inference_mode():
                own = short(input_ids=torch.tensor(PROMPT[:end])[None], use_cache=False).logits
            drafted = target.draft_step(PROMPT[:end], layer)
            np.testing.assert_allclose(drafted, own[0, -1].numpy(), atol=1e-4, rtol=0)
        assert target.length == 0, "half-done tokens are not in the cache as a whole"


def test_a_tree_may_follow_tokens_that_are_half_done(target: HFTarget, llama: Model) -> None:
    target.draft_step(PROMPT, 1)
    target.draft_step(np.append(PROMPT, 7), 1)
    expect_rows(llama, PROMPT, TREE, target.verify(PROMPT, TREE))
    target.keep([1, 3])
    text = np.concatenate([PROMPT, TREE.tokens[[1, 3]], [5]])
    expect_rows(llama, text, CHAIN, target.verify(text[-1:], CHAIN))


@pytest.mark.parametrize("drafted", [[7, 44], [7, 45], [8, 44, 61, 9], [44]])
def test_other_tokens_than_those_drafted(
    target: HFTarget, llama: Model, drafted: list[int]
) -> None:
    target.draft_step(np.append(PROMPT, drafted), 2)
    expect_rows(llama, PROMPT, CHAIN, target.verify(PROMPT, CHAIN))
    target.keep([0])
    expect_rows(llama, text := np.append(PROMPT, [7, 3]), NONE, target.verify(text[-1:], NONE))


def test_another_exit_in_mid_round(target: HFTarget, llama: Model) -> None:
    first = target.draft_step(PROMPT, 1)
    target.draft_step(np.append(PROMPT, 7), 2)
    np.testing.assert_allclose(target.draft_step(PROMPT, 1), first, atol=1e-5)
    expect_rows(llama, PROMPT, CHAIN, target.verify(PROMPT, CHAIN))


def test_cropping_and_beginning_forget_what_is_half_done(target: HFTarget, llama: Model) -> None:
    target.draft_step(PROMPT, 1)
    target.crop(0)
    assert held(target.cache) == 0
    target.draft_step(PROMPT[:5], 1)
    target.begin()
    target.verify(PROMPT, NONE)
    target.keep([])
    target.draft_step(np.array([3, 4]), 1)
    target.crop(10)
    expect_rows(llama, PROMPT, CHAIN, target.verify(PROMPT[10:], CHAIN))


def test_captured_layers_are_whole(target: HFTarget, llama: Model) -> None:
    with torch.inference_mode():
        ids = torch.tensor(PROMPT)[None]
        states = llama.model(input_ids=ids, output_hidden_states=True).hidden_states
    target.capture([1, 3])
    target.draft_step(PROMPT, 2)
    target.verify(PROMPT, CHAIN)
    target.keep([])
    assert target.features is not None
    for i, layer in enumerate((1, 3)):
        torch.testing.assert_close(target.features[:, i], states[layer][0], atol=1e-4, rtol=0)


# Nothing twice ----------------------------------------------------------------------------------


def test_each_token_goes_through_each_layer_once(target: HFTarget, llama: Model) -> None:
    with counted(llama) as seen:
        target.draft_step(PROMPT, 2)
        assert seen == {0: 20, 1: 20}
        target.draft_step(np.append(PROMPT, 7), 2)
        target.draft_step(np.append(PROMPT, [7, 44]), 2)
        assert seen == {0: 22, 1: 22}
        target.verify(PROMPT, CHAIN)
        assert seen == {0: 23, 1: 23, 2: 23}
        target.keep([0, 1, 2])
        target.draft_step(np.array([5]), 2)
        target.verify(np.array([5]), NONE)
        assert seen == {0: 24, 1: 24, 2: 24}


def test_the_layers_that_drafted_are_not_run_by_the_other_half(
    target: HFTarget, llama: Model
) -> None:
    target.draft_step(np.append(PROMPT, [7, 44, 61]), 2)
    with counted(llama) as seen:
        target.verify(PROMPT, CHAIN)
    assert seen == {2: 23}


def test_others_see_the_whole_model_meanwhile(target: HFTarget, llama: Model) -> None:
    """Nothing of the model is changed while half a pass runs: other threads may use it."""
    wanted, seen = f.plain(llama, PROMPT), []

    def look(*_: Any) -> None:
        hook.remove()
        seen.append((len(llama.model.model.layers), f.plain(llama, PROMPT)))

    for step in (target.draft_step, lambda text, _: target.verify(text, NONE)):
        hook = llama.model.model.layers[-1 if seen else 0].register_forward_pre_hook(look)
        step(PROMPT, 1)
    assert [depth for depth, _ in seen] == [3, 3]
    for _, logits in seen:
        np.testing.assert_allclose(logits, wanted, atol=1e-5)


# The twins --------------------------------------------------------------------------------------


def must_fail(check: Callable[[], None]) -> None:
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        check()


@every_family
def test_twin_the_states_are_handed_over_normed(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    def normed(self: Any, states: torch.Tensor) -> torch.Tensor:
        self.states = self.norm(states)
        return self.states

    monkeypatch.setattr(module._Seen, "forward", normed)
    must_fail(lambda: walk(model, 1))


def test_twin_a_layer_is_left_out(llama: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SplitModel", LayerLeftOut)
    must_fail(lambda: walk(llama, 1))


def test_twin_what_was_drafted_is_not_compared(
    llama: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    def trust(self: module.ExitState, target: HFTarget, fed: IntArray) -> None:
        pass

    monkeypatch.setattr(module.ExitState, "_agree_with", trust)
    target = HFTarget(llama, fast=False)
    target.draft_step(np.append(PROMPT, [8, 45]), 1)
    must_fail(lambda: expect_rows(llama, PROMPT, CHAIN, target.verify(PROMPT, CHAIN)))


@pytest.mark.parametrize("family", ["mistral", "qwen2-mixed", "gemma2"])
def test_twin_the_window_is_forgotten(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    right = HFTarget.tree_masks

    def wide(self: HFTarget, pending: int, draft: Draft) -> Any:
        kind, self.kind = self.kind, copy.copy(self.kind)
        object.__setattr__(self.kind, "windows", dict.fromkeys(kind.windows))
        masks = right(self, pending, draft)
        self.kind = kind
        return masks

    monkeypatch.setattr(HFTarget, "tree_masks", wide)
    must_fail(lambda: walk(model, 1))
