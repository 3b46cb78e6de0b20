"""Rules at their edges: empty residuals, broken promises, one-hot distributions, torch tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from specviz.core import rules
from specviz.core.contract import Draft, DraftContractError, FloatArray
from specviz.core.draws import Purpose, Sampler
from specviz.core.rules import RULES, Decision, get_rule, residual
from specviz.core.rules.block import block_acceptance
from specviz.core.rules.rejection import rejection_acceptance
from tests.core.branching import Ways, distribution_of, token_distribution, total_variation, ways
from tests.core.one_position import AFTER, P, Q, V, rows

# -- the residual at its edges --------------------------------------------------------------------


def test_residual_of_equal_distributions_is_still_a_distribution() -> None:
    for p in (P, np.array([1.0, 0.0]), np.full(7, 1 / 7)):
        left = residual(p, p.copy())
        assert left.sum() == pytest.approx(1)
        assert np.all(left >= 0) and np.all(left[p == 0] == 0)


def test_residual_of_almost_equal_distributions_goes_where_the_target_has_more() -> None:
    p = np.array([0.25 + 1e-12, 0.25 - 1e-12, 0.5])
    q = np.array([0.25, 0.25, 0.5])
    assert np.minimum(p, q).sum() == pytest.approx(1 - 1e-12, abs=1e-16)
    assert residual(p, q).tolist() == [1.0, 0.0, 0.0]


def test_residual_of_one_token() -> None:
    p, q = np.array([0.0, 1.0, 0.0]), np.array([1.0, 0.0, 0.0])
    assert residual(p, q).tolist() == [0, 1, 0]
    assert residual(p, np.array([0.5, 0.5, 0.0])).tolist() == [0, 1, 0]
    assert residual(p, p).tolist() == [0, 1, 0]


def simplex(draw: Any) -> FloatArray:
    weights = np.array(draw(st.lists(st.sampled_from(WEIGHTS), min_size=5, max_size=5)))
    weights[draw(st.integers(0, 4))] += 1.0
    return weights / weights.sum()


WEIGHTS = [0.0, 1e-300, 1e-17, 1e-12, 1e-3, 0.1, 1 / 3, 1.0]


@given(data=st.data())
def test_a_rejected_token_is_never_emitted(data: st.DataObject) -> None:
    p, q = simplex(data.draw), simplex(data.draw)
    x = data.draw(st.sampled_from(np.flatnonzero(q > 0).tolist()))
    draft = Draft.chain([x], q[None], 5)
    for _, verdict in ways(lambda d: rules.rejection(draft, np.stack([p, p]), d, 0)):
        assert verdict.path or verdict.token != x
        assert np.isfinite(verdict.distribution).all()
        assert verdict.distribution.sum() == pytest.approx(1)
        assert np.all(verdict.distribution >= 0) and not np.any(np.signbit(verdict.distribution))


@given(data=st.data())
def test_any_two_distributions_leave_the_targets(data: st.DataObject) -> None:
    p, q = simplex(data.draw), simplex(data.draw)

    def first(draws: Ways) -> int:
        x = draws.categorical(q, 0, 0, Purpose.DRAFT)
        verdict = rules.rejection(Draft.chain([x], q[None], 5), np.stack([p, p]), draws, 0)
        return x if verdict.path else verdict.token

    assert total_variation(token_distribution(first, 5), p) < 1e-12


# -- contracts ------------------------------------------------------------------------------------


def test_a_proposal_its_own_distribution_excludes_is_refused() -> None:
    q = np.array([[0.0, 0.5, 0.5, 0.0]])
    with pytest.raises(DraftContractError, match="token 3, to which the q it reports gives"):
        rules.rejection(Draft.chain([3], q, V), rows(1), Ways([]), 0)
    for acceptance_of in (rejection_acceptance, block_acceptance):
        with pytest.raises(DraftContractError, match="token 0"):
            acceptance_of(Draft.chain([0], q, V), rows(1))


def test_a_one_hot_choice_is_kept_with_probability_p() -> None:
    draft = Draft.chain([1, 2], None, V)
    assert rejection_acceptance(draft, rows(2)).tolist() == [P[1], AFTER[2]]
    program = distribution_of(lambda draws: rules.rejection(draft, rows(2), draws, 0).path == [])
    assert program[True] == pytest.approx(1 - P[1])


def test_an_empty_draft_is_a_plain_target_step() -> None:
    for name, rule in RULES.items():
        found = token_distribution(
            lambda d, r=rule: r.verify(Draft.empty(V), P[None], d, 0).token, V
        )
        assert found == pytest.approx(np.eye(V)[P.argmax()] if name == "greedy" else P)
        assert len(rule.acceptance(Draft.empty(V), P[None])) == 0


def test_equal_distributions_accept_everything() -> None:
    tokens, p = [0, 3, 1], np.stack([P, Q, P, AFTER])
    draft = Draft.chain(tokens, p[:3], V)
    assert rejection_acceptance(draft, p).tolist() == [1, 1, 1]
    for seed in range(50):
        assert rules.rejection(draft, p, Sampler(seed), 0).path == [0, 1, 2]


def test_a_rule_that_does_not_exist_names_those_that_do() -> None:
    with pytest.raises(ValueError, match=r"'rejection', 'greedy', 'match', 'coupled'.*got 'nope'"):
        get_rule("nope")
    assert get_rule("match") is get_rule(RULES["match"]) is RULES["match"]


# -- numpy arrays and torch tensors ---------------------------------------------------------------


def random_tree(seed: int) -> tuple[Draft, FloatArray]:
    """Two to seven nodes with random parents and distributions, some of them one-hot."""
    rng = np.random.default_rng(seed)
    n, v = int(rng.integers(2, 8)), 6
    parent = np.array([int(rng.integers(-1, i)) for i in range(n)])
    q = rng.dirichlet(np.ones(v), size=n)
    one_hot = rng.random(n) < 0.3
    tokens = np.array([int(rng.choice(v, p=distribution)) for distribution in q])
    q_row = np.where(one_hot, -1, np.arange(n))
    return Draft(tokens, parent, q, q_row), rng.dirichlet(np.ones(v), size=n + 1)


def random_chain(seed: int) -> tuple[Draft, FloatArray]:
    tree, p = random_tree(seed)
    return Draft(tree.tokens, np.arange(len(tree)) - 1, tree.q, tree.q_row), p


@pytest.mark.parametrize("name", sorted(RULES))
def test_torch_tensors_give_the_same_verdicts(name: str) -> None:
    rule, kept = RULES[name], 0
    for seed in range(120):
        draft, p = (random_tree if rule.trees else random_chain)(seed)
        tensors = Draft(draft.tokens, draft.parent, torch.from_numpy(draft.q), draft.q_row)  # type: ignore[arg-type]
        ours: Decision = rule.verify(draft, p, Sampler(seed), 10)
        theirs: Decision = rule.verify(tensors, torch.from_numpy(p), Sampler(seed), 10)
        assert (ours.path, ours.token) == (theirs.path, theirs.token)
        assert torch.is_tensor(theirs.distribution)
        assert ours.distribution == pytest.approx(np.asarray(theirs.distribution), abs=1e-12)
        expected = rule.acceptance(draft, p)
        assert expected == pytest.approx(rule.acceptance(tensors, torch.from_numpy(p)), abs=1e-12)
        kept += len(ours.path)
    assert kept > 10  # the trees were not all rejected at once
