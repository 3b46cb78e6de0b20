"""Do the numbers of a record agree with each other? The part of ``trace.check()`` without a rule.

What a trace says of a distribution (its value at a token, the most likely tokens, tails,
cumulative masses, entropy, overlap, residual) is compared with the distribution itself if
distributions were kept in full, and else with the most likely tokens, as far as these determine it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from specviz.core.contract import ROOT, FloatArray, IntArray
from specviz.core.draws import Purpose
from specviz.core.rules import Rule
from specviz.core.trace.evidence import EXACT, Answer, Keys
from specviz.core.trace.views import Choice, Round

if TYPE_CHECKING:
    from specviz.core.trace.trace import Trace

ROUNDED = 1e-5
"""What a number kept in float32 may be off by."""

Facts = dict[str, Answer]


@dataclass(frozen=True)
class Known:
    """A distribution as far as it is on record: some tokens one by one.

    The others by their mass.
    """

    ids: IntArray
    p: FloatArray
    tail: float
    vocab_size: int | None

    @property
    def left_open(self) -> bool:
        """Whether some of its mass cannot be told apart."""
        return self.tail > EXACT

    def at(self, token: int) -> float | None:
        """Return the probability of a token, or None if it is in the tail."""
        found = np.flatnonzero(self.ids == token)
        return float(self.p[found[0]]) if len(found) else None

    def entropy_fits(self, entropy: float) -> Answer:
        """Return whether the entropy in nats is possible: the tail is one token, or all of them."""
        mass = self.p[self.p > 0]
        known = -float((mass * np.log(mass)).sum())
        low = high = known
        if self.left_open:
            rest = np.inf if self.vocab_size is None else max(1, self.vocab_size - len(self.ids))
            low = known - self.tail * float(np.log(min(1.0, self.tail)))
            high = known - self.tail * float(np.log(self.tail / rest))
        slack = ROUNDED * (1 + known)
        good = low - slack <= entropy <= high + slack
        return None if good and self.left_open else bool(good)

    def fits(self, ids: IntArray, p: FloatArray, cdf_lo: FloatArray, room: int) -> Answer:
        """Return whether these are its ``room`` most likely tokens with their cumulative masses."""
        listed = ids >= 0
        ids, p, cdf_lo = ids[listed], p[listed].astype(np.float64), cdf_lo[listed]
        good = len(np.unique(ids)) == len(ids) and bool(np.all(np.diff(p) <= ROUNDED))
        for token, mass, below in zip(ids.tolist(), p.tolist(), cdf_lo.tolist(), strict=True):
            own = self.at(token)
            good &= mass <= self.tail + ROUNDED if own is None else abs(own - mass) <= ROUNDED
            low = float(self.p[self.ids < token].sum())
            good &= low - EXACT <= below <= low + self.tail + EXACT
        least = float(p[-1]) if len(ids) == room else 0.0
        passed_over = self.p[~np.isin(self.ids, ids)]
        good &= bool(np.all(passed_over <= least + ROUNDED))
        return None if good and self.left_open else bool(good)


def drawn_as_said(choice: Choice, probability: float) -> bool:
    """Return whether the numbers of a draw are those of its kind, and no others."""
    cdf = np.isfinite([choice.u, choice.cdf_lo, choice.cdf_hi, choice.mass])
    race = ~np.isnan([choice.time, choice.second])
    if choice.how == "inverse CDF":
        return bool(cdf.all() and not race.any())
    if choice.how == "race":
        return bool(race.all() and not cdf.any())
    return bool(not cdf.any() and not race.any() and abs(probability - 1) < EXACT)


def numbers(trace: Trace, this: Round, rule: Rule, keys: Keys) -> Iterator[tuple[str, Answer, str]]:
    """Yield (subject, answer, which numbers are wrong) for each proposal and the closing token."""
    where = trace.node_slice(this.index)
    columns = {name: trace.node_table[name][where] for name in trace.node_table.names}
    examined = _examined(this, rule)
    own = _own_tokens(this)
    size = trace.full_vocab or trace.meta.get("vocab_size")
    size = size if isinstance(size, int) else None
    for node in this.nodes:
        at = {name: column[node.index] for name, column in columns.items()}
        facts = _distribution_facts(at, trace, size)
        facts["kind of draw"] = drawn_as_said(node.choice, node.q)
        facts["verdict"] = (node.verdict != "never examined") == (node.index in examined)
        u = keys.uniform(Purpose.ACCEPT, node.position, node.index)
        facts["u"] = keys.same(node.u, u) if rule.compares_u else bool(np.isnan(node.u))
        expected = own.get(node.position) if node.index in examined else None
        found = (node.own_token, node.own.time, node.own.second)
        nothing = (-1, float("nan"), float("nan"))
        facts["own token"] = bool(np.array_equal(found, expected or nothing, equal_nan=True))
        yield f"numbers of proposal {node.index}", *_together(facts)
    row = {name: trace.round_table[name][this.index] for name in trace.round_table.names}
    yield "numbers of the closing token", *_together(_closing_facts(row, this, trace, size))


def _together(facts: Facts) -> tuple[Answer, str]:
    wrong = [name for name, answer in facts.items() if answer is False]
    answer: Answer = False if wrong else None if None in facts.values() else True
    return answer, f"wrong: {', '.join(wrong)}"


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


def _own_tokens(this: Round) -> dict[int, tuple[int, float, float]]:
    """Return the target's own token and its arrival at every position where it raced."""
    if this.closing.choice.how != "race":
        return {}
    last = this.closing.choice
    own = {this.closing.position: (this.closing.token, last.time, last.second)}
    for index in this.path:
        node = this.nodes[index]
        own[node.position] = (node.token, node.own.time, node.own.second)
    return own


