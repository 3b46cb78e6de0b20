"""Block verification: judge the whole chain, not token by token (Sun et al. 2024). Exact."""

from __future__ import annotations

from typing import Any

import numpy as np

from specviz.core.contract import Draft, FloatArray
from specviz.core.draws import Draws
from specviz.core.rules.rule import Verdict, residual, used


def prefix_shares(draft: Draft, p: Any) -> FloatArray:
    """Return ``(n + 1,)``: p_0 = 1, p_i = min(1, p_{i-1} p(X_i) / q(X_i)).

    How much of the target's mass the first i proposals may claim.
    """
    shares = np.ones(len(draft) + 1)
    for i, x in enumerate(draft.tokens.tolist()):
        q = draft.distribution(i, len(p[i]))
        shares[i + 1] = min(1.0, shares[i] * float(p[i][x]) / used(q, x))
    return shares


def block_acceptance(draft: Draft, p: Any) -> FloatArray:
    """Return ``(n,)``: h_i, the chance of passing at proposal i.

    With s_i = sum(max(0, p_i p - q)) at the context after i proposals, h_i = s_i / (s_i + 1 - p_i)
    (1 if that is 0 / 0), and h_n = p_n.
    """
    shares = prefix_shares(draft, p)
    passing = np.empty(len(draft))
    for i in range(1, len(draft) + 1):
        if i == len(draft):
            passing[i - 1] = shares[i]
            continue
        q = draft.distribution(i, len(p[i]))
        claim = float((shares[i] * p[i] - q).clip(min=0).sum())
        whole = claim + 1.0 - shares[i]
        passing[i - 1] = claim / whole if whole > 0 else 1.0
    return passing


def block(draft: Draft, p: Any, draws: Draws, start: int) -> Verdict:
    """Keep the chain up to the *last* proposal that passes; never less than token by token.

    If all is kept the closing token is drawn from p, else from norm(max(0, p_tau p - q)).
    """
    kept = 0
    for i, chance in enumerate(block_acceptance(draft, p)):
        if draws.accept(float(chance), start + i, i):  # h = 0 never passes
            kept = i + 1
    distribution = p[kept]
    if kept < len(draft):
        share = prefix_shares(draft, p)[kept]
        distribution = scaled_residual(
            share, distribution, draft.distribution(kept, len(distribution))
        )
    return Verdict(list(range(kept)), draws.categorical(distribution, start + kept), distribution)


def scaled_residual(share: float, p: Any, q: Any) -> Any:
    """Return norm(max(0, share * p - q)); the residual itself for a share of 1."""
    left = (share * p - q).clip(min=0)
    mass = left.sum()
    return left / mass if mass > 0 else residual(p, q)
