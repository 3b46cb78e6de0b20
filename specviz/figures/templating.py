"""Pages and parts of pages from Jinja2 templates: one base page, every value escaped.

The pattern, for every room that writes HTML:

- A whole page is ``render("base.html", …)``, or a template that extends it. It takes ``title``,
  ``policy`` (what the browser may load), ``style``, ``main_class``, ``main``, and if need be
  ``scheme``, ``body_class`` and ``code``.
- A part of a page is a macro: ``part("run.html").card(…)``.
- A part is :class:`~markupsafe.Markup`, so that it can stand inside another. Everything else that
  is handed to a template is plain ``str`` and is escaped. Only HTML, CSS and JavaScript of our own
  may be wrapped in ``Markup``; a token's text never is.
- A template of another room is named with it: ``render("lossless/report/templates/report.html")``.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from specviz._version import __version__
from specviz.core.formatting import format_duration, format_number
from specviz.figures.escaping import visible, word
from specviz.figures.marks import in_words, number, reading_runs

NOTHING_ELSE = Markup(
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
)
"""The policy of a page without scripts: its own style and nothing from anywhere."""


PAGE_STYLE = Markup("""
:root { color-scheme: light dark; }
body { font-family: system-ui, sans-serif; line-height: 1.45; }
main { max-width: 62em; margin: 2em auto; padding: 0 1em; }
pre { overflow-x: auto; } figure { margin: 1em 0; }
""")
POLICY = Markup(
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
    "form-action 'none'"
)
TABLE_STYLE = Markup("table{border-collapse:collapse}td,th{padding:.15em .7em;vertical-align:top}")


@cache
def environment() -> Environment:
    """Return the environment of all templates: escaping is on, a missing value is an error."""
    made = Environment(
        loader=ChoiceLoader(
            [PackageLoader("specviz.figures", "templates"), PackageLoader("specviz", "")]
        ),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    made.globals.update(version=__version__, code="", body_class="", main_class="", main="")
    made.filters.update(
        duration=format_duration,
        fixed=lambda value, places: f"{value:.{places}f}",
        format_number=format_number,
        in_words=in_words,
        number=number,
        percent=lambda share: f"{100 * min(1.0, max(0.0, share)) if share == share else 0:.1f}",
        runs=reading_runs,
        visible=visible,
        word=word,
    )
    return made


def render(template: str, **values: Any) -> str:
    """Return a filled-in template: a whole page.

    Examples
    --------
    >>> page = render("base.html", title="<b>", policy=NOTHING_ELSE, style="", main="a < b")
    >>> "<title>&lt;b&gt;</title>" in page, "a &lt; b" in page
    (True, True)
    """
    return environment().get_template(template).render(values)


def part(template: str) -> Any:
    """Return the macros of a template, each a function that returns HTML.

    Examples
    --------
    >>> str(part("run.html").given("one < two"))
    '<div class="sv-prompt"><bdi>one &lt; two</bdi></div>'
    """
    return environment().get_template(template).module


def figure_page(sections: Sequence[tuple[str, Markup, str]], title: str, subtitle: str = "") -> str:
    """Return a page of (heading, HTML, words); the HTML comes from figures and templates only."""
    shown = [(heading, Markup(content), words) for heading, content, words in sections]
    return render(
        "base.html", title=title, policy=POLICY, style=PAGE_STYLE + TABLE_STYLE,
        main=part("figure.html").page(title, subtitle, shown),
    )  # fmt: skip
