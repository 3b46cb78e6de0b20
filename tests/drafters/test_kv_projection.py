"""Projected keys and values: the map is right, the rounds replay,
and the distribution is not the target's.

The twin of every "not lossless" is the same drafter with nothing, or with an exact map, projected.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
import transformers

import specviz as sv
from specviz.api import arguments
from specviz.core.contract import Draft, Sampling
from specviz.core.draws import Sampler
from specviz.core.rules import RULES
from specviz.decoding.hf.cache import held, read_rows
from specviz.decoding.hf.target import HFTarget
from specviz.decoding.loop import rounds
from specviz.decoding.stopping import Stopping
from specviz.drafters.kv_projection import KVProjection, fit_projection
from specviz.lossless import enumerate_distribution, total_variation
from specviz.models.cache_projection import CacheProjection, flatten, shape_of
from tests.drafters.changed import Unprojected
from tests.drafters.small import plain_distribution, small_llama, with_noise
from tests.lossless.chisquare import p_value, power

PROMPT = np.array([0, 1, 2, 1, 0, 2])
LENGTH = 2


@functools.cache
def tiny() -> sv.Pair:
    target = small_llama(3, layers=2, seed=2, spread=1.5)
    return sv.Pair(target, with_noise(target, 0.6))


@functools.cache
def fitted() -> CacheProjection:
    return fit_projection(tiny(), tokens=640, progress=False)


@functools.cache
def distribution() -> dict[tuple[int, ...], float]:
    return plain_distribution(tiny().target, PROMPT, LENGTH)


def run(pair: Any, **options: Any) -> sv.Trace:
    return sv.generate(pair, PROMPT, progress=False, **options)


@pytest.fixture
def warned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arguments, "_WARNED", {"kv_projection"})


def identity(pair: sv.Pair) -> CacheProjection:
    """The map of a model to itself."""
    session = HFTarget(pair.target)
    session.verify(PROMPT, Draft.empty(pair.vocab_size))
    shape = shape_of(read_rows(session.cache, 0, 2))
    size = shape[0] * 2 * shape[1] * shape[2]
    return CacheProjection(torch.eye(size), torch.zeros(size), shape, shape, 1.0)


# Not the target's distribution
# ---------------------------------------------------------------------------


def test_the_distribution_is_off_exactly() -> None:
    induced = enumerate_distribution(
        tiny(), KVProjection(1, projection=fitted()), prompt=PROMPT, length=LENGTH
    )
    assert total_variation(induced, distribution()) > 0.3
    twin = enumerate_distribution(
        tiny(), Unprojected(1, projection=fitted()), prompt=PROMPT, length=LENGTH
    )
    assert total_variation(twin, distribution()) < 1e-12


def test_an_exact_map_would_be_lossless() -> None:
    """Draft = target and the identity: so the fault lies in the map, not in the machinery."""
    same = sv.Pair(tiny().target, tiny().target)
    drafter = KVProjection(1, projection=identity(same))
    induced = enumerate_distribution(same, drafter, prompt=PROMPT, length=LENGTH)
    assert total_variation(induced, distribution()) < 1e-5  # the map is float32


def sampled(drafter: KVProjection, n: int) -> Iterator[tuple[int, ...]]:
    target = HFTarget(tiny().target)
    for sequence in range(n):
        target.begin()
        session = drafter.start(tiny(), target, PROMPT)
        happened = rounds(
            target, session, RULES["rejection"], PROMPT, sampling=Sampling(),
            draws=Sampler(11, sequence), stopping=Stopping(len(PROMPT), LENGTH, None),
        )  # fmt: skip
        yield tuple(int(token) for round_ in happened for token in round_.emitted)


def test_chi_square_of_sampled_texts() -> None:
    n, level = 200, 1e-3
    assert p_value(sampled(KVProjection(1, projection=fitted()), n), distribution()) < level
    assert p_value(sampled(Unprojected(1, projection=fitted()), n), distribution()) > 0.01
    wrong = enumerate_distribution(
        tiny(), KVProjection(1, projection=fitted()), prompt=PROMPT, length=LENGTH
    )
    assert power(distribution(), wrong, n, level) > 0.99, (
        "strong enough to see the fault every time"
    )


@pytest.mark.usefixtures("warned")
def test_the_rounds_follow_and_the_trace_says_that_it_is_lossy() -> None:
    trace = run(tiny(), drafter=KVProjection(3, projection=fitted()), max_new_tokens=24, seed=2)
    assert trace.check().ok, (
        "every decision follows from the distributions recorded: p itself is off"
    )
    assert trace.meta["lossless"] is False
    assert trace.meta["drafter"]["name"] == "kv_projection"
    assert 0 < trace.meta["drafter"]["explained"] < 1
    plain = run(tiny(), gamma=0, seed=2, max_new_tokens=24)
    other = run(tiny(), drafter=KVProjection(3, projection=fitted()), verify="match", seed=2,
                max_new_tokens=24)  # fmt: skip
    assert other.tokens.tolist() != plain.tokens.tolist()


def test_it_warns_once(monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder) -> None:
    monkeypatch.setattr(arguments, "_WARNED", set())
    with pytest.warns(arguments.LossyWarning, match=r"drafter=KVProjection\(\) is lossy") as seen:
        run(tiny(), drafter=KVProjection(1, projection=fitted()), max_new_tokens=2)
    assert seen[0].filename == __file__, "the warning points at the caller's line"
    run(tiny(), drafter=KVProjection(1, projection=fitted()), max_new_tokens=2)  # errors if again
    assert not recwarn.list


# What is replaced -------------------------------------------------------------------------------


@pytest.mark.usefixtures("warned")
def test_the_target_never_reads_the_prompt() -> None:
    pair, fed = tiny(), []
    hook = pair.target.model.register_forward_pre_hook(
        lambda module, args, kwargs: fed.append(kwargs["input_ids"].shape[1]), with_kwargs=True
    )
    trace = run(pair, drafter=KVProjection(2, projection=fitted()), max_new_tokens=12)
    hook.remove()
    assert fed == [1 + len(round_.nodes) for round_ in trace.rounds]
    for round_ in trace.rounds:
        assert round_.target_cache.after == round_.position + len(round_.tokens) - 1


def test_the_cache_holds_the_projection_after_each_round() -> None:
    pair, drafter = tiny(), KVProjection(2, projection=fitted())
    target = HFTarget(pair.target)
    drafting = drafter.start(pair, target, PROMPT)
    happened = rounds(
        target, drafting, RULES["rejection"], PROMPT, sampling=Sampling(),
        draws=Sampler(0), stopping=Stopping(len(PROMPT), 12, None),
    )  # fmt: skip
    for _ in happened:
        session = drafting.model
        assert isinstance(session, HFTarget)
        end = min(session.length, target.length)
        assert end >= target.length - 1, "at most the last accepted token has not been drafted from"
        wanted = fitted()(flatten(read_rows(session.cache, 0, end), session.model, 0))
        found = flatten(read_rows(target.cache, 0, end), target.model, 0)
        torch.testing.assert_close(found, wanted, atol=1e-4, rtol=1e-4)
        assert held(target.cache) == target.length


# Fitting ---------------------------------------------------------------------------------------


def test_fitting_is_deterministic_and_explains_something() -> None:
    again = fit_projection(tiny(), tokens=640, progress=False)
    other = fit_projection(tiny(), tokens=640, seed=1, progress=False)
    assert torch.equal(again.weight, fitted().weight)
    assert not torch.equal(other.weight, fitted().weight)
    assert 0.2 < fitted().explained < 0.999


def test_fitting_to_texts_given() -> None:
    rng = np.random.default_rng(0)
    texts = [rng.integers(0, 3, 40).tolist() for _ in range(4)]
    assert fit_projection(tiny(), texts).explained < 1
    with pytest.raises(ValueError, match="at least 20 tokens to be fitted to, got 3"):
        fit_projection(tiny(), [[0, 1, 2]])


@pytest.mark.usefixtures("warned")
def test_without_a_map_one_is_fitted_once() -> None:
    target = small_llama(3, layers=2, seed=8)
    pair = sv.Pair(target, with_noise(target, 0.4))
    first, second = (
        KVProjection(gamma).start(pair, HFTarget(pair.target), PROMPT) for gamma in (1, 2)
    )
    assert first.projection is second.projection


# Refused ----------------------------------------------------------------------------------------


@pytest.mark.usefixtures("warned")
def test_bad_input() -> None:
    with pytest.raises(TypeError, match="projection must come from fit_projection"):
        KVProjection(projection="kv.safetensors")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no draft model"):
        run(sv.Pair(tiny().target), drafter=KVProjection())
    with pytest.raises(ValueError, match="no draft model: load one"):
        fit_projection(sv.Pair(tiny().target))
    table = sv.tabular.TabularModel.random(3, seed=0)
    tables = sv.tabular.TabularPair(table, table)
    with pytest.raises(ValueError, match="a table has no keys and values"):
        run(tables, drafter=KVProjection())
    with pytest.raises(ValueError, match="a table has no keys and values"):
        fit_projection(tables)
    with pytest.raises(TypeError, match="put it in brackets"):
        fit_projection(tiny(), "one text")


@pytest.mark.usefixtures("warned")
def test_a_map_between_other_models() -> None:
    deeper = sv.Pair(small_llama(3, layers=3), tiny().draft)
    with pytest.raises(ValueError, match=r"fitted to another target: .* \(2, 1, 4\), this one has"):
        run(deeper, drafter=KVProjection(projection=fitted()))
    other = sv.Pair(tiny().target, small_llama(3, layers=1))
    with pytest.raises(ValueError, match=r"fitted to another draft: .* this one has \(1, 1, 4\)"):
        run(other, drafter=KVProjection(projection=fitted()))


@pytest.mark.usefixtures("warned")
def test_models_whose_layers_rotate_in_different_ways() -> None:
    config = transformers.Gemma3TextConfig(
        vocab_size=8, hidden_size=8, intermediate_size=8, num_hidden_layers=2, head_dim=4,
        num_attention_heads=2, num_key_value_heads=1, max_position_embeddings=32,
        bos_token_id=None, eos_token_id=None, pad_token_id=None,
    )  # fmt: skip
    gemma = transformers.Gemma3ForCausalLM(config)
    pair = sv.Pair(gemma, gemma)
    for call in (lambda: run(pair, drafter=KVProjection()), lambda: fit_projection(pair)):
        with pytest.raises(ValueError, match="'gemma3_text' cannot be projected: its layers"):
            call()
