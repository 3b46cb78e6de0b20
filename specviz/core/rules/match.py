"""The target draws its own token at every position; accept a proposal iff it is that token. Exact.

Three rules: ``match``, ``coupled`` (``match`` with a draft that shares the target's noise) and
``greedy`` (the target's own token is its most likely one). The text *is* the target-only text at
the same seed, whatever was proposed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from specviz.core.contract import ROOT, Draft, FloatArray
from specviz.core.draws import Draws
from specviz.core.rules.rule import Decision


def match(draft: Draft, p: Any, draws: Draws, start: int) -> Decision:
    """Let the target draw its own token at each position; accept the proposal iff it is the same.

    A proposal that was drawn independently is accepted with probability sum(p * q) on average, less
    than the sum(min(p, q)) of ``rejection``. Why is no residual needed? The token that is emitted
    is the target's own in either case; the proposal only decides whether the round goes on.
    """
    return _follow(draft, p, start, draws.race)


def greedy(draft: Draft, p: Any, draws: Draws, start: int) -> Decision:
    """Accept the proposal iff it is the target's most likely token; for temperature 0."""
    return _follow(draft, p, start, lambda row, _: int(row.argmax()))


def _follow(draft: Draft, p: Any, start: int, own_token: Callable[[Any, int], int]) -> Decision:
    """Descend to the child that equals the target's own token, until there is none."""
    path: list[int] = []
    node = ROOT
    while True:
        token = own_token(p[node + 1], start + len(path))
        equal = [c for c in draft.children(node) if int(draft.tokens[c]) == token]
        if not equal:
            return Decision(path, token, p[node + 1])
        node = equal[0]
        path.append(node)


def own_probability(draft: Draft, p: Any) -> FloatArray:
    """Return p(x) for every node: how likely the target's own token is to be the proposal."""
    return _of_each_node(draft, p, lambda row, x: float(row[x]))


def is_argmax(draft: Draft, p: Any) -> FloatArray:
    """Return 1 for every node that is the target's most likely token, else 0."""
    return _of_each_node(draft, p, lambda row, x: float(int(row.argmax()) == x))


def _of_each_node(draft: Draft, p: Any, value: Callable[[Any, int], float]) -> FloatArray:
    nodes = zip(draft.tokens.tolist(), draft.parent.tolist(), strict=True)
    return np.array([value(p[parent + 1], x) for x, parent in nodes], dtype=np.float64)
