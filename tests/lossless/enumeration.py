"""More readers of a rule for the tests: one round at a time, and draws with a faulty key."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from specviz.core.contract import Sampling
from specviz.core.draws import Purpose
from specviz.core.rules import RULES, Rule
from specviz.core.tabular import TabularModel, TabularPair
from specviz.decoding.loop import rounds
from specviz.decoding.stopping import Stopping
from specviz.lossless import (
    Distribution,
    enumerate_distribution,
    outcomes,
    target_distribution,
    total_variation,
)
from specviz.lossless.exact.branching import Branching

EXACT = 1e-12


def pair_of(p: Any, q: Any, **options: Any) -> TabularPair:
    return TabularPair(TabularModel(p, **options), TabularModel(q))


def random_pair(
    vocab_size: int, order: int, seed: int, *, sparse: bool = False, **options: Any
) -> TabularPair:
    """Distributions that depend on the context; the draft's are half the target's, half its own.

    A ``sparse`` draft never proposes the token it likes least, which another is in every context.
    """
    target = TabularModel.random(vocab_size, order, seed=seed, **options)
    q = 0.5 * target.table + 0.5 * TabularModel.random(vocab_size, order, seed=seed + 1).table
    if sparse:
        q[q == q.min(axis=-1, keepdims=True)] = 0.0
        q /= q.sum(axis=-1, keepdims=True)
    return TabularPair(target, TabularModel(q))


@contextmanager
def planted(name: str, rule: Rule) -> Iterator[None]:
    """Let a rule stand under the name of another."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(RULES, name, rule)
        yield


def distance(
    pair: Any,
    drafter: Any,
    verify: str = "rejection",
    *,
    rule: Rule | None = None,
    prompt: Sequence[int] = (0,),
    length: int,
    sampling: Sampling | None = None,
) -> float:
    """Return TV(induced distribution, target's distribution) of the first ``length`` tokens."""
    with planted(verify, rule or RULES[verify]):
        induced = enumerate_distribution(
            pair, drafter, verify=verify, prompt=prompt, length=length, sampling=sampling
        )
    assert abs(sum(induced.values()) - 1) < EXACT
    wanted = target_distribution(pair, prompt=prompt, length=length, sampling=sampling)
    assert abs(sum(wanted.values()) - 1) < EXACT
    return total_variation(induced, wanted)


def one_round(
    pair: Any, drafter: Any, rule: Rule, text: Sequence[int], sampling: Sampling | None = None
) -> Distribution:
    """Return the distribution of what one round emits after ``text``,
    with all the room it may want.
    """

    def program(draws: Branching) -> tuple[int, ...]:
        target = pair.target.session()
        session = drafter.start(pair, target, text)
        stopping = Stopping(len(text), 100, None)
        ids = np.array(text, dtype=np.int64)
        happened = rounds(
            target, session, rule, ids,
            sampling=sampling or Sampling(), draws=draws, stopping=stopping,
        )  # fmt: skip
        return tuple(int(token) for token in next(happened).emitted)

    distribution: Distribution = {}
    for weight, emitted in outcomes(program):
        distribution[emitted] = distribution.get(emitted, 0.0) + weight
    return distribution


def round_by_round(
    pair: Any, drafter: Any, rules: Sequence[Rule], length: int, prompt: Sequence[int] = (0,)
) -> Distribution:
    """Return the distribution of the first ``length`` tokens; rule i decides round i,
    the last all others.

    Rounds of a drafter with fixed gamma depend on each other through the text only, so the
    distributions of single rounds may be multiplied. Unlike in ``enumerate_distribution`` no round
    is cut short at the end.
    """
    distribution: Distribution = {}

    def grow(text: tuple[int, ...], mass: float, index: int) -> None:
        if len(text) >= length:
            distribution[text[:length]] = distribution.get(text[:length], 0.0) + mass
            return
        rule = rules[min(index, len(rules) - 1)]
        for emitted, chance in one_round(pair, drafter, rule, (*prompt, *text)).items():
            grow(text + emitted, mass * chance, index + 1)

    grow((), 1.0, 0)
    return distribution


FULL_KEY = ("purpose", "position", "round", "node")


class Keyed(Branching):
    """Exact enumeration of draws by key: equal keys give the same uniform, as in the sampler.

    For each key the interval that its uniform is known to lie in is kept, and every draw splits
    it. ``fields`` are the parts of the key; leave one out to plant a fault.
    """

    def __init__(self, script: tuple[int, ...] = (), fields: Sequence[str] = FULL_KEY) -> None:
        super().__init__(script)
        self.fields = tuple(fields)
        self._intervals: dict[tuple[int, ...], tuple[float, float]] = {}
        self._round = 0

    def begin_round(self, index: int) -> None:
        self._round = index

    def _split(self, edges: Any, purpose: Purpose, position: int, node: int) -> int:
        """Branch over which of the cells between ``edges`` the uniform lies in."""
        parts = {"purpose": purpose, "position": position, "round": self._round, "node": node}
        key = tuple(int(parts[name]) for name in self.fields)
        low, high = self._intervals.get(key, (0.0, 1.0))
        inside = np.clip(edges, low, high)
        way = self._branch(np.diff(inside) / (high - low))
        self._intervals[key] = (inside[way], inside[way + 1])
        return way

    def accept(self, probability: float, position: int, node: int) -> bool:
        return self._split(np.array([0.0, probability, 1.0]), Purpose.ACCEPT, position, node) == 0

    def categorical(
        self, distribution: Any, position: int, node: int = 0, purpose: Purpose = Purpose.CLOSING
    ) -> int:
        edges = np.concatenate([[0.0], np.cumsum(distribution) / np.sum(distribution)])
        return self._split(edges, purpose, position, node)


def keyed_distribution(
    pair: Any, drafter: Any, fields: Sequence[str], *, length: int, prompt: Sequence[int] = (0,)
) -> Distribution:
    """Return the exact distribution under ``rejection`` when draws with equal keys are equal."""
    scripts: list[tuple[int, ...]] = [()]
    distribution: Distribution = {}
    while scripts:
        draws = Keyed(scripts.pop(), fields)
        ids = np.array(prompt, dtype=np.int64)
        target = pair.target.session()
        session = drafter.start(pair, target, ids)
        stopping = Stopping(len(ids), length, None)
        happened = rounds(
            target, session, RULES["rejection"], ids,
            sampling=Sampling(), draws=draws, stopping=stopping,
        )  # fmt: skip
        text = tuple(int(token) for round_ in happened for token in round_.emitted)
        distribution[text] = distribution.get(text, 0.0) + draws.weight
        scripts.extend(draws.untaken)
    return distribution
