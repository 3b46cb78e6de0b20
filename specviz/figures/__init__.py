"""Figures: everything that can be drawn from a trace, each loaded when it is first used.

>>> import specviz as sv
>>> sv.figures.overlap(trace, round=3)                       # doctest: +SKIP
>>> sv.figures.overlap(trace, round=3, backend="plotly")     # doctest: +SKIP
>>> sv.figures.overlap.data(trace, round=3).overlap          # doctest: +SKIP

Every figure takes ``ax=`` and returns the matplotlib Axes (one of several panels a Figure, with
``backend="plotly"`` a plotly figure), and ``theme=`` "light", "dark", "paper", "slide" or
"dark-slide". Its ``data`` returns the numbers. None shows itself or changes matplotlib's settings.
``sv.figures.save`` writes SVG and PDF whose letters stay letters. Blue is the target p, orange the
draft q, green what was accepted, vermillion what was rejected.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from specviz.figures.drawing import save
    from specviz.figures.page import to_html
    from specviz.figures.plots.acceptance import acceptance
    from specviz.figures.plots.acceptance_by import acceptance_by
    from specviz.figures.plots.against_expected import against_expected
    from specviz.figures.plots.audit import audit
    from specviz.figures.plots.caches import caches
    from specviz.figures.plots.draws import draws
    from specviz.figures.plots.evidence_over_samples import evidence_over_samples
    from specviz.figures.plots.expected_tokens import expected_tokens
    from specviz.figures.plots.flow import flow
    from specviz.figures.plots.gain_by_gamma import gain_by_gamma
    from specviz.figures.plots.gain_map import gain_map
    from specviz.figures.plots.loop import loop
    from specviz.figures.plots.methods import methods
    from specviz.figures.plots.overlap import overlap
    from specviz.figures.plots.overlap_map import overlap_map
    from specviz.figures.plots.p_values import p_values
    from specviz.figures.plots.race import race
    from specviz.figures.plots.roofline import roofline
    from specviz.figures.plots.text import text
    from specviz.figures.plots.timeline import timeline
    from specviz.figures.plots.tree import tree

__all__ = [
    "acceptance",
    "acceptance_by",
    "against_expected",
    "audit",
    "caches",
    "draws",
    "evidence_over_samples",
    "expected_tokens",
    "flow",
    "gain_by_gamma",
    "gain_map",
    "loop",
    "methods",
    "overlap",
    "overlap_map",
    "p_values",
    "race",
    "roofline",
    "save",
    "text",
    "timeline",
    "to_html",
    "tree",
]

_ELSEWHERE = {"save": "drawing", "to_html": "page"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'specviz.figures' has no attribute {name!r}")
    home = _ELSEWHERE.get(name, f"plots.{name}")
    value = getattr(import_module(f"specviz.figures.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
