"""When a text ends: an end token, a stop string, the length asked for, or the model's context."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from specviz.core.contract import IntArray


class Stopping:
    """Says how much room is left, and cuts a round's tokens where the text ends.

    Parameters
    ----------
    prompt_length : int
        How many tokens the prompt has; only what follows can end the text.
    max_new_tokens : int
        How many tokens may be emitted.
    context_length : int, optional
        The longest text, prompt included, that the target takes.
    ids : frozenset of int
        Tokens that end the text, themselves included in it.
    strings : sequence of str
        Strings that end the text; the token that completes one is the last.
    decode : callable, optional
        (ids, what stands before them) → text; needed for strings.

    Examples
    --------
    >>> stopping = Stopping(1, 10, None, frozenset({0}))
    >>> stopping.cut(np.array([5]), np.array([7, 0, 9]))
    array([7, 0])
    >>> stopping.reason
    'eos'
    """

    def __init__(
        self,
        prompt_length: int,
        max_new_tokens: int,
        context_length: int | None,
        ids: frozenset[int] = frozenset(),
        strings: Sequence[str] = (),
        decode: Callable[[IntArray, IntArray], str] | None = None,
    ) -> None:
        self.prompt_length = prompt_length
        self.longest = prompt_length + max_new_tokens
        self.context_length = context_length
        self.ids = ids
        self.strings = tuple(strings)
        self._decode = decode
        self.reason: str | None = None
        """Why the text ended: "eos", "stop", "length" or "context"; None while it goes on."""

    def room(self, text: IntArray) -> int:
        """Return how many tokens may still be emitted; 0 ends the loop and sets ``reason``."""
        if self.reason is not None:
            return 0
        left = self.longest - len(text)
        within = left if self.context_length is None else self.context_length - len(text)
        if min(left, within) <= 0:
            self.reason = "length" if left <= 0 else "context"
        return max(0, min(left, within))

    def cut(self, text: IntArray, decided: IntArray) -> IntArray:
        """Return the part of ``decided`` that is emitted: up to the first end, inclusive."""
        for i, token in enumerate(decided.tolist()):
            if token in self.ids:
                self.reason = "eos"
            elif self.strings and self._ends_in_stop_string(text, decided[: i + 1]):
                self.reason = "stop"
            if self.reason is not None:
                return decided[: i + 1]
        return decided

    def _ends_in_stop_string(self, text: IntArray, new: IntArray) -> bool:
        assert self._decode is not None, "stop strings need a decoder"
        # A token is at least a byte, so this tail holds any stop string that the last token ends,
        # with some tokens before it so that no character is split at its start.
        reach = 4 * max(len(s) for s in self.strings) + 8
        whole = np.concatenate([text, new])
        start = max(self.prompt_length, len(whole) - reach)  # only what follows the prompt counts
        tail = self._decode(whole[start:], whole[:start])
        before = self._decode(whole[start:-1], whole[:start])
        return any(tail.count(s) > before.count(s) for s in self.strings)
