"""``specviz play``: recorded runs as an animated page, opened in the browser."""

from __future__ import annotations

import argparse
import webbrowser
from pathlib import Path

from specviz.cli.opening import opened, page_of
from specviz.cli.output import Output
from specviz.player.page import embedded_height, iframe, write_page


def run(arguments: argparse.Namespace, output: Output) -> int:
    """Write the page beside the trace and open it; return the exit code."""
    traces = [opened(name) for name in arguments.file]
    page = Path(arguments.out) if arguments.out else page_of(arguments.file)
    chosen = {
        "views": arguments.views,
        "guided": arguments.guided,
        "height": arguments.height,
        "theme": arguments.theme,
    }
    known = page.exists()
    write_page(traces[0] if len(traces) == 1 else traces, page, **chosen)
    output.say(f"{'replaced' if known else 'written'}: {page}")
    if arguments.views or arguments.height:
        height = embedded_height(arguments.views, arguments.height)
        output.say(f"to embed it in another page: {iframe(page, height=height)}")
    else:
        output.say("to embed it in another page, add --height 600")
    if not arguments.no_open and not webbrowser.open(page.resolve().as_uri()):
        output.say("no browser could be started: open that file in one")
    return 0
