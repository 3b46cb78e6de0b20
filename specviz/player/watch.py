"""Losslessness live: samples drawn in Python and watched while they arrive, in a notebook."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from specviz.core.draws import checked_seed
from specviz.player.options import checked_alpha, checked_options
from specviz.player.watch_run import looks_up_to
from specviz.player.watch_samplers import fox_pair, of_functions, of_pair
from specviz.player.watch_widget import RATES, Watch
from specviz.player.widget import replace_in_cell

LIMIT, LARGEST = 20_000, 1_000_000


def watch(
    sampler: Any = None,
    *,
    distribution: Any = None,
    labels: Sequence[str] | None = None,
    length: int = 1,
    gamma: int | None = None,
    faults: Sequence[str] | None = None,
    fault: str | None = None,
    alpha: float = 0.01,
    rate: int = 500,
    limit: int = LIMIT,
    seed: int = 0,
    theme: str = "auto",
    height: int | None = None,
    title: str | None = None,
) -> Watch:
    """Watch samples arrive: observed against expected.

    And the evidence against the target's distribution.

    The verdict is that of an e-process, which may be looked at after every sample
    (:class:`specviz.lossless.EProcess`); beside it a p-value wanders that is looked at again and
    again, and alarms falsely. Samples are drawn on another thread, which can be paused.

    Parameters
    ----------
    sampler : TabularPair, callable or mapping, optional
        A target and a draft as tables, drawn from by this package's own loop, right or with a
        planted fault; or a function ``(n, seed)`` → ``(n,)`` cells, or several by name, with
        ``distribution``. By default a pair of five tokens.
    distribution : array ``(cells,)``, optional
        With functions: the target's probability of each cell.
    labels : sequence of str, optional
        With functions: what the cells are called.
    length : int
        With a pair: tokens per text; whole texts are the cells (24 at most).
    gamma : int
        With a pair: proposals per round; by default as many as ``length``.
    faults : sequence of str, optional
        With a pair: which of :data:`specviz.lossless.faults.FAULTS` can be switched on; by default
        those that show.
    fault : str, optional
        Which of them, or of the functions' names, is drawn from at first.
    alpha : float
        Probability of ever alarming on a right sampler.
    rate : int
        Samples a second at first: 20, 100, 500, 2500 or 10000.
    limit : int
        Samples per run at most.
    seed : int
        Of the first run; later runs draw others.
    theme, height, title
        As in :func:`specviz.play`.

    Returns
    -------
    Watch
        The widget: ``start()``, ``pause()``, ``reset()``, ``choose(name)`` do what its buttons do,
        ``run`` has the numbers.

    Raises
    ------
    TypeError, ValueError
        If an argument is of another kind, or does not fit the others, in one sentence.

    Examples
    --------
    >>> live = watch(fault="always_accept")
    >>> live.draw(1000)
    >>> print(live.plain_text().splitlines()[0])
    EVIDENCE AGAINST THE TARGET'S DISTRIBUTION
    >>> live.close()
    """
    options = checked_options(theme=theme, height=height, title=title)
    checked_seed(seed)
    gamma = length if gamma is None else gamma
    for name, value in (("length", length), ("gamma", gamma), ("limit", limit)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ValueError(f"{name} must be a whole number of at least 1, got {value!r}")
    checked_alpha(alpha)
    if isinstance(faults, str):
        raise TypeError(f"faults must be a list of names, such as [{faults!r}], got a str")
    if rate not in RATES:
        raise ValueError(f"rate must be one of {', '.join(map(str, RATES))}, got {rate!r}")
    if not 100 <= limit <= LARGEST:
        raise ValueError(f"limit must be between 100 and {LARGEST:,} samples, got {limit}")
    if callable(sampler) or isinstance(sampler, Mapping):
        given = sampler if isinstance(sampler, Mapping) else {"your sampler": sampler}
        choice = of_functions(given, distribution, labels, seed)
    else:
        if distribution is not None or labels is not None:
            raise ValueError("distribution and labels are for functions: a pair brings its own")
        pair = fox_pair() if sampler is None else sampler
        choice = of_pair(pair, length=length, gamma=gamma, faults=faults, seed=seed)
    first = choice.samplers[0] if fault is None else choice.named(fault, "fault")
    options |= {
        "distribution": choice.distribution, "cells": choice.cells, "alpha": alpha, "limit": limit,
        "looks": looks_up_to(limit), "rates": list(RATES), "sampler": first.name,
        "samplers": [one.told(choice.distribution) for one in choice.samplers],
        "from": choice.came_from,
    }  # fmt: skip
    made = Watch(choice, options, alpha, rate)
    replace_in_cell(made)
    return made
