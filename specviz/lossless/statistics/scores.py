"""What the target says of every emitted token: the evidence for texts of any length.

One teacher-forced pass over an emitted text gives the target's distribution before each token.
Four numbers a token are enough for the tests in :mod:`specviz.lossless.statistics.transform`; the
distributions themselves need not be kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from specviz.core.contract import FloatArray, IntArray
from specviz.lossless.statistics.conditional_distribution import checked_distributions

FLOOR = -745.0
"""log p of an impossible token: the logarithm of the smallest float64."""

WIDEST = 10.0
"""log p/q is clipped to ±10, so that a token the draft never proposes counts as finite."""


@dataclass(frozen=True)
class Moments:
    """A number per token, and what it should be on average under the target's distribution there.

    Parameters
    ----------
    value, mean, variance, third, skew : FloatArray
        ``(tokens,)`` what was seen; its conditional expectation, variance, third absolute central
        moment and third central moment given the text before the token.
    """

    value: FloatArray
    mean: FloatArray
    variance: FloatArray
    third: FloatArray
    skew: FloatArray


@dataclass(frozen=True)
class Scores:
    """Emitted tokens, scored by the target; every token up to and including EOS.

    Parameters
    ----------
    p : FloatArray
        ``(tokens,)`` the target's probability of each emitted token.
    below : FloatArray
        ``(tokens,)`` F(x-): the probability of all smaller ids.
    text : IntArray
        ``(tokens,)`` which text each token belongs to, non-decreasing.
    log_p : Moments
        log p of each token.
    log_ratio : Moments or None
        log p/q of each token, where the draft's distribution is known.
    """

    p: FloatArray
    below: FloatArray
    text: IntArray
    log_p: Moments
    log_ratio: Moments | None = None

    def __len__(self) -> int:
        return len(self.p)

    @property
    def texts(self) -> int:
        """How many texts there are."""
        return int(np.count_nonzero(np.diff(self.text))) + 1 if len(self.text) else 0

    @classmethod
    def join(cls, parts: Iterable[Scores]) -> Scores:
        """Return several texts' scores as one, each part a text (or texts) of its own.

        Raises
        ------
        ValueError
            If there is none, or log p/q is known for some only.
        """
        every = list(parts)
        if not every:
            raise ValueError("scores is empty: score at least one text")
        ratios = [part.log_ratio for part in every if part.log_ratio is not None]
        if ratios and len(ratios) != len(every):
            raise ValueError(
                "the draft's distribution is known for some texts only: score all with it"
            )
        offset, texts = 0, []
        for part in every:
            texts.append(part.text - (part.text[0] if len(part) else 0) + offset)
            offset = int(texts[-1][-1]) + 1 if len(part) else offset
        return cls(
            np.concatenate([part.p for part in every]),
            np.concatenate([part.below for part in every]),
            np.concatenate(texts),
            _joined([part.log_p for part in every]),
            _joined(ratios) if ratios else None,
        )


def _joined(parts: list[Moments]) -> Moments:
    names = ("value", "mean", "variance", "third", "skew")
    return Moments(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


def score_tokens(distributions: Any, tokens: Any, draft_distributions: Any = None) -> Scores:
    """Return the scores of one text.

    Parameters
    ----------
    distributions : array ``(tokens, vocab)``
        The target's distribution **before** each token, after every sampling setting.
    tokens : array ``(tokens,)``
        The emitted ids.
    draft_distributions : array ``(tokens, vocab)``, optional
        The draft's distribution in the same contexts, for the test of log p/q.

    Raises
    ------
    ValueError
        If shapes disagree, an id is outside the vocabulary, or a distribution is none.

    Examples
    --------
    >>> scores = score_tokens([[0.25, 0.75], [0.5, 0.5]], [1, 0])
    >>> scores.p.tolist(), scores.below.tolist()
    ([0.75, 0.5], [0.25, 0.0])
    """
    p = checked_distributions(distributions, "the target")
    ids = np.asarray(tokens)
    if ids.shape != p.shape[:1] or ids.dtype.kind not in "iu":
        raise ValueError(
            f"tokens must be {len(p)} whole numbers, one per distribution, got {ids.dtype} "
            f"{ids.shape}"
        )
    if len(ids) and (ids.min() < 0 or ids.max() >= p.shape[1]):
        raise ValueError(f"tokens has an id outside 0 … {p.shape[1] - 1}")
    at = np.arange(len(ids))
    cdf = np.cumsum(p, axis=1)
    below = np.where(ids > 0, cdf[at, ids - 1], 0.0)
    ratio = None
    if draft_distributions is not None:
        q = checked_distributions(draft_distributions, "the draft")
        if q.shape != p.shape:
            raise ValueError(
                f"draft_distributions must have the shape of distributions, {p.shape}, got "
                f"{q.shape}"
            )
        ratio = _moments_of(p, log_ratio(p, q), ids)
    text = np.zeros(len(ids), dtype=np.int64)
    return Scores(p[at, ids], below, text, _moments_of(p, log_of(p), ids), ratio)


def log_of(p: FloatArray) -> FloatArray:
    """Return log p, with :data:`FLOOR` for 0."""
    out = np.full(p.shape, FLOOR)
    np.log(p, out=out, where=p > 0)
    return out


def log_ratio(p: FloatArray, q: FloatArray) -> FloatArray:
    """Return log p/q, clipped to ±:data:`WIDEST`."""
    out: FloatArray = np.clip(log_of(p) - log_of(q), -WIDEST, WIDEST)
    return out


def expectations(p: FloatArray, value: FloatArray) -> tuple[FloatArray, ...]:
    """Return four moments of ``value`` under each row of p.

    They are the mean, the variance, the third absolute central moment and the third central moment.
    """
    mean = np.einsum("rv,rv->r", p, value)
    away = value - mean[:, None]
    square = p * away * away  # (rows, vocab)
    return (
        mean,
        square.sum(axis=1),
        np.einsum("rv,rv->r", square, np.abs(away)),
        np.einsum("rv,rv->r", square, away),
    )


def _moments_of(p: FloatArray, value: FloatArray, ids: IntArray) -> Moments:
    return Moments(value[np.arange(len(ids)), ids], *expectations(p, value))
