"""A report: one self-contained page of the figures that matter, in reading order, with words."""

from __future__ import annotations

import json
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from specviz.core.atomic_writing import PAGES, checked_target, write_whole
from specviz.core.trace.measures import show
from specviz.core.trace.trace import Trace
from specviz.figures.coloured_text import html as coloured_html
from specviz.figures.drawing import html_of
from specviz.figures.escaping import visible
from specviz.figures.measured import traces_of
from specviz.figures.page import MOST_SETTINGS, page_title
from specviz.figures.plots.methods import is_bench
from specviz.figures.report import battery_html
from specviz.figures.summary import provenance, rule_label
from specviz.figures.templating import figure_page, part
from specviz.lossless.report.audit_report import AuditReport
from specviz.lossless.report.battery_report import BatteryReport

if TYPE_CHECKING:
    Section = tuple[str, Markup, str]


def report(what: Any, path: str | PathLike[str]) -> Path:
    """Write a report as one self-contained page: figures in reading order, with words.

    Parameters
    ----------
    what : Trace, several of them, AuditReport, BatteryReport, or Bench
        A run: its text, the loop, what decided a token, acceptance, time, and whether the record is
        consistent. Several runs (a sequence or a mapping): the methods side by side. What
        :func:`specviz.bench.measure` returns: whether it pays. An audit: its verdict,
        tests and tables.
    path : str or path
        The file, by custom ``….html``; it is replaced as a whole or left as it was.

    Returns
    -------
    Path
        Where the page is. It has no script and asks for nothing from outside.

    Raises
    ------
    TypeError
        If ``what`` is something else.
    ValueError, FileNotFoundError, IsADirectoryError, PermissionError
        If it cannot be written there.

    Examples
    --------
    >>> report(trace, "fox-report.html")  # doctest: +SKIP
    """
    where = checked_target(path, PAGES)
    if isinstance(what, AuditReport):
        text = what.to_html()
    elif isinstance(what, BatteryReport):
        from specviz.figures.plots.audit import audit

        sections = [("", battery_html(what), ""), _drawn("What was tested", "", audit, what)]
        text = figure_page(sections, f"{what.verdict.value}: a battery against {what.against}")
    elif isinstance(what, Trace):
        text = figure_page(
            trace_sections(what), visible(page_title(what), limit=120), provenance(what)
        )
    elif is_bench(what):
        text = figure_page(bench_sections(what), "Does speculative decoding pay?")
    else:
        text = figure_page(runs_sections(what), "Runs side by side")
    write_whole(where, text)
    return where


def _drawn(heading: str, words: str, draw: Callable[..., Any], *args: Any, **how: Any) -> Section:
    """Return a section with a figure, or with the sentence that says why there is none."""
    from matplotlib import pyplot

    try:
        with pyplot.ioff():
            made = draw(*args, **how)
    except ValueError as error:
        return heading, Markup(""), f"{words} Not drawn: {error}.".strip()
    drawn = made if hasattr(made, "savefig") else made.get_figure(root=True)
    content = Markup(html_of(drawn))
    pyplot.close(drawn)
    return heading, content, words


