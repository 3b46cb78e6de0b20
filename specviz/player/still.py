"""A still of any position of a run: the player's picture, in vectors or pixels, without a browser.

``sv.still(trace, round=3)`` shows itself in a notebook; with a path it is written as SVG, PNG or
PDF. What is drawn is a pure function of (trace, position): the frames are those of the player.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from specviz.core import checks
from specviz.core.atomic_writing import checked_target, write_by
from specviz.core.formatting import format_duration
from specviz.figures.summary import run_label as label
from specviz.figures.summary import seconds
from specviz.figures.theme import DARK, LIGHT
from specviz.player.options import VIEWS, checked_runs, checked_trace
from specviz.player.picture.layout import filling, fitted_to, pictured
from specviz.player.picture.scene import Scene
from specviz.player.projection import run_of
from specviz.player.steps.frames import Frame, chosen, frame_at, step_of
from specviz.player.steps.race import verdict, why_texts_differ
from specviz.player.steps.run import Run
from specviz.player.steps.words import spoken

if TYPE_CHECKING:
    from specviz.core.trace.trace import Trace

DRAWABLE = (*VIEWS, "caption")
SLIDE = (1280, 720)
PAPER = 760
NARROWEST, WIDEST = 320, 4_000
SHARP = 2.0
"""Pixels of a PNG for each pixel of the scene."""
SUFFIXES = (".svg", ".png", ".pdf")
THEMES = {"light": LIGHT, "dark": DARK}


@dataclass(frozen=True)
class Still:
    """A picture of one position, made by :func:`still`.

    It shows itself in a notebook. ``svg`` is text, ``png`` and ``pdf`` are bytes; ``alt`` says in
    words what there is to see.

    Examples
    --------
    >>> picture = still(trace, round=3)  # doctest: +SKIP
    >>> picture.save("round-3.svg")  # doctest: +SKIP
    """

    scene: Scene
    theme: str
    alt: str

    @cached_property
    def png(self) -> bytes:
        """The picture in pixels, sharp on screens with small ones."""
        return pixels(self.scene, self.theme, SHARP)

    @cached_property
    def svg(self) -> str:
        """The picture in vectors; its letters are outlines, so it needs no font."""
        from specviz.player.picture.vector import written

        return written(self.scene, THEMES[self.theme], "svg", self.alt).decode("utf-8")

    @cached_property
    def pdf(self) -> bytes:
        """The picture as a page for print, its letters searchable."""
        from specviz.player.picture.vector import written

        return written(self.scene, THEMES[self.theme], "pdf", self.alt)

    def save(self, path: str | PathLike[str]) -> Path:
        """Write it as SVG, PNG or PDF, by the suffix, whole or not at all.

        Raises
        ------
        TypeError, ValueError, FileNotFoundError, IsADirectoryError
            If nothing can be written there, in one sentence.
        """
        where = checked_target(path, SUFFIXES)
        kind = where.suffix.lower()
        if kind == ".svg":
            data = self.svg.encode("utf-8")
        else:
            data = self.png if kind == ".png" else self.pdf
        write_by(where, lambda half: half.write_bytes(data))
        return where

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        return self.png, {"width": round(self.scene.width), "height": round(self.scene.height)}

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        size = f"{self.scene.width:.0f} × {self.scene.height:.0f}"
        return f"<Still: {size}, {self.theme}. {self.alt}>"


def still(
    trace: Trace | Sequence[Trace],
    path: str | PathLike[str] | None = None,
    *,
    round: int | None = None,
    node: int | None = None,
    phase: str | None = None,
    theme: str = "light",
    views: Sequence[str] | None = None,
    size: str | int = "slide",
) -> Still:
    """Draw one position of a run as the player shows it, for slides, papers and print.

    Parameters
    ----------
    trace : Trace, or sequence of Trace
        The run; or two to eight, whose race is drawn at its end.
    path : str or path, optional
        Where to write it as well: ``….svg``, ``….png`` or ``….pdf``.
    round, node : int, optional
        Counted from 0. Without a round the one that explains most, as the player's; without a
        node its rejected proposal, or the closing token where there is none.
    phase : str, optional
        "draft", "verify", "decide", "close" or "rollback"; by default what happened to ``node``.
    theme : str
        "light" or "dark".
    views : sequence of str, optional
        What to draw, of ``text caption phase tree bars draw caches lanes measures``; by default
        what fits a slide.
    size : str or int
        "slide" or "16:9" (1280 × 720, filled), "paper" (a narrow column), or a width in pixels;
        then the picture is as high as it needs.

    Returns
    -------
    Still
        Shows itself in a notebook; has ``svg``, ``png``, ``pdf``, ``alt`` and ``save(path)``.

    Raises
    ------
    TypeError, ValueError
        If an argument is of another kind or there is no such position, in one sentence.
    FileNotFoundError, IsADirectoryError
        If the folder of ``path`` does not exist, or ``path`` is a folder.

    Examples
    --------
    >>> still(trace, "rejected.svg", round=3, node=1, theme="dark")  # doctest: +SKIP
    """
    if isinstance(trace, (list, tuple)):
        places = {"round": round, "node": node, "phase": phase, "views": views}
        return _race_still(trace, path, theme, size, places)
    one = checked_trace(trace)
    where = None if path is None else checked_target(path, SUFFIXES)
    checked_theme(theme)
    width, height = _checked_size(size)
    run = run_of(one)
    at = chosen(run, round, node, phase)
    asked = checked_views(views, run)
    frame = frame_at(run, step_of(run, at))
    made = Still(sized(run, frame, asked, width, height), theme, spoken(run, frame))
    if where is not None:
        made.save(where)
    return made


def _race_still(
    traces: Sequence[Trace], path: Any, theme: Any, size: Any, places: dict[str, Any]
) -> Still:
    """Return a race at its end as a still."""
    given = [name for name, value in places.items() if value is not None]
    if given:
        raise ValueError(f"{given[0]} is for one trace; a race of several has no such option")
    runs = checked_runs(traces)
    where = None if path is None else checked_target(path, SUFFIXES)
    checked_theme(theme)
    width, height = _checked_size(size)
    scene = race_scene(runs)
    high = scene.height * width / scene.width if height is None else height
    made = Still(fitted_to(scene, width, high), theme, race_alt(runs))
    if where is not None:
        made.save(where)
    return made


def sized(run: Run, frame: Frame, views: Sequence[str], width: int, height: int | None) -> Scene:
    """Return a frame's scene; with a height it fills the slide."""
    if height is None:
        return pictured(run, frame, views, width)
    return filling(run, frame, views, width, height)


