"""Early exit: the target's own first layers draft, the others verify. No second model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from numpy.typing import NDArray

from specviz.core import checks
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
from specviz.decoding.hf.target import HFTarget
from specviz.drafters.draft_model import draw_chain


@dataclass(frozen=True)
class EarlyExit:
    """Draft with the target's first ``layer`` layers and its own norm and head.

    Self-speculative decoding (Zhang et al. 2024; LayerSkip, Elhoushi et al. 2024). The cache of
    those layers is the target's, so nothing is computed twice: verification takes up the states
    that the draft left and adds the remaining layers. A draft token then costs ``layer / depth``
    of a target pass, and what it cost is saved again when it is verified. A model that was
    trained to be left early accepts far more.

    Parameters
    ----------
    layer : int
        How many layers draft: from 1 to one less than the target's depth.
    gamma : int
        How many tokens to propose per round.

    Raises
    ------
    TypeError, ValueError
        If an argument is out of range.

    Examples
    --------
    >>> EarlyExit(layer=4, gamma=3).settings()
    {'name': 'early_exit', 'gamma': 3, 'layer': 4}
    """

    name: ClassVar[str] = "early_exit"
    traits: ClassVar[DrafterTraits] = DrafterTraits()

    layer: int
    gamma: int = 4

    def __post_init__(self) -> None:
        object.__setattr__(self, "layer", checks.whole("layer", self.layer, 1))
        object.__setattr__(self, "gamma", checks.whole("gamma", self.gamma, 0))

    @property
    def depth(self) -> int:
        """How many tokens it proposes, where there is room."""
        return self.gamma

    def start(self, pair: ModelPair, target: Target, prompt: IntArray) -> EarlyExitSession:
        """Open the exit in the target's own session.

        Raises
        ------
        ValueError
            If the target is not that deep.
        UnsupportedModelError
            If it is not built like Llama.
        """
        if not isinstance(target, HFTarget):
            raise ValueError(
                f"EarlyExit needs a target made of layers (a Hugging Face model like Llama), "
                f"got {pair.target.name!r} of kind {pair.target.kind!r}"
            )
        target.open_exit(self.layer)
        return EarlyExitSession(self, target)

    def settings(self) -> dict[str, Any]:
        """Return what a trace says of this drafter."""
        return {"name": self.name, "gamma": self.gamma, "layer": self.layer}


@dataclass(frozen=True)
class EarlyExitSession(DraftSession):
    """One text; no cache of its own: what it feeds stays in the target's, which rolls it back."""

    recipe: EarlyExit
    target: HFTarget

    def propose(self, context: Context, draws: Draws) -> Draft:
        """Draw up to gamma tokens one by one, each from the distribution q of the early exit."""
        target, layer = self.target, self.recipe.layer

        def logits_after(text: IntArray) -> NDArray[Any]:
            # What went through these layers already is known to the target and not run again.
            return target.draft_step(text[target.length :], layer)  # (vocab,)

        depth = min(self.gamma, context.room)
        return draw_chain(logits_after, depth, context, draws, target.vocab_size)
