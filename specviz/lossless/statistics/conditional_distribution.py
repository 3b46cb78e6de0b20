"""The target's distribution given the text so far: checked once per context, and kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from specviz.core.contract import FloatArray

Prefix = tuple[int, ...]
Conditional = Callable[[Prefix], Any]
"""Emitted tokens so far → the distribution ``(vocab,)`` of the next one, after the prompt."""

TOLERANCE = 1e-3
"""A distribution may miss a sum of 1 by so much (half precision); it is renormalised in float64."""


class ConditionalDistribution:
    """A conditional distribution that is asked once per context.

    Parameters
    ----------
    conditional : callable
        ``prefix -> (vocab,)``, the prefix being the emitted tokens so far. If it has a method
        ``many(prefixes) -> (k, vocab)``, contexts of one length are asked for together.
    vocab_size : int
        How many tokens the distribution must have.
    name : str
        What to call it in an error.

    Examples
    --------
    >>> coin = ConditionalDistribution(lambda prefix: [0.25, 0.75], vocab_size=2)
    >>> coin((0, 1)).tolist()
    [0.25, 0.75]
    """

    def __init__(self, conditional: Conditional, vocab_size: int, name: str = "target") -> None:
        if not callable(conditional):
            raise TypeError(
                f"{name} must be a callable: emitted tokens so far -> distribution (vocab,), "
                f"got {type(conditional).__name__}"
            )
        self.conditional = conditional
        self.vocab_size = vocab_size
        self.name = name
        self._known: dict[Prefix, FloatArray] = {}

    def __call__(self, prefix: Prefix) -> FloatArray:
        """Return the distribution ``(vocab,)`` after ``prefix``, float64, summing to 1."""
        distribution: FloatArray = self.rows([prefix])[0]
        return distribution

    def rows(self, prefixes: Sequence[Prefix]) -> FloatArray:
        """Return the distributions ``(k, vocab)`` after k prefixes of one length.

        Raises
        ------
        ValueError
            If a distribution has another size, a NaN, a negative entry, or does not sum to 1.
        """
        new = [prefix for prefix in dict.fromkeys(prefixes) if prefix not in self._known]
        if new:
            many = getattr(self.conditional, "many", None)
            distributions = (
                many(new) if many is not None else [self.conditional(prefix) for prefix in new]
            )
            for prefix, distribution in zip(new, distributions, strict=True):
                self._known[prefix] = checked_distribution(
                    distribution, self.vocab_size, f"{self.name} after {prefix}"
                )
        return np.stack([self._known[prefix] for prefix in prefixes])


def checked_distribution(distribution: Any, vocab_size: int, where: str) -> FloatArray:
    """Return one distribution ``(vocab,)`` as float64 that sums to 1, or refuse it."""
    try:
        row = np.asarray(distribution, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(
            f"the distribution of {where} must be probabilities ({vocab_size},), got "
            f"{distribution!r:.60}"
        ) from None
    if row.shape != (vocab_size,):
        raise ValueError(
            f"the distribution of {where} has shape {row.shape}, expected ({vocab_size},)"
        )
    checked: FloatArray = checked_distributions(row[None], where)[0]
    return checked


def checked_distributions(distributions: Any, where: str) -> FloatArray:
    """Return distributions ``(k, vocab)`` as float64 that sum to 1.

    Raises
    ------
    ValueError
        If an entry is NaN, infinite or negative, or a row's sum is not 1.
    """
    rows = np.asarray(distributions, dtype=np.float64)
    if rows.ndim != 2:
        raise ValueError(
            f"the distributions of {where} must have shape (k, vocab), got {rows.shape}"
        )
    if not np.all(np.isfinite(rows)):
        raise ValueError(
            f"the distribution of {where} has NaN or infinite entries: no test can use it"
        )
    if np.any(rows < 0):
        raise ValueError(
            f"the distribution of {where} has a negative probability, {rows.min():.3g}"
        )
    sums = rows.sum(axis=1, keepdims=True)
    worst = float(np.abs(sums - 1).max(initial=0.0))
    if worst > TOLERANCE:
        raise ValueError(
            f"probabilities of {where} do not sum to 1 (off by {worst:.3g}): give probabilities "
            f"after every "
            f"sampling setting (not logits, not log-probabilities)"
        )
    out: FloatArray = rows / sums
    return out
