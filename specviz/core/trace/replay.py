"""``trace.check()``: run the rule again on what was recorded.

Asked of every round:

1. *proposals*: does each token follow from q and its draw, and the draw from the seed?
2. *acceptance*: is each recorded acceptance probability what the rule gives for p and q?
3. *path, closing token*: does the shipped rule, run on the recorded distributions and draws, reach
   the recorded path and token?
4. *text*: do emitted tokens, positions and cache lengths follow from the decision?
5. *numbers*: do the recorded numbers agree with each other and with the seed
   (:mod:`specviz.core.trace.consistency`)?

And of the run: do its settings agree with what was recorded (:mod:`specviz.core.trace.settings`)?

A distribution over thousands of tokens is on record as its most likely ones and two tails: where
p > q and where p <= q. Let each tail stand for all its tokens: then sum(min(p, q)) and the mass of
the residual stay exact, and the shipped rule runs on distributions of 2k + 3 entries.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from specviz.core.contract import ROOT, Draft, DraftContractError, FloatArray, IntArray
from specviz.core.draws import Event, Purpose
from specviz.core.rules import Rule, rule_of
from specviz.core.rules.block import prefix_shares
from specviz.core.trace.consistency import (
    CLOSE,
    EXACT,
    ROUNDED,
    Answer,
    Keys,
    RecordedPair,
    all_of,
    cdf_answer,
    node_rows,
    numbers,
    pair_of,
)
from specviz.core.trace.settings import contradicted_settings
from specviz.core.trace.validity import problem
from specviz.core.trace.views import Node, Round

if TYPE_CHECKING:
    from specviz.core.trace.trace import Trace

FOLLOWS = "follows"
CONTRADICTS = "does not follow"
CONSISTENT = "agrees with the record, but cannot be recomputed from it"
SUMS = 1e-13
"""What a sum of probabilities may be off by."""
WHOLE_RUN = -1
"""The round of a finding that is about the run as a whole."""


@dataclass(frozen=True)
class CheckResult:
    """One thing that was checked: in which round, what, and the answer."""

    round: int
    subject: str
    answer: str
    detail: str = ""

    def __str__(self) -> str:
        where = "the run" if self.round == WHOLE_RUN else f"round {self.round}"
        detail = f" ({self.detail})" if self.detail else ""
        return f"{where}: {self.subject}: {self.answer}{detail}"


@dataclass
class Replay:
    """The answers of ``trace.check()``.

    Attributes
    ----------
    findings : list of CheckResult
        One per proposal, acceptance probability, verdict, closing draw and round of text, and one
        for each of the run's settings.
    """

    findings: list[CheckResult] = field(default_factory=list)

    @property
    def counts(self) -> dict[str, int]:
        """How often each answer was given."""
        counted = Counter(finding.answer for finding in self.findings)
        return {answer: counted[answer] for answer in (FOLLOWS, CONTRADICTS, CONSISTENT)}

    @property
    def contradictions(self) -> list[CheckResult]:
        """What does not follow."""
        return [finding for finding in self.findings if finding.answer == CONTRADICTS]

    @property
    def ok(self) -> bool:
        """Whether nothing contradicts the record."""
        return not self.contradictions

    def __repr__(self) -> str:
        follow, wrong, open_ = self.counts.values()
        said = f"{follow:,} checks follow from the record, {wrong:,} do not"
        if open_:
            said += f", {open_:,} agree with it but cannot be recomputed (not every token is in it)"
        lines = [f"<Replay: {said}>"]
        lines += [f"  {finding}" for finding in self.contradictions[:10]]
        if len(self.contradictions) > 10:
            lines.append(f"  … and {len(self.contradictions) - 10} more")
        return "\n".join(lines)

    def __str__(self) -> str:
        from specviz.figures.terminal import for_stdout

        return for_stdout(repr(self))

    def note(self, round_index: int, subject: str, answer: Answer, detail: str = "") -> None:
        """Add an answer: True follows, False does not, None is consistent as far as recorded."""
        word = CONSISTENT if answer is None else FOLLOWS if answer else CONTRADICTS
        self.findings.append(CheckResult(round_index, subject, word, "" if answer else detail))


def check(trace: Trace) -> Replay:
    """Replay every decision of a trace (see :meth:`specviz.core.trace.trace.Trace.check`).

    Raises
    ------
    ValueError
        If the trace names a rule this version does not have.
    """
    rule = rule_of(trace.meta)
    replay = Replay()
    wrong = problem(trace)
    if wrong is not None:
        replay.note(WHOLE_RUN, "structure", False, wrong)
        return replay
    position = len(trace.prompt)
    before: Round | None = None
    for this in trace.rounds:
        keys = Keys(trace, this)
        rows = node_rows(trace, this)
        pairs = [pair_of(at, trace) for at in rows]
        _check_proposals(replay, this, pairs, keys)
        _check_path(replay, this, rule, keys)
        try:
            if trace.full_vocab or (this.is_chain and rule.one_by_one and rule.accepts is None):
                _run_rule(replay, this, rule, round_record(trace, this))
            else:
                _check_acceptance(replay, this, rule, trace)
        except DraftContractError as error:
            replay.note(this.index, "draft", False, str(error))
        _check_text(replay, this, before, position, last=this.index == len(trace) - 1)
        for subject, answer, detail in numbers(trace, this, rule, keys, rows, pairs):
            replay.note(this.index, subject, answer, detail)
        position += len(this.tokens)
        before = this
    for subject, answer, detail in contradicted_settings(trace, rule):
        replay.note(WHOLE_RUN, subject, answer, detail)
    return replay


def _check_proposals(replay: Replay, this: Round, pairs: list[RecordedPair], keys: Keys) -> None:
    """Check that each proposal follows from q and its draw."""
    for node, pair in zip(this.nodes, pairs, strict=True):
        q, choice = pair.q, node.choice
        if choice.how == "inverse CDF":
            keyed = keys.is_uniform(choice.u, Purpose.DRAFT, node.position, node.index)
            answer = cdf_answer(q, node.token, node.q, choice, keyed)
        elif choice.how == "race":
            answer = keys.race_answer(node.position, node.token, q, node.q, choice)
        else:
            answer = node.q == 1.0
        replay.note(this.index, f"proposal {node.index}", answer, f"q = {node.q:.6g}, {choice}")


# -- the path -------------------------------------------------------------------------------------


def passes(node: Node, rule: Rule) -> bool:
    """Return whether a proposal passes its own test, by the numbers on record."""
    if rule.compares_u:
        return node.u < node.acceptance
    return node.token == node.own_token if rule.closing_draw == "race" else node.acceptance == 1


def path_of(this: Round, rule: Rule) -> list[int]:
    """Return the path to which the recorded draws and acceptance probabilities lead."""
    good = [passes(node, rule) for node in this.nodes]
    if not rule.one_by_one:  # block: up to the last that passes
        return list(range(max((i + 1 for i, one in enumerate(good) if one), default=0)))
    path: list[int] = []
    while True:
        end = path[-1] if path else ROOT
        child = next((n.index for n in this.nodes if n.parent == end and good[n.index]), None)
        if child is None:
            return path
        path.append(child)


def _check_path(replay: Replay, this: Round, rule: Rule, keys: Keys) -> None:
    """Check that the draws on record lead to the recorded verdicts and path."""
    for node in this.nodes:
        if node.verdict == "never examined" or not rule.one_by_one:
            continue
        twin = any(
            one.parent == node.parent and passes(one, rule) for one in this.nodes[: node.index]
        )
        good: Answer = node.accepted == (passes(node, rule) and not twin)
        if rule.compares_u:
            keyed = keys.is_uniform(node.u, Purpose.ACCEPT, node.position, node.index)
            good = all_of([good, keyed])
        detail = f"u = {node.u:.6g}, acceptance = {node.acceptance:.6g}, recorded as {node.verdict}"
        replay.note(this.index, f"verdict {node.index}", good, detail)
    path = path_of(this, rule)
    replay.note(this.index, "path", path == this.path, f"recorded {this.path}, drawn {path}")


# -- the rule, run again --------------------------------------------------------------------------


@dataclass
class RoundRecord:
    """The distributions of one round, over entries that stand for tokens.

    Parameters
    ----------
    draft : Draft
        The proposals, tokens replaced by their entries.
    p : FloatArray
        ``(n + 1, m)`` target distributions; the rows that no one reached are 0.
    ids : list of IntArray
        For every row of ``p`` the token that each entry stands for, -1 for padding and tails.
    closing_row : int
        The row of ``p`` at which the closing token was drawn.
    """

    draft: Draft
    p: FloatArray
    ids: list[IntArray]
    closing_row: int

    def entry(self, row: int, token: int) -> int:
        """Return the entry of a token; the last one (a tail) if it is not on record itself."""
        found = np.flatnonzero(self.ids[row] == token)
        return int(found[0]) if len(found) else self.p.shape[1] - 1


def round_record(trace: Trace, this: Round) -> RoundRecord:
    """Return a round's distributions: in full if they were kept, else compressed (chains)."""
    n = len(this.nodes)
    last = this.path[-1] if this.path else ROOT
    parent = np.array([node.parent for node in this.nodes], dtype=np.int64)
    if trace.full_vocab:
        return _in_full(trace, this, parent, last + 1)
    width = 2 * trace.k + 3
    p, q = np.zeros((n + 1, width)), np.zeros((n, width))
    ids = [np.full(width, -1, dtype=np.int64) for _ in range(n + 1)]
    if this.closing.kind != "correction":
        known = this.closing.distribution
        m = len(known.ids)
        ids[last + 1][:m], p[last + 1, :m], p[last + 1, -1] = known.ids, known.p, known.tail
    for node in this.nodes:
        row, both, m = node.parent + 1, node.distributions, len(node.distributions.ids)
        ids[row][:m], p[row, :m], q[node.index, :m] = both.ids, both.p, both.q
        p[row, -2:], q[node.index, -2:] = both.tail_p, both.tail_q
    out = RoundRecord(Draft.empty(width), p, ids, last + 1)
    tokens = [out.entry(node.parent + 1, node.token) for node in this.nodes]
    out.draft = Draft(np.array(tokens, dtype=np.int64), parent, q, np.arange(n))
    return out


