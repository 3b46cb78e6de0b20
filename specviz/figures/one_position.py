"""Two distributions of one position, target p and draft q: as a table and as a small picture."""

from __future__ import annotations

import io
from collections.abc import Sequence

import numpy as np

from specviz.core.formatting import format_number
from specviz.core.rules import residual
from specviz.figures.drawing import THEMES, safe_text
from specviz.figures.theme import LIGHT

INCHES = (7.2, 4.0)


def table(words: Sequence[str], p: Sequence[float], q: Sequence[float]) -> str:
    """Return a line per token: p, q, what they share, and the residual.

    Examples
    --------
    >>> print(table(["a", "b"], [0.5, 0.5], [1, 0]))
    token   target p  draft q  min(p, q)  residual
    a          .500        1       .500         0
    b          .500        0          0         1
    accepted with probability .500 = sum min(p, q) = 1 - TV(p, q)
    """
    if not words:
        return "(an editor that no browser has opened yet)"
    one, other = np.asarray(p, dtype=np.float64), np.asarray(q, dtype=np.float64)
    shared, rest = np.minimum(one, other), residual(one, other)
    width = max(5, *(len(word) for word in words))
    lines = [f"{'token':<{width}}   target p  draft q  min(p, q)  residual"]
    for word, *numbers in zip(words, one, other, shared, rest, strict=True):
        a, b, c, d = (format_number(value, 3) for value in numbers)
        lines.append(f"{word:<{width}}{a:>10}{b:>9}{c:>11}{d:>10}")
    mass = format_number(float(shared.sum()), 3)
    lines.append(f"accepted with probability {mass} = sum min(p, q) = 1 - TV(p, q)")
    return "\n".join(lines)


def png(words: Sequence[str], p: Sequence[float], q: Sequence[float]) -> bytes:
    """Return a PNG of the two distributions: overlap behind, residual hatched."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=INCHES, dpi=100, layout="constrained")
    ax = figure.add_subplot()
    one, other = np.asarray(p, dtype=np.float64), np.asarray(q, dtype=np.float64)
    shared, rows = np.minimum(one, other), np.arange(len(words))
    points = THEMES["paper"].points
    ax.barh(
        rows, shared, 0.92, color=LIGHT.accepted_tint, edgecolor=LIGHT.accepted,
        label=f"overlap: kept, {format_number(float(shared.sum()), 3)}",
    )  # fmt: skip
    ax.barh(rows - 0.17, other, 0.3, color=LIGHT.q, label="draft q")
    ax.barh(rows + 0.17, one, 0.3, color=LIGHT.p, label="target p")
    ax.barh(
        rows + 0.17, one - shared, 0.3, left=shared, color=LIGHT.p_tint, edgecolor=LIGHT.p,
        hatch="////", linewidth=0,
        label=f"residual: TV = {format_number(1 - float(shared.sum()), 3)}",
    )  # fmt: skip
    ax.set_yticks(rows, [safe_text(word) for word in words])
    ax.set_ylim(len(rows) - 0.45, -0.55)
    ax.set_xlabel("probability of the token", fontsize=points)
    ax.tick_params(labelsize=points, length=0)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.legend(frameon=False, fontsize=points)
    held = io.BytesIO()
    figure.savefig(held, format="png")
    return held.getvalue()
