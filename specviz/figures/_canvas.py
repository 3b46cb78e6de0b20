"""What every figure needs of its back end: a canvas, and letters that stay letters."""

from __future__ import annotations

from functools import cache
from html import escape
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from specviz.figures.theme import Palette

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Letters stay letters in print: searchable, and set in the reader's own font.
_PRINT: Any = {"svg.fonttype": "none", "pdf.fonttype": 42}


def new_axes(inches: tuple[float, float], colours: Palette) -> Axes:
    """Return the Axes of a new figure; a notebook shows it, nothing else does."""
    from matplotlib import pyplot

    figure, ax = pyplot.subplots(figsize=inches, layout="constrained")
    figure.set_facecolor(colours.background)
    ax.set_facecolor(colours.background)
    return ax


def below(ax: Axes, points: float) -> Any:
    """Return where a legend goes whose upper edge is so many points below the axes."""
    from matplotlib.transforms import ScaledTranslation

    figure: Any = ax.get_figure(root=True)
    return ax.transAxes + ScaledTranslation(0, -points / 72, figure.dpi_scale_trans)


def save(what: Axes | Figure, path: str | PathLike[str]) -> Path:
    """Write a figure to a file, the format chosen by its suffix, whole or not at all.

    In SVG and PDF the letters stay text. Global settings of matplotlib are left as they are.

    Parameters
    ----------
    what : matplotlib Axes or Figure
        What to write.
    path : str or path
        As in ``overlap.svg``, ``.pdf`` or ``.png``.

    Returns
    -------
    Path
        Where it is.

    Raises
    ------
    ValueError
        If the suffix names no format that matplotlib writes.

    Examples
    --------
    >>> save(overlap(trace), "overlap.svg")  # doctest: +SKIP
    """
    import secrets

    from matplotlib import rc_context

    figure: Any = what if hasattr(what, "savefig") else what.get_figure(root=True)
    where = Path(path)
    known = figure.canvas.get_supported_filetypes()
    if where.suffix[1:] not in known:
        raise ValueError(f"path must end in one of {', '.join(sorted(known))}, got {path!r}")
    half = where.with_name(f".{where.stem}.{secrets.token_hex(4)}.tmp")
    try:
        with rc_context(_PRINT):
            figure.savefig(half, format=where.suffix[1:], dpi=200)
        half.replace(where)
    except BaseException:
        half.unlink(missing_ok=True)
        raise
    return where


def safe_text(text: str) -> str:
    r"""Return text that matplotlib draws as it is: no formulas, no letters its font lacks.

    Examples
    --------
    >>> safe_text("$x$")
    '\\$x\\$'
    """
    shown = "".join(c if _has_glyph(ord(c)) else f"⟨U+{ord(c):04X}⟩" for c in text)
    return shown.replace("$", r"\$")


def plotly_text(text: str) -> str:
    """Return text that plotly draws as it is: no tags, no formulas.

    Examples
    --------
    >>> plotly_text("<b>$x$")
    '&lt;b&gt;&#36;x&#36;'
    """
    return escape(text).replace("$", "&#36;")


@cache
def _has_glyph(code: int) -> bool:
    from matplotlib.font_manager import FontProperties, findfont, get_font

    return bool(get_font(findfont(FontProperties())).get_char_index(code))
