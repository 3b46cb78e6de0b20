"""What a player can be told, checked before anything is made of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from specviz.figures.comparison import Comparison
from specviz.figures.escaping import visible

if TYPE_CHECKING:
    from specviz.core.trace.trace import Trace

VIEWS = ("text", "phase", "bars", "draw", "caches", "lanes", "measures", "tree")
THEMES = ("auto", "light", "dark")
LEAST_HEIGHT, MOST_HEIGHT = 200, 10_000


def checked_trace(trace: Any, name: str = "trace") -> Trace:
    """Return the trace.

    Raises
    ------
    TypeError
        If it is something else.
    """
    from specviz.core.trace.trace import Trace

    if not isinstance(trace, Trace):
        raise TypeError(f"{name} must be a Trace, got {type(trace).__name__}")
    return trace


def checked_options(
    *,
    views: Sequence[str] | None = None,
    height: int | None = None,
    theme: str = "auto",
    guided: bool | None = False,
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
        if isinstance(views, str):
            raise TypeError(f"views must be a list of names, such as [{views!r}], got a str")
        if not isinstance(views, Sequence):
            raise TypeError(f"views must be a list of names, got {type(views).__name__}")
        unknown = [name for name in views if name not in VIEWS]
        if unknown or not len(views):
            raise ValueError(f"views must be some of {', '.join(VIEWS)}; got {list(views)}")
        if len(set(views)) < len(views):
            raise ValueError(f"views must name each view once, got {list(views)}")
    if theme not in THEMES:
        raise ValueError(f"theme must be one of {', '.join(THEMES)}; got {theme!r}")
    if height is not None:
        if isinstance(height, bool) or not isinstance(height, int):
            raise TypeError(f"height must be a number of pixels, got {type(height).__name__}")
        if not LEAST_HEIGHT <= height <= MOST_HEIGHT:
            raise ValueError(
                f"height must be {LEAST_HEIGHT} to {MOST_HEIGHT:,} pixels, got {height:,}"
            )
    if guided is not None:
        checked_flag("guided", guided)
    if title is not None and not isinstance(title, str):
        raise TypeError(f"title must be a str, got {type(title).__name__}")
    return {
        "views": None if views is None else list(views),
        "height": height,
        "theme": theme,
        "guided": bool(guided),
        "title": None if title is None else visible(title, limit=120),
    }


def checked_flag(name: str, value: Any) -> None:
    """Refuse what is neither True nor False.

    Raises
    ------
    TypeError
        If it is something else, such as "no", which would count as True.
    """
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, got {value!r}")


def checked_alpha(alpha: Any) -> None:
    """Refuse what is no probability of a false alarm.

    Raises
    ------
    TypeError, ValueError
        If it is no number, or not between 0 and 1.
    """
    if isinstance(alpha, bool) or not isinstance(alpha, (int, float)):
        raise TypeError(f"alpha must be a number between 0 and 1, got {alpha!r}")
    if not 0 < alpha < 1:
        raise ValueError(f"alpha must lie between 0 and 1, got {alpha!r}")


def checked_tree(views: Sequence[str] | None, trace: Trace) -> None:
    """Refuse a choice of views of which nothing is there.

    Raises
    ------
    ValueError
        If only the tree is asked for, and the run's proposals are chains.
    """
    from specviz.player.run import run_of

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
