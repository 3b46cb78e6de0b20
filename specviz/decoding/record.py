"""What one round did → rows of the trace.

The evidence is taken for every proposal, examined or not, and its size does not depend on the
vocabulary: p and q on the union of their k most likely tokens, with what is left in two tails
(p > q, p <= q) so that overlap and residual follow exactly.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from specviz.core.contract import ROOT, Draft, FloatArray
from specviz.core.draws import Accepting, Choosing, Event, Purpose, Racing, Sampler
from specviz.core.rules import Rule, residual
from specviz.core.trace.columns import ALTERNATIVES, NODES, ROUNDS, UNION, Column
from specviz.core.trace.trace import Trace
from specviz.decoding.loop import RoundResult

PLAIN, CORRECTION, BONUS = 0, 1, 2
NEVER, ACCEPTED, REJECTED = 0, 1, 2
ONE_HOT, INVERSE_CDF, RACE = 0, 1, 2


def record(trace: Trace, result: RoundResult, rule: Rule, draws: Sampler) -> tuple[Any, Any]:
    """Return (round values, node values) for :meth:`specviz.core.trace.trace.Trace.append`."""
    draft, p = result.draft, result.p
    judged, used = distributions_in_question(draft, p, rule)  # (n, vocab), (n, vocab)
    nodes = _node_values(trace.k, result, rule, draws, judged, used)
    closing = _closing_values(trace.k, result)
    if trace.full_vocab:
        nodes |= {"full_p": judged, "full_q": used}
        closing |= {"full_closing": closing_distribution(result)}
    return closing, nodes


def distributions_in_question(
    draft: Draft, p: FloatArray, rule: Rule
) -> tuple[FloatArray, FloatArray]:
    """Return for each node the p that it is judged by and the q that it was drawn from.

    A first sibling is judged by p itself, a later one by what the rule leaves of it.
    """
    n, vocab_size = len(draft), p.shape[1]
    judged, used = np.empty((n, vocab_size)), np.empty((n, vocab_size))
    for node in range(ROOT, n):
        distribution = p[node + 1]
        for child in draft.children(node):
            judged[child], used[child] = distribution, draft.distribution(child, vocab_size)
            if rule.leaves_residual and child != draft.children(node)[-1]:
                distribution = residual(distribution, used[child])
    return judged, used


def closing_distribution(result: RoundResult) -> FloatArray:
    """Return the distribution that the closing token should come from.

    A correction's is the rule's own (what is left of p). A bonus or plain token's is the target's
    row as it stands, so that a rule that drew it from elsewhere is seen to.
    """
    path = result.verdict.path
    last = path[-1] if path else ROOT
    if result.draft.children(last):
        return result.verdict.distribution
    distribution: FloatArray = result.p[last + 1]
    return distribution


def _node_values(
    k: int, result: RoundResult, rule: Rule, draws: Sampler, p: FloatArray, q: FloatArray
) -> dict[str, Any]:
    draft, verdict = result.draft, result.verdict
    n, vocab_size = p.shape
    out = _blank(NODES, n, k)
    if n == 0:
        return out
    every, x = np.arange(n), draft.tokens
    overlap = np.minimum(p, q)  # (n, vocab)
    left = (p - q) * (p > q)
    mass = left.sum(axis=1, keepdims=True)
    left /= np.where(mass > 0, mass, 1)  # (n, vocab), all 0 where p = q: nothing to resample

    out["token"], out["parent"] = x, draft.parent
    out["verdict"] = _verdicts(draft, verdict.path, result.events)
    kept = verdict.path[: len(result.emitted)]
    out["emitted"][kept] = 1
    out["p"], out["q"] = p[every, x], q[every, x]
    out["acceptance"] = rule.acceptance(draft, result.p)
    if rule.compares_u:
        depths = result.position + draft.depths()
        out["u"] = [draws.uniform(Purpose.ACCEPT, int(depths[i]), i) for i in range(n)]
    out["overlap"] = overlap.sum(axis=1)
    out["entropy_p"], out["entropy_q"] = entropy(p), entropy(q)

    q_cdf = _cdf_below(q)
    top = _union(most_likely(p, k), most_likely(q, k), x, np.maximum(p, q))  # (n, 2k + 1)
    rows, known = every[:, None], top >= 0
    out["top_ids"] = top
    for name, values in (("top_p", p), ("top_q", q), ("top_q_cdf", q_cdf)):
        out[name] = np.where(known, values[rows, top], np.nan)
    off_top = np.ones((n, vocab_size), dtype=bool)
    np.put_along_axis(off_top, np.where(known, top, x[:, None]), False, axis=1)
    above = off_top & (p > q)
    below = off_top & ~(p > q)
    for name, distribution, where in (
        ("tail_p_above", p, above),
        ("tail_q_above", q, above),
        ("tail_p_below", p, below),
        ("tail_q_below", q, below),
    ):
        out[name] = np.where(where, distribution, 0.0).sum(axis=1)

    out["residual_ids"] = best = most_likely(left, k)
    out["residual_p"] = np.where(best >= 0, left[rows, best], np.nan)
    out["residual_cdf"] = np.where(best >= 0, _cdf_below(left)[rows, best], np.nan)
    _draft_draws(out, draft, result.events)
    _own_tokens(out, result)
    return out


def _closing_values(k: int, result: RoundResult) -> dict[str, Any]:
    draft, verdict = result.draft, result.verdict
    distribution, token = closing_distribution(result), verdict.token
    out: dict[str, Any] = _blank(ROUNDS, 1, k)
    last = verdict.path[-1] if verdict.path else ROOT
    kind = CORRECTION if draft.children(last) else BONUS
    best = most_likely(distribution[None], k)[0]
    known = best >= 0
    out |= {
        "position": result.position,
        "nodes": len(draft),
        "gamma": result.gamma,
        "emitted": len(result.emitted),
        "closing_token": token,
        "closing_kind": kind if len(draft) else PLAIN,
        "closing_emitted": int(len(result.emitted) == len(verdict.path) + 1),
        "closing_p": float(distribution[token]),
        "closing_entropy": entropy(distribution[None])[0],
        "closing_ids": best,
        "closing_top": np.where(known, distribution[best], np.nan),
        "closing_cdf": np.where(known, _cdf_below(distribution[None])[0, best], np.nan),
        "draft_seconds": result.draft_seconds,
        "verify_seconds": result.verify_seconds,
        "other_seconds": result.decide_seconds,
    }
    caches = (
        ("target", "verified", result.target_cache),
        ("draft", "proposed", result.draft_cache),
    )
    for who, passed, lengths in caches:
        out |= dict(zip((f"{who}_before", f"{who}_{passed}", f"{who}_after"), lengths, strict=True))
    position = result.position + len(verdict.path)
    for event in result.events:
        if isinstance(event, Choosing) and event.purpose is Purpose.CLOSING:
            out |= {f"closing_{name}": value for name, value in _choosing(event).items()}
        if isinstance(event, Racing) and event.node < 0 and event.position == position:
            out |= {f"closing_{name}": value for name, value in _racing(event).items()}
    return out


def _blank(schema: dict[str, Column], rows: int, k: int) -> dict[str, Any]:
    widths = {None: (), ALTERNATIVES: (k,), UNION: (2 * k + 1,)}
    return {
        name: np.full((rows, *widths[column.width]), column.fill, dtype=column.dtype)
        for name, column in schema.items()
    }


def _verdicts(draft: Draft, path: list[int], events: list[Event]) -> Any:
    """Return 0 never examined, 1 accepted, 2 rejected for each node."""
    judged = {event.node for event in events if isinstance(event, Accepting)}
    if not judged:  # a rule without accept draws looks at every child of the nodes it reaches
        judged = {child for node in (ROOT, *path) for child in draft.children(node)}
    codes = np.full(len(draft), NEVER, dtype=np.int8)
    codes[sorted(judged)] = REJECTED
    codes[path] = ACCEPTED
    return codes


def _draft_draws(out: dict[str, Any], draft: Draft, events: list[Event]) -> None:
    """Fill in how each proposal was drawn."""
    for event in events:
        if isinstance(event, Choosing) and event.purpose is Purpose.DRAFT:
            values = _choosing(event)
        elif isinstance(event, Racing) and event.node >= 0:
            values = _racing(event)
        else:
            continue
        if event.node < len(draft) and draft.q_row[event.node] >= 0:
            for name, value in values.items():
                out[f"q_{name}"][event.node] = value


def _own_tokens(out: dict[str, Any], result: RoundResult) -> None:
    """Fill in the target's own token wherever it raced for one."""
    races = {e.position: e for e in result.events if isinstance(e, Racing) and e.node < 0}
    depths = result.position + result.draft.depths()
    for node in np.flatnonzero(out["verdict"] != NEVER):
        race = races.get(int(depths[node]))
        if race is not None:
            out["own_token"][node] = race.token
            out["own_time"][node] = race.time
            out["own_second"][node] = race.runner_up_time