def _in_full(trace: Trace, this: Round, parent: IntArray, closing_row: int) -> RoundRecord:
    n = len(this.nodes)
    where = trace.node_slice(this.index)
    p = np.zeros((n + 1, trace.full_vocab))
    for node in reversed(this.nodes):  # a first sibling is judged by p itself
        p[node.parent + 1] = trace.node_table["full_p"][where][node.index]
    if this.closing.kind != "correction":
        p[closing_row] = trace.round_table["full_closing"][this.index]
    tokens = np.array([node.token for node in this.nodes], dtype=np.int64)
    q = trace.node_table["full_q"][where]
    ids = [np.arange(trace.full_vocab) for _ in range(n + 1)]
    return RoundRecord(Draft(tokens, parent, q, np.arange(n)), p, ids, closing_row)


class RecordedDraws:
    """Draws that answer with what was recorded.

    The third reader of a rule, beside :class:`specviz.core.draws.Sampler` and
    :class:`specviz.lossless.exact.branching.Branching`.
    """

    def __init__(self, this: Round, record: RoundRecord) -> None:
        self.log: list[Event] = []
        self._this, self._record = this, record

    def begin_round(self, index: int) -> None:
        """Nothing to do: a record knows its round."""

    def accept(self, probability: float, position: int, node: int) -> bool:
        """Return ``u < probability`` for the recorded u."""
        return self._this.nodes[node].u < probability

    def categorical(
        self, distribution: Any, position: int, node: int = 0, purpose: Purpose = Purpose.CLOSING
    ) -> int:
        """Return the recorded closing token."""
        return self._record.entry(self._record.closing_row, self._this.closing.token)

    def race(self, distribution: Any, position: int, node: int = -1) -> int:
        """Return the target's own token at a position, -1 where the record has none."""
        depth = position - self._this.position
        path, closing = self._this.path, self._this.closing
        if depth > len(path):  # the rule goes on where the record says that the round was closed
            return -1
        row = path[depth - 1] + 1 if depth else 0
        token = self._this.nodes[path[depth]].token if depth < len(path) else closing.token
        return self._record.entry(row, token)


