"""The first place where two greedy texts part, and whether rounding can have decided it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from specviz.lossless.audit.ties import near_gap


@dataclass(frozen=True)
class Difference:
    """The first difference of two greedy texts.

    Parameters
    ----------
    position : int
        Index of the first emitted token that differs.
    tokens : tuple of int
        What each text has there; -1 where it has ended.
    top : tuple of int
        The target's two most likely tokens there.
    gap : float
        The difference of their logits.
    near_tie : bool
        Whether rounding can have decided: both texts took one of the two, and the gap is within
        what the order of summation changes in this dtype.
    """

    position: int
    tokens: tuple[int, int]
    top: tuple[int, int]
    gap: float
    near_tie: bool

    def __str__(self) -> str:
        cause = "near tie: rounding" if self.near_tie else "not a rounding matter"
        return (
            f"token {self.position}: {self.tokens[0]} against {self.tokens[1]}; the target's top "
            f"two are {self.top[0]} and {self.top[1]}, {self.gap:.3g} apart: {cause}"
        )


def first_difference(
    a: Any, b: Any, target: Any, *, prompt: Any, near: float | None = None
) -> Difference | None:
    """Return where two greedy texts of the same prompt part, or None if they do not.

    Parameters
    ----------
    a, b : sequence of int, or Trace
        Emitted tokens.
    target : Pair, TabularModel, Model or Hugging Face model
        The model whose greedy texts they claim to be; of a pair, its target.
    prompt : sequence of int
        Ids of the prompt.
    near : float, optional
        The gap up to which it counts as a near tie; by default by the model's dtype.

    Raises
    ------
    TypeError, ValueError
        If a text or the prompt is no list of the target's token ids, or the prompt is empty.

    Examples
    --------
    >>> from specviz.core.tabular import TabularModel
    >>> coin = TabularModel([0.6, 0.4])
    >>> print(first_difference([0, 0], [0, 1], coin, prompt=[0]))
    token 1: 0 against 1; the target's top two are 0 and 1, 0.405 apart: not a rounding matter
    """
    from specviz.core import checks
    from specviz.core.contract import Draft
    from specviz.decoding.hf.target import open_session
    from specviz.lossless.audit.target import claimed_target

    claimed = claimed_target(target)
    size = claimed.vocab_size
    first, second = (
        checks.token_ids(name, getattr(x, "tokens", x), size) for name, x in (("a", a), ("b", b))
    )
    start = checks.token_ids("prompt", prompt, size)
    if len(start) == 0:
        raise ValueError("prompt must be a non-empty list of token ids, got an empty one")
    if near is not None:
        checks.number("near", near, at_least=0)
    shared = min(len(first), len(second))
    parted = np.flatnonzero(first[:shared] != second[:shared])
    if len(parted) == 0 and len(first) == len(second):
        return None
    at = int(parted[0]) if len(parted) else shared
    model = claimed.model
    session = open_session(model)
    session.begin()
    text = np.concatenate([start, first[:at]])
    logits = session.verify(text, Draft.empty(session.vocab_size))[0]
    best, runner_up = (int(i) for i in np.argsort(-logits, kind="stable")[:2])
    gap = float(logits[best] - logits[runner_up])
    chosen = tuple(int(x[at]) if at < len(x) else -1 for x in (first, second))
    limit = near_gap(model) if near is None else near
    both_among_the_top = {*chosen} <= {best, runner_up}
    return Difference(
        at, (chosen[0], chosen[1]), (best, runner_up), gap, both_among_the_top and gap <= limit
    )
