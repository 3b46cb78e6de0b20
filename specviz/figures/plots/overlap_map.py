"""Any text, each token coloured by how much target and draft agree on what comes there.

One pass of each model over a given text, no decoding: sum min(p, q) before every token, and from
its mean, alpha, and the draft's cost c the best gamma and the gain that theory predicts (Leviathan
et al. 2023, theorem 3.8). The text is given, not drawn from the target: the target's own texts are
easier for both models, so that their alpha is often higher.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from time import process_time
from typing import TYPE_CHECKING, Any

import numpy as np

from specviz.core import checks
from specviz.core.contract import Draft, FloatArray, IntArray, Sampling
from specviz.core.formatting import format_number
from specviz.figures.cards import sheet, short, wide
from specviz.figures.drawing import Look, figure, plotly_text, safe_text
from specviz.figures.escaping import split_gap, visible, word
from specviz.theory import best_gamma, speedup

if TYPE_CHECKING:
    import plotly.graph_objects as go
    from matplotlib.axes import Axes

LONGEST = 1_000
"""How many tokens of a text are read at most."""
DRAWN = 260
"""How many tokens a picture shows of each draft; the alpha is taken over all."""
AT_ONCE = 2**24
"""How many probabilities are held at once."""
TIMED = 7
"""One-token passes by which a draft's cost is measured."""
GIVEN = "the text is given, not the target's own: there alpha differs, and is often higher"


@dataclass(frozen=True)
class DraftOverlap:
    """One draft on the text.

    ``overlap`` ``(n,)`` is sum min(p, q) before each token, ``alpha`` its mean; ``c`` the CPU time
    of a one-token pass divided by the target's; ``gamma`` and ``gain`` are what theory makes of
    them (0 and 1 where no gamma pays).
    """

    name: str
    overlap: FloatArray
    alpha: float
    c: float
    gamma: int
    gain: float


@dataclass(frozen=True)
class OverlapMapData:
    """What the map shows: ``words`` ``(n,)`` after the text's first token, and every draft."""

    words: list[str]
    drafts: list[DraftOverlap]
    left_out: int
    made_with: str

    @property
    def title(self) -> str:
        """How many tokens, and what the colours mean."""
        cut = f" (of {len(self.words) + self.left_out:,})" if self.left_out else ""
        return f"Σ min(p, q) before each of {len(self.words):,} tokens{cut}"

    @property
    def note(self) -> str:
        """What a caption has to say of the text."""
        return f"{self.made_with}; {GIVEN}"

    @property
    def rows(self) -> list[tuple[str, ...]]:
        """The table: a row per draft, ready to show."""
        return [
            (
                one.name,
                format_number(one.alpha, 3),
                format_number(one.c),
                str(one.gamma) if one.gamma else "none pays",
                f"{format_number(one.gain)}×",
            )
            for one in self.drafts
        ]

    @property
    def alt(self) -> str:
        """The table, and the token with the least overlap."""
        said = "; ".join(
            f"{name}: alpha {alpha}, c {c}, best gamma {gamma}, predicted gain {gain}"
            for name, alpha, c, gamma, gain in self.rows
        )
        least = int(np.argmin(self.drafts[0].overlap))
        return f"{said}. Least overlap before {self.words[least]}"


HEADS = ("draft", "alpha", "c", "best gamma", "predicted gain")


def _draw(data: OverlapMapData, ax: Axes | None, look: Look) -> Axes:
    points, margin = look.points, 1.2 * look.points
    across = 72 * look.inches[0] if ax is None else _across(ax)
    room = across - 2 * margin
    places, lines = _laid_out(data.words[:DRAWN], room, points)
    line = 2.15 * points
    block = 1.9 * points + line * lines
    table = 1.6 * points * (len(data.drafts) + 1)
    height = 4.9 * points + block * len(data.drafts) + table + 2.6 * points + margin
    ax, _, _ = sheet(look, ax, height)
    ax.text(margin, margin, safe_text(short(data.title, room, points)), va="top",
            **look.words(fontsize=1.1 * points))  # fmt: skip
    y = margin + 2.2 * points
    for one in data.drafts:
        said = f"{one.name}: alpha = {format_number(one.alpha, 3)}"
        ax.text(margin, y, safe_text(short(said, room, points)), va="top",
                **look.words(fontweight="bold"))  # fmt: skip
        y += 1.7 * points
        for i, (x, row, width) in enumerate(places):
            _token(ax, data.words[i], float(one.overlap[i]), margin + x, y + row * line, width,
                   look)  # fmt: skip
        y += line * lines + 0.2 * points
    if len(data.words) > DRAWN:
        ax.text(margin, y, f"… {len(data.words) - DRAWN:,} more tokens are not drawn", va="top",
                **look.words(color=look.colours.muted))  # fmt: skip
    y += 1.7 * points
    stops = [0.0, 0.4, 0.5, 0.59, 0.8]
    for k, cells in enumerate([HEADS, *data.rows]):
        bold = {"fontweight": "bold"} if k == 0 else {}
        for stop, cell in zip(stops, cells, strict=True):
            most = 0.4 * room if stop == 0 else room
            ax.text(margin + stop * room, y, safe_text(short(cell, most, points)), va="top",
                    **look.words(**bold))  # fmt: skip
        y += 1.6 * points
    for part in GIVEN.split(": "):
        ax.text(margin, y + 0.3 * points, safe_text(part), va="top",
                **look.words(color=look.colours.muted))  # fmt: skip
        y += 1.4 * points
    return ax


