"""Training windows: which tokens a step reads is a function of (seed, row number) alone.

Rows are numbered through the whole run. A fixed, shuffled pattern of ``PATTERN`` rows gives
each domain its share; inside a domain every epoch goes through all windows once, in a new order
and from a new offset. Every second window is moved back to the start of its document, so that
the model often sees a document begin at position 0. Nothing but the number of rows read so far
has to be kept for an exact resume, and several workers can split a batch.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from specviz.models.training.bundled.llama import END_OF_TEXT

SHARES = {"stories": 0.50, "prose": 0.32, "records": 0.18}
PATTERN = 50


def load_domains(corpus: Path, part: str) -> dict[str, np.ndarray]:
    """Return the token ids of every domain's ``part`` (``"train"`` or ``"heldout"``).

    Raises
    ------
    FileNotFoundError
        If a domain's file is missing.
    """
    paths = {name: corpus / f"{name}_{part}.npy" for name in SHARES}
    missing = [str(path) for path in paths.values() if not path.is_file()]
    if missing:
        raise FileNotFoundError(f"corpus lacks {', '.join(missing)}; build the corpus first")
    return {name: np.load(path, mmap_mode="r") for name, path in paths.items()}


class Mixture:
    """Windows from several domains in fixed shares.

    Parameters
    ----------
    domains
        Token ids of each domain, one-dimensional, documents joined.
    shares
        Share of the rows per domain; rounded to ``1 / PATTERN``.
    seed
        Everything follows from it.

    Examples
    --------
    >>> mixture = Mixture({"a": np.arange(100)}, {"a": 1.0}, seed=0)
    >>> mixture.rows(0, 2, context=8).shape
    torch.Size([2, 9])
    """

    def __init__(
        self, domains: dict[str, np.ndarray], shares: dict[str, float] = SHARES, seed: int = 0
    ) -> None:
        self.domains, self.seed = domains, seed
        self.names = list(domains)
        counts = [round(PATTERN * shares[name]) for name in self.names]
        if sum(counts) != PATTERN:
            raise ValueError(f"shares must add up to 1 in steps of {1 / PATTERN}, not {shares}")
        pattern = np.repeat(np.arange(len(counts)), counts)
        self.pattern = np.random.default_rng(seed).permutation(pattern)
        self.counts = counts
        self.starts = {
            name: np.flatnonzero(np.asarray(ids) == END_OF_TEXT) for name, ids in domains.items()
        }
        self._order = lru_cache(maxsize=2 * len(counts))(self._shuffle)

    def _shuffle(self, domain: int, epoch: int, windows: int) -> np.ndarray:
        return np.random.default_rng((self.seed, domain, epoch)).permutation(windows)

    def window(self, row: int, context: int) -> tuple[str, int]:
        """Return the domain of row number ``row`` and where in it its window starts."""
        cycle, place = divmod(row, PATTERN)
        domain = int(self.pattern[place])
        name = self.names[domain]
        earlier = int((self.pattern[:place] == domain).sum())
        number = cycle * self.counts[domain] + earlier
        length = len(self.domains[name])
        if length < 2 * context + 2:
            raise ValueError(f"{name} has {length} tokens; context {context} needs twice that")
        windows = (length - 1) // context - 1
        epoch, index = divmod(number, windows)
        offset = int(np.random.default_rng((self.seed, domain, epoch, 1)).integers(context))
        start = offset + context * int(self._order(domain, epoch, windows)[index])
        if number % 2:
            before = int(np.searchsorted(self.starts[name], start, side="right")) - 1
            if before >= 0 and start - self.starts[name][before] < context:
                start = int(self.starts[name][before])
        return name, start

    def rows(self, first: int, count: int, context: int) -> Tensor:
        """Return rows ``first`` to ``first + count - 1``, int64 ``(count, context + 1)``."""
        rows = []
        for row in range(first, first + count):
            name, start = self.window(row, context)
            rows.append(np.asarray(self.domains[name][start : start + context + 1], np.int64))
        return torch.from_numpy(np.stack(rows))
