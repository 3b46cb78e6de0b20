"""Losslessness live: samples drawn in Python and watched while they arrive, in a notebook."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from markupsafe import Markup

from specviz.core import checks
from specviz.core.atomic_writing import PAGES, checked_target, write_whole
from specviz.player.editor import (
    FAULTS,
    FOX,
    checked_distribution,
    checked_name,
    checked_words,
    lab_page,
)
from specviz.player.options import checked_options
from specviz.player.page import distribution_without_script
from specviz.player.watch_run import looks_up_to
from specviz.player.watch_samplers import fox_pair, of_functions, of_pair
from specviz.player.watch_widget import RATES, Watch
from specviz.player.widget import replace_in_cell

LIMIT, FEWEST_SAMPLES, LARGEST = 20_000, 100, 1_000_000


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
    """Watch samples arrive: observed against expected, and the evidence against target p.

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
    checks.seed(seed)
    gamma = length if gamma is None else gamma
    for name, value in (("length", length), ("gamma", gamma)):
        checks.whole(name, value, 1)
    checks.whole("limit", limit, FEWEST_SAMPLES, LARGEST)
    checks.number("alpha", alpha, above=0, below=1)
    if isinstance(faults, str):
        raise TypeError(f"faults must be a list of names, such as [{faults!r}], got a str")
    checks.one_of("rate", rate, RATES)
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


# -- the page -------------------------------------------------------------------------------------


def watch_html(
    path: str | PathLike[str],
    p: Any = None,
    q: Any = None,
    labels: Any = None,
    *,
    fault: str | None = None,
    alpha: float = 0.01,
    limit: int = LIMIT,
    seed: int = 0,
    theme: str = "auto",
    height: int | None = None,
    title: str | None = None,
) -> Path:
    """Write a page on which samples arrive and the evidence against target p is watched.

    As :func:`specviz.watch`, with the samples of one position drawn in the browser: the page opens
    from disk, offline, and asks the network for nothing.

    Parameters
    ----------
    path : str or path
        The file, by custom ``….html``; it is replaced as a whole or left as it was.
    p, q : array ``(tokens,)``, optional
        Distributions of target and draft over 2 to 12 tokens; by default a pair of five.
    labels : sequence of str, optional
        What the tokens are called.
    fault : str, optional
        The planted fault that is switched on at first.
    alpha : float
        Probability of ever alarming on a right sampler.
    limit : int
        Samples per run at most.
    seed : int
        Of the draws.
    theme, height, title
        As in :func:`specviz.to_html`.

    Returns
    -------
    Path
        Where the page is.

    Raises
    ------
    TypeError, ValueError
        If a distribution is none, or an argument is unknown, in one sentence.
    FileNotFoundError, IsADirectoryError
        If the folder of ``path`` does not exist, or ``path`` is a folder.

    Examples
    --------
    >>> watch_html("watch.html", fault="resample_from_p")  # doctest: +SKIP
    """
    where = checked_target(path, PAGES)
    options = checked_options(theme=theme, height=height, title=title)
    if (p is None) != (q is None):
        raise ValueError(f"p and q must be given together, got only {'q' if p is None else 'p'}")
    if p is None and labels is not None:
        raise ValueError("labels must come with p and q")
    checks.number("alpha", alpha, above=0, below=1)
    checks.whole("limit", limit, FEWEST_SAMPLES, LARGEST)
    distribution = checked_distribution("p", FOX["p"] if p is None else p)
    other = checked_distribution("q", FOX["q"] if q is None else q)
    if len(distribution) != len(other):
        raise ValueError(f"p and q must have one length, got {len(distribution)} and {len(other)}")
    words = list(FOX["words"]) if p is None else checked_words(labels, len(distribution))
    options |= {
        "here": True, "p": distribution, "q": other, "distribution": distribution,
        "cells": words, "alpha": alpha,
        "limit": limit, "looks": looks_up_to(limit), "rates": list(RATES), "rate": 500,
        "seed": checks.seed(seed), "from": "next tokens, drawn in this page",
        "sampler": "" if fault is None else checked_name("fault", fault, FAULTS),
    }  # fmt: skip
    twin = Markup(
        "<p>This page needs scripts: it draws the samples. A sampler is compared with the target's "
        "distribution p:</p>"
    ) + distribution_without_script(words, distribution, other)
    heading = options["title"] or "Is it lossless? Watch the samples"
    write_whole(where, lab_page({"kind": "watch", "options": options}, heading, twin))
    return where
