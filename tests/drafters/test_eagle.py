"""EAGLE: chain, fixed and dynamic tree in the target's feature space, each exact."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats

import specviz as sv
from specviz.core.contract import Context, Draft, Sampling
from specviz.core.draws import Sampler
from specviz.core.rules import RULES
from specviz.decoding.hf.target import HFTarget
from specviz.decoding.sampling import logits_to_distributions
from specviz.drafters.eagle import DynamicTree, Eagle
from specviz.models.heads import EagleCache, HeadsError
from tests.drafters.changed import Changed
from tests.drafters.small import plain_distribution
from tests.drafters.with_heads import PROMPT, eagle_for, few_token_pair, medusa_for, tiny_pair

SHAPES: list[dict[str, Any]] = [
    {"gamma": 3},
    {"tree": (4, 2, 1)},
    {"tree": (3, 2), "choose": "sampled"},
    {"tree": "dynamic"},
    {"tree": DynamicTree(depth=3, width=2, branch=5, nodes=9)},
]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("settings", [{"temperature": 0}, {"verify": "match"}])
def test_the_text_is_the_targets_own(shape: dict[str, Any], settings: dict[str, Any]) -> None:
    pair = tiny_pair()
    options = {"max_new_tokens": 40, "seed": 3, **settings}
    trace = sv.generate(pair, PROMPT, drafter=Eagle(eagle_for(pair), **shape), **options)
    options.pop("verify", None)
    plain = sv.generate(pair, PROMPT, gamma=0, **options)
    assert trace.tokens.tolist() == plain.tokens.tolist()
    assert len(set(plain.tokens.tolist())) >= 15
    assert trace.check().ok


@pytest.mark.parametrize("shape", SHAPES)
def test_the_trace_of_a_sampled_run_can_be_checked(shape: dict[str, Any]) -> None:
    pair = tiny_pair()
    trace = sv.generate(
        pair, PROMPT, drafter=Eagle(eagle_for(pair), **shape), max_new_tokens=40, seed=5,
        temperature=0.9, top_k=20, repetition_penalty=1.2,
    )  # fmt: skip
    assert trace.check().ok
    assert len(trace.rounds[0].nodes) == 0 and len(trace.rounds[1].nodes) > 0
    assert len(trace.rounds) < 40


def test_the_head_keeps_up_while_another_drafter_proposes() -> None:
    pair = tiny_pair()
    drafter = sv.Combined(sv.PromptLookup(gamma=3, min_ngram=1), Eagle(eagle_for(pair), gamma=2))
    options = {"max_new_tokens": 40, "seed": 3, "temperature": 0}
    trace = sv.generate(pair, PROMPT * 3, drafter=drafter, **options)
    plain = sv.generate(pair, PROMPT * 3, gamma=0, **options)
    assert trace.tokens.tolist() == plain.tokens.tolist()
    assert trace.check().ok
    assert {len(round.nodes) for round in trace.rounds} >= {2, 3}


def begun(pair: Any, drafter: Eagle, text: list[int]) -> Any:
    """A session whose target has read all of ``text`` but its last token."""
    target = HFTarget(pair.target)
    session = drafter.start(pair, target, np.array(text[:-1]))
    target.verify(np.array(text[:-1]), Draft.empty(pair.vocab_size))
    target.keep([])
    session.commit(np.array(text[-1:]), [])
    return session


@pytest.mark.parametrize("shape", [SHAPES[1], SHAPES[2], SHAPES[4]])
def test_a_node_of_the_tree_is_as_if_its_path_were_alone(shape: dict[str, Any]) -> None:
    pair, text = tiny_pair(), [*PROMPT, 9, 2]
    drafter = begun(pair, Eagle(eagle_for(pair, loud=2.0), **shape), text)
    seen: dict[tuple[int, ...], np.ndarray] = {}
    import specviz.drafters.eagle as module

    class Watched(module.GrowingDraft):
        def logits(self, nodes: list[int]) -> Any:
            rows, histories = super().logits(nodes)
            for node, row in zip(nodes, rows, strict=True):
                seen[tuple(self.tokens[i] for i in self.path(node))] = row
            return rows, histories

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "GrowingDraft", Watched)
        drafter.propose(Context(np.array(text), 9, Sampling()), Sampler(0))
    assert len(seen) >= 4
    for path, row in seen.items():
        assert np.abs(alone(pair, drafter, text, path) - row).max() <= 1e-4


def alone(pair: Any, session: Any, text: list[int], path: tuple[int, ...]) -> np.ndarray:
    """The head's logits after text and path: one position at a time, with a cache of its own."""
    model, head = pair.target.model, session.head
    ids = torch.tensor([text[:-1]])
    with torch.inference_mode():
        states = model(ids, output_hidden_states=True).hidden_states
        features = torch.stack([states[k][0] for k in head.config.layers], dim=1)
        fused, cache = head.fused(features), EagleCache()
        output = torch.zeros(1)
        for t, token in enumerate([*text[1:], *path]):
            source = fused[t : t + 1] if t < len(fused) else head.continued(output)
            embedded = head.embedded(torch.tensor([token]), model.get_input_embeddings())
            visible = torch.ones(1, t + 1, dtype=torch.bool)
            output = head(source + embedded, torch.tensor([t]), visible, cache)
        return head.logits(output, model.lm_head)[0].double().numpy()


