"""Tests of each token against its own conditional distribution: any length or vocabulary.

Under the target, u = F(x-) + v p(x) is uniform given everything before the token (Rosenblatt 1952,
with v uniform to break the steps), and any function of the token minus its conditional mean is a
martingale difference. A token is left out only by what came before it: contexts outside the tree,
and distributions with a single token, which have nothing to test.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
from scipy import stats

from specviz.core.contract import FloatArray, IntArray
from specviz.lossless.statistics.conditional_distribution import ConditionalDistribution
from specviz.lossless.statistics.findings import Finding
from specviz.lossless.statistics.pooling import LEAST
from specviz.lossless.statistics.prefix_tree import PrefixTree, Walk
from specviz.lossless.statistics.scores import Moments, Scores, expectations, log_of, log_ratio

BINS = 20
LAG_BINS = 8
FINE = 40  # bins that 20 and 8 both divide
OUT = 2.0  # where u has no meaning; falls into bin 2 * FINE
STREAM = 0x7472616E
"""Keeps v apart from a sampler that draws with the same generator and seed."""

SKEWEST = 0.1
"""A z-test is trusted while sum E|d|^3 / (sum Var d)^1.5 is at most this."""


@dataclass(frozen=True)
class Uniforms:
    """How the randomised probability integral transforms fell into bins.

    Parameters
    ----------
    bins : IntArray
        ``(halves, 20)`` counts of u in twenty equal bins, for the first and second half.
    lag : IntArray
        ``(8, 8)`` counts of (u of a token, u of the next token of the same text).
    """

    bins: IntArray
    lag: IntArray


def uniforms_of_walks(tree: PrefixTree, walks: Sequence[Walk], seed: int) -> Uniforms:
    """Return the binned transforms of texts that were walked down a tree, a walk per half."""
    rng = np.random.default_rng([seed, STREAM])
    tables = [_transform(level.distribution, level.below) for level in tree.levels]
    bins = np.zeros((len(walks), 2 * FINE + 1), dtype=np.int64)
    lag = np.zeros((2 * LAG_BINS + 1) ** 2, dtype=np.int64)
    for half, walk in enumerate(walks):
        before = None
        for (below, width), cells in zip(tables, walk.cells, strict=True):
            u = rng.random(len(cells))
            u *= width[cells]
            u += below[cells]
            u *= FINE
            fine = u.astype(np.int64)
            bins[half] += np.bincount(fine, minlength=2 * FINE + 1)
            coarse = fine // (FINE // LAG_BINS)
            if before is not None:
                lag += np.bincount(before * (2 * LAG_BINS + 1) + coarse, minlength=len(lag))
            before = coarse
    return _binned(bins, lag)


def _transform(distribution: FloatArray, below: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return flat F(x-) and p(x), just short of 1; OUT where only one token is possible."""
    inert = ~(np.nan_to_num(distribution, nan=1.0).max(axis=1) < 1.0)
    low, width = below * (1 - 1e-12), distribution * (1 - 1e-12)
    low[inert], width[inert] = OUT, 0.0
    return low.ravel(), width.ravel()


def uniforms_of_scores(scores: Scores, seed: int) -> Uniforms:
    """Return the binned transforms of scored tokens; the halves are first and second tokens."""
    fine = _fine_of_scores(scores, seed)
    middle = len(fine) // 2
    bins = np.stack(
        [np.bincount(half, minlength=2 * FINE + 1) for half in (fine[:middle], fine[middle:])]
    )
    coarse = fine // (FINE // LAG_BINS)
    same = scores.text[1:] == scores.text[:-1]
    codes = coarse[:-1][same] * (2 * LAG_BINS + 1) + coarse[1:][same]
    return _binned(bins, np.bincount(codes, minlength=(2 * LAG_BINS + 1) ** 2))


def _fine_of_scores(scores: Scores, seed: int) -> IntArray:
    """Return ``(tokens,)`` the fine bin of each token's u; 2 * FINE where u has no meaning."""
    rng = np.random.default_rng([seed, STREAM])
    u = (scores.below + rng.random(len(scores)) * scores.p) * (1 - 1e-12)
    return (np.where(scores.p < 1.0, np.minimum(u, 1 - 1e-12), OUT) * FINE).astype(np.int64)


def bins_of_scores(scores: Scores, seed: int) -> IntArray:
    """Return the bins of u (of twenty) in the order of the tokens that have one."""
    fine = _fine_of_scores(scores, seed)
    return fine[fine < FINE] // (FINE // BINS)


def _binned(bins: IntArray, lag: IntArray) -> Uniforms:
    grid = lag.reshape(2 * LAG_BINS + 1, -1)[:LAG_BINS, :LAG_BINS]
    return Uniforms(bins[:, :FINE].reshape(len(bins), BINS, -1).sum(axis=2), grid)


