"""The rules of verification: which proposals are accepted, and which token closes the round.

Each rule is a function of the draft, the target's distributions p and a source of draws. It is
written once: the sampler runs it to decode, the exact enumerator runs it to prove what distribution
it induces, and ``trace.check()`` runs it again on what was recorded. Rules use only operations that
numpy arrays and torch tensors share. p is the **target**, q the **draft**.

A new rule is a function like :func:`~specviz.core.rules.match.match` in a file of this folder and
an entry in :data:`RULES` that declares what it promises.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from specviz.core import checks
from specviz.core.contract import Drafter
from specviz.core.rules.block import block, block_acceptance
from specviz.core.rules.lossy import lenience, threshold, typical
from specviz.core.rules.match import greedy, is_argmax, match, own_probability
from specviz.core.rules.rejection import ratio, rejection, rejection_acceptance, residual
from specviz.core.rules.rule import Decision, Rule

__all__ = [
    "RULES",
    "Decision",
    "Rule",
    "block",
    "check_fits",
    "checked_drafter",
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
            leaves_residual=True,
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
            closing_draw="argmax",
        ),
        Rule(
            name="match",
            lossless=True,
            trees=True,
            same_text=True,
            compares_u=False,
            acceptance_means="p(x), the probability that the target's own draw is x",
            verify=match,
            acceptance=own_probability,
            closing_draw="race",
        ),
        Rule(
            name="coupled",
            lossless=True,
            trees=False,
            same_text=True,
            compares_u=False,
            acceptance_means="p(x), without regard to the noise that draft and target share",
            verify=match,
            acceptance=own_probability,
            closing_draw="race",
            shares_noise=True,
        ),
        Rule(
            name="block",
            lossless=True,
            trees=False,
            same_text=False,
            compares_u=True,
            acceptance_means="h_i, the probability that proposal i passes; the last to pass counts",
            verify=block,
            acceptance=block_acceptance,
            leaves_residual=True,
            one_by_one=False,
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
    return rule if isinstance(rule, Rule) else RULES[checks.one_of("verify", rule, RULES)]


def checked_drafter(drafter: Any) -> Drafter:
    """Return a drafter, or raise TypeError with an example of one."""
    if isinstance(drafter, type) or not isinstance(drafter, Drafter):
        raise TypeError(
            f"drafter must be a specviz drafter such as DraftModel(gamma=4), got {drafter!r}"
        )
    return drafter


def check_fits(drafter: Drafter, rule: Rule) -> None:
    """Hold what a drafter requires against a rule: the one check behind every way to decode.

    Raises
    ------
    TypeError
        If it is no drafter.
    ValueError
        If the two do not go together, with what would.
    """
    checked_drafter(drafter)
    kind, traits = type(drafter).__name__, drafter.traits
    if traits.coupled and not rule.shares_noise:
        # Its tokens depend on the noise that the target's own draws use again: q is then not the
        # distribution of a proposal given what the rule draws, and p/q acceptance is biased.
        raise ValueError(
            f"{kind} drafts with noise='target', which needs verify='coupled', "
            f"got verify={rule.name!r}"
        )
    if rule.shares_noise and not traits.coupled:
        raise ValueError(
            f"verify={rule.name!r} needs a draft that races with the noise of the target's own "
            f"draws, and {kind} does not: use DraftModel(noise='target'), or verify='match'"
        )
    if traits.trees and not rule.trees:
        raise ValueError(
            f"verify={rule.name!r} judges chains only, and {kind} proposes trees: use "
            f"verify='rejection', 'match' or 'greedy'"
        )


def rule_of(meta: Mapping[str, Any]) -> Rule:
    """Return the rule that a trace says it was made with, settings included.

    Raises
    ------
    ValueError
        If this version does not have it, or it does not take these settings.
    """
    name, settings = meta.get("rule"), meta.get("rule_settings") or {}
    if not isinstance(name, str) or name not in RULES:
        raise ValueError(f"the trace was made by rule {name!r}, which this version does not know")
    if not settings:
        return RULES[name]
    try:
        return _WITH_SETTINGS[name](**settings)
    except (KeyError, TypeError, ValueError):
        raise ValueError(
            f"the trace says rule_settings = {settings!r}, which rule {name!r} does not take"
        ) from None
