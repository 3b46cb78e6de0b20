"""Long replicas: real passes of many texts at once, each text at its own place in its own round.

Every replica is the shipped loop (:mod:`.loop`) with the shipped drafter and rule, in a loop of its
own; what their passes ask of a model at the same time is computed as one batch (:mod:`.lockstep`,
:mod:`.ragged`). A replica that ends makes room for the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from numpy.typing import NDArray

from specviz.core.contract import ROOT, Draft, IntArray, Target
from specviz.decoding.hf.forward import fed_tokens
from specviz.decoding.replicas.batch_scheduler import Crew
from specviz.decoding.replicas.logit_cache import NeedsPasses, StandInModel, StandInPair
from specviz.decoding.replicas.padded_batch import Pass, RaggedModel, open_ragged

ROWS = 64
"""Texts that are decoded at a time."""

COLUMNS = 2**15
"""Tokens that the caches of all texts hold at most, together."""

One = Callable[[Target, Any, int], None]
"""(target, pair, sequence index): decode one replica by the shipped loop."""


def rows_for(n: int, longest: int) -> int:
    """Return how many of n texts to decode at a time, each with up to ``longest`` tokens.

    Examples
    --------
    >>> rows_for(1000, longest=200), rows_for(10, longest=200), rows_for(1000, longest=4096)
    (64, 10, 8)
    """
    return max(1, min(n, ROWS, COLUMNS // longest))


class Batched:
    """The models of a pair with a row for each of many texts.

    Parameters
    ----------
    pair : Pair
        Of Hugging Face models.
    prompt : IntArray
        ``(k,)`` ids; computed once for all texts.
    rows : int
        How many texts at a time.

    Raises
    ------
    UnsupportedModelError
        If a model cannot read texts of different lengths in one batch.
    """

    def __init__(self, pair: Any, prompt: IntArray, rows: int) -> None:
        self._pair, self.prompt, self.rows = pair, prompt, rows
        # the draft's passes are answered before the target's, so that all texts meet there
        models = [pair.target] if pair.draft is None else [pair.target, pair.draft]
        self._models = [open_ragged(model, pair.vocab_size, self.rows) for model in models]
        for model in self._models:
            model.fill(prompt[:-1])
        self._crew = Crew(self._serve, self._together)

    def slot(self, row: int) -> tuple[Target, Any]:
        """Return one row's target, and a pair whose draft model is that row's."""
        kept = len(self.prompt) - 1
        target, *draft = (RowSession(m, self._crew, row, kept) for m in self._models)
        own = StandInModel(self._pair.draft, lambda: draft[0]) if draft else None
        return target, StandInPair(self._pair, StandInModel(self._pair.target, lambda: target), own)

    def run(self, sequences: Sequence[int], one: One) -> None:
        """Decode a text for each sequence index, as many at a time as there are rows."""
        left = iter(sequences)

        def texts_of(row: int) -> Callable[[], None]:
            target, pair = self.slot(row)

            def job() -> None:
                for sequence in left:  # only one loop runs at a time: no two get the same
                    one(target, pair, sequence)

            return job

        self._crew.run([texts_of(row) for row in range(min(self.rows, len(sequences)))])

    def _together(self, questions: list[tuple[RaggedModel, Pass]]) -> Iterable[int]:
        asked = [self._models.index(model) for model, _ in questions]
        return [i for i, model in enumerate(asked) if model == max(asked)]

    def _serve(self, questions: list[tuple[RaggedModel, Pass]]) -> list[NDArray[Any]]:
        return questions[0][0].run([wanted for _, wanted in questions])


class RowSession:
    """One row as a :class:`~specviz.core.contract.Target`: its passes wait for others' to join.

    It begins with all of the prompt but the last token in its cache.
    """

    def __init__(self, model: RaggedModel, crew: Crew, row: int, kept: int) -> None:
        self._model, self._crew, self._row, self._kept = model, crew, row, kept
        session = model.session
        self.vocab_size, self.context_length = session.vocab_size, session.context_length
        self.known_ids, self.stand_in = session.known_ids, session.stand_in
        self.begin()

    def begin(self) -> None:
        """Forget everything but the prompt."""
        self.length = self._kept
        self.verified: Draft | None = None

    def verify(self, pending: IntArray, draft: Draft) -> NDArray[Any]:
        """Feed ``pending``, then the draft's nodes; see :meth:`.HFTarget.verify`."""
        fed: Any = fed_tokens(self, pending, draft)  # type: ignore[arg-type]
        wanted = Pass(self._row, self.length, fed, draft)
        logits: NDArray[Any] = self._crew.ask((self._model, wanted))
        self.length += len(fed)
        self.verified = draft
        return logits

    def keep(self, path: Sequence[int]) -> None:
        """Roll the last pass back to its pending tokens and the nodes in ``path``."""
        assert self.verified is not None, "keep() comes after verify()"
        before = self.length - len(self.verified)
        parents = [int(self.verified.parent[node]) for node in path]
        assert parents == [ROOT, *path][: len(path)], "a path leads from the root downwards"
        if list(path) != list(range(len(path))):
            self._model.move(self._row, before, path)
        self.length, self.verified = before + len(path), None

    def crop(self, length: int) -> None:
        """Forget every token after the first ``length``."""
        assert length <= self.length, "what the cache does not hold cannot be kept"
        self.length, self.verified = length, None

    def capture(self, layers: Iterable[int]) -> None:
        """Refuse: hidden states are not kept row by row."""
        raise NeedsPasses

    def open_exit(self, layer: int) -> None:
        """Refuse: early exit shares a cache."""
        raise NeedsPasses
