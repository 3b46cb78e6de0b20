"""Does a sampler emit the target's distribution? Every test of the emitted tokens, and one verdict.

:func:`battery` is for many short texts of one prompt and reads tables of tokens.
:func:`battery_of_scores` is for texts of any length, prompt and vocabulary and reads every token's
score. The verdict comes from emitted tokens only. Tests of accept draws fail samplers that are
lossless (matching, one-hot drafts, block verification): they say where a fault is, never whether.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from specviz.lossless.report.battery_report import BatteryReport, Criteria, Evidence, Impossible
from specviz.lossless.report.eprocess_path import evidence_of_texts, evidence_of_u
from specviz.lossless.report.table_summary import table_seen, u_seen
from specviz.lossless.report.verdict import MainTable, conclude, support
from specviz.lossless.statistics import independence as preflight
from specviz.lossless.statistics.conditional_distribution import (
    Conditional,
    ConditionalDistribution,
)
from specviz.lossless.statistics.distance import (
    distance,
    mean_at_least,
    rate_for,
    share_at_least,
    table_witness,
    token_witness,
)
from specviz.lossless.statistics.findings import Finding
from specviz.lossless.statistics.goodness_of_fit import goodness_of_fit
from specviz.lossless.statistics.prefix_tree import MAX_CONTEXTS, PrefixTree, Walk, grow, walk
from specviz.lossless.statistics.sample import END, Sample, Words, word
from specviz.lossless.statistics.scores import Scores
from specviz.lossless.statistics.tables import all_tables
from specviz.lossless.statistics.transform import (
    Sums,
    Uniforms,
    bins_of_scores,
    independence_of_neighbours,
    martingale,
    sums_of_moments,
    sums_of_walks,
    uniformity,
    uniforms_of_scores,
    uniforms_of_walks,
)


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
    uniforms = uniforms_of_walks(tree, walks, seed)
    ratio = None if q is None else sums_of_walks(tree, walks, q)
    findings = [
        support(impossible, sample.tokens.size),
        *(goodness_of_fit(table, words) for table in every),
        *_token_tests(uniforms, sums_of_walks(tree, walks), ratio),
    ]
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


def _token_tests(uniforms: Uniforms, log_p: Sums, log_ratio: Sums | None) -> list[Finding]:
    """Return the tests of each token against its own conditional distribution."""
    found = [
        uniformity(uniforms),
        independence_of_neighbours(uniforms),
        martingale("log p", log_p),
    ]
    return found if log_ratio is None else [*found, martingale("log p/q", log_ratio)]


def _check_fit(sample: Sample, tree: PrefixTree) -> None:
    ours = (sample.vocab_size, sample.length, sample.end_ids)
    theirs = (tree.vocab_size, tree.length, tree.end_ids)
    for name, a, b in zip(("vocab_size", "length", "end_ids"), ours, theirs, strict=True):
        if a != b:
            raise ValueError(
                f"sample and tree must agree on {name}, got {a} and {b}: grow the tree anew"
            )


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


def battery_of_scores(
    scores: Scores,
    *,
    alpha: float = 0.01,
    margin: float = 0.0,
    effect: float = 0.2,
    seed: int = 0,
    tables: bool = False,
) -> BatteryReport:
    """Test emitted tokens against the target's distribution before each of them.

    Parameters
    ----------
    scores : Scores
        From :func:`~specviz.lossless.statistics.scores.score_tokens`, texts joined in the order
        drawn; every token up to and including EOS, none left out because of what came after it.
    alpha, margin, effect, seed
        See :class:`~specviz.lossless.report.battery_report.Criteria`.
    tables : bool
        Keep what was seen of the transform u, and how the evidence grew, for plots.

    Returns
    -------
    BatteryReport
        Support, transform u and its neighbours, mean log p (and log p/q where scored).

    Raises
    ------
    ValueError
        If there is no token, or a score is NaN.

    Examples
    --------
    >>> from specviz.lossless.statistics.scores import score_tokens
    >>> tokens = np.random.default_rng(0).integers(0, 4, size=2000)
    >>> right, wrong = np.full((2000, 4), 0.25), np.tile([0.2, 0.3, 0.2, 0.3], (2000, 1))
    >>> battery_of_scores(score_tokens(right, tokens)).verdict.value
    'NO_DISCREPANCY_FOUND'
    >>> battery_of_scores(score_tokens(wrong, tokens)).verdict.value
    'DISCREPANCY'
    """
    criteria = Criteria(alpha=alpha, margin=margin, effect=effect, seed=seed)
    _check_scores(scores)
    uniforms = uniforms_of_scores(scores, seed)
    impossible = _impossible_score(scores)
    log_p = sums_of_moments(scores.log_p)
    ratio = None if scores.log_ratio is None else sums_of_moments(scores.log_ratio)
    findings = [
        support(impossible, len(scores)),
        *_token_tests(uniforms, log_p, ratio),
    ]
    live = int(uniforms.bins.sum())
    seen = u_seen(uniforms) if tables else None
    evidence = Evidence(
        against="the target's distributions",
        n=scores.texts,
        tokens=len(scores),
        findings=tuple(findings),
        independence=preflight.independence_of_scores(scores),
        impossible=impossible,
        beyond_margin=_impossible_scores_beyond(scores, criteria),
        token_witness=token_witness(uniforms, alpha / 2),
        tables=() if seen is None else (seen,),
        eprocess=evidence_of_u(bins_of_scores(scores, seed), alpha) if tables else None,
    )
    main = MainTable(
        "transform u", live, texts_per_count=scores.texts / max(1, live), deterministic=live == 0
    )
    return conclude(criteria, evidence, main)


def _check_scores(scores: Scores) -> None:
    if len(scores) == 0:
        raise ValueError("scores is empty: at least one emitted token is needed")
    if not (np.all(np.isfinite(scores.p)) and np.all(np.isfinite(scores.below))):
        raise ValueError(
            "scores has NaN: the target's distribution of every emitted token is needed"
        )
    if np.any(np.diff(scores.text) < 0):
        raise ValueError("scores.text must not decrease: keep each text's tokens together")


def _impossible_score(scores: Scores) -> Impossible | None:
    nowhere = np.flatnonzero(scores.p == 0)
    if not len(nowhere):
        return None
    at = int(nowhere[0])
    begins = int(np.searchsorted(scores.text, scores.text[at]))
    text = int(np.count_nonzero(np.diff(scores.text[: at + 1])))
    position = at - begins
    shown = "a token of probability 0"
    return Impossible(len(nowhere), text, position, -1, shown)


def _impossible_scores_beyond(scores: Scores, criteria: Criteria) -> bool:
    """Return whether more tokens are impossible than the margin allows, on average."""
    nowhere = scores.p == 0
    if criteria.margin == 0 or not nowhere.any():
        return bool(nowhere.any())
    n, alpha = len(nowhere), criteria.alpha / 2
    rate = rate_for(min(0.9, 3 * criteria.margin), n, alpha)
    return mean_at_least(int(nowhere.sum()), n, rate, alpha) > criteria.margin
