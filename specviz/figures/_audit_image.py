"""An audit's plots as pictures in HTML: no script, nothing from outside, with words for them."""

from __future__ import annotations

import base64
import io
from html import escape
from typing import TYPE_CHECKING, Any

from specviz.figures._audit_data import AuditData, audit_data

if TYPE_CHECKING:
    from specviz.lossless.report.audit_report import AuditReport

DPI = 110


def png(report: AuditReport, *, prompt: int | None = None, dark: bool = False) -> bytes:
    """Return the plots as a PNG file; no figure stays open."""
    from matplotlib import pyplot

    from specviz.figures._audit import audit

    with pyplot.ioff():
        figure = audit(report, prompt=prompt, dark=dark)
    try:
        out = io.BytesIO()
        figure.savefig(out, format="png", dpi=DPI, facecolor=figure.get_facecolor())
    finally:
        pyplot.close(figure)
    return out.getvalue()


def picture(
    report: AuditReport, *, prompt: int | None = None, themes: bool = False,
    light: bytes | None = None,
) -> str:  # fmt: skip
    """Return the plots as an HTML element.

    Parameters
    ----------
    report : AuditReport
        From :func:`specviz.audit`.
    prompt : int, optional
        As in :func:`specviz.figures.audit`.
    themes : bool
        Whether the page may be dark: then a second picture is there for it.
    light : bytes, optional
        The picture for light pages, where it is drawn already.
    """
    light = png(report, prompt=prompt) if light is None else light
    words = escape(alternative(audit_data(report, prompt=prompt)))
    image = f'<img src="{_data(light)}" alt="{words}" style="max-width:100%;height:auto">'
    if not themes:
        return image
    dark = _data(png(report, prompt=prompt, dark=True))
    source = f'<source media="(prefers-color-scheme: dark)" srcset="{dark}">'
    return f"<picture>{source}{image}</picture>"


def alternative(data: AuditData) -> str:
    """Return what the plots show, in words."""
    said = [data.title]
    if data.table is not None:
        said.append(data.table.title)
        said.append(data.table.verdict)
        outside = int(data.table.outside.sum())
        said.append(f"{outside} of the cells drawn lie outside their interval")
    said.append(data.tests.title)
    if data.evidence is not None:
        at = data.evidence.crossed_at
        when = "never crosses" if at is None else f"crosses after {at:,} {data.evidence.unit}"
        said.append(f"The e-process {when}")
    return ". ".join(part.replace("\n", ", ") for part in said) + "."


def bundle(report: AuditReport, words: str) -> dict[str, Any]:
    """Return what a notebook shows: HTML words with the plots, a PNG twin, and plain text."""
    out: dict[str, Any] = {"text/plain": repr(report), "text/html": words}
    if report.reports:
        light = png(report)  # drawn once, for both
        out["text/html"] = f"{words}<div>{picture(report, light=light)}</div>"
        out["image/png"] = base64.b64encode(light).decode("ascii")
    return out


def _data(picture: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(picture).decode('ascii')}"
