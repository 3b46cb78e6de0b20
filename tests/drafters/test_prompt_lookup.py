"""Prompt lookup: what it finds, and that a one-hot q keeps the distribution exact."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import specviz as sv
from specviz.core.contract import Context, Draft, Sampling
from specviz.core.draws import Draws, Sampler
from specviz.core.rules import RULES, Decision, residual
from specviz.drafters.prompt_lookup import PromptLookup
from tests.decoding import families as f
from tests.drafters.changed import Changed
from tests.lossless.enumeration import EXACT, distance, one_round, pair_of, random_pair

GREEDY = Sampling(temperature=0)


def found(text: list[int], length: int = 3, **options: Any) -> list[int]:
    return PromptLookup(**options).continuation(np.array(text), length).tolist()


# What it finds ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ([5, 6, 7, 8, 9, 5, 6], [7, 8, 9]),
        ([1, 2, 3, 4], []),
        ([5], []),
        ([], []),
        ([1, 1, 1], [1]),  # as many as there are
        ([5, 1, 6, 5, 2, 5], [1, 6, 5]),  # the later one is followed by two only
        ([9, 5, 8, 7, 7, 5, 4, 4, 4, 9, 5], [8, 7, 7]),  # a longer suffix beats a later one
        ([1, 2, 3, 9, 9, 9, 7, 2, 3, 8, 8, 8, 1, 2, 3], [9, 9, 9]),
        ([2, 3, 9, 9, 9, 7, 2, 3, 8, 8, 8, 1, 2, 3], [8, 8, 8]),  # of equals, the most recent
    ],
)
def test_the_longest_suffix_seen_before(text: list[int], expected: list[int]) -> None:
    assert found(text) == expected


def test_n_goes_from_max_down_to_min() -> None:
    text = [1, 2, 7, 7, 3, 2, 8, 8, 1, 2]
    assert found(text, max_ngram=1) == [8, 8, 1]
    assert found(text, max_ngram=2) == [7, 7, 3]
    assert found([3, 2, 8, 8, 1, 2], max_ngram=3, min_ngram=2) == []


texts = st.lists(st.integers(0, 2), max_size=14)


@given(text=texts, length=st.integers(0, 4), ngrams=st.tuples(st.integers(1, 3), st.integers(1, 3)))
def test_against_looking_everywhere(text: list[int], length: int, ngrams: tuple[int, int]) -> None:
    low, high = sorted(ngrams)

    def by_hand() -> list[int]:
        for n in range(high, low - 1, -1):
            ends = [i for i in range(n, len(text)) if text[i - n : i] == text[len(text) - n :]]
            if ends and length:
                enough = [i for i in ends if i + length <= len(text)]
                start = enough[-1] if enough else ends[0]
                return text[start : start + length]
        return []

    assert found(text, length, max_ngram=high, min_ngram=low) == by_hand()


def propose(text: list[int], room: int = 9, stop: tuple[int, ...] = (), **options: Any) -> Draft:
    drafter = PromptLookup(**options)
    pair: Any = pair_of(np.full(10, 0.1), np.full(10, 0.1))
    session = drafter.start(pair, pair.target.session(), np.array(text))
    context = Context(np.array(text), room, Sampling(), frozenset(stop))
    return session.propose(context, Sampler(0))


def test_proposals_are_one_hot_and_fit_the_room() -> None:
    text = [5, 6, 7, 8, 9, 5, 6]
    draft = propose(text)
    assert draft.tokens.tolist() == [7, 8, 9, 5, 6] and draft.is_chain
    assert (draft.q_row == -1).all() and draft.q.shape == (0, 10)
    assert draft.distribution(1, 10).tolist() == np.eye(10)[8].tolist()
    assert propose(text, room=2).tokens.tolist() == [7, 8]
    assert propose(text, gamma=1).tokens.tolist() == [7]
    for nothing in (propose(text, room=0), propose(text, gamma=0), propose([1, 2, 3])):
        assert len(nothing) == 0


def test_nothing_follows_an_end() -> None:
    assert propose([5, 6, 7, 8, 9, 5, 6], stop=(8,)).tokens.tolist() == [7, 8]
    assert propose([5, 6, 7, 8, 9, 5, 6], stop=(7, 8)).tokens.tolist() == [7]


# The distribution, exactly
# -------------------------------------------------------------------------------

PROMPT = [0, 1, 2, 0, 1]


@pytest.mark.parametrize("gamma", [1, 2, 3])
@pytest.mark.parametrize("rule", ["rejection", "match", "block", "greedy"])
def test_the_distribution_is_the_targets(rule: str, gamma: int) -> None:
    pair = random_pair(3, order=2, seed=40 + gamma)
    sampling = GREEDY if rule == "greedy" else None
    drafter = PromptLookup(gamma)
    assert distance(pair, drafter, rule, prompt=PROMPT, length=4, sampling=sampling) <= EXACT


class SoftLookup(Changed, PromptLookup):
    """Chooses like the shipped one, but reports the draft model's soft distribution as q."""

    def start(self, pair: Any, target: Any, prompt: Any) -> Any:
        object.__setattr__(self, "draft", pair.draft)
        return super().start(pair, target, prompt)

    def change(self, inner: Any, context: Context, draws: Draws) -> Draft:
        right = inner.propose(context, draws)
        text = context.tokens.tolist()
        told = [
            self.draft.distribution(text + right.tokens[:i].tolist()) for i in range(len(right))
        ]
        return Draft.chain(right.tokens.tolist(), np.stack(told) if told else None, 3)


