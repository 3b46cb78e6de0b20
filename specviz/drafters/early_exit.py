"""Early exit: the target's own first layers draft, the others verify. No second model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from specviz.core.contract import (
    Context,
    Draft,
    DrafterTraits,
    DraftSession,
    IntArray,
    ModelPair,
    Target,
)
from specviz.core.draws import Draws, Purpose
from specviz.decoding.hf.target import HFTarget
from specviz.decoding.sampling import logits_to_distributions
from specviz.drafters.draft_model import checked_gamma


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
        if isinstance(self.layer, bool) or not isinstance(self.layer, (int, np.integer)):
            raise TypeError(f"layer must be a whole number >= 1, got {self.layer!r}")
        if self.layer < 1:
            raise ValueError(f"layer must be >= 1 (how many layers draft), got {self.layer}")
        object.__setattr__(self, "layer", int(self.layer))
        object.__setattr__(self, "gamma", checked_gamma(self.gamma))

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

    @property
    def gamma(self) -> int:
        """How many tokens it proposes, where there is room."""
        return self.recipe.gamma

    def propose(self, context: Context, draws: Draws) -> Draft:
        """Draw up to gamma tokens one by one, each from the distribution q of the early exit."""
        target, text, greedy = self.target, context.tokens, context.sampling.greedy
        tokens, used = [], []
        for node in range(min(self.gamma, context.room)):
            # What went through these layers already is known to the target and not run again.
            logits = target.draft_step(text[target.length :], self.recipe.layer)  # (vocab,)
            q = logits_to_distributions(logits[None], context.sampling, [text])[0]  # (vocab,)
            drawn = q.argmax() if greedy else draws.categorical(q, len(text), node, Purpose.DRAFT)
            tokens.append(int(drawn))
            used.append(q)
            text = np.append(text, int(drawn))
            if int(drawn) in context.stop_ids:  # nothing can follow; a choice of later nodes only
                break
        q_rows = None if greedy or not used else np.stack(used)
        return Draft.chain(tokens, q_rows, target.vocab_size)

    def settings(self) -> dict[str, Any]:
        """Return what a trace says of this drafter."""
        return self.recipe.settings()
