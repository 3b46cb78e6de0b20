"""Ties at the edge of top-k, top-p and greedy decoding: engines may keep any of the tied tokens."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

import specviz as sv
from specviz.core.contract import Sampling
from specviz.lossless.audit.ties import all_kept, as_one, find_ties, shared_as_seen
from specviz.lossless.statistics.sample import END
from tests.lossless.tiny import small

VOCAB = 12
PROMPT = [1, 4, 6]
N = 1_500


@cache
def tied_pair() -> Any:
    """A pair whose target gives tokens 2i and 2i + 1 the same logit, whatever the context."""
    target, draft = small(0, VOCAB, end=None), small(1, VOCAB, end=None)
    with torch.no_grad():
        head = target.get_output_embeddings().weight
        head[1::2] = head[0::2]
    return sv.Pair(target=target, draft=draft)


def plain(**generation: Any) -> Any:
    return sv.lossless.adapters.transformers.plain(tied_pair(), max_new_tokens=3, **generation)


def audited(sampler: Any, n: int = N, **settings: Any) -> Any:
    target = tied_pair().target
    return sv.audit(sampler, PROMPT, target=target, n=n, length=3, progress=False, **settings)


@pytest.mark.parametrize("setting", [{"top_k": 5}, {"top_p": 0.6}])
def test_plain_sampling_of_transformers_is_not_convicted_for_a_tie(setting: Any) -> None:
    found = audited(plain(**setting), **setting)
    assert found.verdict.value == "NO_DISCREPANCY_FOUND"
    assert "Ties: in " in found.text


def test_where_the_edge_falls_between_ties_there_is_nothing_to_say() -> None:
    found = audited(plain(top_k=6), top_k=6)
    assert found.verdict.value == "NO_DISCREPANCY_FOUND"
    assert "Ties:" not in found.text


@pytest.mark.parametrize("keep", ["highest ids", "at random", "all"])
def test_every_way_to_break_ties_is_accepted(keep: str) -> None:
    found = audited(own_sampler(keep), top_k=5)
    assert found.verdict.value == "NO_DISCREPANCY_FOUND"
    assert "so they were judged" in found.text


@pytest.mark.parametrize(
    "wrong",
    [
        {"keep": "highest ids", "top_k": 7},
        {"keep": "all", "top_k": 8},
        {"keep": "highest ids", "temperature": 0.7},
    ],
)
def test_a_sampler_that_is_wrong_elsewhere_is_convicted(wrong: Any) -> None:
    found = audited(own_sampler(**wrong), top_k=5)
    assert found.exit_code == 1
    assert "however they are read" in found.text


def own_sampler(keep: str, top_k: int = 5, temperature: float = 1.0) -> Any:
    """A sampler of its own that breaks the ties of top-k in its way."""
    model = tied_pair().target.model

    def draw(prompt: Any, n: int, seed: int) -> Any:
        random = np.random.default_rng(seed)
        ids = np.tile(np.asarray(prompt), (n, 1))
        for _ in range(3):
            with torch.inference_mode():
                logits = model(input_ids=torch.as_tensor(ids)).logits[:, -1].double().numpy()
            rows = np.stack([kept(row / temperature, random) for row in logits])
            drawn = [random.choice(VOCAB, p=row) for row in rows]
            ids = np.column_stack([ids, drawn])
        return ids[:, len(prompt) :]

    def kept(row: Any, random: Any) -> Any:
        rounded = row.round(4)  # rounding of the pass must not break a tie
        edge = np.sort(rounded)[-top_k]
        if keep == "all":
            mask = rounded >= edge
        else:
            last = {"highest ids": np.arange(VOCAB), "at random": random.permutation(VOCAB)}[keep]
            mask = np.isin(np.arange(VOCAB), np.lexsort((last, rounded))[-top_k:])
        weights = np.where(mask, np.exp(row - row.max()), 0.0)
        return weights / weights.sum()

    return draw


def test_long_texts_are_read_in_the_same_ways() -> None:
    found = audited(own_sampler("highest ids"), top_k=5, method="scores", n=400)
    assert found.verdict.value == "NO_DISCREPANCY_FOUND"
    assert "Ties: in " in found.text
    wrong = audited(own_sampler("highest ids", temperature=0.6), top_k=5, method="scores", n=400)
    assert wrong.exit_code == 1


def test_near_ties_of_the_model_itself_are_said_and_do_not_convict() -> None:
    """Rounding parts two equal rows of a head; in which direction depends on the batch."""
    target = tied_pair().target

    def greedy(prompt: Any, n: int, seed: int) -> Any:
        random = np.random.default_rng(seed)
        ids = np.tile(np.asarray(prompt), (n, 1))
        for _ in range(3):
            with torch.inference_mode():
                logits = target.model(input_ids=torch.as_tensor(ids)).logits[:, -1].numpy()
            logits += random.normal(0, 1e-5, logits.shape)  # what another summation order does
            ids = np.column_stack([ids, logits.argmax(1)])
        return ids[:, len(prompt) :]

    found = audited(greedy, temperature=0.0)
    assert found.exit_code == 0
    assert "has the same logit as the largest" in found.text

    def second_best(prompt: Any, n: int, seed: int) -> Any:
        texts = greedy(prompt, n, seed)
        texts[0, 1] = (texts[0, 1] + 4) % VOCAB  # another token, once
        return texts

    assert audited(second_best, temperature=0.0).exit_code == 1


def test_the_readings_by_hand() -> None:
    logits = np.log([[4.0, 2.0, 2.0, 2.0, 1.0]])
    kept = np.array([[0.5, 0.25, 0.25, 0.0, 0.0]])
    (tie,) = find_ties(logits, kept, Sampling(top_k=3), None, near=1e-9)
    assert tie is not None
    assert (tie.tokens.tolist(), tie.kept.tolist(), tie.gap) == ([1, 2, 3], [1, 2], 0.0)
    np.testing.assert_allclose(all_kept(kept[0], tie), [0.4, 0.2, 0.2, 0.2, 0.0])
    seen = {1: 2, 2: 1, 3: 2, END: 9}
    np.testing.assert_allclose(shared_as_seen(kept[0], tie, seen), [0.5, 0.2, 0.1, 0.2, 0.0])
    # of two equal ones that are kept none has more than half, whatever was seen
    np.testing.assert_allclose(
        shared_as_seen(kept[0], tie, {1: 1, 3: 3}), [0.5, 0.25, 0.0, 0.25, 0.0]
    )
    np.testing.assert_allclose(as_one(kept[0], tie), [0.5, 0.5, 0.0, 0.0, 0.0])
    assert find_ties(logits, kept, Sampling(), None, near=1e-9) == [None]


@pytest.mark.parametrize(
    ("p", "texts"),
    [
        ([0.25] * 4, [0.7, 0.1, 0.1, 0.1]),  # more than the half that a kept token has
        ([0.25] * 4, [0.0, 0.0, 0.9, 0.1]),
        ([0.4, 0.2, 0.2, 0.2], [0.4, 0.6, 0.0, 0.0]),
    ],
)
def test_no_tied_token_has_more_than_a_kept_one(p: list[float], texts: list[float]) -> None:
    target = sv.tabular.TabularModel(p)
    size = len(p)
    top_k = 2 if p[0] == p[1] else 3

    def wrong(prompt: Any, n: int, seed: int) -> Any:
        return np.random.default_rng(seed).choice(size, p=texts, size=(n, 3))

    def right(prompt: Any, n: int, seed: int) -> Any:
        random = np.random.default_rng(seed)
        kept = np.arange(size)[-top_k:] if top_k == 2 else np.array([0, 2, 3])
        shares = np.array(p)[kept] / np.array(p)[kept].sum()
        return random.choice(kept, p=shares, size=(n, 3))

    settings = {"target": target, "top_k": top_k, "n": 2_000, "length": 3}
    assert sv.audit(right, [0], **settings).exit_code == 0
    assert sv.audit(wrong, [0], **settings).exit_code == 1
