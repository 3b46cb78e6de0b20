"""Drafters, draws and targets that break their promise: thin wrappers around the right ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from specviz.core.contract import (
    Context,
    Draft,
    Drafter,
    DrafterTraits,
    DraftSession,
    FloatArray,
    IntArray,
    ModelPair,
    Target,
)
from specviz.core.draws import Draws, Event, Purpose

DistributionChange = Callable[[FloatArray], FloatArray]
DraftChange = Callable[[Draft, int], Draft]


class DrawsOtherwise:
    """Draft draws from a changed distribution; the drafter reports the unchanged one."""

    def __init__(self, inner: Draws, change: DistributionChange) -> None:
        self._inner, self._change = inner, change

    @property
    def log(self) -> list[Event]:
        """What was drawn."""
        return self._inner.log

    def begin_round(self, index: int) -> None:
        """Pass on."""
        self._inner.begin_round(index)

    def accept(self, probability: float, position: int, node: int) -> bool:
        """Pass on."""
        return self._inner.accept(probability, position, node)

    def race(self, distribution: Any, position: int, node: int = -1) -> int:
        """Pass on."""
        return self._inner.race(distribution, position, node)

    def categorical(
        self, distribution: Any, position: int, node: int = 0, purpose: Purpose = Purpose.CLOSING
    ) -> int:
        """Draw from the changed distribution where the draft asks."""
        if purpose is Purpose.DRAFT:
            distribution = self._change(np.asarray(distribution))
        return self._inner.categorical(distribution, position, node, purpose)


@dataclass(frozen=True)
class WrongDrafter:
    """A drafter that draws from another distribution than it reports, or reports another draft.

    Parameters
    ----------
    inner : Drafter
        The right one.
    draws_from : callable, optional
        Distribution → the distribution that proposals are really drawn from.
    reports : callable, optional
        (draft, vocab_size) → the draft that is handed on.
    """

    inner: Drafter
    draws_from: DistributionChange | None = None
    reports: DraftChange | None = None

    @property
    def name(self) -> str:
        """The inner drafter's."""
        return self.inner.name

    @property
    def traits(self) -> DrafterTraits:
        """The inner drafter's."""
        return self.inner.traits

    @property
    def depth(self) -> int:
        """How deep the inner drafter proposes."""
        return self.inner.depth

    def start(self, pair: ModelPair, target: Target, prompt: IntArray) -> WrongSession:
        """Start the inner drafter."""
        return WrongSession(self, self.inner.start(pair, target, prompt), pair.vocab_size)

    def settings(self) -> dict[str, Any]:
        """Return what a trace says of the inner drafter."""
        return self.inner.settings()


@dataclass(frozen=True)
class WrongSession(DraftSession):
    """One text drafted wrongly."""

    recipe: WrongDrafter
    inner: DraftSession
    vocab_size: int

    @property
    def gamma(self) -> int:
        """How deep the inner session proposes."""
        return self.inner.gamma

    @property
    def cache_length(self) -> int:
        """Tokens in the inner session's cache."""
        return self.inner.cache_length

    def propose(self, context: Context, draws: Draws) -> Draft:
        """Propose with changed draws, then change the report."""
        if self.recipe.draws_from is not None:
            draws = DrawsOtherwise(draws, self.recipe.draws_from)
        draft = self.inner.propose(context, draws)
        return draft if self.recipe.reports is None else self.recipe.reports(draft, self.vocab_size)

    def commit(self, emitted: IntArray, path: Sequence[int]) -> None:
        """Pass on."""
        self.inner.commit(emitted, path)

    def settings(self) -> dict[str, Any]:
        """Return what a trace says of the inner drafter."""
        return self.inner.settings()


def sharpest(distribution: FloatArray) -> FloatArray:
    """Return all mass on the most likely token."""
    out = np.zeros_like(distribution)
    out[int(distribution.argmax())] = 1.0
    return out


def top_two(distribution: FloatArray) -> FloatArray:
    """Return the two most likely tokens, renormalised."""
    out: FloatArray = np.zeros_like(distribution)
    best = np.argsort(-distribution, kind="stable")[:2]
    out[best] = distribution[best]
    out /= out.sum()
    return out


def colder(distribution: FloatArray) -> FloatArray:
    """Return the distribution at half its temperature."""
    out: FloatArray = distribution**2
    out /= out.sum()
    return out


def drop_unsure(draft: Draft, vocab_size: int, floor: float = 0.5) -> Draft:
    """Drop a sampled proposal, and what follows it, because of its own low confidence."""
    for i, x in enumerate(draft.tokens.tolist()):
        if draft.distribution(i, vocab_size)[x] < floor:
            return _first(draft, i)
    return draft


def _first(draft: Draft, n: int) -> Draft:
    return Draft(draft.tokens[:n], draft.parent[:n], draft.q[:n], draft.q_row[:n])


