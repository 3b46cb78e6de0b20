"""Parallel drafting: all of a round's proposals come from one pass of a small head.

Multi-token-prediction modules, block-diffusion drafters and parallel EAGLE draft this way. Token i
is drawn from its own q_i, which knows the text but not tokens 1 to i - 1 of the same draft. The
rule needs no more: q_i is what the token was drawn from, so the output is exact; only alpha falls
with depth faster than where each proposal reads the one before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import torch

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
from specviz.drafters.draft_model import draw_chain
from specviz.drafters.medusa import capture_from, heads_for, name_of
from specviz.drafters.topology import check_room
from specviz.models.heads import EagleCache, HeadsError, ParallelHead


@dataclass(frozen=True)
class Parallel:
    """Draft gamma tokens in one pass of a parallel head on the target's features.

    Parameters
    ----------
    gamma : int
        How many tokens to propose per round; at most as many as the head was made for.
    heads : path or ParallelHead, optional
        Folder of the head (``specviz train heads`` makes one); by default that of the bundled
        target, once it has one.

    Raises
    ------
    TypeError, ValueError
        If gamma is not a whole number >= 0; from :meth:`start`, if the head does not fit.

    Examples
    --------
    >>> Parallel(gamma=3).settings()
    {'name': 'parallel', 'heads': 'bundled', 'gamma': 3}
    """

    name: ClassVar[str] = "parallel"
    traits: ClassVar[DrafterTraits] = DrafterTraits()

    gamma: int = 4
    _: KW_ONLY
    heads: Any = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "gamma", checks.whole("gamma", self.gamma, 0))

    @property
    def depth(self) -> int:
        """How many tokens it proposes, where there is room."""
        return self.gamma

    def start(self, pair: ModelPair, target: Target, prompt: IntArray) -> ParallelSession:
        """Load the head and ask the target for the features it reads.

        Raises
        ------
        HeadsError, ValueError
            If the head does not fit the target, or gamma fits neither head nor context.
        """
        head = heads_for(pair, self.heads, "parallel")
        if self.gamma > head.config.gamma:
            raise HeadsError(
                f"gamma is {self.gamma}, but the parallel head proposes {head.config.gamma} tokens "
                f"in its one pass: give gamma <= {head.config.gamma}"
            )
        check_room(self.gamma, self.gamma, target)
        capture_from(target, head.config.layers)
        return ParallelSession(self, head, target, int(pair.vocab_size))

    def settings(self) -> dict[str, Any]:
        """Return what a trace says of this drafter."""
        return {"name": self.name, "heads": name_of(self.heads), "gamma": self.gamma}


class ParallelSession(DraftSession):
    """One text: the head's cache of it, and the target's features that it has not read yet."""

    def __init__(self, recipe: Parallel, head: ParallelHead, target: Any, vocab_size: int) -> None:
        self.recipe, self.head, self.target = recipe, head, target
        self.vocab_size = vocab_size
        self._cache = EagleCache()
        self._unread: list[torch.Tensor] = []  # each (kept, layers, hidden)

    @property
    def cache_length(self) -> int:
        """How many positions the head's own cache holds."""
        return self._cache.length

    def propose(self, context: Context, draws: Draws) -> Draft:
        """Run the head once, then draw each token; nothing in the first round."""
        gamma = min(self.gamma, context.room)
        if not self._unread or gamma < 1:
            return Draft.empty(self.vocab_size)
        rows = iter(self._logits(context.tokens, gamma))  # (gamma, vocab), from one pass
        return draw_chain(lambda _: next(rows), gamma, context, draws, self.vocab_size)

    def _logits(self, text: IntArray, gamma: int) -> Any:
        """Return the logits ``(gamma, vocab)`` of one pass: what is new, and placeholders."""
        model, head, first = self.target.model, self.head, self._cache.length
        with torch.inference_mode():
            features = torch.cat(self._unread)  # (new, layers, hidden)
            assert first + len(features) == len(text) - 1, "a feature for every token but the last"
            following = torch.as_tensor(text[first + 1 :], device=features.device)  # (new,)
            x = head.fused(features) + head.embedded(following, model.get_input_embeddings())
            states = head.in_one_pass(x, gamma, first, self._cache)  # (gamma, hidden)
            self._unread = []
            return head.logits(states, model.get_output_embeddings()).double().cpu().numpy()

    def commit(self, emitted: IntArray, path: Sequence[int]) -> None:
        """Take the features of what the target has read; drafts leave nothing in the cache."""
        self._unread.append(self.target.features)  # (kept, layers, hidden)


__all__ = ["Parallel"]
