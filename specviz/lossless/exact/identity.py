"""Why one position is exact, token by token: p = q min(1, p/q) + P(reject) residual.

Leviathan et al. (2023), appendix A.1. Token x leaves a position by one of two roads: it is proposed
and kept, with probability q(x) min(1, p(x)/q(x)) = min(p(x), q(x)); or something is rejected and x
is drawn from the residual. The second road carries exactly what the first leaves out.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from specviz.core.contract import FloatArray
from specviz.core.rules import ratio, residual
from specviz.lossless.statistics.conditional_distribution import checked_distribution
from specviz.lossless.statistics.sample import Words, word

ROWS = 12
"""How many tokens a table shows, the likeliest first; all others are one row."""

HEADS = ("token", "q · min(1, p/q)", "P(reject) · residual", "sum", "target p")


@dataclass(frozen=True)
class Identity:
    """The two roads to every token of one position, computed with the shipped rule.

    Parameters
    ----------
    p, q : FloatArray
        ``(vocab,)`` the target's and the draft's distribution.
    kept : FloatArray
        ``(vocab,)`` q(x) min(1, p(x)/q(x)): x is proposed and kept.
    corrected : FloatArray
        ``(vocab,)`` P(reject) times the residual at x: a proposal is rejected, x replaces it.
    words : mapping or sequence of str, optional
        What to show for each token.
    """

    p: FloatArray
    q: FloatArray
    kept: FloatArray
    corrected: FloatArray
    words: Words | None = None

    @property
    def total(self) -> FloatArray:
        """``(vocab,)`` both roads together: the distribution of what is emitted."""
        return self.kept + self.corrected

    @property
    def rejected(self) -> float:
        """P(reject): the probability that the proposal is not kept, TV(p, q)."""
        return 1.0 - float(self.kept.sum())

    @property
    def error(self) -> float:
        """The largest difference between ``total`` and p over all tokens: rounding only."""
        return float(np.abs(self.total - self.p).max())

    def rows(self) -> list[tuple[str, float, float, float, float]]:
        """Return token, kept, corrected, sum and p, the likeliest tokens first, then the rest."""
        order = np.argsort(-np.maximum(self.p, self.q), kind="stable")
        shown = order if len(order) <= ROWS + 1 else order[:ROWS]
        shown = shown[np.argsort(-self.p[shown], kind="stable")]
        columns = (self.kept, self.corrected, self.total, self.p)

        def row(name: str, tokens: Any) -> tuple[str, float, float, float, float]:
            kept, corrected, total, p = (float(column[tokens].sum()) for column in columns)
            return name, kept, corrected, total, p

        table = [row(word(int(x), self.words), x) for x in shown]
        rest = order[len(shown) :]
        if len(rest):
            table.append(row(f"{len(rest):,} other tokens", rest))
        return [*table, row("all", order)]

    def summary(self) -> str:
        """Return how exact it is, in a sentence."""
        return (
            f"P(reject) = {self.rejected:.4f}; the sum and p differ by at most {self.error:.1g} "
            f"on any of {len(self.p):,} tokens."
        )

    def __repr__(self) -> str:
        lines = [HEADS, *((row[0], *(f"{x:.4f}" for x in row[1:])) for row in self.rows())]
        widths = [max(len(line[i]) for line in lines) for i in range(len(HEADS))]
        table = [
            "  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])])
            for line in lines
        ]
        return "\n".join([*table, self.summary()])

    def _repr_html_(self) -> str:
        head = "".join(f'<th scope="col" style="text-align:right">{name}</th>' for name in HEADS)
        body = "".join(
            f'<tr><th scope="row"><bdi>{escape(row[0])}</bdi></th>'
            + "".join(f"<td>{value:.4f}</td>" for value in row[1:])
            + "</tr>"
            for row in self.rows()
        )
        return (
            f'<table style="font-variant-numeric:tabular-nums"><thead><tr>{head}</tr></thead>'
            f"<tbody>{body}</tbody></table><p>{escape(self.summary())}</p>"
        )


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
    >>> shown.kept.round(12).tolist(), shown.corrected.round(12).tolist()
    ([0.2, 0.2, 0.2], [0.3, 0.1, 0.0])
    >>> shown.error < 1e-15
    True
    """
    if np.ndim(p) != 1 or np.shape(p) != np.shape(q) or len(p) < 2:
        raise ValueError(
            f"p and q must be distributions of the same tokens, two or more, got shapes "
            f"{np.shape(p)} "
            f"and {np.shape(q)}"
        )
    target, draft = (
        checked_distribution(distribution, len(p), name)
        for distribution, name in ((p, "target p"), (q, "draft q"))
    )
    kept = np.zeros(len(target))
    for x in np.flatnonzero(draft):  # what the draft never proposes is never kept
        kept[x] = draft[x] * ratio(target, draft, int(x))
    corrected: FloatArray = (1.0 - kept.sum()) * residual(target, draft)
    return Identity(target, draft, kept, corrected, words)
