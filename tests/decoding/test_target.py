"""HFTarget itself: one pass, exact bookkeeping, clear refusals, nothing left behind."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

from specviz.core.contract import Draft, IntArray, Target
from specviz.core.tabular import TabularModel
from specviz.decoding.hf.cache import held
from specviz.decoding.hf.target import HFTarget, open_session, visibility
from specviz.models.model import Model, as_model
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
def readable(model: Model) -> HFTarget:
    """A session that calls the model's own forward, as any model outside the lean families."""
    return HFTarget(model, fast=False)


@pytest.fixture
def passes(model: Model) -> Iterator[list[dict[str, Any]]]:
    """The arguments of every pass of the model."""
    seen: list[dict[str, Any]] = []
    hook = model.model.register_forward_pre_hook(
        lambda module, args, kwargs: seen.append(kwargs), with_kwargs=True
    )
    yield seen
    hook.remove()


def test_it_keeps_the_protocol(target: HFTarget) -> None:
    assert isinstance(target, Target)
    assert target.vocab_size == f.VOCAB
    assert target.context_length == f.CONTEXT
    assert target.length == 0


def test_one_pass_a_verification(readable: HFTarget, passes: list[dict[str, Any]]) -> None:
    readable.verify(PROMPT, CHAIN)
    readable.keep([0])
    readable.verify(np.array([3]), TREE)
    readable.keep([1, 3])
    assert [kwargs["input_ids"].shape[1] for kwargs in passes] == [9, 6]
    assert readable.length == held(readable.cache) == 6 + 1 + 1 + 2


def test_only_needed_rows_of_a_prompt_go_through_the_head(
    model: Model, readable: HFTarget, passes: list[dict[str, Any]]
) -> None:
    prompt = np.arange(40)
    logits = readable.verify(prompt, CHAIN)
    assert passes[0]["logits_to_keep"] == 4
    np.testing.assert_allclose(logits[0], f.plain(model, prompt), atol=1e-4)


def test_a_chain_uses_the_models_own_causal_mask(
    readable: HFTarget, passes: list[dict[str, Any]]
) -> None:
    readable.verify(PROMPT, CHAIN)
    assert passes[0].get("attention_mask") is None
    assert passes[0]["position_ids"].tolist() == [list(range(9))]


def test_a_trees_positions_are_depths(readable: HFTarget, passes: list[dict[str, Any]]) -> None:
    readable.verify(PROMPT, NONE)
    readable.verify(np.array([3, 4]), TREE)
    kwargs = next(k for k in passes if k["input_ids"].tolist() == [[3, 4, *TREE.tokens]])
    assert kwargs["position_ids"].tolist() == [[6, 7, 8, 8, 9, 9, 10]]
    assert kwargs["attention_mask"].shape == (1, 1, 7, 13)


def test_logits_are_host_float32(target: HFTarget) -> None:
    logits = target.verify(PROMPT, CHAIN)
    assert type(logits) is np.ndarray and logits.dtype == np.float32
    assert logits.shape == (4, f.VOCAB)


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [(torch.float64, np.float64), (torch.bfloat16, np.float32), (torch.float16, np.float32)],
)
def test_distributions_are_never_below_float32(
    model: Model, dtype: torch.dtype, expected: type
) -> None:
    other = as_model(copy.deepcopy(model.model).to(dtype))
    target = HFTarget(other)
    for draft in (CHAIN, TREE):
        target.begin()
        logits = target.verify(PROMPT, draft)
        assert logits.dtype == expected
        tolerance = 1e-10 if dtype == torch.float64 else 0.5
        for node in range(-1, len(draft)):
            ids = np.append(PROMPT, draft.tokens[draft.path(node)])
            with torch.inference_mode():
                row = other.model(input_ids=torch.tensor(ids)[None]).logits[0, -1].to(torch.float64)
            np.testing.assert_allclose(logits[node + 1], row.numpy(), atol=tolerance)


def test_a_wider_vocabulary_has_a_tail_of_minus_infinity(model: Model) -> None:
    wide, own = HFTarget(model, f.VOCAB + 4), HFTarget(model)
    logits = wide.verify(PROMPT, CHAIN)
    np.testing.assert_array_equal(logits[:, : f.VOCAB], own.verify(PROMPT, CHAIN))
    assert (logits[:, f.VOCAB :] == -np.inf).all() and logits.shape[1] == f.VOCAB + 4
    wide.keep([])
    # The target may emit an id of the tail, and then the draft must read it.
    assert np.isfinite(wide.verify(np.array([f.VOCAB + 2]), NONE)[:, : f.VOCAB]).all()
    with pytest.raises(ValueError, match=f"token id {f.VOCAB + 4} is not one of"):
        wide.verify(np.array([f.VOCAB + 4]), NONE)


