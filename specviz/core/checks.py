"""Is an argument what it must be? One sentence that names it, what it was and what would do."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf, isfinite
from typing import Any

import numpy as np


def whole(name: str, value: Any, least: int = 0, most: int | None = None) -> int:
    """Return a whole number within bounds.

    Raises
    ------
    ValueError
        Naming the argument, what it was and what would do.

    Examples
    --------
    >>> whole("length", 3, 1)
    3
    """
    fits = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not fits or value < least or (most is not None and value > most):
        large = fits and most is not None and value > most
        wanted = f"from {least} to {most:,}" if large else f">= {least}"
        raise ValueError(f"{name} must be a whole number {wanted}, got {value!r:.60}")
    return int(value)


def number(name: str, value: Any, low: float = -inf, high: float = inf) -> float:
    """Return a finite number within bounds, both allowed.

    Raises
    ------
    TypeError, ValueError
        Naming the argument, what it was and what would do.

    Examples
    --------
    >>> number("near", 0.5, 0)
    0.5
    """
    if isinstance(value, (bool, np.bool_)) or not isinstance(
        value, (int, float, np.integer, np.floating)
    ):
        raise TypeError(f"{name} must be a number, got {value!r:.60}")
    if not isfinite(value) or not low <= value <= high:
        bounds = [f"at least {low:g}"] * (low > -inf) + [f"at most {high:g}"] * (high < inf)
        wanted = " and ".join(bounds) or "finite"
        raise ValueError(f"{name} must be a number, {wanted}, got {value!r:.60}")
    return float(value)


def checked_level(alpha: Any) -> float:
    """Return a level of a test, between 0 and 1."""
    value = number("alpha", alpha)
    if not 0 < value < 1:
        raise ValueError(f"alpha must lie between 0 and 1, got {alpha}")
    return value


def checked_tables(pair: Any) -> None:
    """Refuse what is no pair."""
    if not hasattr(pair, "target") or not hasattr(pair, "encode"):
        raise TypeError(
            f"pair must be a Pair or TabularPair (sv.tabular), got {type(pair).__name__}"
        )


def bare_ids(name: str, tokens: Any, vocab_size: int | None = None) -> Any:
    """Return token ids ``(n,)`` as int64, or say what they are instead.

    Raises
    ------
    TypeError, ValueError
        If they are text, no flat list, no whole numbers, or outside the vocabulary.

    Examples
    --------
    >>> bare_ids("prompt", [3, 1]).tolist()
    [3, 1]
    """
    wanted = f"{name} must be one list of token ids"
    if isinstance(tokens, (str, bytes)):
        raise TypeError(f"{wanted}, got the text {tokens[:40]!r}: encode it")
    rows = tokens.tolist() if hasattr(tokens, "tolist") else tokens
    if not isinstance(rows, Iterable):
        raise TypeError(f"{wanted}, got {type(tokens).__name__}")
    rows = list(rows)
    try:
        ids = np.asarray(rows) if rows else np.zeros(0, dtype=np.int64)
    except (TypeError, ValueError, RuntimeError):
        raise TypeError(f"{wanted}, got lists of different lengths in it") from None
    if ids.ndim != 1:
        raise TypeError(f"{wanted}, got shape {ids.shape}")
    if ids.dtype.kind not in "iu" or any(isinstance(x, (bool, np.bool_)) for x in rows):
        odd = next(
            (x for x in rows if np.asarray(x).dtype.kind not in "iu"), rows[0] if rows else None
        )
        raise TypeError(f"{wanted}, got {type(odd).__name__} such as {odd!s:.40}")
    if vocab_size is not None and ids.size and (ids.min() < 0 or ids.max() >= vocab_size):
        wrong = ids.min() if ids.min() < 0 else ids.max()
        raise ValueError(f"{name} has id {wrong}, outside the vocabulary of {vocab_size:,} tokens")
    return ids.astype(np.int64)