def test_twin_the_one_hot_q_is_forgotten() -> None:
    pair = random_pair(3, order=2, seed=41)
    assert distance(pair, SoftLookup(2), prompt=PROMPT, length=3) > 0.05
    # The first token by hand: x = 2 is kept with min(1, p/q), else the residual is drawn from.
    p, q, x = pair.target.distribution(PROMPT), pair.draft.distribution(PROMPT), 2
    kept = min(1.0, p[x] / q[x])
    distribution = kept * np.eye(3)[x] + (1 - kept) * residual(p, q)
    expected = 0.5 * float(np.abs(distribution - p).sum())
    off = distance(pair, SoftLookup(2), prompt=PROMPT, length=1 + 1)
    first = one_round(pair, SoftLookup(1), RULES["rejection"], PROMPT)
    tokens = np.zeros(3)
    for text, mass in first.items():
        tokens[text[0]] += mass
    np.testing.assert_allclose(tokens, distribution, atol=EXACT)
    assert off >= expected - EXACT > 0.05


# Fault 4 ----------------------------------------------------------------------------------------


def commits_the_first_unverified(draft: Draft, p: Any, draws: Draws, start: int) -> Decision:
    """Wrong: the first n-gram proposal is taken whatever the target says."""
    if not len(draft):
        return RULES["greedy"].verify(draft, p, draws, start)
    return Decision([0], int(p[1].argmax()), p[1])


def test_no_proposal_is_committed_unverified() -> None:
    """After [1, 1, 1] the text itself suggests another 1; the target wants a 2."""
    table = np.full((3, 3), 0.1)
    table[1] = [0.1, 0.2, 0.7]
    table[2] = [0.8, 0.1, 0.1]
    table[0] = [0.1, 0.8, 0.1]
    pair = pair_of(table, table)
    options: dict[str, Any] = {"temperature": 0, "max_new_tokens": 6, "progress": False}
    plain = sv.generate(pair, [1, 1, 1], gamma=0, **options)
    assert plain.tokens.tolist() == [2, 0, 1, 2, 0, 1]
    trace = sv.generate(pair, [1, 1, 1], drafter=PromptLookup(), **options)
    assert trace.rounds[0].nodes[0].token == 1 and not trace.rounds[0].nodes[0].accepted
    assert trace.tokens.tolist() == plain.tokens.tolist()
    wrong = replace(RULES["greedy"], verify=commits_the_first_unverified)
    twin = sv.generate(pair, [1, 1, 1], drafter=PromptLookup(), verify=wrong, **options)
    assert twin.tokens.tolist() != plain.tokens.tolist()


# Real models ------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["llama", "gpt2", "mistral", "bloom"])
def test_greedy_text_of_real_models(family: str) -> None:
    """The prompt holds its own continuation, so that proposals are accepted and rejected."""
    pair = sv.Pair({**f.FAMILIES, **f.CHAINS_ONLY}[family]()[0])
    options: dict[str, Any] = {"temperature": 0, "progress": False}
    start = [1, 2, 3]
    first = sv.generate(pair, start, gamma=0, max_new_tokens=40, **options).tokens.tolist()
    prompt = start + first + [7, 7] + start + first[:5]
    plain = sv.generate(pair, prompt, gamma=0, max_new_tokens=60, **options)
    trace = sv.generate(pair, prompt, drafter=PromptLookup(gamma=5), max_new_tokens=60, **options)
    assert trace.tokens.tolist() == plain.tokens.tolist()
    assert trace.check().ok
    verdicts = [node.accepted for round_ in trace.rounds for node in round_.nodes]
    assert verdicts and not all(verdicts)


# Refused ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["max_ngram", "min_ngram"])
@pytest.mark.parametrize("value", [0, -1, 1.5, True, "2"])
def test_bad_ngrams(name: str, value: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=f"{name} must be a whole number >= 1, got"):
        PromptLookup(**{name: value})


def test_other_bad_arguments() -> None:
    with pytest.raises(ValueError, match="min_ngram must not exceed max_ngram, got 4 and 3"):
        PromptLookup(min_ngram=4)
    with pytest.raises(ValueError, match="gamma must be a whole number >= 0, got -1"):
        PromptLookup(-1)
    with pytest.raises(TypeError, match="gamma must be a whole number"):
        PromptLookup(2.5)  # type: ignore[arg-type]
