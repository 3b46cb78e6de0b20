"""Verification done wrong: each function is ``rejection`` for chains with one line changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from specviz.core.block import block_acceptance, prefix_shares, scaled_residual
from specviz.core.contract import Draft, FloatArray
from specviz.core.draws import Draws
from specviz.core.rule import Verdict, ratio, residual

Law = FloatArray
Chance = Callable[[Law, Law, int], float]
Correction = Callable[[Law, Law, int], Law]


def chain(
    draft: Draft,
    p: Any,
    draws: Draws,
    start: int,
    *,
    chance: Chance = ratio,
    correction: Correction = lambda p, q, x: residual(p, q),
    bonus: Callable[[Draft, Any], Law] = lambda draft, p: p[len(draft)],
    judged_by: Callable[[int], int] = lambda i: i,
) -> Verdict:
    """Judge a chain; with nothing changed this is ``rejection``."""
    n = len(draft)
    for i, x in enumerate(draft.tokens.tolist()):
        law, q = p[min(judged_by(i), n)], draft.law(i, len(p[0]))
        if not draws.accept(chance(law, q, x), start + i, i):
            law = correction(law, q, x)
            return Verdict(list(range(i)), draws.categorical(law, start + i), law)
    law = bonus(draft, p)
    return Verdict(list(range(n)), draws.categorical(law, start + n), law)


def absolute_difference(p: Law, q: Law, x: int) -> Law:
    """Return norm(|p - q|): forgets that the residual is cut at 0."""
    left = np.abs(p - q)
    mass = left.sum()
    return left / mass if mass > 0 else p


def without_token(p: Law, q: Law, x: int) -> Law:
    """Return p without the rejected token, renormalised."""
    left = p.copy()
    left[x] = 0.0
    mass = left.sum()
    return left / mass if mass > 0 else p


def from_draft(p: Law, q: Law, x: int) -> Law:
    """Return q: a second try of the draft in place of the correction."""
    return q


def swapped(p: Law, q: Law, x: int) -> float:
    """Return min(1, q / p): the ratio upside down."""
    return min(1.0, float(q[x]) / float(p[x])) if p[x] > 0 else 1.0


def bare_threshold(p: Law, q: Law, x: int) -> float:
    """Return p(x): u is compared with p alone, q is forgotten."""
    return float(p[x])


def target_likes_it_more(p: Law, q: Law, x: int) -> float:
    """Return 1 if p(x) >= q(x), else 0: no draw at all."""
    return float(p[x] >= q[x])


def always(p: Law, q: Law, x: int) -> float:
    """Return 1: the draft is believed."""
    return 1.0


def bonus_of_draft(draft: Draft, p: Any) -> Law:
    """Return the draft's last law in place of p after the last proposal."""
    return draft.law(len(draft) - 1, len(p[0])) if len(draft) else p[0]


def bonus_one_early(draft: Draft, p: Any) -> Law:
    """Return p *at* the last proposal in place of p *after* it."""
    law: Law = p[max(0, len(draft) - 1)]
    return law


def first_token_unverified(draft: Draft, p: Any, draws: Draws, start: int) -> Verdict:
    """Commit the first proposal without judging it."""
    return chain(
        draft, p, draws, start,
        chance=_first_free(draft),
    )  # fmt: skip


def _first_free(draft: Draft) -> Chance:
    judged: list[int] = []

    def chance(p: Law, q: Law, x: int) -> float:
        judged.append(x)
        return 1.0 if len(judged) == 1 else ratio(p, q, x)

    return chance


def block_stops_at_first_failure(draft: Draft, p: Any, draws: Draws, start: int) -> Verdict:
    """Verify a block, but stop at the first position that fails instead of the last that passes."""
    kept = 0
    for i, passing in enumerate(block_acceptance(draft, p)):
        if not draws.accept(float(passing), start + i, i):
            break
        kept = i + 1
    law = p[kept]
    if kept < len(draft):
        law = scaled_residual(prefix_shares(draft, p)[kept], law, draft.law(kept, len(law)))
    return Verdict(list(range(kept)), draws.categorical(law, start + kept), law)
