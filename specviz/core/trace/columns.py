"""Append-only columns: how a trace keeps thousands of rounds in little memory.

A set of named numpy arrays of equal length that grow by doubling. What each column holds, its type,
its width and the numbers it may hold is the schema below, which is also the file format.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

ALTERNATIVES = "k"
UNION = "2k+1"

ROUNDING = 1e-6  # probabilities are float32 or better
SUMMED = 1e-2  # what sums of float32 probabilities over a large vocabulary may be off by
LAST = float(np.finfo(np.float64).max)


@dataclass(frozen=True)
class Range:
    """The numbers a column may hold; ``missing``: or NaN, which stands for "not recorded"."""

    low: float
    high: float
    missing: bool = False


PROBABILITY = Range(0, 1 + ROUNDING)


@dataclass(frozen=True)
class Column:
    """One column: its dtype, its width per row, what fills an omitted entry, and its range.

    ``beside`` names the column of ids that an entry belongs to: without an id it is missing.
    """

    dtype: str
    width: str | None
    fill: Any
    allowed: Range
    meaning: str
    beside: str = ""


def _id(meaning: str) -> Column:
    return Column("<i4", None, -1, Range(0, LAST), meaning)


def _ids(width: str | None, meaning: str) -> Column:
    return Column("<i4", width, -1, Range(-1, LAST), meaning)


def _count(meaning: str) -> Column:
    return Column("<i4", None, 0, Range(0, LAST), meaning)


def _code(meaning: str, most: int = 2) -> Column:
    return Column("|i1", None, 0, Range(0, most), meaning)


def _probability(meaning: str) -> Column:
    return Column("<f8", None, np.nan, PROBABILITY, meaning)


def _probabilities(ids: str, meaning: str, width: str, dtype: str = "<f8") -> Column:
    return Column(dtype, width, np.nan, Range(0, 1 + ROUNDING, missing=True), meaning, ids)


def _mass(meaning: str, width: str | None = None) -> Column:
    return Column("<f8", width, np.nan, Range(0, 1 + SUMMED, missing=True), meaning)


def _uniform(meaning: str) -> Column:
    return Column("<f8", None, np.nan, Range(0, 1, missing=True), meaning)


def _amount(meaning: str, dtype: str = "<f8") -> Column:
    return Column(dtype, None, np.nan, Range(0, LAST, missing=True), meaning)


def _runner_up(meaning: str) -> Column:
    # infinite where no other token can arrive
    return Column("<f8", None, np.nan, Range(0, np.inf, missing=True), meaning)


NODES: dict[str, Column] = {
    "token": _id("proposed id"),
    "parent": _ids(None, "index of the parent within the round, -1 for the text so far"),
    "verdict": _code("0 never examined, 1 accepted, 2 rejected"),
    "emitted": _code("1 if the token is part of the text", 1),
    "p": _probability("target p at x, as the rule judged it"),
    "q": _probability("draft q at x, as used"),
    "acceptance": _probability("acceptance probability as the rule defines it"),
    "u": _uniform("the uniform compared with it"),
    "overlap": Column("<f8", None, np.nan, Range(0, 1 + SUMMED), "sum min(p, q)"),
    "entropy_p": _amount("entropy of p in nats", "<f4"),
    "entropy_q": _amount("entropy of q in nats", "<f4"),
    "q_draw": _code("how x was drawn: 0 one-hot choice, 1 inverse CDF, 2 race"),
    "q_u": _uniform("the uniform behind x"),
    "q_cdf_lo": _mass("q's cumulative mass below x"),
    "q_cdf_hi": _mass("q's cumulative mass up to x"),
    "q_mass": _mass("q's whole mass"),
    "q_time": _amount("arrival of x in the draft's race"),
    "q_second": _runner_up("arrival of the runner-up in the draft's race"),
    "own_token": _ids(None, "the target's own token, where it raced for one"),
    "own_time": _amount("its arrival"),
    "own_second": _runner_up("arrival of the runner-up"),
    "top_ids": _ids(UNION, "union of the top ids of p and q, and x"),
    "top_p": _probabilities("top_ids", "p on top_ids", UNION),
    "top_q": _probabilities("top_ids", "q on top_ids", UNION),
    "top_q_cdf": _mass("q's cumulative mass below each of top_ids", UNION),
    "tail_p_above": _mass("p's mass off top_ids where p > q"),
    "tail_q_above": _mass("q's mass there"),
    "tail_p_below": _mass("p's mass off top_ids where p <= q"),
    "tail_q_below": _mass("q's mass there"),
    "residual_ids": _ids(ALTERNATIVES, "top ids of the residual"),
    "residual_p": _probabilities("residual_ids", "the residual there", ALTERNATIVES, "<f4"),
    "residual_cdf": _mass("its cumulative mass below each", ALTERNATIVES),
}

ROUNDS: dict[str, Column] = {
    "position": _count("absolute position of the first token the round decides"),
    "nodes": _count("how many tokens were proposed"),
    "gamma": _count("how many were asked for"),
    "emitted": _count("how many tokens the round added to the text"),
    "closing_token": _id("the token that closes the round"),
    "closing_kind": _code("0 plain, 1 correction, 2 bonus"),
    "closing_emitted": _code("1 if it is part of the text", 1),
    "closing_draw": _code("how it was drawn: 0 argmax, 1 inverse CDF, 2 race"),
    "closing_p": _probability("its probability under the distribution it was drawn from"),
    "closing_entropy": _amount("entropy of that distribution in nats", "<f4"),
    "closing_u": _uniform("the uniform behind it"),
    "closing_cdf_lo": _mass("the distribution's cumulative mass below it"),
    "closing_cdf_hi": _mass("the distribution's cumulative mass up to it"),
    "closing_mass": _mass("the distribution's whole mass"),
    "closing_time": _amount("its arrival in the race"),
    "closing_second": _runner_up("arrival of the runner-up"),
    "closing_ids": _ids(ALTERNATIVES, "top ids of the distribution"),
    "closing_top": _probabilities("closing_ids", "the distribution there", ALTERNATIVES),
    "closing_cdf": _mass("its cumulative mass below each", ALTERNATIVES),
    "target_before": _count("tokens in the target's cache before the round"),
    "target_verified": _count("after the verification pass"),
    "target_after": _count("after the rollback"),
    "draft_before": _count("tokens in the drafter's cache before the round"),
    "draft_proposed": _count("after proposing"),
    "draft_after": _count("after the rollback"),
    "draft_seconds": _amount("time to propose"),
    "verify_seconds": _amount("time of the target's pass"),
    "other_seconds": _amount("time to decide, roll back and record"),
}

TIMES = ("draft_seconds", "verify_seconds", "other_seconds")

FULL_NODES = {"full_p": "target distribution p", "full_q": "draft distribution q"}
FULL_ROUNDS = {"full_closing": "distribution of the closing token"}
"""Further float64 columns ``(rows, vocab)``, kept on request: name → meaning."""


def width_of(column: Column, k: int) -> tuple[int, ...]:
    """Return the trailing shape of a column when the k most likely tokens are kept."""
    if column.width is None:
        return ()
    return (k,) if column.width == ALTERNATIVES else (2 * k + 1,)


class Columns:
    """Columns of equal length that only grow.

    Parameters
    ----------
    schema : mapping
        The columns.
    k : int
        How many alternatives are kept of every distribution.
    full : mapping, optional
        Further float64 columns ``(rows, vocab)``: name → meaning.
    vocab_size : int
        Width of the further columns.
    """

    def __init__(
        self,
        schema: Mapping[str, Column],
        k: int,
        full: Mapping[str, str] | None = None,
        vocab_size: int = 0,
    ) -> None:
        self._size = 0
        self._fill: dict[str, Any] = {name: column.fill for name, column in schema.items()}
        self._data: dict[str, NDArray[Any]] = {
            name: np.empty((16, *width_of(column, k)), dtype=column.dtype)
            for name, column in schema.items()
        }
        for name in full or {}:
            self._fill[name] = np.nan
            self._data[name] = np.empty((16, vocab_size), dtype="<f8")

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Return a read-only view of a column."""
        view = self._data[name][: self._size]
        view.flags.writeable = False
        return view

    def __contains__(self, name: object) -> bool:
        return name in self._data

    @property
    def names(self) -> list[str]:
        """The columns' names."""
        return list(self._data)

    def snapshot(self) -> Columns:
        """Return the rows there are now, not copied; it does not grow when this one does."""
        other = copy(self)
        other._data = dict(self._data)
        return other

    def append(self, rows: int, values: Mapping[str, Any]) -> None:
        """Add rows; omitted columns get their fill value."""
        unknown = set(values) - set(self._data)
        if unknown:
            raise KeyError(f"no such column: {sorted(unknown)}")
        stop = self._size + rows
        for name, data in self._data.items():
            if stop > len(data):
                grown = np.empty((max(stop, 2 * len(data)), *data.shape[1:]), dtype=data.dtype)
                grown[: self._size] = data[: self._size]
                self._data[name] = data = grown
            data[self._size : stop] = values.get(name, self._fill[name])
        self._size = stop

    def truncate(self, rows: int) -> None:
        """Forget every row after the first ``rows``."""
        self._size = min(self._size, rows)

    def replace(self, name: str, values: NDArray[Any]) -> None:
        """Put a whole column in place (when a file is read)."""
        self._data[name] = values
        self._size = len(values)
