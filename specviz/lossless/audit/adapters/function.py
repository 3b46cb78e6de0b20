"""Any function as a sampler with a name and settings of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from specviz.core.contract import IntArray
from specviz.lossless.audit.gathering import call_seed


class Function:
    """A sampler ``(prompt_ids, n, seed)`` → n token sequences, named for the report.

    Parameters
    ----------
    function : callable
        What draws.
    name : str
        What the report calls it.
    settings : mapping
        Plain JSON values, recorded with every text. The sampling settings among them
        (``temperature``, ``top_k``, ``top_p``, ``min_p``, ``repetition_penalty``) also shape the
        target's distribution that it is held to.
    end_ids : iterable of int, optional
        Tokens that end a text, for a two-sample test without a target.

    Examples
    --------
    >>> mine = Function(lambda prompt, n, seed: [[0]] * n, "mine", {"temperature": 0.5})
    >>> mine([1], 2, seed=0)
    [[0], [0]]
    """

    def __init__(
        self,
        function: Callable[[IntArray, int, int], Any],
        name: str,
        settings: Mapping[str, Any] | None = None,
        end_ids: Iterable[int] = (),
    ) -> None:
        if not callable(function):
            raise TypeError(f"function must be callable, got {type(function).__name__}")
        self._function, self.name, self.settings = function, name, dict(settings or {})
        self.end_ids = frozenset(int(i) for i in end_ids)

    def __call__(self, prompt_ids: Any, n: int, seed: int) -> Any:
        """Return n token sequences."""
        return self._function(prompt_ids, n, seed)


def one_by_one(
    function: Callable[[IntArray, int], Any],
    name: str = "sampler",
    settings: Mapping[str, Any] | None = None,
) -> Function:
    """Return a sampler from a function that draws one text: ``(prompt_ids, seed)`` → tokens.

    Examples
    --------
    >>> one_by_one(lambda prompt, seed: [seed % 2])([0], 3, seed=0).__len__()
    3
    """

    def many(prompt_ids: IntArray, n: int, seed: int) -> list[Any]:
        return [function(prompt_ids, call_seed(seed, 0, i)) for i in range(n)]

    return Function(many, name, settings)
