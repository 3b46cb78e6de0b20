"""The editor of one position as a page of its own: opens from disk, asks for nothing."""

from __future__ import annotations

from html import escape
from os import PathLike
from pathlib import Path
from typing import Any

from specviz._version import __version__
from specviz.figures.atomic_writing import PAGES, checked_target
from specviz.figures.escaping import visible
from specviz.figures.page import write_whole
from specviz.player.assets import LAB_PAGE
from specviz.player.editor_settings import editor_values
from specviz.player.page import _PAGE_STYLE, code, embedded, policy
from specviz.player.without_script import distribution_without_script

_TITLE = "Speculative decoding at one position"


def one_position_html(
    path: str | PathLike[str],
    p: Any = None,
    q: Any = None,
    labels: Any = None,
    *,
    preset: str | None = None,
    way: str = "one",
    fault: str | None = None,
    seed: int = 0,
    theme: str = "auto",
    height: int | None = None,
    title: str | None = None,
) -> Path:
    """Write the editor of one position as one self-contained page.

    The page opens from disk, offline, and asks the network for nothing; the draws are made in it.

    Parameters
    ----------
    path : str or path
        The file, by custom ``….html``; it is replaced as a whole or left as it was.
    p, q, labels, preset, way, fault, seed, theme, height, title
        As in :func:`specviz.one_position`.

    Returns
    -------
    Path
        Where the page is.

    Raises
    ------
    TypeError, ValueError
        If a distribution is none, or an argument is unknown, in one sentence.
    FileNotFoundError, IsADirectoryError
        If the folder of ``path`` does not exist, or ``path`` is a folder.

    Examples
    --------
    >>> one_position_html("position.html", preset="peaked")  # doctest: +SKIP
    """
    where = checked_target(path, PAGES)
    values = editor_values(
        p, q, labels, preset=preset, way=way, fault=fault, seed=seed, theme=theme, height=height,
        title=title,
    )  # fmt: skip
    write_whole(where, lab_page(values, values["options"]["title"] or _TITLE, _twin(values)))
    return where


def lab_page(values: dict[str, Any], title: str, twin: str) -> str:
    """Return a page of the second entry (the editor, the watch); ``twin`` is HTML for no script."""
    theme = values["options"]["theme"]
    scheme = "light dark" if theme == "auto" else theme
    told = values | {"options": values["options"] | {"standalone": True}}
    heading = escape(visible(title, limit=120))
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy(LAB_PAGE)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta name="color-scheme" content="{scheme}">\n'
        f'<meta name="generator" content="specviz {__version__}">\n'
        f"<title>{heading}</title>\n<style>{_PAGE_STYLE}</style>\n</head>\n"
        f'<body class="svp-body-{theme}">\n<main class="svp-page">\n'
        f"{embedded(told, [], title)}\n"
        f"<noscript><h1><bdi>{heading}</bdi></h1>{twin}</noscript>\n"
        f"</main>\n{code(LAB_PAGE)}\n</body>\n</html>\n"
    )


def _twin(values: dict[str, Any]) -> str:
    if values["words"]:
        return distribution_without_script(values["words"], values["p"], values["q"])
    return "<p>This page needs scripts: it is an editor, and what it draws is drawn in it.</p>"
