"""Distributions: equal to transformers' own processors, one tie rule, never NaN."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from transformers import (
    LogitsProcessorList,
    MinPLogitsWarper,
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from specviz.core.contract import FloatArray, Sampling
from specviz.decoding.sampling import logits_to_distributions

VOCAB = 300
HISTORY = np.array([3, 3, 8, 250, 17])

SETTINGS = [
    Sampling(),
    Sampling(temperature=0.6),
    Sampling(temperature=2.5),
    Sampling(top_k=1),
    Sampling(top_k=7),
    Sampling(top_k=VOCAB + 5),
    Sampling(top_p=0.01),
    Sampling(top_p=0.6),
    Sampling(top_p=0.99),
    Sampling(min_p=0.05),
    Sampling(min_p=1.0),
    Sampling(repetition_penalty=1.4),
    Sampling(repetition_penalty=0.7),
    Sampling(temperature=0.8, top_k=40, top_p=0.9, min_p=0.02, repetition_penalty=1.2),
    Sampling(temperature=1.7, top_k=100, top_p=0.7, repetition_penalty=2.0),
]


def logits_without_ties(rows: int = 6, seed: int = 5) -> FloatArray:
    rng = np.random.default_rng(seed)
    logits = rng.normal(scale=3.0, size=(rows, VOCAB))
    assert all(len(np.unique(row)) == VOCAB for row in logits)
    return logits


def transformers_distributions(
    logits: FloatArray, sampling: Sampling, order: tuple[str, ...] = ()
) -> FloatArray:
    """The same distribution by transformers' processors, in the order `generate` builds them."""
    steps = {
        "penalty": RepetitionPenaltyLogitsProcessor(sampling.repetition_penalty),
        "temperature": TemperatureLogitsWarper(float(sampling.temperature)),
        "top_k": TopKLogitsWarper(sampling.top_k or logits.shape[1]),
        "top_p": TopPLogitsWarper(float(sampling.top_p)),
        "min_p": MinPLogitsWarper(sampling.min_p),
    }
    chain = LogitsProcessorList([steps[name] for name in order or steps])
    ids = torch.from_numpy(np.tile(HISTORY, (len(logits), 1)))
    return chain(ids, torch.from_numpy(logits)).softmax(-1).numpy()


def our_distributions(logits: FloatArray, sampling: Sampling) -> FloatArray:
    return logits_to_distributions(logits, sampling, [HISTORY] * len(logits))


@pytest.mark.parametrize("sampling", SETTINGS, ids=str)
def test_equal_to_transformers(sampling: Sampling) -> None:
    logits = logits_without_ties()
    ours = our_distributions(logits, sampling)
    np.testing.assert_allclose(ours, transformers_distributions(logits, sampling), atol=1e-12)
    np.testing.assert_allclose(ours.sum(axis=1), 1.0, atol=1e-12)


def test_a_wrong_order_of_the_settings_would_be_seen() -> None:
    logits, sampling = logits_without_ties(), SETTINGS[-1]
    wrong = transformers_distributions(
        logits, sampling, ("temperature", "top_p", "top_k", "penalty")
    )
    assert np.abs(our_distributions(logits, sampling) - wrong).max() > 1e-3


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_distributions_are_float64_and_the_logits_are_left_alone(dtype: type) -> None:
    logits = logits_without_ties().astype(dtype)
    before = logits.copy()
    p = our_distributions(logits, SETTINGS[-2])
    assert p.dtype == np.float64
    np.testing.assert_array_equal(logits, before)


def test_top_k_keeps_exactly_k_and_the_lowest_ids_among_equals() -> None:
    p = logits_to_distributions(np.array([[1.0, 2.0, 2.0, 2.0, 0.0]]), Sampling(top_k=2))
    np.testing.assert_array_equal(p > 0, [[False, True, True, False, False]])


def test_top_p_keeps_the_lowest_ids_among_equals() -> None:
    logits = np.log(np.array([[0.1, 0.3, 0.3, 0.3]]))
    p = logits_to_distributions(logits, Sampling(top_p=0.5))  # .3 does not reach .5, .3 + .3 does
    np.testing.assert_allclose(p, [[0.0, 0.5, 0.5, 0.0]], atol=1e-12)


def test_top_p_keeps_the_token_that_crosses_and_at_least_one() -> None:
    logits = np.log(np.array([[0.5, 0.3, 0.2]]))
    np.testing.assert_allclose(
        logits_to_distributions(logits, Sampling(top_p=0.51)), [[0.625, 0.375, 0.0]]
    )
    np.testing.assert_allclose(
        logits_to_distributions(logits, Sampling(top_p=1e-9)), [[1.0, 0.0, 0.0]]
    )


