"""From what the tests found to a verdict, and to what they could not have seen."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, sqrt

from scipy import stats

from specviz.core.contract import FloatArray
from specviz.lossless.report.battery_report import (
    BatteryReport,
    Criteria,
    Detectable,
    Evidence,
    Impossible,
    Verdict,
)
from specviz.lossless.statistics.findings import Answer, Finding, judged
from specviz.lossless.statistics.power import detectable_tv, samples_for_tv, texts_for_effect

POWER = 0.8


def support(impossible: Impossible | None, n: int) -> Finding:
    """Return the support check: one token of probability 0 is enough, there is no p-value."""
    count = 0 if impossible is None else impossible.count
    answer = Answer.DIFFERS if impossible else Answer.AS_EXPECTED
    detail = "" if impossible is None else f"first: {impossible.shown}"
    return Finding("support", "support", float(count), None, n, None, detail, None, answer)


@dataclass(frozen=True)
class MainTable:
    """The table whose smallest detectable difference a report states.

    Parameters
    ----------
    name : str
        Which table.
    n : float
        What is counted in it: texts, tokens, or n₁ n₂ / (n₁ + n₂) for two samples.
    distribution : FloatArray or None
        Its distribution before pooling; None for the transform u, whose twenty bins are alike.
    texts_per_count : float
        How many texts (of each sample) one more in ``n`` takes.
    deterministic : bool
        Whether the target leaves no choice.
    """

    name: str
    n: float
    distribution: FloatArray | None = None
    texts_per_count: float = 1.0
    deterministic: bool = False


def conclude(criteria: Criteria, evidence: Evidence, main: MainTable) -> BatteryReport:
    """Return the report: Holm's correction, the verdict, what would have been caught."""
    findings = tuple(judged(evidence.findings, criteria.alpha))
    evidence = replace(evidence, findings=findings)
    # every test at its share of alpha, as Holm's first step is
    share = criteria.alpha / max(1, len([f for f in findings if f.kind != "support"]))
    detectable = _detectable(criteria, evidence, main, share)
    verdict = _verdict(criteria, evidence, detectable)
    needed = None
    if verdict is Verdict.INCONCLUSIVE:
        needed = _needed(criteria, main, share)
    return BatteryReport(
        **vars(criteria), **vars(evidence), verdict=verdict, detectable=detectable, needed=needed
    )


def _verdict(criteria: Criteria, evidence: Evidence, detectable: Detectable | None) -> Verdict:
    """Return what the evidence says; the worst reason comes first."""
    if evidence.beyond_margin:
        return Verdict.IMPOSSIBLE_TOKEN
    if evidence.independence.reason:
        return Verdict.NOT_INDEPENDENT
    if criteria.margin > 0:
        seen = [w for w in (evidence.witness, evidence.token_witness) if w is not None]
        differs = any(witness.excess(criteria.margin) > 0 for witness in seen)
    else:
        differs = any(finding.answer is Answer.DIFFERS for finding in evidence.findings)
    if differs:
        return Verdict.DISCREPANCY
    if detectable is None or detectable.tv > criteria.effect:
        return Verdict.INCONCLUSIVE
    return Verdict.NO_DISCREPANCY_FOUND


def _detectable(
    criteria: Criteria, evidence: Evidence, main: MainTable, share: float
) -> Detectable | None:
    """Return the smallest difference that the main table reveals, or the best table that can."""
    if main.deterministic:
        missed = float((1 - POWER) ** (1 / evidence.n))
        return Detectable(1 - missed, "support", 0, evidence.n, criteria.alpha, POWER)
    if criteria.margin > 0:
        tv = min(1.0, _sigmas(criteria) * sqrt(0.25 / max(0.5, main.n / 2)))
        return Detectable(tv, "one event", 1, main.n, criteria.alpha / 2, POWER)
    usable = [
        f
        for f in evidence.findings
        if f.kind == "chi-square" and f.dof and f.name != "neighbouring u"
    ]
    if not usable:
        return None
    best = next((f for f in usable if f.name == main.name), usable[0])
    n = float(best.n) if best.name == "transform u" else main.n
    dof = best.dof or 0
    return Detectable(detectable_tv(n, dof, share, POWER), best.name, dof, n, share, POWER)


def _sigmas(criteria: Criteria) -> float:
    """Return how many standard deviations an event must be off to be caught beyond the margin."""
    return float(stats.norm.isf(criteria.alpha / 2) + stats.norm.ppf(POWER))


def _needed(criteria: Criteria, main: MainTable, share: float) -> int | None:
    """Return how many texts would show the effect asked for."""
    if criteria.margin > 0:
        return ceil(0.5 * (_sigmas(criteria) / criteria.effect) ** 2 * main.texts_per_count)
    if main.distribution is None:
        return ceil(samples_for_tv(criteria.effect, 19, share, POWER) * main.texts_per_count)
    return texts_for_effect(
        main.distribution, criteria.effect, share, POWER, round(main.texts_per_count)
    )
