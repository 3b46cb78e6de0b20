"""Exact probabilities of exponential races that share their noise.

In a race over a distribution w the token with the smallest E_i / w_i wins, E_i being independent
standard exponentials; token x wins with probability w_x. Races over several distributions with the
*same* E are dependent (that is what makes ``coupled`` agree so often), and their joint probability
is the volume of a cone: E / sum(E) is uniform on the simplex, and "x wins over w" is the
half-spaces w_i E_x <= w_x E_i.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from specviz.core.contract import FloatArray

Simplices = list[FloatArray]  # each (vocab, vocab): the vertices are the rows


def whole(vocab_size: int) -> Simplices:
    """Return the simplex of all E / sum(E), as one piece."""
    return [np.eye(vocab_size)]


def won(pieces: Simplices, distribution: FloatArray, winner: int) -> Simplices:
    """Return the part of ``pieces`` in which ``winner`` wins the race over ``distribution``."""
    for i in range(len(distribution)):
        if i != winner and distribution[i] > 0:
            normal = np.zeros(len(distribution))
            normal[winner], normal[i] = (
                distribution[i],
                -distribution[winner],
            )  # distribution_i E_x - distribution_x E_i <= 0
            pieces = [part for piece in pieces for part in _clip(piece, piece @ normal)]
    return pieces


def volume(pieces: Simplices) -> float:
    """Return the probability of ``pieces``: their share of the whole simplex."""
    return float(sum(abs(np.linalg.det(piece)) for piece in pieces))


def joint(races: Sequence[tuple[FloatArray, int]]) -> float:
    """Return the probability that every race (distribution, winner) has that winner, all sharing E.

    Examples
    --------
    >>> p, q = np.array([0.5, 0.5]), np.array([0.25, 0.75])
    >>> round(joint([(p, 0), (q, 0)]) + joint([(p, 1), (q, 1)]), 12)
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
