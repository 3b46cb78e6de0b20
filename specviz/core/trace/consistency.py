"""Do the numbers of a round agree with each other and with the seed? The rule's part is elsewhere.

What a trace says of a distribution (its value at a token, the most likely tokens, tails, cumulative
masses, entropy, overlap, residual) is compared with the distribution itself if it was kept in full,
and else with its most likely tokens, as far as these determine it. Every keyed number is computed
from the seed again. :mod:`specviz.core.trace.replay` runs the rule on the same record.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from specviz.core import philox
from specviz.core.contract import ROOT, FloatArray, IntArray
from specviz.core.draws import Purpose, exponentials
from specviz.core.rules import Rule
from specviz.core.trace.views import Node, Round, TokenDraw

if TYPE_CHECKING:
    from specviz.core.trace.trace import Trace

EXACT = 1e-9
ROUNDED = 1e-5
"""What a number kept in float32 may be off by."""
CLOSE = 1e-6
"""What a residual of little mass may be off by: its sums were taken in another order."""

Answer = bool | None
"""True follows, False does not, None: consistent, but not everything is on record."""
Facts = dict[str, Answer]

HOW = {"inverse CDF": "inverse CDF", "race": "race", "argmax": "deterministic"}
"""How a closing token is drawn: the rule's word → the trace's."""


def all_of(answers: Any) -> Answer:
    """Return False if one answer is False, else None if one is None, else True."""
    known = list(answers)
    return False if False in known else None if None in known else True


# -- what is on record ----------------------------------------------------------------------------


@dataclass(frozen=True)
class RecordedDistribution:
    """A distribution as far as it is on record: some tokens one by one, the rest by their mass.

    Of the tokens in the tail none is more likely than ``cap``, because the most likely ones are
    listed; a cap of 0 says that there are none.
    """

    ids: IntArray
    p: FloatArray
    tail: float = 0.0
    cap: float = 0.0
    vocab_size: int | None = None

    @property
    def left_open(self) -> bool:
        """Whether some of its mass cannot be told apart."""
        return self.tail > EXACT

    @property
    def most(self) -> float:
        """How likely a token in the tail may be."""
        return min(self.tail, self.cap)

    def at(self, token: int) -> float | None:
        """Return the probability of a token, or None if it is in the tail."""
        found = np.flatnonzero(self.ids == token)
        return float(self.p[found[0]]) if len(found) else None

    def is_at(self, token: int, probability: float, slack: float = EXACT) -> bool:
        """Return whether a token can have this probability."""
        own = self.at(token)
        if own is None:
            return probability <= self.most + slack
        return abs(own - probability) <= slack

    def below(self, tokens: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return the least and greatest cumulative mass below each of some tokens."""
        under = self.ids < tokens[:, None]  # (tokens, listed)
        low, counted = under @ self.p, under.sum(axis=1)
        least = 0.0
        if self.vocab_size is not None:  # what has no room above must be below
            above = self.vocab_size - 1 - tokens - (self.ids > tokens[:, None]).sum(axis=1)
            own = np.where(np.isin(tokens, self.ids), 0.0, self.most)
            least = np.maximum(0.0, self.tail - own - above * self.cap)
        return low + least, low + np.minimum(self.tail, (tokens - counted) * self.cap)

    def cumulates(self, tokens: IntArray, below: FloatArray) -> bool:
        """Return whether tokens can have these cumulative masses below them."""
        order = np.argsort(tokens)
        tokens, below = tokens[order].astype(np.int64), below[order]
        low, high = self.below(tokens)
        under = self.ids < tokens[:, None]  # (tokens, listed)
        gap = np.diff(below) - np.diff(under @ self.p)  # mass of the tail between two tokens
        room = (np.diff(tokens) - np.diff(under.sum(axis=1))) * self.cap
        good = np.all((low - EXACT <= below) & (below <= high + EXACT))
        return bool(good and np.all(gap >= -EXACT) and np.all(gap <= room + EXACT))

    def entropy_fits(self, entropy: float) -> Answer:
        """Return whether the entropy in nats is possible: the tail in few tokens, or in all."""
        mass = self.p[self.p > 0]
        known = -float((mass * np.log(mass)).sum())
        low = high = known
        if self.left_open:
            if not self.cap:  # there is no token that could hold the tail
                return False
            low = known - self.tail * float(np.log(min(1.0, self.most)))
            high = np.inf
            if self.vocab_size is not None:
                rest = max(1, self.vocab_size - len(self.ids))
                high = known - self.tail * float(np.log(self.tail / rest))
        slack = ROUNDED * (1 + known)
        good = low - slack <= entropy <= high + slack
        return None if good and self.left_open else bool(good)

    def fits(self, ids: IntArray, p: FloatArray, cdf_lo: FloatArray, room: int) -> Answer:
        """Return whether these are its ``room`` most likely tokens with their cumulative masses."""
        listed = ids >= 0
        ids, p, cdf_lo = ids[listed], p[listed].astype(np.float64), cdf_lo[listed]
        good = len(np.unique(ids)) == len(ids) and bool(np.all(np.diff(p) <= ROUNDED))
        _, mine, theirs = np.intersect1d(self.ids, ids, return_indices=True)
        good &= bool(np.all(np.abs(self.p[mine] - p[theirs]) <= ROUNDED))
        good &= bool(np.all(np.delete(p, theirs) <= self.most + ROUNDED))
        good &= self.cumulates(ids, cdf_lo)
        least = float(p[-1]) if len(ids) == room else 0.0
        passed_over = np.delete(self.p, mine)
        good &= bool(np.all(passed_over <= least + ROUNDED))
        return None if good and self.left_open else bool(good)


