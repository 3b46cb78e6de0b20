"""The command line: ``specviz`` demo, trace, show, play, train, audit, bench, gallery, info.

Exit codes: 0 fine; 1 a check failed; 2 wrong input; 130 interrupted, with what was recorded saved.
(``audit``: 0 no discrepancy found; 1 a discrepancy; 2 it could not be told, or wrong input.)
Nothing heavy is imported before a command needs it.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress

from specviz.cli.arguments import parser
from specviz.cli.output import Output

FINE, FAILED, WRONG, INTERRUPTED, PIPE_CLOSED = 0, 1, 2, 130, 141


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments, without the program's name; by default those of the process.

    Examples
    --------
    >>> main(["--version"])  # doctest: +ELLIPSIS
    specviz ...
    0
    """
    try:
        arguments = parser().parse_args(argv)
    except SystemExit as done:  # --help, --version, or a usage error already explained
        return done.code if isinstance(done.code, int) else WRONG
    output = Output(sys.stdout, colour=False if arguments.no_color else None)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _note
            code = _run(arguments, output)
            output.flush()
            return code
    except KeyboardInterrupt:
        print("specviz: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        _forget_stdout()
        return PIPE_CLOSED
    except (ValueError, TypeError, OSError) as error:
        if arguments.traceback:
            raise
        print(f"specviz: error: {_one_line(error)}", file=sys.stderr)
        return WRONG


def _run(arguments: object, output: Output) -> int:
    """Hand over to the command's own module, imported only now."""
    from importlib import import_module

    name = vars(arguments)["command"]
    if (
        name not in ("show", "play") and sys.stderr.isatty()
    ):  # the first import of torch takes seconds
        print("specviz: loading torch and the models", file=sys.stderr)
    command = import_module(f"specviz.cli.{name}")
    code: int = command.run(arguments, output)
    return code


def _one_line(error: Exception) -> str:
    """Return what an error says, on one line that no file name or token can break out of."""
    from specviz.figures.escaping import visible

    if isinstance(error, OSError) and error.strerror:
        where = f": {error.filename!r}" if error.filename is not None else ""
        said = f"{error.strerror}{where}"
    else:
        said = str(error) or type(error).__name__
    return visible(" ".join(said.split()), limit=2_000)


def _note(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
    """Show a warning as a note to the person, not as a line of our source."""
    if not issubclass(category, DeprecationWarning | PendingDeprecationWarning | ImportWarning):
        print(f"specviz: note: {' '.join(str(message).split())}", file=sys.stderr)


def _forget_stdout() -> None:
    """Let the interpreter's last flush go nowhere: the reader of our pipe has left."""
    with suppress(OSError, ValueError):  # stdout is no file, as in a test
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