def test_the_window_limits_what_the_head_looks_back_on() -> None:
    pair = tiny_pair()
    text = [int(x) for x in np.random.default_rng(0).integers(0, 96, 12)]

    def distribution(tokens: list[int], window: int) -> np.ndarray:
        drafter = Eagle(eagle_for(pair, features=False, window=window), gamma=1)
        session = begun(pair, drafter, tokens)
        return session.propose(Context(np.array(tokens), 3, Sampling()), Sampler(0)).q[0]

    changed = [95 - text[0], 95 - text[1], *text[2:]]
    assert np.abs(distribution(text, 10) - distribution(changed, 10)).max() < 1e-6
    assert np.abs(distribution(text, 11) - distribution(changed, 11)).max() > 1e-6


def test_sampled_siblings_carry_the_distribution_that_was_used() -> None:
    pair, text = tiny_pair(), [*PROMPT, 9]
    drafter = Eagle(eagle_for(pair), tree=(3, 2), choose="sampled")
    session = begun(pair, drafter, text)
    draft = session.propose(Context(np.array(text), 9, Sampling()), Sampler(0))
    assert (draft.q_row >= 0).all() and np.allclose(draft.q.sum(axis=1), 1)
    for parent in {-1, *draft.parent.tolist()}:
        children = draft.children(parent)
        for place, child in enumerate(children):
            elder = draft.tokens[children[:place]]
            assert (draft.distribution(child, pair.vocab_size)[elder] == 0).all()


def test_chain_and_greedy_distributions() -> None:
    pair, text = tiny_pair(), [*PROMPT, 9]
    for sampling, one_hot in [(Sampling(), False), (Sampling(temperature=0), True)]:
        drafter = Eagle(eagle_for(pair), gamma=3)
        session = begun(pair, drafter, text)
        draft = session.propose(Context(np.array(text), 9, sampling), Sampler(0))
        assert draft.is_chain and len(draft) == 3
        assert (draft.q_row == -1).all() == one_hot
    session = begun(pair, drafter, text)
    assert len(session.propose(Context(np.array(text), 0, Sampling()), Sampler(0))) == 0


def test_a_dynamic_tree_keeps_the_most_confident_nodes() -> None:
    pair, text = tiny_pair(), [*PROMPT, 9]
    value: list[dict[tuple[int, ...], float]] = []
    for nodes in (7, 4):
        drafter = Eagle(
            eagle_for(pair, loud=2.0), tree=DynamicTree(depth=2, width=2, branch=3, nodes=nodes)
        )
        session = begun(pair, drafter, text)
        draft = session.propose(Context(np.array(text), 9, Sampling()), Sampler(0))
        assert len(draft) == nodes and (draft.q_row == -1).all()
        value.append({})
        for node in range(len(draft)):
            path = tuple(draft.tokens[draft.path(node)].tolist())
            worth = 1.0
            for depth in range(len(path)):
                row = alone(pair, session, text, path[:depth])
                worth *= logits_to_distributions(row[None], Sampling())[0][path[depth]]
            value[-1][path] = worth
    more, fewer = value
    assert set(fewer) <= set(more)
    assert min(fewer.values()) >= max(v for p, v in more.items() if p not in fewer) - 1e-9


