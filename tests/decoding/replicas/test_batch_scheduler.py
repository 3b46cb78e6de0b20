"""Loops in step: each gets its own answers, and none is left standing when one fails."""

from __future__ import annotations

import signal
import threading
from typing import Any

import pytest

from specviz.decoding.replicas.batch_scheduler import BatchScheduler


def everyone(waiting: list[Any]) -> range:
    return range(len(waiting))


def test_each_loop_gets_its_own_answers_and_they_are_computed_together() -> None:
    batches: list[list[int]] = []
    heard: dict[int, list[int]] = {}

    def serve(numbers: list[int]) -> list[int]:
        batches.append(numbers)
        return [n * n for n in numbers]

    crew = BatchScheduler(serve, everyone)

    def loop(start: int, steps: int) -> None:
        heard[start] = [crew.ask(start + i) for i in range(steps)]

    crew.run([lambda: loop(10, 3), lambda: loop(20, 1), lambda: loop(30, 2)])
    assert heard == {10: [100, 121, 144], 20: [400], 30: [900, 961]}
    assert batches == [[10, 20, 30], [11, 31], [12]]


def test_only_the_chosen_questions_are_answered() -> None:
    """Small ones first, so that the loops meet at the large one."""
    batches: list[list[str]] = []

    def serve(questions: list[str]) -> list[str]:
        batches.append(questions)
        return questions

    def small_first(waiting: list[str]) -> list[int]:
        small = [i for i, what in enumerate(waiting) if what == "small"]
        return small or list(range(len(waiting)))

    crew = BatchScheduler(serve, small_first)

    def loop(steps: int) -> None:
        for _ in range(steps):
            crew.ask("small")
        crew.ask("large")

    crew.run([lambda n=n: loop(n) for n in (1, 3, 0)])
    assert batches == [["small"] * 2, ["small"], ["small"], ["large"] * 3]


@pytest.mark.parametrize("where", ["loop", "serve", "at once"])
def test_a_failure_ends_all_loops_and_is_raised(where: str) -> None:
    asked: list[int] = []
    ended: list[int] = []

    def serve(numbers: list[int]) -> list[int]:
        asked.extend(numbers)
        if where == "serve" and len(asked) > 4:
            raise KeyboardInterrupt
        return numbers

    crew = BatchScheduler(serve, everyone)

    def loop(mine: int) -> None:
        if where == "at once" and mine == 0:
            raise ValueError("loop 0 broke")
        try:
            for step in range(10):
                crew.ask(mine)
                if where == "loop" and (mine, step) == (1, 2):
                    raise ValueError("loop 1 broke")
        finally:
            ended.append(mine)

    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt if where == "serve" else ValueError):
        crew.run([lambda n=n: loop(n) for n in range(3)])
    assert threading.active_count() == before
    assert sorted(ended) == ([] if where == "at once" else [0, 1, 2])

    heard: list[int] = []
    asked.clear()  # the crew can be used again
    crew.run([lambda n=n: heard.append(crew.ask(n)) for n in range(3)])
    assert heard == [0, 1, 2]


@pytest.mark.parametrize("mine", [0, 2])
def test_an_interrupt_while_a_loop_runs_ends_all_of_them(mine: int) -> None:
    main = threading.main_thread().ident
    assert main is not None
    crew = BatchScheduler(lambda questions: questions, everyone)

    def loop(which: int) -> None:
        for step in range(1000):
            if (which, step) == (mine, 3):
                signal.pthread_kill(main, signal.SIGINT)
            crew.ask(which)

    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        crew.run([lambda n=n: loop(n) for n in range(3)])
    assert threading.active_count() == before


def test_no_loops_are_no_work() -> None:
    BatchScheduler(lambda questions: questions, everyone).run([])
