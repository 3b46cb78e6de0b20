"""Several drafters in turn: exact, each one's cache kept in step, and who proposes is a matter of
the text only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import specviz as sv
from specviz.core.contract import Context, Draft, DrafterTraits, Sampling
from specviz.core.draws import Draws
from specviz.core.rules import RULES
from specviz.core.tabular import TabularModel, TabularPair
from specviz.decoding.replicas.engine import replicas
from specviz.drafters.combined import Combined
from specviz.drafters.draft_model import AdaptiveGamma, DraftModel
from specviz.drafters.prompt_lookup import PromptLookup
from specviz.drafters.quantized import Quantized
from specviz.drafters.target_only import TargetOnly
from specviz.drafters.tree import Tree
from specviz.lossless import enumerate_distribution, target_distribution, total_variation
from tests.core.golden import GOLDEN, number
from tests.core.golden import distribution as distribution_of
from tests.decoding import families as f
from tests.drafters.changed import Changed, ChangedSession
from tests.drafters.small import small_llama
from tests.lossless.enumeration import EXACT, distance, one_round, pair_of, random_pair
from tests.lossless.planted import ThresholdDraft

PROMPT = [0, 1, 2, 0, 1]


# The distribution, exactly
# -------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", ["rejection", "match", "block", "greedy"])
def test_the_distribution_is_the_targets(rule: str) -> None:
    pair = random_pair(3, order=2, seed=51)
    sampling = Sampling(temperature=0) if rule == "greedy" else None
    drafter = Combined(PromptLookup(2, min_ngram=2), DraftModel(2))
    assert distance(pair, drafter, rule, prompt=PROMPT, length=3, sampling=sampling) <= EXACT


def test_lookup_then_a_tree() -> None:
    pair = random_pair(3, order=1, seed=52)
    drafter = Combined(PromptLookup(1, min_ngram=2), Tree((2,)))
    assert distance(pair, drafter, prompt=[0, 1, 0, 1], length=3) <= EXACT


def test_three_of_them_and_one_inside_another() -> None:
    pair = random_pair(3, order=1, seed=53)
    inner = Combined(PromptLookup(1), TargetOnly())
    for drafter in (
        Combined(PromptLookup(2, min_ngram=3), PromptLookup(1), DraftModel(1)),
        Combined(PromptLookup(2, min_ngram=2), inner, DraftModel(1)),
    ):
        assert distance(pair, drafter, prompt=PROMPT, length=3) <= EXACT


class DoubtfulFirst(Combined):
    """Wrong: a drafter that *draws* is asked first, and is passed over for what it drew."""

    def __init__(self, floor: float) -> None:
        super().__init__(ThresholdDraft(1, floor=floor), TargetOnly())


def test_twin_who_proposes_depends_on_what_was_drawn() -> None:
    """golden.json, stopping_and_pruning: the sampled token is dropped for its low confidence."""
    known = GOLDEN["stopping_and_pruning"]
    pair = pair_of(distribution_of(known["p"]), distribution_of(known["q"]))
    floor = number(known["drop_if_q_below"])
    wrong = one_round(pair, DoubtfulFirst(floor), RULES["rejection"], [0])
    first = np.zeros(2)
    for text, mass in wrong.items():
        first[text[0]] += mass
    np.testing.assert_allclose(first, distribution_of(known["distribution"]), atol=EXACT)
    off = 0.5 * np.abs(first - distribution_of(known["p"])).sum()
    assert off == pytest.approx(number(known["total_variation"]), abs=EXACT)
    right = Combined(DraftModel(1), TargetOnly())
    assert distance(pair, right, length=2) <= EXACT


# Caches -----------------------------------------------------------------------------------------


def test_the_draft_model_misses_rounds_and_catches_up() -> None:
    """Draft = target accepts everything, however often the lookup has the round."""
    target = small_llama(12, layers=2, seed=3, spread=3.0)
    pair = sv.Pair(target, target)
    options: dict[str, Any] = {"temperature": 0, "progress": False, "max_new_tokens": 50}
    plain = sv.generate(pair, PROMPT * 2, gamma=0, **options)
    trace = sv.generate(
        pair, PROMPT * 2, drafter=Combined(PromptLookup(2, min_ngram=2), DraftModel(3)), **options
    )
    assert trace.tokens.tolist() == plain.tokens.tolist() and trace.check().ok
    by_model = [r for r in trace.rounds if r.nodes and all(n.accepted for n in r.nodes)]
    by_lookup = [r for r in trace.rounds if any(not n.accepted for n in r.nodes)]
    assert by_model and by_lookup, "both had rounds, and only the lookup was ever wrong"


def test_only_the_one_that_proposed_is_told_of_accepted_nodes() -> None:
    told: dict[str, list[list[int]]] = {"first": [], "second": []}

    class ToldSession(ChangedSession):
        def commit(self, emitted: Any, path: Any) -> None:
            told[self.recipe.label].append(list(path))  # type: ignore[attr-defined]

    class Told(Changed, PromptLookup):
        def __init__(self, label: str, **options: Any) -> None:
            super().__init__(1, **options)
            object.__setattr__(self, "label", label)

        def start(self, pair: Any, target: Any, prompt: Any) -> ToldSession:
            return ToldSession(PromptLookup.start(self, pair, target, prompt), self)

        def change(self, inner: Any, context: Context, draws: Draws) -> Draft:
            return inner.propose(context, draws)

    drafter = Combined(Told("first", max_ngram=3, min_ngram=3), Told("second"))
    certain = pair_of(np.roll(np.eye(3), 1, axis=1), np.eye(3))  # 0 → 1 → 2 → 0
    sv.generate(certain, [0, 1, 2, 0], drafter=drafter, max_new_tokens=6, progress=False)
    # [0] was seen before, but only from the next round on were three tokens in a row.
    assert told == {"first": [[], [0], [0]], "second": [[0], [], []]}


@pytest.mark.parametrize("family", ["llama", "gpt2"])
def test_greedy_text_of_real_models(family: str) -> None:
    pair = sv.Pair(*f.FAMILIES[family]())
    options: dict[str, Any] = {"temperature": 0, "progress": False}
    first = sv.generate(pair, [1, 2, 3], gamma=0, max_new_tokens=30, **options).tokens.tolist()
    prompt = [1, 2, 3, *first, 7, 1, 2, 3, *first[:4]]
    plain = sv.generate(pair, prompt, gamma=0, max_new_tokens=80, **options)
    for drafter in (Combined(), Combined(PromptLookup(min_ngram=2), Tree((2, 1)))):
        trace = sv.generate(pair, prompt, drafter=drafter, max_new_tokens=80, **options)
        assert trace.tokens.tolist() == plain.tokens.tolist()
        assert trace.check().ok


# What it says of itself -------------------------------------------------------------------------


class Lossy(TargetOnly):
    traits = DrafterTraits(lossless=False)


def test_what_it_promises_is_what_all_of_them_promise() -> None:
    assert Combined().traits == DrafterTraits()
    assert Combined(PromptLookup(), Tree((2,))).traits.trees
    assert not Combined(PromptLookup(), Lossy()).traits.lossless
    nested = Combined(PromptLookup(), Combined(DraftModel(noise="target")))
    assert nested.traits.coupled
    assert Combined(PromptLookup(7), DraftModel(3)).depth == 7


def test_settings() -> None:
    drafter = Combined(PromptLookup(3), DraftModel(2))
    assert drafter.settings() == {
        "name": "combined",
        "gamma": 3,
        "drafters": [PromptLookup(3).settings(), DraftModel(2).settings()],
    }


def test_an_adaptive_gamma_stands_still_while_another_proposes() -> None:
    model = DraftModel(AdaptiveGamma(start=2, low=1, high=4, up=1, down=1))
    certain = pair_of(np.roll(np.eye(3), 1, axis=1), np.roll(np.eye(3), 1, axis=1))
    drafter = Combined(PromptLookup(1), model)
    trace = sv.generate(certain, [0, 1, 2, 0], drafter=drafter, max_new_tokens=9, progress=False)
    assert set(trace.round_table["gamma"].tolist()) == {2}, "the deeper of 1 and 2, never 3"
    alone = sv.generate(certain, [0, 1, 2, 0], drafter=model, max_new_tokens=9, progress=False)
    assert alone.round_table["gamma"].max() > 2, "the twin: alone it grows"


@pytest.mark.parametrize("wrong", [3, "lookup", PromptLookup, None])
def test_something_that_is_no_drafter(wrong: Any) -> None:
    with pytest.raises(TypeError, match="Combined takes drafters such as"):
        Combined(PromptLookup(), wrong)


def test_trees_need_a_rule_for_trees() -> None:
    pair = random_pair(3, order=1, seed=1)
    with pytest.raises(ValueError, match="judges chains only, and Combined proposes trees"):
        sv.generate(pair, [0], drafter=Combined(PromptLookup(), Tree((2,))), verify="block")


def test_the_first_that_proposes_has_the_round() -> None:
    class Refusing(Changed, TargetOnly):
        def change(self, inner: Any, context: Context, draws: Draws) -> Draft:
            raise AssertionError("was asked although another had proposed")

    pair = random_pair(3, order=1, seed=1)
    drafter = Combined(DraftModel(1), Refusing()).start(pair, pair.target.session(), np.array([0]))
    from specviz.core.draws import Sampler

    draft = drafter.propose(Context(np.array([0]), 3, Sampling()), Sampler(0))
    assert len(draft) == 1


# What its parts require of a rule ----------------------------------------------------------------


def coupled_tables() -> TabularPair:
    """The tables of the case that was found: block verification with a coupled draft inside."""
    r = np.random.default_rng(6)
    target, draft = (r.dirichlet([0.5] * 3, size=3) for _ in range(2))
    return TabularPair(TabularModel(target), TabularModel(draft))


COUPLED = DraftModel(2, noise="target")


@pytest.mark.parametrize(
    "drafter",
    [
        Combined(COUPLED),
        Combined(PromptLookup(min_ngram=2), COUPLED),
        Combined(PromptLookup(), Combined(COUPLED)),
        COUPLED,
        Quantized(2, noise="target"),
        Combined(Quantized(2, noise="target")),
    ],
    ids=str,
)
@pytest.mark.parametrize("verify", ["block", "rejection", "match"])
def test_a_coupled_draft_inside_another_is_refused_by_every_other_rule(
    drafter: Any, verify: str
) -> None:
    pair = coupled_tables()
    ways: list[Callable[[], Any]] = [
        lambda: sv.generate(pair, [0], drafter=drafter, verify=verify, max_new_tokens=3),
        lambda: sv.stream(pair, [0], drafter=drafter, verify=verify),
        lambda: enumerate_distribution(pair, drafter, verify=verify, prompt=[0], length=3),
        lambda: replicas(pair, [0], 3, length=3, drafter=drafter, rule=RULES[verify]),
        lambda: sv.audit(pair, [0], drafter=drafter, verify=verify, n=100),
    ]
    for way in ways:
        with pytest.raises(ValueError, match="needs verify='coupled'"):
            way()


def test_under_coupled_it_is_exact_and_the_refused_mixture_would_not_be() -> None:
    pair, drafter = coupled_tables(), Combined(PromptLookup(2, min_ngram=2), COUPLED)
    exact = target_distribution(pair, prompt=[0], length=3)
    induced = enumerate_distribution(pair, drafter, verify="coupled", prompt=[0], length=3)
    assert total_variation(induced, exact) < 1e-9

    class Undeclared(Combined):
        """The twin: what its parts require is not handed on."""

        traits = DrafterTraits()

    wrong = enumerate_distribution(
        pair, Undeclared(COUPLED), verify="block", prompt=[0], length=3, progress=False
    )
    assert total_variation(wrong, exact) == pytest.approx(0.1115, abs=5e-4)
