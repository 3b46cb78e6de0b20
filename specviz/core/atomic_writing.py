"""Where a file goes, checked before anything is computed, and written whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from specviz.core.checks import new_file

PAGES = (".html", ".htm")


def checked_target(path: Any, suffixes: Sequence[str] = (), name: str = "path") -> Path:
    """Return where a file goes, in a folder that can be written to.

    Raises
    ------
    TypeError, ValueError, FileNotFoundError, IsADirectoryError, PermissionError
        If it cannot go there, in one sentence.

    Examples
    --------
    >>> checked_target("fox.pdf", PAGES)
    Traceback (most recent call last):
        ...
    ValueError: path must end in .html or .htm, got 'fox.pdf'
    """
    where = new_file(path, suffixes, name)
    _try_folder(where.parent, name)
    return where


def checked_folder(path: Any, name: str = "path") -> Path:
    """Return a folder that is there and can be written to, or one that can be made.

    Raises
    ------
    TypeError, ValueError, NotADirectoryError, PermissionError
        If neither is so.
    """
    where = Path(path)
    if where.exists() and not where.is_dir():
        raise NotADirectoryError(f"{name} must be a folder, and {str(where)!r} is a file")
    there = next(one for one in (where, *where.absolute().parents) if one.exists())
    _try_folder(there, name)
    return where


def _try_folder(folder: Path, name: str) -> None:
    """Make a nameless file there: permissions alone do not tell of disks mounted read-only."""
    try:
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise type(error)(
            f"{name} cannot be written, folder {str(folder)!r}: {error.strerror}"
        ) from None


def write_by(where: Path, write: Callable[[Path], Any]) -> None:
    """Let a file be written beside its place and then put there, whole or not at all.

    Beside its place, so that moving it there is one step of the file system.

    Raises
    ------
    OSError
        If it cannot be written, naming the file that was asked for.
    """
    half = where.with_name(f".{where.stem}.{secrets.token_hex(4)}.tmp{where.suffix.lower()}")
    try:
        write(half)
        with half.open("rb+") as file:  # on the disk before it has its name
            os.fsync(file.fileno())
        half.replace(where)
    except BaseException as error:
        half.unlink(missing_ok=True)
        if isinstance(error, OSError) and half.name in str(error.filename):
            raise type(error)(f"path cannot be written, {str(where)!r}: {error.strerror}") from None
        raise


def write_whole(where: Path, text: str) -> None:
    """Write a text file whole or not at all, as UTF-8."""
    write_by(where, lambda half: half.write_text(text, encoding="utf-8", newline="\n"))
