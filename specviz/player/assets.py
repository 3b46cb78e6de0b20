"""The player's script and style sheet, put together from their sources and gzipped for sending.

There is no bundler: the modules in ``js/`` import only each other, one import a line. Joining
them is writing each, after those it needs, as a function that returns what it exports; comments
and indentation are left out. The style sheet travels inside the script, as a string.

What is sent, once a page or widget, is :func:`packed`: about a quarter of the source's size. A
few lines of loader (``js/widget_loader.js``, ``js/page_loader.js``) unpack it.
"""

from __future__ import annotations

import gzip
import json
import re
from functools import cache
from importlib.resources import files

from specviz.figures.theme import DARK, LIGHT, variables

ENTRY, PAGE_ENTRY = "main.js", "standalone.js"
LAB, LAB_PAGE = "lab.js", "lab_page.js"
"""Entries of the widgets and of their pages: players and races; the editor and the watch."""

SHEETS = ("player.css", "views.css", "stage.css", "live.css")
LAB_SHEETS = ("player.css", "views.css", "editor.css", "watch.css")

_IMPORT = re.compile(r'^import (\{[^}]*\}) from "\./(\w+)\.js";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:const|function|async function) (\w+))", re.MULTILINE)
_DEFAULT = re.compile(r"^export default .*\n", re.MULTILINE)
_COMMENT = re.compile(r"^[ \t]*//.*\n|^[ \t]*/\*\*(?:[^*]|\*(?!/))*\*/[ \t]*\n?", re.MULTILINE)
_BLANK = re.compile(r"\n\s+")

# What a host calls its own colours: JupyterLab, else VS Code, else ours.
_HOST = {
    "background": ("--jp-layout-color1", "--vscode-editor-background"),
    "panel": ("--jp-layout-color2", "--vscode-sideBar-background"),
    "text": ("--jp-ui-font-color1", "--vscode-foreground"),
    "line": ("--jp-border-color1", "--vscode-panel-border"),
}


@cache
def script(entry: str = ENTRY) -> str:
    """Return the modules that ``entry`` needs, and the style sheet, as one module's source.

    Examples
    --------
    >>> script().rstrip().endswith("export default {render:m_main.render};")
    True
    >>> "import " in script(PAGE_ENTRY)
    False
    """
    parts = [f"const SVP_STYLE={json.dumps(style(entry))};\n"]
    _collect(entry, parts, [])
    name = entry.removesuffix(".js")
    if entry in (PAGE_ENTRY, LAB_PAGE):
        parts.append(f"m_{name}.mountAll();\n")
    else:
        parts.append(f"export default {{render:m_{name}.render}};\n")
    return "".join(parts)


@cache
def packed(entry: str = ENTRY) -> bytes:
    """Return :func:`script` gzipped: what a page or a widget is sent."""
    return gzip.compress(script(entry).encode(), 9, mtime=0)


@cache
def loader(name: str) -> str:
    """Return a loader's source: "widget" or "page"."""
    return _stripped(_source(f"js/{name}_loader.js"))


@cache
def saved_script() -> str:
    """Return what shows a widget's page in a notebook without a kernel; NAME is to be filled in."""
    return f"(()=>{{{_stripped(_source('js/saved_loader.js'))}}})();"


@cache
def style(entry: str = ENTRY) -> str:
    """Return an entry's style sheet: light and dark, the host's own colours where it has any."""
    sheets = LAB_SHEETS if entry in (LAB, LAB_PAGE) else SHEETS
    light, dark = _palette(LIGHT.__dict__), _palette(DARK.__dict__)
    host_is_dark = (
        '[data-jp-theme-light="false"] .svp-auto,.vscode-dark .svp-auto,'
        ".vscode-high-contrast:not(.vscode-high-contrast-light) .svp-auto"
    )
    host_is_unknown = "body:not([data-jp-theme-light]):not([data-vscode-theme-kind]) .svp-auto"
    # a host with JupyterLab's variables that does not say which theme they are of: mounting.js
    # looks at their colours, so that tints are of the same theme as text and background
    known = ".svp-host-{0}.svp-host-{0}.svp-host-{0} .svp-auto"
    return (
        f".svp{{{light}}}{host_is_dark}{{{dark}}}"
        f"@media screen and (prefers-color-scheme:dark){{{host_is_unknown}"
        f"{{{dark}color-scheme:dark}}}}"
        f"{known.format('light')}{{{light}color-scheme:light}}"
        f"{known.format('dark')}{{{dark}color-scheme:dark}}"
        f".svp.svp-light{{{variables(LIGHT)}}}"
        f".svp.svp-dark{{{variables(DARK)}}}"
        f"@media print{{html .svp.svp-auto.svp-auto.svp-auto.svp-auto{{{variables(LIGHT)}"
        "color-scheme:light}}\n" + "".join(_sheet(name) for name in sheets)
    )


def _source(name: str) -> str:
    return files("specviz.player").joinpath(name).read_text("utf-8")


def _collect(name: str, parts: list[str], done: list[str]) -> None:
    """Append a module, as a function's result, after those it imports."""
    if name in done:
        return
    done.append(name)
    source = _source(f"js/{name}")
    for _, needed in _IMPORT.findall(source):
        _collect(f"{needed}.js", parts, done)
    exported = ",".join(_EXPORT.findall(source))
    body = _IMPORT.sub(r"const \1 = m_\2;\n", source)
    body = _stripped(_DEFAULT.sub("", _EXPORT.sub("", body)))
    parts.append(f"const m_{name.removesuffix('.js')}=(()=>{{{body}return{{{exported}}};}})();\n")


def _stripped(source: str) -> str:
    """Return a source without comment lines and indentation (no template spans lines)."""
    return _BLANK.sub("\n", _COMMENT.sub("", source)).strip() + "\n"


def _sheet(name: str) -> str:
    text = re.sub(r"/\*.*?\*/", "", _source(f"css/{name}"), flags=re.DOTALL)
    return _BLANK.sub("\n", text).strip() + "\n"


def _palette(colours: dict[str, str]) -> str:
    hosted = "".join(
        f"--sv-{name}:var({jupyter},var({vscode},{colours[name]}));"
        for name, (jupyter, vscode) in _HOST.items()
    )
    own = "".join(f"--sv-{name.replace('_', '-')}:{value};" for name, value in colours.items())
    return own + hosted