def _run_rule(replay: Replay, this: Round, rule: Rule, record: RoundRecord) -> None:
    """Run the shipped rule on the record and compare what it says."""
    acceptance = rule.acceptance(record.draft, record.p)
    decision = rule.verify(record.draft, record.p, RecordedDraws(this, record), this.position)
    for node in this.nodes:
        _note_acceptance(replay, this, node, [float(acceptance[node.index])])
    replay.note(
        this.index, "decision", decision.path == this.path,
        f"the path {this.path} is recorded, the rule takes {decision.path}",
    )  # fmt: skip
    entry = record.entry(record.closing_row, this.closing.token)
    replay.note(this.index, "closing token", decision.token == entry, f"{this.closing.text!r}")
    ids = record.ids[record.closing_row]
    entries = {int(token): i for i, token in enumerate(ids) if token >= 0}
    shown = zip(this.closing.distribution.ids.tolist(), this.closing.distribution.p, strict=True)
    off = [
        token
        for token, mass in shown
        if token in entries and abs(float(decision.distribution[entries[token]]) - mass) > CLOSE
    ]
    replay.note(this.index, "closing distribution", not off, f"differs from the rule's at {off}")


def _note_acceptance(
    replay: Replay, this: Round, node: Node, values: list[float], slack: float = EXACT
) -> None:
    """Note whether an acceptance probability is what the rule gives, or may give."""
    low, high = min(values), max(values)
    good = low - slack <= node.acceptance <= high + slack
    answer = None if good and high - low + slack > 2 * EXACT else bool(good)
    given = f"{low:.6g}" if high - low < EXACT else f"{low:.6g} to {high:.6g}"
    detail = f"recorded {node.acceptance:.6g}, the rule gives {given}"
    replay.note(this.index, f"acceptance {node.index}", answer, detail)


