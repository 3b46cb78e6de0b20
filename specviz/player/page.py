"""A run as one self-contained page with the player in it: opens from disk, asks for nothing."""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape
from PIL import Image

from specviz.core.atomic_writing import write_whole
from specviz.core.formatting import format_duration, format_number
from specviz.figures.coloured_text import html as coloured_html
from specviz.figures.comparison import Comparison
from specviz.figures.escaping import visible
from specviz.figures.page import (
    SHOWN_WITHOUT_SCRIPT,
    against,
    checked,
    page_title,
)
from specviz.figures.summary import run_label as label
from specviz.figures.summary import seconds, times_note
from specviz.figures.templating import part, render
from specviz.player.assets import PAGE_ENTRY, loader, packed, script
from specviz.player.options import baseline_of, checked_options, checked_runs, checked_tree
from specviz.player.picture.layout import pictured, strip
from specviz.player.projection import pack, project
from specviz.player.steps.frames import Frame, chosen, frame_at, step_of
from specviz.player.steps.race import verdict, why_texts_differ
from specviz.player.steps.run import Run, indexed
from specviz.player.steps.words import spoken
from specviz.player.still import pixels

if TYPE_CHECKING:
    from specviz.core.trace.trace import Trace

HEIGHTS = {
    "text": 130, "phase": 170, "bars": 330, "draw": 270, "caches": 170, "lanes": 170,
    "measures": 200, "tree": 380,
}  # fmt: skip
"""Pixels that each view needs in a column."""
CONTROLS = 200
TITLE = "Speculative decoding, step by step"
LEVEL = 9
"""Of gzip: pages are written once and read often."""


def to_html(
    trace: Trace | Sequence[Trace],
    path: str | PathLike[str],
    *,
    views: Sequence[str] | None = None,
    height: int | None = None,
    theme: str = "auto",
    guided: bool | None = None,
    title: str | None = None,
    compare: Trace | Comparison | None = None,
) -> Path:
    """Write a run as one self-contained page that plays it, or several as a race.

    The page opens from disk, offline, and asks the network for nothing. Readers without scripts
    get a picture and the coloured text instead. ``#round=3&node=1`` behind its address opens it at
    that place. With ``views`` or ``height`` the page is for another one to show, and the snippet
    that does so is printed; whatever its height, the player scrolls inside it.

    Parameters
    ----------
    trace : Trace, or sequence of Trace
        The run; or two to eight that race on one clock of their own measured times.
    path : str or path
        The file, by custom ``….html``; it is replaced as a whole or left as it was.
    views : sequence of str, optional
        Which views to show, of ``text phase bars draw caches lanes measures tree``; by default
        the stage (text, phase and the tree of a run that has one), all others behind "Details".
        With a choice exactly those are shown, and the page has no heading of its own.
    height : int, optional
        Height of the player in pixels, in which it scrolls; by default as high as it needs. With
        a height, the page has no heading of its own.
    theme : str
        "light", "dark", or "auto" for what the reader prefers.
    guided : bool, optional
        Whether captions explain each step at first; on by default.
    title : str, optional
        What the page is called.
    compare : Trace or Comparison, optional
        A run of the target alone (``gamma=0``), or times measured elsewhere, for the lanes of
        time and the speed-up. A recorded run has its own measured target-only run. Without
        either, the speed-up is an upper bound, from this run's verification passes, and says so.

    Returns
    -------
    Path
        Where the page is.

    Raises
    ------
    TypeError
        If an argument is of another kind.
    FileNotFoundError, IsADirectoryError
        If the folder of ``path`` does not exist, or ``path`` is a folder.
    ValueError
        If ``views``, ``height`` or ``theme`` is unknown, ``compare`` is no run of the target
        alone, one of the runs has no times, or an option of one run is given for a race.

    Examples
    --------
    >>> to_html(trace, "fox.html", compare=plain)  # doctest: +SKIP
    >>> to_html([trace, plain], "race.html")  # doctest: +SKIP
    >>> to_html(trace, "fox.html", views=["text", "draw"], height=420)  # doctest: +SKIP
    <iframe src="fox.html" title="Speculative decoding, step by step" width="100%" height="420" ...
    """
    where = write_page(
        trace, path, views=views, height=height, theme=theme, guided=guided, title=title,
        compare=compare,
    )  # fmt: skip
    if views is not None or height is not None:
        print(iframe(where, height=embedded_height(views, height)))
    return where


