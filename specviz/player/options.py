"""What a player can be told, checked before anything is made of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from specviz.figures.comparison import Comparison
from specviz.figures.visible import visible

if TYPE_CHECKING:
    from specviz.core.trace import Trace

VIEWS = ("text", "phase", "bars", "draw", "caches", "lanes", "measures", "tree")
THEMES = ("auto", "light", "dark")
LEAST_HEIGHT = 200


def checked_trace(trace: Any, name: str = "trace") -> Trace:
    """Return the trace.

    Raises
    ------
    TypeError
        If it is something else.
    """
    from specviz.core.trace import Trace

    if not isinstance(trace, Trace):
        raise TypeError(f"{name} must be a Trace, got {type(trace).__name__}")
    return trace


def checked_options(
    *,
    views: Sequence[str] | None = None,
    height: int | None = None,
    theme: str = "auto",
    guided: bool = False,
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
        unknown = [name for name in views if name not in VIEWS]
        if unknown or not len(views):
            raise ValueError(f"views must be some of {', '.join(VIEWS)}; got {list(views)}")
    if theme not in THEMES:
        raise ValueError(f"theme must be one of {', '.join(THEMES)}; got {theme!r}")
    if height is not None:
        if isinstance(height, bool) or not isinstance(height, int):
            raise TypeError(f"height must be a number of pixels, got {type(height).__name__}")
        if height < LEAST_HEIGHT:
            raise ValueError(f"height must be at least {LEAST_HEIGHT} pixels, got {height}")
    if title is not None and not isinstance(title, str):
        raise TypeError(f"title must be a str, got {type(title).__name__}")
    return {
        "views": None if views is None else list(views),
        "height": height,
        "theme": theme,
        "guided": bool(guided),
        "title": None if title is None else visible(title, limit=120),
    }


def baseline_of(comparison: Comparison | None) -> dict[str, Any] | None:
    """Return the measured time of one target-only token, as the projection takes it."""
    if comparison is None:
        return None
    from statistics import median

    return {"seconds": float(median(comparison.target_only)), "measured": True}
