"""The cells of a table, seen and expected: what :func:`against_expected` draws."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from specviz.core.contract import FloatArray
from specviz.figures.escaping import SPACE, split_gap
from specviz.lossless.report.table_summary import CELLS, TableSeen, table_seen
from specviz.lossless.statistics.conditional_distribution import (
    Conditional,
    ConditionalDistribution,
)
from specviz.lossless.statistics.prefix_tree import PrefixTree, grow, walk
from specviz.lossless.statistics.sample import Sample, Words
from specviz.lossless.statistics.tables import all_tables

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
    ``unit`` is what is counted, ``against`` what is expected.
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
    unit: str = "texts"
    against: str = "target p"

    @property
    def title(self) -> str:
        """Which table of how many texts, and which of its cells are drawn."""
        p = "" if np.isnan(self.p) else f", p = {self.p:.2g}" if self.p >= 1e-3 else ", p < 0.001"
        title = f"{self.table}: {self.n:,} {self.unit}, {self.cells:,} cells{p}"
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
    target: Conditional | ConditionalDistribution | PrefixTree,
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
    seen = table_seen(tables[name], words, cells, confidence)
    if seen is None:
        raise ValueError(
            f"{name} has one cell that expects at least 5 of {len(sample):,} texts, so that there "
            f"is nothing to compare: draw more texts"
        )
    return data_of(seen)


def data_of(seen: TableSeen) -> AgainstData:
    """Return a table of a report as it is drawn: token texts made visible."""
    expected, low, high = (np.array(x) for x in (seen.expected, seen.low, seen.high))
    return AgainstData(
        labels=[visible_label(label, seen.words) for label in seen.labels],
        expected=expected,
        observed=np.array(seen.observed),
        low=low,
        high=high,
        outside=(expected < low) | (expected > high),
        table=seen.table,
        n=seen.n,
        cells=seen.cells,
        tv=seen.tv,
        floor=seen.floor,
        chance=seen.chance,
        p=float("nan") if seen.p is None else seen.p,
        confidence=seen.confidence,
        unit=seen.unit,
        against=seen.against,
    )


def visible_label(label: str, words: Words) -> str:
    """Return a cell's name: its tokens' texts where known, cut where it is long."""
    tokens, plus, more = label.partition(" + ")
    name = _ID.sub(lambda found: _word(int(found[1]), words), tokens)
    name = name if len(name) <= _LONGEST else name[: _LONGEST - 1] + "…"
    return f"{name}{plus}{more}"


def _word(token: int, words: Words) -> str:
    known = token in words if isinstance(words, Mapping) else token < len(words)
    if not known:
        return f"⟨{token}⟩"
    gap, rest = split_gap(words[token])
    return f"{SPACE if gap else ''}{rest}"
