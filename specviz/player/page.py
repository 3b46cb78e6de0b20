"""A run as one self-contained page with the player in it: opens from disk, asks for nothing."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cache
from html import escape
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from specviz._version import __version__
from specviz.figures.comparison import Comparison
from specviz.figures.escaping import visible
from specviz.figures.page import (
    against,
    checked,
    page_title,
    subtitle,
    write_whole,
)
from specviz.player.assets import PAGE_ENTRY, loader, packed, script
from specviz.player.options import baseline_of, checked_options, checked_tree
from specviz.player.projection import pack, project
from specviz.player.run import indexed
from specviz.player.without_script import described, player_without_script

if TYPE_CHECKING:
    from specviz.core.trace.trace import Trace

HEIGHTS = {
    "text": 130, "phase": 170, "bars": 330, "draw": 270, "caches": 170, "lanes": 170,
    "measures": 200, "tree": 380,
}  # fmt: skip
"""Pixels that each view needs in a column."""
CONTROLS = 200
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
        all (the tree only where there is one). With a choice, the page has no heading of its own.
    height : int, optional
        Height of the player in pixels, in which it scrolls; by default as high as it needs. With
        a height, the page has no heading of its own.
    theme : str
        "light", "dark", or "auto" for what the reader prefers.
    guided : bool, optional
        Whether captions explain each step at first; off by default.
    title : str, optional
        What the page is called; by default the beginning of the prompt.
    compare : Trace or Comparison, optional
        A run of the target alone (``gamma=0``), or times measured elsewhere, for the lanes of
        time and the speed-up. Without it both are estimated from this run's own target passes,
        and say so.

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
        from specviz.player.race_page import race_page

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
    heading = visible(title if title is not None else page_title(trace), limit=120)
    header = comparison_html = ""
    bare = views is not None or height is not None
    if not bare:
        header = f"<header><h1><bdi>{escape(heading)}</bdi></h1>{subtitle(trace)}</header>\n"
        comparison_html = comparison.html() if comparison else ""
    if comparison_html:
        comparison_html = f'<div class="sv-trace sv-page svp-plain">{comparison_html}</div>\n'
    values = {"kind": "player", "options": options | {"standalone": True}, "step": 0}
    projection = project(trace, baseline_of(comparison))
    told = player_without_script(trace, indexed(projection), views=views, theme=theme)
    return document(
        heading,
        theme,
        f"{header}{embedded(values, [compressed(pack(projection))], described(trace))}\n"
        f"<noscript>{told}</noscript>\n{comparison_html}",
        bare=bare,
    )


def document(heading: str, theme: str, body: str, *, bare: bool = False) -> str:
    """Return a whole page around what stands in it; a bare one is shown inside another."""
    scheme = "light dark" if theme == "auto" else theme
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy()}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta name="color-scheme" content="{scheme}">\n'
        f'<meta name="generator" content="specviz {__version__}">\n'
        f"<title>{escape(heading)}</title>\n<style>{_PAGE_STYLE}</style>\n</head>\n"
        f'<body class="svp-body-{theme}{" svp-bare" if bare else ""}">\n'
        f'<main class="svp-page">\n{body}</main>\n{code()}\n</body>\n</html>\n'
    )


def embedded(values: Mapping[str, Any], runs: Sequence[bytes], described: str) -> str:
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
    data = "".join(
        f'<script type="application/vnd.specviz.run">{base64.b64encode(run).decode()}</script>'
        for run in runs
    )
    return (
        f'<div class="svp-host" role="region" aria-label="{escape(described)}">'
        f'{data}<script type="application/vnd.specviz+json">{told}</script></div>'
    )


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
def policy(entry: str = PAGE_ENTRY) -> str:
    """Return the page's rules for the browser: its own scripts, styles and pictures."""
    digests = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()}'"
        for code in (loader("page"), script(entry))
    )
    return (
        f"default-src 'none'; script-src {digests}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


@cache
def code(entry: str = PAGE_ENTRY) -> str:
    """Return the player's script, packed, and the lines that unpack it."""
    sent = base64.b64encode(packed(entry)).decode()
    return (
        f'<script type="application/vnd.specviz.code">{sent}</script>\n'
        f'<script type="module">{loader("page")}</script>'
    )


_PAGE_STYLE = """
body { margin: 0; background: #ffffff; font: 15px/1.45 system-ui, sans-serif; color: #1a1a1a; }
.svp-page { max-width: 108rem; margin: 0 auto; padding: 20px 16px; }
.svp-page header h1 { font-size: 26px; line-height: 1.25; margin: 0; overflow-wrap: anywhere; }
.svp-page header p { color: #595f69; margin: 2px 0 14px; overflow-wrap: anywhere; }
.svp-plain { margin: 24px 0 0; }
.svp-plain h2 { font-size: 18px; margin: 0 0 4px; }
.svp-plain .sv-bar { display: flex; align-items: center; gap: 10px; margin: 4px 0; flex-wrap: wrap; }
.svp-plain .sv-bar span:first-child { flex: 0 0 6.5em; }
.svp-plain .sv-bar i { display: block; height: 16px; border-radius: 3px; }
.svp-plain .sv-fast { background: #009e73; }
.svp-plain .sv-target { background: #0072b2; }
.svp-bare .svp { max-height: 100vh; }
.svp-still { box-sizing: border-box; max-width: 100%; height: auto; border: 1px solid #8a909b; border-radius: 8px; }
.svp-page noscript { overflow-wrap: anywhere; } .svp-page noscript * { max-width: 100%; }
.svp-wide { overflow-x: auto; } .svp-wide td, .svp-wide thead th { overflow-wrap: normal; }
.svp-wide th:first-child { min-width: 6em; } .svp-page noscript h1 { font-size: 26px; line-height: 1.25; }
.svp-times { border-collapse: collapse; } .svp-times caption { text-align: left; font-weight: 600; }
.svp-times th, .svp-times td { padding: 4px 14px 4px 0; border-bottom: 1px solid #8a909b; text-align: right; }
.svp-times th:first-child { text-align: left; }
.svp-bare .svp-page { padding: 0; max-width: none; }
body.svp-body-dark { background: #15171c; color: #ececee; }
body.svp-body-dark header p { color: #adb2bc; }
@media (prefers-color-scheme: dark) {
  body.svp-body-auto { background: #15171c; color: #ececee; }
  body.svp-body-auto header p { color: #adb2bc; }
}
@media (max-width: 420px) { .svp-page { padding: 8px 4px; } .svp-page header h1 { font-size: 21px; } }
"""  # noqa: E501
