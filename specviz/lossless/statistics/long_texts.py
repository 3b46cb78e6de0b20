"""The battery for texts of any length, prompt and vocabulary: every token scored by the target."""

from __future__ import annotations

import numpy as np

from specviz.lossless.report.battery_report import BatteryReport, Criteria, Evidence, Impossible
from specviz.lossless.report.eprocess_path import evidence_of_u
from specviz.lossless.report.table_summary import u_seen
from specviz.lossless.report.verdict import MainTable, conclude, support
from specviz.lossless.statistics import independence as preflight
from specviz.lossless.statistics import transform as conditional
from specviz.lossless.statistics.scores import Scores
from specviz.lossless.statistics.witness import mean_at_least, rate_for, token_witness


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
    _check(scores)
    uniforms = conditional.uniforms_of_scores(scores, seed)
    impossible = _impossible(scores)
    findings = [
        support(impossible, len(scores)),
        conditional.uniformity(uniforms),
        conditional.independence_of_neighbours(uniforms),
        conditional.martingale("log p", conditional.sums_of_moments(scores.log_p)),
    ]
    if scores.log_ratio is not None:
        findings.append(
            conditional.martingale("log p/q", conditional.sums_of_moments(scores.log_ratio))
        )
    live = int(uniforms.bins.sum())
    seen = u_seen(uniforms) if tables else None
    evidence = Evidence(
        against="the target's distributions",
        n=scores.texts,
        tokens=len(scores),
        findings=tuple(findings),
        independence=preflight.independence_of_scores(scores),
        impossible=impossible,
        beyond_margin=_beyond(scores, criteria),
        token_witness=token_witness(uniforms, alpha / 2),
        tables=() if seen is None else (seen,),
        eprocess=evidence_of_u(conditional.bins_of_scores(scores, seed), alpha) if tables else None,
    )
    main = MainTable(
        "transform u", live, texts_per_count=scores.texts / max(1, live), deterministic=live == 0
    )
    return conclude(criteria, evidence, main)


def _check(scores: Scores) -> None:
    if len(scores) == 0:
        raise ValueError("scores is empty: at least one emitted token is needed")
    if not (np.all(np.isfinite(scores.p)) and np.all(np.isfinite(scores.below))):
        raise ValueError(
            "scores has NaN: the target's distribution of every emitted token is needed"
        )
    if np.any(np.diff(scores.text) < 0):
        raise ValueError("scores.text must not decrease: keep each text's tokens together")


def _impossible(scores: Scores) -> Impossible | None:
    nowhere = np.flatnonzero(scores.p == 0)
    if not len(nowhere):
        return None
    at = int(nowhere[0])
    begins = int(np.searchsorted(scores.text, scores.text[at]))
    text = int(np.count_nonzero(np.diff(scores.text[: at + 1])))
    position = at - begins
    shown = "a token of probability 0"
    return Impossible(len(nowhere), text, position, -1, shown)


def _beyond(scores: Scores, criteria: Criteria) -> bool:
    """Return whether more tokens are impossible than the margin allows, on average."""
    nowhere = scores.p == 0
    if criteria.margin == 0 or not nowhere.any():
        return bool(nowhere.any())
    n, alpha = len(nowhere), criteria.alpha / 2
    rate = rate_for(min(0.9, 3 * criteria.margin), n, alpha)
    return mean_at_least(int(nowhere.sum()), n, rate, alpha) > criteria.margin
