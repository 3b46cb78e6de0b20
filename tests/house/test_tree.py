"""The tree stays tidy: what may lie where, how long a file may be, what it may not say."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

TOP_LEVEL = {
    ".ci",
    ".gitattributes",
    ".gitignore",
    "CHANGELOG.md",
    "CITATION.cff",
    "CONTRIBUTING.md",
    "LICENSE",
    "README.md",
    "binder",
    "constraints.txt",
    "docs",
    "notebooks",
    "pyproject.toml",
    "specviz",
    "tests",
}
REQUIRED = TOP_LEVEL - {"CITATION.cff", "docs", "notebooks"}
MAX_LINES = 700
MAX_BYTES = 32 * 2**20  # one file of the bundled weights; more than that is not for git

# Absolute paths of somebody's machine, and hosts that packages are fetched from.
MACHINE_PATH = re.compile(r"(?<![\w.~$*/-])/(?:work|farm|tmp|root|home|Users|mnt|opt)/[\w.]")
REGISTRY = re.compile(
    r"(?:[\w-]+\.)?(?:pypi\.org|pythonhosted\.org|npmjs\.(?:org|com)|debian\.org|pytorch\.org/whl)"
)
# Binder builds its image elsewhere, and torch's CPU build is on no other index.
MAY_NAME_REGISTRY = {"binder/requirements.txt"}


@pytest.fixture(scope="module")
def tracked(root: Path) -> list[Path]:
    """Every file that belongs to the project, relative to the top folder.

    From a checkout these are git's files, new ones included. Without git (an unpacked archive)
    they are all files that are no build product.
    """
    done = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == 0 and (root / ".git").exists():
        names = [Path(name) for name in done.stdout.split("\0") if name]
    else:
        names = [path.relative_to(root) for path in root.rglob("*") if path.is_file()]
        names = [name for name in names if not set(name.parts) & {".venv", "__pycache__"}]
    return sorted(name for name in set(names) if (root / name).is_file())


def text_files(root: Path, tracked: list[Path]) -> Iterator[tuple[str, str]]:
    """Name and text of each file that is text."""
    for name in tracked:
        data = (root / name).read_bytes()
        if b"\0" not in data:
            yield name.as_posix(), data.decode("utf-8")


def test_the_top_level_holds_only_what_belongs_there(tracked: list[Path]) -> None:
    top = {name.parts[0] for name in tracked}
    assert top <= TOP_LEVEL
    assert top >= REQUIRED


def test_no_source_file_is_so_long_that_it_must_hold_more_than_one_subject(
    root: Path, tracked: list[Path]
) -> None:
    source = [name for name in tracked if name.suffix in (".py", ".js", ".css")]
    assert source
    lengths = {str(name): len((root / name).read_text("utf-8").splitlines()) for name in source}
    assert {name: n for name, n in lengths.items() if n > MAX_LINES} == {}


def test_no_file_is_too_large_for_git(root: Path, tracked: list[Path]) -> None:
    sizes = {str(name): (root / name).stat().st_size for name in tracked}
    assert {name: n for name, n in sizes.items() if n > MAX_BYTES} == {}


def complaints(name: str, text: str) -> list[str]:
    """What a text file says that is true on one machine only."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        if MACHINE_PATH.search(line):
            found.append(f"{name}:{number}: a machine's path: {line.strip()[:80]}")
        if REGISTRY.search(line) and name not in MAY_NAME_REGISTRY:
            found.append(f"{name}:{number}: a package host: {line.strip()[:80]}")
    return found


def test_no_file_names_a_machine_or_a_registry(root: Path, tracked: list[Path]) -> None:
    found = [
        line
        for name, text in text_files(root, tracked)
        if name != "LICENSE"
        for line in complaints(name, text)
    ]
    assert not found, "\n" + "\n".join(found)


def test_a_machine_path_or_registry_would_be_reported() -> None:
    slash, dot = "/", "."  # written apart, or this file would report itself
    assert complaints("a.py", f'open("{slash}home{slash}me/x")')
    assert complaints("a.py", f"see {slash}work{slash}main")
    assert complaints("a.md", f"https://files.pythonhosted{dot}org/x")
    assert complaints("a.txt", f"https://download.pytorch{dot}org{slash}whl/cpu")
    assert not complaints("a.md", "a/work/home, src/home/x, https://x.org/home/page, ./tmp/x")


