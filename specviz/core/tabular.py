"""A small target and draft given as tables: for lessons, tests and exact enumeration.

A table of order k gives the distribution after every combination of the last k tokens, so every
quantity of speculative decoding can be computed by hand.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from specviz.core import checks
from specviz.core.checks import shown
from specviz.core.contract import ROOT, Draft, FloatArray, IntArray


class TabularModel:
    """A language model that is a table: order k, V tokens.

    Parameters
    ----------
    table : array-like
        ``(V,) * order + (V,)``: the probabilities of the next token after each context of
        ``order`` tokens, which must sum to 1. Contexts shorter than ``order`` are filled up with
        token 0.
    name : str
        What it is called in a trace.
    eos_ids : iterable of int
        Tokens that end a text.
    context_length : int, optional
        The longest text it takes; None for no limit.

    Raises
    ------
    ValueError
        If the table's shape is not square, or the probabilities after a context are negative, NaN
        or do not sum to 1.

    Examples
    --------
    >>> coin = TabularModel([0.5, 0.5])
    >>> coin.order, coin.vocab_size
    (0, 2)
    """

    kind = "tabular"
    device = "cpu"
    dtype = "float64"

    def __init__(
        self,
        table: Any,
        *,
        name: str = "table",
        eos_ids: Iterable[int] = (),
        context_length: int | None = None,
    ) -> None:
        try:
            self.table: FloatArray = np.array(table, dtype=np.float64)
        except (TypeError, ValueError):
            raise TypeError(
                f"table must hold the next-token probabilities after each context, got "
                f"{shown(table)}"
            ) from None
        shape = self.table.shape
        if self.table.ndim == 0 or len(set(shape)) != 1 or shape[0] < 2:
            raise ValueError(
                f"table must have shape (V,) * order + (V,) with V >= 2 tokens, got {shape}"
            )
        checks.distributions(f"table {name!r}", self.table.reshape(-1, shape[0]), tolerance=1e-9)
        self.name = name
        self.eos_ids = frozenset(int(i) for i in eos_ids)
        self.context_length = context_length
        self.vocab_size = int(shape[0])
        self.order = self.table.ndim - 1

    @property
    def parameters(self) -> int:
        """How many numbers the table holds."""
        return self.table.size

    @property
    def model(self) -> TabularModel:
        """The table itself (a Hugging Face model has its module here)."""
        return self

    @classmethod
    def random(
        cls,
        vocab_size: int,
        order: int = 1,
        *,
        seed: int,
        concentration: float = 1.0,
        **options: Any,
    ) -> TabularModel:
        """Return a table of Dirichlet draws; the smaller ``concentration``, the more peaked.

        Examples
        --------
        >>> TabularModel.random(3, order=2, seed=0).table.shape
        (3, 3, 3)
        """
        rng = np.random.default_rng(seed)
        table = rng.dirichlet([concentration] * vocab_size, size=(vocab_size,) * order)
        return cls(table, **options)

    def distribution(self, tokens: Sequence[int]) -> FloatArray:
        """Return the distribution ``(V,)`` of the token after ``tokens``."""
        padded = [0] * self.order + [int(t) for t in tokens]
        context = padded[len(padded) - self.order :]
        out: FloatArray = self.table[tuple(context)]
        return out

    def session(self, vocab_size: int | None = None) -> TabularSession:
        """Open it as a :class:`~specviz.core.contract.Target` with a cache of its own."""
        return TabularSession(self, vocab_size or self.vocab_size)


class TabularSession:
    """A table with a cache: a :class:`~specviz.core.contract.Target` whose logits are log p."""

    def __init__(self, model: TabularModel, vocab_size: int) -> None:
        self.model = model
        self.vocab_size = vocab_size
        self.context_length = model.context_length
        self.passes = 0
        self._cache: list[int] = []
        self._pending = 0
        self._draft: Draft | None = None

    @property
    def length(self) -> int:
        """How many tokens the cache holds."""
        return len(self._cache)

    def begin(self) -> None:
        """Forget everything."""
        self._cache, self._draft = [], None

    def verify(self, pending: IntArray, draft: Draft) -> FloatArray:
        """Return ``(1 + n, vocab)``: log p after the pending tokens and after every node."""
        self.passes += 1
        text = self._cache + [int(t) for t in pending]
        self._pending = len(text)
        rows = np.full((1 + len(draft), self.vocab_size), -np.inf)
        shared = min(self.vocab_size, self.model.vocab_size)
        with np.errstate(divide="ignore"):
            for node in range(ROOT, len(draft)):
                path = [int(draft.tokens[i]) for i in draft.path(node)]
                # A draft may meet ids that only its target has: it reads them as token 0.
                known = [t if t < self.model.vocab_size else 0 for t in text + path]
                rows[node + 1, :shared] = np.log(self.model.distribution(known)[:shared])
        self._cache = text + [int(t) for t in draft.tokens]
        self._draft = draft
        return rows

    def keep(self, path: Sequence[int]) -> None:
        """Roll the last pass back to its pending tokens and the nodes in ``path``."""
        assert self._draft is not None, "keep() comes after verify()"
        self._cache = self._cache[: self._pending] + [int(self._draft.tokens[i]) for i in path]
        self._draft = None

    def crop(self, length: int) -> None:
        """Forget every token after the first ``length``."""
        self._cache, self._draft = self._cache[:length], None


@dataclass
class TabularPair:
    """A target and a draft as tables; stands wherever :class:`specviz.Pair` does.

    Examples
    --------
    >>> pair = TabularPair(TabularModel([0.5, 0.5]), TabularModel([0.9, 0.1]))
    >>> pair.token_strings([1])
    {1: 'b'}
    """

    target: TabularModel
    draft: TabularModel | None = None
    words: Sequence[str] | None = None
    tokenizer: None = None

    @property
    def vocab_size(self) -> int:
        """How many tokens the target has."""
        return self.target.vocab_size

    @property
    def stop_ids(self) -> frozenset[int]:
        """Tokens that end a text."""
        return self.target.eos_ids

    def encode(self, prompt: Any = None, messages: Any = None, **chat: Any) -> IntArray:
        """Return token ids ``(n,)`` as given; a table has no tokenizer.

        Raises
        ------
        TypeError, ValueError
            If the prompt is text, empty, or has ids outside the table.
        """
        if messages is not None or prompt is None or isinstance(prompt, (str, bytes)):
            raise TypeError("prompt must be a list of token ids: a table has no tokenizer")
        return checks.token_ids("prompt", prompt, self.vocab_size, least=1)

    def _word(self, token: int) -> str:
        if self.words is not None:
            return self.words[token]
        return "abcdefghijklmnopqrstuvwxyz"[token] if self.vocab_size <= 26 else f"⟨{token}⟩"

    def decode(self, ids: Iterable[int], after: Iterable[int] = ()) -> str:
        """Return the words of ``ids``, one after another."""
        return "".join(self._word(int(i)) for i in ids)

    def pieces(self, ids: Iterable[int], after: Iterable[int] = ()) -> list[str]:
        """Return the text of each token; joined they are ``decode(ids)``."""
        return [self._word(int(i)) for i in ids]

    def token_strings(self, ids: Iterable[int]) -> dict[int, str]:
        """Return what to show for each id."""
        return {int(i): self._word(int(i)) for i in ids}
