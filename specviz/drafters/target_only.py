"""No draft at all: every round is an ordinary step of the target (gamma = 0)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from specviz.core.contract import Context, Draft, IntArray, Target
from specviz.core.draws import Draws


class TargetOnly:
    """Proposes nothing; what comes out is target-only decoding with the same trace.

    Examples
    --------
    >>> TargetOnly().gamma
    0
    """

    name = "target_only"
    gamma = 0
    cache_length = 0

    def begin(self, pair: Any, target: Target, prompt: IntArray) -> None:
        """Get ready for a new text."""
        self._vocab_size: int = pair.vocab_size

    def propose(self, context: Context, draws: Draws) -> Draft:
        """Return an empty draft."""
        return Draft.empty(self._vocab_size)

    def commit(self, emitted: IntArray, path: Sequence[int]) -> None:
        """Nothing to roll back."""

    def settings(self) -> dict[str, Any]:
        """Return what a trace says of this drafter."""
        return {"name": self.name, "gamma": 0}