class MemoTarget:
    """The target's distributions and features by context, each computed once,
    many rounds in seconds.
    """

    context_length = None

    def __init__(self, pair: Any) -> None:
        self.model, self.vocab_size = pair.target.model, pair.vocab_size
        self._known: dict[tuple[int, ...], tuple[np.ndarray, torch.Tensor]] = {}
        self._layers: tuple[int, ...] = ()

    def capture(self, layers: tuple[int, ...]) -> None:
        self._layers = layers

    def seen(self, text: tuple[int, ...]) -> tuple[np.ndarray, torch.Tensor]:
        if text not in self._known:
            with torch.inference_mode():
                out = self.model(torch.tensor([text]), output_hidden_states=True)
            rows = torch.stack([out.hidden_states[k][0, -1] for k in self._layers])
            self._known[text] = out.logits[0, -1].double().numpy(), rows
        return self._known[text]


class RawQ(Changed, Eagle):
    """Planted: later siblings report q from before it was renormalised without their elders."""

    def change(self, inner: Any, context: Context, draws: Any) -> Draft:
        draft = inner.propose(context, draws)
        for parent in {-1, *draft.parent.tolist()}:
            for child in draft.children(parent)[1:]:
                draft.q_row[child] = draft.q_row[draft.children(parent)[0]]
        return draft


class ReRanked(Changed, Eagle):
    """Planted: sampled siblings are put in the order of their probability,
    each with its distribution.
    """

    def change(self, inner: Any, context: Context, draws: Any) -> Draft:
        draft = inner.propose(context, draws)
        if len(draft) != 2:
            return draft
        first = draft.q[draft.q_row[0]]
        if first[draft.tokens[1]] > first[draft.tokens[0]]:
            draft.tokens[:] = draft.tokens[::-1].copy()
            rest = first.copy()
            rest[draft.tokens[0]] = 0
            draft.q[draft.q_row[1]] = rest / rest.sum()
        return draft


def pairs_of_tokens(drafter: Eagle, pair: Any, text: list[int], n: int) -> Counter[tuple[int, int]]:
    """The first two tokens that ``n`` rounds on ``text`` emit, the next round's where one is short.

    A round's distribution is that of its text, so a second round only draws from p what is missing.
    """
    target, found = MemoTarget(pair), Counter[tuple[int, int]]()
    rule, vocab_size = RULES["rejection"], pair.vocab_size
    session: Any = drafter.start(pair, target, np.array(text))  # type: ignore[arg-type]
    rows = [target.seen(tuple(text[: i + 1]))[1] for i in range(len(text) - 1)]
    features, known = torch.stack(rows), {}
    draws = Sampler(11)
    for index in range(n):
        draws.begin_round(index)
        own = getattr(session, "inner", session)  # a fault wraps the session
        own._cache, own._unread, own._read = EagleCache(), [features], 0
        draft = session.propose(Context(np.array(text), 9, Sampling()), draws)
        p = np.zeros((1 + len(draft), vocab_size))
        for node in range(-1, len(draft)):
            path = tuple(draft.tokens[draft.path(node)].tolist())
            if path not in known:
                known[path] = logits_to_distributions(
                    target.seen((*text, *path))[0][None], Sampling()
                )[0]
            p[node + 1] = known[path]
        verdict = rule.verify(draft, p, draws, len(text))
        out = [*draft.tokens[verdict.path].tolist(), verdict.token]
        if len(out) == 1:
            distribution = logits_to_distributions(target.seen((*text, *out))[0][None], Sampling())[
                0
            ]
            out.append(draws.categorical(distribution, len(text) + 1, 99))
        found[out[0], out[1]] += 1
    return found


