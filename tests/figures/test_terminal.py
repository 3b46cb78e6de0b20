"""A run in a terminal: glyphs always, colour and Unicode only where they can be shown."""

from __future__ import annotations

import io
import sys

import pytest

from specviz.figures.coloured_text import ansi, plain
from specviz.figures.escaping import columns
from specviz.figures.marks import MARKS
from specviz.figures.terminal import Style, round_text
from tests.figures.runs import branching, hostile, long_story, story, trace_of


def test_print_shows_a_line_per_round_and_no_escape_sequence() -> None:
    shown = str(story()).splitlines()
    assert shown[:5] == [
        "prompt: Once",
        "    0   ✓upon ✓a ✓time✓, +there",
        "    1   ✓lived ✗an –old ↻a",
        "  2–3   ·fox ·who",
        "    4   ✓walk✓ed +home",
    ]
    assert "\x1b" not in str(story())


def test_print_has_the_legend_and_the_summary() -> None:
    shown = plain(story())
    assert "✗ rejected        proposed by the draft, turned down" in shown
    assert "accepted / proposed              7 / 9 (78%)" in shown
    assert "time                             draft 9 ms · target 50 ms · rest 2.5 ms" in shown


def test_colour_adds_sequences_and_changes_no_text() -> None:
    import re

    coloured = ansi(story(), colour=True)
    assert "\x1b[32m✓upon\x1b[0m" in coloured
    assert "\x1b[9;31m✗an\x1b[0m" in coloured
    assert re.sub(r"\x1b\[[\d;]+m", "", coloured) == plain(story())


def test_ascii_only() -> None:
    shown = ansi(hostile(), colour=False, ascii=True)
    assert shown.isascii()
    assert "0   =upon =a =time=, +there" in ansi(story(), colour=False, ascii=True)
    assert "1   =lived /an -old >a" in ansi(story(), colour=False, ascii=True)
    assert len({mark.ascii for mark in MARKS.values()}) == len(MARKS)
    assert not any(mark.ascii.isalnum() for mark in MARKS.values())  # glued to words
    assert "\\n" in shown


@pytest.mark.parametrize("width", [30, 40, 80])
def test_lines_are_wrapped_at_the_width(width: int) -> None:
    words = [(f" word{i}", "accepted") for i in range(30)] + [(" 狐狸", "accepted")] * 10
    run = trace_of([(words, (" end", "bonus"))])
    rows = ansi(run, colour=False, width=width).split("\n\n")[0].splitlines()[1:]
    assert len(rows) > 1
    assert all(columns(row) <= width for row in rows)
    assert all(row.startswith(" " * 7) for row in rows[1:])
    assert "".join(rows).count("✓") == 40


def test_a_token_cannot_write_to_the_terminal() -> None:
    for colour in (False, True):
        shown = ansi(hostile(), colour=colour)
        assert "\x1b[31mred" not in shown
        assert "⟨U+001B⟩[31mred" in shown
        assert "\u202e" not in shown
        shown.encode("utf-8")


def test_a_tree_keeps_candidates_together() -> None:
    assert "✗a|✓the ✓fox|–dog –1 more +ran" in plain(branching())


def test_a_long_run_is_cut_and_says_so() -> None:
    shown = plain(long_story(5_000))
    assert "rounds not shown" in shown
    assert len(shown.splitlines()) < 2_500
    whole = ansi(long_story(500), colour=False, budget=None)
    assert "not shown" not in whole
    assert "  495   ✓upon" in whole


def test_one_round_as_it_happens() -> None:
    assert round_text(story().rounds[1], Style()) == "    1   ✓lived ✗an –old ↻a"


def test_every_table_of_a_trace_prints_where_only_ascii_can_be_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trace = trace_of([([], ("a", "plain"))])  # no proposals: numbers that are missing
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", out)
    for shown in (trace, trace.measures(), trace.check()):
        print(shown)
    out.flush()
    said = out.buffer.getvalue().decode("ascii")
    assert "checks follow from the record" in said
    assert "alpha" in said
