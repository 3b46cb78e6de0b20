"""What an audit's plots show, without drawing them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from specviz.core.contract import FloatArray
from specviz.figures._against_expected_data import AgainstData, data_of
from specviz.lossless.report.audit_report import AuditReport
from specviz.lossless.report.battery_report import BatteryReport
from specviz.lossless.report.evidence_over_texts import Evidence
from specviz.lossless.statistics.findings import Answer, Finding

LEAST_P = 1e-12
"""Smaller p-values are drawn at the edge."""


@dataclass(frozen=True)
class PValues:
    """Every test that has a p-value, smallest first, and the line that Holm's correction draws.

    ``names``, ``p``, ``differs`` and ``line`` have one entry per test. The test of rank i differs
    if its p and all smaller ones lie below their ``line``, ``alpha / (tests - i)``. ``untestable``
    names the tests without a p-value, ``impossible`` counts tokens of probability 0.
    """

    names: list[str]
    p: FloatArray
    differs: NDArray[np.bool_]
    line: FloatArray
    alpha: float
    untestable: list[str]
    impossible: int
    decides: bool

    @property
    def title(self) -> str:
        """What the tests say together."""
        if not self.names:
            return f"no test had enough in its cells\n{self._token}"
        wrong = int(self.differs.sum())
        said = f"{wrong} of {len(self.names)} tests differ" if wrong else (
            f"none of {len(self.names)} tests differs"
        )  # fmt: skip
        out = f"{said} (level {self.alpha:g}, all together)\n{self._token}"
        return out if self.decides else f"{out}; with a margin declared they do not decide"

    @property
    def _token(self) -> str:
        if self.impossible:
            return f"✗ tokens of probability 0: {self.impossible:,}"
        return "✓ no token of probability 0"


@dataclass(frozen=True)
class AuditData:
    """The panels of an audit: a table (None if all have one cell), the tests, the e-process."""

    title: str
    exit_code: int
    table: AgainstData | None
    tests: PValues
    evidence: Evidence | None


def audit_data(
    report: AuditReport | BatteryReport, *, prompt: int | None = None, table: str | None = None
) -> AuditData:
    """Return what :func:`specviz.figures.audit` draws."""
    one = battery_of(report, prompt)
    subject = report.subject if isinstance(report, AuditReport) else f"against {one.against}"
    seen = {found.table: found for found in one.tables}
    if table is not None and table not in seen:
        known = ", ".join(map(repr, seen)) or "none was kept"
        raise ValueError(f"table must be one of {known}, got {table!r}")
    name = most_telling(one.findings, list(seen)) if table is None else table
    sign = {0: "✓", 1: "✗", 2: "–"}[one.exit_code]
    return AuditData(
        title=f"{sign} {one.verdict.value}: {subject}",
        exit_code=one.exit_code,
        table=None if name is None else data_of(seen[name]),
        tests=p_values_of(one),
        evidence=one.evidence,
    )


def battery_of(report: AuditReport | BatteryReport, prompt: int | None) -> BatteryReport:
    """Return the report of one prompt: by default the one that decided the verdict."""
    if isinstance(report, BatteryReport):
        return report
    if not isinstance(report, AuditReport):
        raise TypeError(f"report must be what sv.audit returns, got {type(report).__name__}")
    if not report.reports:
        raise ValueError(
            "report is of a distribution that was computed: nothing was sampled to be drawn"
        )
    if prompt is None:
        return report.report
    if not 0 <= prompt < len(report.reports):
        raise ValueError(f"prompt must lie in 0 … {len(report.reports) - 1}, got {prompt}")
    return report.reports[prompt]


def most_telling(findings: Sequence[Finding], tables: list[str]) -> str | None:
    """Return the table to show: the one that differs most, or whole texts where none does."""
    if not tables:
        return None
    wrong = [f for f in findings if f.answer is Answer.DIFFERS and f.name in tables]
    if wrong:
        return min(wrong, key=lambda f: (f.p or 0.0, -(f.statistic or 0.0) / (f.dof or 1))).name
    return "continuation" if "continuation" in tables else tables[0]


def p_values_of(one: BatteryReport) -> PValues:
    """Return the tests of a battery, smallest p-value first."""
    tested = sorted(
        (finding for finding in one.findings if finding.p is not None),
        key=lambda finding: finding.p or 0.0,
    )
    m = len(tested)
    return PValues(
        names=[finding.name for finding in tested],
        p=np.array([finding.p for finding in tested], dtype=np.float64),
        differs=np.array([finding.answer is Answer.DIFFERS for finding in tested], dtype=bool),
        line=one.alpha / (m - np.arange(m)),
        alpha=one.alpha,
        untestable=[f.name for f in one.findings if f.answer is Answer.NOT_TESTABLE],
        impossible=0 if one.impossible is None else one.impossible.count,
        decides=one.margin == 0,
    )