@dataclass(frozen=True)
class RecordedPair:
    """Target p and draft q of one proposal, tails where p > q and where p <= q: (above, below)."""

    p: RecordedDistribution
    q: RecordedDistribution
    p_tails: tuple[float, float]
    q_tails: tuple[float, float]

    @property
    def overlap(self) -> float:
        """Sum min(p, q), exact although the tails are only masses."""
        return float(np.minimum(self.p.p, self.q.p).sum()) + self.q_tails[0] + self.p_tails[1]

    def left(self, share: float = 1.0) -> RecordedResidual:
        """Return max(0, share * p - q) before it is normalised."""
        left = np.maximum(0.0, share * self.p.p - self.q.p)
        # where p > q the tail keeps at least share * p - q in all (as one token), and at most
        # share * (p - q) (as a token without q beside one with p = q)
        low = max(0.0, share * self.p_tails[0] - self.q_tails[0])
        high = max(low, share * (self.p_tails[0] - self.q_tails[0]))
        return RecordedResidual(self.p.ids, left, low, high, self.p.cap, self.p.vocab_size)


@dataclass(frozen=True)
class RecordedResidual:
    """What a rejection leaves of p, before it is normalised: ``low``, ``high`` bound its tail."""

    ids: IntArray
    left: FloatArray
    low: float
    high: float
    cap: float
    vocab_size: int | None

    def normalised(self) -> RecordedDistribution | None:
        """Return the residual; None if so little is left that rounding decides about it."""
        mass = float(self.left.sum()) + self.low
        if mass < ROUNDED:
            return None
        return RecordedDistribution(
            self.ids, self.left / mass, self.low / mass, self.cap / mass, self.vocab_size
        )

    def is_of(self, other: RecordedDistribution) -> Answer:
        """Return whether a distribution can be this one, normalised."""
        listed = float(self.left.sum())
        least, greatest = listed + self.low, listed + self.high  # of the mass
        if least < ROUNDED:
            return None
        _, mine, theirs = np.intersect1d(self.ids, other.ids, return_indices=True)
        left, p = self.left[mine], other.p[theirs]
        good = np.all(p * least <= left + CLOSE) and np.all(p * greatest >= left - CLOSE)
        mine_only, theirs_only = np.delete(self.left, mine), np.delete(other.p, theirs)
        good &= mine_only.sum() <= (other.tail + CLOSE) * greatest
        good &= mine_only.max(initial=0.0) <= (other.cap + CLOSE) * greatest
        good &= theirs_only.sum() * least <= self.high + CLOSE
        good &= theirs_only.max(initial=0.0) * least <= self.cap + CLOSE
        return None if good and (other.left_open or self.high > EXACT) else bool(good)


def pair_of(at: Mapping[str, Any], trace: Trace) -> RecordedPair:
    """Return p and q of one proposal, in full if they were kept, else their most likely tokens."""
    size = vocab_size_of(trace)
    if trace.full_vocab:
        ids = np.arange(trace.full_vocab)
        return RecordedPair(
            RecordedDistribution(ids, at["full_p"]),
            RecordedDistribution(ids, at["full_q"]),
            (0.0, 0.0),
            (0.0, 0.0),
        )
    listed = at["top_ids"] >= 0
    ids = at["top_ids"][listed]
    p, q = at["top_p"][listed], at["top_q"][listed]
    p_tails, q_tails = ((float(at[f"tail_{x}_above"]), float(at[f"tail_{x}_below"])) for x in "pq")
    return RecordedPair(
        RecordedDistribution(ids, p, sum(p_tails), _cap(p, trace.k, size), size),
        RecordedDistribution(ids, q, sum(q_tails), _cap(q, trace.k, size), size),
        p_tails,
        q_tails,
    )


