"""Parallel drafting: one pass, each token from its own q; whatever it proposes, p comes out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import specviz as sv
from specviz.core.contract import Context, Draft, Sampling
from specviz.core.draws import Draws, Sampler
from specviz.decoding.hf.target import HFTarget
from specviz.drafters.parallel import Parallel, ParallelSession
from specviz.lossless import enumerate_distribution, target_distribution, total_variation
from specviz.models.heads import EagleCache, HeadsError, ParallelHead
from tests.drafters.with_heads import PROMPT, few_token_pair, parallel_for, tiny_pair


@pytest.mark.parametrize("gamma", [1, 4])
@pytest.mark.parametrize("settings", [{"temperature": 0}, {"verify": "match"}])
def test_the_text_is_the_targets_own(gamma: int, settings: dict[str, Any]) -> None:
    pair = tiny_pair()
    options = {"max_new_tokens": 40, "seed": 3, **settings}
    drafter = Parallel(gamma, heads=parallel_for(pair))
    trace = sv.generate(pair, PROMPT, drafter=drafter, **options)
    options.pop("verify", None)
    plain = sv.generate(pair, PROMPT, gamma=0, **options)
    assert trace.tokens.tolist() == plain.tokens.tolist()
    assert len(set(plain.tokens.tolist())) >= 15
    assert trace.check().ok


@pytest.mark.parametrize("settings", [{}, {"top_k": 5}, {"repetition_penalty": 1.3}])
def test_a_sampled_run_can_be_checked_and_proposes(settings: dict[str, Any]) -> None:
    pair = tiny_pair()
    trace = sv.generate(
        pair, PROMPT, drafter=Parallel(3, heads=parallel_for(pair)), max_new_tokens=40, seed=3,
        **settings,
    )  # fmt: skip
    assert trace.check().ok
    assert [len(round.nodes) for round in trace.rounds[:3]] == [0, 3, 3]
    assert len(trace.rounds) < 40  # some proposal was accepted


def proposed(text: list[int], drafter: Parallel) -> tuple[Draft, Any]:
    """Return the draft after ``text``, and the target's features of all of it but the last."""
    pair = tiny_pair()
    target, ids = HFTarget(pair.target), np.array(text)
    session = drafter.start(pair, target, ids)
    target.verify(ids[:-1], session.propose(Context(ids[:-1], 9, Sampling()), Sampler(0)))
    target.keep([])
    session.commit(ids[-1:], [])
    return session.propose(Context(ids, 9, Sampling()), Sampler(0)), target.features


def test_q_is_what_one_pass_of_the_head_says_of_the_text_alone() -> None:
    pair, text = tiny_pair(), [*PROMPT, 9, 2]
    head = parallel_for(pair, loud=3.0).eval()
    calls = []
    forward = ParallelHead.forward
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ParallelHead, "forward", lambda *a: calls.append(len(a[1])) or forward(*a))
        draft, features = proposed(text, Parallel(4, heads=head))
    assert calls == [len(text) - 1 + 3]  # the text and three placeholders, once
    assert draft.is_chain and draft.q_row.tolist() == [0, 1, 2, 3]
    model = pair.target.model
    with torch.no_grad():  # written out: every placeholder on its own, after the same text
        ids = torch.tensor(text[1:])
        x = head.fused(features) + head.embedded(ids, model.get_input_embeddings())
        for level in range(4):
            extra = head.placeholders(x[-1], level)
            places = torch.arange(len(x) + level)
            out = forward(
                head, torch.cat([x, extra]), places, places[:, None] >= places, EagleCache()
            )
            q = head.logits(out[-1], model.get_output_embeddings()).double().softmax(-1)
            assert np.abs(q.numpy() - draft.q[level]).max() < 1e-5
    assert np.abs(draft.q[1] - draft.q[0]).max() > 0.01  # places differ


