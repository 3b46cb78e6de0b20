"""Rules and drafters that are wrong on purpose: every check of exactness must catch them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from specviz.core.contract import ROOT, Context, Draft, DrafterTraits, DraftSession
from specviz.core.draws import Draws, Purpose
from specviz.core.rules import RULES, Decision, Rule, greedy, match, ratio, residual
from specviz.decoding.sampling import logits_to_distributions
from specviz.drafters.draft_model import DraftModel, DraftModelSession
from specviz.lossless.faults.wrong_parts import DrawsOtherwise, sharpest
from tests.drafters.changed import Changed

Close = Callable[[Any, Any, int], Any]
"""(p, q, rejected token) -> the distribution of the correction."""


def chain_rule(
    correction: Close = lambda p, q, x: residual(p, q),
    bonus: Callable[[Any, Any], Any] = lambda p, q: p,
    *,
    bonus_row: int = 0,
    acceptance: Callable[[Any, Any, int], float] = ratio,
) -> Rule:
    """The rejection rule for chains; with no argument it is right."""

    def verify(draft: Draft, p: Any, draws: Draws, start: int) -> Decision:
        vocab_size = len(p[0])
        path: list[int] = []
        q = p[0]
        for node in range(len(draft)):
            x, q = int(draft.tokens[node]), draft.distribution(node, vocab_size)
            if not draws.accept(acceptance(p[node], q, x), start + node, node):
                distribution = correction(p[node], q, x)
                return Decision(path, draws.categorical(distribution, start + node), distribution)
            path.append(node)
        distribution = bonus(p[max(0, len(path) - bonus_row)], q)
        return Decision(path, draws.categorical(distribution, start + len(path)), distribution)

    return replace(RULES["rejection"], verify=verify)


def without(p: Any, q: Any, x: int) -> Any:
    left = p.copy()
    left[x] = 0
    return left / left.sum()


def absolute(p: Any, q: Any, x: int) -> Any:
    return abs(p - q) / abs(p - q).sum()


def bare_threshold(p: Any, q: Any, x: int) -> float:
    """Accept if the target's probability exceeds u: forgets q."""
    return float(p[x])


WRONG_RULES: dict[str, Rule] = {
    "resample_from_p": chain_rule(lambda p, q, x: p),
    "residual_absolute_difference": chain_rule(absolute),
    "p_without_the_rejected_token": chain_rule(without),
    "bonus_from_the_draft": chain_rule(bonus=lambda p, q: q),
    "bonus_from_the_wrong_position": chain_rule(bonus_row=1),
    "bare_threshold": chain_rule(acceptance=bare_threshold),
}


def _fresh_on_mismatch(draft: Draft, p: Any, draws: Draws, start: int) -> Decision:
    """Match, but a mismatch draws once more instead of keeping the target's own token."""
    right = match(draft, p, draws, start)
    if not draft.children(right.path[-1] if right.path else ROOT):
        return right
    return Decision(
        right.path,
        draws.categorical(right.distribution, start + len(right.path)),
        right.distribution,
    )


def _off_by_one(draft: Draft, p: Any, draws: Draws, start: int) -> Decision:
    """Greedy, but the closing token is read one row too early."""
    right = greedy(draft, p, draws, start)
    distribution = p[right.path[-1]] if right.path else p[0]
    return Decision(right.path, int(distribution.argmax()), distribution)


FRESH_ON_MISMATCH = replace(RULES["match"], verify=_fresh_on_mismatch)
GREEDY_OFF_BY_ONE = replace(RULES["greedy"], verify=_off_by_one)


class SoftGreedySession(DraftModelSession):
    def propose(self, context: Context, draws: Draws) -> Draft:
        return super().propose(context, DrawsOtherwise(draws, sharpest))


class SoftGreedyDraft(DraftModel):
    """Picks the most likely token, but reports the soft distribution as q."""

    def start(self, pair: Any, target: Any, prompt: Any) -> Any:
        return SoftGreedySession(self, super().start(pair, target, prompt).model)


class OneHotGreedyDraft(Changed, SoftGreedyDraft):
    """Picks the most likely token and says so: right."""

    def change(self, inner: Any, context: Context, draws: Draws) -> Draft:
        soft = inner.propose(context, draws)
        return Draft.chain(soft.tokens.tolist(), None, soft.q.shape[1])


