"""Several runs as one page: a race on one clock of their own measured times."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from specviz.figures.visible import visible
from specviz.player.options import checked_options
from specviz.player.page import compressed, document, embedded
from specviz.player.projection import label, pack, project
from specviz.player.without_script import race_without_script

if TYPE_CHECKING:
    from specviz.core.trace import Trace


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
    heading = visible(title if title is not None else f"Race: {named}", limit=120)
    values: dict[str, Any] = {"kind": "race", "options": options | {"standalone": True}}
    data = [compressed(pack(project(run))) for run in runs]
    said = f"Race of {len(runs)} runs on one clock of measured time: {named}"
    return document(
        heading,
        theme,
        f"<header><h1><bdi>{escape(heading)}</bdi></h1>"
        "<p>One clock: each run's own measured times.</p></header>\n"
        f"{embedded(values, data, said)}\n<noscript>{race_without_script(runs)}</noscript>\n",
    )
