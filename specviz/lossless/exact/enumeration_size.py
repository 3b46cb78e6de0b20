"""How many ways an enumeration has to run, before it runs: what would take years is refused.

The number of leaves of a tree too large to walk is estimated by random walks down it: the product
of the branchings met is right on average (Knuth 1975, "Estimating the efficiency of backtrack
programs").
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from specviz.core.contract import FloatArray
from specviz.lossless.exact.branching import Branching

MOST = 300_000
"""Largest number of ways an enumeration may run: minutes."""

WALKS = 32

Program = Callable[[Branching], Any]


class _Walk(Branching):
    """Draws that fall at random, counting how many ways were open each time."""

    def __init__(self, generator: np.random.Generator) -> None:
        super().__init__()
        self.ways = 1.0
        self._generator = generator

    def _branch(self, chances: FloatArray) -> int:
        open_ways = np.flatnonzero(chances > 0)
        self.ways *= len(open_ways)
        return int(self._generator.choice(open_ways))


def ways_of(program: Program, walks: int = WALKS, seed: int = 0) -> float:
    """Return about how many ways the draws of a program can fall.

    Examples
    --------
    >>> def twice(draws):
    ...     return draws.accept(0.5, 0, 0) + draws.accept(0.5, 0, 1)
    >>> ways_of(twice)
    4.0
    """
    generator = np.random.default_rng(seed)
    total = 0.0
    for _ in range(walks):
        walk = _Walk(generator)
        program(walk)
        total += walk.ways
    return total / walks


def refuse_endless(
    program_of: Callable[[int], Program], length: int, vocab_size: int, most: int = MOST
) -> float:
    """Return about how many ways there are at a length, or refuse it and name one that would do.

    Raises
    ------
    ValueError
        If there are more than ``most``.
    """
    ways = ways_of(program_of(length))
    if ways <= most:
        return ways
    would_do = 0
    while would_do + 1 < length and ways_of(program_of(would_do + 1)) <= most:
        would_do += 1
    advice = f"length={would_do} would do" if would_do else "use a smaller table or gamma"
    raise ValueError(
        f"length={length} has up to {float(vocab_size) ** min(length, 300):.1g} texts, and their "
        f"draws can fall in about {ways:.1g} ways, too many to run one by one (at most "
        f"{most:,}): {advice}"
    )
