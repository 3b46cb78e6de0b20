"""What a page shows to readers without scripts: a picture with its words, the text, the times."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from html import escape
from typing import TYPE_CHECKING

from specviz.figures.coloured_text import html as coloured_html
from specviz.figures.escaping import visible
from specviz.figures.page import SHOWN_WITHOUT_SCRIPT
from specviz.figures.summary import duration, seconds
from specviz.player.frames import frame_at
from specviz.player.picture.layout import pictured
from specviz.player.positions import chosen, step_of
from specviz.player.projection import label
from specviz.player.run import Run
from specviz.player.still import default_views, pixels
from specviz.player.words import spoken

if TYPE_CHECKING:
    from specviz.core.trace.trace import Trace

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
        With "auto" the picture is there twice, and the reader sees the one that fits.
    """
    text = coloured_html(trace, budget=SHOWN_WITHOUT_SCRIPT)
    if views is not None and "text" not in views:
        text = ""
    return _picture(run, views, theme) + text


def described(trace: Trace) -> str:
    """Return in a few words what a player plays."""
    return (
        f"Player of a run of speculative decoding: {len(trace.tokens)} tokens in {len(trace)} "
        f"target passes"
    )


def race_without_script(traces: Sequence[Trace], theme: str = "auto") -> str:
    """Return a picture and a table of the measured times, and what each run wrote."""
    from specviz.player.race_still import race_picture

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
    alt = "Race at its end. " + " ".join(
        f"{label(trace)}: {len(trace.tokens):,} tokens in {duration(took)}."
        for trace, took in zip(traces, taken, strict=True)
    )
    return (
        f"{image(lambda one: race_picture(traces, one), theme, alt)}"
        '<div class="svp-wide"><table class="svp-times"><caption>Measured times</caption><thead>'
        '<tr><th scope="col">run</th><th scope="col">tokens</th><th scope="col">target passes</th>'
        '<th scope="col">time</th><th scope="col">tokens per second</th></tr></thead>'
        f"<tbody>{rows}</tbody></table></div>{texts}"
    )


def _picture(run: Run, views: Sequence[str] | None, theme: str) -> str:
    """Return an image with its alternative text, in the colours that the reader prefers.

    Nothing if the run has no rounds.
    """
    if not len(run):
        return ""
    frame = frame_at(run, step_of(run, chosen(run)))
    drawn = default_views(run) if views is None else ("caption", *views)
    scene = pictured(run, frame, drawn, WIDTH)
    return image(
        lambda one: pixels(scene, one, 1.0), theme, spoken(run, frame),
        f'width="{scene.width:.0f}" height="{scene.height:.0f}"',
    )  # fmt: skip


def image(png: Callable[[str], bytes], theme: str, alt: str, size: str = "") -> str:
    """Return a picture as HTML; with theme "auto" in the colours that the reader prefers.

    Parameters
    ----------
    png : callable
        Returns a theme's PNG.
    theme : str
        "light", "dark" or "auto".
    alt : str
        What there is to see, in words.
    size : str
        Attributes of the image.
    """

    def source(one: str) -> str:
        return f"data:image/png;base64,{base64.b64encode(png(one)).decode()}"

    shown = f'<img class="svp-still" alt="{escape(alt)}" {size} src="{{}}">'
    if theme != "auto":
        return f"<p>{shown.format(source(theme))}</p>"
    dark = f'<source media="(prefers-color-scheme: dark)" srcset="{source("dark")}">'
    return f"<p><picture>{dark}{shown.format(source('light'))}</picture></p>"


def distribution_without_script(
    words: Sequence[str], p: Sequence[float], q: Sequence[float]
) -> str:
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
    rows = "".join(
        f'<tr><th scope="row"><bdi>{escape(visible(word, limit=120))}</bdi></th>'
        f"<td>{one:.3g}</td><td>{other:.3g}</td><td>{both:.3g}</td>"
        f"<td>{(one - both) / (1 - mass) if mass < 1 else 0:.3g}</td></tr>"
        for word, one, other, both in zip(words, p, q, shared, strict=True)
    )
    heads = ("token", "target p", "draft q", "min(p, q)", "residual")
    names = "".join(f'<th scope="col">{name}</th>' for name in heads)
    return (
        f'<div class="svp-wide"><table class="svp-times"><thead><tr>{names}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
        f"<p>A proposal is kept with probability {mass:.3g} = Σ min(p, q) = 1 − TV(p, q).</p>"
    )
