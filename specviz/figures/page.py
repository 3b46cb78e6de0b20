"""A run as one web page: text, legend, numbers and the evidence of every round.

No script, no outside request, nothing but this one file; the browser is told to allow nothing
else. What it looks like is in ``templates/page.html``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from importlib.resources import files
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from specviz.core.atomic_writing import PAGES, checked_target, write_whole
from specviz.figures.coloured_text import shares_of_time, style, summary_rows
from specviz.figures.comparison import Comparison
from specviz.figures.escaping import NEWLINE, visible
from specviz.figures.evidence import evidence_html
from specviz.figures.marks import Gap, RoundLine, lines, marks_of
from specviz.figures.summary import judging, subtitle
from specviz.figures.templating import NOTHING_ELSE, render

if TYPE_CHECKING:
    from specviz.core.trace.trace import Trace

SHOWN = 4_000
"""How many tokens a page shows at most, with their evidence: about 5 MB."""

SHOWN_WITHOUT_SCRIPT = 900
"""How many tokens a page with a player shows to readers without scripts."""

LONGEST_TEXT = 40_000
MOST_SETTINGS = 100


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
    comparison = against(trace, compare)
    sheet = style() + Markup(files("specviz.figures").joinpath("page.css").read_text("utf-8"))
    return render(
        "page.html",
        title=visible(title if title is not None else page_title(trace), limit=120),
        policy=NOTHING_ELSE,
        style=sheet,
        main_class="sv-trace sv-page",
        subtitle=subtitle(trace),
        rows=summary_rows(trace),
        times=shares_of_time(trace),
        comparison=comparison.html() if comparison else "",
        prompt=trace.prompt_text,
        rounds=_rounds(trace),
        how=judging(trace),
        legend=marks_of(trace),
        prompt_text=_readable(trace.prompt_text),
        text=_readable(trace.text) if len(trace.tokens) else "",
        settings=[(str(key), _setting(value)) for key, value in _first(trace.meta.items())],
    )


def _rounds(trace: Trace) -> Iterator[tuple[RoundLine | Gap, Markup | None, bool]]:
    """Yield each line with its evidence, and whether it is open: the first that has a rejection."""
    how, found = judging(trace), False
    for line in lines(trace, SHOWN):
        if isinstance(line, Gap):
            yield line, None, False
            continue
        opened = not found and any(chip.mark.name == "rejected" for chip in line.chips)
        found = found or opened
        yield line, evidence_html(trace.rounds[line.first : line.last + 1], line, how), opened


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


def _readable(text: str) -> str:
    """Return a text as it reads, with line breaks; a counted run (⏎×10,000) stays one sign."""
    return re.sub(rf"{NEWLINE}(?!×)", f"{NEWLINE}\n", visible(text, LONGEST_TEXT))


def _setting(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _first(items: Iterable[tuple[Any, Any]]) -> Iterator[tuple[Any, Any]]:
    return islice(items, MOST_SETTINGS)
