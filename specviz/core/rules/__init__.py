"""The rules of verification: which proposals are kept, and which token closes the round.

Each rule is a function of the draft, the target's distributions and a source of draws. It is
written once: the sampler runs it to decode, the exact enumerator runs it to prove what
distribution it induces, and ``trace.check()`` runs it again on what was recorded. p is the
**target**, q the **draft**.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from specviz.core.contract import ROOT, Draft, FloatArray
from specviz.core.draws import Draws
from specviz.core.rules.block import block, block_acceptance
from specviz.core.rules.lossy import lenience, threshold, typical
from specviz.core.rules.rejection import rejection, rejection_acceptance
from specviz.core.rules.rule import Rule, Verdict, ratio, residual

__all__ = [
    "RULES",
    "Rule",
    "Verdict",
    "block",
    "get_rule",
    "greedy",
    "lenience",
    "match",
    "ratio",
    "rejection",
    "residual",
    "rule_of",
    "threshold",
    "typical",
]


def _follow(draft: Draft, p: Any, start: int, own_token: Callable[[Any, int], int]) -> Verdict:
    """Keep the child that equals the target's own token, until none does."""
    path: list[int] = []
    node = ROOT
    while True:
        token = own_token(p[node + 1], start + len(path))
        equal = [c for c in draft.children(node) if int(draft.tokens[c]) == token]
        if not equal:
            return Verdict(path, token, p[node + 1])
        node = equal[0]
        path.append(node)


def match(draft: Draft, p: Any, draws: Draws, start: int) -> Verdict:
    """Let the target draw its own token at each position; keep the proposal iff it is the same.

    The text *is* the target-only text at the same seed, whatever was proposed; a proposal drawn
    independently from q is kept with probability sum(p * q) on average.
    """
    return _follow(draft, p, start, draws.race)


def greedy(draft: Draft, p: Any, draws: Draws, start: int) -> Verdict:
    """Keep the proposal iff it is the target's most likely token; for temperature 0."""
    return _follow(draft, p, start, lambda distribution, _: int(distribution.argmax()))


def own_probability(draft: Draft, p: Any) -> FloatArray:
    """Return p(x) for every node: how likely the target's own token is to be the proposal."""
    return np.array(
        [
            float(p[int(parent) + 1][int(x)])
            for x, parent in zip(draft.tokens, draft.parent, strict=True)
        ],
        dtype=np.float64,
    )


def is_argmax(draft: Draft, p: Any) -> FloatArray:
    """Return 1 for every node that is the target's most likely token, else 0."""
    return np.array(
        [
            float(int(p[int(parent) + 1].argmax()) == int(x))
            for x, parent in zip(draft.tokens, draft.parent, strict=True)
        ],
        dtype=np.float64,
    )


RULES: dict[str, Rule] = {
    rule.name: rule
    for rule in (
        Rule(
            name="rejection",
            lossless=True,
            trees=True,
            same_text=False,
            compares_u=True,
            acceptance_means="min(1, p(x)/q(x)), p being the residual of earlier siblings",
            verify=rejection,
            acceptance=rejection_acceptance,
        ),
        Rule(
            name="greedy",
            lossless=True,
            trees=True,
            same_text=True,
            compares_u=False,
            acceptance_means="1 if x is the target's most likely token, else 0",
            verify=greedy,
            acceptance=is_argmax,
        ),
        Rule(
            name="match",
            lossless=True,
            trees=True,
            same_text=True,
            compares_u=False,
            acceptance_means="p(x), the chance that the target's own draw is x",
            verify=match,
            acceptance=own_probability,
        ),
        Rule(
            name="coupled",
            lossless=True,
            trees=False,
            same_text=True,
            compares_u=False,
            acceptance_means="p(x), before the noise shared by draft and target is taken in",
            verify=match,
            acceptance=own_probability,
        ),
        Rule(
            name="block",
            lossless=True,
            trees=False,
            same_text=False,
            compares_u=True,
            acceptance_means="h_i, the chance that the block is kept at least up to here",
            verify=block,
            acceptance=block_acceptance,
            one_by_one=False,
            on_top_distributions=False,
        ),
        typical(),
        threshold(),
        lenience(),
    )
}
"""Every rule by the name that ``verify=`` takes."""


_WITH_SETTINGS: dict[str, Callable[..., Rule]] = {
    "typical": typical,
    "threshold": threshold,
    "lenience": lenience,
}


def get_rule(rule: str | Rule) -> Rule:
    """Return a rule by its name, with its default settings; a rule itself passes through.

    Raises
    ------
    ValueError
        If there is none of that name, naming those there are.
    """
    if isinstance(rule, Rule):
        return rule
    if rule not in RULES:
        known = ", ".join(repr(name) for name in RULES)
        raise ValueError(f"verify must be one of {known}, got {rule!r}")
    return RULES[rule]


def rule_of(meta: Mapping[str, Any]) -> Rule:
    """Return the rule that a trace says it was made with, settings included.

    Raises
    ------
    ValueError
        If this version does not have it.
    """
    name, settings = meta.get("rule"), meta.get("rule_settings") or {}
    if name not in RULES:
        raise ValueError(f"the trace was made by rule {name!r}, which this version does not know")
    return _WITH_SETTINGS[name](**settings) if settings else RULES[name]
