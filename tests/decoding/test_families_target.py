"""HFTarget on every family: what it returns equals plain passes without cache or mask.

Each assertion has planted twins: the same check, run on a target made wrong in one way, must fail.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
import pytest
import torch

import specviz.decoding.hf.cache as cache
import specviz.decoding.hf.target as module
from specviz.core.contract import Draft, IntArray
from specviz.decoding.hf.cache import UnsupportedModelError
from specviz.decoding.hf.target import HFTarget
from specviz.models.model import Model
from tests.decoding import families as f

PROMPT = np.array([1, 5, 9, 33, 80, 41, 2, 17, 60, 90, 8, 8, 71, 25, 3, 54, 12, 66, 39, 20])
assert len(PROMPT) > 2 * f.WINDOW
CHAIN = Draft.chain([7, 44, 61, 30], None, f.VOCAB)
#   root ─┬─ 0 ─┬─ 2 ── 5
#         │     └─ 3
#         └─ 1 ──── 4 ── 6
TREE = f.tree([7, 44, 61, 30, 61, 12, 88], [-1, -1, 0, 0, 1, 2, 4])
ALL = {**f.FAMILIES, **f.CHAINS_ONLY}

every_family = pytest.mark.parametrize("family", ALL)
tree_families = pytest.mark.parametrize("family", f.FAMILIES)
chain_families = pytest.mark.parametrize("family", f.CHAINS_ONLY)
sliding_families = pytest.mark.parametrize(
    "family", ["gemma2", "mistral", "mistral-eager", "qwen2-mixed"]
)


@functools.cache
def pair_of(family: str) -> f.Pair:
    target, draft = ALL[family]()
    HFTarget(target)  # its trial is over before anything is planted
    return target, draft


@pytest.fixture
def model(family: str) -> Model:
    return pair_of(family)[0]


@pytest.fixture
def target(model: Model) -> HFTarget:
    return HFTarget(model)


def expect_rows(model: Model, text: IntArray, draft: Draft, logits: np.ndarray) -> None:
    assert logits.shape == (1 + len(draft), f.VOCAB)
    for node in range(-1, len(draft)):
        ids = np.append(text, draft.tokens[draft.path(node)])
        np.testing.assert_allclose(logits[node + 1], f.plain(model, ids), atol=1e-4, rtol=0)


def walk(model: Model, shapes: str, seed: int = 3) -> None:
    """Many rounds of random drafts, random acceptance and random closing tokens, all compared."""
    rng = np.random.default_rng(seed)
    target, text = HFTarget(model), PROMPT
    for shape in shapes:
        n = int(rng.integers(1, 7)) if shape != "0" else 0
        parent = [int(rng.integers(-1, i)) if shape == "t" else i - 1 for i in range(n)]
        draft = f.tree(rng.integers(0, f.VOCAB, n).tolist(), parent)
        logits = target.verify(text[target.length :], draft)
        expect_rows(model, text, draft, logits)
        path = draft.path(int(rng.integers(-1, n)))
        target.keep(path)
        assert target.length == len(text) + len(path)
        closing = rng.integers(0, f.VOCAB, int(rng.integers(1, 4)))  # sometimes several pending
        text = np.concatenate([text, draft.tokens[path], closing])


@every_family
def test_the_pair_is_a_witness(family: str) -> None:
    distance, distinct = f.witness(*pair_of(family))
    assert distance >= 0.1
    assert distinct >= 20


@every_family
def test_chain(model: Model, target: HFTarget) -> None:
    expect_rows(model, PROMPT, CHAIN, target.verify(PROMPT, CHAIN))


@every_family
@pytest.mark.parametrize("accepted", [0, 2, 4])
def test_chain_then_continue(model: Model, target: HFTarget, accepted: int) -> None:
    target.verify(PROMPT, CHAIN)
    target.keep(range(accepted))
    text = np.concatenate([PROMPT, CHAIN.tokens[:accepted], [19, 77]])
    assert target.length == len(text) - 2
    again = Draft.chain([3, 50], None, f.VOCAB)
    expect_rows(model, text, again, target.verify(text[-2:], again))


@every_family
def test_many_rounds_of_chains(model: Model) -> None:
    walk(model, "cc0c0cc")


@tree_families
def test_tree(model: Model) -> None:
    target = HFTarget(model)
    expect_rows(model, PROMPT, TREE, target.verify(PROMPT, TREE))


@tree_families
@pytest.mark.parametrize("node", [-1, 1, 3, 5, 6])
def test_tree_then_continue(model: Model, node: int) -> None:
    target, path = HFTarget(model), TREE.path(node)
    target.verify(PROMPT, TREE)
    target.keep(path)
    text = np.concatenate([PROMPT, TREE.tokens[path], [19]])
    expect_rows(model, text, TREE, target.verify(text[-1:], TREE))


@tree_families
def test_many_rounds_of_trees_and_chains(model: Model) -> None:
    walk(model, "tct0tt")


@chain_families
def test_trees_are_refused_by_name(family: str, model: Model, target: HFTarget) -> None:
    with pytest.raises(
        UnsupportedModelError, match=f"'{family}' cannot verify a token tree.*ALiBi"
    ):
        target.verify(PROMPT, TREE)
    assert target.length == 0
    expect_rows(model, PROMPT, CHAIN, target.verify(PROMPT, CHAIN))


@chain_families
def test_a_trial_refuses_them_too(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "_why_no_trees", lambda *_: "")
    target = HFTarget(ALL[family]()[0])
    with pytest.raises(UnsupportedModelError, match=r"cannot verify a token tree: .*self-test"):
        target.verify(PROMPT, TREE)
    assert target.length == 0


# The twins --------------------------------------------------------------------------------------


def must_fail(check: Callable[[], None]) -> None:
    # rows that were not taken back make other logits, or masks that no longer fit
    with pytest.raises((AssertionError, RuntimeError), match=r"Not equal to tolerance|must match"):
        check()


@every_family
def test_twin_nothing_is_rolled_back(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "crop_to", lambda cache, length: None)
    must_fail(lambda: walk(model, "cc0c0cc"))


@every_family
def test_twin_rolled_back_one_too_few(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    right = module.crop_to
    monkeypatch.setattr(module, "crop_to", lambda cache, length: right(cache, length + 1))
    must_fail(lambda: walk(model, "cc0c0cc"))


@tree_families
def test_twin_siblings_see_each_other(
    model: Model, target: HFTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    def leaky(length: int, pending: int, draft: Draft, window: int | None) -> np.ndarray:
        return np.tri(pending + len(draft), length + pending + len(draft), length, dtype=bool)

    monkeypatch.setattr(module, "visibility", leaky)
    must_fail(lambda: expect_rows(model, PROMPT, TREE, target.verify(PROMPT, TREE)))


@tree_families
def test_twin_positions_count_nodes_instead_of_depth(
    model: Model, target: HFTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Draft, "depths", lambda draft: np.arange(len(draft)))
    must_fail(lambda: expect_rows(model, PROMPT, TREE, target.verify(PROMPT, TREE)))


@sliding_families
def test_twin_the_window_is_forgotten(
    model: Model, target: HFTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = module.visibility
    monkeypatch.setattr(module, "visibility", lambda *args: right(*args[:3], None))
    must_fail(lambda: expect_rows(model, PROMPT, TREE, target.verify(PROMPT, TREE)))


@pytest.mark.parametrize("family", ["llama-eager", "mistral-eager"])
def test_twin_a_boolean_mask_under_eager_attention(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = HFTarget(model, fast=False)

    def boolean(self: HFTarget, pending: int, draft: Draft) -> torch.Tensor:
        return torch.as_tensor(module.visibility(self.length, pending, draft))[None, None]

    monkeypatch.setattr(HFTarget, "tree_masks", boolean)
    must_fail(lambda: expect_rows(model, PROMPT, TREE, target.verify(PROMPT, TREE)))


@tree_families
def test_twin_the_wrong_path_is_kept(
    model: Model, target: HFTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = module.gather
    monkeypatch.setattr(
        module, "gather", lambda cache, start, rows: right(cache, start, range(len(rows)))
    )
    target.verify(PROMPT, TREE)
    target.keep([1, 4, 6])
    text = np.concatenate([PROMPT, TREE.tokens[[1, 4, 6]], [19]])
    must_fail(lambda: expect_rows(model, text, TREE, target.verify(text[-1:], TREE)))
