"""Speculative against target-only decoding, both measured: a ratio with where it comes from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from markupsafe import Markup

from specviz.core.formatting import format_duration
from specviz.figures.summary import seconds
from specviz.figures.templating import part

if TYPE_CHECKING:
    from specviz.core.trace.trace import Trace


@dataclass(frozen=True)
class Comparison:
    """Seconds per emitted token of runs made side by side.

    Parameters
    ----------
    speculative : sequence of float
        Seconds per token, one number a run.
    target_only : sequence of float
        The same with the target alone.

    Raises
    ------
    ValueError
        If either has no run, or a time that is not positive.

    Examples
    --------
    >>> Comparison([0.010, 0.012, 0.011], [0.020, 0.022, 0.024]).ratio
    2.0
    """

    speculative: Sequence[float]
    target_only: Sequence[float]

    def __post_init__(self) -> None:
        for name in ("speculative", "target_only"):
            times = getattr(self, name)
            if not len(times) or not all(time > 0 for time in times):
                raise ValueError(
                    f"{name} must be positive seconds per token of at least one run, got {times!r}"
                )

    @classmethod
    def of(cls, trace: Trace, target_only: Trace) -> Comparison:
        """Compare the times that two traces recorded.

        Raises
        ------
        ValueError
            If a trace has no tokens or no times, or ``target_only`` holds proposals.
        """
        if len(target_only.node_table):
            raise ValueError(
                "compare must be a trace of the target alone (gamma=0), got one with "
                f"{len(target_only.node_table):,} proposals"
            )
        both = {"the trace": trace, "compare": target_only}
        spent = {name: sum(seconds(one).values()) for name, one in both.items()}
        for name, one in both.items():
            if not len(one.tokens) or not spent[name] > 0:
                raise ValueError(f"{name} has no measured times, so there is nothing to compare")
        per_token = [spent[name] / len(one.tokens) for name, one in both.items()]
        return cls(per_token[:1], per_token[1:])

    @property
    def ratio(self) -> float:
        """How many times faster speculative decoding was: above 1 it won."""
        return median(self.target_only) / median(self.speculative)

    def rows(self) -> list[tuple[str, str]]:
        """Return pairs of a name and a value, ready to show."""
        return [
            ("speculative", _per_token(self.speculative)),
            ("target only", _per_token(self.target_only)),
            ("measured ratio", self.verdict()),
        ]

    def verdict(self) -> str:
        """Return the ratio in words.

        Examples
        --------
        >>> Comparison([0.02], [0.01]).verdict()
        '0.50× (speculation lost here)'
        """
        ratio = self.ratio
        said = (
            "faster" if ratio > 1.005 else "no gain" if ratio > 0.995 else "speculation lost here"
        )
        return f"{ratio:.2f}× ({said})"

    def html(self) -> Markup:
        """Return two bars to one scale and the ratio, as HTML."""
        medians = {
            "speculative": median(self.speculative),
            "target only": median(self.target_only),
        }
        longest = max(medians.values())
        bars = [
            (name, css, 60 * medians[name] / longest, medians[name])
            for name, css in (("speculative", "sv-fast"), ("target only", "sv-target"))
        ]
        return Markup(part("run.html").comparison(bars, self.verdict(), _runs(self)))


def _per_token(times: Sequence[float]) -> str:
    middle, least, most = map(format_duration, (median(times), min(times), max(times)))
    said = f"{middle} per token"
    if len(times) > 1:
        said += f" (median of {len(times)}: {least} to {most})"
    return said


def _runs(comparison: Comparison) -> str:
    count = min(len(comparison.speculative), len(comparison.target_only))
    return "one run of each" if count == 1 else f"medians of {count} runs of each, taken in turn"
