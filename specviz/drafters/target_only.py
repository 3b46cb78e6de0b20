"""No draft at all: every round is an ordinary step of the target (gamma = 0)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from specviz.core.contract import (
    Context,
    Draft,
    DrafterTraits,
    DraftSession,
    IntArray,
    ModelPair,
    Target,
)
from specviz.core.draws import Draws


@dataclass(frozen=True)
class TargetOnly:
    """Proposes nothing; what comes out is target-only decoding with the same trace.

    Examples
    --------
    >>> TargetOnly().depth
    0
    """

    name: ClassVar[str] = "target_only"
    traits: ClassVar[DrafterTraits] = DrafterTraits()
    depth: ClassVar[int] = 0

    def start(self, pair: ModelPair, target: Target, prompt: IntArray) -> TargetOnlySession:
        """Return a session that never proposes."""
        return TargetOnlySession(self, pair.vocab_size)

    def settings(self) -> dict[str, Any]:
        """Return what a trace says of this drafter."""
        return {"name": self.name, "gamma": 0}


@dataclass(frozen=True)
class TargetOnlySession(DraftSession):
    """A text without a draft."""

    recipe: TargetOnly
    vocab_size: int

    def propose(self, context: Context, draws: Draws) -> Draft:
        """Return an empty draft."""
        return Draft.empty(self.vocab_size)
