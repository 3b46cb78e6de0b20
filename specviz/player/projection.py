"""From a trace to what the player needs: a compact, versioned projection of it.

The projection is a header (plain JSON: strings, settings, measures' inputs) and columns of
numbers. :func:`pack` writes both as one block of bytes, which ``js/decode.js`` reads:

======================  ==========================================================================
bytes                   what
======================  ==========================================================================
4                       ``SVP1``
4                       length of the header, little-endian
…                       the header, JSON in UTF-8, padded with blanks to a multiple of 8
…                       the columns in the header's order, little-endian, byte planes: first
                        every value's lowest byte, then the next, … (they compress better so)
======================  ==========================================================================

A column is ``[name, type, width, scale]``; its rows are ``nodes``, ``rounds`` or ``steps``. Types
are
``u1 u2 i4 f4``. A ``scale`` says how a ``u2`` stands for a number x in [0, 1]: ``"sqrt"`` for
``round(65535 * sqrt(x))`` (small probabilities keep three digits), ``"linear"`` for
``round(65535 * x)``, ``""`` for the integer itself. What decides a verdict (p, q, u, the
acceptance) is float32. Token ids become indices into the header's ``strings``; 65,535 is none.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from specviz.figures.escaping import EMPTY, direction, split_gap, visible
from specviz.figures.summary import (
    drafter_name,
    judged_by_u,
    rule_label,
    subtitle,
    target_alone,
    times_note,
)
from specviz.figures.summary import run_label as label
from specviz.player.steps.run import NONE, Array, Columns, Projection, Run, indexed
from specviz.player.steps.story import told

if TYPE_CHECKING:
    from specviz.core.trace.trace import Trace

MAGIC = b"SVP1"
VERSION = 2
LONGEST_PROMPT = 4_000
LONGEST_SETTING = 300


def project(trace: Trace, baseline: Mapping[str, Any] | None = None) -> Projection:
    """Return what the player needs of a trace.

    Parameters
    ----------
    trace : Trace
        The run; it may be empty, or end in the middle of a round.
    baseline : mapping, optional
        ``{"seconds": per token, "measured": bool}`` of the target alone. Without it, what the
        trace itself has under ``meta["target_only"]``; else the median verification pass of this
        run stands for one target-only token. It takes longer than a pass over one token, so the
        speed-up is then an upper bound, and the player says so.

    Examples
    --------
    >>> from specviz.core.trace.trace import Trace
    >>> project(Trace({"rule": "rejection"}, [1])).header["rounds"]
    0
    """
    ids = _ids_used(trace)
    nodes, rounds = node_columns(trace, ids), round_columns(trace, ids)
    header = {
        "format": "specviz-player",
        "version": VERSION,
        "rounds": len(trace),
        "nodes": len(trace.node_table),
        "strings": [_shown(trace.strings.get(int(i), f"⟨{int(i)}⟩")) for i in ids],
        "ids": [int(i) for i in ids],
        "pieces": _pieces(trace, ids),
        "prompt": visible(trace.prompt_text[-LONGEST_PROMPT:], limit=LONGEST_PROMPT),
        "right_to_left": any(direction(text) == "R" for text in trace.strings.values()),
        "prompt_length": len(trace.prompt),
        "rule": visible(str(trace.meta.get("rule", "not recorded"))),
        "rule_label": rule_label(trace),
        "judged_by_u": judged_by_u(trace),
        "lossless": bool(trace.lossless),
        "drafter": "target_only" if target_alone(trace) else drafter_name(trace),
        "label": label(trace),
        "about": subtitle(trace),
        "ended": trace.finish_reason,
        "times": "".join(times_note(trace)),
        "settings": settings(trace),
        "baseline": dict(baseline) if baseline is not None else _on_record(trace) or _bound(trace),
    }
    return told(indexed(Projection(header, nodes, rounds)), Projection(header, nodes, rounds))


def run_of(trace: Trace, baseline: Mapping[str, Any] | None = None) -> Run:
    """Return a trace as the player shows it.

    Examples
    --------
    >>> from specviz.core.trace.trace import Trace
    >>> run_of(Trace({"rule": "rejection"}, [1])).steps
    0
    """
    return indexed(project(trace, baseline))


def pack(projection: Projection) -> bytes:
    """Return a projection as bytes, the same for the same projection.

    Raises
    ------
    ValueError
        If the header holds NaN or infinity, which JSON has no word for.
    """
    header = dict(projection.header)
    parts: list[bytes] = []
    tables = {
        "node": projection.node_columns,
        "round": projection.round_columns,
        "step": projection.step_columns,
    }
    for where, columns in tables.items():
        described = []
        for name, (values, kind, scale) in columns.items():
            width = values.shape[1] if values.ndim == 2 else 1
            described.append([name, kind, width, scale])
            parts.append(_planes(values, kind))
        header[f"{where}_columns"] = described
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    data = text.encode("utf-8", "replace")
    data += b" " * (-len(data) % 8)
    return b"".join([MAGIC, len(data).to_bytes(4, "little"), data, *parts])


def settings(trace: Trace) -> list[list[str]]:
    """Return the run's settings as pairs of words, safe to show."""
    return [
        [
            visible(str(key), limit=60),
            visible(
                value if isinstance(value, str) else json.dumps(value, ensure_ascii=False),
                limit=LONGEST_SETTING,
            ),
        ]
        for key, value in list(trace.meta.items())[:60]
    ]


