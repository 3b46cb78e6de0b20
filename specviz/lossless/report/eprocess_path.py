"""How the evidence grew while the texts of an audit arrived: an e-process, for plots of a report.

It may be looked at after any text: for a right sampler it reaches 1/alpha with probability alpha at
most, ever (:mod:`specviz.lossless.statistics.eprocess`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from specviz.core.contract import FloatArray, IntArray
from specviz.lossless.statistics.eprocess import EProcess, cells_of_position, cells_of_texts, merged
from specviz.lossless.statistics.prefix_tree import PrefixTree
from specviz.lossless.statistics.sample import Sample
from specviz.lossless.statistics.transform import BINS

LOOKS = 200
"""Number of points of the line that are kept."""

AT_MOST = 100_000
"""No line is computed of more texts (or tokens): it would take longer than all tests together."""

HIGHEST = 700.0
"""log e is kept up to here; an impossible cell makes it infinite."""


@dataclass(frozen=True)
class EProcessPath:
    """An e-process over an audit's texts.

    Parameters
    ----------
    unit : {"texts", "tokens"}
        What arrives.
    of : str
        What is watched.
    n : tuple of int
        How many had arrived at each look.
    log_e : tuple of float
        Natural logarithm of the e-value then.
    alpha : float
        Level; the line is at 1/alpha.
    crossed_at : int or None
        With how many the e-value first reached 1/alpha.
    """

    unit: str
    of: str
    n: tuple[int, ...]
    log_e: tuple[float, ...]
    alpha: float
    crossed_at: int | None


def evidence_of_texts(tree: PrefixTree, sample: Sample, alpha: float) -> EProcessPath | None:
    """Return the average of the e-processes of every position and of whole texts.

    The average of e-processes is one, whatever their dependence. Cells are pooled for the number of
    texts, not by what they are. None where nothing is left to chance, or for very many texts.
    """
    n = len(sample)
    if n > AT_MOST:
        return None
    every = [cells_of_position(tree, t, n) for t in range(tree.length)]
    if tree.length > 1:
        every.append(cells_of_texts(tree, n))
    paths = [
        EProcess(cells.distribution, alpha=alpha).update_log(cells.of(sample))
        for cells in every
        if len(cells.distribution) > 1
    ]
    if not paths:
        return None
    return _evidence("texts", "mean over positions and whole texts", merged(paths), alpha)


def evidence_of_u(bins: IntArray, alpha: float) -> EProcessPath | None:
    """Return the e-process of the transform u, token by token, against a uniform distribution."""
    if not 0 < len(bins) <= AT_MOST:
        return None
    path = EProcess(np.full(BINS, 1 / BINS), alpha=alpha).update_log(bins)
    return _evidence("tokens", "the transform u", path, alpha)


def _evidence(unit: str, of: str, log_e: FloatArray, alpha: float) -> EProcessPath:
    over = np.flatnonzero(log_e >= -np.log(alpha))
    looks = np.unique(np.linspace(0, len(log_e) - 1, LOOKS).round().astype(int))
    return EProcessPath(
        unit, of, tuple(int(i) + 1 for i in looks),
        tuple(float(x) for x in np.minimum(log_e[looks], HIGHEST)),
        alpha, int(over[0]) + 1 if len(over) else None,
    )  # fmt: skip