def closing_of(row: Mapping[str, Any], trace: Trace) -> RecordedDistribution:
    """Return the distribution of the closing token as far as it is on record."""
    if trace.full_vocab:
        return RecordedDistribution(np.arange(trace.full_vocab), row["full_closing"])
    listed = row["closing_ids"] >= 0
    p = row["closing_top"][listed]
    tail = max(0.0, 1.0 - float(p.sum()))
    size = vocab_size_of(trace)
    return RecordedDistribution(row["closing_ids"][listed], p, tail, _cap(p, trace.k, size), size)


def _cap(p: FloatArray, k: int, size: int | None) -> float:
    """Return how likely an unlisted token may be: the k most likely ones are listed."""
    return 0.0 if len(p) < k or len(p) == size else float(np.sort(p)[-k])


def vocab_size_of(trace: Trace) -> int | None:
    """Return how many tokens there are, where the trace says so."""
    return trace.full_vocab or trace.meta.get("vocab_size")


# -- draws ----------------------------------------------------------------------------------------


class Keys:
    """The numbers that a trace's seed gives to the draws of one round; None without a seed."""

    def __init__(self, trace: Trace, this: Round) -> None:
        seed, sequence = trace.meta.get("seed"), trace.meta.get("sequence")
        self._key = None if seed is None or sequence is None else (seed, sequence)
        self._round = this.index

    def is_uniform(self, recorded: float, purpose: Purpose, position: int, node: int = 0) -> Answer:
        """Return whether a recorded uniform is the keyed one."""
        if self._key is None:
            return None if np.isfinite(recorded) else False
        return recorded == philox.uniform(*self._key, purpose, position, self._round, node)

    def race_answer(
        self,
        position: int,
        winner: int,
        known: RecordedDistribution,
        mass: float,
        arrived: TokenDraw,
    ) -> Answer:
        """Return whether the winner of a race follows from the target's noise.

        ``mass`` is the winner's recorded probability, for when it is in the tail. Tokens in the
        tail cannot be run: one of them may be the runner-up.
        """
        time, second = arrived.time, arrived.second
        listed = known.at(winner)
        mass = mass if listed is None else listed
        if arrived.how != "race" or not mass > 0 or not time <= second:
            return False
        if self._key is None:
            return None
        others = (known.ids != winner) & (known.p > 0)
        own = float(exponentials(*self._key, position, np.array([winner]))[0]) / mass
        arrivals = exponentials(*self._key, position, known.ids[others]) / known.p[others]
        next_known = float(arrivals.min(initial=np.inf))
        scale = EXACT * max(1.0, time)
        if abs(own - time) > scale or next_known < second - scale:
            return False
        return None if known.cap else next_known <= second + scale


def cdf_answer(
    known: RecordedDistribution, token: int, mass: float, drawn: TokenDraw, keyed: Answer
) -> Answer:
    """Return whether a token follows by inverse CDF from its uniform, and that from the seed.

    Where tokens are on record by their mass only, the interval is bounded, not computed.
    """
    low, high = (float(bound[0]) for bound in known.below(np.array([token])))
    good = (
        drawn.how == "inverse CDF"
        and drawn.cdf_lo <= drawn.u * drawn.mass < drawn.cdf_hi
        and abs(drawn.cdf_hi - drawn.cdf_lo - mass * drawn.mass) < EXACT
        and known.is_at(token, mass)
        and low - EXACT <= drawn.cdf_lo <= high + EXACT
    )
    return all_of([bool(good), keyed, None if high - low > EXACT else True])


def drawn_as_said(drawn: TokenDraw, probability: float) -> bool:
    """Return whether the numbers of a draw are those of its kind, and no others."""
    cdf = np.isfinite([drawn.u, drawn.cdf_lo, drawn.cdf_hi, drawn.mass])
    race = ~np.isnan([drawn.time, drawn.second])
    if drawn.how == "inverse CDF":
        return bool(cdf.all() and not race.any())
    if drawn.how == "race":
        return bool(race.all() and not cdf.any())
    return bool(not cdf.any() and not race.any() and abs(probability - 1) < EXACT)


# -- the numbers of a round -----------------------------------------------------------------------


def node_rows(trace: Trace, this: Round) -> list[dict[str, Any]]:
    """Return what the columns hold of each proposal of a round."""
    where = trace.node_slice(this.index)
    columns = {name: trace.node_table[name][where] for name in trace.node_table.names}
    return [{name: column[i] for name, column in columns.items()} for i in range(len(this.nodes))]