def _across(ax: Axes) -> float:
    drawn = ax.get_figure(root=True)
    assert drawn is not None
    return float(72 * ax.get_window_extent().width / drawn.dpi)


def _laid_out(
    words: list[str], room: float, points: float
) -> tuple[list[tuple[float, int, float]], int]:
    """Return for each word its place, line and width, and how many lines there are."""
    places, x, row = [], 0.0, 0
    for one in words:
        width = min(room, wide(one, points) + 0.5 * points)
        if x and x + width > room:
            x, row = 0.0, row + 1
        places.append((x, row, width))
        x += width + 0.12 * points
    return places, row + 1


def _token(
    ax: Axes, said: str, overlap: float, x: float, y: float, width: float, look: Look
) -> None:
    """Draw a token on its colour, and below it a bar as long as the overlap."""
    from matplotlib.patches import Rectangle

    colours, points = look.colours, look.points
    share = min(1.0, max(0.0, overlap))
    ax.add_patch(Rectangle((x, y), width, 1.5 * points, linewidth=0,
                           facecolor=_between(colours.rejected_tint, colours.accepted_tint, share),
                           ))  # fmt: skip
    ax.add_patch(Rectangle((x, y + 1.5 * points), width, 0.28 * points, linewidth=0,
                           facecolor=colours.rejected))  # fmt: skip
    ax.add_patch(Rectangle((x, y + 1.5 * points), share * width, 0.28 * points, linewidth=0,
                           facecolor=colours.accepted))  # fmt: skip
    ax.text(x + width / 2, y + 0.75 * points, safe_text(short(said, width, points)), ha="center",
            va="center", **look.words())  # fmt: skip


def _between(low: str, high: str, share: float) -> str:
    """Return a colour between two."""
    ends = [[int(one[i : i + 2], 16) for i in (1, 3, 5)] for one in (low, high)]
    mixed = (round(a + (b - a) * share) for a, b in zip(*ends, strict=True))
    return "#" + "".join(f"{part:02x}" for part in mixed)


def _plotly(data: OverlapMapData, look: Look) -> go.Figure:
    import plotly.graph_objects as go

    hues = (look.colours.accepted, look.colours.q, look.colours.p, look.colours.rejected)
    words = [plotly_text(one) for one in data.words]
    drawn = go.Figure()
    for i, one in enumerate(data.drafts):
        drawn.add_bar(x=list(range(len(words))), y=one.overlap, customdata=words,
                      name=plotly_text(f"{one.name}: alpha {format_number(one.alpha, 3)}"),
                      marker={"color": hues[i % len(hues)]},
                      hovertemplate="%{customdata}: %{y:.3f}<extra></extra>")  # fmt: skip
    ticks = {"tickvals": list(range(len(words))), "ticktext": words, "tickangle": 90}
    return look.plotly(
        drawn, title=f"{plotly_text(data.title)}<br>{GIVEN}", barmode="group",
        yaxis={"title": "Σ min(p, q)", "range": [0, 1]}, xaxis=ticks if len(words) < 90 else {},
    )  # fmt: skip


