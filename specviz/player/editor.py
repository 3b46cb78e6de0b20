"""The editor of one position in a notebook: p and q as bars that the reader drags."""

from __future__ import annotations

from typing import Any

import traitlets

from specviz.player.assets import LAB
from specviz.player.editor_settings import FAULTS, checked_distribution, editor_values
from specviz.player.widget import Widget, replace_in_cell


class Editor(Widget):
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

    def __init__(self, values: dict[str, Any]) -> None:
        super().__init__(**values)

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
        from specviz.figures._distributions_of_one_position import table

        return table(self.words, self.p, self.q)

    def picture(self) -> bytes | None:
        """Return a PNG of the two distributions."""
        from specviz.figures._distributions_of_one_position import png

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
    a           0.5      0.2        0.2         1
    b           0.3      0.3        0.3         0
    c           0.2      0.5        0.2         0
    kept with probability 0.7 = sum min(p, q) = 1 - TV(p, q)
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
