"""Losslessness live on a page of its own: the samples are drawn in the browser, at one position."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

from specviz.core.draws import checked_seed
from specviz.figures.atomic_writing import PAGES, checked_target
from specviz.figures.page import write_whole
from specviz.player.editor_page import lab_page
from specviz.player.editor_settings import (
    FAULTS,
    FOX,
    checked_distribution,
    checked_name,
    checked_words,
)
from specviz.player.options import checked_alpha, checked_options
from specviz.player.watch_run import looks_up_to
from specviz.player.without_script import distribution_without_script

RATES = (20, 100, 500, 2_500, 10_000)
LIMIT = 20_000


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
    checked_alpha(alpha)
    if isinstance(limit, bool) or not isinstance(limit, int) or not 100 <= limit <= 10**6:
        raise ValueError(f"limit must be between 100 and 1,000,000 samples, got {limit!r}")
    distribution = checked_distribution("p", FOX["p"] if p is None else p)
    other = checked_distribution("q", FOX["q"] if q is None else q)
    if len(distribution) != len(other):
        raise ValueError(f"p and q must have one length, got {len(distribution)} and {len(other)}")
    words = list(FOX["words"]) if p is None else checked_words(labels, len(distribution))
    options |= {
        "here": True, "p": distribution, "q": other, "distribution": distribution,
        "cells": words, "alpha": alpha,
        "limit": limit, "looks": looks_up_to(limit), "rates": list(RATES), "rate": 500,
        "seed": checked_seed(seed), "from": "next tokens, drawn in this page",
        "sampler": "" if fault is None else checked_name("fault", fault, FAULTS),
    }  # fmt: skip
    twin = (
        "<p>The samples of this page are drawn in it, which needs scripts. What a sampler is held "
        f"against is the target's distribution p:</p>"
        f"{distribution_without_script(words, distribution, other)}"
    )
    heading = options["title"] or "Is it lossless? Watch the samples"
    write_whole(where, lab_page({"kind": "watch", "options": options}, heading, twin))
    return where