def test_read_at_once_or_piece_by_piece_the_head_says_the_same() -> None:
    """Placeholders of earlier rounds leave nothing behind in the cache."""
    pair = tiny_pair()
    head, seen = parallel_for(pair), []
    propose = ParallelSession.propose

    def watched(self: ParallelSession, context: Context, draws: Draws) -> Draft:
        draft = propose(self, context, draws)
        seen.append((context.tokens.tolist(), draft.q.copy(), self.cache_length))
        return draft

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ParallelSession, "propose", watched)
        sv.generate(pair, PROMPT, drafter=Parallel(3, heads=head), max_new_tokens=20, seed=1)
    for text, q, length in seen[1:6]:
        assert length == len(text) - 1
        alone, _ = proposed(text, Parallel(3, heads=head))
        level = min(len(q), len(alone.q))
        assert np.abs(alone.q[:level] - q[:level]).max() < 1e-5


def test_the_window_limits_what_the_head_looks_back_on() -> None:
    head = parallel_for(tiny_pair(), window=4)
    long = proposed([7, 8, 9, *PROMPT, 9, 2, 6, 5], Parallel(2, heads=head))[0]
    wide = proposed([7, 8, 9, *PROMPT, 9, 2, 6, 5], Parallel(2, heads=parallel_for(tiny_pair())))[0]
    assert np.abs(long.q - wide.q).max() > 1e-4


class Shifted(ParallelSession):
    """Planted: says the second token was drawn from the first one's q."""

    def propose(self, context: Context, draws: Draws) -> Draft:
        draft = super().propose(context, draws)
        if len(draft) > 1:
            draft.q[1] = draft.q[0]
        return draft


class Redrawn(ParallelSession):
    """Planted: redraws the second token when it repeats the first, and keeps its q."""

    def propose(self, context: Context, draws: Draws) -> Draft:
        draft = super().propose(context, draws)
        if len(draft) > 1 and draft.tokens[1] == draft.tokens[0]:
            draft.tokens[1] = (draft.tokens[1] + 1) % self.vocab_size
        return draft


def test_its_output_has_the_targets_distribution_and_planted_faults_do_not() -> None:
    pair = few_token_pair(2)
    drafter = Parallel(2, heads=parallel_for(pair, loud=4.0))
    wanted = target_distribution(pair, prompt=[0, 1], length=4)
    found = enumerate_distribution(pair, drafter, prompt=[0, 1], length=4)
    assert total_variation(found, wanted) < 1e-9
    for planted in (Shifted, Redrawn):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("specviz.drafters.parallel.ParallelSession", planted)
            wrong = enumerate_distribution(pair, drafter, prompt=[0, 1], length=4)
        assert total_variation(wrong, wanted) > 0.005


def test_what_does_not_fit_is_refused_before_any_model_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pair = tiny_pair()
    monkeypatch.setattr(HFTarget, "verify", lambda *_: pytest.fail("a model ran"))
    head = parallel_for(pair, gamma=2)
    for drafter, says in [
        (Parallel(3, heads=head), "gamma is 3, but the parallel head proposes 2"),
        (Parallel(heads="no/such/folder"), "no config.json"),
        (Parallel(2, heads=parallel_for(pair, gamma=2, vocab_size=50)), "vocabulary 50, not 96"),
    ]:
        with pytest.raises(HeadsError, match=says):
            sv.generate(pair, [1], drafter=drafter, max_new_tokens=5)
    with pytest.raises(ValueError, match="gamma must be a whole number >= 0, got -1"):
        Parallel(-1)
    with pytest.raises(TypeError, match="gamma must be a whole number"):
        Parallel(1.5)  # type: ignore[arg-type]


def test_gamma_0_and_room_1() -> None:
    pair = tiny_pair()
    for gamma, most in ((0, 0), (4, 1)):
        trace = sv.generate(
            pair, PROMPT, drafter=Parallel(gamma, heads=parallel_for(pair)), max_new_tokens=3
        )
        assert len(trace.tokens) == 3
        assert max(len(round.nodes) for round in trace.rounds) <= most
