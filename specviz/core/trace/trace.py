"""The trace: what happened, round by round, with enough evidence to check every decision.

Columnar and append-only inside (:mod:`specviz.core.trace.columns`), small read-only views outside
(:mod:`specviz.core.trace.views`). Loads and shows itself without torch, a model or a tokenizer.

What reads a trace (views, replay, measures, files, figures) stands above it; a method that offers
one of them imports it when it is called.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from specviz.core.contract import IntArray
from specviz.core.trace.columns import FULL_NODES, FULL_ROUNDS, NODES, ROUNDS, TIMES, Columns

if TYPE_CHECKING:
    from specviz.core.trace.measures import Measures
    from specviz.core.trace.replay import Replay
    from specviz.core.trace.views import Rounds


class Trace:
    """A recorded run of speculative decoding.

    Usually made by :func:`specviz.generate` or read by :meth:`Trace.load`.

    Parameters
    ----------
    meta : dict
        Plain JSON values: settings, seeds, models, versions (see :attr:`settings`).
    prompt : IntArray
        ``(n,)`` ids of the prompt.
    k : int
        How many alternatives are kept of every distribution.
    full_vocab : int
        If not 0, whole distributions of this size are kept too.

    Examples
    --------
    >>> trace = Trace({"rule": "rejection"}, np.array([1, 2]), k=3)
    >>> len(trace), trace.tokens
    (0, array([], dtype=int64))
    """

    def __init__(
        self, meta: dict[str, Any], prompt: IntArray, k: int = 10, full_vocab: int = 0
    ) -> None:
        self.meta = meta
        self.prompt: IntArray = np.asarray(prompt, dtype=np.int64)
        self.k = k
        self.full_vocab = full_vocab
        self.strings: dict[int, str] = {}
        self.prompt_pieces: list[str] = []
        self.pieces: list[str] = []
        self.node_table = Columns(NODES, k, FULL_NODES if full_vocab else None, full_vocab)
        self.round_table = Columns(ROUNDS, k, FULL_ROUNDS if full_vocab else None, full_vocab)

    def snapshot(self) -> Trace:
        """Return the run as it is now, for another thread to read while this one grows.

        Examples
        --------
        >>> len(Trace({"rule": "rejection"}, np.array([1, 2])).snapshot())
        0
        """
        other = copy(self)
        other.meta, other.strings = dict(self.meta), dict(self.strings)
        other.prompt_pieces, other.pieces = list(self.prompt_pieces), list(self.pieces)
        other.node_table = self.node_table.snapshot()
        other.round_table = self.round_table.snapshot()
        return other

    # -- what was emitted ---------------------------------------------------------------------

    def __len__(self) -> int:
        """How many rounds were run: one target pass each."""
        return len(self.round_table)

    @property
    def tokens(self) -> IntArray:
        """``(n,)`` ids of everything emitted, in order."""
        nodes, rounds = self.node_table, self.round_table
        kept = nodes["emitted"] == 1
        closed = rounds["closing_emitted"] == 1
        ids = np.concatenate([nodes["token"][kept], rounds["closing_token"][closed]])
        of_round = np.concatenate(
            [np.repeat(np.arange(len(self)), rounds["nodes"])[kept], np.flatnonzero(closed)]
        )
        # stable: within a round the accepted proposals come first, then the closing token
        return ids[np.argsort(of_round, kind="stable")].astype(np.int64)

    def round_tokens(self, index: int) -> IntArray:
        """Return ``(emitted,)``: the ids that one round added to the text."""
        where = self.node_slice(index)
        kept = self.node_table["token"][where][self.node_table["emitted"][where] == 1]
        closing = self.round_table["closing_token"][index : index + 1]
        if not self.round_table["closing_emitted"][index]:
            closing = closing[:0]
        return np.concatenate([kept, closing]).astype(np.int64)

    @property
    def text(self) -> str:
        """What was emitted, as text (without the prompt)."""
        if self.pieces:
            return "".join(self.pieces)
        return "".join(self.strings.get(int(t), f"⟨{t}⟩") for t in self.tokens)

    @property
    def prompt_text(self) -> str:
        """The prompt as text."""
        if self.prompt_pieces:
            return "".join(self.prompt_pieces)
        return "".join(self.strings.get(int(t), f"⟨{t}⟩") for t in self.prompt)

    @property
    def settings(self) -> dict[str, Any]:
        """The run's settings, seeds, models, versions, device and dtype."""
        return self.meta

    @property
    def interrupted(self) -> bool:
        """Whether the run was stopped from outside before it was done."""
        return bool(self.meta.get("interrupted", False))

    @property
    def finish_reason(self) -> str | None:
        """Why it ended: "length", "context", "eos", "stop", "interrupted", "error", or None."""
        reason = self.meta.get("finish_reason")
        return None if reason is None else str(reason)

    @property
    def lossless(self) -> bool | None:
        """Whether the text has exactly the target's distribution, by its rule and drafter.

        None if this version does not know the rule.
        """
        from specviz.core.trace.settings import is_lossless

        return is_lossless(self.meta)

    # -- the evidence -------------------------------------------------------------------------

    @property
    def rounds(self) -> Rounds:
        """The rounds, each a small view with its nodes, closing token, caches and times."""
        from specviz.core.trace.views import Rounds

        return Rounds(self)

    def node_slice(self, index: int) -> slice:
        """Return where a round's nodes stand in the node table."""
        counts = self.round_table["nodes"]
        start = int(counts[:index].sum())
        return slice(start, start + int(counts[index]))

    def append(self, round_values: Mapping[str, Any], node_values: Mapping[str, Any]) -> None:
        """Add rounds (used while decoding): their nodes and themselves, or nothing."""
        before, nodes = len(self.node_table), np.atleast_1d(round_values["nodes"])
        try:
            self.node_table.append(int(nodes.sum()), node_values)
            self.round_table.append(len(nodes), round_values)
        except BaseException:
            self.node_table.truncate(before)
            raise

    def check(self) -> Replay:
        """Replay every decision on what was recorded.

        Returns
        -------
        Replay
            For every draw and every round: follows, does not follow, or is consistent and
            not wholly on record; print it for a summary. ``replay.ok`` is True if nothing
            contradicts.

        Examples
        --------
        >>> trace.check().ok  # doctest: +SKIP
        True
        """
        from specviz.core.trace.replay import check

        return check(self)

    def measures(self) -> Measures:
        """Every measure of the run by name, each with its convention.

        Examples
        --------
        >>> trace.measures()["tokens_per_pass"].value  # doctest: +SKIP
        3.1
        """
        from specviz.core.trace.measures import measures

        return measures(self)

    def same_as(self, other: Trace) -> bool:
        """Whether both record the same run: every column but the measured times is equal."""
        if len(self) != len(other) or not np.array_equal(self.prompt, other.prompt):
            return False
        pairs = [(self.node_table, other.node_table), (self.round_table, other.round_table)]
        return all(
            np.array_equal(mine[name], theirs[name], equal_nan=mine[name].dtype.kind == "f")
            for mine, theirs in pairs
            for name in mine.names
            if name not in TIMES and name in theirs
        )

    def to_frame(self) -> Any:
        """Return a tidy table, one row per proposed or closing token.

        Returns
        -------
        pandas.DataFrame
            If pandas is installed, else a dict of column name → list.
        """
        from specviz.core.trace.views import tidy_rows

        rows = [row for i in range(len(self)) for row in tidy_rows(self.rounds[i])]
        columns = {name: [row[name] for row in rows] for name in (rows[0] if rows else {})}
        try:
            import pandas
        except ImportError:
            return columns
        return pandas.DataFrame(columns)

    # -- files --------------------------------------------------------------------------------

    def save(self, path: str | PathLike[str]) -> None:
        """Write the trace to a file (``.specviz``), whole or not at all."""
        from specviz.core.trace.files import save

        save(self, path)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Trace:
        """Read a trace; safe for files from strangers.

        Raises
        ------
        TraceFileError
            If the file is no trace, is damaged, or is of another version, in one sentence.
        """
        from specviz.core.trace.files import load

        return load(path)

    # -- how it shows itself ------------------------------------------------------------------

    def __repr__(self) -> str:
        passes = len(self)
        rate = len(self.tokens) / passes if passes else 0.0
        lossy = ", lossy" if self.lossless is False else ""
        plain = (self.meta.get("drafter") or {}).get("name") == "target_only"
        how = "target only" if plain else f"rule {self.meta.get('rule')!r}{lossy}"
        return (
            f"<Trace: {len(self.tokens)} tokens in {passes} target passes "
            f"({rate:.2f} per pass), {how}>"
        )

    def __str__(self) -> str:
        from specviz.figures.coloured_text import plain

        return plain(self)

    def _repr_html_(self) -> str:
        from specviz.figures.coloured_text import html

        return html(self)
