"""Before any test: were the texts drawn independently? A re-used seed makes every p-value void.

Repeats are compared with what independence allows: along the order of drawing against the rate of
equal pairs in the whole sample (whatever its distribution), and over the whole sample against the
target's sum p^2 and the number of different texts it would give.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import special, stats

from specviz.core.contract import FloatArray, IntArray

LEVEL = 1e-5
"""Probability of a false alarm of the check along the order of drawing, all lags together."""

TENFOLD = 10.0
"""Fewer different texts than expected by this factor cannot be told from a re-used seed."""

FEW = 30
"""Fewer texts than this say nothing about repeats."""


@dataclass(frozen=True)
class Independence:
    """Whether the texts were drawn independently, judged by their repeats.

    Parameters
    ----------
    n : int
        How many texts.
    distinct : int
        How many different ones.
    distinct_expected : float or None
        How many a perfect sampler would give at least (None where no distribution says).
    repeat_rate : float
        Share of texts equal to the one drawn just before.
    repeat_rate_expected : float or None
        The target's sum p^2, an upper bound where the tree does not hold every context.
    reason : str
        Why the texts are not independent; empty if nothing speaks against it.
    """

    n: int
    distinct: int
    distinct_expected: float | None
    repeat_rate: float
    repeat_rate_expected: float | None
    reason: str = ""


def text_codes(tokens: IntArray, vocab_size: int) -> IntArray:
    """Return ``(n,)`` numbers that are equal for equal texts, in the order of the texts."""
    code = tokens[:, 0] + 1
    top = vocab_size + 1
    for position in range(1, tokens.shape[1]):
        if top * (vocab_size + 1) >= 2**62:
            values, inverse = np.unique(code, return_inverse=True)
            code, top = inverse.astype(np.int64), len(values)
        code = code * (vocab_size + 1) + tokens[:, position] + 1
        top *= vocab_size + 1
    return code


def independence(codes: IntArray, distribution: FloatArray | None = None) -> Independence:
    """Return whether texts were drawn independently, judged by their repeats.

    Parameters
    ----------
    codes : IntArray
        ``(n,)`` a number per text, in the order drawn; equal numbers are equal texts.
    distribution : FloatArray, optional
        ``(cells,)`` the target's distribution over texts (or over cells of texts).
    """
    n = len(codes)
    multiplicity = np.unique(codes, return_counts=True)[1]
    distinct = len(multiplicity)
    rate = float(np.mean(codes[1:] == codes[:-1])) if n > 1 else 0.0
    sum_p2 = None if distribution is None else float(distribution @ distribution)
    expected = (
        None
        if distribution is None
        else float(-np.expm1(n * np.log1p(-np.minimum(distribution, 1 - 1e-16))).sum())
    )
    reason = ""
    if n >= FEW and distinct > 1:
        by_chance = float(multiplicity @ (multiplicity - 1.0)) / (n * (n - 1.0))
        reason = _along_the_order(codes, by_chance)
    if not reason and n >= FEW and expected is not None and distinct * TENFOLD < expected:
        reason = (
            f"only {distinct:,} of {n:,} texts are different, and the target gives at least "
            f"{expected:,.0f}: a seed was re-used, or the sampler hardly draws at all"
        )
    return Independence(n, distinct, expected, rate, sum_p2, reason)


def same_sample(a: IntArray, b: IntArray) -> str:
    """Return why a reference is no sample of its own (it is the other one), or nothing.

    Row against row the number of equal texts is binomial at the rate of equal texts anywhere; and
    that n texts of each have the very same counts has, given both together, the probability
    ``prod C(2k, k) / C(2n, n)`` over counts k.

    Examples
    --------
    >>> drawn = np.random.default_rng(0).integers(0, 50, size=(2, 100))
    >>> same_sample(drawn[0], drawn[1])
    ''
    >>> same_sample(drawn[0], drawn[0][::-1])
    'the reference is the same sample: its texts are these texts in another order'
    """
    values, code = np.unique(np.concatenate([a, b]), return_inverse=True)
    ours, theirs = (
        np.bincount(part, minlength=len(values)) for part in (code[: len(a)], code[len(a) :])
    )
    rate = float(ours @ (theirs / len(a) / len(b)))
    pairs = min(len(a), len(b))
    equal = int(np.sum(a[:pairs] == b[:pairs]))
    if equal and stats.binom.sf(equal - 1, pairs, rate) < LEVEL:
        return (
            f"the reference is the same sample: {equal:,} of {pairs:,} texts equal the reference's "
            f"text in the same place, and chance gives about {pairs * rate:,.1f}"
        )
    if len(a) == len(b) and np.array_equal(ours, theirs):
        chance = _log_middle(ours).sum() - _log_middle(np.array([len(a)])).sum()
        if chance < np.log(LEVEL):
            return "the reference is the same sample: its texts are these texts in another order"
    return ""


def _log_middle(k: IntArray) -> FloatArray:
    """Return log C(2k, k)."""
    out: FloatArray = special.gammaln(2 * k + 1) - 2 * special.gammaln(k + 1)
    return out


def _along_the_order(codes: IntArray, by_chance: float) -> str:
    """Compare texts a fixed number of draws apart; disjoint pairs make it binomial."""
    n = len(codes)
    near = [1, 2, 3, 4, 5, 6, 7, 8, 10, 16, 32, 50, 64, 100, 128, 200, 256, 500, 512, 1000, 1024]
    lags = sorted({lag for lag in (*near, n // 10, n // 4, n // 2) if 1 <= lag <= n // 2})
    for lag in lags:
        blocks = codes[: n // (2 * lag) * 2 * lag].reshape(-1, 2, lag)
        equal, pairs = int(np.sum(blocks[:, 0] == blocks[:, 1])), blocks[:, 0].size
        if equal <= pairs * by_chance:
            continue
        if stats.binom.sf(equal - 1, pairs, by_chance) < LEVEL / len(lags):
            return (
                f"{equal:,} of {pairs:,} texts equal the text drawn {lag} before, and chance gives "
                f"about {pairs * by_chance:,.1f}: a seed was re-used"
            )
    return ""


def independence_of_scores(scores: Any) -> Independence:
    """Return whether scored texts, which may have several prompts, were drawn independently.

    Two texts of the same probabilities are the same text. A long text of probability e^-50 is
    not drawn twice, whatever else was drawn.
    """
    bounds = np.flatnonzero(np.diff(scores.text)) + 1
    edges = [0, *bounds.tolist(), len(scores)]
    seen: dict[bytes, int] = {}
    codes = np.empty(len(edges) - 1, dtype=np.int64)
    unlikely = 0
    for index, (lo, hi) in enumerate(pairwise(edges)):
        key = scores.p[lo:hi].tobytes() + scores.below[lo:hi].tobytes()
        codes[index] = seen.setdefault(key, index)
        log_p = float(scores.log_p.value[lo:hi].sum()) if scores.p[lo:hi].all() else 0.0
        pairs = len(codes) * (len(codes) - 1) / 2
        unlikely += codes[index] != index and log_p + np.log(max(pairs, 1.0)) < np.log(LEVEL)
    found = independence(codes)
    if found.reason or not unlikely:
        return found
    reason = (
        f"{unlikely:,} texts repeat an earlier text that is far too unlikely to be drawn twice: "
        f"a seed was re-used"
    )
    return Independence(found.n, found.distinct, None, found.repeat_rate, None, reason)
