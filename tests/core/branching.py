"""Draws that branch: every way a small program can go, with its probability.

Written apart from the package's own enumerator, so that the two can disagree.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator
from typing import Any

import numpy as np

from specviz.core.contract import FloatArray
from specviz.core.draws import Event, Purpose


class Ways:
    """Takes the choices of a script, then always the first one that is possible."""

    def __init__(self, script: list[int]) -> None:
        self.round = 0
        self.log: list[Event] = []
        self.script = script
        self.taken: list[tuple[int, list[int]]] = []  # (choice, all possible choices)
        self.weight = 1.0

    def begin_round(self, index: int) -> None:
        self.round = index

    def choose(self, distribution: Any) -> int:
        chances = np.asarray(distribution, dtype=np.float64)
        possible = np.flatnonzero(chances > 0).tolist()
        at = len(self.taken)
        choice = self.script[at] if at < len(self.script) else possible[0]
        self.taken.append((choice, possible))
        self.weight *= float(chances[choice])
        return choice

    def accept(self, probability: float, position: int, node: int) -> bool:
        return self.choose([1.0 - probability, probability]) == 1

    def categorical(
        self, distribution: Any, position: int, node: int = 0, purpose: Purpose = Purpose.CLOSING
    ) -> int:
        return self.choose(distribution)

    def race(self, distribution: Any, position: int, node: int = -1) -> int:
        return self.choose(distribution)


def ways(program: Callable[[Ways], Any]) -> Iterator[tuple[float, Any]]:
    """(probability, result) of every way the program can go: an odometer over its choices."""
    script: list[int] = []
    while True:
        draws = Ways(script)
        result = program(draws)
        yield draws.weight, result
        script = [choice for choice, _ in draws.taken]
        while script:
            last = script.pop()
            possible = draws.taken[len(script)][1]
            later = [choice for choice in possible if choice > last]
            if later:
                script.append(later[0])
                break
        else:
            return


def distribution_of(program: Callable[[Ways], Hashable]) -> dict[Any, float]:
    """Result → probability."""
    distribution: dict[Any, float] = defaultdict(float)
    for weight, result in ways(program):
        distribution[result] += weight
    return dict(distribution)


def token_distribution(program: Callable[[Ways], int], vocab_size: int) -> FloatArray:
    """The distribution ``(vocab,)`` of a token that a program returns."""
    found = distribution_of(program)
    return np.array([found.get(token, 0.0) for token in range(vocab_size)])


def total_variation(a: FloatArray, b: FloatArray) -> float:
    return 0.5 * float(np.abs(a - b).sum())
