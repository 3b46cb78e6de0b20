"""What some rounds did → rows of the trace.

The evidence is taken for every proposal, examined or not, and its size does not depend on the
vocabulary: p and q on the union of their k most likely tokens, with what is left in two tails
(p > q, p <= q) so that overlap and residual follow exactly. Why several rounds at once? After a
pass of the target nothing is left in the processor's caches, and a call on small arrays costs
several times what it costs on the next round.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from specviz.core.contract import ROOT, Draft, FloatArray, IntArray
from specviz.core.draws import AcceptDraw, CategoricalDraw, Event, Purpose, RaceDraw, Sampler
from specviz.core.rules import Rule, residual
from specviz.core.trace.columns import NODES, ROUNDS
from specviz.core.trace.trace import Trace
from specviz.decoding.loop import RoundResult

PLAIN, CORRECTION, BONUS = 0, 1, 2
NEVER, ACCEPTED, REJECTED = 0, 1, 2
ONE_HOT, INVERSE_CDF, RACE = 0, 1, 2

SMALLEST = float(np.finfo(np.float64).tiny)
STRIP = 32


def record(
    trace: Trace, results: Sequence[RoundResult], rule: Rule, draws: Sampler
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return (round values, node values) for :meth:`specviz.core.trace.trace.Trace.append`.

    Parameters
    ----------
    trace : Trace
        Where they will go, directly after the rounds it holds.
    results : sequence of RoundResult
        ``m`` rounds one after another, with ``n`` nodes in all.
    rule : Rule
        What judged them.
    draws : Sampler
        What their draws were computed by.
    """
    counts, k = [len(result.draft) for result in results], trace.k
    n, m = sum(counts), len(results)
    # p and q of each node, the closing distributions, the residuals: (3 n + m, vocab)
    rows = np.empty((3 * n + m, results[0].p.shape[1]))
    p, q, closing, left = np.split(rows, (n, 2 * n, 2 * n + m))
    start = 0
    nodes: dict[str, Any] = {}
    for i, (result, count) in enumerate(zip(results, counts, strict=True)):
        stop = start + count
        _fill_in_question(p[start:stop], q[start:stop], result.draft, result.p, rule)
        closing[i] = closing_distribution(result)
        if count:
            _note_nodes(nodes, start, n, result, rule, draws)
        start = stop
    np.maximum(np.subtract(p, q, out=left), 0.0, out=left)
    mass = left.sum(axis=1, keepdims=True)
    left /= np.where(mass > 0, mass, 1)  # (n, vocab), all 0 where p = q: nothing to resample

    best = most_likely(rows, k)  # (3 n + m, k)
    best_p, best_q, best_closing, best_left = np.split(best, (n, 2 * n, 2 * n + m))
    entropies = entropy(rows[: 2 * n + m])
    of_closing = [_closing_values(result) for result in results]
    names = dict.fromkeys(name for values in of_closing for name in values)
    round_values: dict[str, Any] = {
        name: np.array([values.get(name, ROUNDS[name].fill) for values in of_closing])
        for name in names
    }
    round_values |= {
        "closing_p": closing[np.arange(m), round_values["closing_token"]],
        "closing_entropy": entropies[2 * n :],
        "closing_ids": best_closing,
        "closing_top": _at(closing, best_closing),
        "closing_cdf": _cdf_below(closing, best_closing),
    }
    if n:
        every, x = np.arange(n), nodes["token"]
        nodes |= {
            "p": p[every, x],
            "q": q[every, x],
            "overlap": np.minimum(p, q).sum(axis=1),
            "entropy_p": entropies[:n],
            "entropy_q": entropies[n : 2 * n],
            "top_ids": (top := _union(best_p, best_q, x, p, q)),  # (n, 2k + 1)
            "top_p": _at(p, top),
            "top_q": _at(q, top),
            "top_q_cdf": _cdf_below(q, top),
            **_tails(p, q, top),
            "residual_ids": best_left,
            "residual_p": _at(left, best_left),
            "residual_cdf": _cdf_below(left, best_left),
        }
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