def _ids_used(trace: Trace) -> NDArray[np.int64]:
    """Return every token id that may be shown, ascending ``(m,)``."""
    nodes, rounds = trace.node_table, trace.round_table
    named = [nodes[n] for n in ("token", "own_token", "top_ids", "residual_ids")]
    named += [rounds[n] for n in ("closing_token", "closing_ids")]
    found = np.unique(np.concatenate([column.ravel() for column in named]))
    return found[found >= 0].astype(np.int64)


def _shown(text: str) -> str:
    """Return a token as it is shown: the blank before a word stays a blank."""
    gap, rest = split_gap(text)
    return gap + rest


def _pieces(trace: Trace, ids: NDArray[np.int64]) -> dict[str, str]:
    """Return emitted tokens whose text in context differs from the token's own: index → text."""
    tokens = trace.tokens
    if len(trace.pieces) != len(tokens):
        return {}
    differ = {}
    for index, (token, piece) in enumerate(zip(tokens, trace.pieces, strict=True)):
        if piece != trace.strings.get(int(token)):
            differ[str(index)] = _shown(piece) if piece else ""
    return {index: "" if text == EMPTY else text for index, text in differ.items()}


def _on_record(trace: Trace) -> dict[str, Any] | None:
    """Return the measured time of one target-only token, where the trace has it."""
    found = trace.meta.get("target_only")
    took = found.get("seconds_per_token") if isinstance(found, dict) else None
    known = isinstance(took, float) and math.isfinite(took) and took > 0
    return {"seconds": took, "measured": True} if known else None


def _bound(trace: Trace) -> dict[str, Any] | None:
    """Return the median verification pass, without the first: no target-only token takes longer."""
    passes = trace.round_table["verify_seconds"]
    passes = passes[1:] if len(passes) > 1 else passes
    known = passes[np.isfinite(passes)]
    median = float(np.median(known)) if len(known) else 0.0
    return {"seconds": median, "measured": False} if median > 0 and math.isfinite(median) else None


def _planes(values: NDArray[Any], kind: str) -> bytes:
    """Return a column's bytes, plane by plane."""
    flat = np.ascontiguousarray(values, dtype="<" + kind).ravel()
    data: bytes = flat.view(np.uint8).reshape(len(flat), flat.itemsize).T.tobytes()
    return data


# -- columns --------------------------------------------------------------------------------------


UNION, ALTERNATIVES = 8, 8
"""How many tokens of p and q side by side, and of a closing distribution, are shown at most."""
RESIDUAL = 6
MOST_STRINGS = NONE


def node_columns(trace: Trace, ids: NDArray[np.int64]) -> Columns:
    """Return one row per proposal.

    Raises
    ------
    ValueError
        If more different tokens are on record than the format can number.
    """
    if len(ids) > MOST_STRINGS:
        raise ValueError(
            f"the player numbers at most {MOST_STRINGS:,} different tokens, this trace shows "
            f"{len(ids):,}: record fewer rounds or fewer alternatives"
        )
    nodes = trace.node_table
    top = _union(nodes)
    out: Columns = {
        "token": (_index(nodes["token"], ids), "u2", ""),
        "parent": (np.where(nodes["parent"] < 0, NONE, nodes["parent"]), "u2", ""),
        "verdict": (nodes["verdict"], "u1", ""),
        "emitted": (nodes["emitted"], "u1", ""),
        "q_draw": (nodes["q_draw"], "u1", ""),
        "own": (_index(nodes["own_token"], ids), "u2", ""),
    }
    for name in ("p", "q", "acceptance", "u", "overlap"):
        out[name] = (nodes[name].astype("<f4"), "f4", "")
    mass = np.where(nodes["q_mass"] > 0, nodes["q_mass"], 1.0)
    out["q_u"] = (_root(nodes["q_u"], linear=True), "u2", "linear")
    out["q_lo"] = (_root(nodes["q_cdf_lo"] / mass, linear=True), "u2", "linear")
    for name in ("q_time", "q_second", "own_time", "own_second"):  # of races; nan costs nothing
        out[name] = (nodes[name].astype("<f4"), "f4", "")
    out["entropy_p"] = (nodes["entropy_p"].astype("<f4"), "f4", "")
    out["entropy_q"] = (nodes["entropy_q"].astype("<f4"), "f4", "")
    out["top"] = (_index(top["ids"], ids), "u2", "")
    for name in ("p", "q"):
        out[f"top_{name}"] = (_root(top[name]), "u2", "sqrt")
        out[f"tail_{name}"] = (_root(top[f"tail_{name}"]), "u2", "sqrt")
    out["top_lo"] = (_root(top["q_cdf"] / mass[:, None], linear=True), "u2", "linear")
    r = min(RESIDUAL, nodes["residual_ids"].shape[1])
    out["residual"] = (_index(nodes["residual_ids"][:, :r], ids), "u2", "")
    out["residual_p"] = (_root(nodes["residual_p"][:, :r]), "u2", "sqrt")
    out["residual_lo"] = (_root(nodes["residual_cdf"][:, :r], linear=True), "u2", "linear")
    return out


