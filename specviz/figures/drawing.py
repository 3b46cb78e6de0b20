"""What every figure shares: back ends, themes, checks, and letters that stay letters.

A figure is one file in ``plots/``, with three functions:

- a public one under :func:`figure`, which checks its arguments and returns the numbers as a small
  dataclass: its docstring is the figure's;
- one that draws these numbers with matplotlib, ``draw(data, ax, look) -> Axes`` (or a Figure, where
  there are several panels);
- one that draws them with plotly, ``draw(data, look) -> go.Figure``, where a closer look helps.

``overlap(trace, theme="dark")`` then draws, ``overlap.data(trace)`` returns the numbers.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, wraps
from html import escape
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, Protocol, TypeVar, cast, overload

from specviz.core.atomic_writing import checked_target, write_by
from specviz.core.checks import one_of
from specviz.figures.theme import DARK, LIGHT, Palette

if TYPE_CHECKING:
    import plotly.graph_objects as go
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as MatplotlibFigure

P = ParamSpec("P")
D = TypeVar("D")
DataT = TypeVar("DataT", covariant=True)
DrawnT = TypeVar("DrawnT", covariant=True)

# Letters stay letters in print: searchable, and set in the reader's own font.
_PRINT: Any = {"svg.fonttype": "none", "pdf.fonttype": 42}


@dataclass(frozen=True)
class Look:
    """A theme: colours, width and height of a new figure in inches, and the size of its letters."""

    colours: Palette
    inches: tuple[float, float]
    points: float

    def axes(self, ax: Axes | None = None) -> Axes:
        """Return the Axes to draw in: those given, or of a new figure, which nothing shows."""
        if ax is not None:
            return ax
        from matplotlib import pyplot

        figure, new = pyplot.subplots(figsize=self.inches, layout="constrained")
        figure.set_facecolor(self.colours.background)
        new.set_facecolor(self.colours.background)
        return new

    def frame(self, ax: Axes, x: str, y: str = "", *, left: bool = False, **where: Any) -> None:
        """Name the axes and leave of their frame what helps to read them."""
        ax.set_xlabel(x, color=self.colours.text, fontsize=self.points, **where)
        if y:
            ax.set_ylabel(y, color=self.colours.text, fontsize=self.points)
        ticks: Any = {"colors": self.colours.muted, "labelsize": self.points}
        ax.tick_params(which="both", length=2 if left else 0, **ticks)
        ax.spines[["top", "right"]].set_visible(False)
        ax.spines["left"].set_visible(left)
        ax.spines[["bottom", "left"]].set_color(self.colours.line)
        if not left:  # rows with names
            ax.tick_params(axis="y", labelcolor=self.colours.text)

    def title(self, ax: Axes, text: str, **how: Any) -> None:
        """Write a title of one or more lines, as it is."""
        ax.set_title(
            safe_text(text), loc="left", color=self.colours.text,
            **{"fontsize": self.points, **how},
        )  # fmt: skip

    def legend(self, ax: Axes, columns: int, **how: Any) -> None:
        """Put the legend below the axis and its name, at the same distance for every size."""
        from matplotlib.transforms import ScaledTranslation

        figure: Any = ax.get_figure(root=True)
        down = ScaledTranslation(0, -3.8 * self.points / 72, figure.dpi_scale_trans)
        ax.legend(
            loc="upper left", bbox_to_anchor=(0, 0), bbox_transform=ax.transAxes + down,
            ncols=columns, borderpad=0, borderaxespad=0, columnspacing=1.3, frameon=False,
            fontsize=0.95 * self.points, labelcolor=self.colours.text, **how,
        )  # fmt: skip

    def plotly(self, figure: go.Figure, **layout: Any) -> go.Figure:
        """Give a plotly figure the theme's colours and letters."""
        font = {"size": 1.3 * self.points, "color": self.colours.text}
        figure.update_layout(
            font=font, paper_bgcolor=self.colours.background, plot_bgcolor=self.colours.background,
            legend={"orientation": "h", "y": -0.15}, bargap=0.3,
        )  # fmt: skip
        figure.update_xaxes(gridcolor=self.colours.line)
        return figure.update_layout(**layout)


THEMES = {
    "light": Look(LIGHT, (6.4, 4.3), 10.0),
    "dark": Look(DARK, (6.4, 4.3), 10.0),
    "paper": Look(LIGHT, (5.4, 3.7), 9.0),  # a column; no letters under 8.5 points
    "slide": Look(LIGHT, (11.0, 6.2), 16.0),  # 16:9
    "dark-slide": Look(DARK, (11.0, 6.2), 16.0),
}

_SHARED = """\
ax : matplotlib Axes, optional
    Where to draw; by default a new figure.
backend : {"matplotlib", "plotly"}
    For print, or for looking closer.
theme : {"light", "dark", "paper", "slide", "dark-slide"}
    Colours, and the size of a new figure and of its letters.
"""


