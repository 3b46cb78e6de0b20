"""Every notebook runs to its end, its exercises solved or not, and notices those left alone."""

from __future__ import annotations

import ast
import copy
import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

import specviz as sv
from tests.notebooks.solutions import FOLDER, NOTEBOOKS, is_exercise, read, solved

QUICK = {"00_start_here", "01_draft_and_verify"}  # the others are slow

pytestmark = pytest.mark.timeout(600)
each = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def code(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def printed(cell: nbformat.NotebookNode) -> str:
    return "".join(one.get("text", "") for one in cell.outputs if one.output_type == "stream")


def first_unsolved(path: Path) -> tuple[nbformat.NotebookNode, list[int], list[int]]:
    """The solution, with each exercise and its check run first as the reader finds them.

    Also where the checks stand in it: those of the exercise left alone, and of the solved one.
    """
    unsolved, notebook = code(read(path)), solved(path)
    cells: list[nbformat.NotebookNode] = []
    alone, after = [], []
    for cell in notebook.cells:
        if is_exercise(cell):
            i = next(i for i, one in enumerate(unsolved) if one.id == cell.id)
            cells += copy.deepcopy(unsolved[i : i + 2])
            alone.append(len(cells) - 1)
            check = unsolved[i + 1].id
        cells.append(cell)
        if alone and cell.id == check:
            after.append(len(cells) - 1)
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    notebook.cells = cells
    return notebook, alone, after


def test_there_are_notebooks() -> None:
    assert {path.stem for path in NOTEBOOKS} >= QUICK


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=path.stem, marks=[] if path.stem in QUICK else pytest.mark.slow)
        for path in NOTEBOOKS
    ],
)
def test_it_runs_to_the_end_and_its_exercises_notice_when_left_alone(path: Path) -> None:
    notebook, alone, after = first_unsolved(path)
    NotebookClient(notebook, timeout=500, kernel_name="python3").execute()
    for cell in code(notebook):
        assert not [one.ename for one in cell.outputs if one.output_type == "error"], cell.source
        assert not [one.text for one in cell.outputs if one.get("name") == "stderr"], cell.source
    for i in alone:
        assert "is not solved yet: " in printed(notebook.cells[i])
    for i in after:
        assert printed(notebook.cells[i]).endswith("is solved.\n")
        assert "not solved" not in printed(notebook.cells[i])


@each
def test_run_all_does_not_wait_for_an_exercise(path: Path) -> None:
    """What an exercise defines is read by its own check only, so the cells after it run."""
    cells = code(read(path))
    for i, cell in enumerate(cells):
        if not is_exercise(cell):
            continue
        assert cells[i + 1].source.startswith("with sv.exercise("), "the check of an exercise"
        wanted = assigned(cell.source)
        for later in cells[i + 2 :]:
            assert not wanted & read_names(later.source)


def assigned(source: str) -> set[str]:
    """Names that a cell defines."""
    nodes = list(ast.walk(ast.parse(source)))
    functions = {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
    inner = {id(n) for f in nodes if isinstance(f, ast.FunctionDef) for n in ast.walk(f)}
    names = [n for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    return functions | {name.id for name in names if id(name) not in inner}


def read_names(source: str) -> set[str]:
    """Names that a cell reads and does not itself define."""
    names = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)]
    stored = {name.id for name in names if isinstance(name.ctx, ast.Store)}
    parameters = {node.arg for node in ast.walk(ast.parse(source)) if isinstance(node, ast.arg)}
    return {name.id for name in names} - stored - parameters


def test_a_cell_that_needs_an_exercise_would_be_found() -> None:
    assert assigned("def accept(p, q, u):\n    r = p\n") == {"accept"}
    assert assigned("n = ...") == {"n"}
    assert read_names("print(accept(1, 2, 3))") >= {"accept"}
    assert "n" not in read_names("for n in range(3):\n    print(n)")


@each
def test_its_solution_is_the_same_notebook_solved(path: Path) -> None:
    made = FOLDER / "solutions" / path.name
    wanted = nbformat.writes(solved(path)).rstrip()
    assert made.is_file() and made.read_text("utf-8").rstrip() == wanted, (
        "run: python -m tests.notebooks.solutions"
    )


def test_no_solution_is_left_over() -> None:
    there = {path.name for path in (FOLDER / "solutions").glob("*.ipynb")}
    assert there == {path.name for path in NOTEBOOKS}


@each
def test_it_can_be_read_in_a_sitting(path: Path) -> None:
    notebook = read(path)
    sources = [cell.source for cell in code(notebook)]
    words = sum(len(c.source.split()) for c in notebook.cells if c.cell_type == "markdown")
    assert len(sources) <= 35
    assert sum(len(source.splitlines()) for source in sources) <= 250
    assert words <= 2000


@each
def test_its_links_lead_to_files(path: Path) -> None:
    prose = "\n".join(cell.source for cell in read(path).cells if cell.cell_type == "markdown")
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", prose) if "://" not in link]
    assert links
    for link in links:
        assert (FOLDER / link).is_file(), link


def test_an_exercise_left_alone_says_so_and_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    """An answer that is missing, wrong, or broken code: one sentence each, no exception."""
    with sv.exercise("Exercise 1"):
        raise AssertionError("residual returns nothing yet\nsecond line")
    with sv.exercise("Exercise 2"):
        _ = None + 1  # type: ignore[operator]
    with sv.exercise("Exercise 3"):
        pass
    first, second, third = capsys.readouterr().out.splitlines()
    assert first == "Exercise 1 is not solved yet: residual returns nothing yet."
    assert second.startswith("Exercise 2 is not solved yet: your code raised TypeError: ")
    assert third == "Exercise 3 is solved."


def test_an_interrupt_is_no_answer() -> None:
    with pytest.raises(KeyboardInterrupt), sv.exercise("Exercise 1"):
        raise KeyboardInterrupt
