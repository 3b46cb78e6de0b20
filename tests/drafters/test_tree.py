"""Token trees: exact for every way of choosing siblings, and each broken promise is seen."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specviz.core.contract import ROOT, Context, Draft, Sampling
from specviz.core.draws import Sampler
from specviz.core.rules import RULES
from specviz.core.tabular import TabularModel, TabularPair
from specviz.drafters.tree import KINDS, Tree
from tests.core.golden import GOLDEN, number
from tests.drafters import crooked_trees as crooked
from tests.lossless.enumeration import EXACT, distance, one_round, pair_of, random_pair

ONE = GOLDEN["one_position"]
P = [Fraction(x) for x in ONE["p"]]
Q = [Fraction(x) for x in ONE["q"]]
DRAWN = ("without_replacement", "with_replacement")

every_kind = pytest.mark.parametrize("kind", KINDS)


def one_position() -> TabularPair:
    return pair_of([float(x) for x in P], [float(x) for x in Q])


def first_token(pair: TabularPair, drafter: Tree) -> np.ndarray:
    distribution = np.zeros(pair.vocab_size)
    for text, mass in one_round(pair, drafter, RULES["rejection"], [0]).items():
        distribution[text[0]] += mass
    return distribution


def off(pair: TabularPair, drafter: Tree) -> float:
    return 0.5 * float(np.abs(first_token(pair, drafter) - pair.target.distribution([0])).sum())


# The distribution, exactly
# -------------------------------------------------------------------------------


@every_kind
@pytest.mark.parametrize("rule", ["rejection", "match", "greedy"])
@pytest.mark.parametrize("widths", [(2,), (3,), (2, 1), (1, 2)], ids=str)
def test_the_distribution_is_the_targets(rule: str, kind: str, widths: tuple[int, ...]) -> None:
    pair = random_pair(3, order=2, seed=60 + len(widths), sparse=widths == (1, 2))
    sampling = Sampling(temperature=0) if rule == "greedy" else None
    length = 3 if rule == "greedy" else 2
    drafter = Tree(widths, kind=kind)
    assert distance(pair, drafter, rule, length=length, sampling=sampling) <= EXACT


@every_kind
def test_two_levels_of_two(kind: str) -> None:
    pair = random_pair(2, order=2, seed=7)
    assert distance(pair, Tree((2, 2), kind=kind), length=3) <= EXACT


@pytest.mark.parametrize("sampling", [Sampling(0.6, top_k=2), Sampling(repetition_penalty=1.5)])
@every_kind
def test_sampling_settings(kind: str, sampling: Sampling) -> None:
    pair = random_pair(3, order=1, seed=65)
    assert distance(pair, Tree((2, 1), kind=kind), length=2, sampling=sampling) <= EXACT


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("without_replacement", ONE["two_siblings_without_replacement_acceptance"]),
        ("with_replacement", ONE["two_siblings_with_replacement_acceptance"]),
        ("top_k", ONE["top_2_of_q_as_one_hot_siblings_acceptance"]),
    ],
)
def test_known_acceptance_of_two_siblings(kind: str, expected: str) -> None:
    pair, drafter = one_position(), Tree((2,), kind=kind)
    distribution = one_round(pair, drafter, RULES["rejection"], [0])
    accepted = sum(mass for text, mass in distribution.items() if len(text) == 2)
    assert accepted == pytest.approx(number(expected), abs=EXACT)
    assert off(pair, drafter) == pytest.approx(ONE["all_of_these_total_variation"], abs=EXACT)


@st.composite
def distributions(draw: st.DrawFn, size: int) -> list[float]:
    """Distributions with zeros and ties."""
    weights = draw(st.lists(st.integers(0, 3), min_size=size, max_size=size).filter(any))
    return (np.array(weights) / sum(weights)).tolist()


@st.composite
def tables(draw: st.DrawFn, size: int) -> TabularModel:
    return TabularModel([draw(distributions(size)) for _ in range(size)])


@settings(max_examples=30)
@given(
    p=tables(3),
    q=tables(3),
    kind=st.sampled_from(KINDS),
    widths=st.sampled_from([(1,), (2,), (3,), (2, 1), (1, 2)]),
    rule=st.sampled_from(["rejection", "match"]),
)
def test_any_distributions_any_tree(
    p: TabularModel, q: TabularModel, kind: str, widths: tuple[int, ...], rule: str
) -> None:
    pair = TabularPair(p, q)
    assert distance(pair, Tree(widths, kind=kind), rule, length=2) <= EXACT


# Broken promises: what the enumerator finds is what fractions give --------------------------------


def fractions_of(name: str) -> list[Fraction]:
    """The distribution of the first token of each crooked tree, computed apart from the package."""
    pairs = crooked.two_siblings(Q, replacement=name == "deduplicated")
    cases = []
    for mass, nodes in pairs:
        if name == "deduplicated" and nodes[0][0] == nodes[1][0]:
            nodes = nodes[:1]
        if name == "sorted":
            nodes = sorted(nodes, key=lambda node: -Q[node[0]])
        if name == "pruned":
            nodes = [node for node in nodes if Q[node[0]] >= Fraction(1, 4)]
        if name == "unrenormalised":
            gone = nodes[0][0]
            left = [Fraction(0) if x == gone else w for x, w in enumerate(Q)]
            nodes = [nodes[0], (nodes[1][0], left)]
        cases.append((mass, crooked.distribution_after(P, nodes)))
    return crooked.mixed(iter(cases))


CROOKED = {
    "deduplicated": crooked.Deduplicated((2,), kind="with_replacement"),
    "sorted": crooked.Sorted((2,), kind="without_replacement"),
    "unrenormalised": crooked.Unrenormalised((2,), kind="without_replacement"),
    "pruned": crooked.Pruned((2,), floor=0.25, kind="without_replacement"),
}


@pytest.mark.parametrize("name", CROOKED)
def test_twin_breaks_the_promise_by_as_much_as_computed(name: str) -> None:
    expected = fractions_of(name)
    np.testing.assert_allclose(
        first_token(one_position(), CROOKED[name]), [float(x) for x in expected], atol=EXACT
    )
    assert crooked.distance(expected, P) > Fraction(1, 50)
    honest = crooked.mixed(
        (mass, crooked.distribution_after(P, nodes))
        for mass, nodes in crooked.two_siblings(Q, replacement=name == "deduplicated")
    )
    assert honest == P, "with the promise kept, the same fractions give p exactly"


def test_twin_unrenormalised_as_in_golden() -> None:
    known = ONE["wrong_without_replacement_with_unrenormalised_q_total_variation"]
    assert off(one_position(), CROOKED["unrenormalised"]) == pytest.approx(known, abs=1e-9)


def test_twin_a_sampled_node_is_dropped_for_its_low_confidence_as_in_golden() -> None:
    known = GOLDEN["stopping_and_pruning"]
    pair = pair_of([0.5, 0.5], [0.6, 0.4])
    drafter = crooked.Pruned((1,), floor=number(known["drop_if_q_below"]))
    np.testing.assert_allclose(
        first_token(pair, drafter), [number(x) for x in known["distribution"]], atol=EXACT
    )
    assert off(pair, drafter) == pytest.approx(number(known["total_variation"]), abs=EXACT)


def test_twin_chosen_nodes_that_report_a_soft_distribution() -> None:
    pair = random_pair(3, order=2, seed=61)
    assert distance(pair, crooked.SoftTopK((2,), kind="top_k"), length=2) > 0.01


@pytest.mark.parametrize(
    "drafter",
    [
        crooked.Deduplicated((2, 1), kind="with_replacement"),
        crooked.Sorted((2, 1), kind="without_replacement"),
        crooked.Unrenormalised((2, 1), kind="without_replacement"),
        crooked.Pruned((2, 1), floor=0.3, kind="without_replacement"),
        crooked.Pruned((2, 1), floor=0.3, kind="with_replacement"),
    ],
    ids=lambda drafter: f"{type(drafter).__name__} {drafter.kind}",
)
def test_twins_are_seen_in_deeper_trees_too(drafter: Tree) -> None:
    """Four tokens, and unlike distributions,
    what two rejections leave must have more than one of them.
    """
    pair = TabularPair(TabularModel.random(4, seed=3), TabularModel.random(4, seed=53))
    assert distance(pair, drafter, length=2) > 0.05
    assert distance(pair, Tree((2, 1), kind=drafter.kind), length=2) <= EXACT


@pytest.mark.parametrize(
    "drafter",
    [crooked.Pruned((2, 1), floor=0.3, kind="top_k"), crooked.Sorted((3, 1), kind="top_k")],
    ids=["pruned", "re-ranked"],
)
def test_chosen_nodes_may_be_pruned_and_re_ranked(drafter: Tree) -> None:
    pair = random_pair(3, order=2, seed=66)
    assert distance(pair, drafter, length=2) <= EXACT
    assert distance(pair, drafter, "match", length=2) <= EXACT


# The tree itself --------------------------------------------------------------------------------


def propose(
    drafter: Tree, pair: Any, text: list[int], room: int = 9, stop: tuple[int, ...] = (),
    seed: int = 0, sampling: Sampling | None = None,
) -> Draft:  # fmt: skip
    session = drafter.start(pair, pair.target.session(), np.array(text))
    context = Context(np.array(text), room, sampling or Sampling(), frozenset(stop))
    return session.propose(context, Sampler(seed))


@every_kind
def test_shape_and_order(kind: str) -> None:
    pair = random_pair(6, order=1, seed=70)
    draft = propose(Tree((3, 2, 1), kind=kind), pair, [0, 1])
    assert len(draft) == 3 + 6 + 6
    assert draft.depths().tolist() == [0] * 3 + [1] * 6 + [2] * 6
    assert [len(draft.children(node)) for node in range(ROOT, 9)] == [3] + [2] * 3 + [1] * 6
    assert (draft.q_row == -1).all() == (kind == "top_k")


def test_each_distribution_is_the_one_used_given_the_earlier_siblings() -> None:
    pair = random_pair(6, order=1, seed=70)
    for kind in DRAWN:
        draft = propose(Tree((3, 2), kind=kind), pair, [0, 1], seed=3)
        for parent in range(ROOT, 3):
            text = [0, 1, *draft.tokens[draft.path(parent)].tolist()]
            distribution = pair.draft.distribution(text).copy()
            for node in draft.children(parent):
                np.testing.assert_allclose(draft.distribution(node, 6), distribution, atol=EXACT)
                if kind == "without_replacement":
                    distribution[draft.tokens[node]] = 0
                    distribution /= distribution.sum()
    chosen = propose(Tree((3,), kind="top_k"), pair, [0, 1])
    best = np.argsort(-pair.draft.distribution([0, 1]), kind="stable")[:3]
    assert chosen.tokens.tolist() == best.tolist()


def test_fewer_candidates_than_asked_for() -> None:
    pair = pair_of([0.2, 0.3, 0.5], [0.0, 0.4, 0.6])
    for kind in ("without_replacement", "top_k"):
        draft = propose(Tree((3,), kind=kind), pair, [0])
        assert sorted(draft.tokens.tolist()) == [1, 2]
    assert len(propose(Tree((3,), kind="with_replacement"), pair, [0])) == 3
    greedy = propose(Tree((3, 1)), pair, [0], sampling=Sampling(temperature=0))
    assert greedy.tokens.tolist() == [2, 2], "a one-hot distribution has one token with mass"


@every_kind
def test_room_and_ends(kind: str) -> None:
    pair = random_pair(6, order=1, seed=70)
    tree = Tree((2, 2, 1), kind=kind)
    assert propose(tree, pair, [0], room=2).depths().max() == 1
    assert len(propose(tree, pair, [0], room=0)) == 0
    whole = propose(tree, pair, [0])
    end = int(whole.tokens[0])
    draft = propose(tree, pair, [0], stop=(end,))
    ended = [node for node in range(len(draft)) if draft.tokens[node] == end]
    assert ended and not any(draft.children(node) for node in ended)
    assert len(draft) < len(whole)
