"""The import table of the house, and a checker that reads it off the source.

A *room* is a subpackage or module directly under ``specviz``. The checker parses every file and
judges each import by where it stands: at module level (also inside a class body, a ``try`` or an
``if``), or inside a function, where it runs only when that function is called. An import under
``if TYPE_CHECKING`` never runs; it counts as one inside a function.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

PACKAGE = "specviz"
READERS = ("lossless", "theory", "figures", "player", "recordings")  # right of the trace
MODEL_ROOMS = frozenset({"models", "decoding", "drafters", "api"})
DRAFTERS_MAY_USE = frozenset({"hf", "sampling"})  # modules of decoding
# What may be missing: (file, function) and the optional library it asks for there.
OPTIONAL: dict[tuple[str, str | None], str] = {
    ("core/trace/trace.py", "to_frame"): "pandas",
    ("player/film.py", "_mp4_writer"): "imageio_ffmpeg",
}
HEAVY = frozenset({"accelerate", "safetensors", "tokenizers", "torch", "torchao", "transformers"})

# What shows itself through figures: in its _repr_* methods, and in these.
SHOWS_ITSELF = {
    "core/trace/trace.py": ("__repr__", "__str__"),
    "core/trace/measures.py": ("__str__",),
    "core/trace/replay.py": ("__str__",),
    "lossless/exact/identity.py": (),
    "lossless/faults/power_table.py": (),
    "lossless/report/audit_report.py": ("plot", "to_html"),
    "lossless/report/battery_report.py": (),
}

# Our own rooms that each room may import (itself is always allowed).
# None: everything. The package itself, `from specviz import …`, counts as everything.
MAY_IMPORT: dict[str, frozenset[str] | None] = {
    "core": frozenset(),
    "exercises": frozenset(),
    "models": frozenset({"core"}),
    "decoding": frozenset({"core", "models"}),
    "drafters": frozenset({"core", "models", "decoding"}),
    "api": frozenset({"core", "models", "decoding", "drafters"}),
    **{room: frozenset({"core", *READERS[:i]}) for i, room in enumerate(READERS)},
    "models/training": None,
    "scale": None,
    "bench": None,
    "cli": None,
}


@dataclass(frozen=True)
class Import:
    """One imported module, and the place of the statement."""

    module: str  # dotted, absolute
    line: int
    function: str | None  # the outermost function it stands in, None at module level
    typing_only: bool

    @property
    def runs_on_import(self) -> bool:
        """Whether importing the file runs this statement."""
        return self.function is None and not self.typing_only


def violations(package: Path) -> list[str]:
    """Every import under `package` that the table forbids, as ``file:line: sentence``."""
    modules = module_names(package)
    found = []
    for path in sorted(package.rglob("*.py")):
        relative = path.relative_to(package)
        for item in imports(path, package, modules):
            sentence = _judge(relative, item)
            if sentence:
                found.append(f"{relative.as_posix()}:{item.line}: {sentence}")
    return found


def circle(package: Path) -> list[str]:
    """Return the modules of one circle of imports, the first twice; [] if there is none.

    Counted are all imports of our own modules: at module level, inside functions, for types. Not
    counted is what a file that shows itself imports in its methods: those offer what reads it.
    """
    modules = module_names(package)
    graph: dict[str, set[str]] = {}
    for path in sorted(package.rglob("*.py")):
        relative = path.relative_to(package)
        name = ".".join((package.name, *relative.with_suffix("").parts)).removesuffix(".__init__")
        offers = relative.as_posix() in SHOWS_ITSELF
        used = {
            item.module
            for item in imports(path, package, modules)
            if item.runs_on_import or not offers
        }
        graph[name] = used & modules - {name, package.name}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def room_of(relative: Path) -> str | None:
    """The room of a file given relative to the package; None for its top-level plumbing."""
    first = relative.parts[0].removesuffix(".py")
    if first.startswith("_"):
        return None  # __init__, __main__, _version
    if relative.parts[:2] == ("models", "training"):
        return "models/training"
    return first


def imports(path: Path, package: Path, modules: set[str]) -> Iterator[Import]:
    """Every import statement of a file, relative ones made absolute."""
    here = (package.name, *path.relative_to(package).parent.parts)
    yield from _walk(ast.parse(path.read_text("utf-8")), here, modules, None, False)


def _walk(
    node: ast.AST, here: tuple[str, ...], modules: set[str], function: str | None, typing: bool
) -> Iterator[Import]:
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield Import(alias.name, node.lineno, function, typing)
        return
    if isinstance(node, ast.ImportFrom):
        base = list(here[: len(here) + 1 - node.level]) if node.level else []
        base += node.module.split(".") if node.module else []
        for alias in node.names:
            inner = ".".join([*base, alias.name])
            # `from .figures import page` names a module, `from .core import Draft` a thing in one
            yield Import(
                inner if inner in modules else ".".join(base), node.lineno, function, typing
            )
        return
    if isinstance(node, ast.Call):
        name = _dynamic_import(node)
        if name:
            yield Import(name, node.lineno, function, typing)
    if isinstance(node, ast.If) and _is_type_checking(node.test):
        for child in node.body:
            yield from _walk(child, here, modules, function, True)
        for child in node.orelse:
            yield from _walk(child, here, modules, function, typing)
        return
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        function = function or node.name
    elif isinstance(node, ast.Lambda):
        function = function or "<lambda>"
    for child in ast.iter_child_nodes(node):
        yield from _walk(child, here, modules, function, typing)


def _dynamic_import(call: ast.Call) -> str | None:
    """The module named in ``import_module("…")`` or ``__import__("…")``."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if name not in ("import_module", "__import__") or not call.args:
        return None
    first = call.args[0]
    return first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else None


