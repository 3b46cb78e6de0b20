"""The player in a notebook: an anywidget over the same script as the page."""

from __future__ import annotations

import base64
import hashlib
import secrets
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import anywidget
import ipywidgets
import traitlets
from ipywidgets import widget_serialization
from markupsafe import Markup

from specviz.figures.coloured_text import plain
from specviz.figures.comparison import Comparison
from specviz.figures.page import against
from specviz.figures.templating import render
from specviz.player.assets import (
    ENTRY,
    LAB,
    LAB_PAGE,
    PAGE_ENTRY,
    loader,
    packed,
    saved_script,
)
from specviz.player.options import (
    baseline_of,
    checked_options,
    checked_runs,
    checked_trace,
    checked_tree,
)
from specviz.player.page import compressed, described, document, embedded, parts, race_words
from specviz.player.projection import pack, project
from specviz.player.steps.run import indexed

if TYPE_CHECKING:
    from specviz.core.trace.trace import Trace

"""How many runs a race may have."""

NOT_OF_THE_PAGE = ("script", "digest", "data", "name", "layout", "tabbable", "tooltip", "comm")
"""What a model has and its page has not."""

_by_cell: dict[tuple[str, str], Widget] = {}


class Script(ipywidgets.Widget):  # type: ignore[misc]  # no types there
    """The player's script and style sheet, gzipped; made by :func:`shared_script`."""

    code = traitlets.Bytes().tag(sync=True)
    digest = traitlets.Unicode().tag(sync=True)

    def __init__(self, entry: str = ENTRY) -> None:
        code = packed(entry)
        super().__init__(code=code, digest=hashlib.sha256(code).hexdigest())


_shared: dict[str, Script] = {}


def shared_script(entry: str = ENTRY) -> Script:
    """Return an entry's script in this kernel, made anew whenever the last one was closed.

    Examples
    --------
    >>> shared_script() is shared_script()
    True
    """
    if entry not in _shared or _shared[entry].comm is None:
        _shared[entry] = Script(entry)
    return _shared[entry]


class Widget(anywidget.AnyWidget):
    """What every widget of ours has: the script, its data, and a twin that needs neither.

    ``kind`` says what the script mounts; ``data`` is a list of gzipped, packed runs; ``options``
    are plain JSON values. ``script`` is the one model that carries the script for all of them;
    a front end that cannot look it up asks for it by the message ``{"ask": "script"}``.
    """

    entry = ENTRY
    _esm = loader("widget")
    script = traitlets.Instance(Script).tag(sync=True, **widget_serialization)
    digest = traitlets.Unicode().tag(sync=True)
    kind = traitlets.Unicode("player").tag(sync=True)
    data = traitlets.List(trait=traitlets.Bytes()).tag(sync=True)
    options = traitlets.Dict().tag(sync=True)

    def __init__(self, **values: Any) -> None:
        script = shared_script(self.entry)
        super().__init__(script=script, digest=script.digest, **values)
        self.on_msg(_send_script)

    def plain_text(self) -> str:
        """Return what is shown where there are no widgets."""
        return f"<{type(self).__name__}>"

    def picture(self) -> bytes | None:
        """Return a PNG of it, or None."""
        return None

    def _repr_mimebundle_(self, **options: Any) -> Any:
        made = super()._repr_mimebundle_(**options)
        if made is None:
            return None
        data, metadata = made if isinstance(made, tuple) else (made, {})
        data = dict(data) | {"text/plain": self.plain_text()}
        picture = self.picture()
        if picture is not None:
            data["image/png"] = _base64(picture)
        return data, metadata


