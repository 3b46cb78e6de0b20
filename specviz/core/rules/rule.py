"""What a verification rule is, and the two formulas that most of them share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from specviz.core.contract import Draft, DraftContractError, FloatArray
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
    distribution : FloatArray
        ``(vocab,)`` the distribution the closing token was drawn from.
    """

    path: list[int]
    token: int
    distribution: FloatArray


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
        Whether the emitted text has exactly the target's distribution.
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
    one_by_one : bool
        Whether a node's verdict is its own accept draw (``block`` decides on all together).
    on_top_distributions : bool
        Whether the rule can be replayed on distributions of which only the top and two tails are
        kept.
    settings : mapping
        Its parameters, by name.
    """

    name: str
    lossless: bool
    trees: bool
    same_text: bool
    compares_u: bool
    acceptance_means: str
    verify: VerifyFn
    acceptance: AcceptanceFn
    one_by_one: bool = True
    on_top_distributions: bool = True
    settings: Mapping[str, float] = field(default_factory=dict)


def residual(p: Any, q: Any) -> Any:
    """Return norm(max(0, p - q)): what is left of the target once the draft had its say.

    Leviathan et al. (2023), Algorithm 1; its mass before normalising is ``1 - sum(min(p, q))``.
    Where rounding leaves no mass at all (p = q: a rejection has probability 0), the tokens that
    the target likes at least as much as the draft keep their share of p.

    Parameters
    ----------
    p, q : arrays ``(vocab,)``
        Distributions that sum to 1.

    Returns
    -------
    array ``(vocab,)``
        A distribution that sums to 1 and is 0 wherever ``p <= q``.

    Examples
    --------
    >>> import numpy as np
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


def ratio(distribution: Any, q: Any, token: int) -> float:
    """Return min(1, p(x)/q(x)), the probability of keeping proposal x.

    Raises
    ------
    DraftContractError
        If q(x) is 0: the draft cannot have drawn x from the distribution it reports.
    """
    return min(1.0, float(distribution[token]) / used(q, token))


def used(q: Any, token: int) -> float:
    """Return q(x) of proposal x.

    Raises
    ------
    DraftContractError
        If it is 0: the draft cannot have drawn x from the distribution it reports.
    """
    if not q[token] > 0:
        raise DraftContractError(
            f"the draft proposed token {token}, to which the distribution q it reports gives "
            f"probability 0"
        )
    return float(q[token])
