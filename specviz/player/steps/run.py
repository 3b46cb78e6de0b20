"""A run as it is shown: its columns, what follows from them, and what there is at each step.

A still, a film and the player's script read the same projection, so they show the same numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    pass

Array = NDArray[Any]
Columns = dict[str, tuple[Array, str, str]]
"""Name → (values, type, scale), as in :mod:`specviz.player.projection`."""
NONE = 65_535
"""Of a column of indices: no token, no proposal."""
ACCEPTED, REJECTED = 1, 2
KINDS = ("plain", "correction", "bonus")
SUMS = ("accepted", "examined", "proposed", "overlap", "overlaps", "tokens", "seconds")


@dataclass(frozen=True)
class Projection:
    """What the player draws from.

    Parameters
    ----------
    header : dict
        Plain JSON values.
    node_columns, round_columns, step_columns : dict
        Name → (array, type, scale); the arrays are ``(nodes,)``, ``(rounds,)``, ``(steps,)`` or
        ``(…, width)``.
    """

    header: dict[str, Any]
    node_columns: Columns = field(repr=False)
    round_columns: Columns = field(repr=False)
    step_columns: Columns = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Run:
    """Columns and what follows from them.

    Parameters
    ----------
    header : dict
        Plain JSON: strings, prompt, rule, baseline; see :mod:`specviz.player.projection`.
    node, round, step : dict
        Name → values, ``(nodes,)``, ``(rounds,)``, ``(steps,)`` or ``(…, width)``; scaled back to
        numbers.
    start : array
        ``(rounds + 1,)`` first proposal of each round.
    first_step : array
        ``(rounds + 1,)`` first step of each round; the last entry is how many steps there are.
    depth : array
        ``(nodes,)`` depth in the round's tree, 0 for the first place.
    out, out_node, out_round, out_start : array
        Emitted tokens (as indices of ``header["strings"]``), the proposal that each was (-1: it
        closed a round), its round, and ``(rounds + 1,)`` the first one of each round.
    sums : dict
        Name → ``(rounds + 1,)`` running sums over rounds.
    is_tree : bool
        Whether any proposal has a sibling.
    """

    header: dict[str, Any]
    node: dict[str, Array] = field(repr=False)
    round: dict[str, Array] = field(repr=False)
    step: dict[str, Array] = field(repr=False)
    start: Array = field(repr=False)
    first_step: Array = field(repr=False)
    depth: Array = field(repr=False)
    out: Array = field(repr=False)
    out_node: Array = field(repr=False)
    out_round: Array = field(repr=False)
    out_start: Array = field(repr=False)
    sums: dict[str, Array] = field(repr=False)
    is_tree: bool

    def __len__(self) -> int:
        """How many rounds there are."""
        return int(self.header["rounds"])

    @property
    def steps(self) -> int:
        """How many steps there are to be seen."""
        return int(self.first_step[-1])

    @property
    def judged_by_u(self) -> bool:
        """Whether the rule compared a uniform draw with an acceptance probability."""
        return bool(self.header["judged_by_u"])

    @property
    def right_to_left(self) -> bool:
        """Whether any token is written from right to left."""
        return bool(self.header["right_to_left"])

    def text(self, token: int) -> str:
        """Return the text of a token, given as an index; it is safe to show."""
        return "" if token == NONE else str(self.header["strings"][token])

    def piece(self, index: int) -> str:
        """Return the text of an emitted token, which in context may differ from its own."""
        found = self.header["pieces"].get(str(index))
        return self.text(int(self.out[index])) if found is None else str(found)

    def mark(self, index: int) -> str:
        """Return the mark of an emitted token: accepted, or the kind of a closing token."""
        if self.out_node[index] >= 0:
            return "accepted"
        return KINDS[int(self.round["closing_kind"][self.out_round[index]])]


def indexed(projection: Projection) -> Run:
    """Return a projection with what follows from it."""
    node, round_ = _scaled(projection.node_columns), _scaled(projection.round_columns)
    proposed = round_["nodes"].astype(np.int64)
    rounds, nodes = len(proposed), int(proposed.sum())
    start = np.concatenate([[0], np.cumsum(proposed)])
    of_round = np.repeat(np.arange(rounds), proposed)
    parent = node["parent"].astype(np.int64)
    parent[parent == NONE] = -1
    is_tree = bool(np.any(parent != np.arange(nodes) - start[of_round] - 1))

    judged = node["verdict"] != 0
    examined = _per_round(judged, start)
    steps = np.where(proposed > 0, proposed + examined + 3, 2)
    # of siblings only the first faces p itself; later ones face a residual
    _, firsts = np.unique(of_round * (NONE + 1) + parent + 1, return_index=True)
    first = np.zeros(nodes, dtype=bool)
    first[firsts] = True
    measured = judged & first & (node["overlap"] >= 0)

    kept, closed = node["emitted"] == 1, round_["closing_emitted"] == 1
    emitting = np.concatenate([of_round[kept], np.flatnonzero(closed)])
    order = np.argsort(emitting, kind="stable")
    tokens = np.concatenate([node["token"][kept], round_["closing"][closed]])
    sources = np.concatenate([np.flatnonzero(kept), np.full(int(closed.sum()), -1)])
    per_round = np.bincount(emitting, minlength=rounds) if rounds else np.zeros(0, dtype=int)
    out_start = np.concatenate([[0], np.cumsum(per_round)])

    seconds = sum(
        round_[f"{kind}_seconds"].astype(np.float64) for kind in ("draft", "verify", "other")
    )
    columns = {
        "accepted": _per_round(node["verdict"] == ACCEPTED, start),
        "examined": examined,
        "proposed": proposed,
        "overlap": _per_round(np.where(measured, np.nan_to_num(node["overlap"]), 0.0), start),
        "overlaps": _per_round(measured, start),
        "tokens": per_round,
        "seconds": seconds,
    }
    return Run(
        header=projection.header,
        node=node,
        round=round_,
        step=_scaled(projection.step_columns),
        start=start,
        first_step=np.concatenate([[0], np.cumsum(steps)]),
        depth=_depths(parent, start) if is_tree else np.arange(nodes) - start[of_round],
        out=tokens[order],
        out_node=sources[order],
        out_round=emitting[order],
        out_start=out_start,
        sums={name: np.concatenate([[0], np.cumsum(columns[name])]) for name in SUMS},
        is_tree=is_tree,
    )


def _per_round(values: Array, start: Array) -> Array:
    """Return the sum of a node column in each round ``(rounds,)``."""
    running = np.concatenate([[0], np.cumsum(values, dtype=np.float64)])[start]
    out: Array = np.diff(running)
    return out if values.dtype != bool else out.astype(np.int64)


def _depths(parent: Array, start: Array) -> Array:
    """Return how deep each proposal stands; parents come before children."""
    depth = np.zeros(len(parent), dtype=np.int64)
    for first, last in pairwise(start):
        for i in range(first, last):
            depth[i] = 0 if parent[i] < 0 else depth[first + parent[i]] + 1
    return depth


def _scaled(columns: Columns) -> dict[str, Array]:
    """Return columns as the script reads them: 32-bit floats, and 16 bits scaled back."""
    out: dict[str, Array] = {}
    for name, (values, kind, scale) in columns.items():
        column = values.astype("<" + kind)
        if scale:
            x = column.astype(np.float64) / 65_535
            column = (x * x if scale == "sqrt" else x).astype(np.float32)
        out[name] = column
    return out
