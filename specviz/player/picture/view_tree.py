"""The tree of proposals with its accepted path, and the attention mask of its one pass."""

from __future__ import annotations

from specviz.player.picture.marks import GLYPHS, TOKEN_STYLES
from specviz.player.picture.scene import Scene
from specviz.player.steps.frames import Frame, frame_at
from specviz.player.steps.run import NONE, Run
from specviz.player.steps.tree import MOST, Places, places
from specviz.player.steps.words import trimmed

HIGHEST = 330.0
HELD = 14
"""Rows kept for a tree of which only a part is drawn, so that no step changes the height."""
DOWN = 36.0
"""Pixels from one leaf to the next."""
MASK = 0.27
"""Share of the width that the mask takes."""
FINEST = 96
"""Rows of a mask; of a larger one each cell stands for several."""


def height(run: Run, width: float) -> float:
    """Return how high the view is: room for the run's widest tree, within limits."""
    return min(HIGHEST, max(180.0, _leaves(run) * DOWN)) + 30


def draw(scene: Scene, run: Run, frame: Frame, x: float, y: float, width: float) -> None:
    """Draw the tree, and beside it who may look at whom."""
    if not frame.status:
        scene.text(x, y + 17, "Nothing was proposed in this round.", 16, "muted")
        return
    tree = width * (1 - MASK) - 24
    _tree(scene, run, frame, x, y + 26, tree, height(run, width) - 30)
    scene.text(x, y + 16, "tree of proposals, from the text so far", 16, "muted", room=tree)
    _mask(scene, run, frame, x + tree + 24, y, width * MASK, height(run, width) - 34)


def _leaves(run: Run) -> int:
    if not len(run):
        return 1
    largest = int(run.round["nodes"].argmax())
    if int(run.round["nodes"][largest]) > MOST:
        return HELD
    return places(run, frame_at(run, run.first_step[largest])).leaves


def _tree(
    scene: Scene, run: Run, frame: Frame, x: float, y: float, width: float, high: float
) -> None:
    at: Places = places(run, frame)
    down = min(DOWN, high / at.leaves)
    box = 0.78 * down
    letters = min(16.0, box * 0.72)
    level = min(250.0, (width - 40) / max(1, at.levels))
    wide = min(level - 28, 190.0)

    def corner(i: int) -> tuple[float, float]:
        return x + 40 + (at.x[i] - 1) * level, y + at.y[i] * down

    root = (x + 12, y + at.y[at.root] * down + box / 2)

    def end_of(parent: int) -> tuple[float, float]:
        if parent == at.root:
            return root
        left, top = corner(parent)
        return left + wide, top + box / 2

    scene.box(x, root[1] - 5, 10, 10, fill="muted", radius=5)
    # the accepted path last: edges share their beginnings
    for i in sorted(at.nodes, key=lambda one: frame.status[one] == "accepted"):
        status = frame.status[i]
        if status == "hidden":
            continue
        parent = int(run.node["parent"][frame.first + i])
        left, top = corner(i)
        start = end_of(at.root if parent == NONE else parent)
        look = TOKEN_STYLES[status]
        kept = status == "accepted"
        stroke = look.border if status in ("accepted", "rejected") else "line"
        bend = (start[0] + left) / 2
        points = [start, (bend, start[1]), (bend, top + box / 2), (left, top + box / 2)]
        dash = (4.0, 3.0) if status == "rejected" else None
        scene.line(points, stroke, width=4 if kept else 1.5, dash=dash)
    for parent, more, row in at.folds:
        if parent != at.root and frame.status[parent] == "hidden":
            continue
        start, middle = end_of(parent), y + row * down + box / 2
        left = x + 40 + at.x[parent] * level
        bend = (start[0] + left) / 2
        points = [start, (bend, start[1]), (bend, middle), (left, middle)]
        scene.line(points, "line", width=1.5, dash=(2.0, 4.0))
        base = middle + letters * 0.36
        scene.text(left + 7, base, f"+{more:,} more", letters, "muted", italic=True, room=wide)
    for i in at.nodes:
        if frame.status[i] != "hidden":
            _node(scene, run, frame, i, *corner(i), wide, box, letters)


def _node(
    scene: Scene, run: Run, frame: Frame, i: int, x: float, y: float, wide: float, high: float,
    letters: float,
) -> None:  # fmt: skip
    status = frame.status[i]
    look = TOKEN_STYLES[status]
    radius = 0.0 if look.dash else 4.0
    scene.box(
        x, y, wide, high, fill=look.ground or "background", stroke=look.border, width=2,
        dash=look.dash, radius=radius,
    )  # fmt: skip
    if i == frame.node:
        scene.box(x - 3, y - 3, wide + 6, high + 6, stroke="text", width=2.5, radius=5)
    glyph = GLYPHS[status]
    base = y + high / 2 + letters * 0.36
    text = trimmed(run.text(int(run.node["token"][frame.first + i])))
    ink = "muted" if status == "never" else "text"
    room = wide - 12 - (letters + 4 if glyph else 0)
    scene.text(x + 7, base, text, letters, ink, bold=status == "accepted", room=room)
    if glyph:
        scene.text(x + wide - 6, base, glyph, letters, look.glyph_ink, bold=True, anchor="right")


def _mask(
    scene: Scene, run: Run, frame: Frame, x: float, y: float, width: float, high: float
) -> None:
    lines = scene.paragraph(
        x, y + 16, width, "each sees the text, its ancestors, itself", 14, 2, colour="muted"
    )
    top = y + 16 + lines * 19
    n = len(frame.status)
    rows = min(n, FINEST)
    cell = min((min(width, high - (top - y))) / rows, 26.0)
    gap = 1.5 if cell > 6 else 0.0
    scene.box(x, top, rows * cell - gap, rows * cell - gap, fill="panel")
    for i, runs in enumerate(mask_runs(run, frame.first, n)):
        for start, end in runs:
            for from_, to in (
                [(start, end)]
                if not gap
                else zip(range(start, end), range(start + 1, end + 1), strict=True)
            ):
                scene.box(
                    x + from_ * cell,
                    top + i * cell,
                    (to - from_) * cell - gap,
                    cell - gap,
                    fill="p",
                )
    if frame.node >= 0:
        at = frame.node * rows // n
        scene.box(x - 2, top + at * cell - 2, rows * cell + 2, cell + 2, stroke="text", width=2)


def mask_runs(run: Run, first: int, n: int) -> list[list[tuple[int, int]]]:
    """Return for each row of a mask, coarser if it has many, the runs of cells that are seen."""
    rows = min(n, FINEST)
    seen: list[set[int]] = [set() for _ in range(rows)]
    above: list[list[int]] = []
    for i in range(n):
        parent = int(run.node["parent"][first + i])
        above.append([i] if parent == NONE else [*above[parent], i])
        seen[i * rows // n].update(j * rows // n for j in above[i])
    found = []
    for cells in seen:
        runs: list[tuple[int, int]] = []
        for j in sorted(cells):
            if runs and runs[-1][1] == j:
                runs[-1] = runs[-1][0], j + 1
            else:
                runs.append((j, j + 1))
        found.append(runs)
    return found
