"""From logits to distributions: the only place where sampling settings act.

Target and draft both come through here, so ``p`` and ``q`` are shaped alike. Everything is
float64, whatever the models' dtype, and nothing here needs torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from specviz.core.contract import FloatArray, IntArray, Sampling

LARGEST = float(np.finfo(np.float64).max)


def logits_to_distributions(
    logits: NDArray[Any], sampling: Sampling, histories: Sequence[IntArray] | None = None,
    whose: str = "",
) -> FloatArray:  # fmt: skip
    """Turn each row of logits into the distribution a token is drawn from.

    The settings act in the order of transformers' ``generate``: repetition penalty, temperature,
    top-k, top-p, min-p. One tie rule serves all of them: tokens are sorted by logit, equals by id,
    and exactly as many are kept as asked for. Temperature 0 puts all mass on the first largest
    logit (after the penalty).

    Parameters
    ----------
    logits : array of float
        ``(n, vocab)``. ``-inf`` is allowed and means probability 0.
    sampling : Sampling
        The settings.
    histories : sequence of IntArray, optional
        For each row, the token ids its repetition penalty looks back on: the prompt, what was
        emitted, and that row's own ancestors in the draft. Needed only if
        ``sampling.repetition_penalty`` is not 1.
    whose : str
        Whose logits they are, such as ``"target"``, for an error.

    Returns
    -------
    FloatArray
        ``(n, vocab)``, float64; each row sums to 1.

    Raises
    ------
    ValueError
        If a logit is NaN or ``+inf``, a row is all ``-inf``, or the histories are missing.

    Examples
    --------
    >>> import numpy as np
    >>> logits_to_distributions(np.log([[1.0, 1.0, 2.0]]), Sampling()).round(2).tolist()
    [[0.25, 0.25, 0.5]]
    >>> logits_to_distributions(np.log([[1.0, 1.0, 2.0]]), Sampling(top_k=2)).round(2).tolist()
    [[0.33, 0.0, 0.67]]
    """
    scores = np.array(logits, dtype=np.float64)  # (n, vocab), a copy that is changed in place
    if scores.ndim != 2 or scores.shape[1] == 0:
        raise ValueError(f"logits must have shape (n, vocab), got {np.shape(logits)}")
    _refuse_bad(scores, f"{whose}'s " if whose else "")
    if sampling.repetition_penalty != 1.0:
        _penalise(scores, sampling.repetition_penalty, histories)
    if sampling.temperature == 0.0:
        return _one_hot(scores)
    with np.errstate(over="ignore"):  # a logit far below may become -inf: probability 0
        scores -= scores.max(axis=1, keepdims=True)  # before dividing: the largest stays exactly 0
        if sampling.temperature != 1.0:
            scores /= sampling.temperature
    if 0 < sampling.top_k < scores.shape[1]:
        for row in scores:
            _top_k(row, int(sampling.top_k))
    if sampling.top_p < 1.0:
        for row in scores:
            _top_p(row, sampling.top_p)
    weights = np.exp(scores, out=scores)  # (n, vocab), the largest is 1
    if sampling.min_p > 0.0:
        weights[weights < sampling.min_p] = 0.0
    weights /= weights.sum(axis=1, keepdims=True)
    return weights


def penalised(
    logits: NDArray[Any], penalty: float, histories: Sequence[IntArray] | None
) -> FloatArray:
    """Return the logits ``(n, vocab)`` as float64, after the repetition penalty only."""
    scores = np.array(logits, dtype=np.float64)
    if penalty != 1.0:
        _penalise(scores, penalty, histories)
    return scores


def _refuse_bad(scores: FloatArray, whose: str) -> None:
    largest = scores.max(axis=1)  # NaN if any is NaN
    bad = np.flatnonzero(~np.isfinite(largest))
    if len(bad) == 0:
        return
    row = int(bad[0])
    if largest[row] == -np.inf:
        raise ValueError(
            f"{whose}logits row {row}: all {scores.shape[1]} tokens are -inf, so there is nothing "
            f"to draw"
        )
    token = int(np.flatnonzero(np.isnan(scores[row]) | (scores[row] == np.inf))[0])
    value = "NaN" if np.isnan(scores[row, token]) else "+inf"
    raise ValueError(
        f"{whose}logits row {row}, token {token} is {value}; every logit must be finite, "
        f"or -inf for a token that cannot be drawn"
    )


def _penalise(scores: FloatArray, penalty: float, histories: Sequence[IntArray] | None) -> None:
    """Make tokens already in each row's history less likely (Keskar et al. 2019, CTRL, §4.1)."""
    if histories is None or len(histories) != len(scores):
        given = "none" if histories is None else len(histories)
        raise ValueError(
            f"repetition_penalty={penalty} needs one history for each of the {len(scores)} rows "
            f"of logits, got {given}"
        )
    for row, history in zip(scores, histories, strict=True):
        ids = np.asarray(history, dtype=np.int64)
        if ids.size and ids.min() < 0:
            raise ValueError(f"a history holds token id {ids.min()}; ids are 0 or more")
        ids = ids[ids < len(row)]  # an id beyond this vocabulary has no logit to change
        with np.errstate(over="ignore"):
            changed = np.where(row[ids] < 0, row[ids] * penalty, row[ids] / penalty)
        row[ids] = np.minimum(changed, LARGEST)
        if row.max() == -np.inf:  # only an absurd penalty can push every logit out of range
            raise ValueError(f"repetition_penalty={penalty} makes every logit -inf")


def _one_hot(scores: FloatArray) -> FloatArray:
    distribution = np.zeros_like(scores)
    distribution[np.arange(len(scores)), scores.argmax(axis=1)] = (
        1.0  # argmax takes the first of equals
    )
    return distribution


def _top_k(row: FloatArray, k: int) -> None:
    """Keep exactly the k largest of a row."""
    kept = np.partition(row, len(row) - k)[len(row) - k :]  # (k,), the smallest of them first
    _keep_largest(row, kept[0], spare=int(np.count_nonzero(kept == kept[0])))


def _top_p(row: FloatArray, mass: float) -> None:
    """Keep the smallest set of largest logits that reaches ``mass``.

    The token that crosses the threshold is kept, so there is always at least one (Holtzman et al.
    2020, The curious case of neural text degeneration, eq. 2).
    """
    ordered = np.sort(row[row > -np.inf])[::-1]  # most likely first
    reached = np.exp(ordered).cumsum()
    size = 1 + int(np.searchsorted(reached[:-1], mass * reached[-1], side="left"))
    smallest = ordered[size - 1]
    _keep_largest(row, smallest, spare=int(np.count_nonzero(ordered[:size] == smallest)))


def _keep_largest(row: FloatArray, smallest: float, spare: int) -> None:
    """Set what is below ``smallest`` to -inf, and all that equal it but the first ``spare`` ids."""
    row[np.flatnonzero(row == smallest)[spare:]] = -np.inf
    row[row < smallest] = -np.inf
