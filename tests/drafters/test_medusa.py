"""Medusa: a tree of one-hot choices; whatever it proposes, the text is the target's."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import specviz as sv
from specviz.core.contract import Context, Sampling
from specviz.core.draws import Sampler
from specviz.core.tabular import TabularModel, TabularPair
from specviz.decoding.hf.target import HFTarget
from specviz.drafters.medusa import DEFAULT_TREE, Medusa
from specviz.drafters.topology import best_tree, checked_topology
from specviz.models.heads import HeadsError
from tests.drafters.with_heads import PROMPT, medusa_for, tiny_pair

TREES: list[Any] = [None, (6, 3), [(0,), (1,), (0, 0), (0, 0, 0), (0, 0, 0, 0)]]


@pytest.mark.parametrize("tree", TREES)
@pytest.mark.parametrize("settings", [{"temperature": 0}, {"verify": "match"}])
def test_the_text_is_the_targets_own(tree: Any, settings: dict[str, Any]) -> None:
    pair = tiny_pair()
    options = {"max_new_tokens": 40, "seed": 3, **settings}
    trace = sv.generate(pair, PROMPT, drafter=Medusa(medusa_for(pair), tree=tree), **options)
    options.pop("verify", None)
    plain = sv.generate(pair, PROMPT, gamma=0, **options)
    assert trace.tokens.tolist() == plain.tokens.tolist()
    assert len(set(plain.tokens.tolist())) >= 15
    assert trace.check().ok


def test_some_proposals_are_accepted_or_the_test_above_says_little() -> None:
    pair = tiny_pair()
    trace = sv.generate(
        pair, PROMPT, drafter=Medusa(medusa_for(pair), tree=(9, 3)), max_new_tokens=40, seed=3
    )
    assert trace.check().ok
    assert len(trace.rounds) < 37


def test_nothing_is_proposed_before_there_is_a_state() -> None:
    pair = tiny_pair()
    trace = sv.generate(pair, PROMPT, drafter=Medusa(medusa_for(pair)), max_new_tokens=8)
    assert len(trace.rounds[0].nodes) == 0
    assert len(trace.rounds[1].nodes) == len(DEFAULT_TREE)


def test_every_node_is_what_its_head_ranks() -> None:
    pair = tiny_pair()
    heads, target = medusa_for(pair), HFTarget(pair.target)
    drafter = Medusa(heads, tree=(3, 2)).start(pair, target, np.array(PROMPT))
    text = np.array([*PROMPT, 9])
    target.verify(text[:-1], drafter.propose(Context(text[:-1], 5, Sampling()), Sampler(0)))
    target.keep([])
    drafter.commit(text[-1:], [])
    draft = drafter.propose(Context(text, 5, Sampling()), Sampler(0))
    assert (draft.q_row == -1).all()
    states = heads(target.features[-1])  # (heads, hidden)
    logits = pair.target.model.lm_head(states).detach().numpy()
    best = np.argsort(-logits, axis=1)
    tokens = {tuple(draft.tokens[draft.path(i)].tolist()) for i in range(len(draft))}
    first, second = best[0, :3].tolist(), best[1, :2].tolist()
    assert tokens == {(a,) for a in first} | {(a, b) for a in first for b in second}


def test_typical_acceptance_runs_and_is_lossy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("specviz.api.arguments._WARNED", set())  # said once in a process
    pair = tiny_pair()
    with pytest.warns(UserWarning, match="lossy"):
        trace = sv.generate(
            pair, PROMPT, drafter=Medusa(medusa_for(pair), tree=(6, 2)), verify="typical",
            max_new_tokens=40,
        )  # fmt: skip
    assert not trace.meta["lossless"]
    assert trace.check().ok


def test_the_default_tree_follows_the_measured_accuracy() -> None:
    pair = tiny_pair()
    ranks = tuple((0.7, 0.1, 0.05) for _ in range(4))
    drafter = Medusa(medusa_for(pair, ranks=ranks)).start(
        pair, HFTarget(pair.target), np.array(PROMPT)
    )
    assert drafter.settings()["tree"] == [list(path) for path in best_tree(ranks, 24).paths]
    assert best_tree(ranks, 4).paths == ((0,), (0, 0), (0, 0, 0), (0, 0, 0, 0))


def test_trees_are_cut_to_the_room_and_end_with_the_text() -> None:
    pair = tiny_pair()
    trace = sv.generate(
        pair, PROMPT, drafter=Medusa(medusa_for(pair), tree=(2, 2, 2)), max_new_tokens=3
    )
    assert len(trace.tokens) == 3
    assert [len(round.nodes) for round in trace.rounds][1] in (2, 0)


@pytest.mark.parametrize(
    ("tree", "says"),
    [
        ((), "an empty one proposes nothing"),
        ([], "an empty one proposes nothing"),
        ((2, 0), "at least one child per level"),
        ([(0,), (2,)], r"not the sibling before it, \(1,\)"),
        ([(0, 0)], r"not its parent \(0,\)"),
        ([(-1,)], "ranks must be whole numbers >= 0"),
        ("dynamic", "children per level"),
        (7, "children per level"),
        ((10, 10, 10, 10), "at most 1,024"),
    ],
)
def test_a_bad_tree_is_refused_at_once(tree: Any, says: str) -> None:
    with pytest.raises((TypeError, ValueError), match=says):
        Medusa(tree=tree)


def test_what_does_not_fit_is_refused_before_any_model_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pair = tiny_pair()
    heads = medusa_for(pair)
    narrow = medusa_for(pair, hidden_size=16, fingerprint=())
    few = medusa_for(pair, vocab_size=50)
    other = medusa_for(pair, fingerprint=tuple([1.5] * 64), target="another")
    short = sv.Pair(target=replace(pair.target, context_length=20))
    monkeypatch.setattr(HFTarget, "verify", lambda *_: pytest.fail("a model ran"))
    for own, drafter, says in [
        (pair, Medusa(heads, tree=(1,) * 5), "5 levels deep, but there are 4"),
        (pair, Medusa(narrow), "hidden size 16, not 32"),
        (pair, Medusa(few), "vocabulary 50, not 96"),
        (pair, Medusa(other), "trained for 'another' and do not fit 'target'"),
        (short, Medusa(heads, tree=(5, 4)), "tree has 25 nodes .* context holds 20"),
        (pair, Medusa("no/such/folder"), "no config.json"),
        (TabularPair(TabularModel([0.5, 0.5])), Medusa(heads), "hidden states"),
    ]:
        with pytest.raises(HeadsError if own is not short else ValueError, match=says):
            sv.generate(own, [1], drafter=drafter, max_new_tokens=5)


def test_a_topology_keeps_levels_and_ranks_in_order() -> None:
    tree = checked_topology([(1,), (0, 1), (0,), (0, 0)])
    assert tree.paths == ((0,), (1,), (0, 0), (0, 1))
    assert tree.parent == (-1, -1, 0, 0)
    assert tree.cut(1).paths == ((0,), (1,))
    assert checked_topology((2, 3)).depth == 2 and len(checked_topology((2, 3))) == 8
