"""A report in words: one paragraph that never claims more than was tested, and a plain table."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING

from specviz.core.formatting import format_p_value, text_table
from specviz.lossless.statistics.findings import Answer, Finding

if TYPE_CHECKING:
    from specviz.lossless.report.battery_report import BatteryReport, Detectable


def paragraph(report: BatteryReport) -> str:
    """Return the verdict in one paragraph: what was found, and what would have been caught."""
    says = {
        "IMPOSSIBLE_TOKEN": _impossible,
        "DISCREPANCY": _discrepancy,
        "NO_DISCREPANCY_FOUND": _nothing_found,
        "INCONCLUSIVE": _inconclusive,
        "NOT_INDEPENDENT": _not_independent,
    }[report.verdict.value]
    return says(report)


def _texts(report: BatteryReport) -> str:
    of = f" of {_count(report.length, 'token')}" if report.length else ""
    return f"{_count(report.n, 'text')}{of}"


def _count(n: int, noun: str) -> str:
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def _impossible(report: BatteryReport) -> str:
    found = report.impossible
    assert found is not None
    out = (
        f"{_count(found.count, 'token')} that {report.against} gives probability 0 "
        f"{'was' if found.count == 1 else 'were'} emitted. The first: {found.shown}, at position "
        f"{found.position} of text {found.text} (both counted from 0). One such token settles it: "
        f"the sampler's distribution is not the target's."
    )
    if report.margin:
        out += f" They are more than the declared margin of {report.margin:g} per token allows."
    return out


def _discrepancy(report: BatteryReport) -> str:
    wrong = [finding for finding in report.findings if finding.answer is Answer.DIFFERS]
    out = f"{_texts(report)} depart from {report.against}: "
    if report.margin:
        out += f"by more than the declared margin of {report.margin:g} per token. "
    else:
        least = min(wrong, key=lambda finding: finding.adjusted or 0.0)
        out += (
            f"{len(wrong)} of {_tested(report)} tests differ at level {report.alpha:g} after "
            f"Holm's correction, first of all {least.name} (adjusted p = {_p(least.adjusted)}; "
            f"{least.detail}). "
        )
    out += _where(report)
    return out + (
        f" A right sampler is called wrong by this battery with probability at most "
        f"{report.alpha:g}."
    )


def _where(report: BatteryReport) -> str:
    """Return the witness event, with its bound, as a sentence."""
    seen = [w for w in (report.witness, report.token_witness) if w is not None and w.low > 0]
    if not seen:
        return "No single event was confirmed on the second half, so its size is not bounded."
    best = max(seen, key=lambda w: w.excess(report.margin))
    of = (
        "the distribution of a token, on average,"
        if best.per_token
        else f"the distribution of {best.span} tokens"
    )
    return (
        f"The event that shows most: {best.event}; expected {best.expected:.4g}, seen "
        f"{best.observed:.4g}. So {of} is off by a total variation of at least {best.low:.3g} "
        f"({best.confidence:.1%} confidence; chosen on one half, measured on the other)."
    )


def _nothing_found(report: BatteryReport) -> str:
    adjusted = [f.adjusted for f in report.findings if f.adjusted is not None]
    out = f"{_texts(report)} show no departure from {report.against}"
    if adjusted and not report.margin:
        out += (
            f": the smallest p-value of {_tested(report)} tests is {_p(min(adjusted))} after "
            f"Holm's correction, above {report.alpha:g}"
        )
    elif report.margin:
        out += f" beyond the declared margin of {report.margin:g} total variation per token"
    out += f". This does not show that there is none. {_would(report)}"
    if report.distance is not None:
        d = report.distance
        out += (
            f" The total variation seen over {d.cells:,} cells is {d.plug_in:.3g}, where a perfect "
            f"sampler shows {d.noise_floor:.3g} by chance alone; the true one on these cells lies "
            f"between {d.low:.3g} and {d.high:.3g} ({d.confidence:.0%} confidence)."
        )
    if report.covered < 0.9995:
        out += (
            f" {report.covered:.1%} of the tokens were tested in their own context; the others "
            f"follow rare beginnings, which are one cell together."
        )
    return out


def _would(report: BatteryReport) -> str:
    """Return what would have been caught, as a sentence."""
    found = report.detectable
    if found is None:
        return "Nothing was testable."
    if report.margin:
        return (
            f"An event named beforehand that exceeds what the margin allows by {found.tv:.3g} "
            f"would have been caught with {found.power:.0%} probability or more."
        )
    return f"{_caught(found)} A smaller difference may exist."


def _caught(found: Detectable) -> str:
    if found.table == "support":
        return (
            f"The target leaves no choice, so that any other text is caught at once: a sampler "
            f"that departs in {found.tv:.3g} of all texts would have been with {found.power:.0%} "
            f"probability."
        )
    what = (
        "distribution of a token, on average and read through the transform u,"
        if found.table == "transform u"
        else f"distribution on the pooled table “{found.table}”"
    )
    return (
        f"A sampler whose {what} is at a total variation of {found.tv:.3g} or more would have been "
        f"caught with at least {found.power:.0%} probability ({found.dof:,} degrees of freedom, "
        f"level {found.alpha:.2g} within Holm's correction)."
    )


def _inconclusive(report: BatteryReport) -> str:
    if report.wanted is not None:
        drawn = "" if report.n >= report.wanted else f" ({report.n:,} of {report.wanted:,})"
        return (
            f"The run was cut short before all texts that were asked for came{drawn}. Those that "
            f"came show no departure from {report.against}, but the audit was not finished. "
            f"{_would(report)}"
        )
    out = f"{_texts(report)} {'is' if report.n == 1 else 'are'} too few to tell: "
    if report.detectable is None:
        out += "no test had enough in its cells. "
    else:
        out += (
            f"only a total variation of {report.detectable.tv:.3g} or more would have been caught "
            f"with {report.detectable.power:.0%} probability, and {report.effect:g} was asked for. "
        )
    if report.needed is None:
        return out + "Draw more."
    of_each = " of each sample" if report.against == "the reference sample" else ""
    return out + f"About {report.needed:,}{of_each} would do."


def _not_independent(report: BatteryReport) -> str:
    return (
        f"The texts were not drawn independently, so no p-value means anything: "
        f"{report.independence.reason}. Draw each text with a seed of its own, or if seeds are not "
        f"the reason, look at the sampler: it repeats itself."
    )


def _tested(report: BatteryReport) -> int:
    return sum(finding.p is not None for finding in report.findings)


def _p(p: float | None) -> str:
    """Return a p-value, or a dash."""
    return "–" if p is None else format_p_value(p)


def row(finding: Finding) -> tuple[str, str, str, str, str, str]:
    """Return name, statistic, degrees of freedom, p, adjusted p and answer, as shown."""
    statistic = "–" if finding.statistic is None else f"{finding.statistic:,.4g}"
    dof = "–" if finding.dof is None else f"{finding.dof:,}"
    return (
        finding.name, statistic, dof, _p(finding.p), _p(finding.adjusted), finding.answer.value
    )  # fmt: skip


HEADS = ("test", "statistic", "dof", "p", "Holm p", "answer")


def plain(report: BatteryReport) -> str:
    """Return verdict, paragraph and table as plain text."""
    table = text_table([HEADS, *(row(finding) for finding in report.findings)], left=(0, 5))
    return "\n".join([report.verdict.value, *wrap(report.text, 88), "", table])
