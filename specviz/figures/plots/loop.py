"""The loop as a diagram: one round of a real run, from the draft's tokens to the next round.

Leviathan et al. (2023), algorithm 1; Chen et al. (2023), algorithm 2: the draft proposes gamma
tokens one by one, the target scores all of them in one pass, each is accepted with probability
min(1, p/q), the first rejection is replaced from the residual, all accepted gives a bonus token.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from specviz.core.checks import one_of
from specviz.core.formatting import format_number
from specviz.core.trace.views import Node, Round
from specviz.figures.cards import arrow, card, hues, sheet
from specviz.figures.drawing import Look, figure, plotly_text, safe_text
from specviz.figures.escaping import word
from specviz.figures.marks import MARKS
from specviz.figures.plots.draws import chosen_round
from specviz.figures.summary import judging

if TYPE_CHECKING:
    import plotly.graph_objects as go
    from matplotlib.axes import Axes

    from specviz.core.trace.trace import Trace

MOST = 5
"""How many proposals have a card; of longer rounds those up to the first rejection, cut."""


TESTS = {
    "u": "whose draw u lies below min(1, p/q)",
    "block": "up to the last whose u lies below its probability",
    "p": "that p makes likely enough",
    "token": "that is the target's own token",
}
"""What a proposal is judged by, as :func:`specviz.figures.summary.judging` calls it."""


@dataclass(frozen=True)
class LoopStep:
    """One position of the round: the proposal that was followed there, and how it was judged."""

    text: str
    verdict: str
    q: str
    p: str
    test: str


@dataclass(frozen=True)
class LoopData:
    """What the diagram shows of round ``index``.

    ``before`` is the end of the text so far; ``at`` the place of the ``closing`` token; ``kept``
    how many tokens the target's cache is rolled back to. ``more`` counts proposals without a card.
    """

    index: int
    before: str
    steps: list[LoopStep]
    closing: str
    kind: str
    closing_p: str
    at: int
    emitted: int
    kept: int
    more: int
    test: str
    orientation: str

    @property
    def heads(self) -> list[str]:
        """What happens, phase by phase."""
        n = len(self.steps) + self.more
        closing = {
            "bonus": "4 close: all accepted, a bonus token from the last p",
            "correction": "4 close: a token from the residual max(0, p − q)",
            "plain": "4 close: a token from p",
        }[self.kind]
        return [
            f"1 draft q proposes {n} token{'s' * (n != 1)}, one by one",
            f"2 target p scores them all in one pass: {n + 1} distributions",
            f"3 accept each {self.test}",
            closing,
            f"5 the text grows by {self.emitted}; caches roll back to {self.kept} tokens",
        ]

    @property
    def title(self) -> str:
        """Which round."""
        accepted = sum(step.verdict == "accepted" for step in self.steps)
        return (
            f"One round of speculative decoding (round {self.index}): {accepted} accepted, "
            f"{self.emitted} emitted"
        )

    @property
    def alt(self) -> str:
        """The round in words."""
        said = ", ".join(f"{step.text} {step.verdict}" for step in self.steps)
        return f"{said}; closing token {self.closing} ({self.kind})"


SHORT = ("1 draft q\nproposes", "2 target p\none pass", "3 accept?\nu < min(1, p/q)",
         "4 close", "5 new text")  # fmt: skip
"""Heads of the upright diagram, whose columns are narrow."""


def _draw(data: LoopData, ax: Axes | None, look: Look) -> Axes:
    upright = data.orientation == "vertical"
    return _upright(data, ax, look) if upright else _lying(data, ax, look)


def _cells(data: LoopData, phase: int, i: int) -> tuple[str, str, str] | None:
    """Return mark, text and numbers of the card of a phase at a position, None for no card."""
    if i == data.at and phase > 2:
        said = data.closing if phase == 4 else f"{MARKS[data.kind].glyph} {data.closing}"
        return data.kind, said, f"p {data.closing_p}" if phase == 3 else ""
    if i >= len(data.steps):  # one more than was proposed
        return ("target", "next", "p") if phase == 1 else None
    step = data.steps[i]
    if phase == 0:
        return "draft", step.text, f"q {step.q}"
    if phase == 1:
        return "target", step.text, f"p {step.p}"
    if phase == 2:
        return step.verdict, f"{MARKS[step.verdict].glyph} {step.text}", step.test
    if phase == 4 and i < data.at:
        return "accepted", step.text, ""
    return None


def _lying(data: LoopData, ax: Axes | None, look: Look) -> Axes:
    """Draw positions to the right, phases downwards."""
    points, colours = look.points, look.colours
    margin, rail = 1.2 * points, 2.2 * points
    head, tall, gap = 1.7 * points, 2.9 * points, 1.0 * points
    row = head + tall + gap
    ax, across, _ = sheet(look, ax, 2 * margin + 2.2 * points + 5 * row)
    look_title(ax, data.title, margin, look)
    left, top = margin + rail, margin + 2.4 * points
    columns = len(data.steps) + 1
    before = min(0.24 * across, 9.5 * points)
    width = min((across - left - margin - before) / columns - 0.5 * points, 8.5 * points)
    for phase, said in enumerate(data.heads):
        y = top + phase * row
        ax.text(left, y + 0.1 * points, safe_text(said), va="top", **look.words(fontweight="bold"))
        if phase in (0, 4):
            card(ax, left, y + head, before - 0.7 * points, tall, "text", look, said=data.before)
        if phase == 1:  # one pass over everything
            ax.add_patch(_plate(left + before - 0.4 * points, y + head - 0.2 * points,
                                columns * (width + 0.5 * points) + 0.3 * points,
                                tall + 0.4 * points, colours.p, look))  # fmt: skip
        for i in range(columns):
            found = _cells(data, phase, i)
            x = left + before + i * (width + 0.5 * points)
            if found is not None:
                card(ax, x, y + head, width, tall, found[0], look, said=found[1], below=found[2])
            if phase == 0 and i < len(data.steps) - 1:
                arrow(ax, (x + width, y + head + tall / 2),
                      (x + width + 0.5 * points, y + head + tall / 2), look)  # fmt: skip
    rail_x = margin + 0.5 * points
    first, last = top + head + tall / 2, top + 4 * row + head + tall / 2
    ax.plot([left, rail_x, rail_x], [last, last, first], color=colours.muted,
            linewidth=0.14 * points)  # fmt: skip
    arrow(ax, (rail_x, first), (left - 0.1 * points, first), look)
    ax.text(rail_x - 0.25 * points, (first + last) / 2, "next round", rotation=90, ha="right",
            va="center", **look.words(color=colours.muted))  # fmt: skip
    return ax


def _upright(data: LoopData, ax: Axes | None, look: Look) -> Axes:
    """Draw positions downwards, phases to the right."""
    points, colours = look.points, look.colours
    margin, tall, gap = 1.1 * points, 2.9 * points, 0.75 * points
    rows = len(data.steps) + 2
    top = margin + 2.6 * points + 3.2 * points
    height = top + rows * (tall + gap) + 3.4 * points
    ax, across, _ = sheet(look, ax, height)
    look_title(ax, data.title, margin, look)
    column = (across - 2 * margin) / 5
    width = column - 0.9 * points
    for phase, said in enumerate(SHORT):
        x = margin + phase * column
        ax.text(x + width / 2, top - 0.6 * points, safe_text(said), ha="center", va="bottom",
                **look.words(fontweight="bold"))  # fmt: skip
        if phase in (0, 4):
            card(ax, x, top, width, tall, "text", look, said=data.before)
        if phase == 1:
            ax.add_patch(_plate(x - 0.2 * points, top + tall + gap - 0.3 * points,
                                width + 0.4 * points,
                                (len(data.steps) + 1) * (tall + gap) - gap + 0.6 * points,
                                colours.p, look))  # fmt: skip
        for i in range(len(data.steps) + 1):
            found = _cells(data, phase, i)
            y = top + (i + 1) * (tall + gap)
            if found is not None:
                card(ax, x, y, width, tall, found[0], look, said=found[1], below=found[2])
            if phase == 0 and i < len(data.steps):
                arrow(ax, (x + width / 2, y - gap), (x + width / 2, y), look)
    bottom = top + rows * (tall + gap) + 0.5 * points
    last = margin + 4 * column + width / 2
    first = margin + width / 2
    ax.plot([last, last, first], [bottom - gap, bottom, bottom], color=colours.muted,
            linewidth=0.14 * points)  # fmt: skip
    arrow(ax, (first, bottom), (first, bottom - gap), look)
    said = f"next round; both caches roll back to {data.kept} tokens"
    ax.text((first + last) / 2, bottom + 0.3 * points, said, ha="center", va="top",
            **look.words(color=colours.muted))  # fmt: skip
    return ax


def look_title(ax: Axes, said: str, margin: float, look: Look) -> None:
    """Write the title at the top of a sheet."""
    ax.text(margin, margin, safe_text(said), va="top",
            **look.words(fontsize=1.1 * look.points))  # fmt: skip


def _plate(x: float, y: float, width: float, height: float, colour: str, look: Look) -> Any:
    from matplotlib.patches import FancyBboxPatch

    return FancyBboxPatch(
        (x, y), width, height, boxstyle=f"round,pad=0,rounding_size={0.5 * look.points}",
        facecolor="none", edgecolor=colour, linewidth=0.18 * look.points,
    )  # fmt: skip


def _plotly(data: LoopData, look: Look) -> go.Figure:
    """Return the film of the round: a frame per phase, a slider, and a button that plays it."""
    import plotly.graph_objects as go

    frames = []
    for phase, said in enumerate(data.heads):
        fill, edge, _ = hues("text", look.colours)
        xs, texts, fills, edges = [0.0], [plotly_text(data.before)], [fill], [edge]
        for i in range(len(data.steps) + 1):
            found = _cells(data, phase, i)
            if phase == 3 and found is None and i < data.at:
                found = _cells(data, 2, i)  # what was accepted stays in sight
            if found is None:
                continue
            fill, edge, _ = hues(found[0], look.colours)
            xs += [i + 1.0]
            fills += [fill]
            edges += [edge]
            texts.append("<br>".join(plotly_text(part) for part in found[1:] if part))
        cards = go.Scatter(
            x=xs, y=[0] * len(xs), text=texts, mode="markers+text", hoverinfo="text",
            marker={"symbol": "square", "size": 6.2 * look.points, "color": fills,
                    "line": {"color": edges, "width": 2}},
        )  # fmt: skip
        title = f"{plotly_text(data.title)}<br><b>{plotly_text(said)}</b>"
        frames.append(go.Frame(name=said[0], data=[cards], layout={"title": title}))
    film = go.Figure(data=frames[0].data, frames=frames)
    still = {"transition": {"duration": 0}}  # cards come and go: nothing to move between them
    now = {"mode": "immediate", "frame": {"duration": 0, "redraw": True}, **still}
    play = {
        "label": "play",
        "method": "animate",
        "args": [None, {"frame": {"duration": 1400, "redraw": True}, "fromcurrent": True, **still}],
    }
    steps = [{"label": one.name, "method": "animate", "args": [[one.name], now]} for one in frames]
    return look.plotly(
        film, title=frames[0].layout.title, showlegend=False, height=380,
        xaxis={"visible": False, "range": [-0.6, len(data.steps) + 1.6]},
        yaxis={"visible": False, "range": [-1, 1]}, sliders=[{"steps": steps}],
        updatemenus=[{"type": "buttons", "buttons": [play], "x": 0, "y": -0.05}],
    )  # fmt: skip


@figure(_draw, _plotly)
def loop(trace: Trace, *, round: int | None = None, orientation: str = "horizontal") -> LoopData:
    """Draw the loop of speculative decoding as a diagram of one round of a real run.

    With plotly it is a film: a frame per phase.

    Parameters
    ----------
    trace : Trace
        The run.
    round : int, optional
        Counted from 0; by default the first in which something was accepted and then rejected.
    orientation : {"horizontal", "vertical"}
        Whether the tokens run to the right (a slide) or downwards (a column).

    Returns
    -------
    matplotlib Axes, or plotly Figure; ``loop.data`` returns :class:`LoopData`

    Raises
    ------
    ValueError
        If there is no such round, or it proposed nothing.

    Examples
    --------
    >>> loop(trace, orientation="vertical", theme="paper")  # doctest: +SKIP
    """
    one_of("orientation", orientation, ("horizontal", "vertical"))
    one = trace.rounds[chosen_round(trace, round)]
    line, how = followed(one), judging(trace)
    shown = line[:MOST]
    cut = sum(node.accepted for node in line) > MOST
    accepted = sum(node.accepted for node in shown)
    emitted = len(one.tokens)
    return LoopData(
        index=one.index,
        before=f"… {_tail(trace, one)}",
        steps=[_step(node, how) for node in shown],
        closing=word(one.closing.text),
        kind=one.closing.kind,
        closing_p=format_number(one.closing.p),
        at=len(shown) if cut else accepted,
        emitted=emitted,
        kept=one.target_cache.after,
        more=len(line) - len(shown),
        test=TESTS[how],
        orientation=orientation,
    )


def followed(one: Round) -> list[Node]:
    """Return a proposal for each depth: of a chain all, of a tree the path, then what ended it."""
    if one.is_chain:
        return one.nodes
    line: list[Node] = []
    parent = -1
    while True:
        here = [node for node in one.nodes if node.parent == parent]
        if not here:
            return line
        kept = [node for node in here if node.accepted]
        judged = [node for node in here if node.verdict == "rejected"]
        line.append((kept or judged[-1:] or here)[0])
        parent = line[-1].index


def _step(node: Node, how: str) -> LoopStep:
    test = ""
    if node.verdict != "never examined" and how in ("u", "block"):
        sign = "<" if node.u < node.acceptance else "≥"
        test = f"{format_number(node.u)} {sign} {format_number(node.acceptance)}"
    q = "1" if node.one_hot else format_number(node.q)
    return LoopStep(word(node.text), node.verdict, q, format_number(node.p), test)


def _tail(trace: Trace, one: Round) -> str:
    """Return the end of the text before a round."""
    done = one.position - len(trace.prompt)
    ids = [*trace.prompt.tolist(), *trace.tokens[:done].tolist()][-3:]
    return "".join(word(trace.strings.get(int(i), f"⟨{int(i)}⟩")) for i in ids)
