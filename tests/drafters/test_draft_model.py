"""``DraftModel``: its distribution, its cache, its gammas."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import specviz as sv
from specviz.core.contract import Context, Draft, Drafter, Sampling
from specviz.core.draws import CategoricalDraw, RaceDraw, Sampler
from specviz.core.tabular import TabularModel, TabularPair
from specviz.drafters.draft_model import AdaptiveGamma, DraftModel
from specviz.drafters.target_only import TargetOnly
from tests.api.pairs import equal_tables, tables
from tests.lossless.chisquare import p_value
from tests.lossless.planted import SoftGreedyDraft

PROMPT = np.array([0, 1])


def begun(drafter: Any, pair: TabularPair | None = None) -> Any:
    """A session of the drafter on the prompt."""
    pair = pair or tables()
    return drafter.start(pair, pair.target.session(), PROMPT)


def context(room: int = 9, text: Any = PROMPT, **options: Any) -> Context:
    sampling = options.pop("sampling", Sampling())
    return Context(np.asarray(text), room, sampling, **options)


def test_it_is_a_drafter() -> None:
    assert isinstance(DraftModel(), Drafter) and isinstance(TargetOnly(), Drafter)


# -- the distribution that was used
# ------------------------------------------------------------------------


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(0.5, top_k=3), Sampling(top_p=0.6)])
def test_q_is_the_distribution_each_token_was_drawn_from(sampling: Sampling) -> None:
    """Chi-square of first proposals against the reported q; the twin picks the favourite."""
    pair = tables()

    def drawn(drafter: DraftModel) -> tuple[list[int], Any]:
        tokens = []
        for sequence in range(1500):
            session = begun(drafter, pair)
            draft = session.propose(context(sampling=sampling), Sampler(1, sequence))
            tokens.append(int(draft.tokens[0]))
        return tokens, dict(enumerate(draft.q[0].tolist()))

    assert p_value(*drawn(DraftModel(1))) > 1e-3
    assert p_value(*drawn(SoftGreedyDraft(1))) < 1e-6


def test_every_proposal_has_its_own_row_of_q_and_its_own_draw() -> None:
    draws = Sampler(3)
    draft = begun(DraftModel(5)).propose(context(), draws)
    assert len(draft) == 5 and draft.is_chain and draft.q.shape == (5, 8)
    assert draft.q_row.tolist() == list(range(5))
    np.testing.assert_allclose(draft.q.sum(axis=1), 1)
    events = [event for event in draws.log if isinstance(event, CategoricalDraw)]
    assert [event.token for event in events] == draft.tokens.tolist()
    assert [(event.position, event.node) for event in events] == [(2 + i, i) for i in range(5)]
    assert len({event.u for event in events}) == 5
    for event, q in zip(events, draft.q, strict=True):
        np.testing.assert_allclose(np.diff(event.cdf, prepend=0), q, atol=1e-12)


def test_a_greedy_choice_is_one_hot() -> None:
    draws = Sampler(3)
    draft = begun(DraftModel(4)).propose(context(sampling=Sampling(temperature=0)), draws)
    assert draft.q_row.tolist() == [-1] * 4 and draft.q.shape == (0, 8)
    assert draws.log == []
    for node in range(4):
        distribution = draft.distribution(node, 8)
        assert distribution[draft.tokens[node]] == 1 and distribution.sum() == 1


def test_with_the_targets_noise_it_races() -> None:
    draws = Sampler(3)
    draft = begun(DraftModel(3, noise="target"), equal_tables()).propose(context(), draws)
    races = [event for event in draws.log if isinstance(event, RaceDraw)]
    assert [event.token for event in races] == draft.tokens.tolist()
    assert [event.node for event in races] == [0, 1, 2]


def test_with_the_targets_noise_it_agrees_as_often_as_promised() -> None:
    """Coupled agrees at a rate of at least (1 - TV) / (1 + TV); independent draws do not."""
    rates, bounds = {}, []
    for rule in ("coupled", "match"):
        trace = sv.generate(
            tables(), [0], verify=rule, gamma=1, seed=2, max_new_tokens=400, progress=False
        )
        examined = trace.node_table["verdict"] > 0
        rates[rule] = (trace.node_table["verdict"][examined] == 1).mean()
        tv = 1 - trace.node_table["overlap"][examined]
        bounds.append(((1 - tv) / (1 + tv)).mean())
    assert rates["coupled"] > bounds[0] - 0.05
    assert rates["match"] < bounds[1] - 0.1, "the planted twin"


# -- how much it proposes -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gamma", "room", "expected"), [(4, 9, 4), (4, 2, 2), (4, 0, 0), (0, 9, 0)]
)
def test_it_never_proposes_deeper_than_there_is_room(gamma: int, room: int, expected: int) -> None:
    draft = begun(DraftModel(gamma)).propose(context(room), Sampler(0))
    assert len(draft) == expected
    assert draft.q.shape == (expected, 8)


def test_nothing_is_proposed_after_an_end_token() -> None:
    ring = TabularModel(np.roll(np.eye(5), 1, axis=1))
    drafter = begun(DraftModel(4), TabularPair(ring, ring))
    draft = drafter.propose(context(stop_ids=frozenset({3})), Sampler(0))
    assert draft.tokens.tolist() == [2, 3]


def test_its_own_context_is_never_passed() -> None:
    table = tables().draft.table
    pair = TabularPair(tables().target, TabularModel(table, context_length=4))
    drafter = begun(DraftModel(5), pair)
    assert 0 < len(drafter.propose(context(), Sampler(0))) <= 3
    drafter = begun(DraftModel(5), pair)
    assert len(drafter.propose(context(text=[0] * 6), Sampler(0))) == 0
    assert drafter.cache_length == 0


def test_another_model_can_stand_in_for_the_pairs() -> None:
    pair = TabularPair(tables().target)
    trace = sv.generate(
        pair, [0], drafter=DraftModel(3, model=pair.target), max_new_tokens=12, progress=False
    )
    assert trace.round_table["emitted"].tolist() == [4, 4, 4]


# -- its cache ------------------------------------------------------------------------------------


def fed(session: Any) -> list[int]:
    return list(session.model._cache)


def test_after_a_rejection_it_forgets_what_was_not_accepted() -> None:
    drafter = begun(DraftModel(4))
    draft = drafter.propose(context(), Sampler(0))
    assert fed(drafter) == [0, 1, *draft.tokens.tolist()[:3]], "the last one is never fed"
    drafter.commit(np.array([draft.tokens[0], 7]), [0])
    assert fed(drafter) == [0, 1, draft.tokens[0]]


def test_after_full_acceptance_it_is_one_token_short_and_catches_up() -> None:
    drafter = begun(DraftModel(3))
    draft = drafter.propose(context(), Sampler(0))
    emitted = np.append(draft.tokens, 5)
    drafter.commit(emitted, [0, 1, 2])
    text = [0, 1, *emitted.tolist()]
    assert fed(drafter) == text[:-2]
    again = drafter.propose(context(text=text), Sampler(1))
    assert fed(drafter) == [*text, *again.tokens.tolist()[:2]]


def test_a_round_without_proposals_leaves_it_behind_and_it_catches_up() -> None:
    drafter = begun(DraftModel(2))
    drafter.propose(context(room=0), Sampler(0))
    drafter.commit(np.array([4]), [])
    assert fed(drafter) == []
    draft = drafter.propose(context(text=[0, 1, 4]), Sampler(0))
    assert fed(drafter) == [0, 1, 4, draft.tokens[0]]


def test_a_new_text_starts_from_nothing() -> None:
    recipe = DraftModel(AdaptiveGamma(start=3))
    session = begun(recipe)
    session.propose(context(), Sampler(0))
    session.commit(np.array([7]), [])
    assert session.gamma == 2 and session.cache_length > 0
    other = begun(recipe)
    assert other.gamma == 3 and other.cache_length == 0
    assert session.gamma == 2, "sessions share nothing"


# -- gammas ---------------------------------------------------------------------------------------


def test_adaptive_gamma_grows_and_shrinks_within_its_bounds() -> None:
    schedule = AdaptiveGamma(start=4, low=2, high=6)
    assert schedule.after(4, proposed=4, accepted=4) == 6
    assert schedule.after(6, proposed=6, accepted=6) == 6
    assert schedule.after(4, proposed=4, accepted=3) == 3
    assert schedule.after(2, proposed=2, accepted=0) == 2
    assert schedule.after(4, proposed=0, accepted=0) == 4


def test_adaptive_gamma_follows_the_record() -> None:
    schedule = AdaptiveGamma(start=2, low=1, high=5)
    trace = sv.generate(tables(), [0], gamma=schedule, max_new_tokens=200, progress=False)
    gammas = trace.round_table["gamma"].tolist()
    assert {1, 2, 3} <= set(gammas) and gammas[0] == 2
    for this, after in zip(trace.rounds, gammas[1:], strict=False):
        assert after == schedule.after(this.gamma, len(this.nodes), this.accepted)
    assert trace.meta["drafter"]["gamma"] == {
        "start": 2, "low": 1, "high": 5, "up": 2, "down": 1
    }  # fmt: skip


def test_target_only_proposes_nothing() -> None:
    drafter = begun(TargetOnly())
    draft = drafter.propose(context(), Sampler(0))
    assert isinstance(draft, Draft) and len(draft) == 0
    assert drafter.gamma == drafter.cache_length == 0
