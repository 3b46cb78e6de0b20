"""What HFTarget refuses, what its trial finds, and that nothing is left behind by a failure."""

from __future__ import annotations

import copy
import gc
import logging
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
import transformers as tf

import specviz.decoding.hf.selftest as proof
from specviz.core.contract import Draft
from specviz.decoding.hf.cache import UnsupportedModelError, held
from specviz.decoding.hf.target import HFTarget
from specviz.models.model import Model
from tests.decoding import families as f

PROMPT = np.array([1, 5, 9, 33, 80, 41])
NONE = Draft.empty(f.VOCAB)
CHAIN = Draft.chain([7, 44, 61], None, f.VOCAB)
TREE = f.tree([7, 44, 61, 30, 12], [-1, -1, 0, 1, 2])


@pytest.fixture(scope="module")
def model() -> Model:
    return f.FAMILIES["llama"]()[0]


@pytest.fixture
def target(model: Model) -> HFTarget:
    return HFTarget(model)


@pytest.fixture
def passes(model: Model) -> Iterator[list[dict[str, Any]]]:
    """The arguments of every pass of the model."""
    seen: list[dict[str, Any]] = []
    hook = model.model.register_forward_pre_hook(
        lambda module, args, kwargs: seen.append(kwargs), with_kwargs=True
    )
    yield seen
    hook.remove()


@pytest.mark.parametrize("token", [-1, f.VOCAB])
def test_ids_outside_the_vocabulary_are_refused_before_the_model_runs(
    target: HFTarget, passes: list[dict[str, Any]], token: int
) -> None:
    with pytest.raises(ValueError, match=f"token id {token} is not one of the model's 96 ids"):
        target.verify(np.array([1, token]), NONE)
    with pytest.raises(ValueError, match=f"token id {token} is not one of the model's 96 ids"):
        target.verify(PROMPT, Draft.chain([token], None, f.VOCAB))
    assert passes == []


def test_something_must_be_pending(target: HFTarget) -> None:
    with pytest.raises(ValueError, match="pending must hold at least one token"):
        target.verify(np.array([], dtype=np.int64), CHAIN)


def test_the_context_is_never_overrun(model: Model) -> None:
    target = HFTarget(Model(model.model, "short", f.VOCAB, 10, frozenset()))
    with pytest.raises(ValueError, match="would reach 12 tokens, but the model's context holds 10"):
        target.verify(np.arange(9), CHAIN)
    target.verify(np.arange(7), TREE)  # five nodes, but only three deep
    target.keep([0, 2, 4])
    with pytest.raises(ValueError, match="would reach 11 tokens"):
        target.verify(np.array([1]), NONE)


def test_proposals_are_settled_before_the_next_pass(target: HFTarget) -> None:
    with pytest.raises(RuntimeError, match=r"keep\(\) needs a verify\(\) before it"):
        target.keep([])
    target.verify(PROMPT, CHAIN)
    with pytest.raises(RuntimeError, match=r"settle the proposals of the last verify\(\)"):
        target.verify(PROMPT, CHAIN)
    target.keep([])
    with pytest.raises(RuntimeError, match=r"keep\(\) needs a verify\(\) before it"):
        target.keep([])
    target.verify(np.array([3]), NONE)
    target.verify(np.array([4]), NONE)  # nothing was proposed, nothing is to be settled


@pytest.mark.parametrize("path", [[1], [0, 2], [0, 0], [3], [-1], [0, 1, 2, 3]])
def test_only_a_path_of_the_draft_can_be_kept(target: HFTarget, path: list[int]) -> None:
    target.verify(PROMPT, CHAIN)
    with pytest.raises(ValueError, match="does not lead from the root"):
        target.keep(path)
    target.keep([0])


def test_training_mode_is_refused(model: Model) -> None:
    other = Model(copy.deepcopy(model.model).train(), "training", f.VOCAB, None, frozenset())
    with pytest.raises(ValueError, match="training mode"):
        HFTarget(other)


def test_mamba_is_refused_by_name_before_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    mamba = tf.MambaForCausalLM(
        tf.MambaConfig(vocab_size=32, hidden_size=16, num_hidden_layers=1, state_size=4)
    ).eval()
    monkeypatch.setattr(mamba, "forward", lambda *args, **kwargs: pytest.fail("it ran"))
    with pytest.raises(UnsupportedModelError, match="'mamba'"):
        HFTarget(Model(mamba, "mamba", 32, None, frozenset()))


