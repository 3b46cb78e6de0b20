"""A run as one web page: text, legend, numbers and the evidence of every round.

No script, no outside request, nothing but this one file; the browser is told to allow nothing
else. The stage (:func:`stage_html`) is one section, so that a player can stand in its place.
"""

from __future__ import annotations

import json
import re
from html import escape
from importlib.resources import files
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from specviz._version import __version__
from specviz.figures.atomic_writing import PAGES, checked_target, write_by
from specviz.figures.coloured_text import (
    legend_html,
    line_html,
    prompt_html,
    style,
    summary_html,
)
from specviz.figures.comparison import Comparison
from specviz.figures.escaping import NEWLINE, visible
from specviz.figures.evidence import evidence_html
from specviz.figures.marks import Gap, Line, lines
from specviz.figures.summary import (
    WITHOUT_DRAFT_MODEL,
    drafter_label,
    drafter_name,
    judging,
)

if TYPE_CHECKING:
    from specviz.core.trace.trace import Trace

SHOWN = 4_000
"""How many tokens a page shows at most, with their evidence: about 5 MB."""

SHOWN_WITHOUT_SCRIPT = 900
"""How many tokens a page with a player shows to readers without scripts."""

LONGEST_TEXT = 40_000
MOST_SETTINGS = 100
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def to_html(
    trace: Trace,
    path: str | PathLike[str],
    *,
    title: str | None = None,
    compare: Trace | Comparison | None = None,
) -> Path:
    """Write a run as one self-contained page.

    Parameters
    ----------
    trace : Trace
        The run.
    path : str or path
        The file, by custom ``….html``; it is replaced as a whole or left as it was.
    title : str, optional
        What the page is called; by default the beginning of the prompt.
    compare : Trace or Comparison, optional
        A run of the target alone (``gamma=0``): its measured time per token is set against that
        of ``trace``. Or times measured elsewhere.

    Returns
    -------
    Path
        Where the page is.

    Raises
    ------
    TypeError
        If ``trace`` or ``compare`` is something else.
    FileNotFoundError, IsADirectoryError
        If the folder of ``path`` does not exist, or ``path`` is a folder.
    ValueError
        If ``compare`` is no run of the target alone, or one of the two has no times.

    Examples
    --------
    >>> to_html(trace, "fox.html", compare=plain)  # doctest: +SKIP
    """
    where = checked(trace, path)
    write_whole(where, page(trace, title=title, compare=compare))
    return where


def page(
    trace: Trace, *, title: str | None = None, compare: Trace | Comparison | None = None
) -> str:
    """Return the page that :func:`to_html` writes."""
    heading = visible(title if title is not None else page_title(trace), limit=120)
    comparison = against(trace, compare)
    sheet = style() + files("specviz.figures").joinpath("page.css").read_text("utf-8")
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f'<meta name="generator" content="specviz {__version__}">\n'
        f"<title>{escape(heading)}</title>\n<style>\n{sheet}</style>\n</head>\n"
        f'<body>\n<main class="sv-trace sv-page">\n'
        f"<header><h1><bdi>{escape(heading)}</bdi></h1>{subtitle(trace)}</header>\n"
        f"{summary_html(trace)}\n{comparison.html() if comparison else ''}\n"
        f"{stage_html(trace)}\n{_text(trace)}\n{_settings(trace)}\n"
        "</main>\n</body>\n</html>\n"
    )


def stage_html(trace: Trace) -> str:
    """Return the rounds, each of which opens to show its evidence, and the legend."""
    how = judging(trace)
    shown, open_one = [], True
    for line in lines(trace, SHOWN):
        if isinstance(line, Gap):
            shown.append(
                f'<div class="sv-note" role="listitem">… {line.many} ({line.first}–{line.last}) '
                f"{'is' if line.count == 1 else 'are'} not on this page; the trace has them all."
                "</div>"
            )
            continue
        opened = open_one and any(chip.mark.name == "rejected" for chip in line.chips)
        open_one = open_one and not opened  # the first rejection is where there is most to see
        shown.append(_round(trace, line, how, opened))
    return (
        '<section id="stage" aria-labelledby="stage-title"><h2 id="stage-title">Round by round'
        f"</h2><p class=sv-hint>Open a round to see the evidence of every decision.</p>"
        f"{prompt_html(trace)}"
        f'<div role="list">{"".join(shown)}</div>{legend_html(trace)}</section>'
    )


