"""The text of a run, a line per round: what the draft said and what the target made of it.

This is how a trace shows itself: :func:`html` in a notebook and on a page, :func:`plain` in
``print(trace)``, :func:`ansi` in a terminal. No script; every token is escaped.
"""

from __future__ import annotations

from functools import cache
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING

from specviz.figures.escaping import visible
from specviz.figures.marks import Chip, Gap, Line, in_words, lines, marks_of
from specviz.figures.summary import duration, judging, seconds, summary
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
    how = judging(trace)
    rounds = "".join(
        gap_html(line) if isinstance(line, Gap) else _round(line, how)
        for line in lines(trace, budget)
    )
    return (
        f'<div class="sv-trace"><style>{style()}</style>'
        f"{summary_html(trace)}{prompt_html(trace)}"
        f'<div role="list" aria-label="Rounds">{rounds}</div>{legend_html(trace)}</div>'
    )


@cache
def style() -> str:
    """Return the style sheet: light, dark where the host or the reader asks for it."""
    light = variables(LIGHT) + _hosted(LIGHT.__dict__)
    dark = variables(DARK) + _hosted(DARK.__dict__)
    host_is_dark = (
        '[data-jp-theme-light="false"] .sv-trace,.vscode-dark .sv-trace,'
        ".vscode-high-contrast:not(.vscode-high-contrast-light) .sv-trace"
    )
    host_is_unknown = "body:not([data-jp-theme-light]):not([data-vscode-theme-kind]) .sv-trace"
    rules = files("specviz.figures").joinpath("trace.css").read_text("utf-8")
    return (
        f".sv-trace{{{light}}}{host_is_dark}{{{dark}}}"
        f"@media (prefers-color-scheme:dark){{{host_is_unknown}{{{dark}}}}}\n{rules}"
    )


def _hosted(colours: dict[str, str]) -> str:
    """Return the custom properties that follow the host's theme, with our value last."""
    return "".join(
        f"--sv-{name}:var({jupyter},var({vscode},{colours[name]}));"
        for name, (jupyter, vscode) in _HOST.items()
    )


def summary_html(trace: Trace) -> str:
    """Return the numbers of the run, and a bar that shows where its time went."""
    stats = "".join(
        f"<div{' class=sv-lossy' if 'lossy' in value else ''}>"
        f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>"
        for name, value in summary(trace)
        if name != "time"
    )
    return f'<dl class="sv-stats">{stats}</dl>{_time_bar(trace)}'


def _time_bar(trace: Trace) -> str:
    spent = {name: value for name, value in seconds(trace).items() if value > 0}
    whole = sum(spent.values())
    if not whole > 0:
        return ""
    parts = "".join(
        f'<i class="sv-{name}" style="flex:{100 * value / whole:.2f} 0 0"></i>'
        for name, value in spent.items()
    )
    told = " ".join(
        f'<span><i class="sv-{name}"></i>{name} {duration(value)} '
        f"({100 * value / whole:.0f}%)</span>"
        for name, value in spent.items()
    )
    return (
        f'<div class="sv-time" aria-hidden="true">{parts}</div>'
        f'<div class="sv-times">time: {told}</div>'
    )


def prompt_html(trace: Trace) -> str:
    """Return the prompt, cut if it is long."""
    text = escape(visible(trace.prompt_text, limit=600))
    return f'<div class="sv-prompt"><bdi>{text}</bdi></div>'


def legend_html(trace: Trace) -> str:
    """Return what the marks of the run mean."""
    items = "".join(
        f'<span role="listitem"><span class="sv-t {css_class(mark.name)}">'
        f'<span class="sv-g" aria-hidden="true">{mark.glyph}</span><bdi>{mark.name}</bdi></span> '
        f"{mark.meaning}</span>"
        for mark in marks_of(trace)
    )
    return f'<div class="sv-legend" role="list" aria-label="Legend">{items}</div>'


def css_class(mark: str) -> str:
    """Return the class of a mark, as in ``sv-acc``."""
    return f"sv-{'end' if mark == 'past the end' else mark[:3]}"


def chip_html(chip: Chip, how: str) -> str:
    """Return a token with its mark, a name for screen readers, and its evidence on hover."""
    tag = "del" if chip.mark.name == "rejected" else "span"
    before = '<span class="sv-or">|</span>' if chip.alternative else escape(chip.gap)
    return (
        f'{before}<{tag} class="sv-t {css_class(chip.mark.name)}" '
        f'title="{escape(in_words(chip, how))}">'
        f'<span class="sv-g" role="img" aria-label="{chip.mark.name}">{chip.mark.glyph}</span>'
        f"<bdi>{escape(chip.text)}</bdi></{tag}>"
    )


def line_html(line: Line, how: str) -> str:
    """Return a round's number and its tokens."""
    tokens = "".join(chip_html(chip, how) for chip in line.chips)
    return f'<span class="sv-n">{line.label}</span><span class="sv-line">{tokens}</span>'


def _round(line: Line, how: str) -> str:
    return f'<div class="sv-round" role="listitem">{line_html(line, how)}</div>'


def gap_html(gap: Gap) -> str:
    """Return the note that stands for rounds left out, and says how to see them."""
    return (
        f'<div class="sv-note" role="listitem">… {gap.many} not shown '
        f"({gap.first}–{gap.last}). trace.rounds has them all; "
        f"sv.to_html(trace, path) writes a page.</div>"
    )
