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
from specviz.figures.coloured_text import html as coloured_html
from specviz.figures.comparison import Comparison
from specviz.figures.page import (
    SHOWN_WITHOUT_SCRIPT,
    against,
    checked,
    page_title,
    subtitle,
    write_whole,
)
from specviz.figures.visible import visible
from specviz.player.assets import PAGE_ENTRY, loader, packed, script
from specviz.player.options import baseline_of, checked_options
from specviz.player.projection import pack, project

if TYPE_CHECKING:
    from specviz.core.trace import Trace

LEVEL = 9
"""Of gzip: pages are written once and read often."""


def to_html(
    trace: Trace,
    path: str | PathLike[str],
    *,
    views: Sequence[str] | None = None,
    height: int | None = None,
    theme: str = "auto",
    guided: bool | None = None,
    title: str | None = None,
    compare: Trace | Comparison | None = None,
) -> Path:
    """Write a run as one self-contained page that plays it.

    The page opens from disk, offline, and asks the network for nothing. Readers without scripts
    get the coloured text instead. ``#round=3&node=1`` behind its address opens it at that place.

    Parameters
    ----------
    trace : Trace
        The run.
    path : str or path
        The file, by custom ``….html``; it is replaced as a whole or left as it was.
    views : sequence of str, optional
        Which views to show, of ``text phase bars draw caches lanes measures tree``; by default
        all (the tree only where there is one). With a choice, the page has no heading of its own,
        to be embedded.
    height : int, optional
        Height of the player in pixels; by default as high as it needs.
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
        alone, or one of the two has no times.

    Examples
    --------
    >>> to_html(trace, "fox.html", compare=plain)  # doctest: +SKIP
    """
    where = checked(trace, path)
    text = page(
        trace, views=views, height=height, theme=theme, guided=guided, title=title, compare=compare
    )
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
    """Return the page that :func:`to_html` writes; the same for the same arguments."""
    options = checked_options(views=views, height=height, theme=theme, guided=bool(guided))
    comparison = against(trace, compare)
    heading = visible(title if title is not None else page_title(trace), limit=120)
    header = comparison_html = ""
    if views is None:
        header = f"<header><h1><bdi>{escape(heading)}</bdi></h1>{subtitle(trace)}</header>"
        comparison_html = comparison.html() if comparison else ""
    values = {
        "kind": "player",
        "options": options | {"standalone": True},
        "step": 0,
    }
    run = compressed(pack(project(trace, baseline_of(comparison))))
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy()}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta name="color-scheme" content="{_scheme(theme)}">\n'
        f'<meta name="generator" content="specviz {__version__}">\n'
        f"<title>{escape(heading)}</title>\n<style>{_PAGE_STYLE}</style>\n</head>\n"
        f'<body class="svp-body-{theme}">\n<main class="svp-page">\n{header}\n'
        f"{embedded(values, [run], _described(trace))}\n"
        f"<noscript>{coloured_html(trace, budget=SHOWN_WITHOUT_SCRIPT)}</noscript>\n"
        f'<div class="sv-trace sv-page svp-plain">{comparison_html}</div>\n'
        f"</main>\n{code()}\n</body>\n</html>\n"
    ).replace('<div class="sv-trace sv-page svp-plain"></div>\n', "")


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


def compressed(data: bytes) -> bytes:
    """Return bytes gzipped, the same for the same bytes."""
    return gzip.compress(data, LEVEL, mtime=0)


@cache
def policy(entry: str = PAGE_ENTRY) -> str:
    """Return the page's rules for the browser: its own two scripts, inline style, nothing else."""
    digests = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()}'"
        for code in (loader("page"), script(entry))
    )
    return (
        f"default-src 'none'; script-src {digests}; style-src 'unsafe-inline'; "
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


def _described(trace: Trace) -> str:
    return (
        f"Player of a run of speculative decoding: {len(trace.tokens)} tokens in {len(trace)} "
        f"target passes"
    )


def _scheme(theme: str) -> str:
    return "light dark" if theme == "auto" else theme


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
body.svp-body-dark { background: #15171c; color: #ececee; }
body.svp-body-dark header p { color: #adb2bc; }
@media (prefers-color-scheme: dark) {
  body.svp-body-auto { background: #15171c; color: #ececee; }
  body.svp-body-auto header p { color: #adb2bc; }
}
@media (max-width: 420px) { .svp-page { padding: 8px 4px; } .svp-page header h1 { font-size: 21px; } }
"""  # noqa: E501
