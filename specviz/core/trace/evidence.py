"""What a trace knows about one round's distributions and draws, in the form a rule can run on.

A distribution of thousands of tokens is on record as its most likely ones and two tails: where p >
q and where p <= q. Let each tail stand for all its tokens: then sum(min(p, q)) and the mass of the
residual stay exact, and the shipped rule can run on distributions of 2k + 3 entries.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from specviz.core import philox
from specviz.core.contract import ROOT, Draft, FloatArray, IntArray
from specviz.core.draws import Event, Purpose, exponentials
from specviz.core.trace.views import Choice, Round

if TYPE_CHECKING:
    from specviz.core.trace.trace import Trace

EXACT = 1e-9

Answer = bool | None
"""True follows, False does not, None: consistent, but not everything is on record."""


@dataclass
class Evidence:
    """The distributions of one round, over entries that stand for tokens.

    Parameters
    ----------
    draft : Draft
        The proposals, tokens replaced by their entries.
    p : FloatArray
        ``(n + 1, m)`` target distributions; the rows that no one reached are 0.
    q : FloatArray
        ``(n, m)`` draft distributions, row i for node i.
    ids : list of IntArray
        For every row of ``p`` the token that each entry stands for, -1 for padding and tails.
    node_ids : list of IntArray
        The same for every row of ``q``.
    closing_row : int
        The row of ``p`` at which the closing token was drawn.
    """

    draft: Draft
    p: FloatArray
    q: FloatArray
    ids: list[IntArray]
    node_ids: list[IntArray]
    closing_row: int

    def entry(self, row: int, token: int) -> int:
        """Return the entry of a token; the last one (a tail) if it is not on record itself."""
        found = np.flatnonzero(self.ids[row] == token)
        return int(found[0]) if len(found) else self.p.shape[1] - 1


def cdf_answer(
    ids: IntArray,
    distribution: FloatArray,
    token: int,
    mass: float,
    choice: Choice,
    u: float | None,
) -> Answer:
    """Return whether a token follows by inverse CDF from its uniform, and that from the seed.

    ``distribution`` is over entries that stand for ``ids``, ``mass`` the recorded probability of
    the token. Where tokens are on record by their mass only, the interval is bounded, not computed.
    """
    if choice.how != "inverse CDF":
        return False
    good = choice.cdf_lo <= choice.u * choice.mass < choice.cdf_hi
    good &= abs(choice.cdf_hi - choice.cdf_lo - mass * choice.mass) < EXACT
    good &= u is None or u == choice.u
    at = np.flatnonzero(ids == token)
    if len(at):
        good &= abs(float(distribution[at[0]]) - mass) < EXACT
    low, high = cdf_bounds(ids, distribution, token)
    good &= low - EXACT <= choice.cdf_lo <= high + EXACT
    return None if good and high - low > EXACT else bool(good)


def cdf_bounds(ids: IntArray, distribution: FloatArray, token: int) -> tuple[float, float]:
    """Return the least and greatest cumulative mass below a token that the record allows."""
    known = ids >= 0
    below = float(distribution[known & (ids < token)].sum())
    tails = float(distribution[~known].sum())
    return below, below + tails


def evidence(trace: Trace, this: Round) -> Evidence:
    """Return what is on record about a round's distributions: in full if they were kept.

    Else compressed.
    """
    n = len(this.nodes)
    last = this.path[-1] if this.path else ROOT
    parent = np.array([node.parent for node in this.nodes], dtype=np.int64)
    if trace.full_vocab:
        return _in_full(trace, this, parent, last + 1)
    width = 2 * trace.k + 3
    p, q = np.zeros((n + 1, width)), np.zeros((n, width))
    ids = [np.full(width, -1, dtype=np.int64) for _ in range(n + 1)]
    node_ids = [np.full(width, -1, dtype=np.int64) for _ in range(n)]
    if this.closing.kind != "correction":
        distribution = this.closing.distribution
        m = len(distribution.ids)
        ids[last + 1][:m], p[last + 1, :m], p[last + 1, -1] = (
            distribution.ids,
            distribution.p,
            distribution.tail,
        )
    for node in this.nodes:
        row, distributions, m = node.parent + 1, node.distributions, len(node.distributions.ids)
        ids[row][:m], p[row, :m], q[node.index, :m] = (
            distributions.ids,
            distributions.p,
            distributions.q,
        )
        node_ids[node.index][:m] = distributions.ids
        p[row, -2:], q[node.index, -2:] = distributions.tail_p, distributions.tail_q
    out = Evidence(Draft.empty(width), p, q, ids, node_ids, last + 1)
    tokens = [out.entry(node.parent + 1, node.token) for node in this.nodes]
    out.draft = Draft(np.array(tokens, dtype=np.int64), parent, q, np.arange(n))
    return out


def _in_full(trace: Trace, this: Round, parent: IntArray, closing_row: int) -> Evidence:
    n = len(this.nodes)
    where = trace.node_slice(this.index)
    q = trace.node_table["full_q"][where]
    p = np.zeros((n + 1, trace.full_vocab))
    for node in reversed(this.nodes):  # a first sibling is judged by p itself
        p[node.parent + 1] = trace.node_table["full_p"][where][node.index]
    if this.closing.kind != "correction":
        p[closing_row] = trace.round_table["full_closing"][this.index]
    tokens = np.array([node.token for node in this.nodes], dtype=np.int64)
    ids = [np.arange(trace.full_vocab) for _ in range(n + 1)]
    return Evidence(Draft(tokens, parent, q, np.arange(n)), p, q, ids, ids[:n], closing_row)


class Keys:
    """The numbers that a trace's seed gives to the draws of one round; None without a seed."""

    def __init__(self, trace: Trace, this: Round) -> None:
        seed, sequence = trace.meta.get("seed"), trace.meta.get("sequence", 0)
        self._key = None if seed is None else (int(seed), int(sequence))
        self._round = this.index

    def uniform(self, purpose: Purpose, position: int, node: int) -> float | None:
        """Return the uniform of a keyed draw."""
        if self._key is None:
            return None
        return philox.uniform(*self._key, purpose, position, self._round, node)

    @staticmethod
    def same(recorded: float, keyed: float | None) -> bool:
        """Return whether a recorded uniform is the keyed one, where that is known."""
        return keyed is None or recorded == keyed

    def race_answer(
        self,
        position: int,
        winner: int,
        ids: IntArray,
        distribution: FloatArray,
        mass: float,
        arrived: Choice,
    ) -> Answer:
        """Return whether the winner of a race follows from the target's noise.

        ``distribution`` has an entry for each of ``ids``; ``mass`` is the winner's recorded
        probability, for when it has none. Entries without an id (tails) cannot be run: one may be
        the runner-up.
        """
        time, second = arrived.time, arrived.second
        at = np.flatnonzero(ids == winner)
        mass = float(distribution[at[0]]) if len(at) else mass
        if arrived.how != "race" or not mass > 0 or not time <= second:
            return False
        if self._key is None:
            return None
        others = (ids >= 0) & (ids != winner) & (distribution > 0)
        own = float(exponentials(*self._key, position, np.array([winner]))[0]) / mass
        arrivals = exponentials(*self._key, position, ids[others]) / distribution[others]
        next_known = float(arrivals.min(initial=np.inf))
        scale = EXACT * max(1.0, time)
        tails = float(distribution[ids < 0].sum())
        if abs(own - time) > scale or next_known < second - scale:
            return False
        return None if tails > EXACT else next_known <= second + scale


