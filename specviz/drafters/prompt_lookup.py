"""Prompt lookup: what followed these words last time is proposed again. No model, one-hot q."""

from __future__ import annotations

from dataclasses import KW_ONLY, asdict, dataclass
from typing import Any, ClassVar

import numpy as np

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


@dataclass(frozen=True)
class PromptLookup:
    """Propose the continuation of an earlier occurrence of the text's last few tokens.

    The longest suffix counts, from ``max_ngram`` tokens down to ``min_ngram``; among its
    occurrences the most recent one that is followed by enough tokens. Where there is none the
    round is an ordinary step of the target. Every proposal is a deterministic choice, so its
    distribution q is one-hot and it is accepted with probability p(x).

    Parameters
    ----------
    gamma : int
        How many tokens to propose.
    max_ngram, min_ngram : int
        Longest and shortest suffix to look for.

    Raises
    ------
    TypeError, ValueError
        If an argument is out of range.

    Examples
    --------
    >>> PromptLookup(gamma=3).continuation(np.array([5, 6, 7, 8, 9, 5, 6]), 3)
    array([7, 8, 9])
    """

    name: ClassVar[str] = "prompt_lookup"
    traits: ClassVar[DrafterTraits] = DrafterTraits()

    gamma: int = 8
    _: KW_ONLY
    max_ngram: int = 3
    min_ngram: int = 1

    def __post_init__(self) -> None:
        for name, least in (("gamma", 0), ("max_ngram", 1), ("min_ngram", 1)):
            object.__setattr__(self, name, checks.whole(name, getattr(self, name), least))
        if self.min_ngram > self.max_ngram:
            raise ValueError(
                f"min_ngram must not exceed max_ngram, got {self.min_ngram} and {self.max_ngram}"
            )

    @property
    def depth(self) -> int:
        """How many tokens it proposes, where there is room and a match."""
        return self.gamma

    def start(self, pair: ModelPair, target: Target, prompt: IntArray) -> PromptLookupSession:
        """Return a session for one text."""
        return PromptLookupSession(self, pair.vocab_size)

    def continuation(self, text: IntArray, length: int) -> IntArray:
        """Return up to ``length`` tokens that followed the longest suffix seen before."""
        for n in range(min(self.max_ngram, len(text) - 1), self.min_ngram - 1, -1):
            if length < 1:
                break
            windows = np.lib.stride_tricks.sliding_window_view(text[:-1], n)
            starts = np.flatnonzero((windows == text[-n:]).all(axis=1)) + n
            if len(starts):
                enough = starts[starts + length <= len(text)]
                start = enough[-1] if len(enough) else starts[0]
                return text[start : start + length]
        return text[:0]

    def settings(self) -> dict[str, Any]:
        """Return what a trace says of this drafter."""
        return {"name": self.name, **asdict(self)}


@dataclass(frozen=True)
class PromptLookupSession(DraftSession):
    """One text that is its own draft: there is nothing to roll back but the text itself."""

    recipe: PromptLookup
    vocab_size: int

    def propose(self, context: Context, draws: Draws) -> Draft:
        """Look the text's last tokens up in the text itself."""
        found = self.recipe.continuation(context.tokens, min(self.gamma, context.room))
        ends = np.flatnonzero(np.isin(found, list(context.stop_ids)))
        if len(ends):
            found = found[: ends[0] + 1]  # nothing can follow an end
        return Draft.chain(found.tolist(), None, self.vocab_size)
