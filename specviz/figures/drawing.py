"""What every figure shares: back ends, themes, checks, and letters that stay letters.

A figure is one file in ``plots/``, with three functions:

- a public one under :func:`figure`, which checks its arguments and returns the numbers as a small
  dataclass: its docstring is the figure's;
- one that draws these numbers with matplotlib, ``draw(data, ax, look) -> Axes`` (or a Figure, where
  there are several panels);
- one that draws them with plotly, ``draw(data, look) -> go.Figure``, where a closer look helps.

``overlap(trace, theme="dark")`` then draws, ``overlap.data(trace)`` returns the numbers. What is
drawn has a ``caption`` (model, seed, settings, n) and an ``alt`` (the picture in words); notebooks
and saved files show both.
"""

from __future__ import annotations

import base64
import inspect
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial, wraps
from html import escape
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, Protocol, TypeVar, cast, overload

from markupsafe import Markup

from specviz._version import __version__
from specviz.core.atomic_writing import PAGES, checked_target, write_by, write_whole
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
DPI = 110
"""Of a picture inside a page or a notebook."""
_PRINT: Any = {"svg.fonttype": "none", "pdf.fonttype": 42}


@dataclass(frozen=True)
class Look:
    """A theme: colours, width and height of a new figure in inches, and the size of its letters."""

    colours: Palette
    inches: tuple[float, float]
    points: float
    fixed: bool = False
    """Whether the width is that of a page or a slide, however many panels there are."""
    column: bool = False
    """Whether it is so narrow that panels stand under each other."""

    def axes(self, ax: Axes | None = None) -> Axes:
        """Return the Axes to draw in: those given, or of a new figure, which nothing shows."""
        if ax is not None:
            return ax
        from matplotlib import pyplot

        figure, new = pyplot.subplots(figsize=self.inches, layout="constrained")
        figure.set_facecolor(self.colours.background)
        new.set_facecolor(self.colours.background)
        return new

    def panels(
        self,
        rows: int = 1,
        columns: int = 1,
        *,
        width: float = 1.0,
        height: float = 1.0,
        **how: Any,
    ) -> tuple[MatplotlibFigure, Any]:
        """Return a new figure, so many times the usual size, and its axes ``(rows, columns)``."""
        from matplotlib import pyplot

        shape = (rows, columns)
        if self.fixed:
            width = 1.0
        if self.column and columns > 1:
            rows, columns, height = rows * columns, 1, 0.85 * columns * height
            how.pop("width_ratios", None)
        size = (width * self.inches[0], height * self.inches[1])
        figure, axes = pyplot.subplots(
            rows, columns, figsize=size, layout="constrained", squeeze=False, **how
        )
        figure.set_facecolor(self.colours.background)
        for one in axes.flat:
            one.set_facecolor(self.colours.background)
        return figure, axes.reshape(shape)

    def blank(self, ax: Axes, width: float, height: float) -> None:
        """Make axes a sheet to draw boxes on: x to the right, y downwards, in any unit."""
        ax.set(xlim=(0, width), ylim=(height, 0), xticks=[], yticks=[])
        ax.axis("off")

    def words(self, **how: Any) -> dict[str, Any]:
        """Return how text stands in a figure: the theme's colour and size."""
        return {"color": self.colours.text, "fontsize": self.points, **how}

    def frame(self, ax: Axes, x: str, y: str = "", *, left: bool = False, **where: Any) -> None:
        """Name the axes and leave of their frame what helps to read them."""
        ax.set_xlabel(x, color=self.colours.text, fontsize=self.points, **where)
        if y:
            ax.set_ylabel(y, color=self.colours.text, fontsize=self.points)
        ticks: Any = {"colors": self.colours.muted, "labelsize": self.points}
        ticks["pad"] = 0.42 * self.points
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

    def heading(self, figure: MatplotlibFigure, text: str) -> None:
        """Write a title over all panels of a figure."""
        how = self.words(fontsize=1.1 * self.points)
        figure.suptitle(safe_text(text), x=0.01, ha="left", **how)

    def legend(self, ax: Axes, columns: int, **how: Any) -> None:
        """Put the legend below the axis and its name, at the same distance for every size."""
        from matplotlib.transforms import ScaledTranslation

        figure: Any = ax.get_figure(root=True)
        down = ScaledTranslation(0, -3.8 * self.points / 72, figure.dpi_scale_trans)
        ax.legend(
            loc="upper left", bbox_to_anchor=(0, 0), bbox_transform=ax.transAxes + down,
            ncols=columns, borderpad=0, borderaxespad=0, columnspacing=1.3, frameon=False,
            fontsize=self.points, labelcolor=self.colours.text, **how,
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
    "paper": Look(LIGHT, (5.4, 3.7), 9.0, True, column=True),  # no letters under 9 points
    "slide": Look(LIGHT, (11.0, 6.2), 16.0, True),  # 16:9
    "dark-slide": Look(DARK, (11.0, 6.2), 16.0, True),
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
    *,
    panels: bool = False,
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
    panels : bool
        Whether there are several panels, so that ``ax`` cannot be given.
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
                    raise ValueError(
                        f"{numbers.__name__} is drawn with matplotlib only; leave backend= out"
                    )
                if ax is not None:
                    raise ValueError("ax is for backend='matplotlib'; plotly makes a new figure")
            elif ax is not None:
                from matplotlib.axes import Axes

                if not isinstance(ax, Axes):
                    raise TypeError(f"ax must be matplotlib Axes, got {type(ax).__name__}")
                if panels:
                    only_panels(ax, numbers.__name__)
            data = numbers(*args, **settings)
            made = (
                draw(data, ax, look)
                if plotly is None or backend != "plotly"
                else plotly(data, look)
            )
            told = caption_of(data, (*args, *settings.values()))
            twin = None
            if ax is None and theme == "light":  # what a dark notebook shows instead
                twin = partial(draw, data, None, THEMES["dark"])
            return _described(made, told, alt_of(data, numbers.__doc__), ax is None, twin)

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


def caption_of(data: Any, given: Sequence[Any]) -> str:
    """Return what a reader needs to make the picture again: models, seed, settings, n, version."""
    from specviz.core.trace.trace import Trace
    from specviz.figures.summary import provenance

    said: list[str] = []
    for one in given:
        inside = one.values() if isinstance(one, Mapping) else one
        for each in inside if isinstance(inside, Iterable) else [one]:
            if isinstance(each, Trace):
                said.append(provenance(each))
        reports = getattr(one, "reports", None)
        if reports:  # of an audit
            count = sum(report.n for report in reports)
            said.append(f"audit of {one.subject} · {one.method} · seed {one.seed} · n = {count:,}")
        elif hasattr(one, "against") and hasattr(one, "n"):  # of a battery
            said.append(f"against {one.against} · n = {one.n:,}")
    said = list(dict.fromkeys(said))
    more = f"and {len(said) - 3} more runs" if len(said) > 3 else ""
    note = getattr(data, "note", "")
    return "; ".join(part for part in (*said[:3], more, note, f"specviz {__version__}") if part)


def alt_of(data: Any, doc: str | None) -> str:
    """Return a picture in words: what it is, its title, and what its numbers say."""
    what = (doc or "").partition("\n")[0].rstrip(".").removeprefix("Draw ")
    parts = [what[:1].upper() + what[1:], getattr(data, "title", ""), getattr(data, "alt", "")]
    return ". ".join(" ".join(part.split()) for part in parts if part)


def _described(
    made: Any, caption: str, alt: str, own: bool, twin: Callable[[], Any] | None
) -> Any:  # fmt: skip
    """Let a figure carry its caption and its words; in a notebook it shows them itself."""
    if hasattr(made, "write_html"):
        made.update_layout(meta={"caption": caption, "alt": alt})
        for name, text in (("caption", caption), ("alt", alt)):
            object.__setattr__(made, name, text)  # plotly allows no names but its own
        return made
    whole = made if hasattr(made, "savefig") else made.get_figure(root=True)
    for one in {id(made): made, id(whole): whole}.values():
        one.caption, one.alt = caption, alt
    if own:
        before, memory = whole.stale_callback, {"first": ""}

        def stale(figure: Any, value: bool) -> None:
            memory.setdefault("changed", "before it was shown")
            if before is not None:
                before(figure, value)

        whole.stale_callback = stale
        whole._repr_html_ = partial(in_notebook, whole, twin, memory, shown=True)
    return made


def in_notebook(
    drawn: Any, twin: Callable[[], Any] | None = None, memory: dict[str, str] | None = None, *,
    shown: bool = False,
) -> str:  # fmt: skip
    """Return a figure as HTML: its picture with words, and a dark one for a dark notebook.

    A figure that its reader has changed has no dark one, which would lack the change. ``memory``
    holds the first picture, to tell. A figure that is ``shown`` leaves pyplot's list, or a cell
    that ends in it would show it twice.
    """
    from matplotlib import pyplot

    from specviz.figures.templating import part

    memory = {} if memory is None else memory
    changed = "changed" in memory and not memory["first"]  # rendering itself counts as one later
    pictures = [_png(drawn)]
    memory["first"] = memory.get("first") or ("changed" if changed else pictures[0])
    if twin is not None and memory["first"] == pictures[0]:
        with pyplot.ioff():
            other = twin()
        other = other if hasattr(other, "savefig") else other.get_figure(root=True)
        pictures.append(_png(other))
        pyplot.close(other)
    if shown:
        pyplot.close(drawn)
    words = (getattr(drawn, name, "") for name in ("alt", "caption"))
    return str(part("figure.html").drawn(pictures, *words))


def _png(drawn: Any) -> str:
    """Return a matplotlib figure as a data URI."""
    held = io.BytesIO()
    drawn.savefig(held, format="png", dpi=DPI, facecolor=drawn.get_facecolor())
    return f"data:image/png;base64,{base64.b64encode(held.getvalue()).decode('ascii')}"


def only_panels(ax: Any, name: str) -> None:
    """Refuse ``ax`` where a figure has several panels."""
    if ax is not None:
        raise ValueError(f"ax is for figures of one panel; {name} makes a figure with several")


def save(what: Axes | MatplotlibFigure | go.Figure, path: str | PathLike[str]) -> Path:
    """Write a figure to a file, the format chosen by its suffix, whole or not at all.

    In SVG and PDF the letters stay text. A file carries the figure's caption and its words: as
    metadata, on a page as a caption and as alt text. Global settings of matplotlib are left as
    they are.

    Parameters
    ----------
    what : matplotlib Axes or Figure, or plotly Figure
        What to write.
    path : str or path
        As in ``overlap.svg``, ``.pdf``, ``.png`` or ``.html``, a page that asks for nothing from
        outside. A plotly figure is written as ``.html`` only.

    Returns
    -------
    Path
        Where it is.

    Raises
    ------
    TypeError, ValueError
        If it is no figure, or the suffix names no format that can be written.

    Examples
    --------
    >>> save(overlap(trace), "overlap.svg")  # doctest: +SKIP
    """
    if hasattr(what, "write_html"):
        where = checked_target(path, (".html", ".htm"))
        write_by(where, lambda half: what.write_html(half, include_plotlyjs=True, auto_play=False))
        return where
    if not (hasattr(what, "savefig") or hasattr(what, "get_figure")):
        raise TypeError(f"what must be a figure or its Axes, got {type(what).__name__}")
    from matplotlib import rc_context

    drawn: Any = what if hasattr(what, "savefig") else what.get_figure(root=True)
    known = sorted(f".{name}" for name in drawn.canvas.get_supported_filetypes())
    where = checked_target(path, [*known, *PAGES])
    kind = where.suffix[1:].lower()
    alt, caption = getattr(drawn, "alt", ""), getattr(drawn, "caption", "")
    if f".{kind}" in PAGES:
        from specviz.figures.templating import figure_page

        write_whole(where, figure_page([("", Markup(html_of(what)), "")], alt.partition(".")[0]))
        return where
    field = {"svg": "Description", "png": "Description", "pdf": "Subject"}.get(kind)
    told = {field: f"{alt} {caption}".strip()} if field and (alt or caption) else None
    with rc_context(_PRINT):
        write_by(where, lambda half: drawn.savefig(half, format=kind, dpi=200, metadata=told))
    return where


def html_of(what: Any) -> str:
    """Return a drawn figure as HTML: with its words, and for plotly with the script it needs."""
    if hasattr(what, "write_html"):
        return str(what.to_html(full_html=False, include_plotlyjs=True, auto_play=False))
    drawn = what if hasattr(what, "savefig") else what.get_figure(root=True)
    kept = getattr(drawn, "_repr_html_", None)
    known = kept.args if isinstance(kept, partial) else (drawn,)  # with its dark twin
    return in_notebook(*known)


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
