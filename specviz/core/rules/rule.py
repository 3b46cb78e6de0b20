"""What a verification rule is: a function that decides, and what it declares about itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from specviz.core.contract import Draft, FloatArray
from specviz.core.draws import Draws


@dataclass(frozen=True)
class Decision:
    """What a rule decided about one round of proposals.

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


VerifyFn = Callable[[Draft, Any, Draws, int], Decision]
AcceptanceFn = Callable[[Draft, Any], FloatArray]
ClosingDraw = Literal["inverse CDF", "race", "argmax"]


@dataclass(frozen=True)
class Rule:
    """A verification rule and what it declares.

    Parameters
    ----------
    name : str
        What ``verify=`` calls it.
    lossless : bool
        Whether the emitted text has exactly the target's distribution.
    trees : bool
        Whether it can judge several candidates at one position.
    same_text : bool
        Whether the text is token for token the target-only text at the same seed.
    compares_u : bool
        Whether it compares a uniform u with the acceptance probability.
    acceptance_means : str
        What the recorded acceptance probability of a node is.
    verify : callable
        ``(draft, p, draws, start) -> Decision``; ``p`` is ``(n + 1, vocab)``: row 0 follows the
        text, row ``i + 1`` follows node i; ``start`` is the position of the first new token.
    acceptance : callable
        ``(draft, p) -> (n,)``: each node's acceptance probability, given that it is examined.
    closing_draw : {"inverse CDF", "race", "argmax"}
        How the closing token is drawn; a race is one in the target's own noise.
    leaves_residual : bool
        Whether a rejected proposal takes its q out of p, so that the next sibling and the
        correction face the residual. Otherwise they face p itself.
    shares_noise : bool
        Whether the draft must draw its proposals by a race in the target's noise (``coupled``).
    one_by_one : bool
        Whether a node's verdict is its own accept draw (``block`` decides on all together).
    accepts : callable, optional
        ``(p(x), entropy of p) -> bool``, for a rule that looks at nothing else.
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
    closing_draw: ClosingDraw = "inverse CDF"
    leaves_residual: bool = False
    shares_noise: bool = False
    one_by_one: bool = True
    accepts: Callable[[float, float], bool] | None = None
    settings: Mapping[str, float] = field(default_factory=dict)
