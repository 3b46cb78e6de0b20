"""Both KV caches of a round: before, after the pass, after the rollback; and when all is accepted.

After a rejection both caches keep the emitted text without its last token, which is fed next. When
all is accepted the draft's cache lacks one token more: the last proposal, which it never read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from specviz.core.trace.views import CacheLengths
from specviz.figures.drawing import Look, figure
from specviz.figures.plots.draws import chosen_round

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from specviz.core.trace.trace import Trace

STAGES = ("before", "after its pass", "rolled back")


@dataclass(frozen=True)
class CacheRound:
    """One round: the lengths of both caches, in tokens, at the three :data:`STAGES`.

    ``text_before`` and ``text_after`` say how long the text was.
    """

    index: int
    target: CacheLengths
    draft: CacheLengths
    text_before: int
    text_after: int
    proposed: int
    accepted: int

    @property
    def said(self) -> str:
        """What became of the round."""
        what = "all accepted" if self.accepted == self.proposed else "a rejection"
        return f"round {self.index}, {what}:\n{self.accepted} of {self.proposed} proposals"


@dataclass(frozen=True)
class CachesData:
    """The rounds that the figure shows: the chosen one, and one in which all was accepted."""

    rounds: list[CacheRound]

    @property
    def title(self) -> str:
        """What is compared."""
        return "KV caches in tokens: " + "; ".join(one.said for one in self.rounds)

    @property
    def alt(self) -> str:
        """The lengths."""
        return "; ".join(
            f"round {one.index}: {name} {c.before}, {c.after_pass}, {c.after}"
            for one in self.rounds
            for name, c in (("target", one.target), ("draft", one.draft))
        )


def _draw(data: CachesData, ax: Axes | None, look: Look) -> Figure:
    from matplotlib.patches import Patch

    colours, points = look.colours, look.points
    plate = {"facecolor": colours.background, "edgecolor": "none", "pad": 0.8, "alpha": 0.8}
    made, axes = look.panels(1, len(data.rounds), width=1.0 if len(data.rounds) == 1 else 1.5)
    for panel, one in zip(axes[0], data.rounds, strict=True):
        first = max(0, min(one.target.before, one.draft.before, one.text_before) - 3)
        rows: list[str] = []
        for name, lengths, colour, tint in (
            ("target", one.target, colours.p, colours.p_tint),
            ("draft", one.draft, colours.q, colours.q_tint),
        ):
            for k, (stage, length) in enumerate(
                zip(STAGES, (lengths.before, lengths.after_pass, lengths.after), strict=True)
            ):
                y = len(rows)
                kept = min(length, lengths.after)
                panel.barh(y, kept - first, 0.66, left=first, color=tint, edgecolor=colour)
                lost = length - kept if k == 1 else 0
                if lost > 0:
                    panel.barh(y, lost, 0.66, left=kept, color=colours.rejected_tint,
                               edgecolor=colours.rejected, hatch="////")  # fmt: skip
                inside = length - first >= 1.5  # else the number would lie on the labels
                panel.text(length - 0.15 if inside else length + 0.15, y, str(length),
                           ha="right" if inside else "left", va="center", bbox=plate,
                           **look.words())  # fmt: skip
                rows.append(f"{name}\n{stage}" if k == 0 else stage)
        panel.axhline(2.5, color=colours.line, linewidth=0.1 * points)
        panel.vlines(one.text_after, -0.5, 5.5, color=colours.text, linestyle=(0, (4, 2)),
                     linewidth=0.13 * points)  # fmt: skip
        panel.text(one.text_after, -0.62, "text after", ha="center", va="bottom", **look.words())
        most = max(one.text_after, one.target.after_pass, one.draft.after_pass)
        panel.set(xlim=(first, most + 1.6), ylim=(5.6, -1.25))
        panel.set_yticks(range(6), rows if look.column or panel is axes[0, 0] else [""] * 6)
        start = "" if first == 0 else f" (from {first} on)"
        panel.xaxis.get_major_locator().set_params(integer=True, nbins=6)
        look.frame(panel, f"tokens{start}")
        look.title(panel, one.said)
    handles = [
        Patch(facecolor=colours.p_tint, edgecolor=colours.p, label="kept, target"),
        Patch(facecolor=colours.q_tint, edgecolor=colours.q, label="kept, draft"),
        Patch(facecolor=colours.rejected_tint, edgecolor=colours.rejected, hatch="////",
              label="rolled back"),
    ]  # fmt: skip
    look.legend(axes[0, 0], 3, handles=handles)
    return made


@figure(_draw, panels=True)
def caches(trace: Trace, *, round: int | None = None) -> CachesData:
    """Draw both KV caches of a round: before, after the pass, after the rollback.

    Beside it stands a round in which all was accepted, where the run has one: there the draft's
    cache lacks the last proposal.

    Parameters
    ----------
    trace : Trace
        The run.
    round : int, optional
        Counted from 0; by default the first in which something was accepted and then rejected.

    Returns
    -------
    matplotlib Figure; ``caches.data`` returns :class:`CachesData`

    Raises
    ------
    ValueError
        If there is no such round, or its cache lengths were not recorded.

    Examples
    --------
    >>> caches(trace)  # doctest: +SKIP
    """
    at = chosen_round(trace, round)
    found = [_of(trace, at)]
    bonus = np.flatnonzero(trace.round_table["closing_kind"] == 2)
    others = bonus[bonus > 0] if np.any(bonus > 0) else bonus
    if found[0].accepted < found[0].proposed and len(others):
        found.append(_of(trace, int(others[np.argmin(np.abs(others - at))])))
    return CachesData(found)


def _of(trace: Trace, index: int) -> CacheRound:
    one = trace.rounds[index]
    if not one.target_cache.after_pass:
        raise ValueError(f"the cache lengths of round {index} were not recorded")
    return CacheRound(
        index, one.target_cache, one.draft_cache, one.position, one.position + len(one.tokens),
        len(one.nodes), sum(node.accepted for node in one.nodes),
    )  # fmt: skip
