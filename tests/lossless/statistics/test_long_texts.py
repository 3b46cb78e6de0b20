"""Texts of any length, scored by the target token by token."""

from __future__ import annotations

import numpy as np

from specviz.lossless import (
    BatteryReport,
    Scores,
    Verdict,
    battery_of_scores,
    score_tokens,
)
from tests.lossless.samplers import markov

TABLE = markov(8)


def test_scores_find_the_impossible_where_it_is() -> None:
    distributions = np.array([[0.5, 0.5, 0.0]] * 4)
    part = score_tokens(distributions, [0, 1, 0, 1])
    bad = score_tokens(distributions, [0, 1, 2, 1])
    report = battery_of_scores(Scores.join([part, part, bad]))
    assert report.verdict is Verdict.IMPOSSIBLE_TOKEN
    assert report.impossible is not None
    assert (report.impossible.text, report.impossible.position) == (2, 2)


def test_a_long_text_drawn_twice_was_not_drawn() -> None:
    rng = np.random.default_rng(0)
    distribution = np.full((200, 16), 1 / 16)
    parts = [score_tokens(distribution, rng.integers(0, 16, 200)) for _ in range(6)]
    assert battery_of_scores(Scores.join(parts)).verdict is Verdict.NO_DISCREPANCY_FOUND
    repeated = battery_of_scores(Scores.join([*parts, parts[0]]))
    assert repeated.verdict is Verdict.NOT_INDEPENDENT
    assert "seed was re-used" in repeated.text


def test_the_n_that_would_do_counts_texts() -> None:
    rng = np.random.default_rng(0)

    def report(texts: int) -> BatteryReport:
        distribution = np.full((20, 16), 1 / 16)
        return battery_of_scores(
            Scores.join(score_tokens(distribution, rng.integers(0, 16, 20)) for _ in range(texts))
        )

    few = report(3)
    assert few.verdict is Verdict.INCONCLUSIVE
    assert few.needed is not None
    assert report(few.needed).verdict is Verdict.NO_DISCREPANCY_FOUND


def test_one_long_text_is_enough_to_see_a_wrong_temperature() -> None:
    table = markov(40, seed=5)
    sharper = table**1.15 / (table**1.15).sum(axis=1, keepdims=True)
    cdf = np.cumsum(sharper, axis=1)
    text = [0]
    for u in np.random.default_rng(0).random(3000):
        text.append(int(np.searchsorted(cdf[text[-1]], u * cdf[text[-1], -1], "right")))
    assert battery_of_scores(score_tokens(sharper[text[:-1]], text[1:])).exit_code == 0
    assert battery_of_scores(score_tokens(table[text[:-1]], text[1:])).exit_code == 1
