"""The event that shows most, and bounds that hold although it was searched for."""

from __future__ import annotations

import numpy as np
import pytest

from specviz.lossless import battery
from specviz.lossless.statistics.distance import (
    mean_at_least,
    rate_for,
    share_at_least,
    table_witness,
    token_witness,
)
from specviz.lossless.statistics.prefix_tree import walk
from specviz.lossless.statistics.tables import all_tables
from specviz.lossless.statistics.transform import Uniforms
from tests.lossless.samplers import golden_tree, markov, texts, tree_of, wrong_distribution

TABLE = markov(8)


def test_the_bound_is_below_the_true_distance_and_not_far() -> None:
    """resample_from_p is at a total variation of 17/80 over three tokens."""
    tree, wrong = golden_tree(), wrong_distribution("resample_from_p")
    lows = []
    for seed in range(20):
        report = battery(texts(wrong, 20_000, seed, 4), tree)
        assert report.witness is not None
        assert report.distance is not None
        lows.append(report.witness.low)
        assert report.distance.low <= 17 / 80 <= report.distance.high
    assert max(lows) <= 17 / 80 + 0.006
    assert np.mean(lows) > 0.15


def bounds(split: bool, runs: int = 200) -> float:
    """How often the bound is above the truth, 0, for a right sampler at 95% confidence."""
    tree = tree_of(TABLE)
    wrong = 0
    for seed in range(runs):
        tokens = tree.draw(2000, seed).tokens
        halves = [tokens[0::2], tokens[1::2]] if split else [tokens[0::2], tokens[0::2]]
        witness = table_witness(all_tables(tree, [walk(tree, half) for half in halves]), 0.05)
        wrong += witness is not None and witness.low > 0
    return wrong / runs


def test_the_bound_holds_although_the_event_was_searched_for() -> None:
    assert bounds(split=True) <= 0.095  # 5% of 200 are 10; 19 have probability .003


def test_measuring_on_the_same_half_would_break_the_bound() -> None:
    assert bounds(split=False) > 0.4


def test_clopper_pearson_covers() -> None:
    rng = np.random.default_rng(0)
    k = rng.binomial(40, 0.3, size=4000)
    assert np.mean([share_at_least(int(x), 40, 0.05) > 0.3 for x in k]) <= 0.055
    assert share_at_least(0, 10, 0.05) == share_at_least(0, 0, 0.05) == 0.0


def test_the_martingale_bound_covers_when_chances_depend_on_the_past() -> None:
    rng = np.random.default_rng(1)
    wrong, mean_low = 0, []
    for _ in range(1000):
        chance, total, k = 0.5, 0.0, 0
        for u in rng.random(200):
            total += chance
            hit = u < chance
            k += hit
            chance = min(0.8, max(0.2, chance + (0.1 if hit else -0.1)))
        low = mean_at_least(k, 200, rate_for(0.6, 200, 0.05), 0.05)
        wrong += low > total / 200
        mean_low.append(low)
    assert wrong <= 65  # 5% of 1000 are 50
    assert mean_at_least(150, 200, rate_for(0.7, 200, 0.05), 0.05) > 0.65
    assert mean_at_least(0, 200, rate_for(0.7, 200, 0.05), 0.05) == 0.0


def test_a_tokens_distribution_is_bounded_through_the_transform() -> None:
    flat = np.full((2, 20), 1000)
    right = token_witness(Uniforms(flat, np.zeros((8, 8), int)), 0.005)
    assert right is not None
    assert right.low == 0.0
    tilted = flat + np.repeat([200, -200], 10)
    wrong = token_witness(Uniforms(tilted, np.zeros((8, 8), int)), 0.005)
    assert wrong is not None
    assert 0.08 < wrong.low < 0.1  # the truth is .1
    assert wrong.per_token
    assert wrong.excess(0.05) == pytest.approx(wrong.low - 0.05)


def test_a_witness_names_its_tokens() -> None:
    sharper = TABLE**1.5 / (TABLE**1.5).sum(axis=1, keepdims=True)
    report = battery(
        tree_of(sharper).draw(10_000, 0), tree_of(TABLE), words=[f"w{i}" for i in range(8)]
    )
    assert report.witness is not None
    assert "'w" in report.witness.event
    assert report.witness.observed > report.witness.expected
    assert report.witness.n == 5000
