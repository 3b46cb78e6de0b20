"""What one test found, and its p-value corrected for the number of tests (Holm)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np


class Answer(StrEnum):
    """What a test says of the hypothesis that the emitted tokens follow target p."""

    AS_EXPECTED = "as expected"
    DIFFERS = "differs"
    NOT_TESTABLE = "not testable"


@dataclass(frozen=True)
class Finding:
    """One test.

    Parameters
    ----------
    name : str
        What was tested.
    kind : str
        ``"support"``, ``"chi-square"`` or ``"z"``.
    statistic : float or None
        Impossible tokens seen, Pearson's statistic, or z; None where not testable.
    dof : int or None
        Degrees of freedom of a chi-square, after pooling; None for other kinds.
    n : int
        How many texts (tables) or tokens (others) were counted.
    p : float or None
        p-value of this test alone; None where not testable.
    adjusted : float or None
        p-value adjusted for all tests of the battery (Holm 1979), to be compared with alpha.
    answer : Answer
        What follows at level alpha.
    detail : str
        The cell that departs most, or why it could not be tested.
    """

    name: str
    kind: str
    statistic: float | None
    dof: int | None
    n: int
    p: float | None
    detail: str = ""
    adjusted: float | None = None
    answer: Answer = Answer.NOT_TESTABLE


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values adjusted for multiplicity by Holm's step-down method.

    Rejecting where the adjusted value is at most alpha keeps the probability of any false alarm at
    or below alpha, however the tests depend on each other (Holm 1979, "A simple sequentially
    rejective multiple test procedure").

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * (len(p) - np.arange(len(p))))
    out = np.empty(len(p))
    out[order] = np.minimum(stepped, 1.0)
    return [float(value) for value in out]


def judged(findings: Sequence[Finding], alpha: float) -> list[Finding]:
    """Return the findings with adjusted p-values and answers; untestable ones stay as they are."""
    tested = [i for i, finding in enumerate(findings) if finding.p is not None]
    adjusted = holm([float(findings[i].p or 0.0) for i in tested])
    out = list(findings)
    for i, p in zip(tested, adjusted, strict=True):
        answer = Answer.DIFFERS if p <= alpha else Answer.AS_EXPECTED
        out[i] = replace(out[i], adjusted=p, answer=answer)
    return out