def _is_type_checking(test: ast.expr) -> bool:
    return "TYPE_CHECKING" in (getattr(test, "id", None), getattr(test, "attr", None))


def module_names(package: Path) -> set[str]:
    """Dotted names of all modules and packages in the tree."""
    names = {package.name}
    for path in package.rglob("*.py"):
        parts = path.relative_to(package).with_suffix("").parts
        names.add(".".join((package.name, *parts)).removesuffix(".__init__"))
        names.update(".".join((package.name, *parts[:i])) for i in range(1, len(parts)))
    return names


def _judge(relative: Path, item: Import) -> str | None:
    """One sentence when this import is forbidden in this file, else None."""
    room = room_of(relative)
    top = item.module.split(".")[0]
    if room is None:
        if top in HEAVY and item.runs_on_import:
            return f"the package's own start may not import {top}"
        return None
    if room not in MAY_IMPORT:
        return f"{room!r} is not a room of the import table"
    allowed = MAY_IMPORT[room]
    if allowed is None:
        return None
    reader = room in READERS
    if top != PACKAGE:
        if OPTIONAL.get((relative.as_posix(), item.function)) == top:
            return None
        return _judge_foreign(room, top, item, reader)

    parts = item.module.split(".")
    other = room_of(Path(*parts[1:])) if len(parts) > 1 else None
    if other == room or other in allowed or parts[1:] == ["_version"]:
        return _judge_module(room, parts)
    if _shows_itself(relative, parts, item):
        return None
    if reader and other in MODEL_ROOMS and not item.runs_on_import:
        return None
    where = "" if item.function is None else f" (in {item.function}())"
    return f"{room} may not import {item.module}{where}"


def _judge_foreign(room: str, top: str, item: Import, reader: bool) -> str | None:
    """Other people's libraries: numpy only in core, torch never at module level in a reader."""
    if room == "core":
        return None if top == "numpy" or _is_stdlib(top) else f"core may not import {top}"
    if reader and top in HEAVY and item.runs_on_import:
        return f"{room} may import {top} only inside a function"
    return None


def _judge_module(room: str, parts: list[str]) -> str | None:
    """Drafters see two parts of decoding, not its loop; nobody in models sees training."""
    if room == "drafters" and parts[1] == "decoding" and not DRAFTERS_MAY_USE & set(parts[2:3]):
        return f"drafters may import of decoding only {', '.join(sorted(DRAFTERS_MAY_USE))}"
    return None


def _shows_itself(relative: Path, parts: list[str], item: Import) -> bool:
    """The one exception: what shows itself does so through figures, when asked to."""
    asked = SHOWS_ITSELF.get(relative.as_posix())
    return (
        asked is not None
        and parts[1] == "figures"
        and item.function is not None
        and (item.function in asked or item.function.startswith("_repr_"))
    )


def _is_stdlib(top: str) -> bool:
    return top in sys.stdlib_module_names or top == "__future__"
