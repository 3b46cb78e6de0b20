"""Exact enumeration: the law that a drafter and a rule induce, without sampling anything.

The shipped loop, drafter and rule are run once for every way their draws can fall, each way
weighted with its probability. Where the vocabulary is small this *is* the output law, and it can
be compared with the target's to rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import numpy as np

from specviz.core.contract import FloatArray, Sampling
from specviz.core.draws import Event, Purpose
from specviz.core.rules import get_rule
from specviz.lossless import races

Law = dict[tuple[int, ...], float]
"""Text → probability."""

T = TypeVar("T")


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
        self, law: Any, position: int, node: int = 0, purpose: Purpose = Purpose.CLOSING
    ) -> int:
        """Branch over every token with mass."""
        return self._branch(np.asarray(law, dtype=np.float64) / np.sum(law))

    def race(self, law: Any, position: int, node: int = -1) -> int:
        """Branch over the winners, given every race that shared this position's noise."""
        run = self._races.setdefault(position, [])
        weights = np.asarray(law, dtype=np.float64)
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


def outcomes(program: Callable[[Branching], T]) -> Iterator[tuple[float, T]]:
    """Run a program once for every way its draws can fall.

    Parameters
    ----------
    program : callable
        Takes draws (:class:`specviz.core.draws.Draws`); the same draws must lead to the same run.

    Yields
    ------
    (float, result)
        The probability of a way, and what the program returned on it. They sum to 1.

    Examples
    --------
    >>> def twice(draws):
    ...     return draws.accept(0.5, 0, 0) + draws.accept(0.5, 0, 1)
    >>> sorted(outcomes(twice))
    [(0.25, 0), (0.25, 1), (0.25, 1), (0.25, 2)]
    """
    scripts: list[tuple[int, ...]] = [()]
    while scripts:
        draws = Branching(scripts.pop())
        result = program(draws)
        scripts.extend(draws.untaken)
        yield draws.weight, result


def enumerate_law(
    pair: Any,
    drafter: Any,
    *,
    verify: str = "rejection",
    prompt: Any,
    length: int,
    sampling: Sampling | None = None,
) -> Law:
    """Return the exact law of the text that a drafter and a rule produce.

    Why it comes out as the target's is one line, p = q min(1, p/q) + P(reject) residual; see
    :func:`~specviz.lossless.identity.identity`, which shows it term by term.

    Parameters
    ----------
    pair : TabularPair
        A small-vocabulary target and draft; the number of ways grows exponentially.
    drafter : Drafter
        What proposes.
    verify : str
        The rule's name.
    prompt : sequence of int
        The text to continue.
    length : int
        How many tokens to emit (fewer where the text ends by itself).
    sampling : Sampling, optional
        Shapes both laws; plain sampling at temperature 1 by default.

    Returns
    -------
    dict
        Text (tuple of ids) → probability, summing to 1.

    Examples
    --------
    >>> import specviz as sv
    >>> target, draft = sv.tabular.TabularModel([0.5, 0.5]), sv.tabular.TabularModel([0.9, 0.1])
    >>> pair = sv.tabular.TabularPair(target, draft)
    >>> law = enumerate_law(pair, sv.DraftModel(gamma=1), prompt=[0], length=1)
    >>> {text: round(mass, 12) for text, mass in sorted(law.items())}
    {(0,): 0.5, (1,): 0.5}
    """
    from specviz.decoding.loop import rounds
    from specviz.decoding.stopping import Stopping
    from specviz.decoding.target import open_session

    rule = get_rule(verify)
    ids = pair.encode(prompt)

    def program(draws: Branching) -> tuple[int, ...]:
        target = open_session(pair.target, pair.vocab_size)
        target.begin()
        drafter.begin(pair, target, ids)
        stopping = Stopping(len(ids), length, target.context_length, pair.stop_ids)
        happened = rounds(
            target, drafter, rule, ids,
            sampling=sampling or Sampling(), draws=draws, stopping=stopping,
        )  # fmt: skip
        return tuple(int(token) for round_ in happened for token in round_.emitted)

    law: Law = {}
    for weight, text in outcomes(program):
        law[text] = law.get(text, 0.0) + weight
    return law


def target_law(pair: Any, *, prompt: Any, length: int, sampling: Sampling | None = None) -> Law:
    """Return the exact law of the target alone: products of its conditional laws.

    Computed from the target's own laws, not through the loop, so that the two can be compared.
    """
    from specviz.core.contract import Draft
    from specviz.decoding.distributions import laws
    from specviz.decoding.target import open_session

    session = open_session(pair.target, pair.vocab_size)
    start = pair.encode(prompt)
    ends = pair.stop_ids

    def grow(text: tuple[int, ...], mass: float) -> Iterator[tuple[tuple[int, ...], float]]:
        if len(text) == length or (text and text[-1] in ends):
            yield text, mass
            return
        session.begin()
        ids = np.append(start, text).astype(np.int64)
        logits = session.verify(ids, Draft.empty(pair.vocab_size))
        p = laws(logits, sampling or Sampling(), [ids])[0]  # (vocab,)
        for token in np.flatnonzero(p):
            yield from grow((*text, int(token)), mass * float(p[token]))

    return dict(grow((), 1.0))


def total_variation(a: Mapping[Any, float], b: Mapping[Any, float]) -> float:
    """Return half the sum of absolute differences: the largest difference on any event.

    Examples
    --------
    >>> total_variation({"x": 0.5, "y": 0.5}, {"x": 0.75, "y": 0.25})
    0.25
    """
    return 0.5 * sum(abs(a.get(key, 0.0) - b.get(key, 0.0)) for key in a.keys() | b.keys())
