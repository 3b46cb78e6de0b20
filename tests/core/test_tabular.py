"""Tables as models: their distributions, their cache, and texts decoded from them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from specviz.core.contract import Draft, FloatArray
from specviz.core.draws import Purpose, Sampler
from specviz.core.rules import RULES
from specviz.core.tabular import TabularModel, TabularPair, TabularSession

# -- distributions
# -----------------------------------------------------------------------------------------


def test_the_distribution_follows_the_last_tokens() -> None:
    model = TabularModel.random(3, order=2, seed=0)
    assert (model.order, model.vocab_size, model.parameters) == (2, 3, 27)
    assert np.array_equal(model.distribution([2, 2, 1, 2]), model.table[1, 2])
    assert np.array_equal(model.distribution([2]), model.table[0, 2])  # filled up with token 0
    assert np.array_equal(model.distribution([]), model.table[0, 0])
    coin = TabularModel([0.25, 0.75])
    assert coin.order == 0
    assert coin.distribution([1, 1, 0]).tolist() == coin.distribution([]).tolist() == [0.25, 0.75]


def test_a_random_table_is_the_same_for_the_same_seed() -> None:
    tables = [TabularModel.random(4, order=1, seed=seed).table for seed in (1, 1, 2)]
    assert np.array_equal(tables[0], tables[1])
    assert not np.array_equal(tables[0], tables[2])
    assert tables[0].sum(axis=-1) == pytest.approx(1)


@pytest.mark.parametrize(
    "table", [[[0.5, 0.5]], np.ones((2, 3)) / 3, 1.0, [1.0], np.full((3, 3, 2), 0.5)]
)
def test_a_table_that_is_not_square_is_refused(table: Any) -> None:
    with pytest.raises(ValueError, match=r"table must have shape \(V,\) \* order"):
        TabularModel(table)


@pytest.mark.parametrize("distribution", [[0.5, 0.6], [1.5, -0.5], [np.nan, 1.0], [0.0, 0.0]])
def test_a_distribution_that_is_none_is_refused(distribution: list[float]) -> None:
    with pytest.raises(ValueError, match="probabilities of table"):
        TabularModel(distribution)


# -- the cache ------------------------------------------------------------------------------------

MODEL = TabularModel.random(4, order=2, seed=5)
TREE = Draft(
    tokens=np.array([1, 2, 3, 0]),
    parent=np.array([-1, -1, 1, 2]),
    q=np.zeros((0, 4)),
    q_row=np.full(4, -1),
)


def distributions(session: TabularSession, pending: list[int], draft: Draft) -> FloatArray:
    return np.exp(session.verify(np.array(pending), draft))


def test_every_node_sees_its_ancestors_only() -> None:
    session = MODEL.session()
    p = distributions(session, [3, 1], TREE)
    paths = [[3, 1], [3, 1, 1], [3, 1, 2], [3, 1, 2, 3], [3, 1, 2, 3, 0]]
    assert p == pytest.approx(np.stack([MODEL.distribution(path) for path in paths]))


def test_rolling_back_keeps_the_pending_tokens_and_the_path() -> None:
    session = MODEL.session()
    distributions(session, [3, 1], TREE)
    assert session.length == 2 + 4
    session.keep([1, 2])
    assert session.length == 4
    assert distributions(session, [0], Draft.empty(4))[0] == pytest.approx(
        MODEL.distribution([3, 1, 2, 3, 0])
    )
    session.keep([])
    assert session.length == 5 and session.passes == 2
    session.begin()
    assert session.length == 0
    with pytest.raises(AssertionError, match="after verify"):
        session.keep([])


def test_keeping_the_wrong_path_would_show() -> None:
    session = MODEL.session()
    distributions(session, [3, 1], TREE)
    session.keep([0])  # the path was [1, 2]
    wrong = distributions(session, [0], Draft.empty(4))[0]
    assert np.abs(wrong - MODEL.distribution([3, 1, 2, 3, 0])).max() > 0.01


def test_a_wider_vocabulary_gives_the_rest_no_mass() -> None:
    p = distributions(MODEL.session(vocab_size=6), [0], Draft.empty(6))
    assert p.shape == (1, 6)
    assert p[0, 4:].tolist() == [0, 0] and p.sum() == pytest.approx(1)


# -- pairs ----------------------------------------------------------------------------------------


def test_a_pair_takes_ids_and_shows_letters_or_words() -> None:
    pair = TabularPair(MODEL)
    assert pair.encode([0, 3]).dtype == np.int64
    assert pair.decode([0, 3]) == "ad" and pair.pieces([0, 3]) == ["a", "d"]
    assert pair.token_strings([1]) == {1: "b"}
    words = TabularPair(MODEL, words=["the ", "quick ", "brown ", "fox "])
    assert words.decode([0, 3]) == "the fox "
    large = TabularPair(TabularModel(np.full(30, 1 / 30)))
    assert large.decode([29]) == "⟨29⟩"
    assert TabularPair(TabularModel([0.5, 0.5], eos_ids=[1])).stop_ids == {1}


@pytest.mark.parametrize("prompt", ["text", b"bytes", None])
def test_a_prompt_of_text_is_refused(prompt: Any) -> None:
    with pytest.raises(TypeError, match="prompt must be a list of token ids"):
        TabularPair(MODEL).encode(prompt)
    with pytest.raises(TypeError, match="prompt must be a list of token ids"):
        TabularPair(MODEL).encode([1], messages=[{"role": "user", "content": "hi"}])


@pytest.mark.parametrize("prompt", [[], [[1]], [1.5], [4], [-1]])
def test_a_prompt_of_wrong_ids_is_refused(prompt: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=r"prompt (must be one list|has id)"):
        TabularPair(MODEL).encode(prompt)


# -- texts: the shipped rules over tables, in a loop of a dozen lines -----------------------------

TARGET = TabularModel.random(6, order=1, seed=10)
DRAFTS = [TabularModel.random(6, order=1, seed=s, concentration=2.0) for s in (11, 12)]
LENGTH = 120


def decode(rule: str, draft: TabularModel, gammas: list[int], seed: int, noise: str) -> list[int]:
    """Decode with chains of gammas[round] proposals, rolling the cache back each round."""
    draws, session, text = Sampler(seed), TARGET.session(), [0]
    rounds, accepted = 0, 0
    while len(text) < LENGTH:
        draws.begin_round(rounds)
        x: list[int] = []
        q: list[FloatArray] = []
        for i in range(gammas[rounds % len(gammas)]):
            q.append(draft.distribution(text + x))
            position = len(text) + i
            if noise == "target":
                x.append(draws.race(q[-1], position, node=i))
            else:
                x.append(draws.categorical(q[-1], position, i, Purpose.DRAFT))
        proposal = Draft.chain(x, np.stack(q), 6) if x else Draft.empty(6)
        p = distributions(session, text[session.length :], proposal)
        verdict = RULES[rule].verify(proposal, p, draws, len(text))
        session.keep(verdict.path)
        text += [x[i] for i in verdict.path] + [verdict.token]
        rounds, accepted = rounds + 1, accepted + len(verdict.path)
    assert accepted > 0 or gammas == [0]
    return text[:LENGTH]


def target_only(rule: str, seed: int) -> list[int]:
    """The target by itself: its own race, or its most likely token, at each position."""
    draws, text = Sampler(seed), [0]
    while len(text) < LENGTH:
        distribution = TARGET.distribution(text)
        text.append(
            int(distribution.argmax()) if rule == "greedy" else draws.race(distribution, len(text))
        )
    return text


SAME_TEXT = [("greedy", "own"), ("match", "own"), ("match", "target"), ("coupled", "target")]


@pytest.mark.parametrize("draft", DRAFTS, ids=["one draft", "another"])
@pytest.mark.parametrize("gammas", [[0], [1], [4], [3, 0, 1, 5, 0]], ids=str)
@pytest.mark.parametrize(("rule", "noise"), SAME_TEXT)
def test_the_text_is_the_targets_own(
    rule: str, noise: str, gammas: list[int], draft: TabularModel
) -> None:
    assert RULES[rule].same_text
    for seed in (0, 1):
        assert decode(rule, draft, gammas, seed, noise) == target_only(rule, seed)


def test_under_rejection_the_text_is_another_one() -> None:
    assert not RULES["rejection"].same_text
    texts = [decode("rejection", draft, [4], 0, "own") for draft in DRAFTS]
    assert texts[0] != texts[1] != target_only("match", 0)


def test_another_seed_gives_another_text() -> None:
    assert target_only("match", 0) != target_only("match", 1)
    assert target_only("greedy", 0) == target_only("greedy", 1)


def test_shared_noise_is_accepted_more_often() -> None:
    """`coupled` against `match`: the same text in fewer rounds."""

    def rounds(noise: str) -> int:
        draws, text, count = Sampler(3), [0], 0
        while len(text) < 600:
            draws.begin_round(count := count + 1)
            q = DRAFTS[0].distribution(text)
            at = len(text)
            x = (
                draws.race(q, at, node=0)
                if noise == "target"
                else draws.categorical(q, at, 0, Purpose.DRAFT)
            )
            p = np.stack([TARGET.distribution(text), TARGET.distribution([*text, x])])
            verdict = RULES["match"].verify(Draft.chain([x], q[None], 6), p, draws, at)
            text += [x] * len(verdict.path) + [verdict.token]
        return count

    assert rounds("target") < 0.9 * rounds("own")
