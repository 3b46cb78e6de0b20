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
MODULES = {"PIL": "pillow"}


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
    modules = module_names(package)
    found = {
        MODULES.get(name := item.module.split(".")[0], name)
        for path in package.rglob("*.py")
        for item in imports(path, package, modules)
    }
    return found - sys.stdlib_module_names - {"specviz", "tests"}


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


def test_every_requirement_has_a_tested_version(root: Path, project: dict[str, Any]) -> None:
    lines = (root / "constraints.txt").read_text("utf-8").splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", pin) for pin in pins), "exact, no local tags"
    extras = project["optional-dependencies"].values()
    wanted = [*project["dependencies"], *(line for extra in extras for line in extra)]
    names = {name_of(requirement) for requirement in wanted} - {"specviz"}
    assert names - {name_of(pin) for pin in pins} == set()
