"""End to end on many families: greedy, match, coupled and rejection, through ``sv.generate``."""

from __future__ import annotations

from functools import cache
from typing import Any, ClassVar

import numpy as np
import pytest
import torch

import specviz as sv
from specviz.core.contract import Sampling
from specviz.core.trace.trace import Trace
from specviz.decoding.hf.cache import UnsupportedModelError
from specviz.drafters.draft_model import DraftModel, DraftModelSession
from tests.api.pairs import sharp
from tests.decoding.cached_pair import (
    continuations,
    joint_distribution,
    memoised,
    resampling,
    witness,
)
from tests.decoding.families import CHAINS_ONLY, FAMILIES, llama, plain
from tests.lossless.chisquare import p_value, power
from tests.lossless.planted import WRONG_RULES

PROMPT = [1, 2, 3, 4]
LENGTH = 60
ALL = {**FAMILIES, **CHAINS_ONLY}


@cache
def pair_of(family: str) -> sv.Pair:
    target, draft = ALL[family]()
    return sv.Pair(target=target, draft=draft)


def run(pair: Any, prompt: Any = PROMPT, length: int = LENGTH, **how: Any) -> Trace:
    return sv.generate(pair, prompt, max_new_tokens=length, progress=False, **how)


@pytest.mark.parametrize("family", ALL)
def test_greedy_is_plain_greedy(family: str) -> None:
    """Against passes with no cache, no mask and none of our code."""
    pair = pair_of(family)
    kinds: set[int] = set()
    for prompt in (PROMPT, [9, 8, 7], [5, 50], [20]):
        trace = run(pair, prompt, gamma=3, temperature=0)
        text = list(prompt)
        for _ in range(LENGTH):
            text.append(int(plain(pair.target, text).argmax()))
        assert trace.tokens.tolist() == text[len(prompt) :]
        assert trace.check().ok
        kinds |= set(trace.round_table["closing_kind"].tolist())
        if kinds >= {1, 2}:
            return
    raise AssertionError("rejections and full acceptance must both have been rolled back")


@pytest.mark.parametrize("family", ALL)
def test_match_and_coupled_are_target_only_at_the_same_seed(family: str) -> None:
    pair = pair_of(family)
    alone = run(pair, length=30, gamma=0, seed=2)
    for rule in ("match", "coupled"):
        trace = run(pair, length=30, gamma=3, verify=rule, seed=2)
        assert trace.tokens.tolist() == alone.tokens.tolist(), rule
        assert trace.check().ok
    other = run(pair, length=30, gamma=3, verify="rejection", seed=2)
    assert other.tokens.tolist() != alone.tokens.tolist(), (
        "the planted twin: not a matter of course"
    )
    assert other.check().ok


@pytest.mark.parametrize("family", ["llama", "gpt2", "mistral"])
def test_draft_equal_to_target_gives_gamma_plus_1_tokens_a_pass(family: str) -> None:
    target = pair_of(family).target
    trace = run(sv.Pair(target=target, draft=target), length=40, gamma=4)
    assert trace.round_table["emitted"].tolist() == [5] * 8


class MixedSession(DraftModelSession):
    """gamma 0, 3, 0, 1, and again: rounds with no proposal in between."""

    schedule_of_rounds = (0, 3, 0, 1)

    def __init__(self, recipe: Any, model: Any) -> None:
        super().__init__(recipe, model)
        self._round = 0
        self._gamma = self.schedule_of_rounds[0]

    def commit(self, emitted: Any, path: Any) -> None:
        super().commit(emitted, path)
        self._round += 1
        self._gamma = self.schedule_of_rounds[self._round % 4]


class ForgetfulSession(MixedSession):
    """Trims its own cache one token too far after every round: slower, yet right."""

    def commit(self, emitted: Any, path: Any) -> None:
        super().commit(emitted, path)
        self.model.crop(max(0, self.model.length - 1))


class SkippingSession(MixedSession):
    """Takes its last proposal for read after full acceptance, which it never was: wrong."""

    def commit(self, emitted: Any, path: Any) -> None:
        everything = len(path) == self._proposed > 0
        super().commit(emitted, path)
        if everything:
            self.model.length += 1  # type: ignore[misc]


class Mixed(DraftModel):
    session: ClassVar[type[MixedSession]] = MixedSession

    def start(self, pair: Any, target: Any, prompt: Any) -> MixedSession:
        return self.session(self, super().start(pair, target, prompt).model)


class Forgetful(Mixed):
    session = ForgetfulSession


class Skipping(Mixed):
    session = SkippingSession


