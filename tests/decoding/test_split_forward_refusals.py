"""A pass in two halves leaves nothing behind, and is refused where it would not be the pass."""

from __future__ import annotations

import copy
import gc
import weakref
from functools import partial
from typing import Any

import pytest

import specviz.decoding.hf.split_forward as module
from specviz.decoding.hf import selftest as proof
from specviz.decoding.hf.cache import UnsupportedModelError, held
from specviz.decoding.hf.target import HFTarget
from specviz.models.model import Model
from tests.decoding import families as f

from .halves import CHAIN, FAMILIES, NONE, PROMPT, LayerLeftOut, counted, expect_rows, model_of


@pytest.fixture
def llama() -> Model:
    return model_of("llama")


@pytest.fixture
def target(llama: Model) -> HFTarget:
    return HFTarget(llama, fast=False)


class Stopped(Exception):
    pass


@pytest.mark.parametrize("error", [Stopped, KeyboardInterrupt])
@pytest.mark.parametrize("at", [0, 1, 2])
def test_an_interrupt_leaves_model_and_session_as_they_were(
    target: HFTarget, llama: Model, at: int, error: type[BaseException]
) -> None:
    inner = llama.model.model
    layers, config = inner.layers, copy.deepcopy(llama.model.config.to_dict())
    names = [name for name, _ in llama.model.named_modules()]
    target.verify(PROMPT[:10], NONE)
    target.keep([])

    def stop(*_: Any) -> None:
        raise error

    for begun in (0, 1):  # in the first step, and in the second
        if begun:
            target.draft_step(PROMPT[10:15], 2)
        hook = layers[at].register_forward_hook(stop)
        with pytest.raises(error):
            target.draft_step(PROMPT[10:], 2)
            target.verify(PROMPT[10:], CHAIN)
        hook.remove()
        assert inner.layers is layers and len(inner.layers) == 3
        assert llama.model.config.to_dict() == config
        assert [name for name, _ in llama.model.named_modules()] == names
        assert not inner.norm._forward_pre_hooks and not inner.norm._forward_hooks
        assert target.length == held(target.cache) == 10
    expect_rows(llama, PROMPT, CHAIN, target.verify(PROMPT[10:], CHAIN))


def test_a_session_is_freed_with_its_last_user(llama: Model) -> None:
    gc.disable()
    try:
        session = HFTarget(llama, fast=False)
        session.draft_step(PROMPT, 1)
        gone = weakref.ref(session)
        del session
        assert gone() is None, "a session that refers to itself keeps its cache in memory"
    finally:
        gc.enable()


# Refused ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["gpt2", "gpt_neox", "opt", "bloom", "mpt", "falcon"])
def test_other_architectures_are_refused_by_name(family: str) -> None:
    target = HFTarget({**f.FAMILIES, **f.CHAINS_ONLY}[family]()[0])
    with pytest.raises(UnsupportedModelError, match=f"model type '{family}' cannot draft by early"):
        target.open_exit(1)


@pytest.mark.parametrize("layer", [0, 3, 4, -1])
def test_a_layer_that_is_not_there(target: HFTarget, llama: Model, layer: int) -> None:
    with counted(llama) as seen:
        for call in (target.open_exit, lambda layer: target.draft_step(PROMPT, layer)):
            with pytest.raises(ValueError, match=f"1 to 2 for this .* 3 layers deep, got {layer}"):
                call(layer)
    assert not seen, "nothing ran"


def test_a_single_layer_has_no_exit() -> None:
    model, _ = f.make(partial(f.llama, num_hidden_layers=1))
    with pytest.raises(ValueError, match="so there is none"):
        HFTarget(model).open_exit(1)


def test_attention_without_masks_is_refused(llama: Model) -> None:
    target = HFTarget(llama, fast=False)
    target.kind = module_kind = copy.copy(target.kind)
    object.__setattr__(module_kind, "trees", False)
    object.__setattr__(module_kind, "why", "its attention takes no mask")
    with pytest.raises(UnsupportedModelError, match="early exit: its attention takes no mask"):
        target.open_exit(1)


# The trial ------------------------------------------------------------------------------------


def test_twin_found_in_the_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SplitModel", LayerLeftOut)
    model, _ = FAMILIES["llama"]()
    target = HFTarget(model, fast=False)
    with pytest.raises(
        UnsupportedModelError, match="early exit: in the self-test, logits of two halves"
    ):
        target.open_exit(1)
    assert target.length == 0
    monkeypatch.undo()
    with pytest.raises(UnsupportedModelError, match="self-test"):  # remembered
        HFTarget(model, fast=False).open_exit(1)
    proof._exits.pop(model.model)
    HFTarget(model).open_exit(1)


@pytest.mark.parametrize("error", [Stopped, KeyboardInterrupt])
def test_a_trial_that_is_broken_off_is_held_again(
    error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, _ = FAMILIES["llama"]()
    target = HFTarget(model, fast=False)
    target.capture([2])
    broken: list[int] = []

    def failing(*_: object) -> None:
        broken.append(1)
        raise error

    monkeypatch.setattr(module.SplitModel, "upper", failing)
    for _ in range(2):
        with pytest.raises(error):
            target.open_exit(1)
    assert len(broken) == 2
    monkeypatch.undo()
    target.open_exit(1)
    target.verify(PROMPT, NONE)
    assert target.features is not None and target.features.shape[1] == 1, "still captured"
