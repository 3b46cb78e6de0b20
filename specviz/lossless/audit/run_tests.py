"""From gathered texts to the report of an audit: which battery, on what, and how many texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from tqdm.auto import tqdm

from specviz.core.contract import IntArray, Sampling
from specviz.lossless.audit.recorded_texts import Recorded
from specviz.lossless.audit.teacher import Against, ModelDistribution, Teacher
from specviz.lossless.audit.two_sample import two_sample
from specviz.lossless.exact.enumerate import (
    enumerate_distribution,
    target_distribution,
    total_variation,
)
from specviz.lossless.report.audit_report import AuditReport
from specviz.lossless.report.battery_report import BatteryReport, Criteria, Verdict
from specviz.lossless.report.verdict import POWER
from specviz.lossless.statistics.conditional_distribution import ConditionalDistribution
from specviz.lossless.statistics.long_texts import battery_of_scores
from specviz.lossless.statistics.one_sample import battery
from specviz.lossless.statistics.power import samples_for_tv, texts_for_effect
from specviz.lossless.statistics.prefix_tree import PrefixTree, grow, walk
from specviz.lossless.statistics.sample import Sample, without_padding
from specviz.lossless.statistics.scores import Scores
from specviz.lossless.statistics.tables import all_tables

DEFAULT_EFFECT = 0.05
AT_MOST = 20_000
AT_LEAST = 1_000
LONG_TEXTS = 200
DOF_OF_U = 19

LONGEST = 4_096
"""Tests that have a table per position take texts up to this length."""

LONGEST_SCORED = 2**20
"""Texts up to this length are scored token by token."""


class PromptDistribution:
    """The target's distribution after one prompt, and its tree, grown when first needed."""

    def __init__(
        self, held: Against, prompt: IntArray, length: int, sampling: Sampling, draft: Any,
        progress: bool,
    ) -> None:  # fmt: skip
        self.held, self.prompt, self.length, self.sampling = held, prompt, length, sampling
        self.draft, self._progress = draft, progress

    @cached_property
    def tree(self) -> PrefixTree:
        """The contexts of the first ``length`` tokens."""
        distribution = ModelDistribution(
            self.held.model, self.prompt, self.sampling, self.held.vocab_size
        )
        return grow(
            distribution, self.held.vocab_size, self.length,
            end_ids=self.held.end_ids, progress=self._progress,
        )  # fmt: skip

    @cached_property
    def draft_distribution(self) -> ConditionalDistribution | None:
        """The draft's distribution, where it is known."""
        if self.draft is None:
            return None
        distribution = ModelDistribution(
            self.draft, self.prompt, self.sampling, self.held.vocab_size, "draft"
        )
        return ConditionalDistribution(distribution, self.held.vocab_size, "draft")


Group = tuple[PromptDistribution, Sequence[Recorded] | Sample]


def texts_needed(distribution: PromptDistribution, tests: Criteria, effect: float | None) -> int:
    """Return how many texts show ``effect`` on the joint table."""
    tree = distribution.tree
    nothing = walk(tree, np.zeros((0, distribution.length), dtype=np.int64))
    tables = all_tables(tree, [nothing], n=AT_LEAST)
    share = tests.alpha / (len(tables) + 4)
    wanted = DEFAULT_EFFECT if effect is None else effect
    n = texts_for_effect(tables[-1].distribution, wanted, share, POWER)
    if n is None:  # one text has nearly all the mass: another one is seen at once
        return AT_LEAST
    return max(AT_LEAST, n if effect is not None else min(n, AT_MOST))


