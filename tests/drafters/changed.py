"""A drafter whose sessions hand on something else than they proposed: for planted faults."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from specviz.core.contract import Context, Draft, DraftSession, IntArray
from specviz.core.draws import Draws
from specviz.drafters.kv_projection import KVProjection, KVProjectionSession


class Changed(ABC):
    """Comes before a drafter's class; a subclass says in ``change`` what is handed on."""

    def start(self, pair: Any, target: Any, prompt: IntArray) -> ChangedSession:
        return ChangedSession(super().start(pair, target, prompt), self)  # type: ignore[misc]

    @abstractmethod
    def change(self, inner: Any, context: Context, draws: Draws) -> Draft:
        """Return what is handed on in place of the inner session's proposal."""


class ChangedSession(DraftSession):
    def __init__(self, inner: DraftSession, recipe: Changed) -> None:
        self.inner, self.recipe = inner, recipe

    @property
    def gamma(self) -> int:
        return self.inner.gamma

    @property
    def cache_length(self) -> int:
        return self.inner.cache_length

    def propose(self, context: Context, draws: Draws) -> Draft:
        return self.recipe.change(self.inner, context, draws)

    def commit(self, emitted: IntArray, path: Sequence[int]) -> None:
        self.inner.commit(emitted, path)

    def settings(self) -> dict[str, Any]:
        return self.inner.settings()


class UnprojectedSession(KVProjectionSession):
    def _project(self, end: int) -> None:
        pass


class Unprojected(KVProjection):
    """The twin: the same drafter, but the target keeps its own keys and values."""

    def start(self, pair: Any, target: Any, prompt: Any) -> UnprojectedSession:
        own = super().start(pair, target, prompt)
        return UnprojectedSession(self, own.model, own.target, own.projection)
