"""Tests of each token against its own distribution: what they hold, and what only they catch."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from specviz.lossless import Answer, Sample, Scores, battery, battery_of_scores, score_tokens
from specviz.lossless.statistics.conditional_distribution import ConditionalDistribution
from specviz.lossless.statistics.prefix_tree import walk
from specviz.lossless.statistics.transform import (
    Sums,
    independence_of_neighbours,
    martingale,
    sums_of_moments,
    sums_of_walks,
    uniforms_of_scores,
    uniforms_of_walks,
)
from tests.lossless.samplers import conditional, markov, tree_of

TABLE, DRAFT = markov(8, seed=3), markov(8, seed=4)


def scored(sample: Sample, draft: bool = False) -> Scores:
    """The same texts, teacher-forced: distributions before each token up to and including EOS."""
    parts = []
    for row in sample.tokens.tolist():
        text = [token for token in row if token >= 0]
        before = [0, *text[:-1]]
        parts.append(score_tokens(TABLE[before], text, DRAFT[before] if draft else None))
    return Scores.join(parts)


@pytest.mark.parametrize("ends", [(), (2,)])
def test_scores_and_tree_agree(ends: tuple[int, ...]) -> None:
    tree = tree_of(TABLE, end_ids=ends)
    sample = tree.draw(300, 0)
    scores = scored(sample, draft=True)
    walks = [walk(tree, sample.tokens)]
    by_walk = sums_of_walks(tree, walks)
    by_score = sums_of_moments(scores.log_p)
    assert np.allclose(list(vars(by_walk).values())[:6], list(vars(by_score).values())[:6])
    assert scores.log_ratio is not None
    ratio = sums_of_walks(tree, walks, ConditionalDistribution(conditional(DRAFT), 8))
    by_score = sums_of_moments(scores.log_ratio)
    assert np.allclose(list(vars(ratio).values())[:6], list(vars(by_score).values())[:6])
    tokens = int(np.count_nonzero(sample.tokens >= 0))
    assert uniforms_of_walks(tree, walks, 0).bins.sum() == tokens == len(scores)
    assert uniforms_of_scores(scores, 0).bins.sum() == tokens
    assert uniforms_of_walks(tree, walks, 0).lag.sum() == uniforms_of_scores(scores, 0).lag.sum()


def test_ending_does_not_disturb_the_grid_of_neighbours() -> None:
    """A text goes on only if its token was not EOS: the earlier u of a pair is not uniform."""
    tree = tree_of(TABLE, length=4, end_ids=[3])
    ours, naive = 0, 0
    for seed in range(60):
        sample = tree.draw(3000, seed)
        uniforms = uniforms_of_walks(tree, [walk(tree, sample.tokens)], seed)
        ours += float(independence_of_neighbours(uniforms).p or 0) < 0.05
        naive += stats.chisquare(uniforms.lag.ravel()).pvalue < 0.05
    assert ours <= 9  # 5% of 60 are 3; 9 or more have probability .003
    assert naive == 60  # the planted twin: 1/64 in every cell


def swapped(sample: Sample, position: int) -> Sample:
    """Each text goes on as its neighbour did: two rows of a batch were mixed up."""
    tokens = sample.tokens.copy()
    tokens[0::2, position:], tokens[1::2, position:] = (
        sample.tokens[1::2, position:], sample.tokens[0::2, position:],
    )  # fmt: skip
    return Sample(tokens, sample.vocab_size)


def test_swapped_rows_are_caught_by_what_comes_before_a_token_only() -> None:
    tree = tree_of(TABLE)
    report = battery(swapped(tree.draw(20_000, 1), 2), tree)
    answers = {finding.name: finding.answer for finding in report.findings}
    assert all(answers[f"position {t}"] is Answer.AS_EXPECTED for t in range(3))
    for name in ("positions 1, 2", "continuation", "transform u"):
        assert answers[name] is Answer.DIFFERS


def test_tokens_that_echo_the_last_draw_are_caught_by_neighbours_only() -> None:
    """One shared u for two tokens: each token alone has the right distribution."""
    distribution = np.array([0.4, 0.3, 0.2, 0.1])
    u = np.repeat(np.random.default_rng(0).random((4000, 1)), 2, axis=1)
    tokens = np.searchsorted(np.cumsum(distribution), u, side="right")
    parts = [score_tokens(np.tile(distribution, (2, 1)), row) for row in tokens]
    report = battery_of_scores(Scores.join(parts))
    answers = {finding.name: finding.answer for finding in report.findings}
    assert answers["transform u"] is Answer.AS_EXPECTED
    assert answers["neighbouring u"] is Answer.DIFFERS


def test_a_sampler_that_leans_to_its_draft_is_caught_by_the_ratio() -> None:
    """So little that no table sees it."""
    target, draft = markov(8, seed=3, concentration=20), markov(8, seed=4, concentration=20)
    sample = tree_of(0.95 * target + 0.05 * draft).draw(50_000, 2)
    report = battery(sample, tree_of(target), draft=conditional(draft))
    wrong = [finding.name for finding in report.findings if finding.answer is Answer.DIFFERS]
    assert wrong == ["mean of log p/q"]
    assert battery(sample, tree_of(target)).exit_code == 0


def test_distributions_with_one_token_say_nothing() -> None:
    one_hot = np.eye(4)[[1, 2, 3, 1] * 50]
    report = battery_of_scores(score_tokens(one_hot, [1, 2, 3, 1] * 50))
    untested = [f for f in report.findings if f.kind != "support"]
    assert all(finding.answer is Answer.NOT_TESTABLE for finding in untested)


def test_a_z_test_needs_enough_for_a_normal_distribution() -> None:
    few = martingale("log p", Sums(n=20, value=-3.0, mean=-2.0, variance=1.0, third=1.5))
    assert few.p is None
    assert "too few tokens" in few.detail
    many = martingale("log p", Sums(n=20_000, value=-3e3, mean=-2.9e3, variance=1e3, third=1.5e3))
    assert many.p == pytest.approx(2 * stats.norm.sf(100 / np.sqrt(1000)))


def test_too_few_pairs_are_not_testable() -> None:
    scores = score_tokens(np.full((30, 4), 0.25), [0, 1, 2] * 10)
    finding = independence_of_neighbours(uniforms_of_scores(scores, 0))
    assert (finding.p, finding.answer) == (None, Answer.NOT_TESTABLE)


@pytest.mark.parametrize(
    ("distributions", "tokens", "draft", "says"),
    [
        ([[0.5, 0.5]], [0, 1], None, "tokens must be 1 whole numbers"),
        ([[0.5, 0.5]], [2], None, "outside 0 … 1"),
        ([[0.5, 0.5]], [0.0], None, "whole numbers"),
        ([[0.5, np.nan]], [0], None, "got nan"),
        ([0.5, 0.5], [0], None, r"must have shape \(n, vocab\)"),
        ([[0.5, 0.5]], [0], [[1.0, 0.0, 0.0]], "shape of distributions"),
    ],
)
def test_wrong_scores_are_refused(
    distributions: object, tokens: object, draft: object, says: str
) -> None:
    with pytest.raises(ValueError, match=says):
        score_tokens(distributions, tokens, draft)


def test_texts_are_joined_in_order_and_all_with_a_draft_or_none() -> None:
    a = score_tokens([[0.5, 0.5]] * 2, [0, 1])
    b = score_tokens([[0.5, 0.5]], [1], [[0.9, 0.1]])
    assert Scores.join([a, a]).text.tolist() == [0, 0, 1, 1]
    assert Scores.join([Scores.join([a, a]), a]).texts == 3
    with pytest.raises(ValueError, match="for some texts only"):
        Scores.join([a, b])
    with pytest.raises(ValueError, match="scores is empty"):
        Scores.join([])
    with pytest.raises(ValueError, match="scores is empty"):
        battery_of_scores(score_tokens(np.zeros((0, 2)), np.zeros(0, dtype=int)))