def uniform_q(draft: Draft, vocab_size: int) -> Draft:
    """Report a uniform q, whatever the distribution was."""
    distributions = np.full((len(draft), vocab_size), 1 / vocab_size)
    return Draft.chain(draft.tokens.tolist(), distributions, vocab_size)


def rounded_q(draft: Draft, vocab_size: int) -> Draft:
    """Report q rounded to bfloat16 (8 significant bits), though proposals came from the exact q."""
    bits = draft.q.astype(np.float32).view(np.uint32)
    nearest = (bits + np.uint32(0x8000)) & np.uint32(0xFFFF0000)
    rounded = nearest.view(np.float32).astype(np.float64)
    return Draft(draft.tokens, draft.parent, rounded, draft.q_row)


def softened_one_hot(draft: Draft, vocab_size: int) -> Draft:
    """Report a soft q for deterministic choices: half on the token, half spread over all."""
    distributions = np.full((len(draft), vocab_size), 0.5 / vocab_size)
    distributions[np.arange(len(draft)), draft.tokens] += 0.5
    return Draft.chain(draft.tokens.tolist(), distributions, vocab_size)


def siblings_deduplicated(draft: Draft, vocab_size: int) -> Draft:
    """Drop a sibling that repeats an earlier one's token (for trees of depth 1)."""
    _, first = np.unique(draft.tokens, return_index=True)
    return _picked(draft, np.sort(first))


def siblings_by_confidence(draft: Draft, vocab_size: int) -> Draft:
    """Try the likelier sibling first, whichever was drawn first (for trees of depth 1)."""
    if len(draft) == 0:
        return draft
    order = np.argsort(-draft.q[0][draft.tokens], kind="stable")
    return _picked(draft, order)


def siblings_one_distribution(draft: Draft, vocab_size: int) -> Draft:
    """Report the first sibling's q for all; later ones were drawn without its token."""
    return Draft(draft.tokens, draft.parent, draft.q, np.zeros_like(draft.q_row))


def _picked(draft: Draft, nodes: IntArray) -> Draft:
    return Draft(draft.tokens[nodes], draft.parent[nodes], draft.q, draft.q_row[nodes])


class SharedUniforms:
    """Accept draws that use one uniform where several are due.

    What earlier comparisons with the same uniform told about it narrows the interval it lies in,
    so that sharing can be enumerated as well as sampled.

    Parameters
    ----------
    inner : Draws
        The right draws.
    which : {"run", "round", "node"}
        One uniform for the whole run, for each round, or for each node in every round alike.
    """

    def __init__(self, inner: Draws, which: str) -> None:
        self._inner, self._which = inner, which
        self._within: dict[int, tuple[float, float]] = {}

    @property
    def log(self) -> list[Event]:
        """What was drawn."""
        return self._inner.log

    def begin_round(self, index: int) -> None:
        """Go on to a round; only a uniform of the round is drawn anew."""
        if self._which == "round":
            self._within = {}
        self._inner.begin_round(index)

    def accept(self, probability: float, position: int, node: int) -> bool:
        """Compare the shared uniform with the probability."""
        key = node if self._which == "node" else 0
        low, high = self._within.get(key, (0.0, 1.0))
        chance = min(1.0, max(0.0, (probability - low) / (high - low)))
        accepted = self._inner.accept(chance, position, node)
        cut = min(high, max(low, probability))
        self._within[key] = (low, cut) if accepted else (cut, high)
        return accepted

    def categorical(
        self, distribution: Any, position: int, node: int = 0, purpose: Purpose = Purpose.CLOSING
    ) -> int:
        """Pass on."""
        return self._inner.categorical(distribution, position, node, purpose)

    def race(self, distribution: Any, position: int, node: int = -1) -> int:
        """Pass on."""
        return self._inner.race(distribution, position, node)


class WrongTarget:
    """A target whose logits, or whose rollback, are changed."""

    def __init__(
        self,
        inner: Target,
        logits: Callable[[NDArray[Any]], NDArray[Any]] | None = None,
        keeps_rejected: bool = False,
    ) -> None:
        self._inner, self._logits, self._keeps_rejected = inner, logits, keeps_rejected
        self.vocab_size = inner.vocab_size
        self.context_length = inner.context_length
        self._extra = 0

    @property
    def length(self) -> int:
        """Tokens the loop believes to be in the cache."""
        return self._inner.length - self._extra

    def begin(self) -> None:
        """Forget everything."""
        self._inner.begin()
        self._extra = 0

    def verify(self, pending: IntArray, draft: Draft) -> NDArray[Any]:
        """Return changed logits."""
        self._n = len(draft)
        logits = self._inner.verify(pending, draft)
        return logits if self._logits is None else self._logits(logits)

    def keep(self, path: Sequence[int]) -> None:
        """Roll back, or leave one rejected proposal where it is."""
        left = [*path]
        if self._keeps_rejected and len(path) < self._n:
            left.append(len(path))
            self._extra += 1
        self._inner.keep(left)

    def crop(self, length: int) -> None:
        """Forget every token after the first ``length``."""
        self._inner.crop(length + self._extra)
