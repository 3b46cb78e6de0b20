"""Early exit: exact on real models, its cache shared, its cost saved again."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

import specviz as sv
from specviz.core.contract import Context, Draft, Sampling
from specviz.core.draws import Draws, Sampler
from specviz.core.rules import RULES
from specviz.decoding.hf.target import HFTarget
from specviz.decoding.loop import rounds
from specviz.decoding.sampling import logits_to_distributions
from specviz.decoding.stopping import Stopping
from specviz.drafters.early_exit import EarlyExit
from specviz.lossless import enumerate_distribution, total_variation
from tests.decoding import families as f
from tests.decoding.halves import counted
from tests.drafters.changed import Changed
from tests.drafters.small import plain_distribution, small_llama
from tests.lossless.chisquare import p_value, power

TEXT = [1, 5, 9, 33, 80]
FAMILIES: dict[str, Callable[[], f.Pair]] = {
    "llama": partial(f.make, partial(f.llama, num_hidden_layers=4)),
    "mistral": partial(f.make, partial(f.mistral, num_hidden_layers=4)),
    "qwen2": partial(f.make, f.qwen2, seed=1),
    "qwen2-mixed": f.FAMILIES["qwen2-mixed"],
}
every_family = pytest.mark.parametrize("family", FAMILIES)


@functools.cache
def pair_of(family: str) -> sv.Pair:
    return sv.Pair(FAMILIES[family]()[0])


def last_exit(pair: sv.Pair) -> int:
    return len(pair.target.model.model.layers) - 1


def run(pair: sv.Pair, prompt: Any = TEXT, **options: Any) -> sv.Trace:
    return sv.generate(pair, prompt, progress=False, **options)


# Real models ------------------------------------------------------------------------------------


@every_family
def test_greedy_text_is_the_targets_over_300_tokens(family: str) -> None:
    pair = pair_of(family)
    plain = run(pair, gamma=0, temperature=0, max_new_tokens=300)
    assert len(set(plain.tokens.tolist())) >= 20, "a text that repeats itself is no witness"
    drafted = run(pair, drafter=EarlyExit(last_exit(pair)), temperature=0, max_new_tokens=300)
    assert drafted.tokens.tolist() == plain.tokens.tolist()
    verdicts = [node.accepted for round_ in drafted.rounds for node in round_.nodes]
    assert 30 <= sum(verdicts) <= 0.8 * len(verdicts)
    assert drafted.check().ok


@pytest.mark.parametrize("verify", ["rejection", "match", "block"])
def test_sampled_text_replays(verify: str) -> None:
    pair = pair_of("llama")
    trace = run(
        pair, drafter=EarlyExit(3, gamma=3), verify=verify, seed=4, temperature=0.8, top_k=20
    )
    assert trace.check().ok and trace.meta["lossless"]
    if verify == "match":
        plain = run(pair, gamma=0, seed=4, temperature=0.8, top_k=20)
        assert trace.tokens.tolist() == plain.tokens.tolist()
    assert trace.meta["drafter"] == {"name": "early_exit", "gamma": 3, "layer": 3}


def test_a_combination_of_lookup_and_early_exit() -> None:
    """Rounds in which another drafter proposed leave nothing half-done behind."""
    pair = pair_of("llama")
    pattern = TEXT * 4
    drafter = sv.Combined(sv.PromptLookup(gamma=3, min_ngram=2), EarlyExit(3, gamma=3))
    both = run(pair, pattern, drafter=drafter, temperature=0, max_new_tokens=60)
    plain = run(pair, pattern, gamma=0, temperature=0, max_new_tokens=60)
    assert both.tokens.tolist() == plain.tokens.tolist()
    assert both.check().ok


def test_the_end_of_the_context_is_never_passed() -> None:
    model = small_llama(5, layers=2)
    pair = sv.Pair(model)
    trace = run(pair, [1, 2, 3] * 20, drafter=EarlyExit(1, gamma=5), max_new_tokens=30)
    assert len(trace.tokens) == 4 and trace.finish_reason == "context"


def test_nothing_is_proposed_after_an_end() -> None:
    model = small_llama(3, layers=2)
    model.generation_config.eos_token_id = 2
    pair = sv.Pair(model)
    traces = [run(pair, [0], drafter=EarlyExit(1), seed=i, max_new_tokens=8) for i in range(12)]
    ends = [node.token == 2 for t in traces for r in t.rounds for node in r.nodes[:-1]]
    assert ends and not any(ends)
    assert any(t.finish_reason == "eos" for t in traces)


# The cache and the cost -------------------------------------------------------------------------


def test_it_has_no_cache_of_its_own() -> None:
    trace = run(pair_of("llama"), drafter=EarlyExit(3), max_new_tokens=20)
    for round_ in trace.rounds:
        draft, target = round_.draft_cache, round_.target_cache
        assert draft.before == draft.after_pass == draft.after == 0
        assert target.after_pass == round_.position + len(round_.nodes)
        assert target.after == round_.position + len(round_.tokens) - 1


def test_drafting_costs_no_layer_that_verification_would_not_run_anyway() -> None:
    """Every token fed goes once through every layer: as many as for the same drafts by lookup."""
    pair = pair_of("llama")
    depth = last_exit(pair) + 1
    HFTarget(pair.target).open_exit(2)  # its trial is not counted
    with counted(pair.target) as seen:
        trace = run(pair, drafter=EarlyExit(2, gamma=4), max_new_tokens=40, temperature=0)
    fed = len(TEXT) - 1 + sum(1 + len(r.nodes) for r in trace.rounds)
    assert seen == dict.fromkeys(range(depth), fed)


def test_one_pass_of_the_upper_layers_a_round() -> None:
    pair = pair_of("llama")
    calls = {1: 0, 3: 0}

    def count(layer: int) -> Any:
        def hook(*_: Any) -> None:
            calls[layer] += 1

        return hook

    layers = pair.target.model.model.layers
    hooks = [layers[layer].register_forward_pre_hook(count(layer)) for layer in calls]
    trace = run(pair, drafter=EarlyExit(2, gamma=4), max_new_tokens=20)
    for hook in hooks:
        hook.remove()
    assert calls[3] == len(trace.rounds)
    assert calls[1] > calls[3], "the lower layers run token by token"


def test_an_interrupt_keeps_the_trace_and_the_model() -> None:
    pair = pair_of("llama")
    inner = pair.target.model.model
    layers = inner.layers
    passes = iter(range(1000))

    def stop(*_: Any) -> None:
        if next(passes) == 30:
            raise KeyboardInterrupt

    hook = layers[0].register_forward_pre_hook(stop)
    trace = run(pair, drafter=EarlyExit(2, gamma=4), max_new_tokens=200, seed=1)
    hook.remove()
    assert trace.meta["interrupted"] and 0 < len(trace.tokens) < 200
    assert inner.layers is layers and len(layers) == 4
    whole = run(pair, drafter=EarlyExit(2, gamma=4), max_new_tokens=len(trace.tokens), seed=1)
    assert whole.tokens[: len(trace.tokens)].tolist() == trace.tokens.tolist()


# The distribution, exactly
# -------------------------------------------------------------------------------

PROMPT = np.array([0, 1, 2, 1])
LENGTH = 2


class OtherExit(Changed, EarlyExit):
    """Draws from one exit, but reports the distribution of another as q."""

    def change(self, inner: Any, context: Context, draws: Draws) -> Draft:
        right = inner.propose(context, draws)
        session, text, told = HFTarget(tiny().target), context.tokens, []
        for node in range(len(right)):
            ids = np.append(text, right.tokens[:node])
            told.append(
                logits_to_distributions(
                    session.draft_step(ids, self.layer + 1)[None], context.sampling
                )[0]
            )
        if not told:
            return right
        return Draft.chain(right.tokens.tolist(), np.stack(told), right.q.shape[1])


@functools.cache
def tiny() -> sv.Pair:
    return sv.Pair(small_llama(3, layers=3, seed=SEED, spread=1.5))


SEED = 6


def distribution() -> dict[tuple[int, ...], float]:
    return plain_distribution(tiny().target, PROMPT, LENGTH)


@pytest.mark.parametrize(
    ("verify", "layer", "gamma", "length"),
    [("rejection", 1, 2, 3), ("rejection", 2, 1, 3), ("block", 1, 2, 3), ("match", 1, 1, 2)],
)
def test_the_distribution_is_the_targets_exactly(
    verify: str, layer: int, gamma: int, length: int
) -> None:
    drafter = EarlyExit(layer, gamma)
    induced = enumerate_distribution(tiny(), drafter, verify=verify, prompt=PROMPT, length=length)
    assert total_variation(induced, plain_distribution(tiny().target, PROMPT, length)) < 1e-12


def test_twin_the_distribution_of_another_exit_is_reported() -> None:
    induced = enumerate_distribution(tiny(), OtherExit(1, gamma=1), prompt=PROMPT, length=LENGTH)
    assert total_variation(induced, distribution()) > 0.3


def sampled(drafter: EarlyExit, n: int) -> Iterator[tuple[int, ...]]:
    """Texts of independent runs of the shipped loop."""
    target = HFTarget(tiny().target)
    for sequence in range(n):
        target.begin()
        session = drafter.start(tiny(), target, PROMPT)
        happened = rounds(
            target, session, RULES["rejection"], PROMPT, sampling=Sampling(),
            draws=Sampler(7, sequence), stopping=Stopping(len(PROMPT), LENGTH, None),
        )  # fmt: skip
        yield tuple(int(token) for round_ in happened for token in round_.emitted)


def test_chi_square_of_sampled_texts() -> None:
    n, level = 250, 1e-3
    assert p_value(sampled(EarlyExit(1, gamma=1), n), distribution()) > 0.01
    assert p_value(sampled(OtherExit(1, gamma=1), n), distribution()) < level
    wrong = enumerate_distribution(tiny(), OtherExit(1, gamma=1), prompt=PROMPT, length=LENGTH)
    assert power(distribution(), wrong, n, level) > 0.99, (
        "strong enough to see the fault every time"
    )


# Refused ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("layer", [0, -1])
def test_a_layer_below_one(layer: int) -> None:
    with pytest.raises(ValueError, match=f"layer must be a whole number >= 1, got {layer}"):
        EarlyExit(layer)


@pytest.mark.parametrize("layer", [True, 1.5, "2", None])
def test_a_layer_that_is_no_number(layer: Any) -> None:
    with pytest.raises(TypeError, match="layer must be a whole number"):
        EarlyExit(layer)


@pytest.mark.parametrize("layer", [4, 5, 100])
def test_a_layer_beyond_the_depth(layer: int) -> None:
    with pytest.raises(ValueError, match=f"1 to 3 .* 4 layers deep, got {layer}"):
        run(pair_of("llama"), drafter=EarlyExit(layer))


def test_models_without_layers_or_of_another_build() -> None:
    table = sv.tabular.TabularModel([0.5, 0.5])
    with pytest.raises(ValueError, match="'table' of kind 'tabular'"):
        run(sv.tabular.TabularPair(table, table), [0], drafter=EarlyExit(1))
    gpt2 = sv.Pair(f.FAMILIES["gpt2"]()[0])
    with pytest.raises(ValueError, match="model type 'gpt2' cannot draft by early exit"):
        run(gpt2, drafter=EarlyExit(1))
