"""Randomness as an algorithm sees it: accept, categorical, race; keyed, so that it can be replayed.

A rule or a drafter asks for a draw by *position* (of the token it decides, counted from the start
of the text) and *node* (which proposal). The sampler below computes the number from a key; the
exact enumerator (:mod:`specviz.lossless.exact.enumerate`) branches instead; the replayer
(:mod:`specviz.core.trace.replay`) answers with what was recorded. All three run the same rule.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Protocol

import numpy as np

from specviz.core import checks, philox
from specviz.core.arrays import FloatArray


class Purpose(IntEnum):
    """What a draw is for: the first word of its counter."""

    DRAFT = 0
    ACCEPT = 1
    CLOSING = 2
    TARGET = 3
    """The target's own token at a position: no round in its key, the same whoever asks."""


@dataclass(frozen=True)
class AcceptDraw:
    """An accept draw: ``accepted`` is ``u < probability``."""

    position: int
    node: int
    probability: float
    u: float
    accepted: bool


@dataclass(frozen=True)
class CategoricalDraw:
    """A categorical draw by inverse CDF over token ids: ``cdf_lo <= u * mass < cdf_hi``."""

    purpose: Purpose
    position: int
    node: int
    token: int
    u: float
    cdf_lo: float
    cdf_hi: float
    mass: float
    cdf: FloatArray  # (vocab,) inclusive cumulative sums of the distribution


@dataclass(frozen=True)
class RaceDraw:
    """An exponential race: token i arrives at ``E_i / p_i``, and the first to arrive wins."""

    position: int
    node: int
    token: int
    time: float
    runner_up: int
    runner_up_time: float


Event = AcceptDraw | CategoricalDraw | RaceDraw


class Draws(Protocol):
    """The only source of randomness that rules and drafters see."""

    @property
    def log(self) -> list[Event]:
        """What was drawn in this round."""
        ...

    def begin_round(self, index: int) -> None:
        """Go on to a round: its number enters the keys, its log starts empty."""
        ...

    def accept(self, probability: float, position: int, node: int) -> bool:
        """Return True with the given probability."""
        ...

    def categorical(
        self, distribution: Any, position: int, node: int = 0, purpose: Purpose = Purpose.CLOSING
    ) -> int:
        """Return a token drawn from ``distribution``."""
        ...

    def race(self, distribution: Any, position: int, node: int = -1) -> int:
        """Return a token drawn from ``distribution`` by the target's own noise at this position."""
        ...


def invert(cdf: FloatArray, u: float) -> int:
    """Return the first token whose cumulative mass exceeds ``u`` times the whole.

    A token of probability 0 has no width and is never returned.
    """
    token = int(np.searchsorted(cdf, u * cdf[-1], side="right"))
    if token == len(cdf):  # u * mass rounded up to the mass itself: the last token with width
        token = int(np.searchsorted(cdf, cdf[-1], side="left"))
    return token


def exponentials(
    seed: int, sequence: int, position: int, tokens: Any, purpose: int = Purpose.TARGET
) -> FloatArray:
    """Return E_i, the target's noise at a position, for the given token ids (standard Exp)."""
    noise: FloatArray = -np.log(philox.uniforms(seed, sequence, purpose, position, 0, tokens))
    return noise


def arrivals(noise: FloatArray, distribution: Any) -> FloatArray:
    """Return the arrival times ``E_i / p_i``; a token of probability 0 never arrives."""
    times = np.full(len(noise), np.inf)
    np.divide(noise, distribution, out=times, where=np.asarray(distribution) > 0)
    return times


class Sampler:
    """Draws that are computed from a key, and logged.

    Parameters
    ----------
    seed : int
        The run's seed, below 2**32.
    sequence : int
        The index of this text among those drawn with the same seed.

    Examples
    --------
    >>> draws = Sampler(seed=0)
    >>> draws.accept(1.0, position=5, node=0), draws.accept(0.0, position=5, node=1)
    (True, False)
    """

    def __init__(self, seed: int, sequence: int = 0) -> None:
        self.seed = checks.seed(seed)
        self.sequence = checks.seed(sequence, "sequence")
        self.round = 0
        self.log: list[Event] = []

    def begin_round(self, index: int) -> None:
        """Go on to a round: its number enters the keys, its log starts empty."""
        self.round = index
        self.log = []

    def uniform(
        self, purpose: Purpose, position: int, node: int = 0, round_index: int | None = None
    ) -> float:
        """Return the number behind a draw, by default of this round, looked at or not."""
        when = self.round if round_index is None else round_index
        return philox.uniform(self.seed, self.sequence, purpose, position, when, node)

    def accept(self, probability: float, position: int, node: int) -> bool:
        """Return ``u < probability``, strictly: probability 0 is never accepted."""
        u = self.uniform(Purpose.ACCEPT, position, node)
        accepted = u < probability
        self.log.append(AcceptDraw(position, node, float(probability), u, accepted))
        return accepted

    def categorical(
        self, distribution: Any, position: int, node: int = 0, purpose: Purpose = Purpose.CLOSING
    ) -> int:
        """Return a token by inverse CDF in float64, over token ids in order."""
        u = self.uniform(purpose, position, node)
        cdf = np.cumsum(np.asarray(distribution, dtype=np.float64))  # (vocab,)
        token = invert(cdf, u)
        low = float(cdf[token - 1]) if token else 0.0
        self.log.append(
            CategoricalDraw(purpose, position, node, token, u, low, float(cdf[token]), cdf[-1], cdf)
        )
        return token

    def race(self, distribution: Any, position: int, node: int = -1) -> int:
        """Return the winner of the race with the target's noise at ``position``."""
        noise = exponentials(self.seed, self.sequence, position, np.arange(len(distribution)))
        times = arrivals(noise, distribution)
        token = int(np.argmin(times))
        first = float(times[token])
        times[token] = np.inf
        second = int(np.argmin(times))
        self.log.append(RaceDraw(position, node, token, first, second, float(times[second])))
        return token