# -- trees, and rules that look at more than the top ----------------------------------------------


def _check_acceptance(replay: Replay, this: Round, rule: Rule, trace: Trace) -> None:
    """Check each acceptance probability on the record of its own node."""
    if not rule.one_by_one:
        records = list(_filled(trace, this))
        both = [rule.acceptance(record.draft, record.p) for record in records]
        slack = _rounding(records[0])
        for node in this.nodes:
            values = [float(one[node.index]) for one in both]
            _note_acceptance(replay, this, node, values, slack[node.index])
        return
    for node in this.nodes:
        _note_acceptance(replay, this, node, list(_acceptance_of(node, rule)))


def _acceptance_of(node: Node, rule: Rule) -> Iterator[float]:
    """Yield the acceptance probability of one node, seen as a chain of its own."""
    if rule.accepts is not None:
        for slack in (-ROUNDED, ROUNDED):  # the entropy is kept in float32
            yield float(rule.accepts(node.p, node.entropy_p + slack))
        return
    both = node.distributions
    entry = np.flatnonzero(both.ids == node.token)
    if not len(entry):
        yield np.nan  # the proposal itself is always listed
        return
    q = np.append(both.q, both.tail_q)[None]  # (1, m + 2)
    p = np.zeros((2, q.shape[1]))
    p[0] = np.append(both.p, both.tail_p)
    yield from rule.acceptance(Draft.chain(entry.tolist(), q, q.shape[1]), p).tolist()


def _filled(trace: Trace, this: Round) -> Iterator[RoundRecord]:
    """Yield the two extremes of what the tails may hold where p > q, for ``block``.

    One token of this mass gives the least sum(max(0, share * p - q)), a token without q beside one
    with p = q the greatest.
    """
    record = round_record(trace, this)
    yield record
    q, p = record.draft.q.copy(), record.p.copy()
    for node in this.nodes:  # chains: row i of p stands beside row i of q
        above_p, above_q = p[node.index, -2], q[node.index, -2]
        p[node.index, -2:] = above_p - above_q, p[node.index, -1] + above_q
        q[node.index, -2:] = 0.0, q[node.index, -1] + above_q
    yield RoundRecord(
        Draft(record.draft.tokens, record.draft.parent, q, record.draft.q_row), p, record.ids,
        record.closing_row,
    )  # fmt: skip


def _rounding(record: RoundRecord) -> FloatArray:
    """Return ``(n,)`` how far rounding may move block's h_i, a quotient of numbers maybe tiny."""
    n = len(record.draft)
    slack = np.full(n, EXACT)
    for i, share in enumerate(prefix_shares(record.draft, record.p)[1:n], start=1):
        left = np.maximum(0.0, share * record.p[i] - record.draft.q[i]).sum()
        slack[i - 1] = max(EXACT, min(1.0, SUMS / max(left + 1 - share, SUMS)))
    return slack


# -- the text -------------------------------------------------------------------------------------


def _check_text(
    replay: Replay, this: Round, before: Round | None, position: int, *, last: bool
) -> None:
    """Check positions, emitted tokens, what the closing token is called, and cache lengths."""
    kept = min(len(this.path), len(this.tokens))
    decided = [this.nodes[i].token for i in this.path] + [this.closing.token]
    kind = "plain" if not this.nodes else "bonus" if _to_the_end(this) else "correction"
    target, draft = this.target_cache, this.draft_cache
    cut = 1 if last else len(decided)  # only the end of the text cuts a round
    facts = {
        "position": this.position == position,
        "emitted tokens": len(this.tokens) >= cut
        and this.tokens.tolist() == decided[: len(this.tokens)],
        "kind of closing token": this.closing.kind == kind,
        "target cache": target.before == (before.target_cache.after if before else 0)
        and target.after_pass == position + len(this.nodes)
        and target.after == position + kept,
        "draft cache": draft.before == (before.draft_cache.after if before else 0)
        and draft.after <= position + kept,
    }
    for subject, good in facts.items():
        replay.note(this.index, subject, good, f"{this.tokens.tolist()}, {target}, {draft}")


def _to_the_end(this: Round) -> bool:
    """Return whether the accepted path ends at a leaf: everything on it was accepted."""
    last = this.path[-1] if this.path else ROOT
    return all(node.parent != last for node in this.nodes)
