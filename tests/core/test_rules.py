"""Rules, exactly: every way their draws can fall, against values computed by hand and by others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pytest

from specviz.core import rules
from specviz.core.contract import Draft, FloatArray
from specviz.core.draws import Purpose
from specviz.core.rules import RULES
from tests.core.branching import Ways, distribution_of, token_distribution, total_variation, ways
from tests.core.golden import GOLDEN, distribution, number
from tests.core.one_position import (
    ONE,
    P,
    Q,
    V,
    one_sample,
    rows,
    top_two,
    with_replacement,
    without_replacement,
)

rejection_module = import_module("specviz.core.rules.rejection")  # its name is also the rule


def verdict_of(drafter: Callable[[Ways], Draft], rule: str) -> Callable[[Ways], tuple[int, bool]]:
    """The program of one round: → (first token of the text, whether a proposal was accepted)."""

    def program(draws: Ways) -> tuple[int, bool]:
        draft = drafter(draws)
        verdict = RULES[rule].verify(draft, rows(len(draft)), draws, 0)
        first = int(draft.tokens[verdict.path[0]]) if verdict.path else verdict.token
        return first, bool(verdict.path)

    return program


def acceptance(program: Callable[[Ways], tuple[int, bool]]) -> float:
    return sum(weight for (_, accepted), weight in distribution_of(program).items() if accepted)


def first_token_distribution(program: Callable[[Ways], tuple[int, bool]]) -> FloatArray:
    return token_distribution(lambda draws: program(draws)[0], V)


# -- exact values ---------------------------------------------------------------------------------

ACCEPTANCE = [
    (one_sample, "rejection", ONE["alpha"]),
    (one_sample, "rejection", GOLDEN["chain_with_match_rule"]["rejection"]),
    (one_sample, "match", GOLDEN["chain_with_match_rule"]["match"]),
    (without_replacement, "rejection", ONE["two_siblings_without_replacement_acceptance"]),
    (with_replacement, "rejection", ONE["two_siblings_with_replacement_acceptance"]),
    (top_two, "rejection", ONE["top_2_of_q_as_one_hot_siblings_acceptance"]),
]


@pytest.mark.parametrize(("drafter", "rule", "expected"), ACCEPTANCE)
def test_acceptance_at_one_position(drafter: Any, rule: str, expected: str) -> None:
    assert acceptance(verdict_of(drafter, rule)) == pytest.approx(number(expected), abs=1e-12)


DRAFTERS = [one_sample, with_replacement, without_replacement, top_two]
FITTING = [
    (name, drafter)
    for name, rule in RULES.items()
    for drafter in DRAFTERS
    if rule.trees or drafter is one_sample
]
LOSSLESS = [(name, d) for name, d in FITTING if RULES[name].lossless and name != "greedy"]
LOSSY = [name for name, rule in RULES.items() if not rule.lossless]


@pytest.mark.parametrize(("rule", "drafter"), LOSSLESS)
def test_lossless_rules_leave_the_targets_distribution(rule: str, drafter: Any) -> None:
    distribution = first_token_distribution(verdict_of(drafter, rule))
    assert total_variation(distribution, P) == pytest.approx(
        ONE["all_of_these_total_variation"], abs=1e-12
    )


@pytest.mark.parametrize("rule", LOSSY)
def test_lossy_rules_do_not(rule: str) -> None:
    assert total_variation(first_token_distribution(verdict_of(one_sample, rule)), P) > 0.02


def test_alpha_is_the_overlap() -> None:
    assert np.minimum(P, Q).sum() == pytest.approx(number(ONE["alpha"]))


def test_two_siblings_stay_below_the_optimal_transport_bound() -> None:
    bound = number(ONE["optimal_transport_bound_two_iid_drafts"])
    assert acceptance(verdict_of(with_replacement, "rejection")) < bound


@pytest.mark.parametrize(("rule", "drafter"), FITTING)
def test_recorded_acceptance_is_how_often_a_proposal_is_kept(rule: str, drafter: Any) -> None:
    def program(draws: Ways) -> tuple[Draft, list[int]]:
        draft = drafter(draws)
        return draft, RULES[rule].verify(draft, rows(len(draft)), draws, 0).path

    drafts: dict[tuple[int, ...], Draft] = {}
    weights: Counter[tuple[Any, ...]] = Counter()  # (tokens, first node of the path) → probability
    for weight, (draft, path) in ways(program):
        tokens = tuple(draft.tokens.tolist())
        drafts[tokens] = draft
        weights[tokens] += weight
        weights[tokens, path[0] if path else None] += weight
    for tokens, draft in drafts.items():
        chance = RULES[rule].acceptance(draft, rows(len(draft)))
        first, second = (weights[tokens, node] / weights[tokens] for node in (0, 1))
        assert first == pytest.approx(chance[0], abs=1e-12)
        if len(draft) == 2 and rule in ("rejection", "lenience"):
            assert second == pytest.approx((1 - chance[0]) * chance[1], abs=1e-12)


# -- planted faults: the same rules, a promise broken ---------------------------------------------


def test_an_argmax_draft_that_reports_its_soft_distribution_is_biased() -> None:
    def argmax_with_soft_q(draws: Ways) -> Draft:
        return Draft.chain([int(Q.argmax())], Q[None], V)

    distribution = first_token_distribution(verdict_of(argmax_with_soft_q, "rejection"))
    wrong = [number(x) for x in ONE["wrong_argmax_draft_with_soft_q_distribution"]]
    assert distribution == pytest.approx(wrong, abs=1e-12)
    right = first_token_distribution(
        verdict_of(lambda _: Draft.chain([int(Q.argmax())], None, V), "rejection")
    )
    assert right == pytest.approx(P, abs=1e-12)


def test_resampling_from_p_is_biased(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rejection_module, "residual", WRONG["resample_from_p"])
    distribution = first_token_distribution(verdict_of(one_sample, "rejection"))
    assert distribution == pytest.approx(
        [number(x) for x in ONE["wrong_resample_from_p_distribution"]], abs=1e-12
    )


def test_siblings_without_replacement_need_a_renormalised_q() -> None:
    def unrenormalised(draws: Ways) -> Draft:
        return without_replacement(draws, renormalise=False)

    # the rule refuses nothing here: it cannot know, so the distribution shows it
    distribution = first_token_distribution(verdict_of(unrenormalised, "rejection"))
    wrong = ONE["wrong_without_replacement_with_unrenormalised_q_total_variation"]
    assert total_variation(distribution, P) == pytest.approx(wrong, abs=1e-9)


def test_dropping_a_proposal_for_its_own_confidence_is_biased() -> None:
    case = GOLDEN["stopping_and_pruning"]
    p, q = distribution(case["p"]), distribution(case["q"])

    def first_token(draws: Ways, *, drop: bool) -> int:
        x = draws.categorical(q, 0, 0, Purpose.DRAFT)
        dropped = drop and q[x] < number(case["drop_if_q_below"])
        draft = Draft.empty(2) if dropped else Draft.chain([x], q[None], 2)
        verdict = rules.rejection(draft, np.stack([p, p])[: len(draft) + 1], draws, 0)
        return x if verdict.path else verdict.token

    biased = token_distribution(lambda draws: first_token(draws, drop=True), 2)
    assert biased == pytest.approx(distribution(case["distribution"]), abs=1e-12)
    assert total_variation(biased, p) == pytest.approx(number(case["total_variation"]))
    assert token_distribution(lambda draws: first_token(draws, drop=False), 2) == pytest.approx(p)


WRONG: dict[str, Callable[..., Any]] = {
    "resample_from_p": lambda p, q: p,
    "residual_absolute_difference": lambda p, q: np.abs(p - q) / np.abs(p - q).sum(),
}


def round_distribution(
    rule: str, p: FloatArray, q: FloatArray, gamma: int
) -> dict[tuple[int, ...], float]:
    """Distribution of what one round emits; p and q are the same in every context."""

    def program(draws: Ways) -> tuple[int, ...]:
        x = [draws.categorical(q, i, i, Purpose.DRAFT) for i in range(gamma)]
        draft = Draft.chain(x, np.stack([q] * gamma), len(p))
        verdict = RULES[rule].verify(draft, np.stack([p] * (gamma + 1)), draws, 0)
        return (*(x[i] for i in verdict.path), verdict.token)

    return distribution_of(program)


def text_distribution(one_round: dict[tuple[int, ...], float], length: int) -> FloatArray:
    """Distribution ``(V,) * length`` of the first tokens of a text made of such rounds."""
    distribution = np.zeros((V,) * length)
    open_texts = {(): 1.0}
    while open_texts:
        text, weight = open_texts.popitem()
        for more, chance in one_round.items():
            longer = (*text, *more)[:length]
            if len(longer) == length:
                distribution[longer] += weight * chance
            else:
                open_texts[longer] = open_texts.get(longer, 0.0) + weight * chance
    return distribution


@pytest.mark.parametrize("fault", [None, *WRONG])
def test_three_tokens_over_several_rounds(
    fault: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = GOLDEN["wrong_samplers_total_variation_of_the_first_three_tokens"]
    expected = number(known["faulty_sampler_throughout"][fault]) if fault else 0.0
    if fault:
        monkeypatch.setattr(rejection_module, "residual", WRONG[fault])
    found = text_distribution(round_distribution("rejection", P, Q, gamma=2), length=3)
    plain = np.einsum("a,b,c->abc", P, P, P)
    assert total_variation(found, plain) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("gamma", [1, 2, 3])
def test_block_leaves_the_targets_distribution_also_past_the_block(gamma: int) -> None:
    found = text_distribution(round_distribution("block", P, Q, gamma), length=4)
    plain = np.einsum("a,b,c,d->abcd", P, P, P, P)
    assert total_variation(found, plain) == pytest.approx(0, abs=1e-12)


BLOCK = GOLDEN["block_verification"]


@pytest.mark.parametrize("gamma", [1, 2, 3, 4])
@pytest.mark.parametrize(("rule", "table"), [("rejection", "token_rule"), ("block", "block_rule")])
def test_accepted_tokens_per_round(rule: str, table: str, gamma: int) -> None:
    one_round = round_distribution(rule, distribution(BLOCK["p"]), distribution(BLOCK["q"]), gamma)
    accepted = sum((len(text) - 1) * weight for text, weight in one_round.items())
    assert accepted == pytest.approx(number(BLOCK[table][str(gamma)]), abs=1e-12)


# -- the worked example of the lesson -------------------------------------------------------------


class Fixed(Ways):
    """Draws whose accept numbers are given; closing tokens take the likeliest."""

    def __init__(self, numbers: list[float]) -> None:
        super().__init__([])
        self.numbers = numbers

    def accept(self, probability: float, position: int, node: int) -> bool:
        return self.numbers[node] < probability

    def choose(self, distribution: Any) -> int:
        return int(np.argmax(distribution))


@pytest.mark.parametrize("any_number", [0.0, 0.5, 1 - 1e-12])
def test_the_worked_example_emits_two_tokens(any_number: float) -> None:
    case = GOLDEN["worked_example"]
    words = [*case["proposals"], "brown", "fox"]
    q = np.array([[0.3, 0.2, 0.1, 0.4], [0.1, 0.2, 0.3, 0.4]])
    p = np.array([[0.4, 0.2, 0.2, 0.2], [0.1, 0.1, 0.7, 0.1], [0.25] * 4])
    assert [q[i, i] for i in range(2)] == case["q"]
    assert [p[i, i] for i in range(2)] == case["p"]

    verdict = rules.rejection(
        Draft.chain([0, 1], q, 4), p, Fixed([any_number, case["draws"][1]]), 0
    )
    verdicts = ["accepted" if i in verdict.path else "rejected" for i in range(2)]
    assert verdicts == case["verdicts"]
    assert words[verdict.token] == "brown"
    assert verdict.distribution[1] == 0
    assert len([*verdict.path, verdict.token]) == case["tokens_emitted_in_this_pass"]
