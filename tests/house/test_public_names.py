"""`import specviz as sv` gives every public name, and costs next to nothing."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import specviz as sv

NAMES = [name for name in sv.__all__ if name != "__version__"]
HEAVY = ("torch", "transformers", "tokenizers", "matplotlib", "scipy", "pandas", "plotly", "tqdm")


@pytest.mark.parametrize("name", NAMES)
def test_a_public_name_exists_and_is_documented(name: str) -> None:
    thing = getattr(sv, name)
    doc = inspect.getdoc(thing)
    assert doc and len(doc.split()) >= 5, f"sv.{name} needs a docstring that says what it is"
    if isinstance(thing, type):  # a dataclass without one gets its signature as a docstring
        assert not doc.startswith(f"{thing.__name__}(")
    if not isinstance(thing, ModuleType):
        assert thing.__name__ == name
        assert thing.__module__.startswith("specviz.")


@pytest.mark.parametrize("room", ["figures", "lossless", "tabular", "theory", "rules"])
def test_the_public_names_of_a_room_are_documented(room: str) -> None:
    module = getattr(sv, room)
    names = getattr(module, "__all__", None) or own_names(module)
    assert names
    for name in names:
        assert inspect.getdoc(getattr(module, name)), f"sv.{room}.{name} has no docstring"


def own_names(module: ModuleType) -> list[str]:
    """Public functions and classes that a module without ``__all__`` defines itself."""
    things = vars(module).items()
    return [n for n, t in things if n[0] != "_" and getattr(t, "__module__", "") == module.__name__]


def test_the_version_is_the_installed_one() -> None:
    from importlib.metadata import version

    assert sv.__version__ == version("specviz")


def test_dir_lists_the_public_names_before_any_is_used() -> None:
    assert run("import specviz; print(*dir(specviz))").split() == sorted(sv.__all__)


def test_type_checkers_see_what_is_loaded_lazily(root: Path) -> None:
    """`_HOMES` and the imports under TYPE_CHECKING are the same table, written twice."""
    tree = ast.parse((root / "specviz" / "__init__.py").read_text("utf-8"))
    (block,) = (n for n in tree.body if isinstance(n, ast.If))
    seen = {
        alias.name: f"{node.module}.{alias.name}"
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    lazy = {name: home.replace(":", ".") for name, home in sv._HOMES.items()}
    assert seen == lazy
    assert sorted([*lazy, "__version__"]) == sorted(sv.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'no_such_name'"):
        _ = sv.no_such_name  # type: ignore[attr-defined]


def test_importing_the_package_loads_nothing_heavy() -> None:
    loaded = run("import specviz, sys; print(*sys.modules)").split()
    assert "specviz" in loaded
    assert not set(HEAVY) & set(loaded)


def test_the_evidence_loads_without_models_and_plots() -> None:
    loaded = run("import specviz, sys; specviz.Trace, specviz.rules; print(*sys.modules)").split()
    assert "specviz.core.rules" in loaded
    assert not set(HEAVY) & set(loaded)


def run(code: str) -> str:
    """What a fresh interpreter prints."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_one_class_name_has_one_meaning(root: Path) -> None:
    homes: dict[str, list[str]] = {}
    for path in sorted((root / "specviz").rglob("*.py")):
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, []).append(path.relative_to(root).as_posix())
    assert {name: places for name, places in homes.items() if len(places) > 1} == {}