def test_a_narrower_vocabulary_cuts_the_tail(model: Model) -> None:
    narrow, own = HFTarget(model, f.VOCAB - 10), HFTarget(model)
    logits = narrow.verify(PROMPT, CHAIN)
    np.testing.assert_array_equal(logits, own.verify(PROMPT, CHAIN)[:, : f.VOCAB - 10])
    narrow.keep([])
    narrow.verify(np.array([f.VOCAB - 1]), NONE)  # ids of the tail can still be read


def test_begin_forgets_everything(target: HFTarget) -> None:
    first = target.verify(PROMPT, CHAIN)
    target.begin()
    assert target.length == held(target.cache) == 0
    np.testing.assert_array_equal(target.verify(PROMPT, CHAIN), first)


def test_crop_forgets_the_last_tokens(model: Model, target: HFTarget) -> None:
    target.verify(PROMPT, CHAIN)
    target.crop(4)
    assert target.length == held(target.cache) == 4
    again = target.verify(np.array([3]), NONE)
    np.testing.assert_allclose(again[0], f.plain(model, [*PROMPT[:4], 3]), atol=1e-4)
    with pytest.raises(ValueError, match="cannot keep 9 tokens of a cache that holds 5"):
        target.crop(9)


# Sessions ---------------------------------------------------------------------------------------


def test_open_session(model: Model) -> None:
    assert isinstance(open_session(model), HFTarget)
    assert open_session(model, 100).vocab_size == 100
    table = TabularModel([0.5, 0.5])
    session = open_session(table, 2)
    assert isinstance(session, Target) and not isinstance(session, HFTarget)


def test_two_sessions_of_one_model_do_not_meet(model: Model) -> None:
    one, two = HFTarget(model), HFTarget(model)
    one.verify(PROMPT, CHAIN)
    assert two.length == held(two.cache) == 0


def greedy(model: Model, steps: int, gammas: list[int]) -> IntArray:
    """Decode greedily with the target as its own draft, gamma changing from round to round."""
    target, draft_session, text, n = HFTarget(model), HFTarget(model), PROMPT, 0
    while len(text) < len(PROMPT) + steps:
        guess = text
        for _ in range(gammas[n % len(gammas)]):
            row = draft_session.verify(guess[draft_session.length :], NONE)[0]
            guess = np.append(guess, row.argmax())
        draft = Draft.chain(guess[len(text) :].tolist(), None, f.VOCAB)
        best = target.verify(text[target.length :], draft).argmax(axis=1)
        accepted = int((draft.tokens == best[: len(draft)]).cumprod().sum())
        assert accepted == len(draft)
        target.keep(range(accepted))
        text = np.append(guess, best[accepted])
        draft_session.crop(min(draft_session.length, len(text) - 1))
        n += 1
    return text[: len(PROMPT) + steps]


def test_hundreds_of_greedy_tokens_are_those_of_generate(model: Model) -> None:
    ours = greedy(model, 300, [0, 3, 0, 1])
    with torch.inference_mode():
        theirs = model.model.generate(
            torch.tensor(PROMPT)[None],
            attention_mask=torch.ones(1, len(PROMPT), dtype=torch.long),
            max_new_tokens=300,
            do_sample=False,
        )
    assert theirs[0].tolist() == ours.tolist()
    assert len(set(ours.tolist())) >= 20


# The mask ---------------------------------------------------------------------------------------


def test_visibility_of_a_tree_by_hand() -> None:
    #   root ─┬─ 0 ── 2 ── 4
    #         └─ 1 ── 3
    seen = visibility(2, 2, TREE)
    assert seen.astype(int).tolist() == [
        [1, 1, 1, 0, 0, 0, 0, 0, 0],
        [1, 1, 1, 1, 0, 0, 0, 0, 0],
        [1, 1, 1, 1, 1, 0, 0, 0, 0],
        [1, 1, 1, 1, 0, 1, 0, 0, 0],
        [1, 1, 1, 1, 1, 0, 1, 0, 0],
        [1, 1, 1, 1, 0, 1, 0, 1, 0],
        [1, 1, 1, 1, 1, 0, 1, 0, 1],
    ]


def test_a_window_counts_depth() -> None:
    seen = visibility(2, 2, TREE, window=3)
    assert seen.astype(int).tolist() == [
        [1, 1, 1, 0, 0, 0, 0, 0, 0],
        [0, 1, 1, 1, 0, 0, 0, 0, 0],
        [0, 0, 1, 1, 1, 0, 0, 0, 0],
        [0, 0, 1, 1, 0, 1, 0, 0, 0],
        [0, 0, 0, 1, 1, 0, 1, 0, 0],
        [0, 0, 0, 1, 0, 1, 0, 1, 0],
        [0, 0, 0, 0, 1, 0, 1, 0, 1],
    ]


def test_visibility_of_a_chain_is_causal() -> None:
    assert np.array_equal(visibility(3, 2, CHAIN), np.tri(5, 8, 3, dtype=bool))
