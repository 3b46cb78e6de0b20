"""Speculative sampling: accept by p/q, correct from the residual (Leviathan et al. 2023). Exact.

Here are the two formulas that the other rules share: :func:`ratio` and :func:`residual`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from specviz.core.contract import ROOT, Draft, DraftContractError, FloatArray
from specviz.core.draws import Draws
from specviz.core.rules.rule import Decision

Chance = Callable[[Any, Any, int], float]
"""(p, q, x) → the probability of accepting x."""


def draft_probability(q: Any, token: int) -> float:
    """Return q(x) of proposal x.

    Raises
    ------
    DraftContractError
        If it is 0: the draft cannot have drawn x from the distribution it reports.
    """
    if not q[token] > 0:
        raise DraftContractError(
            f"the draft proposed token {token}, to which the q it reports gives probability 0"
        )
    return float(q[token])


def ratio(p: Any, q: Any, token: int) -> float:
    """Return min(1, p(x)/q(x)), the probability of accepting proposal x.

    Raises
    ------
    DraftContractError
        If q(x) is 0: the draft cannot have drawn x from the distribution it reports.
    """
    return min(1.0, float(p[token]) / draft_probability(q, token))


def residual(p: Any, q: Any) -> Any:
    """Return norm(max(0, p - q)): what is left of the target's p once a proposal was rejected.

    Leviathan et al. (2023), Algorithm 1; its mass before normalising is ``1 - sum(min(p, q))``.

    Parameters
    ----------
    p, q : arrays ``(vocab,)``
        Distributions.

    Returns
    -------
    array ``(vocab,)``
        A distribution that is 0 wherever ``p <= q``.

    Examples
    --------
    >>> import numpy as np
    >>> residual(np.array([0.5, 0.5]), np.array([0.75, 0.25]))
    array([0., 1.])
    """
    left = (p - q).clip(min=0)  # (vocab,)
    mass = left.sum()
    if mass > 0:
        return left / mass
    # p = q but for rounding, so a rejection had probability 0. Why not simply p? It would hand out
    # tokens that the draft already claims in full; those with p >= q keep their share instead.
    left = p * (p >= q)
    mass = left.sum()
    return left / mass if mass > 0 else p


def rejection(draft: Draft, p: Any, draws: Draws, start: int, chance: Chance = ratio) -> Decision:
    """Accept proposal x with probability min(1, p(x)/q(x)), else draw from the residual.

    Leviathan et al. (2023), Algorithm 1, and Chen et al. (2023), Algorithm 2. Several children of a
    node are tried in the order they were drawn; each rejection leaves the residual as the target of
    the next child (recursive rejection; SpecInfer's multi-step sampling when all share one q).
    """
    vocab_size = len(p[0])
    path: list[int] = []
    node, target = ROOT, p[0]  # (vocab,) what the next token must be distributed as
    while children := draft.children(node):
        for child in children:
            x, q = int(draft.tokens[child]), draft.distribution(child, vocab_size)  # q: (vocab,)
            if draws.accept(chance(target, q, x), start + len(path), child):
                node, target = child, p[child + 1]
                path.append(child)
                break
            target = residual(target, q)
        else:  # every child was rejected
            break
    # after a rejection `target` is the residual (correction); after full acceptance it is the row
    # of p behind the last proposal (bonus); with no proposal it is p itself (plain)
    return Decision(path, draws.categorical(target, start + len(path)), target)


def rejection_acceptance(draft: Draft, p: Any, chance: Chance = ratio) -> FloatArray:
    """Return min(1, p(x)/q(x)) for every node, p being the residual of its earlier siblings."""
    vocab_size = len(p[0])
    probability = np.zeros(len(draft))
    for node in range(ROOT, len(draft)):
        target, siblings = p[node + 1], draft.children(node)
        for child in siblings:
            q = draft.distribution(child, vocab_size)
            probability[child] = chance(target, q, int(draft.tokens[child]))
            if child != siblings[-1]:
                target = residual(target, q)
    return probability
