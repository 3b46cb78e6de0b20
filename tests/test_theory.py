"""Closed forms against the published tables and against a simulation."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from specviz import theory

GOLDEN = json.loads((Path(__file__).parent / "core" / "golden.json").read_text("utf-8"))


@pytest.mark.parametrize(("alpha", "gamma", "operations", "tokens"), GOLDEN["leviathan"]["rows"])
def test_table_1_of_leviathan(alpha: float, gamma: int, operations: float, tokens: float) -> None:
    assert theory.operations(alpha, gamma) == pytest.approx(operations, abs=0.0051)
    assert theory.expected_tokens(alpha, gamma) == pytest.approx(tokens, abs=0.0051)


@pytest.mark.parametrize(
    ("c", "alpha", "gamma"),
    [
        (float(c.removeprefix("c=")), float(alpha), gamma)
        for c, row in GOLDEN["leviathan"]["best_gamma"].items()
        for alpha, gamma in row.items()
    ],
)
def test_best_gamma(c: float, alpha: float, gamma: int) -> None:
    assert theory.best_gamma(alpha, c) == gamma


def test_expected_tokens_is_the_mean_of_a_simulation() -> None:
    alpha, gamma, rounds = 0.7, 4, 200_000
    kept = np.random.default_rng(0).random((rounds, gamma)) < alpha
    tokens = np.cumprod(kept, axis=1).sum(axis=1) + 1
    error = 4 * tokens.std() / np.sqrt(rounds)
    assert abs(tokens.mean() - theory.expected_tokens(alpha, gamma)) < error
    assert abs(tokens.mean() - theory.expected_tokens(alpha + 0.02, gamma)) > error  # planted


def test_at_alpha_6_and_c_1_the_best_is_1_67() -> None:
    gains = [theory.speedup(0.6, gamma, 0.1) for gamma in range(1, 50)]
    assert max(gains) == pytest.approx(1.67, abs=0.01)


def test_costs_of_verification_lower_the_gain() -> None:
    assert theory.speedup(0.93, 4, 0.1) == pytest.approx(3.1, abs=0.05)
    assert theory.speedup(0.93, 4, 0.1, v=1.34) == pytest.approx(2.5, abs=0.05)


def test_break_even() -> None:
    for c in (0.01, 0.1, 0.5):
        assert theory.break_even_alpha(1, c) == pytest.approx(c, abs=1e-9)
    assert np.isnan(theory.break_even_alpha(1, 0.5, v=2.0))
    assert theory.best_gamma(0.2, 0.5) == 0


def test_arrays_and_the_edges() -> None:
    grid = theory.expected_tokens(np.array([0.0, 0.5, 1.0])[:, None], np.array([0, 1, 4]))
    assert grid.tolist() == [[1, 1, 1], [1, 1.5, 1.9375], [1, 2, 5]]


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: theory.expected_tokens(1.5, 4), "alpha"),
        (lambda: theory.expected_tokens(float("nan"), 4), "alpha"),
        (lambda: theory.expected_tokens(0.5, -1), "gamma"),
        (lambda: theory.speedup(0.5, 1, -0.1), "c must"),
        (lambda: theory.coupled_agreement(2), "tv"),
    ],
)
def test_wrong_input_is_named(call: object, name: str) -> None:
    with pytest.raises(ValueError, match=name):
        call()  # type: ignore[operator]
