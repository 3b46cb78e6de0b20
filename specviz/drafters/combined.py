"""One drafter first, another where the first has nothing to say: look up, else ask a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any, ClassVar

from specviz.core.contract import (
    Context,
    Draft,
    Drafter,
    DrafterTraits,
    DraftSession,
    IntArray,
    ModelPair,
    Target,
)
from specviz.core.draws import Draws
from specviz.drafters.draft_model import DraftModel
from specviz.drafters.prompt_lookup import PromptLookup


@dataclass(frozen=True, init=False)
class Combined:
    """Ask several drafters in turn; the first that proposes anything has the round.

    Which of them proposes may depend on the text only. So every drafter but the last must make no
    random draws, as :class:`~specviz.drafters.prompt_lookup.PromptLookup` does.

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
    >>> Combined(PromptLookup(gamma=8), DraftModel(gamma=4)).depth
    8
    """

    name: ClassVar[str] = "combined"

    drafters: tuple[Drafter, ...]

    def __init__(self, *drafters: Drafter) -> None:
        chosen = drafters or (PromptLookup(min_ngram=2), DraftModel())
        for drafter in chosen:
            if isinstance(drafter, type) or not isinstance(drafter, Drafter):
                raise TypeError(
                    f"Combined takes drafters such as PromptLookup() and DraftModel(), "
                    f"got {drafter!r}"
                )
        object.__setattr__(self, "drafters", chosen)

    @property
    def depth(self) -> int:
        """The deepest that any of them proposes."""
        return max(drafter.depth for drafter in self.drafters)

    @property
    def traits(self) -> DrafterTraits:
        """What any of them is and requires: the rule has to suit them all."""
        return reduce(or_, (drafter.traits for drafter in self.drafters))

    def start(self, pair: ModelPair, target: Target, prompt: IntArray) -> CombinedSession:
        """Start all of them on the text."""
        return CombinedSession(self, [one.start(pair, target, prompt) for one in self.drafters])

    def settings(self) -> dict[str, Any]:
        """Return what a trace says of this drafter."""
        parts = [drafter.settings() for drafter in self.drafters]
        return {"name": self.name, "gamma": self.depth, "drafters": parts}


class CombinedSession(DraftSession):
    """One text, drafted in each round by the first session that has anything to propose."""

    def __init__(self, recipe: Combined, sessions: list[DraftSession]) -> None:
        self.recipe, self.sessions = recipe, sessions
        self._proposer = sessions[0]

    @property
    def gamma(self) -> int:
        """The deepest that any of them proposes now."""
        return max(session.gamma for session in self.sessions)

    @property
    def cache_length(self) -> int:
        """Tokens in the caches of all of them."""
        return sum(session.cache_length for session in self.sessions)

    def propose(self, context: Context, draws: Draws) -> Draft:
        """Return the first draft that is not empty."""
        for session in self.sessions:
            self._proposer = session
            draft = session.propose(context, draws)
            if len(draft):
                break
        return draft

    def commit(self, emitted: IntArray, path: Sequence[int]) -> None:
        """Tell all of them; only the one that proposed had nodes accepted."""
        for session in self.sessions:
            session.commit(emitted, path if session is self._proposer else [])

    def settings(self) -> dict[str, Any]:
        """Return what a trace says of this drafter."""
        parts = [session.settings() for session in self.sessions]
        return {"name": Combined.name, "gamma": self.gamma, "drafters": parts}