class PlayableWidget(Widget):
    """A widget that plays without a kernel: its output carries it as a page of its own.

    A notebook that is saved and opened again has no kernel to ask for the widget. So a cell shows
    two outputs: the page (hidden while the widget lives) and the widget. Hosts that take scripts
    away show the page's picture.
    """

    page_height = 760
    """Pixels of the page in a saved notebook, where no height was asked for."""

    name = traitlets.Unicode().tag(sync=True)
    """Of the page beside it."""

    def __init__(self, **values: Any) -> None:
        super().__init__(name=secrets.token_hex(8), **values)

    def described(self) -> str:
        """Return in a few words what there is to see."""
        return "Speculative decoding, step by step"

    def page(self) -> str:
        """Return it as a self-contained page that needs no kernel."""
        entry = {ENTRY: PAGE_ENTRY, LAB: LAB_PAGE}[self.entry]
        own = {trait for trait in self.keys if not trait.startswith("_")} - set(NOT_OF_THE_PAGE)
        values = {trait: getattr(self, trait) for trait in own}
        values["options"] = self.options | {"standalone": True}
        host = embedded(values, self.data, self.described())
        main = Markup(parts().player(self.described(), "", host, "", ""))
        return document(self.described(), self.options["theme"], main, bare=True, entry=entry)

    def saved(self) -> dict[str, str]:
        """Return the output for a notebook without a kernel, by media type."""
        picture, alt = self.picture(), f"{self.described()}.\n{self.plain_text()}"
        html = render(
            "player/templates/saved.html",
            name=self.name,
            picture="" if picture is None else f"data:image/png;base64,{_base64(picture)}",
            alt=alt,
            title=self.described(),
            height=self.options.get("height") or self.page_height,
            page=self.page(),
            script=Markup(saved_script().replace("NAME", self.name)),
        )
        out = {"text/html": html, "text/plain": self.plain_text()}
        return out if picture is None else out | {"image/png": _base64(picture)}

    def _ipython_display_(self, **options: Any) -> None:
        """Show the page and the widget; where outputs cannot see each other, the widget alone."""
        from IPython.display import display

        bundle = self._repr_mimebundle_(**options)
        if bundle is None:
            return
        data, metadata = bundle
        if "google.colab" not in sys.modules:
            display(self.saved(), raw=True)  # type: ignore[no-untyped-call]
            data = {kind: data[kind] for kind in data if kind.startswith("application/")}
            data["text/plain"] = ""
        display(data, metadata=metadata, raw=True)  # type: ignore[no-untyped-call]


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


class Player(PlayableWidget):
    """A trace being played; made by :func:`play`.

    It begins at the round that explains most. ``step`` and ``round`` follow what the reader does,
    once an act is done (nothing is sent while it plays), and can be set: ``player.round = 3`` goes
    to the beginning of round 3.

    Parameters
    ----------
    trace : Trace
        The run.
    options : dict, optional
        From :func:`specviz.player.options.checked_options`.
    baseline : dict, optional
        ``{"seconds": per token, "measured": True}`` of the target alone.
    """

    step = traitlets.Int(0).tag(sync=True)
    round = traitlets.Int(0).tag(sync=True)

    def __init__(
        self,
        trace: Trace,
        options: dict[str, Any] | None = None,
        baseline: dict[str, Any] | None = None,
    ) -> None:
        self.trace = trace
        projection = project(trace, baseline)
        run, opening = compressed(pack(projection)), projection.header["opening"]
        super().__init__(
            kind="player",
            data=[run],
            options=options or checked_options(),
            round=opening,
            step=int(indexed(projection).first_step[opening]) if len(trace) else 0,
        )

    def described(self) -> str:
        """Return in a few words what there is to see."""
        return described(self.trace)

    def plain_text(self) -> str:
        """Return the coloured text without its colours."""
        return plain(self.trace)

    def picture(self) -> bytes | None:
        """Return a PNG of p against q at the first rejection, or of the first proposal."""
        return picture_of(self.trace)


class Race(PlayableWidget):
    """Several traces side by side on one clock; made by :func:`race`."""

    page_height = 460

    def __init__(self, traces: Sequence[Trace], options: dict[str, Any] | None = None) -> None:
        self.traces = list(traces)
        runs = [compressed(pack(project(trace))) for trace in self.traces]
        told = (options or checked_options()) | race_words(self.traces)
        super().__init__(kind="race", data=runs, options=told)

    def described(self) -> str:
        """Return in a few words what there is to see."""
        return f"Race of {len(self.traces)} runs on one clock of measured time"

    def plain_text(self) -> str:
        """Return a line per run: what it is, its tokens, passes and time."""
        from specviz.core.formatting import format_duration
        from specviz.figures.summary import run_label as label
        from specviz.figures.summary import seconds

        return "\n".join(
            f"{label(trace)}: {len(trace.tokens)} tokens in {len(trace)} target passes, "
            f"{format_duration(sum(seconds(trace).values()))}"
            for trace in self.traces
        )

    def picture(self) -> bytes | None:
        """Return a PNG of the race at its end: names, tokens, passes, times and bars."""
        from specviz.player.still import race_picture

        return race_picture(self.traces, str(self.options.get("theme", "light")))


