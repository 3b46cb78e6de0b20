"""Emitted texts as an array: what every test of losslessness reads, and nothing else.

A text that ended by itself goes on with the absorbing symbol :data:`END`, so that all rows have one
length and ending early is an outcome like any other.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from specviz.core import checks
from specviz.core.contract import IntArray

END = -1
"""The symbol after a text's end: not a token, a cell of its own in every table."""

MOST = 2**27
"""Largest number of tokens held in one array."""

Words = Mapping[int, str] | Sequence[str]
"""What to show for a token id."""


@dataclass(frozen=True)
class Sample:
    """Independent texts that a sampler emitted after one prompt.

    Parameters
    ----------
    tokens : IntArray
        ``(n, length)`` ids in the order drawn; :data:`END` (-1) after a text's end.
    vocab_size : int
        How many tokens there are; ids are ``0 … vocab_size - 1``.
    end_ids : frozenset of int
        Tokens that end a text (EOS); they are emitted, and only END may follow (:meth:`of` takes
        further end ids for padding).
    """

    tokens: IntArray
    vocab_size: int
    end_ids: frozenset[int] = frozenset()

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def length(self) -> int:
        """How many positions each text has."""
        return int(self.tokens.shape[1])

    @classmethod
    def of(
        cls,
        sequences: Any,
        vocab_size: int,
        *,
        end_ids: Iterable[int] = (),
        length: int | None = None,
    ) -> Sample:
        """Return a sample of recorded texts.

        Parameters
        ----------
        sequences : array ``(n, length)`` or sequence of sequences of int
            The emitted tokens, without the prompt, in the order they were drawn.
        vocab_size : int
            How many tokens there are.
        end_ids : iterable of int
            Tokens that end a text. A shorter text must end with one (as emitted, EOS included);
            end ids right after an end are padding and read as END.
        length : int, optional
            Use the first ``length`` tokens of each text; by default as many as the longest has.

        Raises
        ------
        TypeError, ValueError
            If there is nothing in it, an id is outside the vocabulary, or a text is shorter than
            the others although it did not end; or they do not fit in one array.

        Examples
        --------
        >>> Sample.of([[3, 1, 2], [3, 0]], vocab_size=4, end_ids=[0]).tokens.tolist()
        [[3, 1, 2], [3, 0, -1]]
        """
        ends = frozenset(int(i) for i in end_ids)
        checks.whole("vocab_size", vocab_size, 2)
        if length is not None:
            checks.whole("length", length, 1)
        tokens = _array(sequences, length, ends)
        if tokens.size == 0:
            raise ValueError("sequences is empty: at least one text of one token is needed")
        low, high = int(tokens.min()), int(tokens.max())
        if low < END or high >= vocab_size:
            raise ValueError(
                f"sequences has id {high if high >= vocab_size else low}; ids must lie in "
                f"0 … {vocab_size - 1} (vocab_size={vocab_size}), or be {END} after a text's end"
            )
        tokens = _padding_as_end(tokens, ends)
        _check_ends(tokens, ends)
        return cls(tokens, int(vocab_size), ends)


def _array(sequences: Any, length: int | None, ends: frozenset[int]) -> IntArray:
    """Return ``(n, length)``: cut at ``length``, filled up with END where a text ended."""
    if isinstance(sequences, (str, bytes)):
        raise TypeError("sequences must hold token ids, not text: encode it first")
    if isinstance(sequences, np.ndarray) and sequences.ndim == 2:
        return _whole(sequences[:, :length], 0)
    rows = [np.asarray(row) for row in sequences]
    if not rows:
        return np.zeros((0, 0), dtype=np.int64)
    for index, row in enumerate(rows):
        if row.ndim != 1:
            raise ValueError(f"sequences[{index}] must be one list of token ids, got {row.shape}")
    sizes = np.array([len(row) for row in rows])
    wide = int(sizes.max()) if length is None else length
    if wide == 0:
        return np.zeros((0, 0), dtype=np.int64)
    if np.all(sizes >= wide):
        return _whole(np.stack([row[:wide] for row in rows]), 0)
    for index, row in enumerate(rows):  # before an array as wide as the longest is made
        used = row[:wide]
        if len(used) < wide and (len(used) == 0 or int(used[-1]) not in ends | {END}):
            raise ValueError(
                f"sequences[{index}] has {len(used)} tokens where {wide} are needed, and does not "
                f"end with one of end_ids={sorted(ends)}: draw it longer, or use "
                f"length={max(1, int(sizes.min()))} to test the first tokens only"
            )
    if len(rows) * wide > MOST:
        raise ValueError(
            f"sequences has {len(rows):,} texts and the longest has {wide:,} tokens, more than fit "
            f"in one table: use length={max(1, MOST // len(rows))} or less"
        )
    tokens = np.full((len(rows), wide), END, dtype=np.int64)
    for index, row in enumerate(rows):
        tokens[index, : min(len(row), wide)] = _whole(row[:wide], index)
    return tokens


def without_padding(ids: tuple[int, ...], ends: Collection[int]) -> tuple[int, ...]:
    """Return a text without the end ids that pad it after its end.

    Anything else after an end stays, for the tests to judge.

    Examples
    --------
    >>> without_padding((4, 2, 2, 2), {2}), without_padding((4, 2, 2, 5), {2})
    ((4, 2), (4, 2, 2, 5))
    """
    for index, token in enumerate(ids):
        if token in ends:
            padded = all(later in ends for later in ids[index + 1 :])
            return ids[: index + 1] if padded else ids
    return ids


def _padding_as_end(tokens: IntArray, ends: frozenset[int]) -> IntArray:
    """Return texts in which every end id that follows an end without a gap is END."""
    if not ends:
        return tokens
    is_end = np.isin(tokens, sorted(ends))
    stopped = is_end | (tokens == END)
    after = np.zeros(tokens.shape, dtype=bool)
    after[:, 1:] = np.logical_or.accumulate(stopped, axis=1)[:, :-1]
    unbroken = np.logical_and.accumulate(stopped | ~after, axis=1)
    return np.where(after & unbroken & is_end, END, tokens)


def _whole(ids: Any, index: int) -> IntArray:
    array = np.asarray(ids)
    if array.size and array.dtype.kind not in "iu":
        raise TypeError(f"sequences[{index}] must hold whole numbers, got {array.dtype}")
    return array.astype(np.int64, copy=False)


def _check_ends(tokens: IntArray, ends: frozenset[int]) -> None:
    """Refuse END that no end id precedes; what follows an end id is for the tests to judge."""
    ended = tokens == END
    if not ended.any():
        return
    before = np.isin(tokens[:, :-1], [*ends, END])
    if ended[:, 0].any() or np.any(ended[:, 1:] & ~before):
        raise ValueError(
            f"sequences has {END} (end of text) after a token that is not in "
            f"end_ids={sorted(ends)}: name the model's end tokens, or cut all texts to one length"
        )


def word(token: int, words: Words | None = None) -> str:
    """Return a token for people: its text where known (quoted, escaped), and its id."""
    if token == END:
        return "(end)"
    text = None
    if isinstance(words, Mapping):
        text = words.get(token)
    elif words is not None and token < len(words):
        text = words[token]
    if text is None:
        return f"⟨{token}⟩"
    shown = repr(str(text))  # escapes what cannot be seen, also marks that reverse text
    return f"{shown if len(shown) <= 40 else shown[:38] + '…'} (id {token})"