class Figure(Protocol[P, DataT, DrawnT]):
    """A figure: call it to draw, ask its ``data`` for the numbers."""

    __name__: str

    @overload
    def __call__(
        self, *args: Any, backend: Literal["plotly"], theme: str = ..., **settings: Any
    ) -> go.Figure: ...
    @overload
    def __call__(
        self, *args: Any, ax: Axes | None = ..., backend: Literal["matplotlib"] = ...,
        theme: str = ..., **settings: Any,
    ) -> DrawnT: ...  # fmt: skip

    def data(self, *args: P.args, **settings: P.kwargs) -> DataT:
        """Return what the figure shows, without drawing it."""
        ...


def figure(
    draw: Callable[[D, Axes | None, Look], DrawnT],
    plotly: Callable[[D, Look], go.Figure] | None = None,
) -> Callable[[Callable[P, D]], Figure[P, D, DrawnT]]:
    """Make a figure of a function that returns its numbers.

    The figure takes the function's arguments and ``ax``, ``backend`` and ``theme``. They are
    checked first; nothing is shown, and matplotlib's settings stay as they are.

    Parameters
    ----------
    draw : callable
        ``draw(data, ax, look)`` draws with matplotlib, in new axes where ``ax`` is None.
    plotly : callable, optional
        ``plotly(data, look)`` returns a plotly figure.
    """

    def decorated(numbers: Callable[P, D]) -> Figure[P, D, DrawnT]:
        @wraps(numbers)
        def drawn(
            *args: Any, ax: Any = None, backend: str = "matplotlib", theme: str = "light",
            **settings: Any,
        ) -> Any:  # fmt: skip
            one_of("backend", backend, ("matplotlib", "plotly"))
            look = THEMES[one_of("theme", theme, THEMES)]
            if backend == "plotly":
                if plotly is None:
                    raise ValueError(f"{numbers.__name__} has no plotly version")
                if ax is not None:
                    raise ValueError("ax is for backend='matplotlib'; plotly makes a new figure")
            elif ax is not None:
                from matplotlib.axes import Axes

                if not isinstance(ax, Axes):
                    raise TypeError(f"ax must be matplotlib Axes, got {type(ax).__name__}")
            data = numbers(*args, **settings)
            if backend == "plotly":
                assert plotly is not None
                return plotly(data, look)
            return draw(data, ax, look)

        own = inspect.signature(numbers)
        shared = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default)
            for name, default in (("ax", None), ("backend", "matplotlib"), ("theme", "light"))
        ]
        made = cast(Any, drawn)
        made.__signature__ = own.replace(parameters=[*own.parameters.values(), *shared])
        said, returns, rest = inspect.cleandoc(numbers.__doc__ or "").partition("\nReturns\n")
        made.__doc__ = f"{said}{_SHARED}{returns}{rest}"
        made.data = numbers
        return cast("Figure[P, D, DrawnT]", drawn)

    return decorated


def only_panels(ax: Any, name: str) -> None:
    """Refuse ``ax`` where a figure has several panels."""
    if ax is not None:
        raise ValueError(f"ax is for figures of one panel; {name} makes a figure with several")


def save(what: Axes | MatplotlibFigure | go.Figure, path: str | PathLike[str]) -> Path:
    """Write a figure to a file, the format chosen by its suffix, whole or not at all.

    In SVG and PDF the letters stay text. Global settings of matplotlib are left as they are.

    Parameters
    ----------
    what : matplotlib Axes or Figure, or plotly Figure
        What to write.
    path : str or path
        As in ``overlap.svg``, ``.pdf`` or ``.png``; a plotly figure as ``.html``, a page that asks
        for nothing from outside.

    Returns
    -------
    Path
        Where it is.

    Raises
    ------
    ValueError
        If the suffix names no format that can be written.

    Examples
    --------
    >>> save(overlap(trace), "overlap.svg")  # doctest: +SKIP
    """
    if hasattr(what, "write_html"):
        where = checked_target(path, (".html", ".htm"))
        write_by(where, lambda half: what.write_html(half, include_plotlyjs=True))
        return where
    from matplotlib import rc_context

    drawn: Any = what if hasattr(what, "savefig") else what.get_figure(root=True)
    known = sorted(f".{name}" for name in drawn.canvas.get_supported_filetypes())
    where = checked_target(path, known)
    with rc_context(_PRINT):
        write_by(where, lambda half: drawn.savefig(half, format=where.suffix[1:].lower(), dpi=200))
    return where


def safe_text(text: str) -> str:
    r"""Return text that matplotlib draws as it is: no formulas, no letters its font lacks.

    Examples
    --------
    >>> safe_text("$x$")
    '\\$x\\$'
    """
    shown = "".join(c if c == "\n" or _has_glyph(ord(c)) else f"⟨U+{ord(c):04X}⟩" for c in text)
    return shown.replace("$", r"\$")


def plotly_text(text: str) -> str:
    """Return text that plotly draws as it is, line by line: no tags, no formulas.

    Examples
    --------
    >>> plotly_text("<b>$x$")
    '&lt;b&gt;&#36;x&#36;'
    """
    return escape(text).replace("$", "&#36;").replace("\n", "<br>")


@cache
def _has_glyph(code: int) -> bool:
    from matplotlib.font_manager import FontProperties, findfont, get_font

    return bool(get_font(findfont(FontProperties())).get_char_index(code))
