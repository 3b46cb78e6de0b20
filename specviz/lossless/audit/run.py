"""From texts to the report of an audit: which battery, on what, and how ties are read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from tqdm.auto import tqdm

from specviz.core.contract import Sampling
from specviz.lossless.audit.plan import Plan
from specviz.lossless.audit.recorded_texts import Recorded
from specviz.lossless.audit.sources import Collected, as_sample
from specviz.lossless.audit.target import ClaimedTarget, PromptTarget, Teacher
from specviz.lossless.audit.ties import READINGS, TieCount, seen_next
from specviz.lossless.audit.two_sample import two_sample
from specviz.lossless.report.audit_report import AuditReport
from specviz.lossless.report.battery_report import BatteryReport, Criteria, Verdict
from specviz.lossless.statistics.battery import battery, battery_of_scores
from specviz.lossless.statistics.prefix_tree import PrefixTree
from specviz.lossless.statistics.sample import Sample, without_padding
from specviz.lossless.statistics.scores import Scores

LONGEST = 4_096
"""Tests that have a table per position take texts up to this length."""

LONGEST_SCORED = 2**20
"""Texts up to this length are scored token by token."""


def judge(texts: Collected, plan: Plan) -> AuditReport:
    """Return the report on texts held against the target's distributions."""
    reports: list[BatteryReport] = []
    samples: list[Sample] = []
    criteria = plan.criteria
    if texts.method == "scores":
        report = _judge_scores(texts, plan)
        drawn = sum(len(some) for _, some in texts.groups)
        wanted = sum(texts.wanted)
        reports.append(report.cut_short(wanted) if drawn < wanted else report)
    else:
        longest = max(target.length for target, _ in texts.groups)
        _refuse_long(longest, "method='battery'")
        share = replace(criteria, alpha=criteria.alpha / len(texts.groups))
        for index, (target, some) in enumerate(texts.groups):
            sample = as_sample(some, target.claimed, target.length)
            samples.append(sample)
            report = _judge_short(target, sample, share)
            wanted = texts.wanted[index] if texts.wanted else 0
            reports.append(report.cut_short(wanted) if len(sample) < wanted else report)
    records = [
        record for _, some in texts.groups if not isinstance(some, Sample) for record in some
    ]
    notes = (*texts.notes, *_unfinished(texts, plan.length))
    found = AuditReport(
        texts.name, texts.method, tuple(reports), criteria.alpha, criteria.margin, criteria.seed,
        seeds=_seeds(records), settings=texts.settings, notes=notes,
        interrupted=texts.interrupted, engine=texts.engine, passes=texts.passes,
        samples=tuple(samples),
    )  # fmt: skip
    if texts.wanted or found.exit_code != 1:
        return found
    note = (
        "If another model, other weights, another prompt or other sampling settings than these "
        "generated the texts, that alone explains it."
    )
    return replace(found, notes=(*notes, note))


def _judge_short(target: PromptTarget, sample: Sample, criteria: Criteria) -> BatteryReport:
    """Return the battery's report on texts of one prompt; ties are left open if need be."""
    words = target.claimed.words(np.unique(sample.tokens))

    def judged(tree: PrefixTree) -> BatteryReport:
        return battery(
            sample, tree, draft=target.draft_distribution, alpha=criteria.alpha,
            margin=criteria.margin, effect=criteria.effect, seed=criteria.seed, words=words,
            tables=True,
        )  # fmt: skip

    report = judged(target.tree)
    if not target.ties.tied:
        return report
    read: dict[str, BatteryReport] = {}
    if report.exit_code == 1:
        seen = seen_next(sample.tokens)
        read = {reading: judged(target.tree_read(reading, seen)) for reading in READINGS}
    return _with_ties(report, read, target.ties, target.claimed, target.sampling)


def _judge_scores(texts: Collected, plan: Plan) -> BatteryReport:
    """Return the report on texts of any length; ties are left open if need be."""
    first = texts.groups[0][0]
    report, ties = _scored(texts, plan, None)
    if not ties.tied:
        return report
    read: dict[str, BatteryReport] = {}
    if report.exit_code == 1:
        read = {reading: _scored(texts, plan, reading)[0] for reading in READINGS}
    return _with_ties(report, read, ties, first.claimed, first.sampling)


def _with_ties(
    report: BatteryReport, read: dict[str, BatteryReport], ties: TieCount, claimed: ClaimedTarget,
    sampling: Sampling,
) -> BatteryReport:  # fmt: skip
    """Return the report in the reading that explains the texts, if one does; ties are noted."""
    words = claimed.words(ties.first) or {}
    after = "".join(words.get(token, f"⟨{token}⟩") for token in ties.first) or "the prompt"
    after = repr(after) if ties.first else after
    edge = "the largest" if sampling.greedy else "the last token kept"
    note = (
        f"Ties: in {ties.tied:,} of {ties.contexts:,} contexts (the first: after {after}) a token "
        f"that is left out has the same logit as {edge}, up to {ties.gap:.2g}. Which of such "
        f"tokens an engine keeps is its own choice."
    )
    best = min(read, key=lambda name: (read[name].exit_code == 1, read[name].exit_code), default="")
    if best and read[best].exit_code != 1:
        how = {
            "some": "with as many of them kept as asked for, whichever",
            "all": "with all of them kept",
        }[best]
        note += (
            f" With the lowest ids kept, as here, the texts would depart; {how}, they do not, and "
            f"so they were judged. How tied tokens share their probability was not tested further."
        )
        report = read[best]
    elif read:
        note += " The texts depart however they are read."
    return replace(report, notes=(*report.notes, note))


