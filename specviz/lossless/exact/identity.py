"""Why one position is exact, token by token: p = q min(1, p/q) + P(reject) residual.

Leviathan et al. (2023), appendix A.1. Token x is emitted in one of two ways: it is proposed and
accepted, with probability q(x) min(1, p(x)/q(x)) = min(p(x), q(x)); or the proposal is rejected
and x is drawn from the residual. The second way adds exactly what the first leaves out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from specviz.core.contract import FloatArray
from specviz.core.formatting import text_table
from specviz.core.rules import ratio, residual
from specviz.lossless.statistics.conditional_distribution import checked_distribution
from specviz.lossless.statistics.sample import Words, word

ROWS = 12
"""How many tokens a table shows, the likeliest first; all others are one row."""

HEADS = ("token", "q · min(1, p/q)", "P(reject) · residual", "sum", "target p")


@dataclass(frozen=True)
class Identity:
    """The two ways to every token of one position, computed with the shipped rule.

    Parameters
    ----------
    p, q : FloatArray
        ``(vocab,)`` the target's and the draft's distribution.
    accepted : FloatArray
        ``(vocab,)`` q(x) min(1, p(x)/q(x)): x is proposed and accepted.
    corrected : FloatArray
        ``(vocab,)`` P(reject) times the residual at x: a proposal is rejected and x replaces it.
    words : mapping or sequence of str, optional
        What to show for each token.
    """

    p: FloatArray
    q: FloatArray
    accepted: FloatArray
    corrected: FloatArray
    words: Words | None = None

    @property
    def total(self) -> FloatArray:
        """``(vocab,)`` both ways together: the distribution of the emitted token."""
        return self.accepted + self.corrected

    @property
    def rejected(self) -> float:
        """P(reject): the probability that the proposal is rejected, TV(p, q)."""
        return 1.0 - float(self.accepted.sum())

    @property
    def error(self) -> float:
        """The largest difference between ``total`` and p over all tokens: rounding only."""
        return float(np.abs(self.total - self.p).max())

    def rows(self) -> list[tuple[str, float, float, float, float]]:
        """Return token, accepted, corrected, sum and p: likeliest tokens first, then the rest."""
        order = np.argsort(-np.maximum(self.p, self.q), kind="stable")
        shown = order if len(order) <= ROWS + 1 else order[:ROWS]
        shown = shown[np.argsort(-self.p[shown], kind="stable")]
        columns = (self.accepted, self.corrected, self.total, self.p)

        def row(name: str, tokens: Any) -> tuple[str, float, float, float, float]:
            accepted, corrected, total, p = (float(column[tokens].sum()) for column in columns)
            return name, accepted, corrected, total, p

        table = [row(word(int(x), self.words), x) for x in shown]
        rest = order[len(shown) :]
        if len(rest):
            table.append(row(f"{len(rest):,} other tokens", rest))
        return [*table, row("all", order)]

    def summary(self) -> str:
        """Return how exact it is, in a sentence."""
        return (
            f"P(reject) = {self.rejected:.4f}. The sum and p differ by at most {self.error:.1g} "
            f"at each of the {len(self.p):,} tokens."
        )

    def __repr__(self) -> str:
        numbers = ((row[0], *(f"{x:.4f}" for x in row[1:])) for row in self.rows())
        return f"{text_table([HEADS, *numbers])}\n{self.summary()}"

    def _repr_html_(self) -> str:
        from specviz.figures.templating import part

        return str(part("table.html").identity(HEADS, self.rows(), self.summary()))


def identity(p: Any, q: Any, words: Words | None = None) -> Identity:
    """Return how the distribution of one emitted token comes about, term by term.

    The acceptance probability and the residual are those of the shipped rule ``rejection``, so
    that the last two columns agree because the rule is right, not because the table says so.

    Parameters
    ----------
    p, q : arrays ``(vocab,)``
        The target's and the draft's distribution, after every sampling setting.
    words : mapping or sequence of str, optional
        What to show for each token.

    Raises
    ------
    ValueError
        If one is not a distribution, or they are not over the same tokens.

    Examples
    --------
    >>> shown = identity([0.5, 0.3, 0.2], [0.2, 0.2, 0.6])
    >>> shown.accepted.round(12).tolist(), shown.corrected.round(12).tolist()
    ([0.2, 0.2, 0.2], [0.3, 0.1, 0.0])
    >>> shown.error < 1e-15
    True
    """
    if np.ndim(p) != 1 or np.shape(p) != np.shape(q) or len(p) < 2:
        raise ValueError(
            f"p and q must be distributions of the same tokens, two or more, got shapes "
            f"{np.shape(p)} and {np.shape(q)}"
        )
    target = checked_distribution(p, len(p), "target p")
    draft = checked_distribution(q, len(p), "draft q")
    accepted = np.zeros(len(target))
    for x in np.flatnonzero(draft):  # what the draft never proposes is never accepted
        accepted[x] = draft[x] * ratio(target, draft, int(x))
    corrected: FloatArray = (1.0 - accepted.sum()) * residual(target, draft)
    return Identity(target, draft, accepted, corrected, words)
