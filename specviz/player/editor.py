"""The editor of one position in a notebook: p and q as bars that the reader drags."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import traitlets
from markupsafe import Markup

from specviz.core import checks
from specviz.core.atomic_writing import PAGES, checked_target, write_whole
from specviz.figures.escaping import visible
from specviz.player.assets import LAB, LAB_PAGE
from specviz.player.options import checked_options
from specviz.player.page import distribution_without_script, document, embedded, parts
from specviz.player.widget import PlayableWidget, replace_in_cell


class Editor(PlayableWidget):
    """One position of speculative decoding, to be changed; made by :func:`one_position`.

    ``p``, ``q``, ``words``, ``way``, ``fault`` and ``seed`` follow what the reader does, once an
    act is done, and can be set: ``editor.fault = "always_accept"``. The draws are made in the
    browser; nothing needs the kernel.
    """

    entry = LAB
    words = traitlets.List(trait=traitlets.Unicode()).tag(sync=True)
    p = traitlets.List(trait=traitlets.Float()).tag(sync=True)
    q = traitlets.List(trait=traitlets.Float()).tag(sync=True)
    way = traitlets.Unicode("one").tag(sync=True)
    fault = traitlets.Unicode("").tag(sync=True)
    seed = traitlets.Int(0).tag(sync=True)

    page_height = 980

    def __init__(self, values: dict[str, Any]) -> None:
        super().__init__(**values)

    def described(self) -> str:
        """Return in a few words what there is to see."""
        return _TITLE

    @traitlets.validate("p", "q")
    def _distribution(self, proposal: Any) -> Any:
        value = proposal["value"]
        return checked_distribution(proposal["trait"].name, value) if value else value

    @traitlets.validate("fault")
    def _fault(self, proposal: Any) -> Any:
        name = proposal["value"]
        if name and name not in FAULTS:
            raise traitlets.TraitError(
                f"fault must be '' or one of {', '.join(FAULTS)}, got {name!r}"
            )
        return name

    def plain_text(self) -> str:
        """Return the two distributions as a table, with what they share."""
        from specviz.figures.one_position import table

        return table(self.words, self.p, self.q)

    def picture(self) -> bytes | None:
        """Return a PNG of the two distributions."""
        from specviz.figures.one_position import png

        return png(self.words, self.p, self.q) if self.words else None


def one_position(
    p: Any = None,
    q: Any = None,
    labels: Any = None,
    *,
    preset: str | None = None,
    way: str = "one",
    fault: str | None = None,
    seed: int = 0,
    theme: str = "auto",
    height: int | None = None,
    title: str | None = None,
) -> Editor:
    """Edit one position: drag p and q, step through a draw, draw 10,000, plant a fault.

    Everything happens in the browser, also where there is no kernel. Draws are keyed by the seed
    as everywhere in the package, so that the same seed gives the same tokens in Python.

    Parameters
    ----------
    p, q : array ``(tokens,)``, optional
        Distributions of target and draft over 2 to 12 tokens; by default a preset's.
    labels : sequence of str, optional
        What the tokens are called.
    preset : str, optional
        What to begin with: ``fox``, ``worked``, ``close``, ``identical``, ``disjoint``,
        ``peaked``, ``flat``, ``one_hot_draft``, ``greedy_target`` or ``two``.
    way : str
        How proposals are judged: ``one`` (by p/q), ``match``, ``two_with``, ``two_without`` (two
        candidates, drawn with or without replacement) or ``top_two``.
    fault : str, optional
        A planted fault, by name.
    seed : int
        Of the draws.
    theme, height, title
        As in :func:`specviz.play`.

    Returns
    -------
    Editor
        The widget; its ``p`` and ``q`` are what the reader made of them.

    Raises
    ------
    TypeError, ValueError
        If a distribution is none, or an argument is unknown, in one sentence.

    Examples
    --------
    >>> editor = one_position([0.5, 0.3, 0.2], [0.2, 0.3, 0.5], ["a", "b", "c"])
    >>> print(editor.plain_text())
    token   target p  draft q  min(p, q)  residual
    a          .500     .200       .200         1
    b          .300     .300       .300         0
    c          .200     .500       .200         0
    accepted with probability .700 = sum min(p, q) = 1 - TV(p, q)
    >>> editor.close()
    """
    editor = Editor(
        editor_values(
            p, q, labels, preset=preset, way=way, fault=fault, seed=seed, theme=theme,
            height=height, title=title,
        )
    )  # fmt: skip
    replace_in_cell(editor)
    return editor


# -- arguments ------------------------------------------------------------------------------------


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
        "seed": checks.seed(seed),
    }


# -- the page -------------------------------------------------------------------------------------


_TITLE = "Speculative decoding at one position"


def one_position_html(
    path: str | PathLike[str],
    p: Any = None,
    q: Any = None,
    labels: Any = None,
    *,
    preset: str | None = None,
    way: str = "one",
    fault: str | None = None,
    seed: int = 0,
    theme: str = "auto",
    height: int | None = None,
    title: str | None = None,
) -> Path:
    """Write the editor of one position as one self-contained page.

    The page opens from disk, offline, and asks the network for nothing; the draws are made in it.

    Parameters
    ----------
    path : str or path
        The file, by custom ``….html``; it is replaced as a whole or left as it was.
    p, q, labels, preset, way, fault, seed, theme, height, title
        As in :func:`specviz.one_position`.

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
    >>> one_position_html("position.html", preset="peaked")  # doctest: +SKIP
    """
    where = checked_target(path, PAGES)
    values = editor_values(
        p, q, labels, preset=preset, way=way, fault=fault, seed=seed, theme=theme, height=height,
        title=title,
    )  # fmt: skip
    write_whole(where, lab_page(values, values["options"]["title"] or _TITLE, _twin(values)))
    return where


def lab_page(values: dict[str, Any], title: str, twin: Markup) -> str:
    """Return a page of the second entry (the editor, the watch); ``twin`` is HTML for no script."""
    told = values | {"options": values["options"] | {"standalone": True}}
    heading = visible(title, limit=120)
    without = Markup("<h1><bdi>{}</bdi></h1>{}").format(heading, twin)
    main = parts().player(heading, "", embedded(told, [], title), without, "")
    return document(heading, values["options"]["theme"], main, entry=LAB_PAGE)


def _twin(values: dict[str, Any]) -> Markup:
    if values["words"]:
        return distribution_without_script(values["words"], values["p"], values["q"])
    return Markup("<p>This page needs scripts: it draws what you edit.</p>")
