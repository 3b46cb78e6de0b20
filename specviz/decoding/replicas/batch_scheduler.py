"""Long replicas: many loops at once, whose model passes are computed together, as batches.

Every replica is the shipped loop (:mod:`specviz.decoding.loop`) with the shipped drafter and rule,
in a thread of its own, at its own place in its own round. Only one thread runs at a time: it goes
on until its loop needs a pass, then the next one does. When all are waiting, one padded batch
(:mod:`.padded_batch`) answers many of them. A replica that ends makes room for the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from threading import Lock, Thread
from typing import Any

from numpy.typing import NDArray

from specviz.core.contract import ROOT, Draft, IntArray, Target
from specviz.decoding.hf.forward import fed_tokens
from specviz.decoding.replicas.logit_cache import NeedsModelPasses, StandInModel, StandInPair
from specviz.decoding.replicas.padded_batch import PaddedBatch, Pass, open_padded_batch

ROWS = 64
"""Texts that are decoded at a time."""

COLUMNS = 2**15
"""Tokens that the caches of all texts hold at most, together."""

One = Callable[[Target, Any, int], None]
"""(target, pair, sequence index): decode one replica by the shipped loop."""


class Cancelled(BaseException):
    """Another loop failed, or the run was interrupted: this loop ends too."""


class _Worker:
    """A loop in a thread, which stands still while it waits."""

    def __init__(self, scheduler: BatchScheduler, job: Callable[[], None]) -> None:
        self.question: Any = None
        self.answer: Any = None
        self.error: BaseException | None = None
        self.done = False
        self._scheduler, self._job = scheduler, job
        self._go = Lock()
        self._go.acquire()
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def go_on(self) -> None:
        """Let the loop run until it asks or ends."""
        self._go.release()
        self._scheduler.turn.acquire()

    def wait(self, question: Any) -> Any:
        """Ask (in the loop's own thread) and stand still until there is an answer."""
        if self._scheduler.cancelled:
            raise Cancelled
        self.question = question
        self._scheduler.turn.release()
        self._go.acquire()
        if self._scheduler.cancelled:
            raise Cancelled
        return self.answer

    def cancel(self) -> None:
        """End the loop, wherever it stands."""
        if self._go.locked():
            self._go.release()
        self._thread.join()

    def _run(self) -> None:
        self._go.acquire()
        try:
            if not self._scheduler.cancelled:
                self._scheduler.current = self
                self._job()
        except Cancelled:
            pass
        except BaseException as error:
            self.error = error
        self.done = True
        if not self._scheduler.cancelled:
            self._scheduler.turn.release()


class BatchScheduler:
    """Runs loops in step.

    Parameters
    ----------
    serve : callable
        Some of the questions that wait, as a list → their answers, in order. Which questions are
        asked together is decided by ``together``.
    together : callable
        All waiting questions → indices of those to answer now; the others go on waiting.

    Examples
    --------
    >>> tens = lambda numbers: [10 * n for n in numbers]
    >>> scheduler = BatchScheduler(tens, lambda waiting: range(len(waiting)))
    >>> heard = []
    >>> scheduler.run([lambda n=n: heard.append(scheduler.ask(n)) for n in (1, 2, 3)])
    >>> heard
    [10, 20, 30]
    """

    def __init__(
        self,
        serve: Callable[[list[Any]], Sequence[Any]],
        together: Callable[[list[Any]], Iterable[int]],
    ) -> None:
        self._serve, self._together = serve, together
        self.turn = Lock()
        self.turn.acquire()
        self.cancelled = False
        self.current: _Worker | None = None

    def ask(self, question: Any) -> Any:
        """Return the answer to a question; called from within a loop."""
        worker = self.current
        assert worker is not None, "only a loop that runs can ask"
        answer = worker.wait(question)
        self.current = worker
        return answer

    def run(self, jobs: Iterable[Callable[[], None]]) -> None:
        """Run all loops to their end.

        Raises
        ------
        BaseException
            The first error of a loop, of ``serve``, or an interrupt; all loops have ended then.
        """
        workers: list[_Worker] = []
        self.cancelled = False
        try:
            for job in jobs:
                workers.append(_Worker(self, job))
            ready = list(workers)
            while ready:
                for worker in ready:
                    worker.go_on()
                    if worker.error is not None:
                        raise worker.error
                waiting = [worker for worker in workers if not worker.done]
                questions = [worker.question for worker in waiting]
                chosen = list(self._together(questions)) if waiting else []
                ready = [waiting[index] for index in chosen]
                answers = self._serve([questions[index] for index in chosen]) if chosen else []
                for worker, answer in zip(ready, answers, strict=True):
                    worker.answer = answer
        finally:
            self.cancelled = True
            for worker in workers:
                worker.cancel()
            self.turn = Lock()
            self.turn.acquire()


def rows_for(n: int, longest: int) -> int:
    """Return how many of n texts to decode at a time, each with up to ``longest`` tokens.

    Examples
    --------
    >>> rows_for(1000, longest=200), rows_for(10, longest=200), rows_for(1000, longest=4096)
    (64, 10, 8)
    """
    return max(1, min(n, ROWS, COLUMNS // longest))


class BatchedPair:
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
        self._models = [open_padded_batch(model, pair.vocab_size, self.rows) for model in models]
        for model in self._models:
            model.fill(prompt[:-1])
        self._scheduler = BatchScheduler(self._serve, self._together)

    def slot(self, row: int) -> tuple[Target, Any]:
        """Return one row's target, and a pair whose draft model is that row's."""
        kept = len(self.prompt) - 1
        target, *draft = (RowSession(m, self._scheduler, row, kept) for m in self._models)
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

        self._scheduler.run([texts_of(row) for row in range(min(self.rows, len(sequences)))])

    def _together(self, questions: list[tuple[PaddedBatch, Pass]]) -> Iterable[int]:
        asked = [self._models.index(model) for model, _ in questions]
        return [i for i, model in enumerate(asked) if model == max(asked)]

    def _serve(self, questions: list[tuple[PaddedBatch, Pass]]) -> list[NDArray[Any]]:
        return questions[0][0].run([wanted for _, wanted in questions])


class RowSession:
    """One row as a :class:`~specviz.core.contract.Target`: its passes wait for others' to join.

    It begins with all of the prompt but the last token in its cache.
    """

    def __init__(self, model: PaddedBatch, scheduler: BatchScheduler, row: int, kept: int) -> None:
        self._model, self._scheduler, self._row, self._kept = model, scheduler, row, kept
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
        logits: NDArray[Any] = self._scheduler.ask((self._model, wanted))
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
        raise NeedsModelPasses

    def open_exit(self, layer: int) -> None:
        """Refuse: early exit shares a cache."""
        raise NeedsModelPasses