def _choosing(event: Choosing) -> dict[str, Any]:
    return {
        "draw": INVERSE_CDF,
        "u": event.u,
        "cdf_lo": event.cdf_lo,
        "cdf_hi": event.cdf_hi,
        "mass": event.mass,
    }


def _racing(event: Racing) -> dict[str, Any]:
    return {"draw": RACE, "time": event.time, "second": event.runner_up_time}


def entropy(distributions: FloatArray) -> FloatArray:
    """Return the entropy of each row in nats, ``(n,)``."""
    logs = np.log(distributions, out=np.zeros_like(distributions), where=distributions > 0)
    out: FloatArray = -np.einsum("ij,ij->i", distributions, logs)
    return np.maximum(out, 0.0)


def most_likely(distributions: FloatArray, k: int) -> Any:
    """Return ``(n, k)`` ids, most likely first, lowest id first among equals; -1 where p is 0."""
    n, vocab_size = distributions.shape
    keep = min(k, vocab_size)
    chosen = np.argpartition(-distributions, keep - 1, axis=1)[:, :keep]
    chosen.sort(axis=1)
    values = np.take_along_axis(distributions, chosen, axis=1)
    order = np.argsort(-values, axis=1, kind="stable")
    chosen = np.take_along_axis(chosen, order, axis=1)
    values = np.take_along_axis(values, order, axis=1)
    out = np.full((n, k), -1, dtype=np.int64)
    out[:, :keep] = np.where(values > 0, chosen, -1)
    return out


def _union(first: Any, second: Any, x: Any, rank: FloatArray) -> Any:
    """Return ``(n, 2k + 1)``: the ids of both rows and x, ranked, filled up with -1."""
    n, k = first.shape
    out = np.full((n, 2 * k + 1), -1, dtype=np.int64)
    for i in range(n):
        ids = np.unique(np.concatenate([first[i], second[i], x[i : i + 1]]))
        ids = ids[ids >= 0]
        out[i, : len(ids)] = ids[np.argsort(-rank[i, ids], kind="stable")]
    return out


def _cdf_below(distributions: FloatArray) -> FloatArray:
    """Return the cumulative mass below each token, ``(n, vocab)``."""
    below = np.zeros_like(distributions)
    np.cumsum(distributions[:, :-1], axis=1, out=below[:, 1:])
    return below
