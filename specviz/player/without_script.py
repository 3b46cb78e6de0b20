"""What a page shows to readers without scripts: a picture with its words, the text, the times."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from specviz.figures.coloured_text import html as coloured_html
from specviz.figures.page import SHOWN_WITHOUT_SCRIPT
from specviz.figures.summary import duration, seconds
from specviz.figures.visible import visible
from specviz.player.frames import frame_at
from specviz.player.picture.layout import pictured
from specviz.player.positions import chosen, step_of
from specviz.player.projection import label
from specviz.player.run import Run
from specviz.player.still import default_views, pixels
from specviz.player.words import spoken

if TYPE_CHECKING:
    from specviz.core.trace import Trace

WIDTH = 1000
"""Of the picture, in pixels: large enough to read, small enough to travel in a page."""
LONGEST_TEXT = 1_200


def player_without_script(
    trace: Trace, run: Run, *, views: Sequence[str] | None = None, theme: str = "auto"
) -> str:
    """Return a picture of the first rejection and, if it is asked for, the coloured text.

    Parameters
    ----------
    trace, run
        The run, and the same as the player sees it.
    views : sequence of str, optional
        The views that the page shows; by default all.
    theme : str
        A page that follows its reader gets the light picture.
    """
    text = coloured_html(trace, budget=SHOWN_WITHOUT_SCRIPT)
    if views is not None and "text" not in views:
        text = ""
    return _picture(run, views, "dark" if theme == "dark" else "light") + text


def described(trace: Trace) -> str:
    """Return in a few words what a player plays."""
    return (
        f"Player of a run of speculative decoding: {len(trace.tokens)} tokens in {len(trace)} "
        f"target passes"
    )


def race_without_script(traces: Sequence[Trace]) -> str:
    """Return a table of the measured times, and what each run wrote."""
    taken = [sum(seconds(trace).values()) for trace in traces]
    first = taken.index(min(taken))
    rows = "".join(
        f'<tr><th scope="row"><bdi>{escape(label(trace))}</bdi>'
        f"{' (first)' if i == first else ''}</th>"
        f"<td>{len(trace.tokens):,}</td><td>{len(trace):,}</td><td>{duration(took)}</td>"
        f"<td>{len(trace.tokens) / took:,.1f}</td></tr>"
        for i, (trace, took) in enumerate(zip(traces, taken, strict=True))
    )
    texts = "".join(
        f"<h2><bdi>{escape(label(trace))}</bdi></h2>"
        f"<p><bdi>{escape(visible(trace.prompt_text + trace.text, limit=LONGEST_TEXT))}</bdi></p>"
        for trace in traces
    )
    return (
        '<table class="svp-times"><caption>Measured times</caption><thead><tr>'
        '<th scope="col">run</th><th scope="col">tokens</th><th scope="col">target passes</th>'
        '<th scope="col">time</th><th scope="col">tokens per second</th></tr></thead>'
        f"<tbody>{rows}</tbody></table>{texts}"
    )


def _picture(run: Run, views: Sequence[str] | None, theme: str) -> str:
    """Return an image with its alternative text; nothing if the run has no rounds."""
    if not len(run):
        return ""
    frame = frame_at(run, step_of(run, chosen(run)))
    drawn = default_views(run) if views is None else ("caption", *views)
    scene = pictured(run, frame, drawn, WIDTH)
    data = base64.b64encode(pixels(scene, theme, 1.0)).decode()
    return (
        f'<p><img class="svp-still" alt="{escape(spoken(run, frame))}" width="{scene.width:.0f}" '
        f'height="{scene.height:.0f}" src="data:image/png;base64,{data}"></p>'
    )
