"""Draws that follow a script: how a program is run once for every way its draws can fall."""

from __future__ import annotations

from typing import Any

import numpy as np

from specviz.core.contract import FloatArray
from specviz.core.draws import Event, Purpose
from specviz.lossless.exact import races


class Branching:
    """Draws that follow a script, then take the first way open, noting the others.

    Implements :class:`specviz.core.draws.Draws`; ``weight`` is the probability of the way taken,
    ``untaken`` the scripts of the ways passed by.
    """

    def __init__(self, script: tuple[int, ...] = ()) -> None:
        self.log: list[Event] = []
        self.weight = 1.0
        self.untaken: list[tuple[int, ...]] = []
        self._script = script
        self._taken: list[int] = []
        self._races: dict[int, list[tuple[FloatArray, int]]] = {}

    def begin_round(self, index: int) -> None:
        """Go on to a round (branches need no keys)."""

    def _branch(self, chances: FloatArray) -> int:
        """Return which of several ways is taken, and note the others that are possible."""
        step = len(self._taken)
        if step < len(self._script):
            way = self._script[step]
        else:
            way, *others = np.flatnonzero(chances > 0).tolist()
            taken = tuple(self._taken)
            self.untaken.extend((*taken, other) for other in others)
        self._taken.append(way)
        self.weight *= float(chances[way])
        return way

    def accept(self, probability: float, position: int, node: int) -> bool:
        """Branch into accepted and not."""
        return self._branch(np.array([1.0 - probability, probability])) == 1

    def categorical(
        self, distribution: Any, position: int, node: int = 0, purpose: Purpose = Purpose.CLOSING
    ) -> int:
        """Branch over every token with mass."""
        return self._branch(np.asarray(distribution, dtype=np.float64) / np.sum(distribution))

    def race(self, distribution: Any, position: int, node: int = -1) -> int:
        """Branch over the winners, given every race that shared this position's noise."""
        run = self._races.setdefault(position, [])
        weights = np.asarray(distribution, dtype=np.float64)
        if not run:
            chances = weights / weights.sum()
        else:
            before = races.joint(run)
            chances = np.array(
                [races.joint([*run, (weights, x)]) if weights[x] > 0 else 0.0
                 for x in range(len(weights))]
            ) / before  # fmt: skip
        winner = self._branch(chances)
        run.append((weights, winner))
        return winner
