"""Every notebook runs from a fresh kernel; its exercises notice when they are left alone."""

from __future__ import annotations

import copy
import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

FOLDER = Path(__file__).parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
SOLUTION = re.compile(r"<summary>Solution</summary>\s*```python\n(.*?)```", re.DOTALL)

pytestmark = pytest.mark.timeout(600)


def read(path: Path) -> nbformat.NotebookNode:
    return nbformat.read(path, as_version=4)


def run(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    NotebookClient(notebook, timeout=500, kernel_name="python3").execute()
    return notebook


def tags(cell: nbformat.NotebookNode) -> list[str]:
    return cell.metadata.get("tags", [])


def solved(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Return it with each exercise first as it is and checked, then solved.

    The check that follows an exercise left alone is tagged ``raises-exception``.
    """
    prose = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    solutions = SOLUTION.findall(prose)
    assert len(solutions) == sum("exercise" in tags(cell) for cell in notebook.cells) >= 1
    cells = []
    for i, cell in enumerate(notebook.cells):
        if "exercise" in tags(cell):
            check = next(c for c in notebook.cells[i + 1 :] if c.cell_type == "code")
            unsolved = copy.deepcopy([cell, check])
            unsolved[1].metadata["tags"] = [*tags(check), "raises-exception"]
            cells += unsolved
            cell.source = solutions.pop(0)
        cells.append(cell)
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    notebook.cells = cells
    return notebook


def test_there_are_notebooks() -> None:
    assert NOTEBOOKS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs_and_its_exercises_notice_when_left_alone(path: Path) -> None:
    for cell in run(solved(read(path))).cells:
        outputs = cell.get("outputs", [])
        errors = [one.ename for one in outputs if one.output_type == "error"]
        if "raises-exception" in tags(cell):
            assert errors == ["AssertionError"], cell.source
        else:
            assert not errors
            assert not [one.text for one in outputs if one.get("name") == "stderr"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_can_be_read_in_a_sitting(path: Path) -> None:
    notebook = read(path)
    code = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    words = sum(len(c.source.split()) for c in notebook.cells if c.cell_type == "markdown")
    assert len(code) <= 35
    assert sum(len(source.splitlines()) for source in code) <= 250
    assert words <= 2000
