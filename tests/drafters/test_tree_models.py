"""Token trees on real models: greedy text, replay, and what is refused before anything runs."""

from __future__ import annotations

from typing import Any

import pytest

import specviz as sv
from specviz.core.tabular import TabularPair
from specviz.decoding.hf.cache import UnsupportedModelError
from specviz.drafters.tree import KINDS, Tree
from tests.decoding import families as f
from tests.lossless.enumeration import random_pair

every_kind = pytest.mark.parametrize("kind", KINDS)


@every_kind
@pytest.mark.parametrize("family", ["llama", "gpt2", "mistral", "gemma2"])
def test_greedy_text_of_real_models(family: str, kind: str) -> None:
    pair = sv.Pair(*f.FAMILIES[family]())
    options: dict[str, Any] = {"temperature": 0, "progress": False}
    plain = sv.generate(pair, [1, 2, 3], gamma=0, max_new_tokens=60, **options)
    drafter = Tree((2, 2), kind=kind)
    trace = sv.generate(pair, [1, 2, 3], drafter=drafter, max_new_tokens=60, **options)
    assert trace.tokens.tolist() == plain.tokens.tolist()
    assert trace.check().ok
    assert any(node.accepted for round_ in trace.rounds for node in round_.nodes)


def test_greedy_text_over_300_tokens_and_second_siblings_count() -> None:
    pair = sv.Pair(*f.FAMILIES["llama"]())
    options: dict[str, Any] = {"temperature": 0, "progress": False, "max_new_tokens": 300}
    plain = sv.generate(pair, [1, 2, 3], gamma=0, **options)
    assert len(set(plain.tokens.tolist())) >= 20
    trace = sv.generate(pair, [1, 2, 3], drafter=Tree((3, 2, 1), kind="top_k"), **options)
    assert trace.tokens.tolist() == plain.tokens.tolist() and trace.check().ok
    nodes = [node for round_ in trace.rounds for node in round_.nodes]
    later = [n for r in trace.rounds for i, n in enumerate(r.nodes[:3]) if i and n.accepted]
    assert later and not all(node.accepted for node in nodes)


@every_kind
def test_sampled_trees_replay(kind: str) -> None:
    pair = sv.Pair(*f.FAMILIES["llama"]())
    for verify in ("rejection", "match"):
        trace = sv.generate(
            pair, [1, 2, 3], drafter=Tree((3, 2), kind=kind), verify=verify, seed=3,
            temperature=0.8, max_new_tokens=60, progress=False,
        )  # fmt: skip
        assert trace.check().ok
        if verify == "match":
            plain = sv.generate(
                pair, [1, 2, 3], gamma=0, seed=3, temperature=0.8, max_new_tokens=60,
                progress=False,
            )  # fmt: skip
            assert trace.tokens.tolist() == plain.tokens.tolist()


# Refused ----------------------------------------------------------------------------------------


def test_models_that_cannot_verify_trees() -> None:
    pair = sv.Pair(*f.CHAINS_ONLY["bloom"]())
    with pytest.raises(UnsupportedModelError, match="'bloom' cannot verify a token tree"):
        sv.generate(pair, [1], drafter=Tree((2,)))


def test_a_tree_larger_than_the_context() -> None:
    pair = random_pair(3, order=1, seed=1, context_length=16)
    with pytest.raises(ValueError, match="make a tree of 39 nodes, but the context is 16"):
        sv.generate(pair, [0], drafter=Tree((3, 3, 3)))
    trace = sv.generate(pair, [0] * 12, drafter=Tree((2, 1, 1)), max_new_tokens=50, progress=False)
    assert len(trace.tokens) == 4


@pytest.mark.parametrize(
    ("widths", "error", "says"),
    [
        ((), TypeError, "widths must be a list or tuple"),
        (3, TypeError, "widths must be a list or tuple"),
        ((2, 0), ValueError, r"widths\[1\] must be a whole number >= 1, got 0"),
        ((2, 1.5), TypeError, r"widths\[1\] must be a whole number >= 1, got 1.5"),
        ((8, 8, 8), ValueError, "a tree of 584 nodes; at most 512"),
    ],
)
def test_bad_widths(widths: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        Tree(widths)


def test_other_bad_arguments() -> None:
    with pytest.raises(
        ValueError,
        match="kind must be 'without_replacement', 'with_replacement' or 'top_k', got 'beam'",
    ):
        Tree((2,), kind="beam")
    pair = random_pair(3, order=1, seed=1)
    with pytest.raises(ValueError, match="no draft model: load one"):
        sv.generate(TabularPair(pair.target), [0], drafter=Tree((2,)))
    for verify in ("block", "coupled"):
        with pytest.raises(ValueError, match=r"judges chains only|needs a draft that races"):
            sv.generate(pair, [0], drafter=Tree((2,)), verify=verify)
