"""Rules that are faster because they are *not* exact.

The text no longer has the target's distribution.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from specviz.core.contract import ROOT, Draft, FloatArray
from specviz.core.draws import Draws
from specviz.core.rules.rejection import rejection, rejection_acceptance
from specviz.core.rules.rule import Rule, Verdict, ratio


def typical(epsilon: float = 0.09, delta: float = 0.3) -> Rule:
    """Return Medusa's typical acceptance: keep x if p(x) > min(epsilon, delta exp(-H(p))).

    Cai et al. (2024). Lossy: nothing depends on how likely the draft was to propose x.

    Parameters
    ----------
    epsilon : float
        A token this likely is always kept.
    delta : float
        The flatter p is (entropy H in nats), the less likely a token may be.
    """
    _check_share("epsilon", epsilon)
    _check_share("delta", delta)

    def keeps(distribution: Any, x: int) -> bool:
        mass = np.asarray(distribution[distribution > 0], dtype=np.float64)
        entropy = -float((mass * np.log(mass)).sum())
        return float(distribution[x]) > min(epsilon, delta * float(np.exp(-entropy)))

    return _by_own_probability(
        "typical", keeps, "1 if p(x) > min(epsilon, delta exp(-H(p))), else 0",
        {"epsilon": epsilon, "delta": delta}, on_top_distributions=False,
    )  # fmt: skip


def threshold(constant: float = 0.1) -> Rule:
    """Return the rule that keeps x if p(x) exceeds a constant. Lossy.

    Parameters
    ----------
    constant : float
        From 0 to 1.
    """
    _check_share("constant", constant)
    return _by_own_probability(
        "threshold", lambda distribution, x: float(distribution[x]) > constant,
        "1 if p(x) exceeds the constant, else 0", {"constant": constant},
    )  # fmt: skip


def lenience(factor: float = 0.5) -> Rule:
    """Return ``rejection`` with the draft's probability scaled down before it is compared.

    Leviathan et al. (2023), appendix A.5: x is kept with probability min(1, p(x) / (l q(x))).
    Lossy for a factor l below 1; at 1 it is ``rejection``.

    Parameters
    ----------
    factor : float
        l, above 0 and at most 1.
    """
    _check_share("factor", factor)
    if factor == 0:
        raise ValueError("factor must be above 0 and at most 1, got 0")

    def chance(distribution: Any, q: Any, x: int) -> float:
        return ratio(distribution, factor * q, x)

    return Rule(
        name="lenience",
        lossless=False,
        trees=True,
        same_text=False,
        compares_u=True,
        acceptance_means="min(1, p(x) / (l q(x)))",
        verify=partial(rejection, chance=chance),
        acceptance=partial(rejection_acceptance, chance=chance),
        settings={"factor": factor},
    )


def _by_own_probability(
    name: str,
    keeps: Callable[[Any, int], bool],
    means: str,
    settings: dict[str, float],
    on_top_distributions: bool = True,
) -> Rule:
    """Return a rule that looks at p(x) only, and closes with a fresh draw from p."""

    def verify(draft: Draft, p: Any, draws: Draws, start: int) -> Verdict:
        path: list[int] = []
        node = ROOT
        while True:
            distribution = p[node + 1]
            good = [c for c in draft.children(node) if keeps(distribution, int(draft.tokens[c]))]
            if not good:
                return Verdict(
                    path, draws.categorical(distribution, start + len(path)), distribution
                )
            node = good[0]
            path.append(node)

    def acceptance(draft: Draft, p: Any) -> FloatArray:
        pairs = zip(draft.tokens.tolist(), draft.parent.tolist(), strict=True)
        return np.array([float(keeps(p[parent + 1], x)) for x, parent in pairs], dtype=np.float64)

    return Rule(
        name=name,
        lossless=False,
        trees=True,
        same_text=False,
        compares_u=False,
        acceptance_means=means,
        verify=verify,
        acceptance=acceptance,
        on_top_distributions=on_top_distributions,
        settings=settings,
    )


def _check_share(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
        raise ValueError(f"{name} must be a number from 0 to 1, got {value!r}")
