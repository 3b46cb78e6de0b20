"""Trees that break the one promise in one way each, and what distribution that gives,
in fractions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from specviz.core.contract import ROOT, Context, Draft
from specviz.core.draws import Draws
from specviz.drafters.tree import Tree
from tests.drafters.changed import Changed

Distribution = list[Fraction]


class Deduplicated(Changed, Tree):
    """Wrong with replacement: a sibling drawn twice is tried once."""

    def change(self, inner: Any, context: Context, draws: Draws) -> Draft:
        full = inner.propose(context, draws)
        seen: set[tuple[int, int]] = set()
        kept = []
        for node, (token, parent) in enumerate(zip(full.tokens, full.parent, strict=True)):
            if (int(parent), int(token)) not in seen:
                kept.append(node)
            seen.add((int(parent), int(token)))
        return subset(full, kept)


class Sorted(Changed, Tree):
    """Siblings are tried in the order of the draft's confidence, not in the order drawn.

    Wrong for nodes that were drawn; right for nodes that were chosen.
    """

    def change(self, inner: Any, context: Context, draws: Draws) -> Draft:
        full = inner.propose(context, draws)
        base = {
            p: full.distribution(full.children(p)[0], full.q.shape[1]) for p in set(full.parent)
        }
        depths = full.depths()

        def confidence(node: int) -> float:
            return float(base[full.parent[node]][full.tokens[node]])

        order: list[int] = []
        for depth in range(int(depths.max(initial=-1)) + 1):
            level = [n for n in range(len(full)) if depths[n] == depth]
            parents = [order.index(p) if p != ROOT else -1 for p in full.parent[level]]
            by = sorted(zip(parents, level, strict=True), key=lambda x: (x[0], -confidence(x[1])))
            order += [node for _, node in by]
        return subset(full, order)


class Unrenormalised(Changed, Tree):
    """Wrong without replacement: a later sibling's q has lost its elders' tokens, but not grown."""

    def change(self, inner: Any, context: Context, draws: Draws) -> Draft:
        full = inner.propose(context, draws)
        q = full.q.copy()
        for parent in {int(p) for p in full.parent}:
            siblings = full.children(parent)
            base = q[full.q_row[siblings[0]]]
            for i, node in enumerate(siblings):
                left = base.copy()
                left[full.tokens[siblings[:i]]] = 0.0
                q[full.q_row[node]] = left
        return Draft(full.tokens, full.parent, q, full.q_row)


class Pruned(Changed, Tree):
    """Nodes to which the draft gives less than ``floor`` are dropped, with all below them.

    Wrong for nodes that were drawn; right for nodes that were chosen.
    """

    def __init__(self, widths: Sequence[int], *, floor: float, **options: Any) -> None:
        super().__init__(widths, **options)
        object.__setattr__(self, "floor", floor)

    def change(self, inner: Any, context: Context, draws: Draws) -> Draft:
        full = inner.propose(context, draws)
        model = inner.model.model
        kept: list[int] = []
        for node in range(len(full)):
            above = full.tokens[full.path(node)[:-1]]
            q = model.distribution([*context.tokens.tolist(), *above.tolist()])
            parent = int(full.parent[node])
            if q[full.tokens[node]] >= self.floor and (parent == ROOT or parent in kept):
                kept.append(node)
        return subset(full, kept)


class SoftTopK(Changed, Tree):
    """Wrong: the most likely tokens are chosen, but q is reported as if they had been drawn."""

    def change(self, inner: Any, context: Context, draws: Draws) -> Draft:
        full = inner.propose(context, draws)
        model, told = inner.model.model, []
        for node in range(len(full)):
            above = full.tokens[full.path(node)[:-1]]
            told.append(model.distribution([*context.tokens.tolist(), *above.tolist()]))
        q = np.stack(told) if told else full.q
        return Draft(full.tokens, full.parent, q, np.arange(len(full)))


def subset(full: Draft, order: Sequence[int]) -> Draft:
    """The nodes of ``order``, parents before children, with their own distributions."""
    place = {node: i for i, node in enumerate(order)} | {ROOT: ROOT}
    parent = np.array([place[int(full.parent[n])] for n in order], dtype=np.int64)
    index = np.array(order, dtype=np.int64)
    return Draft(full.tokens[index], parent, full.q, full.q_row[index])


# Two siblings at one position, by hand, in fractions ---------------------------------------------


def norm(weights: Sequence[Fraction]) -> Distribution:
    return [w / sum(weights) for w in weights]


def without(q: Distribution, token: int) -> Distribution:
    return norm([Fraction(0) if x == token else w for x, w in enumerate(q)])


def two_siblings(
    q: Distribution, *, replacement: bool
) -> Iterator[tuple[Fraction, list[tuple[int, Distribution]]]]:
    """(probability, [(token, distribution it was drawn from)] in the order drawn)."""
    for first, second in product(range(len(q)), repeat=2):
        distribution = q if replacement else without(q, first)
        if q[first] * distribution[second]:
            yield q[first] * distribution[second], [(first, q), (second, distribution)]


def distribution_after(p: Distribution, nodes: Sequence[tuple[int, Distribution]]) -> Distribution:
    """The distribution of the first token when these siblings are tried in this order."""
    out, reached, distribution = [Fraction(0)] * len(p), Fraction(1), p
    for x, q in nodes:
        kept = min(Fraction(1), distribution[x] / q[x])
        out[x] += reached * kept
        reached *= 1 - kept
        left = [max(Fraction(0), a - b) for a, b in zip(distribution, q, strict=True)]
        distribution = norm(left) if sum(left) else distribution
    return [o + reached * r for o, r in zip(out, distribution, strict=True)]


def mixed(cases: Iterator[tuple[Fraction, Distribution]]) -> Distribution:
    weighted = [[mass * x for x in distribution] for mass, distribution in cases]
    return [sum(column, Fraction(0)) for column in zip(*weighted, strict=True)]


def distance(a: Distribution, b: Distribution) -> Fraction:
    return sum((abs(x - y) for x, y in zip(a, b, strict=True)), Fraction(0)) / 2