def play(
    trace: Trace,
    *,
    guided: bool = True,
    views: Sequence[str] | None = None,
    height: int | None = None,
    theme: str = "auto",
    title: str | None = None,
    compare: Trace | Comparison | None = None,
) -> Player:
    """Play a trace in a notebook.

    Running a cell again closes the player that the same cell made before.

    Parameters
    ----------
    trace : Trace
        The run.
    guided : bool
        Whether captions explain each step ("g" switches them).
    views : sequence of str, optional
        Exactly which views to show, of ``text phase bars draw caches lanes measures tree``; by
        default the stage, all others behind "Details".
    height : int, optional
        Height in pixels; by default as high as it needs.
    theme : str
        "light", "dark", or "auto" for the notebook's.
    title : str, optional
        A line above it; by default the method.
    compare : Trace or Comparison, optional
        A run of the target alone, for the lanes of time and the speed-up.

    Raises
    ------
    TypeError, ValueError
        If an argument is of another kind or unknown, in one sentence.

    Examples
    --------
    >>> player = play(trace, guided=True)  # doctest: +SKIP
    >>> player.round = 3  # doctest: +SKIP
    """
    checked_trace(trace)
    options = checked_options(views=views, height=height, theme=theme, guided=guided, title=title)
    checked_tree(views, trace)
    player = Player(trace, options, baseline_of(against(trace, compare)))
    replace_in_cell(player)
    return player


def race(
    traces: Sequence[Trace],
    *,
    height: int | None = None,
    theme: str = "auto",
    title: str | None = None,
) -> Race:
    """Let several traces run side by side, on one clock of their own measured times.

    Parameters
    ----------
    traces : sequence of Trace
        Two to eight runs: speculative against target-only, or methods against each other.
    height, theme, title
        As in :func:`play`.

    Raises
    ------
    TypeError, ValueError
        If they are no traces, too few or too many, or one has no measured times.

    Examples
    --------
    >>> race([trace, plain])  # doctest: +SKIP
    """
    options = checked_options(height=height, theme=theme, title=title)
    replaced = Race(checked_runs(traces), options)
    replace_in_cell(replaced)
    return replaced


def replace_in_cell(widget: Widget) -> None:
    """Close the widget that the running notebook cell made before; remember this one."""
    cell = _cell()
    if cell is None:
        return
    key = (cell, type(widget).__name__)
    close_in_cell(type(widget))
    _by_cell[key] = widget


def close_in_cell(kind: type[Widget]) -> Widget | None:
    """Close the widget of this kind that the running notebook cell made before; return it."""
    old = _by_cell.pop((_cell() or "", kind.__name__), None)
    if old is not None:
        if old.layout is not None:
            old.layout.close()
        old.close()
    return old


def _send_script(widget: Widget, content: Any, buffers: Any) -> None:
    """Answer a front end that has no way to look a model up."""
    if isinstance(content, dict) and content.get("ask") == "script":
        widget.send({"script": widget.digest}, [widget.script.code])


def _cell() -> str | None:
    """Return the id of the cell that is running, where a notebook tells it."""
    ipython = sys.modules.get("IPython")
    shell: Any = ipython.get_ipython() if ipython is not None else None
    try:
        found = shell.get_parent()["metadata"].get("cellId")
    except (AttributeError, KeyError, TypeError):
        return None
    return found if isinstance(found, str) else None


def picture_of(trace: Trace) -> bytes | None:
    """Return a PNG of the player at the first rejection; None of a run without rounds."""
    from specviz.player.picture.layout import pictured
    from specviz.player.projection import run_of
    from specviz.player.steps.frames import chosen, frame_at, step_of
    from specviz.player.still import default_views, pixels

    if not len(trace):
        return None
    run = run_of(trace)
    frame = frame_at(run, step_of(run, chosen(run)))
    return pixels(pictured(run, frame, default_views(run), 1000), "light", 1.0)
