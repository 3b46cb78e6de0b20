"""The evidence of a round as a table: what each proposal was judged on, and how it ended."""

from __future__ import annotations

from math import isnan
from typing import Any

from markupsafe import Markup

from specviz.core.formatting import format_duration
from specviz.core.trace.views import Closing, Node, Round
from specviz.figures.marks import MARKS, RoundLine, number
from specviz.figures.templating import part

COLUMNS = {
    "token": "the proposed token",
    "draft q": "its probability under the draft's distribution, as used",
    "target p": "its probability under the target's distribution",
    "p / q": "their ratio",
    "overlap": "sum of min(p, q) over all tokens: 1 − TV(p, q)",
    "kept with": "the acceptance probability that the rule gives",
    "draw u": "the uniform it is compared with: kept if u is below",
    "verdict": "what became of it",
}
NO_DRAW = {"p": "none: only p counts", "token": "none: tokens are compared"}
BLOCK_MEANS = {
    "kept with": "h, the probability that its own test passes",
    "draw u": "the uniform it is compared with: its own test passes if u is below; "
    "everything up to the last that passes is kept",
}
OUTCOMES = {
    "plain": "from the target's distribution",
    "correction": "from what is left of p",
    "bonus": "from the target's distribution",
}


def evidence_html(rounds: list[Round], line: RoundLine, how: str) -> Markup:
    """Return a table of everything that decided a line of the text.

    Parameters
    ----------
    rounds : list of Round
        The rounds of the line.
    line : RoundLine
        What it is called.
    how : str
        What the rule judged by, from :func:`specviz.figures.summary.judging`.
    """
    label = f"round {line.label}" if line.first == line.last else f"rounds {line.label}"
    shown = [_evidence(one, how) for one in rounds]
    return Markup(part("run.html").evidence(label, _columns(how), shown, _facts(rounds)))


def _columns(how: str) -> list[tuple[str, str]]:
    """Return the names of the columns and what they mean under a rule."""
    if how != "block":
        return list(COLUMNS.items())
    columns = COLUMNS | BLOCK_MEANS
    return [("passes with" if name == "kept with" else name, columns[name]) for name in COLUMNS]


def _evidence(one: Round, how: str) -> dict[str, Any]:
    is_tree = any(node.parent != node.index - 1 for node in one.nodes)
    return {
        "rows": [_proposal(node, how, is_tree) for node in one.nodes],
        "closing": _closing(one.closing, how),
    }


def _proposal(node: Node, how: str, is_tree: bool) -> dict[str, Any]:
    judged = how in ("u", "block")
    known = judged and not (isnan(node.acceptance) or isnan(node.u))
    after = "the text" if node.parent < 0 else f"node {node.parent}"
    return {
        "text": node.text,
        "where": f"node {node.index}, after {after}" if is_tree else "",
        "q": node.q,
        "q_said": "1 (no draw)" if node.one_hot else number(node.q),
        "p": node.p,
        "ratio": number(node.ratio) if node.q > 0 else "not recorded",
        "overlap": node.overlap,
        "acceptance": node.acceptance,
        "draw": number(node.u) if judged else NO_DRAW[how],
        # percent of the way from 0 to 1: where u still means kept, and u itself
        "ruler": [100 * min(1.0, max(0.0, x)) for x in (node.acceptance, node.u)]
        if known and node.verdict != "never examined"
        else None,
        "mark": MARKS["past the end" if node.accepted and not node.emitted else node.verdict],
    }


def _closing(closing: Closing, how: str) -> dict[str, Any]:
    choice = closing.choice
    if choice.how == "inverse CDF":
        drawn = f"u = {number(choice.u)} fell in [{number(choice.cdf_lo)}, {number(choice.cdf_hi)})"
    elif choice.how == "race":
        drawn = f"first of the race, at {number(choice.time)}; the next at {number(choice.second)}"
    else:
        drawn = "the most likely token"
    return {
        "text": closing.text,
        "p": closing.p,
        "outcome": OUTCOMES["plain" if how in ("p", "token") else closing.kind],
        "drawn": drawn,
        "mark": MARKS[closing.kind if closing.emitted else "past the end"],
    }


def _facts(rounds: list[Round]) -> str:
    """Return cache lengths and times, of one round or from the first to the last."""
    first, last = rounds[0], rounds[-1]
    said = []
    for name, before, end in (
        ("target", first.target_cache, last.target_cache),
        ("draft", first.draft_cache, last.draft_cache),
    ):
        if end.after_pass:
            said.append(
                f"{name} cache {before.before} → {end.after_pass} → {end.after} tokens "
                f"(before, after the pass, after the rollback)"
            )
    times = {
        "draft": sum(one.draft_seconds for one in rounds),
        "target": sum(one.verify_seconds for one in rounds),
        "rest": sum(one.other_seconds for one in rounds),
    }
    known = [f"{name} {format_duration(value)}" for name, value in times.items() if value > 0]
    return "; ".join([*said, *([f"time: {', '.join(known)}"] if known else [])])
