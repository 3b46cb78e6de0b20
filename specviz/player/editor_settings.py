"""What the editor of one position can be told, checked before anything is made of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from specviz.core.draws import checked_seed
from specviz.figures.escaping import visible
from specviz.player.options import checked_options

FEWEST, MOST = 2, 12
"""How many tokens a distribution may have: as many as bars can be told apart."""

PRESETS = (
    "fox", "worked", "close", "identical", "disjoint", "peaked", "flat", "one_hot_draft",
    "greedy_target", "two",
)  # fmt: skip
WAYS = ("one", "match", "two_with", "two_without", "top_two")
FAULTS = (
    "bare_threshold", "ratio_upside_down", "no_draw", "always_accept", "less_or_equal",
    "same_u_twice", "resample_from_p", "residual_absolute_difference", "residual_not_scaled",
    "p_without_the_rejected_token", "correction_from_the_draft", "greedy_draft_soft_q",
    "q_before_top_k", "q_before_temperature", "uniform_q", "sure_proposals_only",
    "siblings_deduplicated", "siblings_by_confidence", "siblings_one_distribution",
)  # fmt: skip
"""Names that the script knows; a test holds both lists together."""

FOX: dict[str, Any] = {
    "words": ["the", "quick", "brown", "fox", "lazy"],
    "p": [0.4, 0.1, 0.3, 0.15, 0.05],
    "q": [0.3, 0.2, 0.1, 0.15, 0.25],
}
"""The distributions of the first preset."""


def checked_distribution(name: str, distribution: Any) -> list[float]:
    """Return a distribution that sums to 1.

    Raises
    ------
    TypeError, ValueError
        If it is no list of probabilities, or does not sum to 1.

    Examples
    --------
    >>> checked_distribution("p", [0.5, 0.25, 0.25])
    [0.5, 0.25, 0.25]
    """
    try:
        values = np.asarray(distribution, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(
            f"{name} must be a list of probabilities, got {type(distribution).__name__}"
        ) from None
    if values.ndim != 1 or not FEWEST <= len(values) <= MOST:
        raise ValueError(
            f"{name} must have {FEWEST} to {MOST} probabilities, got shape {values.shape}"
        )
    if not (np.all(np.isfinite(values)) and np.all(values >= 0)):
        raise ValueError(f"{name} must have probabilities of 0 or more, got {values.tolist()}")
    if abs(float(values.sum()) - 1) > 1e-6:
        raise ValueError(f"{name} must sum to 1, got {float(values.sum()):.6g}")
    out: list[float] = (values / values.sum()).tolist()
    return out


def checked_words(labels: Any, size: int) -> list[str]:
    """Return what to call each token, safe to show.

    Raises
    ------
    TypeError, ValueError
        If they are no strings, or too few or many.
    """
    if labels is None:
        return [visible(one) for one in "abcdefghijkl"[:size]]
    if isinstance(labels, str) or not isinstance(labels, Sequence):
        raise TypeError(f"labels must be a list of str, got {type(labels).__name__}")
    if len(labels) != size:
        raise ValueError(f"labels must name each of the {size} tokens, got {len(labels)}")
    for i, one in enumerate(labels):
        if not isinstance(one, str):
            raise TypeError(f"labels[{i}] must be a str, got {type(one).__name__}")
    return [visible(one.strip() or one, limit=24) for one in labels]


def checked_name(what: str, name: Any, known: Sequence[str]) -> str:
    """Return a name.

    Raises
    ------
    ValueError
        If it is not one of those known, naming them.
    """
    if name not in known:
        raise ValueError(f"{what} must be one of {', '.join(map(repr, known))}, got {name!r}")
    return str(name)


def editor_values(
    p: Any,
    q: Any,
    labels: Any,
    *,
    preset: str | None,
    way: str,
    fault: str | None,
    seed: int,
    theme: str,
    height: int | None,
    title: str | None,
) -> dict[str, Any]:
    """Return the values of an editor's model: plain JSON.

    Raises
    ------
    TypeError, ValueError
        If an argument is of another kind, unknown, or does not fit the others, in one sentence.
    """
    options = checked_options(height=height, theme=theme, title=title)
    if (p is None) != (q is None):
        raise ValueError(f"p and q must be given together, got only {'q' if p is None else 'p'}")
    if preset is not None and p is not None:
        raise ValueError("preset must be left out where p and q are given")
    values: dict[str, Any] = {"words": [], "p": [], "q": []}
    if p is not None:
        distributions = {"p": checked_distribution("p", p), "q": checked_distribution("q", q)}
        if len(distributions["p"]) != len(distributions["q"]):
            raise ValueError(
                f"p and q must have one length, got {len(distributions['p'])} and "
                f"{len(distributions['q'])}"
            )
        values |= distributions | {"words": checked_words(labels, len(distributions["p"]))}
    elif labels is not None:
        raise ValueError("labels must come with p and q")
    elif preset in (None, "fox"):
        values |= {name: list(held) for name, held in FOX.items()}
    options["preset"] = "" if p is not None else checked_name("preset", preset or "fox", PRESETS)
    return values | {
        "kind": "editor",
        "options": options,
        "way": checked_name("way", way, WAYS),
        "fault": "" if fault is None else checked_name("fault", fault, FAULTS),
        "seed": checked_seed(seed),
    }
