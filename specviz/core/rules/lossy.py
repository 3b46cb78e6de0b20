"""Rules that accept more because they are *not* exact: the text loses the target's distribution."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import exp
from typing import Any

import numpy as np

from specviz.core import checks
from specviz.core.contract import ROOT, Draft, FloatArray
from specviz.core.draws import Draws
from specviz.core.rules.rejection import ratio, rejection, rejection_acceptance
from specviz.core.rules.rule import Decision, Rule


def typical(epsilon: float = 0.09, delta: float = 0.3) -> Rule:
    """Return Medusa's typical acceptance: accept x if p(x) > min(epsilon, delta * exp(-H(p))).

    Cai et al. (2024), section 2.3.1. Lossy: how likely the draft was to propose x plays no part.

    Parameters
    ----------
    epsilon : float
        A token this likely is always accepted.
    delta : float
        The flatter p is (entropy H in nats), the less likely a token may be.
    """
    epsilon = checks.number("epsilon", epsilon, at_least=0, at_most=1)
    delta = checks.number("delta", delta, at_least=0, at_most=1)
    return _by_own_probability(
        "typical",
        lambda probability, entropy: probability > min(epsilon, delta * exp(-entropy)),
        "1 if p(x) > min(epsilon, delta exp(-H(p))), else 0",
        {"epsilon": epsilon, "delta": delta},
    )


def threshold(constant: float = 0.1) -> Rule:
    """Return the rule that accepts x if p(x) exceeds a constant. Lossy.

    Parameters
    ----------
    constant : float
        From 0 to 1.
    """
    constant = checks.number("constant", constant, at_least=0, at_most=1)
    return _by_own_probability(
        "threshold",
        lambda probability, _: probability > constant,
        "1 if p(x) exceeds the constant, else 0",
        {"constant": constant},
    )


def lenience(factor: float = 0.5) -> Rule:
    """Return ``rejection`` with the draft's probability scaled down before it is compared.

    Leviathan et al. (2023), appendix A.5: x is accepted with probability min(1, p(x) / (l q(x))).
    Lossy for a factor l below 1; at 1 it is ``rejection``.

    Parameters
    ----------
    factor : float
        l, above 0 and at most 1.
    """
    factor = checks.number("factor", factor, above=0, at_most=1)

    def chance(p: Any, q: Any, x: int) -> float:
        return ratio(p, factor * q, x)

    return Rule(
        name="lenience",
        lossless=False,
        trees=True,
        same_text=False,
        compares_u=True,
        acceptance_means="min(1, p(x) / (l q(x)))",
        verify=partial(rejection, chance=chance),
        acceptance=partial(rejection_acceptance, chance=chance),
        leaves_residual=True,
        settings={"factor": factor},
    )


def _by_own_probability(
    name: str, accepts: Callable[[float, float], bool], means: str, settings: dict[str, float]
) -> Rule:
    """Return a rule that looks at p(x) and the entropy of p only, and closes with a draw from p."""

    def good(row: Any, x: int) -> bool:
        mass = np.asarray(row[row > 0], dtype=np.float64)
        return accepts(float(row[x]), -float((mass * np.log(mass)).sum()))

    def verify(draft: Draft, p: Any, draws: Draws, start: int) -> Decision:
        path: list[int] = []
        node = ROOT
        while True:
            row = p[node + 1]  # (vocab,)
            kept = [c for c in draft.children(node) if good(row, int(draft.tokens[c]))]
            if not kept:
                return Decision(path, draws.categorical(row, start + len(path)), row)
            node = kept[0]
            path.append(node)

    def acceptance(draft: Draft, p: Any) -> FloatArray:
        nodes = zip(draft.tokens.tolist(), draft.parent.tolist(), strict=True)
        return np.array([float(good(p[parent + 1], x)) for x, parent in nodes], dtype=np.float64)

    return Rule(
        name=name,
        lossless=False,
        trees=True,
        same_text=False,
        compares_u=False,
        acceptance_means=means,
        verify=verify,
        acceptance=acceptance,
        accepts=accepts,
        settings=settings,
    )
