"""The player's columns, taken from a trace's: fewer alternatives, fewer bits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from specviz.core.trace.trace import Trace

UNION, ALTERNATIVES = 8, 8
"""How many tokens of p and q side by side, and of a closing distribution, are shown at most."""
RESIDUAL = 6
NONE = 65_535
MOST_STRINGS = NONE

Array = NDArray[Any]
Columns = dict[str, tuple[Array, str, str]]
"""Name → (values, type, scale), as in :mod:`specviz.player.projection`."""


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
