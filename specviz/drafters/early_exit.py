"""Early exit: the target's own first layers draft, the others verify. No second model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from specviz.core.contract import Context, Draft, IntArray, Target
from specviz.core.draws import Draws, Purpose
from specviz.decoding.distributions import distributions
from specviz.decoding.hf.target import HFTarget
from specviz.drafters.draft_model import checked_gamma


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

    name = "early_exit"
    cache_length = 0
    """It has no cache of its own: what it feeds stays in the target's."""

    def __init__(self, layer: int, gamma: int = 4) -> None:
        if isinstance(layer, bool) or not isinstance(layer, (int, np.integer)):
            raise TypeError(f"layer must be a whole number >= 1, got {layer!r}")
        if layer < 1:
            raise ValueError(f"layer must be >= 1 (how many layers draft), got {layer}")
        self.layer = int(layer)
        self._gamma = checked_gamma(gamma)
        self._target: HFTarget | None = None

    @property
    def gamma(self) -> int:
        """How many tokens it proposes, where there is room."""
        return self._gamma

    def begin(self, pair: Any, target: Target, prompt: IntArray) -> None:
        """Get ready for a new text.

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
        self._target = target

    def propose(self, context: Context, draws: Draws) -> Draft:
        """Draw up to gamma tokens one by one, each from the distribution q of the early exit."""
        if self._target is None:
            raise RuntimeError("EarlyExit has not begun a text: call begin() first")
        target, text, greedy = self._target, context.tokens, context.sampling.greedy
        tokens, used = [], []
        for node in range(min(self._gamma, context.room)):
            # What went through these layers already is known to the target and not run again.
            logits = target.draft_step(text[target.length :], self.layer)  # (vocab,)
            q = distributions(logits[None], context.sampling, [text])[0]  # (vocab,)
            drawn = q.argmax() if greedy else draws.categorical(q, len(text), node, Purpose.DRAFT)
            tokens.append(int(drawn))
            used.append(q)
            text = np.append(text, int(drawn))
            if int(drawn) in context.stop_ids:  # nothing can follow; a choice of later nodes only
                break
        q_rows = None if greedy or not used else np.stack(used)
        return Draft.chain(tokens, q_rows, target.vocab_size)

    def commit(self, emitted: IntArray, path: Sequence[int]) -> None:
        """Nothing to roll back: the target has rolled its own cache back."""

    def settings(self) -> dict[str, Any]:
        """Return what a trace says of this drafter."""
        return {"name": self.name, "gamma": self._gamma, "layer": self.layer}
