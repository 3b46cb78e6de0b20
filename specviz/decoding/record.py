"""What one round did → rows of the trace.

The evidence is taken for every proposal, examined or not, and its size does not depend on the
vocabulary: p and q on the union of their k most likely tokens, with what is left in two tails
(p > q, p <= q) so that overlap and residual follow exactly. All distributions of a round stand in
one array, so that each kind of evidence is a call or two for the whole round.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from specviz.core.contract import ROOT, Draft, FloatArray, IntArray
from specviz.core.draws import Accepting, Choosing, Event, Purpose, Racing, Sampler
from specviz.core.rules import Rule, residual
from specviz.core.trace.columns import NODES
from specviz.core.trace.trace import Trace
from specviz.decoding.loop import RoundResult

PLAIN, CORRECTION, BONUS = 0, 1, 2
NEVER, ACCEPTED, REJECTED = 0, 1, 2
ONE_HOT, INVERSE_CDF, RACE = 0, 1, 2

SMALLEST = float(np.finfo(np.float64).tiny)
STRIP = 32


def record(trace: Trace, result: RoundResult, rule: Rule, draws: Sampler) -> tuple[Any, Any]:
    """Return (round values, node values) for :meth:`specviz.core.trace.trace.Trace.append`."""
    draft, n, k = result.draft, len(result.draft), trace.k
    rows = np.empty((3 * n + 1, result.p.shape[1]))  # p, q, the closing distribution, the residual
    p, q, closing, left = rows[:n], rows[n : 2 * n], rows[2 * n], rows[2 * n + 1 :]
    _fill_in_question(p, q, draft, result.p, rule)
    closing[:] = closing_distribution(result)
    overlap = np.minimum(p, q).sum(axis=1)  # (n,)
    np.subtract(p, q, out=left).clip(min=0, out=left)
    mass = left.sum(axis=1, keepdims=True)
    left /= np.where(mass > 0, mass, 1)  # (n, vocab), all 0 where p = q: nothing to resample

    best = most_likely(rows, k)  # (3 n + 1, k)
    entropies = entropy(rows[: 2 * n + 1])
    below = _CdfBelow(rows[n:])  # of q, the closing distribution and the residual

    on_closing = {
        "closing_p": float(closing[result.verdict.token]),
        "closing_entropy": entropies[2 * n],
        "closing_ids": best[2 * n],
        "closing_top": _at(closing, best[2 * n]),
        "closing_cdf": below.at(slice(n, n + 1), best[2 * n : 2 * n + 1])[0],
    }
    round_values = _closing_values(result) | on_closing
    nodes: dict[str, Any] = {}
    if n:
        nodes = _node_values(result, rule, draws, p, q)
        nodes["overlap"] = overlap
        nodes["entropy_p"], nodes["entropy_q"] = entropies[:n], entropies[n : 2 * n]
        nodes["top_ids"] = top = _union(best[:n], best[n : 2 * n], draft.tokens, p, q)
        nodes["top_p"], nodes["top_q"] = _at(p, top), _at(q, top)
        nodes["top_q_cdf"] = below.at(slice(n), top)
        nodes |= _tails(p, q, top)
        nodes["residual_ids"] = ids = best[2 * n + 1 :]
        nodes["residual_p"] = _at(left, ids)
        nodes["residual_cdf"] = below.at(slice(n + 1, None), ids)
    if trace.full_vocab:
        nodes |= {"full_p": p, "full_q": q}
        round_values["full_closing"] = closing
    return round_values, nodes


def _fill_in_question(p: FloatArray, q: FloatArray, draft: Draft, rows: Any, rule: Rule) -> None:
    """Fill in for each node the p that it is judged by and the q that it was drawn from.

    A first sibling is judged by p itself, a later one by what the rule leaves of it.
    """
    for node in range(ROOT, len(draft)):
        distribution, children = rows[node + 1], draft.children(node)
        for child in children:
            p[child], q[child] = distribution, draft.distribution(child, rows.shape[1])
            if rule.leaves_residual and child != children[-1]:
                distribution = residual(distribution, q[child])


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
    result: RoundResult, rule: Rule, draws: Sampler, p: FloatArray, q: FloatArray
) -> dict[str, Any]:
    """Return what happened to each node: tokens, verdicts and draws."""
    draft, verdict, n = result.draft, result.verdict, len(result.draft)
    every, x = np.arange(n), draft.tokens
    emitted = np.zeros(n, dtype=np.int8)
    emitted[verdict.path[: len(result.emitted)]] = 1
    out: dict[str, Any] = {
        "token": x,
        "parent": draft.parent,
        "verdict": _verdicts(draft, verdict.path, result.events),
        "emitted": emitted,
        "p": p[every, x],
        "q": q[every, x],
        "acceptance": rule.acceptance(draft, result.p),
    }
    if rule.compares_u:
        depths = (result.position + draft.depths()).tolist()
        seen = {event.node: event.u for event in result.events if isinstance(event, Accepting)}
        out["u"] = [
            seen[i] if i in seen else draws.uniform(Purpose.ACCEPT, depths[i], i) for i in range(n)
        ]
    _draft_draws(out, draft, result.events)
    _own_tokens(out, result)
    return out


def _closing_values(result: RoundResult) -> dict[str, Any]:
    draft, verdict = result.draft, result.verdict
    last = verdict.path[-1] if verdict.path else ROOT
    kind = CORRECTION if draft.children(last) else BONUS
    out: dict[str, Any] = {
        "position": result.position,
        "nodes": len(draft),
        "gamma": result.gamma,
        "emitted": len(result.emitted),
        "closing_token": verdict.token,
        "closing_kind": kind if len(draft) else PLAIN,
        "closing_emitted": int(len(result.emitted) == len(verdict.path) + 1),
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


def _put(out: dict[str, Any], node: int, values: dict[str, Any], rows: int) -> None:
    """Put single entries into node columns, which are missing elsewhere."""
    for name, value in values.items():
        if name not in out:
            out[name] = np.full(rows, NODES[name].fill, dtype=NODES[name].dtype)
        out[name][node] = value


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
            named = {f"q_{name}": value for name, value in values.items()}
            _put(out, event.node, named, len(draft))


def _own_tokens(out: dict[str, Any], result: RoundResult) -> None:
    """Fill in the target's own token wherever it raced for one."""
    races = {e.position: e for e in result.events if isinstance(e, Racing) and e.node < 0}
    if not races:
        return
    depths = result.position + result.draft.depths()
    for node in np.flatnonzero(out["verdict"] != NEVER).tolist():
        race = races.get(int(depths[node]))
        if race is not None:
            own = {
                "own_token": race.token,
                "own_time": race.time,
                "own_second": race.runner_up_time,
            }
            _put(out, node, own, len(result.draft))


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
    logs = np.log(np.maximum(distributions, SMALLEST))  # 0 times a number is 0, as it should be
    out: FloatArray = -np.einsum("ij,ij->i", distributions, logs)
    return np.maximum(out, 0.0)


