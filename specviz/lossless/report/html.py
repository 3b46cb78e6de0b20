"""A report in a notebook: no script, no outside request, legible in light and dark."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from specviz.lossless.report.text import HEADS, row
from specviz.lossless.statistics.findings import Answer

if TYPE_CHECKING:
    from specviz.lossless.report.battery_report import BatteryReport

# Colours come from the notebook's own theme where it has one; a sign says the same as each colour.
STYLE = """
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
"""

SIGNS = {Answer.AS_EXPECTED: "✓", Answer.DIFFERS: "✗", Answer.NOT_TESTABLE: "–"}


def report_html(report: BatteryReport) -> str:
    """Return verdict, paragraph and table as one element; every text in it is escaped."""
    kind = {0: "sv-good", 1: "sv-bad", 2: "sv-open"}[report.exit_code]
    sign = {0: "✓", 1: "✗", 2: "–"}[report.exit_code]
    heads = "".join(f'<th scope="col">{escape(head)}</th>' for head in (*HEADS[:5], "", HEADS[5]))
    rows = []
    for finding in report.findings:
        cells = [*row(finding)]
        cells.insert(5, SIGNS[finding.answer])
        name = f'<th scope="row" title="{escape(finding.detail)}">{escape(cells[0])}</th>'
        data = "".join(f"<td>{escape(cell)}</td>" for cell in cells[1:])
        marked = ' class="sv-differs"' if finding.answer is Answer.DIFFERS else ""
        rows.append(f"<tr{marked}>{name}{data}</tr>")
    details = "".join(
        f"<li>{escape(finding.name)}: <bdi>{escape(finding.detail)}</bdi></li>"
        for finding in report.findings
        if finding.detail
    )
    return (
        f'<div class="sv-battery"><style>{STYLE}</style>'
        f'<p><span class="sv-verdict {kind}">{sign} {escape(report.verdict.value)}</span></p>'
        f"<p><bdi>{escape(report.text)}</bdi></p>"
        f'<div class="sv-scroll"><table><thead><tr>{heads}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
        f"<details><summary>The cell that departs most in each test</summary><ul>{details}</ul>"
        f"</details></div>"
    )