def _note_nodes(
    out: dict[str, Any], start: int, rows: int, result: RoundResult, rule: Rule, draws: Sampler
) -> None:
    """Fill in what happened to each node of a round, from row ``start`` of ``rows`` on."""
    draft, verdict = result.draft, result.verdict
    emitted = np.zeros(len(draft), dtype=np.int8)
    emitted[verdict.path[: len(result.emitted)]] = 1
    verdicts = _verdicts(draft, verdict.path, result.events)
    values: dict[str, Any] = {
        "token": draft.tokens,
        "parent": draft.parent,
        "verdict": verdicts,
        "emitted": emitted,
        "acceptance": rule.acceptance(draft, result.p),
    }
    depths = (result.position + draft.depths()).tolist()
    if rule.compares_u:
        values["u"] = [
            draws.uniform(Purpose.ACCEPT, depth, node, result.index)
            for node, depth in enumerate(depths)
        ]
    _put(out, slice(start, start + len(draft)), values, rows)
    _draft_draws(out, start, rows, draft, result.events)
    races = {e.position: e for e in result.events if isinstance(e, RaceDraw) and e.node < 0}
    for node in np.flatnonzero(verdicts != NEVER).tolist() if races else ():
        race = races.get(depths[node])
        if race is not None:
            own = {
                "own_token": race.token,
                "own_time": race.time,
                "own_second": race.runner_up_time,
            }
            _put(out, start + node, own, rows)


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
        if isinstance(event, CategoricalDraw) and event.purpose is Purpose.CLOSING:
            out |= {f"closing_{name}": value for name, value in _choosing(event).items()}
        if isinstance(event, RaceDraw) and event.node < 0 and event.position == position:
            out |= {f"closing_{name}": value for name, value in _racing(event).items()}
    return out


def _put(out: dict[str, Any], where: int | slice, values: Mapping[str, Any], rows: int) -> None:
    """Put entries into node columns of so many rows, which are missing elsewhere."""
    for name, value in values.items():
        if name not in out:
            out[name] = np.full(rows, NODES[name].fill, dtype=NODES[name].dtype)
        out[name][where] = value


def _verdicts(draft: Draft, path: list[int], events: list[Event]) -> Any:
    """Return 0 never examined, 1 accepted, 2 rejected for each node."""
    judged = {event.node for event in events if isinstance(event, AcceptDraw)}
    if not judged:  # a rule without accept draws looks at every child of the nodes it reaches
        judged = {child for node in (ROOT, *path) for child in draft.children(node)}
    codes = np.full(len(draft), NEVER, dtype=np.int8)
    codes[sorted(judged)] = REJECTED
    codes[path] = ACCEPTED
    return codes


def _draft_draws(
    out: dict[str, Any], start: int, rows: int, draft: Draft, events: list[Event]
) -> None:
    """Fill in how each proposal was drawn."""
    for event in events:
        if isinstance(event, CategoricalDraw) and event.purpose is Purpose.DRAFT:
            values = _choosing(event)
        elif isinstance(event, RaceDraw) and event.node >= 0:
            values = _racing(event)
        else:
            continue
        if event.node < len(draft) and draft.q_row[event.node] >= 0:
            named = {f"q_{name}": value for name, value in values.items()}
            _put(out, start + event.node, named, rows)


def _choosing(event: CategoricalDraw) -> dict[str, Any]:
    return {
        "draw": INVERSE_CDF,
        "u": event.u,
        "cdf_lo": event.cdf_lo,
        "cdf_hi": event.cdf_hi,
        "mass": event.mass,
    }


def _racing(event: RaceDraw) -> dict[str, Any]:
    return {"draw": RACE, "time": event.time, "second": event.runner_up_time}


def entropy(distributions: FloatArray) -> FloatArray:
    """Return the entropy of each row in nats, ``(n,)``."""
    # float32 is enough for nats; what is smaller than it can hold adds nothing
    logs = np.log(np.maximum(distributions, 1e-37, dtype=np.float32))
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


def _cdf_below(distributions: FloatArray, ids: IntArray) -> FloatArray:
    """Return the cumulative mass below each of a row's ids; NaN for -1."""
    up_to = np.cumsum(distributions, axis=1)
    found = _at(up_to, np.where(ids > 0, ids - 1, ids))
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