def _scored(texts: Collected, plan: Plan, reading: str | None) -> tuple[BatteryReport, TieCount]:
    """Return the report on every token of every text, and the ties in their contexts."""
    teacher = Teacher(texts.groups[0][0].claimed, texts.groups[0][0].draft, reading)
    parts: list[Scores] = []
    total = sum(len(records) for _, records in texts.groups)
    with tqdm(
        total=total, desc="scoring", unit="text", delay=2, leave=False, disable=not plan.progress
    ) as bar:
        for target, records in texts.groups:
            assert not isinstance(records, Sample)
            for record in records:
                parts.append(_score(teacher, target, record))
                bar.update()
    criteria = plan.criteria
    report = battery_of_scores(
        Scores.join(parts), alpha=criteria.alpha, margin=criteria.margin,
        effect=criteria.effect, seed=criteria.seed, tables=True,
    )  # fmt: skip
    return report, teacher.ties


def _score(teacher: Teacher, target: PromptTarget, record: Recorded) -> Scores:
    """Return the scores of one text; what comes after its end cannot be."""
    ends = target.claimed.end_ids
    ids = without_padding(record.token_ids[: target.length], ends)
    if len(ids) > LONGEST_SCORED:
        raise ValueError(
            f"a text has {len(ids):,} tokens, and at most {LONGEST_SCORED:,} are scored: give a "
            f"length up to that"
        )
    tokens = np.array(ids, dtype=np.int64)
    scores = teacher.score(target.prompt, tokens, target.sampling)
    ended = np.isin(tokens, sorted(ends))
    if ended[:-1].any():  # goes on after its end, with more than padding
        after = np.arange(len(tokens)) > np.argmax(ended)
        scores = replace(scores, p=np.where(after, 0.0, scores.p))
    return scores


def judge_two(texts: Collected, plan: Plan) -> AuditReport:
    """Return the report on texts held against a reference's."""
    prompts = {record.prompt_ids for side in texts.sides for record in side}
    if len(prompts) != 1:
        raise ValueError(f"a two-sample test takes texts of one prompt, got {len(prompts)} prompts")
    ends = plan.end_ids or frozenset()
    rows = [[without_padding(record.token_ids, ends) for record in side] for side in texts.sides]
    length = plan.length or max(len(text) for side in rows for text in side)
    _refuse_long(length, "a two-sample test")
    vocab_size = plan.vocab_size or (None if plan.target is None else plan.target.vocab_size)
    if vocab_size is None:
        vocab_size = max(2, 1 + max(max(text) for side in rows for text in side))
    samples = [Sample.of(side, vocab_size, end_ids=ends, length=length) for side in rows]
    criteria = plan.criteria
    report = two_sample(
        samples[0], samples[1], alpha=criteria.alpha, margin=criteria.margin,
        effect=criteria.effect, tables=True,
    )  # fmt: skip
    shared = set(_seeds(texts.sides[0])) & set(_seeds(texts.sides[1]))
    if shared and not report.independence.reason:
        reason = (
            f"{len(shared):,} of the recorded seeds drew texts on both sides (such as "
            f"{min(shared)}): draw the reference with other seeds"
        )
        report = replace(
            report, verdict=Verdict.NOT_INDEPENDENT,
            independence=replace(report.independence, reason=reason),
        )  # fmt: skip
    for side, wanted in zip(texts.sides, texts.wanted, strict=True):
        if len(side) < wanted:
            report = report.cut_short(wanted)
            break
    return AuditReport(
        texts.name, "two_sample", (report,), criteria.alpha, criteria.margin, criteria.seed,
        seeds=_seeds([record for side in texts.sides for record in side]),
        settings={"reference texts": len(samples[1]), "length": length},
        notes=texts.notes, interrupted=texts.interrupted, samples=tuple(samples),
    )  # fmt: skip


def _refuse_long(length: int, what: str) -> None:
    if length > LONGEST:
        raise ValueError(
            f"the longest text has {length:,} tokens, and {what} looks at {LONGEST:,} a text at "
            f"most: give a length up to that"
        )


def _unfinished(texts: Collected, length: int | None) -> list[str]:
    """Return a note if texts are shorter than asked for although nothing ended them."""
    short = total = 0
    for target, some in texts.groups:
        if isinstance(some, Sample):
            continue
        total += len(some)
        short += sum(
            len(record.token_ids) < (length or target.length)
            and record.token_ids[-1] not in target.claimed.end_ids
            for record in some
        )
    if not short:
        return []
    than = "than the longest" if length is None else f"than the {length:,} tokens asked for"
    return [
        f"{short:,} of {total:,} texts are shorter {than} and do not end in an end token: what "
        f"would have followed was not tested, and if what was drawn decided where they were cut, "
        f"the tests do not hold."
    ]


def _seeds(records: Sequence[Recorded]) -> tuple[int, ...]:
    """Return the seeds in the order they were first used."""
    return tuple(dict.fromkeys(record.seed for record in records if record.seed is not None))
