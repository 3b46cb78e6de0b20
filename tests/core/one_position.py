"""The distributions of golden.json's one position, and drafters that propose there."""

from __future__ import annotations

import numpy as np

from specviz.core.contract import Draft, FloatArray
from specviz.core.draws import Purpose
from tests.core.branching import Ways
from tests.core.golden import GOLDEN, distribution

ONE = GOLDEN["one_position"]
P, Q = distribution(ONE["p"]), distribution(ONE["q"])
V = len(P)
AFTER = np.array([0.7, 0.1, 0.1, 0.1])  # what follows an accepted proposal


def rows(n: int) -> FloatArray:
    """Target distributions ``(n + 1, vocab)``: P where the text stands,
    another distribution after every node.
    """
    return np.stack([P] + [np.roll(AFTER, i) for i in range(n)])


# Drafters of one position: draws → Draft.


def one_sample(draws: Ways) -> Draft:
    return Draft.chain([draws.categorical(Q, 0, 0, Purpose.DRAFT)], Q[None], V)


def with_replacement(draws: Ways) -> Draft:
    x = [draws.categorical(Q, 0, i, Purpose.DRAFT) for i in range(2)]
    return siblings(x, np.stack([Q, Q]))


def without_replacement(draws: Ways, *, renormalise: bool = True) -> Draft:
    first = draws.categorical(Q, 0, 0, Purpose.DRAFT)
    rest = np.where(np.arange(V) == first, 0, Q)
    second_distribution = rest / rest.sum()
    second = draws.categorical(second_distribution, 0, 1, Purpose.DRAFT)
    return siblings([first, second], np.stack([Q, second_distribution if renormalise else rest]))


def top_two(draws: Ways) -> Draft:
    return siblings(np.argsort(-Q, kind="stable")[:2].tolist(), None)


def siblings(tokens: list[int], q: FloatArray | None) -> Draft:
    n = len(tokens)
    ids, root = np.array(tokens), np.full(n, -1)
    if q is None:
        return Draft(ids, root, np.zeros((0, V)), root.copy())
    return Draft(ids, root, q, np.arange(n))
