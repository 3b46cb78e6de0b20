"""Parts done wrong: rules, draws, drafters and targets, each the right one with one thing changed.

A wrong rule is ``rejection`` for chains with one line changed. Wrong draws, drafters and targets
break their promise (:mod:`specviz.core.contract`): thin wrappers around the right ones.
"""

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
from specviz.core.rules import Decision, ratio, residual
from specviz.core.rules.block import block_acceptance, prefix_shares, scaled_residual

DistributionChange = Callable[[FloatArray], FloatArray]
DraftChange = Callable[[Draft, int], Draft]
Chance = Callable[[FloatArray, FloatArray, int], float]
Correction = Callable[[FloatArray, FloatArray, int], FloatArray]


def chain(
    draft: Draft,
    p: Any,
    draws: Draws,
    start: int,
    *,
    chance: Chance = ratio,
    correction: Correction = lambda p, q, x: residual(p, q),
    bonus: Callable[[Draft, Any], FloatArray] = lambda draft, p: p[len(draft)],
    judged_by: Callable[[int], int] = lambda i: i,
) -> Decision:
    """Judge a chain; with nothing changed this is ``rejection``."""
    n = len(draft)
    for i, x in enumerate(draft.tokens.tolist()):
        distribution, q = p[min(judged_by(i), n)], draft.distribution(i, len(p[0]))
        if not draws.accept(chance(distribution, q, x), start + i, i):
            distribution = correction(distribution, q, x)
            return Decision(
                list(range(i)), draws.categorical(distribution, start + i), distribution
            )
    distribution = bonus(draft, p)
    return Decision(list(range(n)), draws.categorical(distribution, start + n), distribution)


def absolute_difference(p: FloatArray, q: FloatArray, x: int) -> FloatArray:
    """Return norm(|p - q|): forgets that the residual is cut at 0."""
    left = np.abs(p - q)
    mass = left.sum()
    return left / mass if mass > 0 else p


def without_token(p: FloatArray, q: FloatArray, x: int) -> FloatArray:
    """Return p without the rejected token, renormalised."""
    left = p.copy()
    left[x] = 0.0
    mass = left.sum()
    return left / mass if mass > 0 else p


def from_draft(p: FloatArray, q: FloatArray, x: int) -> FloatArray:
    """Return q: a second try of the draft in place of the correction."""
    return q


def swapped(p: FloatArray, q: FloatArray, x: int) -> float:
    """Return min(1, q / p): the ratio upside down."""
    return min(1.0, float(q[x]) / float(p[x])) if p[x] > 0 else 1.0


def bare_threshold(p: FloatArray, q: FloatArray, x: int) -> float:
    """Return p(x): u is compared with p alone, q is forgotten."""
    return float(p[x])


def target_likes_it_more(p: FloatArray, q: FloatArray, x: int) -> float:
    """Return 1 if p(x) >= q(x), else 0: no draw at all."""
    return float(p[x] >= q[x])


def always(p: FloatArray, q: FloatArray, x: int) -> float:
    """Return 1: every proposal is accepted."""
    return 1.0


def bonus_of_draft(draft: Draft, p: Any) -> FloatArray:
    """Return the draft's last distribution in place of p after the last proposal."""
    return draft.distribution(len(draft) - 1, len(p[0])) if len(draft) else p[0]


def bonus_one_early(draft: Draft, p: Any) -> FloatArray:
    """Return p *at* the last proposal in place of p *after* it."""
    distribution: FloatArray = p[max(0, len(draft) - 1)]
    return distribution


def first_token_unverified(draft: Draft, p: Any, draws: Draws, start: int) -> Decision:
    """Commit the first proposal without judging it."""
    return chain(
        draft, p, draws, start,
        chance=_first_free(draft),
    )  # fmt: skip


def _first_free(draft: Draft) -> Chance:
    judged: list[int] = []

    def chance(p: FloatArray, q: FloatArray, x: int) -> float:
        judged.append(x)
        return 1.0 if len(judged) == 1 else ratio(p, q, x)

    return chance


def block_stops_at_first_failure(draft: Draft, p: Any, draws: Draws, start: int) -> Decision:
    """Verify a block, but stop at the first position that fails instead of the last that passes."""
    tau = 0  # how many are accepted
    for i, passing in enumerate(block_acceptance(draft, p)):
        if not draws.accept(float(passing), start + i, i):
            break
        tau = i + 1
    distribution = p[tau]
    if tau < len(draft):
        share, q = prefix_shares(draft, p)[tau], draft.distribution(tau, len(distribution))
        distribution = scaled_residual(share, distribution, q)
    return Decision(list(range(tau)), draws.categorical(distribution, start + tau), distribution)


class PassedOn:
    """Draws that pass everything on to the right ones; what is wrong overrides it."""

    def __init__(self, inner: Draws) -> None:
        self._inner = inner

    @property
    def log(self) -> list[Event]:
        """What was drawn."""
        return self._inner.log

    def begin_round(self, index: int) -> None:
        """Go on to a round."""
        self._inner.begin_round(index)

    def accept(self, probability: float, position: int, node: int) -> bool:
        """Compare a uniform with the probability."""
        return self._inner.accept(probability, position, node)

    def categorical(
        self, distribution: Any, position: int, node: int = 0, purpose: Purpose = Purpose.CLOSING
    ) -> int:
        """Draw a token."""
        return self._inner.categorical(distribution, position, node, purpose)

    def race(self, distribution: Any, position: int, node: int = -1) -> int:
        """Draw a token by an exponential race."""
        return self._inner.race(distribution, position, node)


class DrawsOtherwise(PassedOn):
    """Draft draws from a changed distribution; the drafter reports the unchanged one."""

    def __init__(self, inner: Draws, change: DistributionChange) -> None:
        super().__init__(inner)
        self._change = change

    def categorical(
        self, distribution: Any, position: int, node: int = 0, purpose: Purpose = Purpose.CLOSING
    ) -> int:
        """Draw from the changed distribution where the draft asks."""
        if purpose is Purpose.DRAFT:
            distribution = self._change(np.asarray(distribution))
        return super().categorical(distribution, position, node, purpose)


class SharedUniforms(PassedOn):
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
        super().__init__(inner)
        self._which = which
        self._within: dict[int, tuple[float, float]] = {}

    def begin_round(self, index: int) -> None:
        """Go on to a round; only a uniform of the round is drawn anew."""
        if self._which == "round":
            self._within = {}
        super().begin_round(index)

    def accept(self, probability: float, position: int, node: int) -> bool:
        """Compare the shared uniform with the probability."""
        key = node if self._which == "node" else 0
        low, high = self._within.get(key, (0.0, 1.0))
        chance = min(1.0, max(0.0, (probability - low) / (high - low)))
        accepted = super().accept(chance, position, node)
        cut = min(high, max(low, probability))
        self._within[key] = (low, cut) if accepted else (cut, high)
        return accepted


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