def write_page(
    trace: Any,
    path: str | PathLike[str],
    *,
    views: Sequence[str] | None = None,
    guided: bool | None = None,
    compare: Trace | Comparison | None = None,
    **options: Any,
) -> Path:
    """Write what :func:`to_html` writes and print nothing; the arguments are the same."""
    if isinstance(trace, Sequence) and not isinstance(trace, str):
        from specviz.player.page import race_page

        one = {"views": views, "guided": guided, "compare": compare}
        given = [name for name, value in one.items() if value is not None]
        if given:
            raise ValueError(f"{given[0]} is for one trace; a race of several has no such option")
        text = race_page(trace, **options)
        where = checked(trace[0], path)
    else:
        where = checked(trace, path)
        text = page(trace, views=views, guided=guided, compare=compare, **options)
    write_whole(where, text)
    return where


def page(
    trace: Trace,
    *,
    views: Sequence[str] | None = None,
    height: int | None = None,
    theme: str = "auto",
    guided: bool | None = None,
    title: str | None = None,
    compare: Trace | Comparison | None = None,
) -> str:
    """Return the page of a run that :func:`to_html` writes; the same for the same arguments."""
    options = checked_options(views=views, height=height, theme=theme, guided=guided, title=title)
    checked_tree(views, trace)
    options["title"] = None  # the page has a heading
    comparison = against(trace, compare)
    heading = visible(title if title is not None else TITLE, limit=120)
    bare = views is not None or height is not None
    values = {"kind": "player", "options": options | {"standalone": True}, "step": -1}
    projection = project(trace, baseline_of(comparison))
    told = player_without_script(trace, indexed(projection), views=views, theme=theme)
    main = parts().player(
        heading,
        "" if bare else f"A run on record. Its prompt: “{page_title(trace)}”",
        embedded(values, [compressed(pack(projection))], described(trace)),
        told,
        comparison.html() if comparison and not bare else "",
    )
    return document(heading, theme, main, bare=bare)


def parts() -> Any:
    """Return the macros that the player's pages are made of."""
    return part("player/templates/parts.html")


def document(
    heading: str, theme: str, main: Markup, *, bare: bool = False, entry: str = PAGE_ENTRY
) -> str:
    """Return a whole page around what stands in it; a bare one is shown inside another."""
    return render(
        "base.html",
        title=heading,
        policy=policy(entry),
        scheme="light dark" if theme == "auto" else theme,
        style=Markup(files("specviz.player").joinpath("css/page.css").read_text("utf-8")),
        body_class=f"svp-body-{theme}{' svp-bare' if bare else ''}",
        main_class="svp-page",
        main=main,
        code=code(entry),
    )


def embedded(values: Mapping[str, Any], runs: Sequence[bytes], described: str) -> Markup:
    """Return the element that a page's script turns into a player.

    Parameters
    ----------
    values : mapping
        The model's values, plain JSON.
    runs : sequence of bytes
        Gzipped, packed projections.
    described : str
        What there is to see, for readers who do not see it.
    """
    told = json.dumps(values, ensure_ascii=True, sort_keys=True).replace("<", "\\u003c")
    data = [base64.b64encode(run).decode() for run in runs]
    return Markup(parts().host(described, Markup(told), map(Markup, data)))


