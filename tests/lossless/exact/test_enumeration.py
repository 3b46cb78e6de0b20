"""The induced distribution is the target's, to rounding, and every planted fault is seen.

All of it runs through the shipped loop, drafter and rules; only the planted twins are not shipped.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from specviz.core.contract import Sampling
from specviz.core.rules import RULES
from specviz.core.tabular import TabularPair, TabularSession
from specviz.drafters.draft_model import AdaptiveGamma, DraftModel
from specviz.lossless import target_distribution, total_variation
from tests.core.golden import GOLDEN, number
from tests.core.golden import distribution as distribution_of
from tests.lossless import planted as wrong
from tests.lossless.enumeration import (
    EXACT,
    FULL_KEY,
    distance,
    keyed_distribution,
    one_round,
    pair_of,
    random_pair,
    round_by_round,
)

VISIBLE = 1e-3
"""A planted fault must be at least this far off (EXACT is a billionth of it)."""

P, Q = [1 / 2, 3 / 10, 1 / 10, 1 / 10], [1 / 10, 1 / 5, 3 / 10, 2 / 5]
GREEDY = Sampling(temperature=0)
ADAPTIVE = AdaptiveGamma(start=1, low=1, high=3, up=1, down=1)


def drafter_for(rule: str, gamma: Any) -> DraftModel:
    return DraftModel(gamma, noise="target" if rule == "coupled" else "draft")


# -- right ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("gamma", [1, 2, 3])
@pytest.mark.parametrize("rule", ["rejection", "match", "coupled", "greedy"])
def test_the_distribution_is_the_targets_on_distributions_that_depend_on_two_tokens(
    rule: str, gamma: int
) -> None:
    pair = random_pair(3, order=2, seed=10 + gamma, sparse=gamma == 3)
    sampling = GREEDY if rule == "greedy" else None
    length = gamma + 1 if gamma > 1 else 3
    drafter = drafter_for(rule, gamma)
    assert distance(pair, drafter, rule, length=length, sampling=sampling) <= EXACT


@pytest.mark.parametrize("rule", ["rejection", "match", "coupled"])
def test_four_tokens(rule: str) -> None:
    pair = random_pair(4, order=2, seed=3)
    assert distance(pair, drafter_for(rule, 1), rule, length=2) <= EXACT


def test_four_tokens_past_gamma() -> None:
    pair = random_pair(4, order=2, seed=3)
    assert distance(pair, DraftModel(2), length=3) <= EXACT


@pytest.mark.parametrize("rule", ["rejection", "match", "coupled"])
def test_a_gamma_that_follows_the_accept_counts(rule: str) -> None:
    pair = random_pair(3, order=1, seed=5)
    assert distance(pair, drafter_for(rule, ADAPTIVE), rule, length=4) <= EXACT


@pytest.mark.parametrize("rule", ["rejection", "match", "coupled"])
def test_a_text_that_ends_by_itself(rule: str) -> None:
    pair = random_pair(3, order=2, seed=7, eos_ids=[2])
    assert distance(pair, drafter_for(rule, 2), rule, prompt=[2, 0], length=3) <= EXACT


@pytest.mark.parametrize(
    "sampling",
    [
        Sampling(temperature=0.6),
        Sampling(temperature=1.7, top_k=2),
        Sampling(top_p=0.7),
        Sampling(temperature=0.8, top_k=2, top_p=0.9, min_p=0.05),
        Sampling(repetition_penalty=1.5),
        Sampling(temperature=0.7, top_p=0.8, repetition_penalty=1.3),
        Sampling(temperature=1e-6),
        Sampling(temperature=100),
    ],
    ids=str,
)
@pytest.mark.parametrize("rule", ["rejection", "match"])
def test_sampling_settings_shape_both_distributions(rule: str, sampling: Sampling) -> None:
    pair = random_pair(3, order=2, seed=21)
    assert distance(pair, DraftModel(2), rule, length=3, sampling=sampling) <= EXACT


def test_draft_and_target_of_disjoint_and_of_equal_distributions() -> None:
    apart = pair_of([0.5, 0.5, 0, 0], [0, 0, 0.25, 0.75])
    assert distance(apart, DraftModel(2), length=3) <= EXACT
    one = pair_of([0, 1, 0], [0.2, 0.3, 0.5])
    assert distance(one, DraftModel(2), length=3) <= EXACT
    same = pair_of([0.2, 0.3, 0.5], [0.2, 0.3, 0.5])
    assert distance(same, DraftModel(2), length=3) <= EXACT
    assert all(len(text) == 3 for text in one_round(same, DraftModel(2), RULES["rejection"], [0]))
    nearly = pair_of([0.2, 0.3, 0.5], [0.2 + 1e-13, 0.3 - 1e-13, 0.5])
    assert distance(nearly, DraftModel(2), length=3) <= EXACT


@pytest.mark.parametrize("sizes", [(5, 3), (3, 5)], ids=["draft knows fewer", "draft knows more"])
@pytest.mark.parametrize("rule", ["rejection", "match", "coupled"])
def test_vocabularies_of_different_sizes(rule: str, sizes: tuple[int, int]) -> None:
    """Padded embeddings: the target still emits its tail, the draft proposes none of its own."""
    big, small = (random_pair(size, 1, seed=size).target for size in sizes)
    pair = TabularPair(big, small)
    distribution = target_distribution(pair, prompt=[0], length=3)
    assert any(max(text) >= min(sizes) for text in distribution) == (sizes[0] > sizes[1])
    assert distance(pair, drafter_for(rule, 1), rule, length=3) <= EXACT


@pytest.mark.parametrize(
    "drafter",
    [wrong.OneHotGreedyDraft(2), wrong.StopAfterLowConfidence(2, floor=0.4)],
    ids=["one-hot", "stops"],
)
def test_deterministic_choices_and_stopping_after_a_verified_token(drafter: DraftModel) -> None:
    assert distance(random_pair(3, order=2, seed=4), drafter, length=3) <= EXACT


def test_siblings_at_every_node() -> None:
    assert distance(random_pair(3, order=1, seed=8), wrong.Siblings(), length=3) <= EXACT


# -- wrong ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", wrong.WRONG_RULES)
def test_a_wrong_rule_is_seen(name: str) -> None:
    pair = random_pair(3, order=2, seed=12)
    rule = wrong.WRONG_RULES[name]
    assert distance(pair, DraftModel(2), rule=rule, length=3) > VISIBLE
    assert distance(pair, DraftModel(2), rule=wrong.chain_rule(), length=3) <= EXACT


@pytest.mark.parametrize("rule", ["match", "coupled"])
def test_a_fresh_draw_after_a_mismatch_is_seen(rule: str) -> None:
    pair = random_pair(3, order=2, seed=12)
    drafter = drafter_for(rule, 2)
    planted = replace(RULES[rule], verify=wrong.FRESH_ON_MISMATCH.verify)
    assert distance(pair, drafter, rule, rule=planted, length=3) > VISIBLE


def test_a_greedy_closing_token_from_the_wrong_row_is_seen() -> None:
    pair = random_pair(3, order=2, seed=12)
    off = wrong.GREEDY_OFF_BY_ONE
    assert distance(pair, DraftModel(2), "greedy", rule=off, length=6, sampling=GREEDY) == 1
    assert distance(pair, DraftModel(2), "greedy", length=6, sampling=GREEDY) == 0


@pytest.mark.parametrize(
    "drafter",
    [wrong.SoftGreedyDraft(2), wrong.ThresholdDraft(2, floor=0.4)],
    ids=["soft q", "dropped for its own confidence"],
)
def test_a_drafter_that_breaks_its_promise_is_seen(drafter: DraftModel) -> None:
    assert distance(random_pair(3, order=2, seed=4), drafter, length=3) > VISIBLE


def test_q_from_before_top_k_is_seen() -> None:
    pair = random_pair(3, order=2, seed=21)
    settings = Sampling(top_k=2)
    drafter = wrong.UnfilteredDraft(2)
    assert distance(pair, drafter, length=3, sampling=settings) > VISIBLE
    assert distance(pair, drafter, length=3) <= EXACT, "without top-k there is nothing to forget"


def test_settings_applied_twice_to_the_draft_are_exact_but_accept_less() -> None:
    """Draft = target must accept everything: only that shows the fault,
    for the distribution is right.
    """
    pair = random_pair(3, order=0, seed=21)
    pair.draft = pair.target
    settings = Sampling(temperature=0.5)
    accepted = {}
    for drafter in (DraftModel(1), wrong.TwiceFilteredDraft(1)):
        assert distance(pair, drafter, length=3, sampling=settings) <= EXACT
        distribution = one_round(pair, drafter, RULES["rejection"], [0], settings)
        accepted[type(drafter)] = sum(mass for text, mass in distribution.items() if len(text) == 2)
    assert accepted[DraftModel] == pytest.approx(1, abs=EXACT)
    assert accepted[wrong.TwiceFilteredDraft] < 0.95


def test_a_cache_that_keeps_rejected_proposals_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    pair = random_pair(3, order=2, seed=12)

    def keep_all(self: TabularSession, path: Any) -> None:
        self._draft = None

    monkeypatch.setattr(TabularSession, "keep", keep_all)
    assert distance(pair, DraftModel(2), length=4) > VISIBLE


# -- keys -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lacking", "drafter"),
    [
        ({"purpose"}, DraftModel(1)),
        ({"node"}, wrong.Siblings()),
        ({"round"}, wrong.ShapedByTheDiscarded()),
        ({"round", "position"}, DraftModel(1)),
        ({"node", "position"}, DraftModel(2)),
    ],
    ids=["purposes", "siblings", "rounds of any shape", "rounds of a chain", "nodes of a chain"],
)
def test_draws_that_share_a_key_are_seen(lacking: set[str], drafter: Any) -> None:
    """A number that was looked at must not be drawn again: every part of the key is needed.

    (In a plain chain either of round and position would do; in a tree it would not.)
    """
    pair = random_pair(3, order=1, seed=31, sparse=True)
    distribution = target_distribution(pair, prompt=[0], length=3)
    right = keyed_distribution(pair, drafter, FULL_KEY, length=3)
    assert total_variation(right, distribution) <= EXACT
    short = [field for field in FULL_KEY if field not in lacking]
    assert (
        total_variation(keyed_distribution(pair, drafter, short, length=3), distribution) > VISIBLE
    )


# -- known numbers --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", list(wrong.WRONG_RULES)[:4])
@pytest.mark.parametrize("scope", ["one_faulty_round_then_the_target", "faulty_sampler_throughout"])
def test_wrong_samplers_are_as_wrong_as_computed(scope: str, name: str) -> None:
    expected = GOLDEN["wrong_samplers_total_variation_of_the_first_three_tokens"][scope][name]
    pair = pair_of(P, Q)
    rules = [wrong.WRONG_RULES[name]]
    if scope.startswith("one"):
        rules.append(wrong.chain_rule())
    distribution = round_by_round(pair, DraftModel(2), rules, length=3)
    wanted = target_distribution(pair, prompt=[0], length=3)
    assert total_variation(distribution, wanted) == pytest.approx(number(expected), abs=EXACT)
    assert total_variation(_right_distribution(), wanted) <= EXACT


@cache
def _right_distribution() -> dict[tuple[int, ...], float]:
    return round_by_round(pair_of(P, Q), DraftModel(2), [RULES["rejection"]], length=3)


def first_token(distribution: Any, vocab_size: int) -> list[float]:
    masses = [0.0] * vocab_size
    for text, mass in distribution.items():
        masses[text[0]] += mass
    return masses


def test_one_position() -> None:
    known = GOLDEN["one_position"]
    pair = pair_of(distribution_of(known["p"]), distribution_of(known["q"]))
    rejection, resample = RULES["rejection"], wrong.WRONG_RULES["resample_from_p"]
    right = one_round(pair, DraftModel(1), rejection, [0])
    alpha = sum(mass for text, mass in right.items() if len(text) == 2)
    assert alpha == pytest.approx(number(known["alpha"]), abs=EXACT)
    soft = one_round(pair, wrong.SoftGreedyDraft(1), rejection, [0])
    for distribution, wanted in (
        (right, known["p"]),
        (soft, known["wrong_argmax_draft_with_soft_q_distribution"]),
        (
            one_round(pair, DraftModel(1), resample, [0]),
            known["wrong_resample_from_p_distribution"],
        ),
    ):
        np.testing.assert_allclose(
            first_token(distribution, 4), distribution_of(wanted), atol=EXACT
        )


def test_acceptance_under_match_and_rejection() -> None:
    known = GOLDEN["chain_with_match_rule"]
    pair = pair_of(distribution_of(known["p"]), distribution_of(known["q"]))
    for rule in ("match", "rejection"):
        distribution = one_round(pair, DraftModel(1), RULES[rule], [0])
        accepted = sum(mass for text, mass in distribution.items() if len(text) == 2)
        assert accepted == pytest.approx(number(known[rule]), abs=EXACT)


def test_dropping_a_proposal_for_its_low_confidence() -> None:
    known = GOLDEN["stopping_and_pruning"]
    pair = pair_of(distribution_of(known["p"]), distribution_of(known["q"]))
    floor = number(known["drop_if_q_below"])
    distribution = one_round(pair, wrong.ThresholdDraft(1, floor=floor), RULES["rejection"], [0])
    np.testing.assert_allclose(
        first_token(distribution, 2), distribution_of(known["distribution"]), atol=EXACT
    )
    kept = wrong.StopAfterLowConfidence(1, floor=floor)
    right = one_round(pair, kept, RULES["rejection"], [0])
    np.testing.assert_allclose(first_token(right, 2), distribution_of(known["p"]), atol=EXACT)
