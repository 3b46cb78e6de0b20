"""The same sampler with speculation off as the reference: for a target nobody can load twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from specviz.core.contract import FloatArray, IntArray
from specviz.lossless.report.battery_report import BatteryReport, Criteria, Evidence
from specviz.lossless.report.table_summary import two_seen
from specviz.lossless.report.verdict import MainTable, conclude
from specviz.lossless.statistics import independence as preflight
from specviz.lossless.statistics.distance import (
    Witness,
    distance_of_two,
    share_at_least,
    share_at_most,
)
from specviz.lossless.statistics.goodness_of_fit import homogeneity
from specviz.lossless.statistics.pooling import Pooling, pool_neighbours, pool_rare
from specviz.lossless.statistics.sample import END, Sample, Words, word


@dataclass(frozen=True)
class _Pair:
    """One table of both samples.

    Counts are ``(2 samples, 2 halves, pooled)``; ``share`` is that of each cell before pooling, of
    both samples together.
    """

    name: str
    span: int
    counts: FloatArray
    share: FloatArray
    describe: Callable[[int], str]

    @property
    def subject(self) -> FloatArray:
        total: FloatArray = self.counts[0].sum(axis=0)
        return total

    @property
    def reference(self) -> FloatArray:
        total: FloatArray = self.counts[1].sum(axis=0)
        return total


def two_sample(
    sample: Sample,
    reference: Sample,
    *,
    alpha: float = 0.01,
    margin: float = 0.0,
    effect: float = 0.2,
    words: Words | None = None,
    tables: bool = False,
) -> BatteryReport:
    """Test whether two samples come from one distribution.

    Parameters
    ----------
    sample : Sample
        What is audited.
    reference : Sample
        Texts of the same prompt and length from the same engine with speculation off, drawn with
        other seeds.
    alpha, margin, effect
        See :class:`~specviz.lossless.report.battery_report.Criteria`.
    words : mapping or sequence of str, optional
        Token strings, for the report.
    tables : bool
        Keep what was seen of each table, for plots.

    Returns
    -------
    BatteryReport
        Positions, pairs and the joint continuation, each a test of homogeneity. Cells are pooled
        by both samples' totals, which say nothing of how they differ.

    Raises
    ------
    ValueError
        If the samples have different lengths, vocabularies or end tokens.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> a, b = (Sample.of(rng.integers(0, 4, size=(4000, 2)), vocab_size=4) for _ in "ab")
    >>> two_sample(a, b).verdict.value
    'NO_DISCREPANCY_FOUND'
    """
    criteria = Criteria(alpha=alpha, margin=margin, effect=effect)
    for name in ("vocab_size", "length", "end_ids"):
        ours, theirs = getattr(sample, name), getattr(reference, name)
        if ours != theirs:
            raise ValueError(f"sample has {name} {ours}, reference has {theirs}: make them alike")
    pairs = list(_tables(sample, reference, words))
    joint = pairs[-1]
    findings = [homogeneity(p.name, p.subject, p.reference, p.describe) for p in pairs]
    n, m = len(sample), len(reference)
    witness = _witness(pairs, alpha / 2, margin)
    seen = [two_seen(p.name, p.subject, p.reference, p.describe) for p in pairs] if tables else []
    evidence = Evidence(
        against="the reference sample",
        n=n,
        tokens=int(np.count_nonzero(sample.tokens != END)),
        length=sample.length,
        vocab_size=sample.vocab_size,
        findings=tuple(findings),
        independence=_independence(sample, reference),
        witness=witness,
        distance=distance_of_two(
            joint.name, joint.subject, joint.reference, witness.low if witness else 0.0, alpha
        ),
        tables=tuple(one for one in seen if one is not None),
    )
    main = MainTable(joint.name, n * m / (n + m), joint.share, texts_per_count=2.0)
    return conclude(criteria, evidence, main)


def _tables(a: Sample, b: Sample, words: Words | None) -> Iterator[_Pair]:
    wide = a.vocab_size + 1
    both = np.concatenate([a.tokens, b.tokens]) + 1  # END first: an ended text precedes longer ones
    group = np.concatenate([np.arange(len(a)) % 2, 2 + np.arange(len(b)) % 2])
    smaller = min(len(a), len(b)) / (len(a) + len(b))

    def name_of(symbol: int) -> str:
        return word(symbol - 1, words)

    def table(
        name: str, span: int, codes: IntArray, neighbours: bool, show: Callable[[int], str]
    ) -> _Pair:
        values, cell = np.unique(codes, return_inverse=True)
        counts = np.bincount(group * len(values) + cell, minlength=4 * len(values))
        counts = counts.reshape(4, -1)
        expected = counts.sum(axis=0) * smaller
        pooling: Pooling = (pool_neighbours if neighbours else pool_rare)(expected)
        pooled = np.stack([pooling.pool(row) for row in counts]).reshape(2, 2, -1)

        def describe(index: int) -> str:
            members = np.flatnonzero(pooling.label == index)
            first = show(int(values[members[0]]))
            more = len(members) - 1
            return f"{first} or one of {more} other cells" if more else first

        return _Pair(name, span, pooled, counts.sum(axis=0) / len(both), describe)

    def one(t: int, code: int) -> str:
        return f"position {t}: {name_of(code)}"

    def two(t: int, code: int) -> str:
        return f"positions {t} and {t + 1}: {name_of(code // wide)} then {name_of(code % wide)}"

    for t in range(a.length):
        yield table(f"position {t}", t + 1, both[:, t], False, partial(one, t))
    for t in range(a.length - 1):
        codes = both[:, t] * wide + both[:, t + 1]
        yield table(f"positions {t}, {t + 1}", t + 2, codes, False, partial(two, t))
    if a.length > 1:
        codes = preflight.text_codes(both - 1, a.vocab_size)
        values, first = np.unique(codes, return_index=True)

        def text(code: int) -> str:
            row = both[first[np.searchsorted(values, code)]]
            return " ".join(name_of(int(symbol)) for symbol in row)

        yield table("continuation", a.length, codes, True, text)


def _independence(a: Sample, b: Sample) -> preflight.Independence:
    """Return what repeats say of the audited texts, or of the reference if that is what repeats."""
    codes = preflight.text_codes(np.concatenate([a.tokens, b.tokens]), a.vocab_size)
    ours = preflight.independence(codes[: len(a)])
    if ours.reason:
        return ours
    theirs = preflight.independence(codes[len(a) :])
    if theirs.reason:
        return theirs
    return replace(ours, reason=preflight.same_sample(codes[: len(a)], codes[len(a) :]))


def _witness(pairs: list[_Pair], alpha: float, margin: float) -> Witness | None:
    """Return the event that shows most: chosen on first halves, measured on second ones."""
    best: tuple[float, _Pair, FloatArray] | None = None
    for pair in pairs:
        if pair.counts.shape[2] < 2:
            continue
        (a, b) = pair.counts[:, 0]
        n, m = a.sum(), b.sum()
        share = (a + b) / (n + m)
        away = (a / n - b / m) / np.sqrt(np.maximum(share * (1 - share), 1e-300) * (1 / n + 1 / m))
        for event in (np.arange(len(a)) == np.argmax(away), away > 0, away > 1, away > 2):
            s = float(share[event].sum())
            noise = 2.6 * np.sqrt(max(s * (1 - s), 1 / n) * (1 / n + 1 / m))
            value = float(a[event].sum() / n - b[event].sum() / m - noise) - margin * pair.span
            if best is None or value > best[0]:
                best = (value, pair, event)
    if best is None:
        return None
    _, pair, event = best
    (a, b) = pair.counts[:, 1]
    n, m = int(a.sum()), int(b.sum())
    k, other = int(a[event].sum()), int(b[event].sum())
    expected = share_at_most(other, m, alpha / 2)
    low = max(0.0, share_at_least(k, n, alpha / 2) - expected)
    cells = np.flatnonzero(event)
    first = pair.describe(int(cells[0])) if len(cells) else "no cell"
    shown = first if len(cells) < 2 else f"{len(cells)} cells seen too often, among them {first}"
    return Witness(shown, pair.name, expected, k / max(1, n), n, low, pair.span, False, 1 - alpha)