def numbers(
    trace: Trace,
    this: Round,
    rule: Rule,
    keys: Keys,
    rows: list[dict[str, Any]],
    pairs: list[RecordedPair],
) -> Iterator[tuple[str, Answer, str]]:
    """Yield (subject, answer, which numbers are wrong) for each proposal and the closing token."""
    row = {name: trace.round_table[name][this.index] for name in trace.round_table.names}
    closing = closing_of(row, trace)

    examined, own = _examined(this, rule), _own_tokens(this, pairs, closing, keys)
    for node, at, pair in zip(this.nodes, rows, pairs, strict=True):
        facts = _distribution_facts(at, pair, trace)
        facts["kind of draw"] = drawn_as_said(node.choice, node.q) and (
            node.choice.how != ("inverse CDF" if rule.shares_noise else "race")
        )
        facts["verdict"] = (node.verdict != "never examined") == (node.index in examined)
        if rule.compares_u:
            facts["u"] = keys.is_uniform(node.u, Purpose.ACCEPT, node.position, node.index)
        else:
            facts["u"] = bool(np.isnan(node.u))
        expected: tuple[int, float, float] = _NO_RACE
        arrived: Answer = True
        if node.index in examined and node.position in own:
            expected, arrived = own[node.position]
        found = (node.own_token, node.own.time, node.own.second)
        facts["own token"] = all_of(
            [bool(np.array_equal(found, expected, equal_nan=True)), arrived]
        )
        elder = _elder_sibling(this, node)
        if elder is not None:
            facts["p after the sibling before"] = _leaves(pairs[elder.index], rule).is_of(pair.p)
        yield f"numbers of proposal {node.index}", *_together(facts)

    facts = _closing_facts(row, this, closing, rule, trace, keys)
    rejected = [
        node for node in this.nodes if node.parent == (this.path[-1] if this.path else ROOT)
    ]
    if rejected:
        share = 1.0 if rule.one_by_one else _share(this)
        facts["distribution after the rejection"] = _leaves(
            pairs[rejected[-1].index], rule, share
        ).is_of(closing)
    yield (
        "closing draw",
        facts.pop("draw", True),
        f"p = {this.closing.p:.6g}, {this.closing.choice}",
    )
    yield "numbers of the closing token", *_together(facts)


_NO_RACE = (-1, float("nan"), float("nan"))


def _together(facts: Facts) -> tuple[Answer, str]:
    wrong = [name for name, answer in facts.items() if answer is False]
    return all_of(facts.values()), f"wrong: {', '.join(wrong)}"


def _elder_sibling(this: Round, node: Node) -> Node | None:
    elders = [one for one in this.nodes[: node.index] if one.parent == node.parent]
    return elders[-1] if elders else None


def _leaves(pair: RecordedPair, rule: Rule, share: float = 1.0) -> RecordedResidual:
    """Return what the next sibling, or the closing token, faces after a proposal was rejected."""
    if rule.leaves_residual:
        return pair.left(share)
    p = pair.p
    return RecordedResidual(p.ids, p.p, p.tail, p.tail, p.cap, p.vocab_size)


def _share(this: Round) -> float:
    """Return p_tau of block verification, from the recorded p and q of the accepted proposals."""
    share = 1.0
    for index in this.path:
        node = this.nodes[index]
        share = min(1.0, share * node.p / node.q) if node.q > 0 else 1.0
    return share


def _examined(this: Round, rule: Rule) -> set[int]:
    """Return the proposals that a rule looked at if it took this path."""
    if not rule.one_by_one:
        return set(range(len(this.nodes)))
    seen: set[int] = set()
    for reached in (ROOT, *this.path):
        for node in this.nodes:
            if node.parent == reached:
                seen.add(node.index)
                if node.accepted and rule.compares_u:
                    break
    return seen


def _own_tokens(
    this: Round, pairs: list[RecordedPair], closing: RecordedDistribution, keys: Keys
) -> dict[int, tuple[tuple[int, float, float], Answer]]:
    """Return, where the target raced: position → its own token and arrivals, and do they follow."""
    if this.closing.choice.how != "race":
        return {}
    last = this.closing.choice
    follows = keys.race_answer(
        this.closing.position, this.closing.token, closing, this.closing.p, last
    )
    own = {this.closing.position: ((this.closing.token, last.time, last.second), follows)}
    for index in this.path:
        node = this.nodes[index]
        known = pairs[index].p
        follows = keys.race_answer(node.position, node.token, known, node.acceptance, node.own)
        own[node.position] = ((node.token, node.own.time, node.own.second), follows)
    return own