def most_likely(distributions: FloatArray, k: int) -> IntArray:
    """Return ``(n, k)`` ids, most likely first, lowest id first among equals; -1 where p is 0."""
    n, vocab_size = distributions.shape
    keep = min(k, vocab_size)
    # Why not sort the rows? The k-th largest of the maxima of many strips is exceeded by at least
    # k entries; those that reach it are few, and hold the k largest.
    strips = vocab_size // STRIP
    short = distributions
    if strips >= keep:
        short = distributions[:, : strips * STRIP].reshape(n, STRIP, strips).max(axis=1)
    least = np.partition(short, short.shape[1] - keep, axis=1)[:, -keep]  # (n,)
    reach = distributions >= np.maximum(least, SMALLEST)[:, None]
    rows, ids = np.divmod(np.flatnonzero(reach), vocab_size)
    order = np.lexsort((-distributions[rows, ids], rows))  # stable: lowest id first
    rows, ids = rows[order], ids[order]
    place = np.arange(len(rows)) - np.searchsorted(rows, rows)
    out = np.full((n, k), -1, dtype=np.int64)
    out[rows[place < keep], place[place < keep]] = ids[place < keep]
    return out


def _union(first: IntArray, second: IntArray, x: IntArray, p: FloatArray, q: FloatArray) -> Any:
    """Return ``(n, 2k + 1)``: the ids of both and x, by the larger of p and q, filled with -1."""
    ids = np.sort(np.concatenate([first, second, x[:, None]], axis=1), axis=1)
    ids[:, 1:][ids[:, 1:] == ids[:, :-1]] = -1  # each id once
    rank = np.maximum(_at(p, ids), _at(q, ids))  # NaN where there is none: sorted last
    return np.take_along_axis(ids, np.argsort(-rank, axis=1, kind="stable"), axis=1)


def _at(values: FloatArray, ids: IntArray) -> FloatArray:
    """Return the entries of each row at its ids; NaN for -1."""
    found: FloatArray = np.take_along_axis(values, np.maximum(ids, 0), axis=-1)
    found[ids < 0] = np.nan
    return found


class _CdfBelow:
    """The cumulative mass below tokens, for the rows of ``(m, vocab)``."""

    def __init__(self, distributions: FloatArray) -> None:
        self._up_to = np.cumsum(distributions, axis=1)

    def at(self, rows: slice, ids: IntArray) -> FloatArray:
        found = _at(self._up_to[rows], np.where(ids > 0, ids - 1, ids))
        found[ids == 0] = 0.0
        return found


def _tails(p: FloatArray, q: FloatArray, top: IntArray) -> dict[str, FloatArray]:
    """Return the mass of p and q off the top ids, where p > q and elsewhere."""
    node, column = np.nonzero(top >= 0)
    above = p > q
    rest = {"p": p.copy(), "q": q.copy()}
    out = {}
    for name, values in rest.items():
        values[node, top[node, column]] = 0.0
        out[f"tail_{name}_above"] = np.einsum("ij,ij->i", values, above)
        out[f"tail_{name}_below"] = np.einsum("ij,ij->i", values, ~above)
    return out
