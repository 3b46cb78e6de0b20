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
from specviz.lossless.statistics.goodness_of_fit import gamma_tail, moments, pearson
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
    statistic, p = pearson(counts.astype(np.float64), np.full(BINS, n / BINS))
    worst = int(np.argmax(np.abs(counts - n / BINS)))
    detail = (
        f"u in [{worst / BINS:.2f}, {(worst + 1) / BINS:.2f}): {counts[worst]:,} seen, "
        f"{n / BINS:,.1f} expected"
    )
    return Finding("transform u", "chi-square", statistic, BINS - 1, n, p, detail)


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
    even = np.full(LAG_BINS, 1 / LAG_BINS)
    exact = np.sum([moments(even, float(row.sum())) for row in rows], axis=0)  # rows add up
    p = gamma_tail(statistic, *exact)
    return Finding(name, "chi-square", statistic, dof, n, p, f"{len(rows)} rows of 8 bins")


@dataclass(frozen=True)
class Sums:
    """A martingale over all tokens: what was seen, expected, and how far it may stray.

    Parameters
    ----------
    n : int
        Tokens.
    value, mean : float
        The sum, and the sum of its conditional expectations.
    variance, third, skew : float
        Sums of the conditional variances, third absolute and third central moments.
    cumulants : tuple of float, optional
        Variance and third cumulant of ``value - mean`` itself, where the distribution of whole
        texts is known; else the sums stand for them.
    """

    n: int
    value: float
    mean: float
    variance: float
    third: float
    skew: float = 0.0
    cumulants: tuple[float, float] | None = None


def sums_of_moments(moments: Moments) -> Sums:
    """Return the totals over all tokens."""
    return Sums(
        len(moments.value), float(moments.value.sum()), float(moments.mean.sum()),
        float(moments.variance.sum()), float(moments.third.sum()), float(moments.skew.sum()),
    )  # fmt: skip


def sums_of_walks(
    tree: PrefixTree, walks: Sequence[Walk], draft: ConditionalDistribution | None = None
) -> Sums:
    """Return the totals of log p, or of log p/q, over all texts walked down a tree."""
    totals = np.zeros(6)
    away: list[FloatArray] = []
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
        moments = expectations(p, value)
        totals += [visits.sum(), np.sum(seen * value), *(visits @ moment for moment in moments)]
        away.append(value - moments[0][:, None])
    texts = sum(len(walk.cells[0]) for walk in walks)
    second, third = _text_cumulants(tree, away)
    seen_sum, mean, variance, absolute, skew = (float(total) for total in totals[1:])
    cumulants = (texts * second, texts * third)
    return Sums(int(totals[0]), seen_sum, mean, variance, absolute, skew, cumulants)


def _text_cumulants(tree: PrefixTree, away: list[FloatArray]) -> tuple[float, float]:
    """Return variance and third cumulant of a text's sum of martingale differences.

    From the last position to the first: R, the sum of what comes after a context, has mean 0, so
    E(d + R)² = E d² + E R² and E(d + R)³ = E d³ + 3 E d R² + E R³. Nothing comes after an end or
    outside the tree.
    """
    second, third = np.zeros(1), np.zeros(1)
    for position in range(tree.length - 1, -1, -1):
        level, d = tree.levels[position], away[position]  # d: (contexts, vocab + 1)
        p = level.distribution[: level.contexts]
        if position == tree.length - 1:
            square, cube = p * d**2, p * d**3
        else:
            child = level.child[: level.contexts]
            square = p * (d**2 + second[child])
            cube = p * (d**3 + 3 * d * second[child] + third[child])
        second = np.append(square.sum(axis=1), [0.0, 0.0])
        third = np.append(cube.sum(axis=1), [0.0, 0.0])
    return float(second[0]), float(third[0])


def martingale(name: str, sums: Sums) -> Finding:
    """Return whether a martingale's sum is 0 to within its own spread: a two-sided z-test.

    A sum of log p is skewed, so its tail is not the normal one far out, where Holm's correction
    lives. The p-value is that of a gamma distribution with the sum's variance and third cumulant
    (Pearson's type III), twice the smaller side.
    """
    label = f"mean of {name}"
    if sums.variance <= 1e-12 * max(1, sums.n):
        return Finding(label, "z", None, None, sums.n, None, "it is the same whatever is emitted")
    skew = sums.third / sums.variance**1.5
    if skew > SKEWEST:
        detail = f"too few tokens for a normal distribution (skewness {skew:.2f} > {SKEWEST})"
        return Finding(label, "z", None, None, sums.n, None, detail)
    variance, cumulant = sums.cumulants or (sums.variance, sums.skew)
    z = (sums.value - sums.mean) / sqrt(variance)
    tails = stats.pearson3(cumulant / variance**1.5)
    p = min(1.0, 2 * float(min(tails.cdf(z), tails.sf(z))))
    detail = f"{sums.value / sums.n:.4f} seen, {sums.mean / sums.n:.4f} expected per token"
    return Finding(label, "z", float(z), None, sums.n, p, detail)
