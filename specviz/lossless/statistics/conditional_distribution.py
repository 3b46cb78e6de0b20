"""The target's distribution given the text so far: checked once per context, and kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from specviz.core import checks
from specviz.core.contract import FloatArray

Prefix = tuple[int, ...]
Conditional = Callable[[Prefix], Any]
"""Emitted tokens so far → the distribution ``(vocab,)`` of the next one, after the prompt."""

TOLERANCE = 1e-3
"""How far a sum may be from 1 (half precision); distributions are renormalised in float64."""


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
        TypeError, ValueError
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
    row = checks.distribution(where, distribution, vocab_size, tolerance=TOLERANCE)
    out: FloatArray = row / row.sum()
    return out


def checked_distributions(distributions: Any, where: str) -> FloatArray:
    """Return distributions ``(k, vocab)`` as float64 that sum to 1, or refuse them."""
    rows = checks.distributions(where, distributions, tolerance=TOLERANCE)
    out: FloatArray = rows / rows.sum(axis=1, keepdims=True)
    return out