@figure(_draw, _plotly)
def overlap_map(
    pair: Any, text: Any, *, drafts: Mapping[str, Any] | None = None,
    sampling: Sampling | None = None, temperature: float | None = None,
) -> OverlapMapData:  # fmt: skip
    """Draw how much target and draft agree before every token of any text, without decoding.

    Parameters
    ----------
    pair : Pair
        Target, draft and tokenizer.
    text : str or sequence of int
        The text, or its token ids; at most 1,000 tokens and the target's context are read.
    drafts : mapping of str to Model, optional
        Several draft models by name; by default the pair's own.
    sampling : Sampling, optional
        Shapes all distributions; plain sampling at temperature 1 by default.
    temperature : float, optional
        Instead of ``sampling``.

    Returns
    -------
    matplotlib Axes, or plotly Figure; ``overlap_map.data`` returns :class:`OverlapMapData`

    Raises
    ------
    TypeError, ValueError
        If there is no draft, or the text has fewer than two tokens.

    Examples
    --------
    >>> from specviz.core.tabular import TabularModel, TabularPair
    >>> pair = TabularPair(TabularModel([0.5, 0.5]), TabularModel([0.75, 0.25]))
    >>> overlap_map.data(pair, [0, 1, 1]).drafts[0].alpha
    0.75
    """
    checks.pair(pair)
    if drafts is None:
        if pair.draft is None:
            raise ValueError("pair has no draft model: give drafts={'a name': model}")
        drafts = {"draft": pair.draft}
    if not isinstance(drafts, Mapping) or not drafts:
        raise TypeError("drafts must be a mapping of at least one name to a model")
    if temperature is not None:
        if sampling is not None:
            raise ValueError("temperature cannot be combined with sampling: it is part of it")
        sampling = Sampling(temperature=temperature)
    from specviz.decoding.hf.target import open_session

    ids = np.asarray(pair.encode(text), dtype=np.int64)
    models = {"": pair.target, **drafts}  # the target has no name
    sessions = [open_session(model, pair.vocab_size) for model in models.values()]
    limits = [one.context_length for one in sessions if one.context_length is not None]
    most = min([LONGEST, *limits])
    whole, ids = len(ids), ids[:most]
    if len(ids) < 2:
        raise ValueError(f"text has {len(ids)} tokens; agreement is measured from the second on")
    sampling = sampling or Sampling()
    overlap = _overlaps(sessions, ids, sampling)  # (drafts, n)
    costs = _costs(sessions, ids)
    found = []
    for name, row, c in zip(drafts, overlap, costs, strict=True):
        alpha = float(min(1.0, row.mean()))
        gamma = best_gamma(alpha, c)
        gain = float(speedup(alpha, gamma, c)) if gamma else 1.0
        found.append(DraftOverlap(word(str(name)), row, alpha, c, gamma, gain))
    strings = pair.token_strings(ids[1:])
    words = ["".join(split_gap(strings[int(token)])) for token in ids[1:]]
    names = [f"target {pair.target.name}", *(f"draft {name}" for name in drafts)]
    made_with = f"{' · '.join(names)} · temperature {sampling.temperature:g}"
    return OverlapMapData(words, found, whole - len(ids), visible(made_with, limit=300))


def _overlaps(sessions: list[Any], ids: IntArray, sampling: Sampling) -> FloatArray:
    """Return sum min(p, q) of every draft before each token but the first, ``(drafts, n)``."""
    from specviz.decoding.sampling import logits_to_distributions

    width = sessions[0].vocab_size
    piece = max(1, AT_ONCE // (width * len(sessions)))
    for session in sessions:
        session.begin()
    parts = []
    for first in range(0, len(ids) - 1, piece):
        last = min(first + piece, len(ids) - 1)  # the distributions after tokens first … last - 1
        past = [ids[: i + 1] for i in range(first, last)]
        p, *qs = (
            logits_to_distributions(
                session.verify(ids[first : first + 1],
                               Draft.chain(ids[first + 1 : last].tolist(), None, width)),
                sampling, past, "target" if session is sessions[0] else "draft",
            )
            for session in sessions
        )  # fmt: skip
        for session in sessions:
            session.keep(list(range(last - first - 1)))
        parts.append(np.stack([np.minimum(p, q).sum(axis=1) for q in qs]))
    found: FloatArray = np.concatenate(parts, axis=1)
    return found


def _costs(sessions: list[Any], ids: IntArray) -> list[float]:
    """Return each draft's c: the CPU time of one-token passes, taken in turn with the target's."""
    none = Draft.empty(sessions[0].vocab_size)
    took = np.zeros((TIMED, len(sessions)))
    for turn in range(TIMED):
        for i, session in enumerate(sessions):
            started = process_time()
            session.verify(ids[session.length : session.length + 1], none)
            took[turn, i] = process_time() - started
            session.keep([])
            session.crop(len(ids) - 1)
    median = np.median(took[1:], axis=0)
    return [float(x / median[0]) if median[0] > 0 else 0.0 for x in median[1:]]