def _distribution_facts(at: Mapping[str, Any], pair: RecordedPair, trace: Trace) -> Facts:
    """Compare what is said of p and q of one proposal."""
    listed = at["top_ids"] >= 0
    ids, p, q = at["top_ids"][listed], at["top_p"][listed], at["top_q"][listed]
    above = float(at["tail_p_above"]), float(at["tail_q_above"])
    below = float(at["tail_p_below"]), float(at["tail_q_below"])
    x = int(at["token"])
    facts: Facts = {
        "mass of p": abs(float(p.sum()) + above[0] + below[0] - 1) < ROUNDED,
        "mass of q": abs(float(q.sum()) + above[1] + below[1] - 1) < ROUNDED,
        "tails": above[0] >= above[1] - EXACT and below[0] <= below[1] + EXACT,
        "p": _near(pair.p.at(x), at["p"]),
        "q": _near(pair.q.at(x), at["q"]),
        "overlap": _near(pair.overlap, at["overlap"]),
        "entropy of p": pair.p.entropy_fits(float(at["entropy_p"])),
        "entropy of q": pair.q.entropy_fits(float(at["entropy_q"])),
        "cumulative q": _cumulative(pair.q, at),
    }
    if trace.full_vocab:
        facts["most likely tokens"] = _top_of(at, ids, p, q, (above, below), trace.k)
    residual = pair.left().normalised()
    if residual is not None:
        rest = (at["residual_ids"], at["residual_p"], at["residual_cdf"])
        facts["residual"] = residual.fits(*rest, room=trace.k)
    return facts


def _near(known: float | None, recorded: Any) -> bool:
    return known is not None and abs(known - float(recorded)) < EXACT


def _cumulative(q: RecordedDistribution, at: Mapping[str, Any]) -> Answer:
    listed = at["top_ids"] >= 0
    good = q.cumulates(at["top_ids"][listed], at["top_q_cdf"][listed])
    if np.isfinite(at["q_cdf_lo"]):
        own = at["top_q_cdf"][at["top_ids"] == at["token"]]
        good &= bool(np.all(np.abs(own - at["q_cdf_lo"]) < EXACT))
    return None if good and q.left_open else good


def _top_of(at: Mapping[str, Any], ids: Any, p: Any, q: Any, tails: Any, k: int) -> bool:
    """Return whether the compressed record of p and q is that of the full ones."""
    whole_p, whole_q = at["full_p"], at["full_q"]
    good = bool(np.array_equal(p, whole_p[ids]) and np.array_equal(q, whole_q[ids]))
    needed = {int(at["token"])}
    for whole in (whole_p, whole_q):
        order = np.sort(whole)[::-1]
        needed |= set(np.flatnonzero(whole > (order[k] if k < len(whole) else 0.0)).tolist())
    good &= needed <= set(ids.tolist())
    off = np.ones(len(whole_p), dtype=bool)
    off[ids] = False
    for tail, where in zip(tails, (whole_p > whole_q, whole_p <= whole_q), strict=True):
        sums = whole_p[off & where].sum(), whole_q[off & where].sum()
        good &= bool(np.allclose(tail, sums, rtol=0, atol=EXACT))
    return good


def _closing_facts(
    row: Mapping[str, Any],
    this: Round,
    known: RecordedDistribution,
    rule: Rule,
    trace: Trace,
    keys: Keys,
) -> Facts:
    """Compare what is said of the closing token's distribution and draw."""
    closing, drawn = this.closing, this.closing.choice
    facts: Facts = {
        "kind of draw": drawn.how == HOW[rule.closing_draw] and drawn_as_said(drawn, closing.p),
        "mass": abs(float(known.p.sum()) + known.tail - 1) < ROUNDED,
        "p": known.is_at(closing.token, closing.p),
        "most likely tokens": known.fits(
            row["closing_ids"], row["closing_top"], row["closing_cdf"], room=trace.k
        ),
        "entropy": known.entropy_fits(float(row["closing_entropy"])),
        "gamma": this.gamma >= max((n.position - this.position + 1 for n in this.nodes), default=0),
    }
    if drawn.how == "inverse CDF":
        keyed = keys.is_uniform(drawn.u, Purpose.CLOSING, closing.position)
        facts["draw"] = cdf_answer(known, closing.token, closing.p, drawn, keyed)
        below = row["closing_cdf"][row["closing_ids"] == closing.token]
        facts["cumulative mass"] = bool(np.all(np.abs(below - row["closing_cdf_lo"]) < EXACT))
    elif drawn.how == "race":
        facts["draw"] = keys.race_answer(closing.position, closing.token, known, closing.p, drawn)
    return facts
