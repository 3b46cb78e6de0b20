"""Draws that branch: how a program is run once for every way its draws can fall.

An accept or a categorical draw branches over its outcomes. A race branches over its winners, and
races that share their noise are dependent (that is why ``coupled`` agrees so often). In a race over
a distribution w the token with the smallest E_i / w_i wins, E_i being independent standard
exponentials, so that token x wins with probability w_x. E / sum(E) is uniform on the simplex, and
"x wins over w" is the half-spaces w_i E_x <= w_x E_i; so the probability that several races with
the *same* E have given winners is the volume of a cone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from specviz.core.contract import FloatArray
from specviz.core.draws import Event, Purpose


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
            before = joint_probability(run)
            chances = np.array(
                [joint_probability([*run, (weights, x)]) if weights[x] > 0 else 0.0
                 for x in range(len(weights))]
            ) / before  # fmt: skip
        winner = self._branch(chances)
        run.append((weights, winner))
        return winner


Simplices = list[FloatArray]  # each (vocab, vocab): the vertices are the rows


def whole(vocab_size: int) -> Simplices:
    """Return the simplex of all E / sum(E), as one piece."""
    return [np.eye(vocab_size)]


def won(pieces: Simplices, distribution: FloatArray, winner: int) -> Simplices:
    """Return the part of ``pieces`` in which ``winner`` wins the race over ``distribution``."""
    for i in range(len(distribution)):
        if i != winner and distribution[i] > 0:
            normal = np.zeros(len(distribution))
            # w_i E_x - w_x E_i <= 0
            normal[winner], normal[i] = distribution[i], -distribution[winner]
            pieces = [part for piece in pieces for part in _clip(piece, piece @ normal)]
    return pieces


def volume(pieces: Simplices) -> float:
    """Return the probability of ``pieces``: their share of the whole simplex."""
    return float(sum(abs(np.linalg.det(piece)) for piece in pieces))


def joint_probability(races: Sequence[tuple[FloatArray, int]]) -> float:
    """Return the probability that every race (distribution, winner) has that winner, all sharing E.

    Examples
    --------
    >>> p, q = np.array([0.5, 0.5]), np.array([0.25, 0.75])
    >>> round(joint_probability([(p, 0), (q, 0)]) + joint_probability([(p, 1), (q, 1)]), 12)
    0.75
    """
    pieces = whole(len(races[0][0]))
    for distribution, winner in races:
        pieces = won(pieces, np.asarray(distribution, dtype=np.float64), winner)
    return volume(pieces)


def _clip(simplex: FloatArray, side: FloatArray) -> Simplices:
    """Return the simplices that make up ``simplex`` where a linear function is not positive.

    ``side`` holds the function at each vertex. An edge that crosses zero is cut there, which
    leaves two simplices with fewer crossing edges each.
    """
    if np.all(side <= 0):
        return [simplex]
    if np.all(side >= 0):
        return []
    low, high = int(np.argmin(side)), int(np.argmax(side))
    share = side[high] / (side[high] - side[low])
    cut = share * simplex[low] + (1 - share) * simplex[high]  # the function is 0 here
    pieces: Simplices = []
    for replaced in (high, low):
        part, at = simplex.copy(), side.copy()
        part[replaced], at[replaced] = cut, 0.0
        pieces += _clip(part, at)
    return pieces