def test_attention_that_looks_ahead_is_found_in_a_trial() -> None:
    model, _ = f.make(lambda: f.llama(is_causal=False))
    with pytest.raises(
        UnsupportedModelError,
        match="'llama' cannot be used for speculative decoding: in the self-test",
    ):
        HFTarget(model)


def test_a_pass_that_fails_in_the_trial_is_the_cause_and_is_not_held_against_the_model() -> None:
    model, _ = f.make(f.llama)

    def fail(*_: Any) -> None:
        raise RuntimeError("no kernel image")

    hook = model.model.register_forward_pre_hook(fail)
    with pytest.raises(UnsupportedModelError, match="RuntimeError: no kernel image") as caught:
        HFTarget(model)
    assert isinstance(caught.value.__cause__, RuntimeError)
    hook.remove()
    HFTarget(model).verify(PROMPT, TREE)


def test_a_mask_that_is_passed_over_is_found_in_a_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HFTarget, "tree_masks", lambda *_: None)
    target = HFTarget(f.FAMILIES["gpt2"]()[0])
    target.verify(PROMPT, CHAIN)
    target.keep([])
    with pytest.raises(
        UnsupportedModelError, match="'gpt2' cannot verify a token tree: in the self-test"
    ):
        target.verify(np.array([2]), TREE)
    assert target.length == held(target.cache) == len(PROMPT)


def test_a_trial_is_held_once_for_each_model(passes: list[dict[str, Any]], model: Model) -> None:
    HFTarget(model)
    count = len(passes)
    HFTarget(model)
    assert len(passes) == count
    HFTarget(Model(copy.deepcopy(model.model), "copy", f.VOCAB, None, frozenset()))
    assert len(passes) == count + 7  # the copy took the hook with it


def test_a_trial_is_forgotten_with_its_model() -> None:
    model, _ = f.make(f.llama)
    HFTarget(model)
    assert model.model in proof._tried
    alive = weakref.ref(model.model)
    del model
    gc.collect()
    assert alive() is None


# Nothing left behind ----------------------------------------------------------------------------


class Stopped(KeyboardInterrupt):
    """An interrupt in mid-pass."""


@pytest.mark.parametrize("draft", [CHAIN, TREE])
@pytest.mark.parametrize("before", [0, 6])
def test_an_interrupt_leaves_cache_and_model_as_they_were(
    model: Model, draft: Draft, before: int
) -> None:
    target = HFTarget(model, fast=False)
    config = copy.deepcopy(model.model.config.to_dict())
    if before:
        target.verify(PROMPT, NONE)

    def stop(*_: Any) -> None:
        raise Stopped

    hook = model.model.model.layers[1].register_forward_pre_hook(stop)
    try:
        with pytest.raises(Stopped):  # the first layer has already cached the new tokens
            target.verify(np.array([3, 4]), draft)
    finally:
        hook.remove()
    assert target.length == held(target.cache) == before
    assert model.model.config.to_dict() == config
    logits = target.verify(np.array([3, 4]), draft)
    text = [*PROMPT[:before], 3, 4]
    for node in range(-1, len(draft)):
        ids = [*text, *draft.tokens[draft.path(node)]]
        np.testing.assert_allclose(logits[node + 1], f.plain(model, ids), atol=1e-4)


def test_nan_weights_reach_the_distributions_instead_of_being_refused_as_a_bad_cache() -> None:
    model, _ = f.make(f.llama)
    with torch.no_grad():
        model.model.lm_head.weight[3] = np.nan
    logits = HFTarget(model).verify(PROMPT, TREE)
    assert np.isnan(logits[:, 3]).all()


def test_no_gradients_and_no_deprecations(
    target: HFTarget, caplog: pytest.LogCaptureFixture
) -> None:
    logger = logging.getLogger("transformers")
    logger.addHandler(caplog.handler)
    try:
        target.verify(PROMPT, TREE)
    finally:
        logger.removeHandler(caplog.handler)
    assert caplog.records == []
    assert not target.cache.layers[0].keys.requires_grad
