"""Pooled cells: enough in each, none dropped, labels blind to what was drawn."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from specviz.lossless.statistics.goodness_of_fit import pearson
from specviz.lossless.statistics.pooling import LEAST, Pooling, pool_neighbours, pool_rare

Pool = Callable[[np.ndarray], Pooling]
POOLS = [pool_rare, pool_neighbours]
expectations = st.lists(st.floats(0, 50), min_size=1, max_size=60).map(np.array)


@pytest.mark.parametrize("pool", POOLS)
@given(expected=expectations)
def test_every_cell_expects_enough_and_none_is_dropped(pool: Pool, expected: np.ndarray) -> None:
    pooling = pool(expected)
    assert pooling.label.shape == expected.shape
    assert set(pooling.label.tolist()) == set(range(pooling.cells))
    assert np.isclose(pooling.expected.sum(), expected.sum())
    assert pooling.cells == 1 or pooling.expected.min() >= LEAST
    assert pooling.pool(np.ones(len(expected))).sum() == len(expected)


@given(expected=expectations)
def test_neighbours_stay_in_order(expected: np.ndarray) -> None:
    assert np.all(np.diff(pool_neighbours(expected).label) >= 0)


def test_rare_cells_share_one_cell() -> None:
    pooling = pool_rare(np.array([9.0, 1.0, 8.0, 2.0, 2.0]))
    assert pooling.label.tolist() == [0, 2, 1, 2, 2]


def test_a_rest_that_is_too_small_takes_the_smallest_cell() -> None:
    assert pool_rare(np.array([9.0, 1.0, 8.0])).label.tolist() == [0, 1, 1]
    assert pool_rare(np.array([9.0, 0.0])).label.tolist() == [0, 0]
    assert pool_neighbours(np.array([9.0, 8.0, 4.0])).label.tolist() == [0, 1, 1]


def test_an_empty_cell_is_never_divided_by() -> None:
    with pytest.raises(ValueError, match="must be pooled"):
        pearson(np.array([3.0, 0.0]), np.array([3.0, 0.0]))


def test_float32_probabilities_do_not_upset_the_sum() -> None:
    p = np.full(3, 1 / 3, dtype=np.float32)
    expected = 10**6 * p.astype(np.float64)
    counts = np.random.default_rng(1).multinomial(10**6, p / p.sum(dtype=np.float64))
    with pytest.raises(ValueError, match="relative tolerance"):  # scipy, of them as they are
        stats.chisquare(counts, expected)
    assert 0 < pearson(counts.astype(float), expected)[1] < 1


def alarms(pool: Pool | None, runs: int = 400, n: int = 2000, level: float = 0.05) -> float:
    """How often a right sampler of a 512-cell distribution is called wrong."""
    rng = np.random.default_rng(5)
    tokens = rng.dirichlet(np.ones(8), size=(1 + 8 + 64))
    joint = (
        tokens[0][:, None, None]
        * tokens[1:9][:, :, None]
        * tokens[9:].reshape(8, 8, 8)
    ).ravel()  # fmt: skip
    found = 0
    for _ in range(runs):
        counts = rng.multinomial(n, joint).astype(float)
        if pool is None:
            found += stats.chisquare(counts, n * joint).pvalue < level
        else:
            pooling = pool(n * joint)
            found += pearson(pooling.pool(counts), pooling.expected)[1] < level
    return found / runs


def test_pooled_tables_keep_their_level_and_unpooled_ones_do_not() -> None:
    for pool in POOLS:
        assert 0.025 <= alarms(pool) <= 0.08
    assert alarms(None) > 0.1


def test_pooling_by_what_was_drawn_would_break_the_level() -> None:
    """The planted twin: cells chosen because they were seen often look too full."""
    rng = np.random.default_rng(6)
    distribution = np.full(200, 1 / 200)
    found = 0
    for _ in range(200):
        counts = rng.multinomial(1000, distribution).astype(float)
        pooling = pool_rare(counts)
        found += pearson(pooling.pool(counts), pooling.pool(1000 * distribution))[1] < 0.05
    assert found / 200 > 0.5
