"""Many loops at once, each written as if it were alone: what they ask for is computed together.

Every loop has a thread of its own, and only one of them runs at a time: it goes on until it asks
for something, then the next one does. When all are waiting, one batch answers many of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from threading import Lock, Thread
from typing import Any


class Cancelled(BaseException):
    """Another loop failed, or the run was interrupted: this loop ends too."""


class _Worker:
    """A loop in a thread, which stands still while it waits."""

    def __init__(self, crew: Crew, job: Callable[[], None]) -> None:
        self.question: Any = None
        self.answer: Any = None
        self.error: BaseException | None = None
        self.done = False
        self._crew, self._job = crew, job
        self._go = Lock()
        self._go.acquire()
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def go_on(self) -> None:
        """Let the loop run until it asks or ends."""
        self._go.release()
        self._crew.turn.acquire()

    def wait(self, question: Any) -> Any:
        """Ask (in the loop's own thread) and stand still until there is an answer."""
        if self._crew.cancelled:
            raise Cancelled
        self.question = question
        self._crew.turn.release()
        self._go.acquire()
        if self._crew.cancelled:
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
            if not self._crew.cancelled:
                self._crew.current = self
                self._job()
        except Cancelled:
            pass
        except BaseException as error:
            self.error = error
        self.done = True
        if not self._crew.cancelled:
            self._crew.turn.release()


class Crew:
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
    >>> crew = Crew(lambda numbers: [10 * n for n in numbers], lambda waiting: range(len(waiting)))
    >>> heard = []
    >>> crew.run([lambda n=n: heard.append(crew.ask(n)) for n in (1, 2, 3)])
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
