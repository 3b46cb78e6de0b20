"""What a player can be told, checked before anything is made of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from specviz.core import checks
from specviz.figures.comparison import Comparison
from specviz.figures.escaping import visible

if TYPE_CHECKING:
    from specviz.core.trace.trace import Trace

VIEWS = ("text", "phase", "bars", "draw", "caches", "lanes", "measures", "tree")
THEMES = ("auto", "light", "dark")
LEAST_HEIGHT, MOST_HEIGHT = 200, 10_000


def checked_trace(trace: Any, name: str = "trace") -> Trace:
    """Return the trace, or raise a TypeError that says what it is."""
    from specviz.core.trace.trace import Trace

    return checks.instance(name, trace, Trace)


FEWEST_RUNS, MOST_RUNS = 2, 8
"""Runs that can race."""


def checked_runs(traces: Any) -> list[Trace]:
    """Return the runs of a race.

    Raises
    ------
    TypeError, ValueError
        If they are no traces, too few or too many, or one has no measured times.
    """
    from specviz.figures.summary import seconds

    if isinstance(traces, str) or not isinstance(traces, Sequence):
        raise TypeError(f"traces must be a list of traces, got {type(traces).__name__}")
    if not FEWEST_RUNS <= len(traces) <= MOST_RUNS:
        raise ValueError(f"traces must be {FEWEST_RUNS} to {MOST_RUNS} runs, got {len(traces)}")
    runs = [checked_trace(trace, f"traces[{i}]") for i, trace in enumerate(traces)]
    for i, run in enumerate(runs):
        if not sum(seconds(run).values()) > 0:
            raise ValueError(f"traces[{i}] has no measured times, so it cannot race")
    return runs


def checked_options(
    *,
    views: Sequence[str] | None = None,
    height: int | None = None,
    theme: str = "auto",
    guided: bool | None = True,
    title: str | None = None,
) -> dict[str, Any]:
    """Return the options as the script takes them: plain JSON values.

    Raises
    ------
    TypeError, ValueError
        If one of them is unknown, in one sentence.

    Examples
    --------
    >>> checked_options(views=["text", "draw"])["views"]
    ['text', 'draw']
    """
    if views is not None:
        views = checks.some_of("views", views, VIEWS)
    checks.one_of("theme", theme, THEMES)
    if height is not None:
        height = checks.whole("height", height, LEAST_HEIGHT, MOST_HEIGHT, hint="it is in pixels")
    if guided is not None:
        checks.flag("guided", guided)
    if title is not None:
        checks.text("title", title)
    return {
        "views": None if views is None else list(views),
        "height": height,
        "theme": theme,
        "guided": guided is not False,
        "title": None if title is None else visible(title, limit=120),
    }


def checked_tree(views: Sequence[str] | None, trace: Trace) -> None:
    """Refuse a choice of views of which nothing is there.

    Raises
    ------
    ValueError
        If only the tree is asked for, and the run's proposals are chains.
    """
    from specviz.player.projection import run_of

    if views is not None and set(views) == {"tree"} and not run_of(trace).is_tree:
        raise ValueError(
            "views asks only for the tree, and this run has none: its proposals are chains"
        )


def baseline_of(comparison: Comparison | None) -> dict[str, Any] | None:
    """Return the measured time of one target-only token, as the projection takes it."""
    if comparison is None:
        return None
    from statistics import median

    return {"seconds": float(median(comparison.target_only)), "measured": True}
