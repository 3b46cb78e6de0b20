"""Every notebook runs from a fresh kernel: with its solutions, and not without them."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

FOLDER = Path(__file__).parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
SOLUTION = re.compile(r"<summary>Solution</summary>\s*```python\n(.*?)```", re.DOTALL)

pytestmark = pytest.mark.timeout(300)


def read(path: Path) -> nbformat.NotebookNode:
    return nbformat.read(path, as_version=4)


def run(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    NotebookClient(notebook, timeout=240, kernel_name="python3").execute()
    return notebook


def solve(notebook: nbformat.NotebookNode) -> int:
    """Put each solution where its exercise was; return how many there were."""
    exercises = [cell for cell in notebook.cells if "exercise" in cell.metadata.get("tags", [])]
    prose = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    solutions = SOLUTION.findall(prose)
    assert len(solutions) == len(exercises)
    for cell, solution in zip(exercises, solutions, strict=True):
        cell.source = solution
    return len(exercises)


def test_there_are_notebooks() -> None:
    assert NOTEBOOKS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs_with_its_solutions(path: Path) -> None:
    notebook = read(path)
    assert solve(notebook) >= 1
    errors = [
        output
        for cell in run(notebook).cells
        for output in cell.get("outputs", [])
        if output.output_type == "error" or output.get("name") == "stderr"
    ]
    assert not errors


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_an_exercise_left_alone_is_noticed(path: Path) -> None:
    with pytest.raises(CellExecutionError, match="AssertionError"):
        run(read(path))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_can_be_read_in_a_sitting(path: Path) -> None:
    notebook = read(path)
    code = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    words = sum(len(c.source.split()) for c in notebook.cells if c.cell_type == "markdown")
    assert len(code) <= 35
    assert sum(len(source.splitlines()) for source in code) <= 250
    assert words <= 2000
