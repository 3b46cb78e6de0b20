"""``trace.check()``: run the rule again on what was recorded.

Asked of every round:

1. *proposals*: does each token follow from q and its draw, and the draw from the seed?
2. *acceptance*: is each recorded acceptance probability what the rule gives for p and q?
3. *verdicts, closing token*: does the shipped rule, run on the recorded distributions and draws,
reach the
   recorded path and token?
4. *text*: do emitted tokens, positions and cache lengths follow from the verdict?
5. *numbers*: do the recorded numbers agree with each other (:mod:`specviz.core.trace.consistency`)?
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from specviz.core.contract import DraftContractError
from specviz.core.draws import Purpose
from specviz.core.rules import Rule, rule_of
from specviz.core.trace.consistency import numbers
from specviz.core.trace.evidence import (
    EXACT,
    Answer,
    Evidence,
    Keys,
    Recorded,
    cdf_answer,
    evidence,
)
from specviz.core.trace.validity import problem
from specviz.core.trace.views import Round

if TYPE_CHECKING:
    from specviz.core.trace.trace import Trace

FOLLOWS = "follows"
CONTRADICTS = "does not follow"
CONSISTENT = "consistent but not fully recorded"

CLOSE = 1e-6
"""What a residual of little mass may be off by: its sums were taken in another order."""


@dataclass(frozen=True)
class Finding:
    """One thing that was checked: where, what, and the answer."""

    round: int
    subject: str
    answer: str
    detail: str = ""

    def __str__(self) -> str:
        detail = f" ({self.detail})" if self.detail else ""
        return f"round {self.round}: {self.subject} {self.answer}{detail}"


@dataclass
class Replay:
    """The answers of ``trace.check()``.

    Attributes
    ----------
    findings : list of Finding
        One per proposal, acceptance probability, verdict, closing draw and round of text.
    """

    findings: list[Finding] = field(default_factory=list)

    @property
    def counts(self) -> dict[str, int]:
        """How often each answer was given."""
        counted = Counter(finding.answer for finding in self.findings)
        return {answer: counted[answer] for answer in (FOLLOWS, CONTRADICTS, CONSISTENT)}

    @property
    def contradictions(self) -> list[Finding]:
        """What does not follow."""
        return [finding for finding in self.findings if finding.answer == CONTRADICTS]

    @property
    def ok(self) -> bool:
        """Whether nothing contradicts the record."""
        return not self.contradictions

    def __repr__(self) -> str:
        lines = [f"<Replay: {', '.join(f'{n} × {answer}' for answer, n in self.counts.items())}>"]
        lines += [f"  {finding}" for finding in self.contradictions[:10]]
        if len(self.contradictions) > 10:
            lines.append(f"  … and {len(self.contradictions) - 10} more")
        return "\n".join(lines)

    def note(self, round_index: int, subject: str, answer: Answer, detail: str = "") -> None:
        """Add an answer: True follows, False does not, None is consistent as far as recorded."""
        word = CONSISTENT if answer is None else FOLLOWS if answer else CONTRADICTS
        self.findings.append(Finding(round_index, subject, word, "" if answer else detail))


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
        replay.note(0, "structure", False, wrong)
        return replay
    position = len(trace.prompt)
    before: Round | None = None
    for this in trace.rounds:
        keys, seen = Keys(trace, this), evidence(trace, this)
        _check_proposals(replay, this, seen, keys)
        if trace.full_vocab or (this.is_chain and rule.one_by_one and rule.keeps is None):
            _check_rule(replay, this, rule, seen, keys)
        else:
            _check_by_numbers(replay, this, rule, keys)
        _check_text(replay, this, before, position, frozenset(trace.meta.get("stop_ids", ())))
        for subject, answer, detail in numbers(trace, this, rule, keys):
            replay.note(this.index, subject, answer, detail)
        position += len(this.tokens)
        before = this
    return replay


def _check_proposals(replay: Replay, this: Round, seen: Evidence, keys: Keys) -> None:
    """Check that each proposal follows from q and its draw."""
    for node in this.nodes:
        choice, ids = node.choice, seen.node_ids[node.index]
        distribution = seen.q[node.index]
        if choice.how == "inverse CDF":
            u = keys.uniform(Purpose.DRAFT, node.position, node.index)
            answer = cdf_answer(ids, distribution, node.token, node.q, choice, u)
        elif choice.how == "race":
            answer = keys.race_answer(node.position, node.token, ids, distribution, node.q, choice)
        else:
            answer = node.q == 1.0
        replay.note(this.index, f"proposal {node.index}", answer, f"q = {node.q:.6g}, {choice}")


def _check_rule(replay: Replay, this: Round, rule: Rule, seen: Evidence, keys: Keys) -> None:
    """Run the shipped rule on the record and compare what it says."""
    recorded = Recorded(this, seen, keys, rule.one_by_one)
    try:
        acceptance = rule.acceptance(seen.draft, seen.p)
        verdict = rule.verify(seen.draft, seen.p, recorded, this.position)
    except DraftContractError as error:
        replay.note(this.index, "draft", False, str(error))
        return
    for node in this.nodes:
        replay.note(
            this.index,
            f"acceptance {node.index}",
            abs(float(acceptance[node.index]) - node.acceptance) < EXACT,
            f"recorded {node.acceptance:.6g}, the rule gives {acceptance[node.index]:.6g}",
        )
    for subject, answer, detail in recorded.answers:
        replay.note(this.index, subject, answer, detail)
    replay.note(
        this.index, "path", verdict.path == this.path, f"{this.path}, the rule: {verdict.path}"
    )
    entry = seen.entry(seen.closing_row, this.closing.token)
    replay.note(this.index, "closing token", verdict.token == entry, f"{this.closing.text!r}")
    known = {int(token): i for i, token in enumerate(seen.ids[seen.closing_row]) if token >= 0}
    shown = zip(
        this.closing.distribution.ids.tolist(), this.closing.distribution.p.tolist(), strict=True
    )
    off = [token for token, mass in shown
           if token in known
           and abs(float(verdict.distribution[known[token]]) - mass) > CLOSE]  # fmt: skip
    replay.note(this.index, "closing distribution", not off, f"differs from the rule's at {off}")


def _check_by_numbers(replay: Replay, this: Round, rule: Rule, keys: Keys) -> None:
    """Check a round whose distributions are not on record in full.

    Each u against its acceptance.
    """
    for node in this.nodes:
        if not (rule.compares_u and node.verdict != "never examined"):
            continue
        good = keys.same(node.u, keys.uniform(Purpose.ACCEPT, node.position, node.index))
        if rule.one_by_one:
            good &= (node.u < node.acceptance) == node.accepted
        replay.note(this.index, f"verdict {node.index}", None if good else False, str(node))


def _check_text(
    replay: Replay, this: Round, before: Round | None, position: int, ends: frozenset[int]
) -> None:
    """Check positions, emitted tokens, what the closing token is called, and cache lengths."""
    kept = min(len(this.path), len(this.tokens))
    decided = [this.nodes[i].token for i in this.path] + [this.closing.token]
    kind = "plain" if not this.nodes else "bonus" if seen_to_the_end(this) else "correction"
    target, draft = this.target_cache, this.draft_cache
    facts = {
        "position": this.position == position,
        "emitted tokens": len(this.tokens) >= 1
        and this.tokens.tolist() == decided[: len(this.tokens)],
        "nothing after an end": not ends & set(this.tokens[:-1].tolist()),
        "kind of closing token": this.closing.kind == kind,
        "target cache": target.before == (before.target_cache.after if before else 0)
        and target.after_pass == position + len(this.nodes)
        and target.after == position + kept,
        "draft cache": draft.before == (before.draft_cache.after if before else 0)
        and draft.after <= position + kept,
    }
    for subject, good in facts.items():
        replay.note(this.index, subject, good, f"{this.tokens.tolist()}, {target}, {draft}")


def seen_to_the_end(this: Round) -> bool:
    """Return whether the accepted path ends at a leaf: everything on it was accepted."""
    last = this.path[-1] if this.path else -1
    return all(node.parent != last for node in this.nodes)
