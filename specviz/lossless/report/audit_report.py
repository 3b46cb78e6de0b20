"""What an audit says: one verdict over one battery per prompt, with all that it was asked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from textwrap import wrap
from typing import Any

from specviz.lossless.audit.pass_check import PassCheck
from specviz.lossless.audit.recorded_texts import plain_value
from specviz.lossless.report.battery_report import BatteryReport, Verdict
from specviz.lossless.statistics.sample import Sample

WORST_FIRST = (
    Verdict.IMPOSSIBLE_TOKEN,
    Verdict.DISCREPANCY,
    Verdict.NOT_INDEPENDENT,
    Verdict.INCONCLUSIVE,
    Verdict.NO_DISCREPANCY_FOUND,
)


@dataclass(frozen=True)
class AuditReport:
    """The outcome of :func:`specviz.audit`.

    Parameters
    ----------
    subject : str
        What was audited, in words.
    method : {"battery", "scores", "two_sample", "enumeration"}
        How: every test of many short texts, tests of every token of texts of any length, against
        texts drawn with speculation off, or by computing the distribution.
    reports : tuple of BatteryReport
        One for each prompt (one in all with "scores"; none with "enumeration").
    alpha : float
        Probability of calling a right sampler wrong, all reports together.
    margin : float
        Tolerated total variation per token.
    seed : int
        Seed of the audit.
    seeds : tuple of int
        Seeds of the calls that drew the texts, where known, in the order of the calls.
    settings : mapping
        Sampling settings, drafter, rule and what else the texts were drawn with.
    exact_tv : float or None
        With "enumeration": the total variation between the sampler's distribution and the target's.
    length : int or None
        With "enumeration": tokens per text.
    notes : tuple of str
        What else the reader should know, such as a run that was cut short.
    interrupted : bool
        Whether someone ended the audit before every text was drawn.
    engine : str
        What drew the texts, where our own loop was audited.
    passes : tuple of PassCheck
        The shipped verification pass compared with fresh passes, for our own loop; one per prompt.
    samples : tuple of Sample
        The texts, where each prompt's have one length; not part of :meth:`to_dict`.
    """

    subject: str
    method: str
    reports: tuple[BatteryReport, ...]
    alpha: float
    margin: float
    seed: int
    seeds: tuple[int, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    exact_tv: float | None = None
    length: int | None = None
    notes: tuple[str, ...] = ()
    interrupted: bool = False
    engine: str = ""
    passes: tuple[PassCheck, ...] = ()
    samples: tuple[Sample, ...] = field(default=(), repr=False, compare=False)

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of all reports, and of the verification pass."""
        if self.exact_tv is not None:
            tolerated = 1e-9 + self.margin * (self.length or 1)
            same = self.exact_tv <= tolerated
            return Verdict.NO_DISCREPANCY_FOUND if same else Verdict.DISCREPANCY
        found = {report.verdict for report in self.reports}
        if not all(check.tv <= max(check.tolerance, self.margin) for check in self.passes):
            found.add(Verdict.DISCREPANCY)
        return next(verdict for verdict in WORST_FIRST if verdict in found)

    @property
    def report(self) -> BatteryReport:
        """The report with the worst verdict.

        Raises
        ------
        ValueError
            With "enumeration" there is none: nothing was sampled.
        """
        for verdict in WORST_FIRST:
            for report in self.reports:
                if report.verdict is verdict:
                    return report
        raise ValueError("an audit by enumeration has no battery: see exact_tv")

    @property
    def exit_code(self) -> int:
        """0: no discrepancy found; 1: a discrepancy; 2: it could not be told."""
        return self.verdict.exit_code

    @property
    def text(self) -> str:
        """The verdict in one paragraph."""
        said = [self._enumerated()] if self.exact_tv is not None else [self.report.text]
        if len(self.reports) > 1:
            counts = ", ".join(
                f"{sum(r.verdict is v for r in self.reports)} {v.value}"
                for v in WORST_FIRST
                if any(r.verdict is v for r in self.reports)
            )
            said.insert(0, f"{len(self.reports)} prompts: {counts}. The worst:")
        if self.engine:
            said.append(f"The texts were drawn by {self.engine}.")
        for check in self.passes:
            said.insert(0 if not check.ok else len(said), check.text)
        return " ".join([*said, *self.notes])

    def _enumerated(self) -> str:
        return (
            f"The distribution of the first {self.length} tokens was computed, not sampled: its "
            f"total "
            f"variation from the target's is {self.exact_tv:.3g}, "
            f"{'rounding' if (self.exact_tv or 0) <= 1e-9 else 'not a matter of rounding'}. This "
            f"says nothing of longer texts, nor of other prompts and settings."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as plain JSON values."""
        return {
            "subject": self.subject,
            "method": self.method,
            "verdict": self.verdict.value,
            "exit_code": self.exit_code,
            "text": self.text,
            "alpha": self.alpha,
            "margin": self.margin,
            "seed": self.seed,
            "seeds": list(self.seeds),
            "settings": dict(self.settings),
            "exact_tv": self.exact_tv,
            "length": self.length,
            "notes": list(self.notes),
            "interrupted": self.interrupted,
            "engine": self.engine,
            "passes": [check.to_dict() for check in self.passes],
            "reports": [report.to_dict() for report in self.reports],
        }

    def to_json(self, indent: int | None = None) -> str:
        """Return the report as strict JSON (no NaN, no Infinity)."""
        return json.dumps(
            self.to_dict(), indent=indent, allow_nan=False, ensure_ascii=False, default=plain_value
        )

    def plot(
        self, *, prompt: int | None = None, table: str | None = None, backend: str = "matplotlib",
        theme: str = "light",
    ) -> Any:  # fmt: skip
        """Draw a table against what was expected, every test's p-value, and the evidence.

        The same as :func:`specviz.figures.audit`, which says what the arguments mean.

        Returns
        -------
        matplotlib Figure, or plotly Figure

        Raises
        ------
        ValueError
            With "enumeration": nothing was sampled; or if there is no such prompt or table.

        Examples
        --------
        >>> import specviz as sv
        >>> coin = sv.tabular.TabularModel([0.5, 0.5])
        >>> pair = sv.tabular.TabularPair(coin, sv.tabular.TabularModel([0.9, 0.1]))
        >>> len(sv.audit(pair, [0], gamma=2, n=500).plot(table="position 1").axes)
        3
        """
        from specviz.figures import audit

        chosen: Any = backend
        return audit(self, prompt=prompt, table=table, backend=chosen, theme=theme)

    def to_html(self) -> str:
        """Return the report as a page of its own, with plots: no script, no outside request."""
        from specviz.figures.report import audit_page

        return audit_page(self, self._asked())

    def _asked(self) -> str:
        rows = {"method": self.method, "alpha": self.alpha, "margin": self.margin}
        rows |= {"seed": self.seed, **self.settings}
        return json.dumps(rows, indent=2, ensure_ascii=False, default=plain_value)

    def __repr__(self) -> str:
        head = [f"{self.verdict.value}: audit of {self.subject}", *wrap(self.text, 88)]
        tables = []
        for report in self.reports[:5]:
            body = repr(report).split("\n\n", 1)
            tables.append(body[1] if len(body) > 1 else body[0])
        return "\n\n".join(["\n".join(head), *tables])

    def _repr_html_(self) -> str:
        html: str = self._repr_mimebundle_()["text/html"]
        return html

    def _repr_mimebundle_(self, **options: Any) -> dict[str, Any]:
        from specviz.figures.plots.audit import bundle
        from specviz.figures.report import audit_html

        return bundle(self, str(audit_html(self)))
