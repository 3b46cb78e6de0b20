"""Several runs as one page: a race on one clock of their own measured times."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from specviz.figures.escaping import visible
from specviz.figures.summary import times_note
from specviz.player.options import checked_options
from specviz.player.page import compressed, document, embedded
from specviz.player.projection import label, pack, project
from specviz.player.without_script import race_without_script

if TYPE_CHECKING:
    from specviz.core.trace.trace import Trace

LONGEST_HEADING = 56
"""Letters of the names in a heading: those that fit; all of them stand in the lanes."""


def race_page(
    traces: Sequence[Trace],
    *,
    height: int | None = None,
    theme: str = "auto",
    title: str | None = None,
) -> str:
    """Return a page on which runs race; readers without scripts get a table of their times.

    Raises
    ------
    TypeError, ValueError
        If they are no traces, too few or too many, or one has no measured times.
    """
    from specviz.player.widget import checked_runs

    options = checked_options(height=height, theme=theme, title=title)
    runs = checked_runs(traces)
    named = " · ".join(dict.fromkeys(label(run) for run in runs))
    heading = visible(title if title is not None else named_race(runs), limit=120)
    values: dict[str, Any] = {"kind": "race", "options": options | {"standalone": True}}
    data = [compressed(pack(project(run))) for run in runs]
    said = f"Race of {len(runs)} runs on one clock of measured time: {named}"
    header = (
        f"<header><h1><bdi>{escape(heading)}</bdi></h1>"
        f"<p>One clock: each run's own measured times{escape(taken(runs))}.</p></header>\n"
    )
    if height is not None:  # shown inside another page
        header = ""
    return document(
        heading,
        theme,
        f"{header}{embedded(values, data, said)}\n"
        f"<noscript>{race_without_script(runs, theme)}</noscript>\n",
        bare=height is not None,
    )


def taken(runs: Sequence[Trace]) -> str:
    """Return how the times were taken, where the runs say so."""
    notes = dict.fromkeys(note for run in runs for note in times_note(run))
    return "".join(f", {note}" for note in notes)


def named_race(runs: Sequence[Trace]) -> str:
    """Return what a race is called: its runs' names, or how many there are and the first of them.

    Examples
    --------
    >>> from specviz.core.trace.trace import Trace
    >>> named_race([Trace({"rule": "match", "drafter": "eagle"}, [1])] * 2)
    'Race: eagle, match'
    """
    names = list(dict.fromkeys(label(run) for run in runs))
    whole = " · ".join(names)
    if len(whole) <= LONGEST_HEADING:
        return f"Race: {whole}"
    kept = [names[0]]
    for name in names[1:]:
        if len(" · ".join([*kept, name])) > LONGEST_HEADING:
            break
        kept.append(name)
    return f"Race of {len(runs)}: {' · '.join(kept)} · …"
