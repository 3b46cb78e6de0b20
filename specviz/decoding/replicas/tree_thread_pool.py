"""Walk a tree with several threads, each of which computes on one core.

On a processor two batches side by side are faster than one batch on two cores, whose threads wait
for each other at every operation; on a busy machine much faster.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Condition, Thread
from typing import Any

import torch


def walk(first: Any, step: Callable[[Any], Sequence[Any]], threads: int) -> None:
    """Call ``step`` with ``first``, then with everything that follows from it, depth first.

    Parameters
    ----------
    first : object
        Where the walk begins.
    step : callable
        One place → the places that follow from it, which may be visited in any order.
    threads : int
        With 1 everything happens in the calling thread, in order.

    Raises
    ------
    BaseException
        The first error of a step, or an interrupt; all threads have ended then.

    Examples
    --------
    >>> seen = []
    >>> walk(3, lambda n: seen.append(n) or [n - 1] * (n > 0), threads=1)
    >>> seen
    [3, 2, 1, 0]
    """
    waiting = [first]
    if threads == 1:
        while waiting:
            waiting.extend(reversed(step(waiting.pop())))
        return
    changed = Condition()
    at_work: list[Any] = []
    errors: list[BaseException] = []

    def visit() -> None:
        torch.set_num_threads(1)
        while True:
            with changed:
                while not waiting and at_work and not errors:
                    changed.wait()
                if errors or not waiting:
                    return
                place = waiting.pop()
                at_work.append(place)
            following: Sequence[Any] = []
            try:
                following = step(place)
            except BaseException as error:
                errors.append(error)
            with changed:
                waiting.extend(reversed(following))
                at_work.pop()
                changed.notify_all()

    before = torch.get_num_threads()
    crew = [Thread(target=visit, daemon=True) for _ in range(threads)]
    try:
        for thread in crew:
            thread.start()
        with changed:  # not join(): an interrupt would have it forget a thread that still runs
            while (waiting or at_work) and not errors:
                changed.wait()
    except BaseException as error:
        errors.append(error)
    with changed:
        changed.notify_all()
    for thread in crew:
        if thread.ident is not None:
            thread.join()
    torch.set_num_threads(before)
    if errors:
        raise errors[0]
