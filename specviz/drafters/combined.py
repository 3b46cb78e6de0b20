"""One drafter first, another where the first has nothing to say: look up, else ask a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from specviz.core.contract import Context, Draft, Drafter, IntArray, Target
from specviz.core.draws import Draws
from specviz.drafters.draft_model import DraftModel
from specviz.drafters.prompt_lookup import PromptLookup


class Combined:
    """Ask several drafters in turn; the first that proposes anything has the round.

    Who proposes may depend on the text only. So each drafter but the last must be one that
    makes no random draws, such as :class:`~specviz.drafters.prompt_lookup.PromptLookup`.

    Parameters
    ----------
    drafters : Drafter
        In the order asked; by default prompt lookup (needing two equal tokens), then the draft
        model.

    Raises
    ------
    TypeError
        If one of them is no drafter.

    Examples
    --------
    >>> Combined(PromptLookup(gamma=8), DraftModel(gamma=4)).gamma
    8
    """

    name = "combined"

    def __init__(self, *drafters: Drafter) -> None:
        self.drafters = drafters or (PromptLookup(min_ngram=2), DraftModel())
        for drafter in self.drafters:
            if isinstance(drafter, type) or not isinstance(drafter, Drafter):
                raise TypeError(
                    f"Combined takes drafters such as PromptLookup() and DraftModel(), "
                    f"got {drafter!r}"
                )
        self.trees = any(getattr(drafter, "trees", False) for drafter in self.drafters)
        self.lossless = all(getattr(drafter, "lossless", True) for drafter in self.drafters)
        self._proposer: Drafter | None = None

    @property
    def gamma(self) -> int:
        """The deepest that any of them proposes."""
        return max(drafter.gamma for drafter in self.drafters)

    @property
    def cache_length(self) -> int:
        """Tokens in the caches of all of them."""
        return sum(drafter.cache_length for drafter in self.drafters)

    def begin(self, pair: Any, target: Target, prompt: IntArray) -> None:
        """Get all of them ready."""
        for drafter in self.drafters:
            drafter.begin(pair, target, prompt)

    def propose(self, context: Context, draws: Draws) -> Draft:
        """Return the first draft that is not empty."""
        for drafter in self.drafters:
            self._proposer = drafter
            draft = drafter.propose(context, draws)
            if len(draft):
                break
        return draft

    def commit(self, emitted: IntArray, path: Sequence[int]) -> None:
        """Tell all of them; only the one that proposed had nodes accepted."""
        for drafter in self.drafters:
            drafter.commit(emitted, path if drafter is self._proposer else [])

    def settings(self) -> dict[str, Any]:
        """Return what a trace says of this drafter."""
        return {
            "name": self.name,
            "gamma": self.gamma,
            "drafters": [drafter.settings() for drafter in self.drafters],
        }
