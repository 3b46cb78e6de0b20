"""``specviz show``: print a recorded run, without a model, and check every decision in it."""

from __future__ import annotations

import argparse

from specviz.cli.opening import opened
from specviz.cli.output import Output
from specviz.core.trace.replay import Replay
from specviz.figures.terminal import SHOWN, ansi


def run(arguments: argparse.Namespace, output: Output) -> int:
    """Show a trace; the exit code is 1 if something in it does not follow."""
    trace = opened(arguments.file)
    style = output.style
    budget = None if arguments.all else SHOWN
    output.line(ansi(trace, style.colour, style.width, ascii=style.ascii, budget=budget))
    replay = trace.check()
    output.line()
    output.say(checked(replay))
    for finding in replay.contradictions[:10]:
        output.say(f"  {finding}")
    return 0 if replay.ok else 1


def checked(replay: Replay) -> str:
    """Return the answers of ``trace.check()`` as a line: how often each was given."""
    counts = replay.counts
    return "check  " + ", ".join(f"{n:,} {answer}" for answer, n in counts.items())
