"""Figures: everything that can be drawn from a trace, each loaded when it is first used.

>>> import specviz as sv
>>> sv.figures.overlap(trace, round=3)                       # doctest: +SKIP
>>> sv.figures.overlap(trace, round=3, backend="plotly")     # doctest: +SKIP

Every figure takes ``ax=`` and returns the matplotlib Axes (or, with ``backend="plotly"``, a
plotly figure); none shows itself or changes matplotlib's settings. ``sv.figures.save`` writes SVG
and PDF whose letters stay letters. Blue is the target p, orange the draft q, green what was
accepted, vermillion what was rejected.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from specviz.figures._against_expected import against_expected
    from specviz.figures._audit import audit, p_values
    from specviz.figures._canvas import save
    from specviz.figures._evidence_over_samples import evidence_over_samples
    from specviz.figures._overlap import overlap
    from specviz.figures.page import to_html

__all__ = [
    "against_expected",
    "audit",
    "evidence_over_samples",
    "overlap",
    "p_values",
    "save",
    "to_html",
]

_HOMES = {
    "against_expected": "_against_expected",
    "audit": "_audit",
    "evidence_over_samples": "_evidence_over_samples",
    "overlap": "_overlap",
    "p_values": "_audit",
    "save": "_canvas",
    "to_html": "page",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'specviz.figures' has no attribute {name!r}")
    value = getattr(import_module(f"specviz.figures.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
