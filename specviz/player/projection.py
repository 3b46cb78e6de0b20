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

A column is ``[name, type, width, scale]``; its rows are ``nodes`` or ``rounds``. Types are
``u1 u2 i4 f4``. A ``scale`` says how a ``u2`` stands for a number x in [0, 1]: ``"sqrt"`` for
``round(65535 * sqrt(x))`` (small probabilities keep three digits), ``"linear"`` for
``round(65535 * x)``, ``""`` for the integer itself. What decides a verdict (p, q, u, the
acceptance) is float32. Token ids become indices into the header's ``strings``; 65,535 is none.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from specviz.figures.escaping import EMPTY, split_gap, visible
from specviz.figures.summary import judged_by_u, rule_label, times_note
from specviz.player.columns import Columns, node_columns, round_columns

if TYPE_CHECKING:
    from specviz.core.trace.trace import Trace

MAGIC = b"SVP1"
VERSION = 1
LONGEST_PROMPT = 4_000
LONGEST_SETTING = 300


@dataclass(frozen=True)
class Projection:
    """What the player draws from.

    Parameters
    ----------
    header : dict
        Plain JSON values.
    node_columns, round_columns : dict
        Name → (array, type, scale); the arrays are ``(nodes,)``, ``(rounds,)`` or
        ``(…, width)``.
    """

    header: dict[str, Any]
    node_columns: Columns = field(repr=False)
    round_columns: Columns = field(repr=False)


def project(trace: Trace, baseline: Mapping[str, Any] | None = None) -> Projection:
    """Return what the player needs of a trace.

    Parameters
    ----------
    trace : Trace
        The run; it may be empty, or end in the middle of a round.
    baseline : mapping, optional
        ``{"seconds": per token, "measured": bool}`` of the target alone. Without it, the median
        target pass of this run stands for one target-only token, and the player says so.

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
        "prompt_length": len(trace.prompt),
        "rule": visible(str(trace.meta.get("rule", "not recorded"))),
        "rule_label": rule_label(trace),
        "judged_by_u": judged_by_u(trace),
        "label": label(trace),
        "ended": trace.finish_reason,
        "times": "".join(times_note(trace)),
        "settings": settings(trace),
        "baseline": dict(baseline) if baseline is not None else _estimated(trace),
    }
    return Projection(header, nodes, rounds)


def pack(projection: Projection) -> bytes:
    """Return a projection as bytes, the same for the same projection.

    Raises
    ------
    ValueError
        If the header holds NaN or infinity, which JSON has no word for.
    """
    header = dict(projection.header)
    parts: list[bytes] = []
    for where, columns in (("node", projection.node_columns), ("round", projection.round_columns)):
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


def label(trace: Trace) -> str:
    """Return what a run is called beside another one: its method, or "target alone".

    Examples
    --------
    >>> from specviz.core.trace.trace import Trace
    >>> label(Trace({"rule": "match", "drafter": {"name": "draft_model"}}, [1]))
    'draft model, match'
    """
    if len(trace) and not len(trace.node_table):
        return "target alone"
    drafter = trace.meta.get("drafter")
    name = drafter.get("name") if isinstance(drafter, dict) else drafter
    words = [name.replace("_", " ")] if isinstance(name, str) and name else []
    return visible(", ".join([*words, str(trace.meta.get("rule", "speculative"))]), limit=80)


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


def _estimated(trace: Trace) -> dict[str, Any] | None:
    """Return the median target pass, without the first (it reads the prompt), as a baseline."""
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