def unclean(notebook: str) -> list[str]:
    """What of a run is left in a notebook's JSON."""
    content = json.loads(notebook)
    found = ["widget state"] if "widgets" in content.get("metadata", {}) else []
    for number, cell in enumerate(content["cells"]):
        if cell.get("outputs"):
            found.append(f"cell {number} has outputs")
        if cell.get("execution_count") is not None:
            found.append(f"cell {number} has an execution count")
    return found


def test_notebooks_are_committed_without_outputs(root: Path, tracked: list[Path]) -> None:
    left = {n: unclean(t) for n, t in text_files(root, tracked) if n.endswith(".ipynb")}
    assert {name: found for name, found in left.items() if found} == {}


def test_a_notebook_with_outputs_would_be_reported() -> None:
    ran = {"cell_type": "code", "outputs": [{"output_type": "stream"}], "execution_count": 3}
    clean = {"cell_type": "code", "outputs": [], "execution_count": None}
    assert unclean(json.dumps({"cells": [clean], "metadata": {}})) == []
    assert len(unclean(json.dumps({"cells": [clean, ran], "metadata": {"widgets": {}}}))) == 3


def slug_of(root: Path) -> str:
    """`OWNER/specviz`, from the one place that decides it."""
    pyproject = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))
    return pyproject["project"]["urls"]["Repository"].removeprefix("https://github.com/")


def test_every_public_link_has_the_address_of_pyproject(root: Path, tracked: list[Path]) -> None:
    slug = slug_of(root)
    assert re.fullmatch(r"[\w.-]+/specviz", slug)
    link = re.compile(r"(?:github\.com|v2/gh|githubusercontent\.com|github/blob)/([\w.-]+/specviz)")
    links = {(n, m) for n, text in text_files(root, tracked) for m in link.findall(text)}
    assert {(name, found) for name, found in links if found != slug} == set()


def test_readme_has_a_binder_badge(root: Path) -> None:
    readme = (root / "README.md").read_text("utf-8")
    badge = re.compile(
        r"\[!\[[^\]]*\]\(https://mybinder\.org/badge_logo\.svg\)\]"
        rf"\(https://mybinder\.org/v2/gh/{re.escape(slug_of(root))}/[^)\s]+\)"
    )
    assert badge.search(readme)


def test_readme_prints_the_two_commands_that_ci_takes_from_it(root: Path) -> None:
    lines = (root / "README.md").read_text("utf-8").splitlines()
    demo, tests = (line for line in lines if line.startswith("python3 -m venv"))
    assert demo.endswith(".venv/bin/specviz demo")
    assert tests.endswith("'.[test]' && .venv/bin/python -m pytest -n 2")
    ci = (root / ".ci" / "run").read_text("utf-8")
    assert "grep -E '^python3 -m venv' README.md" in ci
    assert 'as_printed demo "${commands[0]}"' in ci
    assert 'as_printed tests "${commands[1]}"' in ci


def test_binder_folder_has_the_shape_repo2docker_reads(root: Path) -> None:
    folder = root / "binder"
    assert {path.name for path in folder.iterdir()} == {
        "postBuild",
        "requirements.txt",
        "runtime.txt",
        "start",
    }
    assert (folder / "runtime.txt").read_text("utf-8").strip() == "python-3.11"
    for name in ("postBuild", "start"):
        lines = (folder / name).read_text("utf-8").splitlines()
        commands = [line for line in lines if line and not line.startswith("#")]
        assert os.access(folder / name, os.X_OK)
        assert lines[0] == "#!/usr/bin/env bash"
        assert commands[0] == "set -euo pipefail"
    assert commands[-1] == 'exec "$@"'  # of start, the last one read


def test_binder_asks_for_the_tested_cpu_build_of_torch(root: Path) -> None:
    lines = (root / "binder" / "requirements.txt").read_text("utf-8").split("\n")
    wanted = [line for line in lines if line and not line.startswith("#")]
    tested = (root / "constraints.txt").read_text("utf-8").splitlines()
    (torch,) = (line for line in tested if line.startswith("torch=="))
    assert "-c ../constraints.txt" in wanted
    assert f"{torch}+cpu" in wanted
    assert wanted[-1] == "."


def test_the_wheel_holds_every_file_of_the_package(root: Path, tracked: list[Path]) -> None:
    from hatchling.builders.wheel import WheelBuilder

    builder = WheelBuilder(str(root))
    shipped = {file.distribution_path for file in builder.recurse_included_files()}
    ours = {name.as_posix() for name in tracked if name.parts[0] == "specviz"}
    assert ours - shipped == set()
    assert {name for name in shipped if "__pycache__" not in name} - ours == set()
    assert "specviz/py.typed" in shipped
