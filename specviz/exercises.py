"""Exercises of the notebooks: a check that says "not solved yet" and lets the notebook go on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def exercise(name: str) -> Iterator[None]:
    """Check an exercise in a ``with`` block; print in one sentence whether it is solved.

    "Run All" must reach the end of a notebook before its exercises are solved, so an error in
    the block ends the block and not the notebook.

    Parameters
    ----------
    name : str
        What the sentence calls the exercise.

    Examples
    --------
    >>> answer = ...
    >>> with exercise("Exercise 1"):
    ...     assert answer == 3, "answer is not 3"
    Exercise 1 is not solved yet: answer is not 3.
    >>> answer = 3
    >>> with exercise("Exercise 1"):
    ...     assert answer == 3, "answer is not 3"
    Exercise 1 is solved.
    """
    try:
        yield
    except AssertionError as error:
        why = str(error).splitlines()[0] if str(error) else "the check does not hold"
        print(f"{name} is not solved yet: {why}.")
    except Exception as error:  # whatever the reader's own code raises
        print(f"{name} is not solved yet: your code raised {type(error).__name__}: {error}")
    else:
        print(f"{name} is solved.")