def test_top_p_acts_on_the_mass_that_top_k_left() -> None:
    logits = np.log(np.array([[0.4, 0.3, 0.2, 0.1]]))
    p = logits_to_distributions(
        logits, Sampling(top_k=2, top_p=0.55)
    )  # 4/7 = .571 reaches .55; .4 would not
    np.testing.assert_allclose(p, [[1.0, 0.0, 0.0, 0.0]])


def test_min_p_keeps_equals_of_the_most_likely() -> None:
    np.testing.assert_allclose(
        logits_to_distributions(np.array([[1.0, 3.0, 3.0]]), Sampling(min_p=1.0)), [[0.0, 0.5, 0.5]]
    )


def test_temperature_zero_is_the_first_largest_after_the_penalty() -> None:
    logits = np.array([[1.0, 4.0, 4.0, 3.0]])
    np.testing.assert_array_equal(
        logits_to_distributions(logits, Sampling(temperature=0)), [[0, 1, 0, 0]]
    )
    penalised = Sampling(temperature=0, repetition_penalty=2.0)
    history = [np.array([1, 2])]
    np.testing.assert_array_equal(
        logits_to_distributions(logits, penalised, history), [[0, 0, 0, 1]]
    )


@pytest.mark.parametrize("temperature", [1e-6, 1e-300, 5e-324])
def test_tiny_temperatures_are_greedy(temperature: float) -> None:
    logits = logits_without_ties()
    np.testing.assert_allclose(
        logits_to_distributions(logits, Sampling(temperature=temperature)),
        logits_to_distributions(logits, Sampling(temperature=0)),
    )


def test_large_temperature_is_near_uniform() -> None:
    p = logits_to_distributions(logits_without_ties(), Sampling(temperature=100))
    assert 0.5 / VOCAB < p.min() < p.max() < 2 / VOCAB


@pytest.mark.parametrize("sampling", SETTINGS, ids=str)
@pytest.mark.parametrize("size", [1.0, 1e30, 1e308])
def test_never_nan(sampling: Sampling, size: float) -> None:
    logits = size * (logits_without_ties() / 20)
    logits[:, ::3] = -np.inf
    p = our_distributions(logits, sampling)
    assert np.isfinite(p).all()
    assert (p[:, ::3] == 0).all()
    np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-12)


def test_absurd_penalties_do_not_give_nan() -> None:
    logits = np.array([[1e30, -1e30, 2.0]])
    up = logits_to_distributions(logits, Sampling(repetition_penalty=1e-300), [np.array([0, 1])])
    np.testing.assert_array_equal(up, [[1, 0, 0]])
    with pytest.raises(ValueError, match="repetition_penalty=1e\\+300 makes every logit -inf"):
        logits_to_distributions(
            -1e30 * np.ones((1, 2)), Sampling(repetition_penalty=1e300), [np.array([0, 1])]
        )


@pytest.mark.parametrize(
    ("value", "message"), [(np.nan, "row 1, token 2 is NaN"), (np.inf, "row 1, token 2 is \\+inf")]
)
def test_bad_logits_are_named(value: float, message: str) -> None:
    logits = np.zeros((3, 4))
    logits[0, 1] = -np.inf
    logits[1, 2] = value
    with pytest.raises(ValueError, match=message):
        logits_to_distributions(logits, Sampling(temperature=0))
    with pytest.raises(ValueError, match=message):
        logits_to_distributions(logits, Sampling())


def test_a_row_without_any_token_is_refused() -> None:
    logits = np.zeros((2, 4))
    logits[1] = -np.inf
    with pytest.raises(ValueError, match="row 1: all 4 tokens are -inf"):
        logits_to_distributions(logits, Sampling())


def test_the_penalty_needs_a_history_for_each_row() -> None:
    with pytest.raises(ValueError, match="one history for each of the 2 rows of logits, got none"):
        logits_to_distributions(np.zeros((2, 4)), Sampling(repetition_penalty=1.1))
    with pytest.raises(ValueError, match="got 1"):
        logits_to_distributions(np.zeros((2, 4)), Sampling(repetition_penalty=1.1), [HISTORY])
    with pytest.raises(ValueError, match="token id -1"):
        logits_to_distributions(
            np.zeros((1, 4)), Sampling(repetition_penalty=1.1), [np.array([-1])]
        )


def test_each_row_has_its_own_history_and_ids_beyond_the_vocabulary_are_passed_over() -> None:
    logits = np.ones((3, 4))
    histories = [np.array([0]), np.array([], dtype=np.int64), np.array([2, 99])]
    p = logits_to_distributions(logits, Sampling(repetition_penalty=2.0), histories)
    assert p[0].argmin() == 0
    np.testing.assert_allclose(p[1], 0.25)
    assert p[2].argmin() == 2


def test_logits_need_two_dimensions() -> None:
    with pytest.raises(ValueError, match="shape \\(n, vocab\\), got \\(4,\\)"):
        logits_to_distributions(np.zeros(4), Sampling())
    assert logits_to_distributions(np.zeros((0, 4)), Sampling(top_p=0.5)).shape == (0, 4)
