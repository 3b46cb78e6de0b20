"""Block verification: judge the chain as a whole, not token by token (Sun et al. 2024). Exact."""

from __future__ import annotations

from typing import Any

import numpy as np

from specviz.core.contract import Draft, FloatArray
from specviz.core.draws import Draws
from specviz.core.rules.rejection import draft_probability, residual
from specviz.core.rules.rule import Decision


def block(draft: Draft, p: Any, draws: Draws, start: int) -> Decision:
    """Accept the chain up to the *last* proposal that passes; never less than token by token.

    Sun et al. (2024), Algorithm 2: proposal i passes with probability h_i, and tau is the last i
    that passes. The closing token is drawn from p if all are accepted, else from
    norm(max(0, p_tau * p - q)).
    """
    tau = 0
    # Why not stop at the first that fails? A later pass accepts the whole prefix before it.
    for i, chance in enumerate(block_acceptance(draft, p)):
        if draws.accept(float(chance), start + i, i):  # strictly u < h: a chance of 0 never passes
            tau = i + 1
    target = p[tau]  # (vocab,)
    if tau < len(draft):
        share = prefix_shares(draft, p)[tau]
        target = scaled_residual(share, target, draft.distribution(tau, len(target)))
    return Decision(list(range(tau)), draws.categorical(target, start + tau), target)


def prefix_shares(draft: Draft, p: Any) -> FloatArray:
    """Return ``(n + 1,)``: p_0 = 1, p_i = min(1, p_{i-1} * p(X_i) / q(X_i)).

    p_i is the share of the target's mass that the first i proposals may claim.
    """
    shares = np.ones(len(draft) + 1)
    for i, x in enumerate(draft.tokens.tolist()):
        q = draft.distribution(i, len(p[i]))
        shares[i + 1] = min(1.0, shares[i] * float(p[i][x]) / draft_probability(q, x))
    return shares


def block_acceptance(draft: Draft, p: Any) -> FloatArray:
    """Return ``(n,)``: h_i, the probability that proposal i passes.

    With s_i = sum(max(0, p_i * p - q)) at the context after i proposals,
    h_i = s_i / (s_i + 1 - p_i) (1 if that is 0 / 0), and h_n = p_n.
    """
    n = len(draft)
    shares = prefix_shares(draft, p)  # (n + 1,)
    passing = shares[1:].copy()  # (n,); the last one stays p_n
    for i in range(1, n):
        q = draft.distribution(i, len(p[i]))
        s = float((shares[i] * p[i] - q).clip(min=0).sum())
        whole = s + (1.0 - shares[i])  # in this order a tiny s is not lost beside the 1
        passing[i - 1] = s / whole if whole > 0 else 1.0
    return passing


def scaled_residual(share: float, p: Any, q: Any) -> Any:
    """Return norm(max(0, share * p - q)); the residual itself for a share of 1."""
    left = (share * p - q).clip(min=0)  # (vocab,)
    mass = left.sum()
    return left / mass if mass > 0 else residual(p, q)