class Recorded:
    """Draws that answer with what was recorded, noting where that does not follow.

    The third reader of a rule, beside :class:`specviz.core.draws.Sampler` and
    :class:`specviz.lossless.exact.branching.Branching`.
    """

    def __init__(self, this: Round, seen: Evidence, keys: Keys, one_by_one: bool = True) -> None:
        self.log: list[Event] = []
        self.answers: list[tuple[str, Answer, str]] = []
        self._this, self._seen, self._keys = this, seen, keys
        self._one_by_one = one_by_one

    def begin_round(self, index: int) -> None:
        """Nothing to do: a record knows its round."""

    def accept(self, probability: float, position: int, node: int) -> bool:
        """Return ``u < probability`` for the recorded u."""
        at = self._this.nodes[node]
        accepted = at.u < probability
        good = at.verdict != "never examined"
        if self._one_by_one:
            good &= at.accepted == accepted
        good &= self._keys.same(at.u, self._keys.uniform(Purpose.ACCEPT, position, node))
        detail = f"u = {at.u:.6g}, acceptance = {probability:.6g}, recorded as {at.verdict}"
        self.answers.append((f"verdict {node}", bool(good), detail))
        return accepted

    def categorical(
        self, distribution: Any, position: int, node: int = 0, purpose: Purpose = Purpose.CLOSING
    ) -> int:
        """Return the recorded closing token, after checking its draw against its distribution."""
        closing, row = self._this.closing, self._seen.closing_row
        u = self._keys.uniform(Purpose.CLOSING, position, node)
        ids = self._seen.ids[row]
        answer = cdf_answer(ids, distribution, closing.token, closing.p, closing.choice, u)
        self.answers.append(("closing draw", answer, f"p = {closing.p:.6g}, {closing.choice}"))
        return self._seen.entry(row, closing.token)

    def race(self, distribution: Any, position: int, node: int = -1) -> int:
        """Return the target's own token at a position, after checking its arrival."""
        depth = position - self._this.position
        path, closing = self._this.path, self._this.closing
        if depth > len(path):  # the rule goes on where the record says that the round was closed
            self.answers.append((f"target's own token at {position}", False, "not on record"))
            return -1
        row = path[depth - 1] + 1 if depth else 0
        if depth < len(path):
            at = self._this.nodes[path[depth]]
            token, mass, own = at.token, at.p, at.own
        else:
            token, mass, own = closing.token, closing.p, closing.choice
        answer = self._keys.race_answer(
            position, token, self._seen.ids[row], distribution, mass, own
        )
        self.answers.append((f"target's own token at {position}", answer, f"token {token}, {own}"))
        return self._seen.entry(row, token)
