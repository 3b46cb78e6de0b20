"""From what the tests found to a verdict, and to what they could not have seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, sqrt

from scipy import stats

from specviz.core import checks
from specviz.core.contract import FloatArray
from specviz.lossless.report.battery_report import BatteryReport, Detectable, Impossible, Verdict
from specviz.lossless.statistics.distance import Distance
from specviz.lossless.statistics.findings import Answer, Finding, judged
from specviz.lossless.statistics.independence import Independence
from specviz.lossless.statistics.power import detectable_tv, samples_for_tv, texts_for_effect
from specviz.lossless.statistics.witness import Witness

POWER = 0.8


@dataclass(frozen=True)
class Settings:
    """What a battery is asked to show.

    Parameters
    ----------
    alpha : float
        Probability of calling a right sampler wrong, all tests together.
    margin : float
        Tolerated total variation **per token**, for engines that round (bfloat16 against float32
        is .007 on average): a text of k tokens may be off by k times as much. 0 tolerates nothing.
    effect : float
        Total variation that must be visible; a battery that could not see it is inconclusive.
    seed : int
        Seed of the randomised transform.

    Raises
    ------
    ValueError
        If one is out of range.
    """

    alpha: float = 0.01
    margin: float = 0.0
    effect: float = 0.2
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("alpha", "margin", "effect"):
            checks.number(name, getattr(self, name))
        if not 0 < self.alpha < 1:
            raise ValueError(f"alpha must lie between 0 and 1, got {self.alpha}")
        if not 0 <= self.margin < 1:
            raise ValueError(
                f"margin must be a total variation per token, at least 0 and below 1, "
                f"got {self.margin}"
            )
        if not 0 < self.effect <= 1:
            raise ValueError(f"effect must be a total variation above 0, got {self.effect}")


def support(impossible: Impossible | None, n: int) -> Finding:
    """Return the support check: one token of probability 0 is enough, there is no p-value."""
    count = 0 if impossible is None else impossible.count
    answer = Answer.DIFFERS if impossible else Answer.AS_EXPECTED
    detail = "" if impossible is None else f"first: {impossible.shown}"
    return Finding("support", "support", float(count), None, n, None, detail, None, answer)


@dataclass(frozen=True)
class Shown:
    """What one kind of battery has to show beside its tests; names as in :class:`BatteryReport`.

    ``main`` is the table whose minimum detectable effect is stated, ``main_n`` its count and
    ``main_distribution`` its distribution before pooling (None for the transform u, whose table is
    fixed); ``copies`` is how many texts (of each sample) one more in ``main_n`` takes.
    """

    against: str
    n: int
    tokens: int
    length: int | None
    vocab_size: int | None
    independence: Independence
    impossible: Impossible | None
    beyond_margin: bool
    witness: Witness | None
    token_witness: Witness | None
    distance: Distance | None
    deterministic: bool
    main: str
    main_n: float
    main_distribution: FloatArray | None
    copies: float = 1.0
    covered: float = 1.0


def concluded(settings: Settings, findings: Sequence[Finding], shown: Shown) -> BatteryReport:
    """Return the report: Holm's correction, the verdict, what would have been caught."""
    tests = judged(findings, settings.alpha)
    share = settings.alpha / max(1, len([f for f in tests if f.kind != "support"]))
    detectable = _detectable(settings, tests, shown, share)
    verdict = _verdict(settings, tests, shown, detectable)
    needed = None
    if verdict is Verdict.INCONCLUSIVE:
        needed = _needed(settings, shown, share)
    return BatteryReport(
        verdict=verdict, against=shown.against, n=shown.n, tokens=shown.tokens,
        length=shown.length, vocab_size=shown.vocab_size, alpha=settings.alpha,
        margin=settings.margin, effect=settings.effect, seed=settings.seed,
        findings=tuple(tests), independence=shown.independence, impossible=shown.impossible,
        witness=shown.witness, token_witness=shown.token_witness, distance=shown.distance,
        detectable=detectable, needed=needed, covered=shown.covered,
    )  # fmt: skip


def _verdict(
    settings: Settings, tests: Sequence[Finding], shown: Shown, detectable: Detectable | None
) -> Verdict:
    if shown.beyond_margin:
        return Verdict.IMPOSSIBLE_TOKEN
    if shown.independence.reason:
        return Verdict.NOT_INDEPENDENT
    if settings.margin > 0:
        seen = [w for w in (shown.witness, shown.token_witness) if w is not None]
        differs = any(witness.excess(settings.margin) > 0 for witness in seen)
    else:
        differs = any(finding.answer is Answer.DIFFERS for finding in tests)
    if differs:
        return Verdict.DISCREPANCY
    if detectable is None or detectable.tv > settings.effect:
        return Verdict.INCONCLUSIVE
    return Verdict.NO_DISCREPANCY_FOUND


def _detectable(
    settings: Settings, tests: Sequence[Finding], shown: Shown, share: float
) -> Detectable | None:
    """Return the smallest difference that the main table reveals, or the best table that can."""
    if shown.deterministic:
        missed = float((1 - POWER) ** (1 / shown.n))
        return Detectable(1 - missed, "support", 0, shown.n, settings.alpha, POWER)
    if settings.margin > 0:
        tv = min(1.0, _sigmas(settings) * sqrt(0.25 / max(0.5, shown.main_n / 2)))
        return Detectable(tv, "one event", 1, shown.main_n, settings.alpha / 2, POWER)
    usable = [f for f in tests if f.kind == "chi-square" and f.dof and f.name != "neighbouring u"]
    if not usable:
        return None
    best = next((f for f in usable if f.name == shown.main), usable[0])
    n = float(best.n) if best.name == "transform u" else shown.main_n
    dof = best.dof or 0
    return Detectable(detectable_tv(n, dof, share, POWER), best.name, dof, n, share, POWER)


def _sigmas(settings: Settings) -> float:
    """Return how many standard deviations an event must be off to be caught beyond the margin."""
    return float(stats.norm.isf(settings.alpha / 2) + stats.norm.ppf(POWER))


def _needed(settings: Settings, shown: Shown, share: float) -> int | None:
    """Return how many texts would show the effect asked for."""
    if settings.margin > 0:
        return ceil(0.5 * (_sigmas(settings) / settings.effect) ** 2 * shown.copies)
    if shown.main_distribution is None:
        return ceil(samples_for_tv(settings.effect, 19, share, POWER) * shown.copies)
    return texts_for_effect(
        shown.main_distribution, settings.effect, share, POWER, round(shown.copies)
    )