def trace_sections(trace: Trace) -> list[Section]:
    """Return what is worth seeing of a run, in reading order."""
    from specviz import figures as f

    measures = trace.measures()
    table = [(m.name, show(m.value), m.convention) for m in measures.values()]
    replay = trace.check()
    answers = ", ".join(f"{n:,} × {answer}" for answer, n in replay.counts.items())
    findings = "; ".join(map(str, replay.contradictions[:10]))
    settings = [
        (visible(str(key), limit=60), visible(json.dumps(value, ensure_ascii=False), limit=300))
        for key, value in list(trace.meta.items())[:MOST_SETTINGS]
    ]
    sections: list[Section] = [
        ("The text", Markup(coloured_html(trace)), f"Each line is a round. Rule: "
         f"{rule_label(trace)}."),
    ]  # fmt: skip
    if len(trace.node_table):
        sections += [
            _drawn("One round of the loop", "The draft proposes, the target scores all proposals "
                   "in one pass, and each is accepted or rejected.", f.loop, trace),
            _drawn("What decides about a token", "A proposal is judged by target p and draft q.",
                   f.overlap, trace),
            _drawn("", "Its draw u decides.", f.draws, trace, rounds=3),
            _drawn("", "Where the probability of one token goes.", f.flow, trace),
            _drawn("How much is accepted", "Measured shares beside a theory with one alpha.",
                   f.acceptance, trace),
            _drawn("", "The same over the target's entropy.", f.acceptance_by, trace),
            _drawn("Tokens per target pass", "What theory expects at this alpha, and what was "
                   "measured.", f.expected_tokens, trace),
            _drawn("Time", "Draft and target work in turn.", f.timeline, trace),
            _drawn("", "The gain against gamma.", f.gain_by_gamma, trace),
            _drawn("", "Where the run lies among all alpha and c.", f.gain_map, trace),
            _drawn("Caches", "Rejected proposals leave both KV caches.", f.caches, trace),
        ]  # fmt: skip
    words = f"Every decision was replayed from the record: {answers}. {findings}".strip()
    return [
        *sections,
        ("Does the record hold?", Markup(""), words),
        ("Measures", Markup(part("run.html").table(("measure", "value", "what is counted"), table)),
         "Tools count differently; each number says what it counts."),
        ("Settings", Markup(part("run.html").table(("setting", "value"), settings)), ""),
    ]  # fmt: skip


def runs_sections(runs: Any) -> list[Section]:
    """Return several runs side by side."""
    from specviz import figures as f

    named = traces_of(runs, "what")
    said = [(name, provenance(run)) for name, run in named.items()]
    drafted = {name: run for name, run in named.items() if len(run.node_table)}
    sections: list[Section] = [
        ("Runs", Markup(part("run.html").table(("run", "how it was made"), said)), ""),
        _drawn("Methods", "Acceptance, tokens per pass and gain, with 95% intervals.", f.methods,
               named),
        _drawn("The race", "Tokens written over time.", f.race, named),
    ]  # fmt: skip
    if drafted:
        sections += [
            _drawn("Tokens per target pass", "Each run at its alpha.", f.expected_tokens, drafted),
            _drawn("Acceptance by run", "", f.acceptance_by, drafted, by="text"),
        ]  # fmt: skip
    return sections


def bench_sections(bench: Any) -> list[Section]:
    """Return what :func:`specviz.bench.measure` found."""
    from specviz import figures as f

    heads = ("way", "gain", "quartiles", "gain by the clock", "ms per token", "tokens per pass",
             "alpha")  # fmt: skip
    table = [
        (way.name, show(way.gain), f"{show(way.low)} to {show(way.high)}", show(way.wall_gain),
         show(way.milliseconds), show(way.tokens_per_pass), show(way.alpha))
        for way in bench.ways
    ]  # fmt: skip
    sections: list[Section] = [
        _drawn("Does it pay here?", f"{bench.sentence} Gains are medians over turns, with their "
               "quartiles, against the target alone of the same turn.", f.methods, bench),
        ("Numbers", Markup(part("run.html").table(heads, table)), ""),
    ]  # fmt: skip
    if bench.alpha is not None and bench.c is not None:
        words = "What theory expects at this alpha and c, where verifying costs one pass."
        sections.append(
            _drawn("Gain against gamma", words, f.gain_by_gamma, alpha=bench.alpha, c=bench.c)
        )
    settings = {**bench.settings, **bench.machine}
    rows = [(str(key), visible(str(value), limit=300)) for key, value in settings.items()]
    rows += [(name, f"not measured: {why}") for name, why in bench.left_out.items()]
    return [*sections, ("Settings", Markup(part("run.html").table(("setting", "value"), rows)), "")]
