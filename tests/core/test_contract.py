"""The contract: what settings may be, what a draft is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from specviz.core.contract import (
    ROOT,
    Context,
    Draft,
    DraftContractError,
    Drafter,
    Sampling,
    Target,
)
from specviz.core.tabular import TabularModel
from specviz.drafters.draft_model import DraftModel

WRONG_SETTINGS: list[tuple[str, Any, type[Exception], str]] = [
    (
        "temperature",
        -1,
        ValueError,
        "temperature must be",
    ),
    (
        "temperature",
        float("nan"),
        ValueError,
        "temperature must be",
    ),
    (
        "temperature",
        float("inf"),
        ValueError,
        "temperature must be",
    ),
    ("temperature", "1", TypeError, "temperature must be a number >= 0, got '1'"),
    ("temperature", True, TypeError, "temperature must be a number >= 0, got True"),
    ("top_k", -1, ValueError, "top_k must be a whole number"),
    ("top_k", 1.5, TypeError, "top_k must be a whole number"),
    ("top_p", 0, ValueError, "top_p must be a number above 0 and at most 1"),
    ("top_p", 1.01, ValueError, "top_p must be a number above 0 and at most 1"),
    ("min_p", -0.1, ValueError, "min_p must be"),
    ("min_p", float("nan"), ValueError, "min_p must be"),
    ("repetition_penalty", 0, ValueError, "repetition_penalty must be a number > 0"),
    ("repetition_penalty", None, TypeError, "repetition_penalty must be a number"),
]


@pytest.mark.parametrize(("name", "value", "error", "says"), WRONG_SETTINGS)
def test_wrong_settings_are_named(name: str, value: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error) as caught:
        Sampling(**{name: value})
    assert str(caught.value).startswith(says)
    assert repr(value) in str(caught.value)


def test_settings_at_their_edges_are_fine() -> None:
    assert Sampling(temperature=0).greedy
    assert not Sampling(temperature=1e-6).greedy
    edge = Sampling(np.float32(0.5), np.int64(3), 1, 1, np.float64(2))  # type: ignore[arg-type]
    assert (edge.top_k, edge.repetition_penalty) == (3, 2)


# root: 0, 1; below 1: 2, 3; below 3: 4
TREE = Draft(
    tokens=np.array([5, 6, 7, 8, 9]),
    parent=np.array([-1, -1, 1, 1, 3]),
    q=np.eye(10)[[6, 8]] * 0.5 + 0.05,
    q_row=np.array([-1, 0, -1, 1, -1]),
)


def test_a_tree_knows_its_shape() -> None:
    assert len(TREE) == 5 and not TREE.is_chain
    assert [TREE.children(node) for node in range(ROOT, 5)] == [[0, 1], [], [2, 3], [], [4], []]
    assert TREE.path(4) == [1, 3, 4] and TREE.path(0) == [0] and TREE.path(ROOT) == []
    assert TREE.depths().tolist() == [0, 0, 1, 1, 2]


def test_the_distribution_of_a_node_is_the_one_it_was_drawn_from_or_one_hot() -> None:
    assert TREE.distribution(1, 10) is not None
    assert np.array_equal(TREE.distribution(1, 10), TREE.q[0])
    assert np.array_equal(TREE.distribution(3, 10), TREE.q[1])
    for node in (0, 2, 4):
        assert np.array_equal(TREE.distribution(node, 10), np.eye(10)[TREE.tokens[node]])
    TREE.distribution(0, 10)[:] = 7  # its own array: nobody else's distribution changes
    assert np.array_equal(TREE.distribution(0, 10), np.eye(10)[5])


def test_a_chain_follows_itself() -> None:
    chain = Draft.chain([3, 1, 2], None, vocab_size=4)
    assert chain.is_chain and chain.path(2) == [0, 1, 2]
    assert chain.parent.tolist() == [-1, 0, 1]
    assert chain.depths().tolist() == [0, 1, 2]
    assert np.array_equal(chain.distribution(1, 4), [0, 1, 0, 0])
    q = np.full((2, 4), 0.25)
    assert Draft.chain([0, 1], q, 4).q_row.tolist() == [0, 1]


def test_an_empty_draft_is_a_chain_without_nodes() -> None:
    none = Draft.empty(4)
    assert len(none) == 0 and none.is_chain
    assert none.children(ROOT) == [] and none.depths().tolist() == []


@pytest.mark.parametrize("parent", [[0], [-2], [-1, 1], [-1, 2, 0]])
def test_a_parent_must_come_first(parent: list[int]) -> None:
    n = len(parent)
    with pytest.raises(DraftContractError, match="a parent must come before its children"):
        Draft(np.zeros(n, dtype=int), np.array(parent), np.zeros((0, 4)), np.full(n, -1))


def test_tables_and_drafters_keep_the_protocols() -> None:
    assert isinstance(TabularModel([0.5, 0.5]).session(), Target)
    assert isinstance(DraftModel(gamma=2), Drafter)
    assert not isinstance(object(), Target)
    context = Context(np.array([1]), 3, Sampling())
    assert context.stop_ids == frozenset()