class UnfilteredDraft(Changed, DraftModel):
    """Draws after top-k and top-p, but reports q as it was before them."""

    def change(self, inner: Any, context: Context, draws: Draws) -> Draft:
        right = inner.propose(context, draws)
        soft = []
        for node in range(len(right)):
            text = np.append(context.tokens, right.tokens[:node])
            session = inner.model.model.session(right.q.shape[1])
            logits = session.verify(text, Draft.empty(right.q.shape[1]))
            soft.append(
                logits_to_distributions(logits, replace(context.sampling, top_k=0, top_p=1.0))[0]
            )
        if not soft:
            return right
        return Draft.chain(right.tokens.tolist(), np.stack(soft), right.q.shape[1])


class TwiceFilteredDraft(Changed, DraftModel):
    """Applies the temperature twice, and reports the distribution it so used: exact, only worse."""

    def change(self, inner: Any, context: Context, draws: Draws) -> Draft:
        t = context.sampling.temperature
        return inner.propose(
            replace(context, sampling=replace(context.sampling, temperature=t * t)), draws
        )


class ThresholdDraft(Changed, DraftModel):
    """Drops a proposal because of its own low confidence."""

    def __init__(self, gamma: int = 1, *, floor: float = 0.5) -> None:
        super().__init__(gamma)
        object.__setattr__(self, "floor", floor)

    def change(self, inner: Any, context: Context, draws: Draws) -> Draft:
        full = inner.propose(context, draws)
        confident = full.q[np.arange(len(full)), full.tokens] >= self.floor
        n = len(full) if confident.all() else int(np.argmin(confident))
        return Draft.chain(full.tokens[:n].tolist(), full.q[:n], full.q.shape[1])


class StopAfterLowConfidence(ThresholdDraft):
    """Stops at a low-confidence token and has it verified: exact."""

    def change(self, inner: Any, context: Context, draws: Draws) -> Draft:
        full = inner.propose(context, draws)
        confident = full.q[np.arange(len(full)), full.tokens] >= self.floor
        n = len(full) if confident.all() else int(np.argmin(confident)) + 1
        return Draft.chain(full.tokens[:n].tolist(), full.q[:n], full.q.shape[1])


class Siblings:
    """Two proposals at one position, each drawn from the same q, then a child of the first."""

    name = "siblings"
    traits = DrafterTraits(trees=True)
    depth = 2

    def start(self, pair: Any, target: Any, prompt: Any) -> Any:
        return SiblingsSession(pair)

    def settings(self) -> dict[str, Any]:
        return {"name": self.name}


class SiblingsSession(DraftSession):
    gamma = 2

    def __init__(self, pair: Any) -> None:
        self.pair = pair
        self.alone = False

    def settings(self) -> dict[str, Any]:
        return {"name": "siblings"}

    def _draw(self, text: Any, context: Context, draws: Draws, node: int) -> tuple[int, Any]:
        session = self.pair.draft.session(self.pair.vocab_size)
        q = logits_to_distributions(
            session.verify(text, Draft.empty(self.pair.vocab_size)), context.sampling
        )[0]
        return draws.categorical(q, len(text), node, Purpose.DRAFT), q

    def propose(self, context: Context, draws: Draws) -> Draft:
        if context.room < 1:
            return Draft.empty(self.pair.vocab_size)
        text = context.tokens
        nodes = [(ROOT, *self._draw(text, context, draws, 0))]
        if not self.alone:
            nodes.append((ROOT, *self._draw(text, context, draws, 1)))
        if context.room > 1:
            below = np.append(text, nodes[0][1])
            nodes.append((0, *self._draw(below, context, draws, len(nodes))))
        parent, tokens, q = zip(*nodes, strict=True)
        rows = np.arange(len(nodes))
        return Draft(np.array(tokens), np.array(parent), np.stack(q), rows)


class ShapedByTheDiscarded(Siblings):
    """The shape of a round depends on a proposal that the last one discarded.

    First a chain of two; if its second token was discarded unseen and was token 0, the next round
    tries two siblings, the second of which has the lane (1) and position of that discarded token.
    """

    def start(self, pair: Any, target: Any, prompt: Any) -> Any:
        return ShapedByTheDiscardedSession(pair)


class ShapedByTheDiscardedSession(SiblingsSession):
    def __init__(self, pair: Any) -> None:
        super().__init__(pair)
        self.alone = True
        self._last: Draft | None = None

    def propose(self, context: Context, draws: Draws) -> Draft:
        self._last = super().propose(context, draws)
        return self._last

    def commit(self, emitted: Any, path: Any) -> None:
        assert self._last is not None
        discarded = self._last.tokens[1:] if not path and self.alone else []
        self.alone = not (len(discarded) > 0 and discarded[0] == 0)