def round_columns(trace: Trace, ids: NDArray[np.int64]) -> Columns:
    """Return one row per round."""
    rounds = trace.round_table
    k = min(ALTERNATIVES, rounds["closing_ids"].shape[1])
    mass = np.where(rounds["closing_mass"] > 0, rounds["closing_mass"], 1.0)
    out: Columns = {name: (rounds[name], "i4", "") for name in ("position", "nodes", "gamma")}
    out["closing"] = (_index(rounds["closing_token"], ids), "u2", "")
    for name in ("kind", "emitted", "draw"):
        out[f"closing_{name}"] = (rounds[f"closing_{name}"], "u1", "")
    for name, values in (
        ("p", rounds["closing_p"]),
        ("u", rounds["closing_u"]),
        ("lo", rounds["closing_cdf_lo"] / mass),
        ("hi", rounds["closing_cdf_hi"] / mass),
        ("time", rounds["closing_time"]),
        ("second", rounds["closing_second"]),
        ("entropy", rounds["closing_entropy"]),
    ):
        out[f"closing_{name}"] = (values.astype("<f4"), "f4", "")
    out["distribution"] = (_index(rounds["closing_ids"][:, :k], ids), "u2", "")
    out["distribution_p"] = (_root(rounds["closing_top"][:, :k]), "u2", "sqrt")
    out["distribution_lo"] = (
        _root(rounds["closing_cdf"][:, :k] / mass[:, None], linear=True), "u2",
                     "linear")  # fmt: skip
    for cache in ("target_before", "target_verified", "target_after"):
        out[cache] = (rounds[cache], "i4", "")
    for cache in ("draft_before", "draft_proposed", "draft_after"):
        out[cache] = (rounds[cache], "i4", "")
    for name in ("draft_seconds", "verify_seconds", "other_seconds"):
        out[name] = (np.nan_to_num(rounds[name], nan=0.0).astype("<f4"), "f4", "")
    return out


def _union(nodes: Any) -> dict[str, Array]:
    """Return the likeliest tokens under p or q, the proposal first, the rest in two tails."""
    ids, p, q = nodes["top_ids"], nodes["top_p"], nodes["top_q"]
    known = ids >= 0
    p, q = np.where(known, np.nan_to_num(p), 0.0), np.where(known, np.nan_to_num(q), 0.0)
    weight = np.where(known, np.maximum(p, q), -1.0)
    weight = np.where(known & (ids == nodes["token"][:, None]), 2.0, weight)
    order = np.argsort(-weight, axis=1, kind="stable")

    def sort(column: Array) -> Array:
        return np.take_along_axis(column, order, axis=1)

    ids, p, q = sort(np.where(known, ids, -1)), sort(p), sort(q)
    above = p[:, UNION:] > q[:, UNION:]
    tails = {}
    for name, distribution in (("p", p), ("q", q)):
        rest = distribution[:, UNION:]
        tails[f"tail_{name}"] = np.stack(
            [
                np.nan_to_num(nodes[f"tail_{name}_above"]) + (rest * above).sum(axis=1),
                np.nan_to_num(nodes[f"tail_{name}_below"]) + (rest * ~above).sum(axis=1),
            ],
            axis=1,
        )  # (nodes, 2): where p > q, where p <= q
    cut = slice(0, UNION)
    cdf = np.nan_to_num(sort(nodes["top_q_cdf"]))[:, cut]
    return {"ids": ids[:, cut], "p": p[:, cut], "q": q[:, cut], "q_cdf": cdf, **tails}


def _index(tokens: Array, ids: NDArray[np.int64]) -> Array:
    """Return where each token id stands in ``ids``; NONE for no token."""
    if not len(ids):
        return np.full(tokens.shape, NONE)
    out: Array = np.where(tokens < 0, NONE, np.searchsorted(ids, tokens))
    return out


def _root(values: Array, *, linear: bool = False) -> Array:
    """Return numbers of [0, 1] in 16 bits; what is not known is 0."""
    inside = np.clip(np.nan_to_num(values, nan=0.0), 0.0, 1.0)
    out: Array = np.round(65_535 * (inside if linear else np.sqrt(inside))).astype(np.uint16)
    return out