def default_views(run: Run) -> tuple[str, ...]:
    """Return what fits a slide: the stage, and of a tree the tree."""
    return ("text", "caption", "phase", *(("tree",) if run.is_tree else ()))


def pixels(scene: Scene, theme: str, scale: float) -> bytes:
    """Return a scene as a PNG in the theme's few colours, which keeps it small."""
    from specviz.player.picture.colours import reduced
    from specviz.player.picture.pixels import paint

    held = io.BytesIO()
    image = reduced(paint(scene, THEMES[theme], scale), THEMES[theme])
    image.save(held, format="png", optimize=True)
    return held.getvalue()


def checked_views(views: Any, run: Run) -> tuple[str, ...]:
    """Return the views to draw.

    Raises
    ------
    TypeError, ValueError
        If one of them is unknown, or only the tree of a chain is asked for.
    """
    if views is None:
        return default_views(run)
    chosen_ = checks.some_of("views", views, DRAWABLE)
    if set(chosen_) == {"tree"} and not run.is_tree:
        raise ValueError("views asks only for the tree, and this run has none: its proposals "
                         "are chains")  # fmt: skip
    return chosen_


def checked_theme(theme: Any) -> None:
    """Refuse a theme that is not drawn: neither light nor dark."""
    checks.one_of("theme", theme, THEMES, hint="a picture follows no system")


def _checked_size(size: Any) -> tuple[int, int | None]:
    """Return width and height in pixels; None is a height that follows."""
    if size in ("slide", "16:9"):
        return SLIDE
    if size == "paper":
        return PAPER, None
    if isinstance(size, bool) or not isinstance(size, int):
        raise TypeError(f"size must be 'slide', '16:9', 'paper' or a width in pixels, got {size!r}")
    if not NARROWEST <= size <= WIDEST:
        raise ValueError(f"size must be {NARROWEST} to {WIDEST:,} pixels, got {size:,}")
    return size, None


# -- a race ---------------------------------------------------------------------------------------


WIDTH = 1000.0
"""Of the picture, in pixels."""
MARGIN, HEAD, LANE, BAR = 24.0, 74.0, 66.0, 20.0
RACE_SHARP = 1.5
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
    return pixels(race_scene(traces), theme if theme in THEMES else "light", RACE_SHARP)


def race_alt(traces: Sequence[Trace]) -> str:
    """Return what a race comes to, in words."""
    told = " ".join(
        f"{label(trace)}: {len(trace.tokens):,} tokens in "
        f"{format_duration(sum(seconds(trace).values()))}."
        for trace in traces
    )
    return f"Race at its end. {told} {verdict(traces)}"


def race_scene(traces: Sequence[Trace]) -> Scene:
    """Return the picture's boxes and letters; bars are as long as the runs took."""
    taken = [sum(seconds(trace).values()) for trace in traces]
    longest, first = max(taken), taken.index(min(taken))
    scene = Scene(WIDTH, HEAD + LANE * len(traces) + 70)
    room = WIDTH - 2 * MARGIN
    scene.text(MARGIN, 34, f"Race of {len(traces)} runs, at its end", 22, bold=True, room=room)
    scene.text(MARGIN, 56, "measured time: the shorter the bar, the sooner", 15, "muted")
    for i, (trace, took) in enumerate(zip(traces, taken, strict=True)):
        top = HEAD + LANE * i
        told = f"{len(trace.tokens):,} tokens · {len(trace):,} passes · {format_duration(took)}"
        if i == first:
            told = f"first · {told}"
        ink = "accepted_ink" if i == first else "text"
        wide = scene.text(WIDTH - MARGIN, top + 18, told, 16, ink, anchor="right", bold=i == first)
        scene.text(MARGIN, top + 18, label(trace), 17, bold=True, room=room - wide - 20)
        scene.box(MARGIN, top + 27, room, BAR, fill="panel")
        share = took / longest if longest > 0 else 0.0
        scene.box(MARGIN, top + 27, room * share, BAR, fill="accepted" if i == first else "p")
    low, inner = HEAD + LANE * len(traces) + 8, WIDTH - 2 * MARGIN
    scene.paragraph(MARGIN, low, inner, verdict(traces), 18, 1, bold=True)
    scene.paragraph(MARGIN, low + 26, inner, why_texts_differ(traces), 15.5, 2)
    return scene