def uniformity(uniforms: Uniforms) -> Finding:
    """Return whether u is uniform: Pearson's chi-square in twenty equal bins."""
    counts = uniforms.bins.sum(axis=0)
    n = int(counts.sum())
    if n < LEAST * BINS:
        detail = f"{n} tokens had more than one possibility; {LEAST * BINS:.0f} are needed"
        return Finding("transform u", "chi-square", None, None, n, None, detail)
    found = stats.chisquare(counts)
    worst = int(np.argmax(np.abs(counts - n / BINS)))
    detail = (
        f"u in [{worst / BINS:.2f}, {(worst + 1) / BINS:.2f}): {counts[worst]:,} seen, "
        f"{n / BINS:,.1f} expected"
    )
    return Finding("transform u", "chi-square", float(found.statistic), BINS - 1, n,
                   float(found.pvalue), detail)  # fmt: skip


def independence_of_neighbours(uniforms: Uniforms) -> Finding:
    """Return whether u of a token is uniform whatever u of the token before it was.

    Each row of the grid (a bin of the earlier u) is tested against uniformity and the statistics
    are added: 7 degrees of freedom a row. Unlike a test against 1/64 in every cell this stays exact
    although pairs overlap and although whether there is a next token depends on the earlier one.
    """
    name, needed = "neighbouring u", LEAST * LAG_BINS
    rows: list[FloatArray] = []
    waiting = np.zeros(LAG_BINS)
    for row in uniforms.lag:  # rows with too few pairs join the next one
        waiting = waiting + row
        if waiting.sum() >= needed:
            rows.append(waiting)
            waiting = np.zeros(LAG_BINS)
    n = int(uniforms.lag.sum())
    if not rows:
        detail = f"{n} pairs of neighbouring tokens; {needed:.0f} are needed"
        return Finding(name, "chi-square", None, None, n, None, detail)
    rows[-1] = rows[-1] + waiting
    statistic = float(np.sum(stats.chisquare(np.stack(rows), axis=1).statistic))
    dof = len(rows) * (LAG_BINS - 1)
    p = float(stats.chi2.sf(statistic, dof))
    return Finding(name, "chi-square", statistic, dof, n, p, f"{len(rows)} rows of 8 bins")


@dataclass(frozen=True)
class Sums:
    """A martingale over all tokens: what was seen, expected, and how far it may stray."""

    n: int
    value: float
    mean: float
    variance: float
    third: float


def sums_of_moments(moments: Moments) -> Sums:
    """Return the totals over all tokens."""
    return Sums(
        len(moments.value), float(moments.value.sum()), float(moments.mean.sum()),
        float(moments.variance.sum()), float(moments.third.sum()),
    )  # fmt: skip


def sums_of_walks(
    tree: PrefixTree, walks: Sequence[Walk], draft: ConditionalDistribution | None = None
) -> Sums:
    """Return the totals of log p, or of log p/q, over all texts walked down a tree."""
    totals = np.zeros(5)
    for position, level in enumerate(tree.levels):
        rows, counts = level.contexts, sum(walk.counts[position] for walk in walks)
        p = level.distribution[:rows]  # (contexts, vocab + 1)
        if draft is None:
            value = log_of(p)
        else:
            q = np.zeros(p.shape)
            q[:, :-1] = draft.rows([tuple(prefix) for prefix in level.prefixes.tolist()])
            value = log_ratio(p, q)
        seen = np.asarray(counts)[:rows]
        visits = seen.sum(axis=1)
        expected = [visits @ moment for moment in expectations(p, value)]
        totals += [visits.sum(), np.sum(seen * value), *expected]
    return Sums(int(totals[0]), *(float(total) for total in totals[1:]))


def martingale(name: str, sums: Sums) -> Finding:
    """Return whether a martingale's sum is 0 to within its own variance: a two-sided z-test."""
    label = f"mean of {name}"
    if sums.variance <= 1e-12 * max(1, sums.n):
        return Finding(label, "z", None, None, sums.n, None, "it is the same whatever is emitted")
    skew = sums.third / sums.variance**1.5
    if skew > SKEWEST:
        detail = f"too few tokens for a normal distribution (skewness {skew:.2f} > {SKEWEST})"
        return Finding(label, "z", None, None, sums.n, None, detail)
    z = (sums.value - sums.mean) / sqrt(sums.variance)
    detail = f"{sums.value / sums.n:.4f} seen, {sums.mean / sums.n:.4f} expected per token"
    return Finding(label, "z", float(z), None, sums.n, float(2 * stats.norm.sf(abs(z))), detail)
