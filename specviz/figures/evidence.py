"""The evidence of a round as a table: what each proposal was judged on, and how it ended."""

from __future__ import annotations

from html import escape
from math import isnan

from specviz.core.trace.views import Closing, Node, Round
from specviz.figures.escaping import SPACE, split_gap
from specviz.figures.marks import MARKS, Line, number
from specviz.figures.summary import duration

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


def evidence_html(rounds: list[Round], line: Line, how: str) -> str:
    """Return a table of everything that decided a line of the text.

    Parameters
    ----------
    rounds : list of Round
        The rounds of the line.
    line : Line
        What it is called.
    how : str
        What the rule judged by, from :func:`specviz.figures.summary.judging`.
    """
    head = "".join(
        f'<th scope="col" title="{escape(meaning)}">{name}</th>' for name, meaning in _columns(how)
    )
    body = "".join(_rows(one, how) for one in rounds)
    which = f"round {line.label}" if line.first == line.last else f"rounds {line.label}"
    return (
        f'<div class="sv-scroll" role="region" tabindex="0" aria-label="Evidence of {which}">'
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
        f'<p class="sv-facts">{escape(_facts(rounds))}</p>'
    )


def _columns(how: str) -> list[tuple[str, str]]:
    """Return the names of the columns and what they mean under a rule."""
    if how != "block":
        return list(COLUMNS.items())
    columns = COLUMNS | BLOCK_MEANS
    return [("passes with" if name == "kept with" else name, columns[name]) for name in COLUMNS]


def _rows(one: Round, how: str) -> str:
    is_tree = any(node.parent != node.index - 1 for node in one.nodes)
    rows = (_node_row(node, how, is_tree) for node in one.nodes)
    return "".join(rows) + _closing_row(one.closing, how)


def _node_row(node: Node, how: str, is_tree: bool) -> str:
    name = "past the end" if node.accepted and not node.emitted else node.verdict
    q = "1 (no draw)" if node.one_hot else number(node.q)
    judged = how in ("u", "block")
    ruler = _ruler(node) if judged and node.verdict != "never examined" else ""
    cells = (
        _share(node.q, q, "q"),
        _share(node.p, number(node.p), "p"),
        f"<td>{_ratio(node)}</td>",
        f"<td>{number(node.overlap)}</td>",
        f"<td>{number(node.acceptance)}</td>",
        f"<td>{number(node.u) if judged else NO_DRAW[how]}{ruler}</td>",
    )
    after = "the text" if node.parent < 0 else f"node {node.parent}"
    where = f"<small>node {node.index}, after {after}</small>" if is_tree else ""
    return f"<tr>{_token(node.text, where)}{''.join(cells)}{_verdict(name)}</tr>"


def _closing_row(closing: Closing, how: str) -> str:
    choice = closing.choice
    if choice.how == "inverse CDF":
        drawn = f"u = {number(choice.u)} fell in [{number(choice.cdf_lo)}, {number(choice.cdf_hi)})"
    elif choice.how == "race":
        drawn = f"first of the race, at {number(choice.time)}; the next at {number(choice.second)}"
    else:
        drawn = "the most likely token"
    name = closing.kind if closing.emitted else "past the end"
    outcome = OUTCOMES["plain" if how in ("p", "token") else closing.kind]
    return (
        f'<tr class="sv-closing">{_token(closing.text)}<td></td>'
        f"{_share(closing.p, number(closing.p), 'p')}"
        f'<td colspan="4">{outcome}: {escape(drawn)}</td>{_verdict(name)}</tr>'
    )


def _token(text: str, where: str = "") -> str:
    gap, rest = split_gap(text)
    return f'<th scope="row"><bdi>{SPACE if gap else ""}{escape(rest)}</bdi>{where}</th>'


def _verdict(name: str) -> str:
    return f'<td class="sv-v" data-verdict="{name}">{MARKS[name].glyph} {name}</td>'


def _share(value: float, said: str, distribution: str) -> str:
    """Return a cell with a bar as long as the probability in it."""
    width = 0 if isnan(value) else 100 * min(1.0, max(0.0, value))
    return f'<td>{said}<i class="sv-share sv-{distribution}" style="width:{width:.1f}%"></i></td>'


def _ruler(node: Node) -> str:
    """Return the interval 0 to 1: green where u means kept, with a tick at u."""
    if isnan(node.acceptance) or isnan(node.u):
        return ""
    kept = 100 * min(1.0, max(0.0, node.acceptance))
    u = 100 * min(1.0, max(0.0, node.u))
    return (
        f'<span class="sv-ruler" aria-hidden="true"><i style="width:{kept:.1f}%"></i>'
        f'<b style="left:{u:.1f}%"></b></span>'
    )


def _ratio(node: Node) -> str:
    return number(node.ratio) if node.q > 0 else "not recorded"


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
    known = [f"{name} {duration(value)}" for name, value in times.items() if value > 0]
    return "; ".join([*said, *([f"time: {', '.join(known)}"] if known else [])])