def _distribution_facts(at: Mapping[str, Any], trace: Trace, size: int | None) -> Facts:
    """Compare what is said of p and q of one proposal."""
    listed = at["top_ids"] >= 0
    ids, p, q = at["top_ids"][listed], at["top_p"][listed], at["top_q"][listed]
    above = float(at["tail_p_above"]), float(at["tail_q_above"])
    below = float(at["tail_p_below"]), float(at["tail_q_below"])
    facts: Facts = {
        "mass of p": abs(float(p.sum()) + above[0] + below[0] - 1) < ROUNDED,
        "mass of q": abs(float(q.sum()) + above[1] + below[1] - 1) < ROUNDED,
        "tails": above[0] >= above[1] - EXACT and below[0] <= below[1] + EXACT,
    }
    if trace.full_vocab:
        facts["most likely tokens"] = _top_of(at, ids, p, q, (above, below), trace.k)
        ids, p, q = np.arange(trace.full_vocab), at["full_p"], at["full_q"]
        above = below = (0.0, 0.0)
    target = Known(ids, p, above[0] + below[0], size)
    draft = Known(ids, q, above[1] + below[1], size)
    left = np.maximum(0.0, p - q)
    mass = float(left.sum()) + max(0.0, above[0] - above[1])
    x = int(at["token"])
    facts |= {
        "p": _near(target.at(x), at["p"]),
        "q": _near(draft.at(x), at["q"]),
        "overlap": _near(float(np.minimum(p, q).sum()) + above[1] + below[0], at["overlap"]),
        "entropy of p": target.entropy_fits(float(at["entropy_p"])),
        "entropy of q": draft.entropy_fits(float(at["entropy_q"])),
        "cumulative q": _cumulative(draft, at),
    }
    if mass > EXACT:  # below, a residual is nothing but rounding
        residual = Known(ids, left / mass, max(0.0, above[0] - above[1]) / mass, size)
        rest = (at["residual_ids"], at["residual_p"], at["residual_cdf"])
        facts["residual"] = residual.fits(*rest, room=trace.k)
    return facts


def _near(known: float | None, recorded: Any) -> bool:
    return known is not None and abs(known - float(recorded)) < EXACT


def _cumulative(draft: Known, at: Mapping[str, Any]) -> Answer:
    listed = at["top_ids"] >= 0
    good = True
    for token, below in zip(at["top_ids"][listed], at["top_q_cdf"][listed], strict=True):
        low = float(draft.p[draft.ids < token].sum())
        good &= low - EXACT <= below <= low + draft.tail + EXACT
        if token == at["token"] and np.isfinite(at["q_cdf_lo"]):
            good &= abs(below - at["q_cdf_lo"]) < EXACT
    return None if good and draft.left_open else bool(good)


def _top_of(at: Mapping[str, Any], ids: Any, p: Any, q: Any, tails: Any, k: int) -> bool:
    """Return whether a proposal's compressed record is that of the full distributions."""
    whole_p, whole_q = at["full_p"], at["full_q"]
    good = bool(np.array_equal(p, whole_p[ids]) and np.array_equal(q, whole_q[ids]))
    needed = {int(at["token"])}
    for distribution in (whole_p, whole_q):
        order = np.sort(distribution)[::-1]
        needed |= set(
            np.flatnonzero(distribution > (order[k] if k < len(distribution) else 0.0)).tolist()
        )
    good &= needed <= set(ids.tolist())
    off = np.ones(len(whole_p), dtype=bool)
    off[ids] = False
    for tail, where in zip(tails, (whole_p > whole_q, whole_p <= whole_q), strict=True):
        sums = whole_p[off & where].sum(), whole_q[off & where].sum()
        good &= bool(np.allclose(tail, sums, rtol=0, atol=EXACT))
    return good


def _closing_facts(row: Mapping[str, Any], this: Round, trace: Trace, size: int | None) -> Facts:
    """Compare what is said of the closing token's distribution."""
    listed = row["closing_ids"] >= 0
    ids, distribution = row["closing_ids"][listed], row["closing_top"][listed]
    known = Known(ids, distribution, max(0.0, 1.0 - float(distribution.sum())), size)
    if trace.full_vocab:
        whole = row["full_closing"]
        known = Known(np.arange(len(whole)), whole, 0.0, size)
    own = known.at(this.closing.token)
    facts: Facts = {
        "kind of draw": drawn_as_said(this.closing.choice, this.closing.p),
        "mass": abs(float(known.p.sum()) + known.tail - 1) < ROUNDED,
        "p": this.closing.p <= known.tail + EXACT if own is None else _near(own, this.closing.p),
        "most likely tokens": known.fits(
            row["closing_ids"], row["closing_top"], row["closing_cdf"], room=trace.k
        ),
        "entropy": known.entropy_fits(float(row["closing_entropy"])),
        "gamma": this.gamma >= max((n.position - this.position + 1 for n in this.nodes), default=0),
    }
    if this.closing.choice.how == "inverse CDF":
        drawn = row["closing_ids"] == this.closing.token
        below = row["closing_cdf"][drawn]
        facts["cumulative mass"] = bool(np.all(np.abs(below - row["closing_cdf_lo"]) < EXACT))
    return facts
