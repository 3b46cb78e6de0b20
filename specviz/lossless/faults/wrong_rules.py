"""Verification done wrong: each function is ``rejection`` for chains with one line changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from specviz.core.contract import Draft, FloatArray
from specviz.core.draws import Draws
from specviz.core.rules import Decision, ratio, residual
from specviz.core.rules.block import block_acceptance, prefix_shares, scaled_residual

Distribution = FloatArray
Chance = Callable[[Distribution, Distribution, int], float]
Correction = Callable[[Distribution, Distribution, int], Distribution]


def chain(
    draft: Draft,
    p: Any,
    draws: Draws,
    start: int,
    *,
    chance: Chance = ratio,
    correction: Correction = lambda p, q, x: residual(p, q),
    bonus: Callable[[Draft, Any], Distribution] = lambda draft, p: p[len(draft)],
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


def absolute_difference(p: Distribution, q: Distribution, x: int) -> Distribution:
    """Return norm(|p - q|): forgets that the residual is cut at 0."""
    left = np.abs(p - q)
    mass = left.sum()
    return left / mass if mass > 0 else p


def without_token(p: Distribution, q: Distribution, x: int) -> Distribution:
    """Return p without the rejected token, renormalised."""
    left = p.copy()
    left[x] = 0.0
    mass = left.sum()
    return left / mass if mass > 0 else p


def from_draft(p: Distribution, q: Distribution, x: int) -> Distribution:
    """Return q: a second try of the draft in place of the correction."""
    return q


def swapped(p: Distribution, q: Distribution, x: int) -> float:
    """Return min(1, q / p): the ratio upside down."""
    return min(1.0, float(q[x]) / float(p[x])) if p[x] > 0 else 1.0


def bare_threshold(p: Distribution, q: Distribution, x: int) -> float:
    """Return p(x): u is compared with p alone, q is forgotten."""
    return float(p[x])


def target_likes_it_more(p: Distribution, q: Distribution, x: int) -> float:
    """Return 1 if p(x) >= q(x), else 0: no draw at all."""
    return float(p[x] >= q[x])


def always(p: Distribution, q: Distribution, x: int) -> float:
    """Return 1: the draft is believed."""
    return 1.0


def bonus_of_draft(draft: Draft, p: Any) -> Distribution:
    """Return the draft's last distribution in place of p after the last proposal."""
    return draft.distribution(len(draft) - 1, len(p[0])) if len(draft) else p[0]


def bonus_one_early(draft: Draft, p: Any) -> Distribution:
    """Return p *at* the last proposal in place of p *after* it."""
    distribution: Distribution = p[max(0, len(draft) - 1)]
    return distribution


def first_token_unverified(draft: Draft, p: Any, draws: Draws, start: int) -> Decision:
    """Commit the first proposal without judging it."""
    return chain(
        draft, p, draws, start,
        chance=_first_free(draft),
    )  # fmt: skip


def _first_free(draft: Draft) -> Chance:
    judged: list[int] = []

    def chance(p: Distribution, q: Distribution, x: int) -> float:
        judged.append(x)
        return 1.0 if len(judged) == 1 else ratio(p, q, x)

    return chance


def block_stops_at_first_failure(draft: Draft, p: Any, draws: Draws, start: int) -> Decision:
    """Verify a block, but stop at the first position that fails instead of the last that passes."""
    kept = 0
    for i, passing in enumerate(block_acceptance(draft, p)):
        if not draws.accept(float(passing), start + i, i):
            break
        kept = i + 1
    distribution = p[kept]
    if kept < len(draft):
        distribution = scaled_residual(
            prefix_shares(draft, p)[kept], distribution, draft.distribution(kept, len(distribution))
        )
    return Decision(list(range(kept)), draws.categorical(distribution, start + kept), distribution)
