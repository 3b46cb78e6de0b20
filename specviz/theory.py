"""Closed forms of speculative decoding, and when it pays.

``alpha`` is the probability that a proposal is accepted, taken as the same and independent at every
position; ``gamma`` is how many are proposed; ``c`` is the time of one draft step divided by that of
one target pass; ``v`` is the time of verifying gamma + 1 tokens, in target passes (1 if it takes no
longer than one token). Formulas are from Leviathan et al. (2023) unless said otherwise. Everything
works on numbers and on numpy arrays.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike


def expected_tokens(alpha: ArrayLike, gamma: ArrayLike) -> Any:
    """Return the expected tokens per target pass, (1 - a^(g+1)) / (1 - a). Equation 1.

    Examples
    --------
    >>> round(float(expected_tokens(0.8, 5)), 2)
    3.69
    >>> float(expected_tokens(1.0, 5))
    6.0
    """
    a, g = _checked(alpha, gamma)
    with np.errstate(divide="ignore", invalid="ignore"):
        series = (1 - a ** (g + 1)) / (1 - a)
    return np.where(a == 1, g + 1, series)[()]


def speedup(alpha: ArrayLike, gamma: ArrayLike, c: ArrayLike, v: ArrayLike = 1.0) -> Any:
    """Return the wall-clock gain, expected tokens / (g c + v). Theorem 3.8 for v = 1.

    Examples
    --------
    >>> round(float(speedup(0.75, 7, 0.02)), 2)
    3.16
    """
    costs = np.asarray(gamma) * _cost("c", c) + _cost("v", v)
    return (expected_tokens(alpha, gamma) / costs)[()]


def best_gamma(alpha: float, c: float, v: float = 1.0, *, highest: int = 200) -> int:
    """Return the gamma with the largest :func:`speedup`; 0 where speculation only loses.

    The lowest of equals; v is taken as the same for every gamma.

    Examples
    --------
    >>> best_gamma(0.7, 0.01), best_gamma(0.2, 0.5)
    (9, 0)
    """
    gammas = np.arange(1, highest + 1)
    gains = speedup(alpha, gammas, c, v)
    best = int(np.argmax(gains))
    return int(gammas[best]) if gains[best] > 1 else 0


def operations(alpha: ArrayLike, gamma: ArrayLike, c_ops: ArrayLike = 0.0) -> Any:
    """Return arithmetic done, relative to target-only decoding. Theorem 3.11.

    (1 - a)(g c' + g + 1) / (1 - a^(g+1)), c' being the draft's operations per token divided by
    the target's. Speculation trades more operations for fewer passes.

    Examples
    --------
    >>> round(float(operations(0.8, 5)), 2)
    1.63
    """
    g = np.asarray(gamma)
    return ((g * _cost("c_ops", c_ops) + g + 1) / expected_tokens(alpha, gamma))[()]


def break_even_alpha(gamma: int, c: float, v: float = 1.0) -> float:
    """Return the smallest alpha at which ``gamma`` proposals a round do not lose time.

    With gamma = 1 and v = 1 it is c itself. NaN if even alpha = 1 loses.

    Examples
    --------
    >>> round(break_even_alpha(1, 0.1), 6)
    0.1
    """
    if speedup(1.0, gamma, c, v) < 1:
        return float("nan")
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if speedup(middle, gamma, c, v) >= 1 else (middle, high)
    return high


def coupled_agreement(tv: ArrayLike) -> Any:
    """Return (1 - TV) / (1 + TV), the least probability that two races sharing their noise agree.

    Daliri, Musco & Suresh (2025), "Coupling without communication and drafter-invariant speculative
    decoding".

    Examples
    --------
    >>> float(coupled_agreement(0.5))
    0.3333333333333333
    """
    distance = np.asarray(tv, dtype=np.float64)
    if not np.all((distance >= 0) & (distance <= 1)):
        raise ValueError(f"tv must lie between 0 and 1, got {tv!r}")
    return ((1 - distance) / (1 + distance))[()]


def _checked(alpha: ArrayLike, gamma: ArrayLike) -> tuple[Any, Any]:
    a, g = np.asarray(alpha, dtype=np.float64), np.asarray(gamma)
    if not np.all((a >= 0) & (a <= 1)):
        raise ValueError(f"alpha must lie between 0 and 1, got {alpha!r}")
    if not np.all(g >= 0):
        raise ValueError(f"gamma must be >= 0, got {gamma!r}")
    return a, g


def _cost(name: str, value: ArrayLike) -> Any:
    cost = np.asarray(value, dtype=np.float64)
    if not np.all((cost >= 0) & np.isfinite(cost)):
        raise ValueError(f"{name} must be a finite number >= 0, got {value!r}")
    return cost