def iframe(path: str | PathLike[str], *, height: int = 900) -> str:
    """Return the HTML that shows a written page inside another one.

    Examples
    --------
    >>> iframe("fox.html", height=600)
    '<iframe src="fox.html" title="Speculative decoding, step by step" ... height="600" ...'
    """
    name = escape(Path(path).name)
    return (
        f'<iframe src="{name}" title="Speculative decoding, step by step" width="100%" '
        f'height="{int(height)}" style="border:0" allow="fullscreen; clipboard-write" '
        'loading="lazy"></iframe>'
    )


def embedded_height(views: Sequence[str] | None, height: int | None) -> int:
    """Return how high an iframe must be for a page made with these arguments.

    Without a height it is about what the views need in a column of a blog, one under the other;
    the player is never higher than the frame it is shown in, and scrolls.
    """
    return height or CONTROLS + sum(HEIGHTS[name] for name in set(views or HEIGHTS))


def compressed(data: bytes) -> bytes:
    """Return bytes gzipped, the same for the same bytes."""
    return gzip.compress(data, LEVEL, mtime=0)


@cache
def policy(entry: str = PAGE_ENTRY) -> Markup:
    """Return the page's rules for the browser: its own scripts, styles and pictures."""
    digests = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()}'"
        for code in (loader("page"), script(entry))
    )
    return Markup(
        f"default-src 'none'; script-src {digests}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


@cache
def code(entry: str = PAGE_ENTRY) -> Markup:
    """Return the player's script, packed, and the lines that unpack it."""
    sent = base64.b64encode(packed(entry)).decode()
    return Markup(parts().script(sent, Markup(loader("page"))))


# -- for readers without scripts ------------------------------------------------------------------


WIDTH = 1000
"""Of the picture, in pixels: large enough to read, small enough to travel in a page."""
LONGEST_TEXT = 1_200


def player_without_script(
    trace: Trace, run: Run, *, views: Sequence[str] | None = None, theme: str = "auto"
) -> Markup:
    """Return the story of a round in pictures and, if it is asked for, the coloured text.

    Parameters
    ----------
    trace, run
        The run, and the same as the player sees it.
    views : sequence of str, optional
        The views that the page shows; by default all.
    theme : str
        With "auto" a picture of chosen views is there twice, and the reader sees the one that
        fits; the story is light.
    """
    picture = _picture(run, views, theme)
    if views is not None and "text" not in views:
        return picture
    return picture + Markup(coloured_html(trace, budget=SHOWN_WITHOUT_SCRIPT))


def described(trace: Trace) -> str:
    """Return in a few words what a player plays."""
    return (
        f"Player of a run of speculative decoding: {len(trace.tokens)} tokens in {len(trace)} "
        f"target passes"
    )


def race_without_script(traces: Sequence[Trace], theme: str = "auto") -> Markup:
    """Return a picture and a table of the measured times, and what each run wrote."""
    from specviz.player.still import race_alt, race_picture

    taken = [sum(seconds(trace).values()) for trace in traces]
    first = taken.index(min(taken))
    rows = [
        (
            f"{label(trace)}{' (first)' if i == first else ''}",
            [
                f"{len(trace.tokens):,}", f"{len(trace):,}", format_duration(took),
                f"{len(trace.tokens) / took:,.1f}",
            ],
        )
        for i, (trace, took) in enumerate(zip(traces, taken, strict=True))
    ]  # fmt: skip
    texts = [
        (label(trace), visible(trace.prompt_text + trace.text, limit=LONGEST_TEXT))
        for trace in traces
    ]
    alt = race_alt(traces)
    picture = image(lambda one: race_picture(traces, one), theme, alt)
    told = f"{verdict(traces)} {why_texts_differ(traces)}"
    return Markup(parts().race(picture, told, rows, texts))


def _picture(run: Run, views: Sequence[str] | None, theme: str) -> Markup:
    """Return an image with its alternative text; nothing if the run has no rounds."""
    if not len(run):
        return Markup("")
    frame = frame_at(run, step_of(run, chosen(run)))
    scene, alt = pictured(run, frame, ("caption", *(views or ())), WIDTH), spoken(run, frame)
    if views is None:
        frames = story_frames(run)
        scene, alt = strip(run, frames, WIDTH), " ".join(spoken(run, one) for one in frames)
        theme = "light" if theme == "auto" else theme  # once: a story is a large picture
    return image(
        lambda one: pixels(scene, one, 1.0), theme, alt,
        (round(scene.width), round(scene.height)),
    )  # fmt: skip


def story_frames(run: Run) -> list[Frame]:
    """Return the steps that tell the round that explains most, one of each kind."""
    first, last = (int(run.first_step[int(run.header["opening"]) + i]) for i in (0, 1))
    frames = [frame_at(run, step) for step in range(first, last)]
    judged = [one for one in frames if one.phase == "decide"]
    fates = {one.status[one.node]: one for one in reversed(judged)}
    drafts = [one for one in frames if one.phase == "draft"]
    rest = [one for one in frames if one.phase in ("verify", "close", "rollback")]
    told = [*drafts[-1:], *rest, *fates.values()]
    return sorted(told, key=lambda one: one.step)


def image(
    png: Callable[[str], bytes], theme: str, alt: str, size: tuple[int, int] | None = None
) -> Markup:
    """Return a picture as HTML; with theme "auto" in the colours that the reader prefers.

    It travels as lossless WebP, a third smaller than the PNG.

    Parameters
    ----------
    png : callable
        Returns a theme's PNG.
    theme : str
        "light", "dark" or "auto".
    alt : str
        What there is to see, in words.
    size : tuple of int, optional
        Width and height in pixels.
    """

    def source(one: str) -> str:
        held = io.BytesIO()
        drawn = Image.open(io.BytesIO(png(one))).convert("RGB")
        drawn.save(held, "webp", lossless=True, quality=80)
        return f"data:image/webp;base64,{base64.b64encode(held.getvalue()).decode()}"

    light = source("light" if theme == "auto" else theme)
    return Markup(parts().picture(light, source("dark") if theme == "auto" else "", alt, size))


def distribution_without_script(
    words: Sequence[str], p: Sequence[float], q: Sequence[float]
) -> Markup:
    """Return two distributions as a table: a row per token, and what follows from both.

    Parameters
    ----------
    words : sequence of str
        What the tokens are called.
    p, q : sequence of float
        The distributions of target and draft, one number per token.
    """
    shared = [min(one, other) for one, other in zip(p, q, strict=True)]
    mass = sum(shared)
    rows = [
        (
            visible(word, limit=120),
            [
                format_number(x, 3)
                for x in (one, other, both, (one - both) / (1 - mass) if mass < 1 else 0.0)
            ],
        )
        for word, one, other, both in zip(words, p, q, shared, strict=True)
    ]
    return Markup(parts().distribution(rows, mass))


# -- a race ---------------------------------------------------------------------------------------


LONGEST_HEADING = 56
"""Letters of the names in a heading: those that fit; all of them stand in the lanes."""


def race_words(traces: Sequence[Trace]) -> dict[str, str]:
    """Return what a race says at its end, as options of the script."""
    return {"verdict": verdict(traces), "why": why_texts_differ(traces)}


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
    options = checked_options(height=height, theme=theme, title=title)
    runs = checked_runs(traces)
    named = " · ".join(dict.fromkeys(label(run) for run in runs))
    heading = visible(title if title is not None else named_race(runs), limit=120)
    values: dict[str, Any] = {
        "kind": "race", "options": options | race_words(runs) | {"standalone": True},
    }  # fmt: skip
    data = [compressed(pack(project(run))) for run in runs]
    said = f"Race of {len(runs)} runs on one clock of measured time: {named}"
    bare = height is not None  # shown inside another page
    main = parts().player(
        heading,
        "" if bare else f"One clock: each run's own measured times{taken(runs)}.",
        embedded(values, data, said),
        race_without_script(runs, theme),
        "",
    )
    return document(heading, theme, main, bare=bare)


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
    'Race: EAGLE, match'
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