@pytest.mark.parametrize(("family", "length"), [("llama", 400), ("mistral", 80), ("gemma2", 80)])
def test_mixed_gammas_over_hundreds_of_rounds(family: str, length: int) -> None:
    """Draft = target: the same greedy text, every proposal accepted, whatever came before."""
    target = pair_of(family).target
    pair = sv.Pair(target=target, draft=target)
    plain_text = run(pair, length=length, gamma=0, temperature=0).tokens.tolist()
    for drafter in (Mixed(), Forgetful()):
        trace = run(pair, length=length, drafter=drafter, temperature=0)
        assert trace.round_table["emitted"].tolist() == [1, 4, 1, 2] * (length // 8)
        assert trace.tokens.tolist() == plain_text
    assert trace.check().ok


def test_a_draft_cache_that_is_one_short_after_full_acceptance_shows() -> None:
    """The planted twin, at temperature 1,
    a draft that missed a token no longer has the distribution p.
    """
    target = pair_of("gpt2").target
    pair = sv.Pair(target=target, draft=target)
    assert len(run(pair, length=80, drafter=Mixed())) == 40
    assert len(run(pair, length=80, drafter=Skipping())) > 42


# -- statistics -----------------------------------------------------------------------------------

TOP_4 = Sampling(top_k=4)
LEVEL = 1e-3


@pytest.mark.parametrize("family", ["llama", "gpt2", "gemma2"])
def test_three_tokens_by_chi_square(family: str) -> None:
    """gamma 2 and length 3: the bonus is seen too. The twin resamples from p."""
    pair = memoised(pair_of(family))
    n, seed = 1500, 4
    prompt = witness(pair, np.random.default_rng(0).integers(1, 96, (12, 4)).tolist(), TOP_4)
    distribution = joint_distribution(pair.target, prompt, 3, TOP_4)
    p, q = pair.target.distribution(prompt, TOP_4), pair.draft.distribution(prompt, TOP_4)
    shift = resampling(p, q) / np.where(p > 0, p, 1)
    wrong = {text: mass * shift[text[0]] for text, mass in distribution.items()}
    assert power(distribution, wrong, n, 1e-6) > 0.99, (
        "the fault in the first token alone would be seen"
    )

    def drawn(rule: Any) -> list[tuple[int, ...]]:
        return continuations(
            pair, DraftModel(2), rule, prompt, length=3, count=n, seed=seed, sampling=TOP_4
        )

    assert p_value(drawn("rejection"), distribution) > LEVEL
    assert p_value(drawn(WRONG_RULES["resample_from_p"]), distribution) < 1e-6


# -- embeddings of different sizes ----------------------------------------------------------------


@pytest.mark.parametrize("sizes", [(16, 12), (12, 16)], ids=["draft knows fewer", "knows more"])
def test_padded_vocabularies(sizes: tuple[int, int]) -> None:
    """Every id of the target can be emitted, no id of the draft alone,
    the distribution is the target's.
    """
    models = []
    for seed, size in enumerate(sizes):
        torch.manual_seed(seed)
        models.append(sharp(llama(vocab_size=size)))
    pair = sv.Pair(target=models[0], draft=models[1])
    assert pair.shared_vocab == 12
    emitted: set[int] = set()
    for seed in range(2):
        trace = run(pair, PROMPT, 40, gamma=2, seed=seed, temperature=2.0)
        assert trace.check().ok
        emitted |= set(trace.tokens.tolist())
        assert trace.node_table["token"].max() < 12
        alone = run(pair, PROMPT, 40, gamma=0, seed=seed, temperature=2.0)
        for rule in ("match", "coupled"):
            same = run(pair, PROMPT, 40, gamma=2, seed=seed, temperature=2.0, verify=rule)
            assert same.tokens.tolist() == alone.tokens.tolist()
    assert max(emitted) < sizes[0]
    assert (max(emitted) >= 12) == (sizes[0] == 16), "the target's tail must be in reach"

    remembered = memoised(pair)
    settings = Sampling(temperature=2.0, top_k=8)
    distribution = joint_distribution(remembered.target, PROMPT, 2, settings)
    texts = continuations(
        remembered, DraftModel(1), "rejection", PROMPT, length=2, count=1000, seed=1,
        sampling=settings,
    )  # fmt: skip
    assert p_value(texts, distribution) > LEVEL


def test_a_recurrent_model_is_refused_by_name() -> None:
    import transformers as tf

    config = tf.MambaConfig(vocab_size=16, hidden_size=8, state_size=4, num_hidden_layers=1)
    pair = sv.Pair(target=tf.MambaForCausalLM(config))
    with pytest.raises(UnsupportedModelError, match=r"model type 'mamba' .* cannot be rolled back"):
        sv.generate(pair, [1, 2], gamma=0)
