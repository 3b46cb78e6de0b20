"""Draft models side by side: how often each agrees with the target, and what each costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from time import process_time
from typing import Any

import numpy as np
from tqdm.auto import trange

from specviz.core import checks
from specviz.core.contract import Draft, Sampling, Target
from specviz.core.draws import Sampler
from specviz.decoding.hf.target import open_session
from specviz.decoding.sampling import logits_to_distributions


@dataclass(frozen=True)
class ComparedDraft:
    """One draft model beside the target.

    Parameters
    ----------
    name : str
        The model.
    alpha : float
        Mean of sum min(p, q) over the positions of a text that the target wrote.
    cost : float
        c: CPU time of a one-token pass, divided by the target's; medians of interleaved passes.
    bytes : int
        Memory of its weights.
    """

    name: str
    alpha: float
    cost: float
    bytes: int


def compare_drafts(
    pair: Any,
    models: Mapping[str, Any],
    prompt: Any,
    *,
    length: int = 128,
    sampling: Sampling | None = None,
    seed: int = 0,
    progress: bool = True,
) -> list[ComparedDraft]:
    """Measure draft models along one text that the target writes on its own.

    Every model reads the same text token by token, taking turns, so that a busy machine is busy
    for all of them.

    Parameters
    ----------
    pair : Pair
        Holds the target.
    models : mapping of str to Model
        The draft models, by the names they get in the result.
    prompt : str or sequence of int
        Where the text begins.
    length : int
        How many tokens the target writes: at least 8; the first pass, which reads the prompt,
        is not timed.
    sampling : Sampling, optional
        Shapes all distributions; plain sampling at temperature 1 by default.
    seed : int
        Key of the text.
    progress : bool
        Show a progress bar on runs of over two seconds.

    Returns
    -------
    list of ComparedDraft
        In the order given.

    Examples
    --------
    >>> from specviz.core.tabular import TabularModel, TabularPair
    >>> pair = TabularPair(TabularModel([0.5, 0.5]), TabularModel([0.75, 0.25]))
    >>> [row.alpha for row in compare_drafts(pair, {"draft": pair.draft}, [0], length=8)]
    [0.75]
    """
    checks.whole("length", length, 8, hint="fewer passes have no steady median")
    sampling = sampling or Sampling()
    names = ["", *models]  # the target has no name
    sessions = [open_session(m, pair.vocab_size) for m in (pair.target, *models.values())]
    for session in sessions:
        session.begin()
    text, draws = pair.encode(prompt), Sampler(seed)
    seconds = np.zeros((length, len(names)))
    overlap = np.zeros((length, len(names)))
    for step in trange(
        length, desc="measuring", unit="token", delay=2, leave=False, disable=not progress
    ):
        rows = []
        for i, session in enumerate(sessions):
            started = process_time()
            logits = session.verify(text[session.length :], Draft.empty(pair.vocab_size))
            seconds[step, i] = process_time() - started
            rows.append(logits_to_distributions(logits, sampling, [text])[0])  # (vocab,)
        overlap[step] = np.minimum(rows[0], rows).sum(axis=1)
        text = np.append(text, draws.race(rows[0], len(text)))
    median = np.median(seconds[1:], axis=0)
    return [
        ComparedDraft(
            name, float(overlap[:, i].mean()), float(median[i] / median[0]), _bytes(sessions[i])
        )
        for i, name in enumerate(names)
        if i > 0
    ]


def _bytes(session: Target) -> int:
    module: Any = getattr(session, "model", None)
    if not callable(getattr(module, "parameters", None)):
        return 0  # a table
    return sum(p.numel() * p.element_size() for p in module.parameters())
