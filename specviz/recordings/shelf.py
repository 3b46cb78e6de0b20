"""The recorded runs that ship with the package."""

from __future__ import annotations

from difflib import get_close_matches
from functools import cache
from importlib.resources import as_file, files
from typing import overload

import numpy as np

from specviz.core.trace.columns import TIMES
from specviz.core.trace.trace import Trace

SUFFIX = ".specviz"
DOMAINS = ("stories", "prose", "records")
"""What the texts are: short tales, novels, lists; in the order from easy to hard to easy again."""

WORKED = ("worked/the-quick-brown", "worked/capital-of-france")
"""Two single iterations over numbers written down by hand, see ``worked.py``; not in the list."""


@overload
def recorded() -> list[str]: ...
@overload
def recorded(name: str) -> Trace: ...
def recorded(name: str | None = None) -> list[str] | Trace:
    """List the recorded runs that ship with the package, or open one of them.

    They were made with the bundled pair, one per kind of text and method, all from the same
    prompt and seed within a kind; opening one needs neither a model nor torch.

    Parameters
    ----------
    name : str, optional
        ``"domain/method"``, as in ``"stories/draft-model"``; or one of two worked iterations whose
        numbers can be followed on paper: ``"worked/the-quick-brown"`` (a rejection) and
        ``"worked/capital-of-france"`` (all accepted, a bonus token).

    Returns
    -------
    list of str, or Trace
        All names without an argument; with one the run.

    Raises
    ------
    TypeError, ValueError
        If there is no recorded run of that name.

    Examples
    --------
    >>> len(recorded()) >= 27
    True
    >>> recorded("stories/draft-model").meta["rule"]
    'rejection'
    """
    if name is None:
        return list(_names())
    if not isinstance(name, str):
        raise TypeError(f"name must be a str such as 'stories/draft-model', got {name!r}")
    if name in WORKED:
        return _loaded(*name.split("/"))
    if name not in _names():
        near = get_close_matches(name, [*_names(), *WORKED], n=3, cutoff=0.5)
        known = " or ".join(map(repr, near)) if near else "one of sv.recorded()"
        raise ValueError(f"name must be a recorded run, such as {known}; got {name!r}")
    domain, method = name.split("/")
    trace = _loaded(domain, method)
    if method != "target-only":
        # a speed-up is then measured against this very text without drafts, wherever it is shown
        alone = _loaded(domain, "target-only")
        spent = sum(float(np.nansum(alone.round_table[name])) for name in TIMES)
        trace.meta["target_only"] = {
            "seconds_per_token": spent / len(alone.tokens), "run": f"{domain}/target-only",
        }  # fmt: skip
    return trace


def _loaded(domain: str, method: str) -> Trace:
    file = files("specviz.recordings").joinpath("runs", domain, method + SUFFIX)
    with as_file(file) as path:
        return Trace.load(path)


@cache
def _names() -> tuple[str, ...]:
    """Return every name, by domain, then by method."""
    runs = files("specviz.recordings").joinpath("runs")
    return tuple(
        f"{domain}/{name.removesuffix(SUFFIX)}"
        for domain in DOMAINS
        for name in sorted(one.name for one in runs.joinpath(domain).iterdir())
        if name.endswith(SUFFIX)
    )
