"""A trace named on the command line: a file, or a recorded run that ships with the package."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from specviz.core.trace import Trace

HELP = "a trace, as in fox.specviz, or a recorded run, as in stories/draft-model"


def opened(name: str) -> Trace:
    """Return the trace of a file, or the recorded run of that name where there is no such file.

    Raises
    ------
    TraceFileError, OSError
        If it is neither.
    """
    from specviz.core.trace import Trace
    from specviz.recordings.shelf import recorded

    if not Path(name).exists() and name in recorded():
        return recorded(name)
    return Trace.load(name)


def page_of(name: str) -> Path:
    """Return where its page goes: beside a file, else here."""
    from specviz.recordings.shelf import recorded

    if not Path(name).exists() and name in recorded():
        return Path(name.replace("/", "-") + ".html")
    return Path(name).with_suffix(".html")
