"""Acceptance by p/q with a residual, for chains and sibling by sibling for trees. Exact."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from specviz.core.contract import ROOT, Draft, FloatArray
from specviz.core.draws import Draws
from specviz.core.rules.rule import Verdict, ratio, residual

Chance = Callable[[Any, Any, int], float]
"""(p, q, x) → the probability of keeping x."""


def rejection(draft: Draft, p: Any, draws: Draws, start: int, chance: Chance = ratio) -> Verdict:
    """Keep proposal x with probability min(1, p(x)/q(x)), else draw from the residual.

    Leviathan et al. (2023), Algorithm 1, and Chen et al. (2023); with several children at a node
    they are tried in the order drawn, the residual of one being the target distribution of the next
    (recursive rejection; SpecInfer's multi-step sampling when siblings share one q). Exact.
    """
    vocab_size = len(p[0])
    path: list[int] = []
    node, distribution = ROOT, p[0]
    while children := draft.children(node):
        for child in children:
            x = int(draft.tokens[child])
            q = draft.distribution(child, vocab_size)
            if draws.accept(chance(distribution, q, x), start + len(path), child):
                node, distribution = child, p[child + 1]
                path.append(child)
                break
            distribution = residual(distribution, q)
        else:  # every child was rejected: what is left of p corrects the text
            break
    # after a rejection `distribution` is the residual; after full acceptance, or with no proposal,
    # it is p
    return Verdict(path, draws.categorical(distribution, start + len(path)), distribution)


def rejection_acceptance(draft: Draft, p: Any, chance: Chance = ratio) -> FloatArray:
    """Return min(1, p(x)/q(x)) for every node, p being the residual of its earlier siblings."""
    vocab_size = len(p[0])
    probability = np.zeros(len(draft))
    for node in range(ROOT, len(draft)):
        distribution = p[node + 1]
        siblings = draft.children(node)
        for child in siblings:
            q = draft.distribution(child, vocab_size)
            probability[child] = chance(distribution, q, int(draft.tokens[child]))
            if child != siblings[-1]:
                distribution = residual(distribution, q)
    return probability
