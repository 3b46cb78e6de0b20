"""Does a sampler emit the target's distribution? Every test of the emitted tokens, and one verdict.

The verdict comes from emitted tokens only. Tests of accept draws fail samplers that are lossless
(matching, one-hot drafts, block verification): they say where a fault is, never whether.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from specviz.lossless.report.battery_report import BatteryReport, Criteria, Evidence, Impossible
from specviz.lossless.report.eprocess_path import evidence_of_texts
from specviz.lossless.report.table_summary import table_seen, u_seen
from specviz.lossless.report.verdict import MainTable, conclude, support
from specviz.lossless.statistics import independence as preflight
from specviz.lossless.statistics import transform as conditional
from specviz.lossless.statistics.conditional_distribution import (
    Conditional,
    ConditionalDistribution,
)
from specviz.lossless.statistics.distance import distance
from specviz.lossless.statistics.goodness_of_fit import goodness_of_fit
from specviz.lossless.statistics.prefix_tree import MAX_CONTEXTS, PrefixTree, Walk, grow, walk
from specviz.lossless.statistics.sample import END, Sample, Words, word
from specviz.lossless.statistics.tables import all_tables
from specviz.lossless.statistics.witness import share_at_least, table_witness, token_witness


def battery(
    sample: Sample,
    target: Conditional | ConditionalDistribution | PrefixTree,
    *,
    draft: Conditional | ConditionalDistribution | None = None,
    alpha: float = 0.01,
    margin: float = 0.0,
    effect: float = 0.2,
    seed: int = 0,
    max_contexts: int = MAX_CONTEXTS,
    words: Words | None = None,
    progress: bool = False,
    tables: bool = False,
) -> BatteryReport:
    """Test emitted texts against the target's distribution.

    Parameters
    ----------
    sample : Sample
        Independent texts of one prompt, in the order drawn.
    target : callable, ConditionalDistribution or PrefixTree
        Emitted tokens so far → the target's distribution ``(vocab,)`` of the next, after every
        sampling setting; or its tree, grown before.
    draft : callable, optional
        The same for the draft: adds the test of log p/q, the direction in which faults push.
    alpha, margin, effect, seed
        See :class:`~specviz.lossless.report.battery_report.Criteria`.
    max_contexts : int
        Largest number of distributions asked for; rarer contexts are tested as one cell.
    words : mapping or sequence of str, optional
        Token strings, for the report.
    progress : bool
        Show a bar while distributions are asked for, if that takes longer than two seconds.
    tables : bool
        Keep what was seen of each table, and how the evidence grew, for plots.

    Returns
    -------
    BatteryReport
        The verdict, every test, the total variation with its noise floor, and what would have been
        caught.

    Examples
    --------
    >>> coin = lambda prefix: [0.5, 0.5]
    >>> tokens = np.random.default_rng(0).integers(0, 2, size=(4000, 3))
    >>> battery(Sample.of(tokens, vocab_size=2), coin).verdict.value
    'NO_DISCREPANCY_FOUND'
    >>> battery(Sample.of(tokens, vocab_size=2), lambda prefix: [0.6, 0.4]).verdict.value
    'DISCREPANCY'
    """
    criteria = Criteria(alpha=alpha, margin=margin, effect=effect, seed=seed)
    tree = target if isinstance(target, PrefixTree) else grow(
        target, sample.vocab_size, sample.length, end_ids=sample.end_ids,
        max_contexts=max_contexts, progress=progress,
    )  # fmt: skip
    _check_fit(sample, tree)
    q = draft
    if q is not None and not isinstance(q, ConditionalDistribution):
        q = ConditionalDistribution(q, sample.vocab_size, "draft")

    walks = [walk(tree, sample.tokens[0::2]), walk(tree, sample.tokens[1::2])]
    every = all_tables(tree, walks)
    impossible = _impossible(tree, walks, sample, words)
    uniforms = conditional.uniforms_of_walks(tree, walks, seed)
    findings = [
        support(impossible, sample.tokens.size),
        *(goodness_of_fit(table, words) for table in every),
        conditional.uniformity(uniforms),
        conditional.independence_of_neighbours(uniforms),
        conditional.martingale("log p", conditional.sums_of_walks(tree, walks)),
    ]
    if q is not None:
        findings.append(
            conditional.martingale("log p/q", conditional.sums_of_walks(tree, walks, q))
        )
    joint = every[-1]
    witness = table_witness(every, alpha / 2, margin, words)
    codes = preflight.text_codes(sample.tokens, sample.vocab_size)
    seen = [*(table_seen(table, words) for table in every), u_seen(uniforms)] if tables else []
    evidence = Evidence(
        against="the target's distribution",
        n=len(sample),
        tokens=int(np.count_nonzero(sample.tokens != END)),
        length=sample.length,
        vocab_size=sample.vocab_size,
        findings=tuple(findings),
        independence=preflight.independence(codes, joint.distribution),
        impossible=impossible,
        beyond_margin=_impossible_beyond(tree, walks, criteria),
        witness=witness,
        token_witness=token_witness(uniforms, alpha / 2),
        distance=distance(joint, witness.low if witness else 0.0, alpha),
        covered=_covered(walks),
        tables=tuple(one for one in seen if one is not None),
        eprocess=evidence_of_texts(tree, sample, alpha) if tables else None,
    )
    no_choice = float(joint.distribution.max()) >= 1 - 1e-9
    main = MainTable(joint.name, len(sample), joint.distribution, deterministic=no_choice)
    return conclude(criteria, evidence, main)


def _check_fit(sample: Sample, tree: PrefixTree) -> None:
    ours = (sample.vocab_size, sample.length, sample.end_ids)
    theirs = (tree.vocab_size, tree.length, tree.end_ids)
    for name, a, b in zip(("vocab_size", "length", "end_ids"), ours, theirs, strict=True):
        if a != b:
            raise ValueError(f"the sample has {name} {a}, the target's tree {b}: grow it anew")


def _impossible(
    tree: PrefixTree, walks: Sequence[Walk], sample: Sample, words: Words | None
) -> Impossible | None:
    """Return the first token of probability 0 in a known context."""
    count, first = 0, (len(sample), 0)
    for position, level in enumerate(tree.levels):
        nowhere = level.distribution == 0
        for half, walk_ in enumerate(walks):
            hits = int(walk_.counts[position][nowhere].sum())
            if hits:
                count += hits
                index = int(np.argmax(nowhere.ravel()[walk_.cells[position]]))
                first = min(first, (2 * index + half, position))
    if not count:
        return None
    text, position = first
    ids = sample.tokens[text].tolist()
    before = " ".join(word(i, words) for i in ids[max(0, position - 8) : position])
    shown = f"{word(ids[position], words)} after {before or 'the prompt'}"
    return Impossible(count, text, position, ids[position], shown)


def _impossible_beyond(tree: PrefixTree, walks: Sequence[Walk], criteria: Criteria) -> bool:
    """Return whether more texts have an impossible token than the margin allows."""
    bad = sum(
        int(w.counts[t][level.distribution == 0].sum())
        for t, level in enumerate(tree.levels)
        for w in walks
    )  # a text has at most one: after it, it is elsewhere
    if criteria.margin == 0 or bad == 0:
        return bad > 0
    n = sum(len(w.cells[0]) for w in walks)
    return share_at_least(bad, n, criteria.alpha / 2) > criteria.margin * tree.length


def _covered(walks: Sequence[Walk]) -> float:
    known = sum(int(c[:-1].sum()) for w in walks for c in w.counts)
    return known / max(1, sum(int(c.sum()) for w in walks for c in w.counts))
