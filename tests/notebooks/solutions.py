"""Solutions of the notebooks: made from the exercises' folded answers, run by the tests.

``python -m tests.notebooks.solutions`` writes them again.
"""

from __future__ import annotations

import re
from pathlib import Path

import nbformat

FOLDER = Path(__file__).parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
ANSWER = re.compile(r"<summary>Solution</summary>\s*```python\n(.*?)```", re.DOTALL)
LINK = re.compile(r"\]\((?=\d\d_\w+\.ipynb)")


def read(path: Path) -> nbformat.NotebookNode:
    return nbformat.read(path, as_version=4)


def is_exercise(cell: nbformat.NotebookNode) -> bool:
    return "exercise" in cell.metadata.get("tags", [])


def answers(notebook: nbformat.NotebookNode) -> list[str]:
    """The folded answers, one for each exercise, in order."""
    prose = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    found = [answer.strip() for answer in ANSWER.findall(prose)]
    assert len(found) == sum(map(is_exercise, notebook.cells)) >= 1
    return found


def solved(path: Path) -> nbformat.NotebookNode:
    """The notebook with its exercises solved, as it stands in ``notebooks/solutions``."""
    notebook = read(path)
    left = answers(notebook)
    for cell in notebook.cells:
        if is_exercise(cell):
            cell.source = left.pop(0)
        elif cell.cell_type == "markdown":
            cell.source = LINK.sub("](../", cell.source)
    return notebook


def write() -> None:
    """Write every solution."""
    (FOLDER / "solutions").mkdir(exist_ok=True)
    for path in NOTEBOOKS:
        nbformat.write(solved(path), FOLDER / "solutions" / path.name)


if __name__ == "__main__":
    write()
