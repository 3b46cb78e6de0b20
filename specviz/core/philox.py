"""Philox 4x32-10, a counter-based random number generator (Salmon et al., SC 2011).

A number is a pure function of a *key* and a *counter*: there is no state to carry, so any draw
of any round can be recomputed on its own, in any order, on any device. Written with int64
operations that wrap around, which numpy arrays and torch tensors share.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from specviz.core.arrays import FloatArray

MASK = 0xFFFFFFFF
MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
KEY_STEPS = (0x9E3779B9, 0xBB67AE85)
ROUNDS = 10


def _high_low(a: Any, multiplier: int) -> tuple[Any, Any]:
    """Return the high and low 32 bits of ``a * multiplier`` (both 32-bit values in int64)."""
    product = a * multiplier  # wraps modulo 2**64; the masks below undo the sign extension
    return (product >> 32) & MASK, product & MASK


def philox(counter: tuple[Any, Any, Any, Any], key: tuple[int, int]) -> tuple[Any, Any, Any, Any]:
    """Return four words of 32 random bits for every counter.

    Parameters
    ----------
    counter : tuple of four int64 arrays (numpy or torch)
        Each element below 2**32; shapes broadcast.
    key : tuple of two int
        Each below 2**32.

    Returns
    -------
    tuple of four int64 arrays
        Uniform words below 2**32.

    Examples
    --------
    >>> zero = np.zeros(1, dtype=np.int64)
    >>> [hex(int(word[0])) for word in philox((zero, zero, zero, zero), (0, 0))]
    ['0x6627e8d5', '0xe169c58d', '0xbc57ac4c', '0x9b00dbd8']
    """
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(ROUNDS):
        high0, low0 = _high_low(c0, MULTIPLIERS[0])
        high1, low1 = _high_low(c2, MULTIPLIERS[1])
        c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
        k0, k1 = (k0 + KEY_STEPS[0]) & MASK, (k1 + KEY_STEPS[1]) & MASK
    return c0, c1, c2, c3


def _unit(high: Any, low: Any) -> Any:
    """Return 52 of the bits of two words as a number in the open interval (0, 1)."""
    return (((high << 20) | (low >> 12)) + 0.5) * 2.0**-52


def uniform(
    seed: int, sequence: int, purpose: int, position: int, round_index: int, lane: int
) -> float:
    """Return one uniform in the open interval (0, 1).

    Parameters
    ----------
    seed, sequence : int
        The key: the run's seed and the index of the sequence within it.
    purpose, position, round_index, lane : int
        The counter: what the draw is for, the absolute position of its token, the round, and
        which node of the draft.

    Examples
    --------
    >>> uniform(0, 0, 1, 7, 2, 3) == float(uniforms(0, 0, 1, 7, 2, np.arange(4))[3])
    True
    """
    counter = (int(purpose), int(position), int(round_index), int(lane))  # numpy's would overflow
    high, low, _, _ = philox(counter, (seed & MASK, sequence & MASK))
    return float(_unit(high, low))


def uniforms(
    seed: int, sequence: int, purpose: int, position: int, round_index: int, lanes: Any
) -> FloatArray:
    """Return one uniform float64 in the open interval (0, 1) for each lane ``(n,)``.

    The same numbers as :func:`uniform`, all lanes at once.

    Examples
    --------
    >>> uniforms(0, 0, 1, 7, 2, [0, 1, 2]).shape
    (3,)
    """
    lane = np.asarray(lanes, dtype=np.int64)
    what, where, when = (np.full(lane.shape, word) for word in (purpose, position, round_index))
    high, low, _, _ = philox((what, where, when, lane), (seed & MASK, sequence & MASK))
    out: FloatArray = _unit(high, low)
    return out
