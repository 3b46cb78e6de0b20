"""The rules of verification: which proposals are kept, and which token closes the round.

Each rule is a function of the draft, the target's laws and a source of draws. It is written once:
the sampler runs it to decode, the exact enumerator runs it to prove what law it induces, and
``trace.check()`` runs it again on what was recorded. p is the **target**, q the **draft**.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from specviz.core.contract import ROOT, Draft, DraftContractError, FloatArray
from specviz.core.draws import Draws


@dataclass(frozen=True)
class Verdict:
    """What a rule decided.

    Parameters
    ----------
    path : list of int
        The accepted nodes, from the root on.
    token : int
        The closing token: a *correction* after a rejection, a *bonus* after full acceptance,
        or a *plain* target token when nothing was proposed.
    law : FloatArray
        ``(vocab,)`` the law the closing token was drawn from.
    """

    path: list[int]
    token: int
    law: FloatArray


VerifyFn = Callable[[Draft, Any, Draws, int], Verdict]
AcceptanceFn = Callable[[Draft, Any], FloatArray]


@dataclass(frozen=True)
class Rule:
    """A verification rule and what it promises.

    Parameters
    ----------
    name : str
        What it is called in ``verify=``.
    lossless : bool
        Whether the emitted text has exactly the target's law.
    trees : bool
        Whether it can judge several candidates at one position.
    same_text : bool
        Whether the text is token for token the target-only text at the same seed.
    compares_u : bool
        Whether it compares a uniform with the acceptance probability.
    acceptance_means : str
        What the recorded acceptance probability of a node is.
    verify : callable
        ``(draft, p, draws, start) -> Verdict``; ``p`` is ``(n + 1, vocab)``: row 0 follows the
        text, row ``i + 1`` follows node i; ``start`` is the position of the first new token.
    acceptance : callable
        ``(draft, p) -> (n,)``: each node's acceptance probability, given that it is examined.
    """

    name: str
    lossless: bool
    trees: bool
    same_text: bool
    compares_u: bool
    acceptance_means: str
    verify: VerifyFn
    acceptance: AcceptanceFn


def residual(p: Any, q: Any) -> Any:
    """Return norm(max(0, p - q)): what is left of the target once the draft had its say.

    Leviathan et al. (2023), Algorithm 1; its mass before normalising is ``1 - sum(min(p, q))``.
    Where rounding leaves no mass at all (p = q: a rejection has probability 0), the tokens that
    the target likes at least as much as the draft keep their share of p.

    Parameters
    ----------
    p, q : arrays ``(vocab,)``
        Laws that sum to 1.

    Returns
    -------
    array ``(vocab,)``
        A law that sums to 1 and is 0 wherever ``p <= q``.

    Examples
    --------
    >>> residual(np.array([0.5, 0.5]), np.array([0.75, 0.25]))
    array([0., 1.])
    """
    left = (p - q).clip(min=0)
    mass = left.sum()
    if mass > 0:
        return left / mass
    left = p * (p >= q)
    mass = left.sum()
    return left / mass if mass > 0 else p


def ratio(law: Any, q: Any, token: int) -> float:
    """Return min(1, p(x)/q(x)), the probability of keeping proposal x.

    Raises
    ------
    DraftContractError
        If q(x) is 0: the draft cannot have drawn x from the law it reports.
    """
    if not q[token] > 0:
        raise DraftContractError(
            f"the draft proposed token {token}, to which the law q it reports gives probability 0"
        )
    return min(1.0, float(law[token]) / float(q[token]))


def rejection(draft: Draft, p: Any, draws: Draws, start: int) -> Verdict:
    """Keep proposal x with probability min(1, p(x)/q(x)), else draw from the residual.

    Leviathan et al. (2023), Algorithm 1, and Chen et al. (2023); with several children at a node
    they are tried in the order drawn, the residual of one being the target law of the next
    (recursive rejection; SpecInfer's multi-step sampling when siblings share one q). Exact.
    """
    vocab_size = len(p[0])
    path: list[int] = []
    node, law = ROOT, p[0]
    while children := draft.children(node):
        for child in children:
            x = int(draft.tokens[child])
            q = draft.law(child, vocab_size)
            if draws.accept(ratio(law, q, x), start + len(path), child):
                node, law = child, p[child + 1]
                path.append(child)
                break
            law = residual(law, q)
        else:  # every child was rejected: what is left of p corrects the text
            break
    # after a rejection `law` is the residual; after full acceptance, or with no proposal, it is p
    return Verdict(path, draws.categorical(law, start + len(path)), law)


def rejection_acceptance(draft: Draft, p: Any) -> FloatArray:
    """Return min(1, p(x)/q(x)) for every node, p being the residual of its earlier siblings."""
    vocab_size = len(p[0])
    probability = np.zeros(len(draft))
    for node in range(ROOT, len(draft)):
        law = p[node + 1]
        siblings = draft.children(node)
        for child in siblings:
            q = draft.law(child, vocab_size)
            probability[child] = ratio(law, q, int(draft.tokens[child]))
            if child != siblings[-1]:
                law = residual(law, q)
    return probability


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
    return _follow(draft, p, start, lambda law, _: int(law.argmax()))


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
    )
}
"""Every rule by the name that ``verify=`` takes."""


def get_rule(name: str) -> Rule:
    """Return the rule of that name.

    Raises
    ------
    ValueError
        If there is none, naming those there are.
    """
    if name not in RULES:
        known = ", ".join(repr(rule) for rule in RULES)
        raise ValueError(f"verify must be one of {known}, got {name!r}")
    return RULES[name]
