"""The cells of a table, seen and expected: what :func:`against_expected` draws."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import log, sqrt

import numpy as np
from numpy.typing import NDArray

from specviz.core.contract import FloatArray
from specviz.figures.visible import SPACE, split_gap
from specviz.lossless.chisquare import goodness_of_fit
from specviz.lossless.distance import distance
from specviz.lossless.law import Conditional, ConditionalLaw
from specviz.lossless.sample import Sample, Words
from specviz.lossless.tables import Table, all_tables
from specviz.lossless.tree import PrefixTree, grow, walk
from specviz.lossless.witness import share_at_least, share_at_most

CELLS = 14
"""How many cells are drawn; where there are more, those that depart most."""

_ID = re.compile(r"⟨(\d+)⟩")
_LONGEST = 24


@dataclass(frozen=True)
class AgainstData:
    """What the figure shows, without drawing it.

    ``labels``, ``expected``, ``observed`` (both in texts), ``low``, ``high`` (bounds of the true
    expectation) and ``outside`` (the target's is not within them) have one entry per drawn cell,
    the likeliest first. ``tv`` is the total variation seen over all ``cells`` cells, ``floor``
    what a perfect sampler shows on average, ``chance`` what it exceeds with probability
    ``1 - confidence`` at most. ``p`` is the chi-square test's, NaN where it is not testable.
    """

    labels: list[str]
    expected: FloatArray
    observed: FloatArray
    low: FloatArray
    high: FloatArray
    outside: NDArray[np.bool_]
    table: str
    n: int
    cells: int
    tv: float
    floor: float
    chance: float
    p: float
    confidence: float

    @property
    def title(self) -> str:
        """Which table of how many texts, and which of its cells are drawn."""
        p = "" if np.isnan(self.p) else f", p = {self.p:.2g}" if self.p >= 1e-3 else ", p < 0.001"
        title = f"{self.table}: {self.n:,} texts, {self.cells:,} cells{p}"
        if len(self.labels) < self.cells:
            title += f"\ndrawn: the {len(self.labels)} cells that depart most"
        return title

    @property
    def above_chance(self) -> bool:
        """Whether the total variation exceeds what chance shows."""
        return self.tv > self.chance

    @property
    def verdict(self) -> str:
        """What the total variation is, and what chance shows."""
        return (
            f"TV seen: {self.tv:.4f}, {'above' if self.above_chance else 'no more than'} chance\n"
            f"chance: {self.floor:.4f} on average, up to {self.chance:.4f} ({self.confidence:.0%})"
        )


def against_data(
    sample: Sample,
    target: Conditional | ConditionalLaw | PrefixTree,
    *,
    table: str | None = None,
    words: Words | None = None,
    cells: int = CELLS,
    confidence: float = 0.99,
) -> AgainstData:
    """Return what :func:`against_expected` draws."""
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie between 0 and 1, got {confidence!r}")
    if cells < 2:
        raise ValueError(f"cells must be at least 2, got {cells!r}")
    tree = target if isinstance(target, PrefixTree) else grow(
        target, sample.vocab_size, sample.length, end_ids=sample.end_ids
    )  # fmt: skip
    if (tree.length, tree.vocab_size) != (sample.length, sample.vocab_size):
        raise ValueError(
            f"target covers {tree.length} tokens of {tree.vocab_size}, sample has "
            f"{sample.length} of {sample.vocab_size}: they must be about the same texts"
        )
    tables = {one.name: one for one in all_tables(tree, [walk(tree, sample.tokens)])}
    name = next(reversed(tables)) if table is None else table
    if name not in tables:
        raise ValueError(f"table must be one of {', '.join(map(repr, tables))}, got {table!r}")
    return _data(tables[name], words, cells, confidence)


def _data(table: Table, words: Words | None, most: int, confidence: float) -> AgainstData:
    expected = table.pooling.expected
    size, n = len(expected), table.n
    if size < 2:
        raise ValueError(
            f"{table.name} has one cell that expects at least 5 of {n:,} texts, so that there is "
            f"nothing to compare: draw more texts"
        )
    seen = table.pooled_counts().sum(axis=0)
    share = (1 - confidence) / size / 2
    low = n * np.array([share_at_least(int(k), n, share) for k in seen])
    high = n * np.array([share_at_most(int(k), n, share) for k in seen])
    depart = np.abs(seen - expected) / np.sqrt(expected)
    shown = np.argsort(-depart, kind="stable")[:most]
    shown = shown[np.argsort(-expected[shown], kind="stable")]
    found = distance(table, 0.0, 1 - confidence)
    p = goodness_of_fit(table).p
    return AgainstData(
        labels=[_label(table, int(cell), words) for cell in shown],
        expected=expected[shown],
        observed=seen[shown],
        low=low[shown],
        high=high[shown],
        outside=((expected < low) | (expected > high))[shown],
        table=table.name,
        n=n,
        cells=size,
        tv=found.plug_in,
        floor=found.noise_floor,
        # one text more or less moves the total variation by 1/n at most (McDiarmid 1989)
        chance=found.noise_floor + sqrt(log(1 / (1 - confidence)) / (2 * n)),
        p=float("nan") if p is None else p,
        confidence=confidence,
    )


def _label(table: Table, cell: int, words: Words | None) -> str:
    """Return a short name: the cell's tokens, or its first cell's and how many it is pooled of."""
    members = np.flatnonzero(table.pooling.label == cell)
    possible = members[table.law[members] > 0]
    members = possible if len(possible) else members
    text = table.describe(int(members[0]), None).partition(": ")
    name = _ID.sub(lambda found: _word(int(found[1]), words), text[2] or text[0])
    name = name if len(name) <= _LONGEST else name[: _LONGEST - 1] + "…"
    return name if len(members) == 1 else f"{name} + {len(members) - 1:,} more"


def _word(token: int, words: Words | None) -> str:
    known = words is not None and (token in words if hasattr(words, "keys") else token < len(words))
    if words is None or not known:
        return f"⟨{token}⟩"
    gap, rest = split_gap(words[token])
    return f"{SPACE if gap else ''}{rest}"
