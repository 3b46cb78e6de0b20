"""Where a command writes: what the terminal can show decides about colour, width and signs."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING, TextIO

from specviz.figures.escaping import can_show

if TYPE_CHECKING:
    from specviz.figures.terminal import Style


class Output:
    """A text stream and what it can show.

    Parameters
    ----------
    stream : text file
        Where the output goes.
    colour : bool, optional
        Whether to write colours; by default only on a terminal that wants them: not with
        ``NO_COLOR``, not with ``TERM=dumb``, not into a pipe or a file.
    """

    def __init__(self, stream: TextIO, colour: bool | None = None) -> None:
        self._stream = stream
        terminal = stream.isatty()
        self.colour = terminal and _wants_colour() if colour is None else colour
        self.width = shutil.get_terminal_size().columns if terminal else None
        self.ascii = not can_show(stream.encoding)

    @property
    def style(self) -> Style:
        """The style that figures for terminals take."""
        from specviz.figures.terminal import Style

        return Style(self.colour, self.width, self.ascii)

    def line(self, text: str = "") -> None:
        """Write a line and let it be seen at once."""
        print(text, file=self._stream, flush=True)

    def say(self, text: str) -> None:
        """Write a line of plain words, in signs that can be shown."""
        self.line(self.style.text(text))

    def rows(self, rows: list[tuple[str, str]]) -> None:
        """Write names and values under each other."""
        wide = max((len(name) for name, _ in rows), default=0)
        for name, value in rows:
            self.say(f"{name:<{wide}}  {value}")

    def heading(self, text: str) -> None:
        """Write a line that stands out, after an empty one."""
        self.line()
        self.line(self.style.bold(self.style.text(text)))

    def flush(self) -> None:
        """Write out what is left."""
        self._stream.flush()


def _wants_colour() -> bool:
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
