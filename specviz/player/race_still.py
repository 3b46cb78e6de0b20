"""A still of a race at its end: a line per run, its tokens, passes and time, and a bar of the time.

The twin of the race where nothing moves: on paper, in a saved notebook, without scripts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from specviz.figures.summary import duration, seconds
from specviz.player.picture.scene import Scene
from specviz.player.projection import label
from specviz.player.still import THEMES, pixels

if TYPE_CHECKING:
    from specviz.core.trace.trace import Trace

WIDTH = 1000.0
"""Of the picture, in pixels."""
MARGIN, HEAD, LANE, BAR = 24.0, 74.0, 66.0, 20.0
SHARP = 1.5
"""Pixels of the PNG for each pixel of the scene."""


def race_picture(traces: Sequence[Trace], theme: str = "light") -> bytes:
    """Return a PNG of a race at its end: per run its name, tokens, passes, time and a bar.

    Parameters
    ----------
    traces : sequence of Trace
        Runs with measured times.
    theme : str
        "light" or "dark"; a page that follows its reader gets the light picture.

    Returns
    -------
    bytes
        The PNG, 1500 pixels wide.

    Examples
    --------
    >>> png = race_picture([trace, plain])  # doctest: +SKIP
    """
    return pixels(race_scene(traces), theme if theme in THEMES else "light", SHARP)


def race_scene(traces: Sequence[Trace]) -> Scene:
    """Return the picture's boxes and letters; bars are as long as the runs took."""
    taken = [sum(seconds(trace).values()) for trace in traces]
    longest, first = max(taken), taken.index(min(taken))
    scene = Scene(WIDTH, HEAD + LANE * len(traces) + MARGIN / 2)
    room = WIDTH - 2 * MARGIN
    scene.text(MARGIN, 34, f"Race of {len(traces)} runs, at its end", 22, bold=True, room=room)
    scene.text(MARGIN, 56, "measured time: the shorter the bar, the sooner", 15, "muted")
    for i, (trace, took) in enumerate(zip(traces, taken, strict=True)):
        top = HEAD + LANE * i
        told = f"{len(trace.tokens):,} tokens · {len(trace):,} passes · {duration(took)}"
        if i == first:
            told = f"first · {told}"
        ink = "accepted_ink" if i == first else "text"
        wide = scene.text(WIDTH - MARGIN, top + 18, told, 16, ink, anchor="right", bold=i == first)
        scene.text(MARGIN, top + 18, label(trace), 17, bold=True, room=room - wide - 20)
        scene.box(MARGIN, top + 27, room, BAR, fill="panel")
        share = took / longest if longest > 0 else 0.0
        scene.box(MARGIN, top + 27, room * share, BAR, fill="accepted" if i == first else "p")
    return scene
