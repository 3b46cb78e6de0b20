"""The reports of an audit as HTML, in a notebook and on a page of their own.

No script, no outside request, legible in light and dark; every text in them is escaped.
"""

from __future__ import annotations

from markupsafe import Markup

from specviz.figures.templating import PAGE_STYLE, POLICY, part, render
from specviz.lossless.report.audit_report import AuditReport
from specviz.lossless.report.battery_report import BatteryReport
from specviz.lossless.report.text import HEADS, row
from specviz.lossless.statistics.findings import Answer

PLOTTED = 4
"""Number of prompts whose plots are on a page."""

# Colours come from the notebook's own theme where it has one; a sign says the same as each colour.
STYLE = Markup("""
.sv-battery{color:var(--jp-ui-font-color1,var(--vscode-foreground,inherit));max-width:60em;
 font-family:var(--jp-ui-font-family,var(--vscode-font-family,system-ui,sans-serif));line-height:1.45}
.sv-battery table{border-collapse:collapse;font-variant-numeric:tabular-nums;margin:.5em 0}
.sv-battery th,.sv-battery td{padding:.15em .7em;text-align:right;border-bottom:1px solid
 color-mix(in srgb,currentColor 20%,transparent);background:none}
.sv-battery th:first-child,.sv-battery td:first-child,.sv-battery th:last-child,
.sv-battery td:last-child{text-align:left}
.sv-battery .sv-verdict{display:inline-block;padding:.1em .6em;border:2px solid currentColor;
 border-radius:.3em;font-weight:600}
.sv-battery .sv-bad{border-style:double;border-width:4px}
.sv-battery .sv-open{border-style:dashed}
.sv-battery tr.sv-differs td{font-weight:600}
.sv-battery .sv-scroll{overflow-x:auto}
""")

SIGNS = {Answer.AS_EXPECTED: "✓", Answer.DIFFERS: "✗", Answer.NOT_TESTABLE: "–"}
KINDS = {0: ("✓", "sv-good"), 1: ("✗", "sv-bad"), 2: ("–", "sv-open")}
"""Sign and class of a verdict, by its exit code."""


def battery_html(report: BatteryReport) -> Markup:
    """Return verdict, paragraph and table of one prompt's tests as one element."""
    sign, kind = KINDS[report.exit_code]
    rows = []
    for finding in report.findings:
        cells = [*row(finding)]
        cells.insert(5, SIGNS[finding.answer])
        rows.append((finding, finding.answer is Answer.DIFFERS, cells[1:]))
    heads = (*HEADS[:5], "", HEADS[5])
    return Markup(part("report.html").battery(report, STYLE, sign, kind, heads, rows))


def audit_html(report: AuditReport) -> Markup:
    """Return verdict, sentences and tables of an audit, without the plots."""
    said = [f"The texts were drawn by {report.engine}."] if report.engine else []
    said += [check.text for check in report.passes]
    batteries = [battery_html(one) for one in report.reports]
    return Markup(part("report.html").audit(report, [*said, *report.notes], batteries))


def audit_page(report: AuditReport, settings: str) -> str:
    """Return an audit as a page of its own, with plots for light and for dark."""
    from specviz.figures.plots.audit import picture

    plots = [
        picture(report, prompt=index, themes=True)
        for index in range(min(len(report.reports), PLOTTED))
    ]
    return render(
        "base.html",
        title=f"{report.verdict.value}: audit of {report.subject}",
        policy=POLICY,
        style=PAGE_STYLE,
        main=part("report.html").page(report, audit_html(report), plots, settings),
    )
