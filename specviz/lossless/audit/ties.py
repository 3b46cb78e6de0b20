"""Ties at the edge of what top-k, top-p, min-p or greedy decoding keeps.

Where tokens on both sides of that edge have the same logit, the settings do not say which of them
are kept: sorting does, and engines sort differently. In bfloat16 such ties are common, and between
passes of other shapes rounding makes them of near ties. So an audit judges texts as this package
breaks ties (smallest ids first); if the texts depart, it judges once more with the ties left open:

- ``"some"``: as many of the tied tokens are kept as here, whichever. Their probability *together*
  is the target's; how it is shared among them is taken from the texts, up to what a token has that
  is always kept.
- ``"all"``: every tied token is kept, as a comparison with the k-th largest logit does.

A sampler that is wrong elsewhere departs in every reading.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from specviz.core.contract import FloatArray, IntArray, Sampling

NEAR = {"float64": 1e-9, "float32": 1e-3, "float16": 0.05, "bfloat16": 0.25}
"""A gap between two logits that batching may turn around, by the dtype computed in."""

READINGS = ("some", "all")


def near_gap(model: Any) -> float:
    """Return the gap between two logits of a model that rounding may turn around."""
    return NEAR.get(str(getattr(model, "dtype", "float64")), NEAR["bfloat16"])


@dataclass(frozen=True)
class Tie:
    """Tokens of one context whose logits equal that of the last token kept, up to rounding.

    Parameters
    ----------
    tokens : IntArray
        Their ids, kept or not.
    kept : IntArray
        Those of them that are kept here.
    weights : FloatArray
        exp of their logits over the temperature, that of the last token kept being 1.
    gap : float
        By how much the first token left out is below the last one kept.
    """

    tokens: IntArray
    kept: IntArray
    weights: FloatArray
    gap: float


@dataclass
class TieCount:
    """In how many of the contexts there was a tie, and where first."""

    contexts: int = 0
    tied: int = 0
    gap: float = 0.0
    first: tuple[int, ...] = ()

    def add(self, tie: Tie | None, text: Sequence[int]) -> None:
        """Count a context: its tie, and the emitted tokens before it."""
        self.contexts += 1
        if tie is None:
            return
        if not self.tied:
            self.first = tuple(int(token) for token in text)
        self.tied += 1
        self.gap = max(self.gap, tie.gap)

    def plus(self, other: TieCount) -> TieCount:
        """Return the count of both."""
        first = self.first if self.tied else other.first
        return TieCount(
            self.contexts + other.contexts, self.tied + other.tied, max(self.gap, other.gap), first
        )


def truncates(sampling: Sampling) -> bool:
    """Return whether the settings leave tokens out."""
    return sampling.greedy or sampling.top_k > 0 or sampling.top_p < 1.0 or sampling.min_p > 0.0


def find_ties(
    logits: Any, distributions: FloatArray, sampling: Sampling,
    histories: Sequence[IntArray] | None, near: float,
) -> list[Tie | None]:  # fmt: skip
    """Return the tie of each row, or None.

    Parameters
    ----------
    logits : array
        ``(n, vocab)`` as the model gave them.
    distributions : FloatArray
        ``(n, vocab)`` what the settings make of them.
    sampling : Sampling
        The settings.
    histories : sequence of IntArray or None
        What a repetition penalty looks back on.
    near : float
        The gap between two logits that counts as a tie.

    Examples
    --------
    >>> logits, kept = np.log([[4.0, 2.0, 2.0, 1.0]]), np.array([[0.67, 0.33, 0.0, 0.0]])
    >>> found = find_ties(logits, kept, Sampling(top_k=2), None, near=1e-9)[0]
    >>> found.tokens.tolist(), found.kept.tolist()
    ([1, 2], [1])
    """
    from specviz.decoding.sampling import penalised

    if not truncates(sampling):
        return [None] * len(distributions)
    scores = penalised(logits, sampling.repetition_penalty, histories)
    temperature = sampling.temperature or 1.0
    out: list[Tie | None] = []
    for row, kept in zip(scores, distributions > 0, strict=True):
        edge = row[kept].min()
        tied = np.abs(row - edge) <= near
        left_out = tied & ~kept
        if not left_out.any():
            out.append(None)
            continue
        ids = np.flatnonzero(tied)
        weights = np.exp((row[ids] - edge) / temperature)
        gap = float(edge - row[left_out].max())
        out.append(Tie(ids, np.flatnonzero(tied & kept), weights, max(0.0, gap)))
    return out


def all_kept(distribution: FloatArray, tie: Tie) -> FloatArray:
    """Return the distribution ``(vocab,)`` if every tied token is kept."""
    out = distribution.copy()
    out[tie.tokens] = distribution[tie.kept].min() * tie.weights
    out /= out.sum()
    return out


def shared_as_seen(distribution: FloatArray, tie: Tie, seen: Mapping[int, int]) -> FloatArray:
    """Return the distribution if tied tokens share their probability as they were seen to.

    A token has at most what it has where it is kept beside the least likely others: of m equal
    ones that are kept, 1 / m of their probability.
    """
    counts = np.array([seen.get(int(token), 0) for token in tie.tokens], dtype=np.float64)
    if not counts.any():
        return distribution
    others = np.sort(tie.weights)[: len(tie.kept) - 1].sum()
    most = tie.weights / (tie.weights + others)  # (tied,)
    share, full = counts / counts.sum(), np.zeros(len(counts), dtype=bool)
    for _ in counts:  # what is above its most goes to the others, in proportion
        full |= share > most
        left, rest = 1.0 - most[full].sum(), ~full
        if not full.any() or left <= 0 or not rest.any():
            break
        to = counts[rest] if counts[rest].any() else tie.weights[rest]
        share = np.where(full, most, 0.0)
        share[rest] = left * to / to.sum()
    out = distribution.copy()
    out[tie.tokens] = distribution[tie.kept].sum() * np.minimum(share, most)
    out /= out.sum()
    return out


def as_one(row: FloatArray, tie: Tie) -> FloatArray:
    """Return the row ``(vocab,)`` with the probability of all tied tokens on the first of them."""
    out = row.copy()
    out[tie.tokens] = 0.0
    out[tie.tokens[0]] = row[tie.tokens].sum()
    return out


Seen = Mapping[tuple[int, ...], Mapping[int, int]]
"""Emitted tokens so far → how often each token came next."""


def seen_next(texts: Any) -> Seen:
    """Return how often each token came after each beginning, of texts ``(n, length)``."""
    out: dict[tuple[int, ...], Counter[int]] = defaultdict(Counter)
    for text in np.asarray(texts).tolist():
        for t, token in enumerate(text):
            out[tuple(text[:t])][token] += 1
    return out