def write_whole(where: Path, text: str) -> None:
    """Write a file whole or not at all, as UTF-8."""
    write_by(where, lambda half: half.write_text(text, encoding="utf-8", newline="\n"))


def checked(trace: Any, path: Any) -> Path:
    """Return where a page goes, or say in one sentence why it cannot go there."""
    from specviz.core.trace.trace import Trace

    if not isinstance(trace, Trace):
        raise TypeError(f"trace must be a Trace, got {type(trace).__name__}")
    return checked_target(path, PAGES)


def against(trace: Trace, compare: Any) -> Comparison | None:
    """Return what ``compare=`` stands for: times given, times two traces recorded, or nothing."""
    from specviz.core.trace.trace import Trace

    if compare is None or isinstance(compare, Comparison):
        return compare
    if not isinstance(compare, Trace):
        raise TypeError(f"compare must be a Trace or a Comparison, got {type(compare).__name__}")
    return Comparison.of(trace, compare)


def page_title(trace: Trace) -> str:
    """Return the beginning of the prompt, or a name if there is none."""
    words = trace.prompt_text.strip()
    return f"{words[:60]}{'…' if len(words) > 60 else ''}" if words else "Speculative decoding"


def subtitle(trace: Trace) -> str:
    """Return the models, and the settings that matter most, as far as they were recorded."""
    alone = drafter_name(trace) in WITHOUT_DRAFT_MODEL
    roles = ("target",) if alone else ("target", "draft")
    said = [f"{role} {name}" for role in roles if (name := _name(trace, role))]
    if alone:
        said.append(drafter_label(trace))
    sampling = trace.meta.get("sampling")
    if isinstance(sampling, dict) and "temperature" in sampling:
        said.append(f"temperature {sampling['temperature']}")
    if "seed" in trace.meta:
        said.append(f"seed {trace.meta['seed']}")
    words = " · ".join(said) or "a run of speculative decoding"
    return f"<p><bdi>{escape(visible(words, limit=300))}</bdi></p>"


def _name(trace: Trace, role: str) -> str:
    model = trace.meta.get(role)
    if not isinstance(model, dict):
        return ""
    name, parameters = str(model.get("name", "")), model.get("parameters")
    known = [name] if name != role else []
    return " ".join(
        [*known, *([f"({parameters:,} parameters)"] if isinstance(parameters, int) else [])]
    )


def _round(trace: Trace, line: Line, how: str, opened: bool) -> str:
    rounds = trace.rounds[line.first : line.last + 1]
    return (
        f'<div role="listitem"><details{" open" if opened else ""}>'
        f'<summary class="sv-round">{line_html(line, how)}</summary>'
        f"{evidence_html(rounds, line, how)}</details></div>"
    )


def _text(trace: Trace) -> str:
    """Return prompt and text as they read, with line breaks."""

    def readable(text: str) -> str:
        # a counted run (⏎×10,000) stays one sign
        return escape(re.sub(rf"{NEWLINE}(?!×)", f"{NEWLINE}\n", visible(text, LONGEST_TEXT)))

    emitted = readable(trace.text) if len(trace.tokens) else ""
    return (
        '<section><h2>The text</h2><p class="sv-text"><bdi class="sv-given">'
        f"{readable(trace.prompt_text)}</bdi><bdi>{emitted}</bdi></p></section>"
    )


def _settings(trace: Trace) -> str:
    """Return the run's settings, seeds, models and versions as recorded."""

    def shown(value: Any) -> str:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        return f"<bdi>{escape(visible(text, limit=500))}</bdi>"

    rows = "".join(
        f'<tr><th scope="row">{escape(visible(str(key)))}</th><td>{shown(value)}</td></tr>'
        for key, value in islice(trace.meta.items(), MOST_SETTINGS)
    )
    return (
        "<section><details><summary>Settings of the run</summary>"
        f'<div class="sv-scroll" role="region" tabindex="0" aria-label="Settings of the run">'
        f"<table><tbody>{rows}</tbody></table></div></details></section>"
    )
