"""A trace named on the command line: a file, or a recorded run that ships with the package."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from specviz.core.trace.trace import Trace

LONGEST_NAME = 80
"""Of a race's page, in letters."""
HELP = "a trace, as in fox.specviz, or a recorded run, as in stories/draft-model"


def opened(name: str) -> Trace:
    """Return the trace of a file, or the recorded run of that name where there is no such file.

    Raises
    ------
    TraceFileError, OSError
        If it is neither.
    """
    from specviz.core.trace.trace import Trace
    from specviz.recordings.shelf import recorded

    if Path(name).exists():
        return Trace.load(name)
    if name in recorded():
        return recorded(name)
    if not Path(name).suffix:
        near = get_close_matches(name, recorded(), n=3, cutoff=0.4) or recorded()[:3]
        raise FileNotFoundError(
            f"{name!r} is neither a file nor a recorded run, such as {' or '.join(near)}; "
            f"sv.recorded() lists them all"
        )
    return Trace.load(name)


def page_of(names: Sequence[str]) -> Path:
    """Return where the page of runs goes: beside the first one's file, else here.

    The name is not one that another command gives its page: ``fox.specviz`` is played in
    ``fox-player.html``, two runs race in ``race-fox-plain.html``.

    Examples
    --------
    >>> page_of(["runs/fox.specviz"]).as_posix()
    'runs/fox-player.html'
    >>> page_of(["stories/draft-model", "stories/target-only"]).as_posix()
    'race-stories-draft-model-stories-target-only.html'
    """
    from specviz.recordings.shelf import recorded

    known = [not Path(name).exists() and name in recorded() for name in names]
    stems = [
        name.replace("/", "-") if ours else Path(name).stem
        for name, ours in zip(names, known, strict=True)
    ]
    folder = Path() if known[0] else Path(names[0]).parent
    if len(names) == 1:
        return folder / f"{stems[0]}-player.html"
    together = "-".join(stems)
    if len(together) > LONGEST_NAME:
        together = f"{stems[0][:LONGEST_NAME]}-and-{len(names) - 1}-more"
    return folder / f"race-{together}.html"
