"""``specviz play``: a recorded run as an animated page, opened in the browser."""

from __future__ import annotations

import argparse
import webbrowser
from pathlib import Path

from specviz.cli.output import Output


def run(arguments: argparse.Namespace, output: Output) -> int:
    """Write the page beside the trace and open it; return the exit code."""
    from specviz.core.trace import Trace
    from specviz.player.page import to_html

    trace = Trace.load(arguments.file)
    page = Path(arguments.out) if arguments.out else Path(arguments.file).with_suffix(".html")
    to_html(trace, page)
    output.say(f"written: {page}")
    if not arguments.no_open and not webbrowser.open(page.resolve().as_uri()):
        output.say("no browser could be started: open that file in one")
    return 0
