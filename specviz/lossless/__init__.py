"""Is the output law exactly the target's? By enumeration where that is possible."""

from specviz.lossless.exact import (
    Law,
    enumerate_law,
    outcomes,
    target_law,
    total_variation,
)

__all__ = ["Law", "enumerate_law", "outcomes", "target_law", "total_variation"]