def p_value(counts: Counter[tuple[int, int]], pair: Any, text: list[int]) -> float:
    """Chi-square of the pairs against the target's distribution, rare pairs pooled."""
    distribution = plain_distribution(pair.target, np.array(text), 2)
    n = sum(counts.values())
    common = [key for key, mass in distribution.items() if n * mass >= 5]
    observed = [counts[key] for key in common]
    expected = [n * distribution[key] for key in common]
    left = n - sum(expected)
    if left > 1e-9:
        observed.append(n - sum(observed))
        expected.append(left)
    return float(stats.chisquare(observed, np.array(expected) * n / sum(expected)).pvalue)


def test_a_sampled_tree_has_the_targets_distribution_and_planted_faults_do_not() -> None:
    pair, text, n = few_token_pair(), [1, 0, 3, 2], 1200
    head = eagle_for(pair).double()
    p = logits_to_distributions(
        MemoTarget(pair).model(torch.tensor([text])).logits[0, -1:].detach().numpy(), Sampling()
    )[0]
    q = (
        begun(pair, Eagle(head, gamma=1), text)
        .propose(Context(np.array(text), 9, Sampling()), Sampler(0))
        .q[0]
    )
    assert 0.5 * np.abs(p - q).sum() >= 0.1  # or nothing would be rejected

    drafter = Eagle(head, tree=(2, 2), choose="sampled")
    assert p_value(pairs_of_tokens(drafter, pair, text, n), pair, text) > 0.01
    raw = RawQ(head, tree=(3,), choose="sampled")
    assert p_value(pairs_of_tokens(raw, pair, text, n), pair, text) < 1e-4
    ranked = ReRanked(head, tree=(2,), choose="sampled")
    assert p_value(pairs_of_tokens(ranked, pair, text, n), pair, text) < 1e-4


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"tree": ()}, "proposes nothing"),
        ({"tree": "static"}, "must be None, 'dynamic' or a fixed tree"),
        ({"tree": (2, 2), "gamma": 3}, "brings its own depth"),
        ({"tree": "dynamic", "gamma": 0}, "gamma must be >= 1"),
        ({"tree": "dynamic", "choose": "sampled"}, "pruning it would change"),
        ({"choose": "top"}, "is for a fixed tree"),
        ({"tree": (2,), "choose": "best"}, "'top' or 'sampled'"),
        ({"gamma": -1}, "gamma must be a whole number >= 0, got -1"),
        ({"gamma": 2.5}, "gamma must be a whole number"),
    ],
)
def test_bad_arguments_are_refused_at_once(arguments: dict[str, Any], says: str) -> None:
    with pytest.raises((TypeError, ValueError), match=says):
        Eagle(**arguments)


@pytest.mark.parametrize("wrong", [{"nodes": 0}, {"width": 2.0}, {"nodes": 2}, {"branch": 10**6}])
def test_a_bad_dynamic_tree_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises((TypeError, ValueError)):
        DynamicTree(**wrong)


def test_what_does_not_fit_is_refused_before_any_model_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pair = tiny_pair()
    head = eagle_for(pair)
    short = sv.Pair(target=replace(pair.target, context_length=20))
    for own in (pair, few_token_pair()):
        HFTarget(own.target)  # its trial is held once
    monkeypatch.setattr(HFTarget, "verify", lambda *_: pytest.fail("a model ran"))
    for own, drafter, says in [
        (pair, Eagle(eagle_for(pair, layers=(1, 7))), "they read layer 7 of its 2"),
        (pair, Eagle(eagle_for(pair, vocab_size=95)), "vocabulary 95, not 96"),
        (pair, Eagle(medusa_for(pair)), "medusa heads, but eagle heads"),
        (pair, Eagle(5), "heads must be a folder"),
        (short, Eagle(head, tree=(5, 4)), "tree has 25 nodes .* context holds 20"),
        (short, Eagle(head, tree=DynamicTree(nodes=20)), "context holds 20"),
        (few_token_pair(), Eagle(head), "hidden size 32, not 8"),
    ]:
        with pytest.raises(ValueError if own is short else HeadsError, match=says):
            sv.generate(own, [1], drafter=drafter, max_new_tokens=5)
