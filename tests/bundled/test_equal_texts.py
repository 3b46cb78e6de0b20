"""Token for token: greedy is plain greedy, match and coupled are target-only at the same seed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from transformers import GenerationConfig

import specviz as sv
from specviz.core.contract import Draft
from specviz.decoding.hf.target import HFTarget
from tests.bundled.prompts import NOVELS, PROMPTS, RECORDS, STORIES

LENGTH = 300
ONE_OF_EACH = [STORIES[0], NOVELS[0], RECORDS[0]]


def plain_greedy(pair: sv.Pair, prompt: str, length: int) -> list[int]:
    """Greedy decoding by transformers itself, past the end of a text as well."""
    model = pair.target.model
    ids = torch.as_tensor(pair.encode(prompt))[None]
    settings = GenerationConfig(do_sample=False, max_new_tokens=length, pad_token_id=0)
    with pytest.MonkeyPatch.context() as changed:  # or its own end token would be filled in
        changed.setattr(model.generation_config, "eos_token_id", None)
        out = model.generate(ids, attention_mask=torch.ones_like(ids), generation_config=settings)
    return [int(token) for token in out[0, ids.shape[1] :]]


def first_difference(pair: sv.Pair, prompt: str, ours: Any, theirs: Any) -> str:
    """Say where two texts part, and by how much the target prefers one token there."""
    where = next((i for i, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b), None)
    if where is None:
        return f"{len(ours)} against {len(theirs)} tokens"
    ids = np.concatenate([pair.encode(prompt), np.asarray(ours[:where], dtype=np.int64)])
    logits = HFTarget(pair.target).verify(ids, Draft.empty(pair.vocab_size))[0]
    gap = float(logits[ours[where]] - logits[theirs[where]])
    return f"they part at token {where}; the target's logits there differ by {gap:.2g}"


def assert_greedy(pair: sv.Pair, prompt: str, length: int) -> None:
    trace = sv.generate(pair, prompt, gamma=4, temperature=0, max_new_tokens=length, progress=False)
    plain = plain_greedy(pair, prompt, length)
    found = trace.tokens.tolist()
    assert len(found) == length
    assert found == plain, first_difference(pair, prompt, found, plain)
    assert len(trace) < length, "nothing was ever accepted: no speculation took place"


def assert_same_as_target_only(pair: sv.Pair, prompt: str, length: int, seed: int) -> None:
    def run(**how: Any) -> sv.Trace:
        return sv.generate(pair, prompt, max_new_tokens=length, seed=seed, progress=False, **how)

    plain = run(gamma=0).tokens.tolist()
    assert len(plain) == length
    passes = {}
    for rule in ("match", "coupled"):
        trace = run(gamma=4, verify=rule)
        found = trace.tokens.tolist()
        assert found == plain, f"{rule}: {first_difference(pair, prompt, found, plain)}"
        passes[rule] = len(trace)
    assert passes["coupled"] <= passes["match"] < length, "shared noise agrees more often"


@pytest.mark.parametrize("prompt", ONE_OF_EACH)
def test_greedy_is_plain_greedy(pair: sv.Pair, prompt: str) -> None:
    assert_greedy(pair, prompt, 80)


@pytest.mark.parametrize("prompt", ONE_OF_EACH[:2])
def test_match_and_coupled_are_target_only_at_the_same_seed(pair: sv.Pair, prompt: str) -> None:
    assert_same_as_target_only(pair, prompt, 60, seed=5)


@pytest.mark.slow
@pytest.mark.parametrize("prompt", PROMPTS)
def test_greedy_is_plain_greedy_over_300_tokens(pair: sv.Pair, prompt: str) -> None:
    assert_greedy(pair, prompt, LENGTH)


@pytest.mark.slow
@pytest.mark.parametrize("prompt", PROMPTS)
def test_match_and_coupled_are_target_only_over_300_tokens(pair: sv.Pair, prompt: str) -> None:
    assert_same_as_target_only(pair, prompt, LENGTH, seed=PROMPTS.index(prompt))


def test_rejection_is_not_the_same_text(pair: sv.Pair) -> None:
    """The planted twin: equality is not a matter of course."""
    plain, other = (
        sv.generate(pair, STORIES[0], max_new_tokens=40, seed=5, progress=False, **how)
        for how in ({"gamma": 0}, {"gamma": 4, "verify": "rejection"})
    )
    assert plain.tokens.tolist() != other.tokens.tolist()


def test_draft_equal_to_target_gives_gamma_plus_1_tokens_a_pass(pair: sv.Pair) -> None:
    same = sv.Pair(target=pair.target, draft=pair.target, tokenizer=pair.tokenizer)
    trace = sv.generate(same, STORIES[0], gamma=3, max_new_tokens=24, progress=False)
    assert trace.round_table["emitted"].tolist() == [4] * 6
    assert trace.check().ok
