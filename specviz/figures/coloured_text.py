"""The text of a run, a line per round: what the draft said and what the target made of it.

This is how a trace shows itself: :func:`html` in a notebook and on a page, :func:`plain` in
``print(trace)``, :func:`ansi` in a terminal. No script; the templates escape every token.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from specviz.figures.marks import lines, marks_of
from specviz.figures.summary import judging, seconds, summary
from specviz.figures.templating import part
from specviz.figures.terminal import ansi, plain
from specviz.figures.theme import DARK, LIGHT, variables

if TYPE_CHECKING:
    from specviz.core.trace.trace import Trace

__all__ = ["ansi", "html", "plain", "summary"]

SHOWN = 900
"""How many tokens a notebook's output shows at most: about 300 kB."""

# What a host calls its own colours: JupyterLab, else VS Code, else ours.
_HOST = {
    "background": ("--jp-layout-color1", "--vscode-editor-background"),
    "panel": ("--jp-layout-color2", "--vscode-sideBar-background"),
    "text": ("--jp-ui-font-color1", "--vscode-foreground"),
    "line": ("--jp-border-color1", "--vscode-panel-border"),
}


def html(trace: Trace, *, budget: int | None = SHOWN) -> str:
    """Return the run as HTML: what a notebook shows for a trace.

    Parameters
    ----------
    trace : Trace
        The run.
    budget : int, optional
        About how many tokens to show at most; of longer runs the beginning and the end are shown,
        with a note between them. None shows all.

    Returns
    -------
    str
        One ``<div>`` with its own style, without script, safe whatever the tokens are.

    Examples
    --------
    >>> open("run.html", "w", encoding="utf-8").write(html(trace))  # doctest: +SKIP
    """
    card = part("run.html").card(
        style(), summary_rows(trace), shares_of_time(trace), trace.prompt_text,
        lines(trace, budget), judging(trace), marks_of(trace),
    )  # fmt: skip
    return str(card)


@cache
def style() -> Markup:
    """Return the style sheet: light, dark where the host or the reader asks for it."""
    light = variables(LIGHT) + _hosted(LIGHT.__dict__)
    dark = variables(DARK) + _hosted(DARK.__dict__)
    host_is_dark = (
        '[data-jp-theme-light="false"] .sv-trace,.vscode-dark .sv-trace,'
        ".vscode-high-contrast:not(.vscode-high-contrast-light) .sv-trace"
    )
    host_is_unknown = "body:not([data-jp-theme-light]):not([data-vscode-theme-kind]) .sv-trace"
    rules = files("specviz.figures").joinpath("trace.css").read_text("utf-8")
    return Markup(
        f".sv-trace{{{light}}}{host_is_dark}{{{dark}}}"
        f"@media (prefers-color-scheme:dark){{{host_is_unknown}{{{dark}}}}}\n{rules}"
    )


def _hosted(colours: dict[str, str]) -> str:
    """Return the custom properties that follow the host's theme, with our value last."""
    return "".join(
        f"--sv-{name}:var({jupyter},var({vscode},{colours[name]}));"
        for name, (jupyter, vscode) in _HOST.items()
    )


def summary_rows(trace: Trace) -> list[tuple[str, str]]:
    """Return the numbers of the run, without the time: a bar shows that."""
    return [(name, value) for name, value in summary(trace) if name != "time"]


def shares_of_time(trace: Trace) -> list[dict[str, Any]]:
    """Return what took time, how long and which share of the whole; nothing if nothing is known."""
    spent = {name: value for name, value in seconds(trace).items() if value > 0}
    whole = sum(spent.values())
    return [
        {"name": name, "seconds": value, "percent": 100 * value / whole}
        for name, value in spent.items()
    ]
