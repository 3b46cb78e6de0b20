"""A declared margin tolerates rounding, and no more than it says."""

from __future__ import annotations

import numpy as np
import pytest

from specviz.lossless import (
    Scores,
    Verdict,
    battery,
    battery_of_scores,
    score_tokens,
    two_sample,
)
from tests.lossless.samplers import markov, top_k, tree_of

TABLE = markov(8)


@pytest.mark.parametrize("kind", ["distribution", "reference", "scores"])
def test_a_margin_tolerates_rounding_and_no_more(kind: str) -> None:
    rng = np.random.default_rng(0)
    rounded = np.exp(np.log(TABLE) + rng.normal(0, 0.06, TABLE.shape))  # per token: TV .02
    rounded /= rounded.sum(axis=1, keepdims=True)
    off = float(np.abs(rounded - TABLE).sum(axis=1).mean() / 2)
    assert 0.01 < off < 0.03

    def verdict(table: np.ndarray, margin: float) -> Verdict:
        sample = tree_of(table).draw(100_000, 1)
        if kind == "distribution":
            return battery(sample, tree_of(TABLE), margin=margin).verdict
        if kind == "reference":
            return two_sample(sample, tree_of(TABLE).draw(200_000, 2), margin=margin).verdict
        before = np.concatenate([np.zeros((100_000, 1), int), sample.tokens[:, :-1]], axis=1)
        rows = slice(0, 30_000)
        scores = score_tokens(TABLE[before[rows].ravel()], sample.tokens[rows].ravel())
        scores = Scores(scores.p, scores.below, np.repeat(np.arange(30_000), 3), scores.log_p)
        return battery_of_scores(scores, margin=margin).verdict

    assert verdict(rounded, 0.0) is Verdict.DISCREPANCY
    assert verdict(rounded, 0.05) is Verdict.NO_DISCREPANCY_FOUND
    worse = 0.7 * TABLE + 0.3 * np.roll(TABLE, 1, axis=1)
    assert verdict(worse, 0.05) is Verdict.DISCREPANCY


def test_a_margin_tolerates_a_few_impossible_tokens() -> None:
    """Rounding moves the edge of top-k: a token of probability 0 now and then."""
    table = top_k(TABLE, 4)
    tree = tree_of(table)
    for share, margin, expected in (
        (0.002, 0.0, Verdict.IMPOSSIBLE_TOKEN),
        (0.002, 0.01, Verdict.NO_DISCREPANCY_FOUND),
        (0.1, 0.01, Verdict.IMPOSSIBLE_TOKEN),
    ):
        leaky = tree_of((1 - share) * table + share * TABLE)
        sample = leaky.draw(20_000, 0)
        assert battery(sample, tree, margin=margin).verdict is expected
        scores = Scores.join(
            score_tokens(table[[0, *text[:-1]]], text) for text in sample.tokens[:3000].tolist()
        )
        assert battery_of_scores(scores, margin=margin).verdict is expected