def long_texts_needed(length: int, prompts: int, tests: Criteria, effect: float | None) -> int:
    """Return how many texts per prompt give as many tokens as the transform u needs."""
    if effect is None:
        return max(1, LONG_TEXTS // prompts)
    tokens = samples_for_tv(effect, DOF_OF_U, tests.alpha / 5, POWER)
    return max(1, -(-tokens // (length * prompts)))


def two_sample_needed(tests: Criteria, effect: float | None, default: int) -> int:
    """Return how many texts each side needs, for a table of 64 cells."""
    if effect is None:
        return default
    return max(AT_LEAST, 2 * samples_for_tv(effect, 63, tests.alpha / 10, POWER))


def judged_against(
    subject: str, method: str, groups: Sequence[Group], asked: Any, settings: dict[str, Any],
    notes: Sequence[str], wanted: Sequence[int] = (), interrupted: bool = False,
) -> AuditReport:  # fmt: skip
    """Return the report on texts held against the target's distributions.

    ``wanted`` is how many texts of each group were asked for, where they were drawn for the audit.
    """
    reports: list[BatteryReport] = []
    samples: list[Sample] = []
    tests: Criteria = asked.tests
    if method == "scores":
        reports.append(_scored(groups, tests, asked.progress))
        if sum(len(texts) for _, texts in groups) < sum(wanted):
            reports[0] = reports[0].cut_short(sum(wanted))
    else:
        _refuse_long(max(distribution.length for distribution, _ in groups), "method='battery'")
        share = replace(tests, alpha=tests.alpha / len(groups))
        for distribution, texts in groups:
            sample = texts if isinstance(texts, Sample) else _sample(distribution, texts)
            samples.append(sample)
            words = distribution.held.words(np.unique(sample.tokens))
            found = battery(
                sample, distribution.tree, draft=distribution.draft_distribution,
                alpha=share.alpha, margin=share.margin,
                effect=share.effect, seed=share.seed, words=words, tables=True,
            )  # fmt: skip
            cut = len(reports) < len(wanted) and len(sample) < wanted[len(reports)]
            reports.append(found.cut_short(wanted[len(reports)]) if cut else found)
    seeds = _seeds([r for _, some in groups if not isinstance(some, Sample) for r in some])
    return AuditReport(
        subject, method, tuple(reports), tests.alpha, tests.margin, tests.seed,
        seeds=seeds, settings=settings, notes=(*notes, *_unfinished(groups, asked.length)),
        interrupted=interrupted, samples=tuple(samples),
    )  # fmt: skip


def _refuse_long(length: int, what: str) -> None:
    if length > LONGEST:
        raise ValueError(
            f"the longest text has {length:,} tokens, and {what} looks at {LONGEST:,} a text at "
            f"most: give a length up to that"
        )


def _unfinished(groups: Sequence[Group], length: int | None) -> list[str]:
    """Return a note if texts are shorter than asked for although nothing ended them."""
    short = total = 0
    for distribution, texts in groups:
        if isinstance(texts, Sample):
            continue
        total += len(texts)
        for text in texts:
            ids = text.token_ids
            short += (
                len(ids) < (length or distribution.length)
                and ids[-1] not in distribution.held.end_ids
            )
    if not short:
        return []
    than = "than the longest" if length is None else f"than the {length:,} tokens asked for"
    return [
        f"{short:,} of {total:,} texts are shorter {than} and do not end in an end token: what "
        f"would have followed was not tested, and if what was drawn decided where they were cut, "
        f"the tests do not hold."
    ]


def _sample(distribution: PromptDistribution, records: Sequence[Recorded]) -> Sample:
    return Sample.of(
        [record.token_ids for record in records], distribution.held.vocab_size,
        end_ids=distribution.held.end_ids, length=distribution.length,
    )  # fmt: skip


def _seeds(records: Sequence[Recorded]) -> tuple[int, ...]:
    """Return the seeds in the order they were first used."""
    return tuple(dict.fromkeys(record.seed for record in records if record.seed is not None))


def _scored(groups: Sequence[Group], tests: Criteria, progress: bool) -> BatteryReport:
    first = groups[0][0]
    teacher = Teacher(first.held, first.draft)
    parts: list[Scores] = []
    total = sum(len(records) for _, records in groups)
    with tqdm(
        total=total, desc="scoring", unit="text", delay=2, leave=False, disable=not progress
    ) as bar:
        for distribution, records in groups:
            assert not isinstance(records, Sample)
            for record in records:
                ids = without_padding(
                    record.token_ids[: distribution.length], distribution.held.end_ids
                )
                if len(ids) > LONGEST_SCORED:
                    raise ValueError(
                        f"a text has {len(ids):,} tokens, and at most {LONGEST_SCORED:,} are "
                        f"scored: give a length up to that"
                    )
                tokens = np.array(ids, dtype=np.int64)
                scores = teacher.score(distribution.prompt, tokens, distribution.sampling)
                ended = np.isin(tokens, sorted(distribution.held.end_ids))
                if ended[:-1].any():  # goes on after its end, with more than padding
                    after = np.arange(len(tokens)) > np.argmax(ended)
                    scores = replace(scores, p=np.where(after, 0.0, scores.p))
                parts.append(scores)
                bar.update()
    return battery_of_scores(
        Scores.join(parts), alpha=tests.alpha, margin=tests.margin,
        effect=tests.effect, seed=tests.seed, tables=True,
    )  # fmt: skip


def judged_two(
    subject: str, sides: list[list[Recorded]], asked: Any, notes: list[str], length: int | None,
    vocab_size: int | None, end_ids: Any, wanted: Sequence[int | None] = (None, None),
    interrupted: bool = False,
) -> AuditReport:  # fmt: skip
    """Return the report on texts held against a reference's.

    ``wanted`` is how many texts of each side were asked for, where they were drawn for the audit.
    """
    prompts = {record.prompt_ids for side in sides for record in side}
    if len(prompts) != 1:
        raise ValueError(f"a two-sample test takes texts of one prompt, got {len(prompts)} prompts")
    ends = frozenset(int(i) for i in end_ids or ())
    texts = [[without_padding(record.token_ids, ends) for record in side] for side in sides]
    if length is None:
        length = max(len(text) for side in texts for text in side)
    _refuse_long(length, "a two-sample test")
    if vocab_size is None:
        vocab_size = max(2, 1 + max(max(text) for side in texts for text in side))
    samples = [Sample.of(side, vocab_size, end_ids=ends, length=length) for side in texts]
    tests: Criteria = asked.tests
    report = two_sample(
        samples[0], samples[1], alpha=tests.alpha, margin=tests.margin, effect=tests.effect,
        tables=True,
    )  # fmt: skip
    shared = set(_seeds(sides[0])) & set(_seeds(sides[1]))
    if shared and not report.independence.reason:
        reason = (
            f"{len(shared):,} of the recorded seeds drew texts on both sides (such as "
            f"{min(shared)}): draw the reference with other seeds"
        )
        report = replace(
            report, verdict=Verdict.NOT_INDEPENDENT,
            independence=replace(report.independence, reason=reason),
        )  # fmt: skip
    for side, asked_for in zip(sides, wanted, strict=True):
        if asked_for is not None and len(side) < asked_for:
            report = report.cut_short(asked_for)
            break
    return AuditReport(
        subject, "two_sample", (report,), tests.alpha, tests.margin, tests.seed,
        seeds=_seeds([record for side in sides for record in side]),
        settings={"reference texts": len(samples[1]), "length": length},
        notes=tuple(notes), interrupted=interrupted, samples=tuple(samples),
    )  # fmt: skip


def enumerated(
    pair: Any, prompts: list[IntArray], drafter: Any, rule: Any, length: int, sampling: Sampling,
    fault: Any, asked: Any,
) -> AuditReport:  # fmt: skip
    """Return the report on the computed distribution of our loop on tables."""
    from specviz.core.tabular import TabularModel

    if not isinstance(pair.target, TabularModel):
        raise ValueError("method='enumeration' needs tables (sv.tabular): every way is run once")
    if len(prompts) != 1:
        raise ValueError("method='enumeration' takes one prompt")
    prompt = prompts[0]
    if fault is None:
        distribution = enumerate_distribution(
            pair,
            drafter,
            verify=rule,
            prompt=prompt,
            length=length,
            sampling=sampling,
            progress=asked.progress,
        )
    else:
        from specviz.lossless.faults import faulty_distribution

        distribution = faulty_distribution(
            pair, prompt, fault, gamma=drafter.depth, length=length, sampling=sampling
        )
    exact = target_distribution(
        pair, prompt=prompt, length=length, sampling=sampling, progress=asked.progress
    )
    return AuditReport(
        f"{drafter.name} with {rule.name}", "enumeration", (), asked.tests.alpha,
        asked.tests.margin, asked.tests.seed,
        exact_tv=total_variation(distribution, exact), length=length,
    )  # fmt: skip
