"""Where a file goes, checked before anything is computed, and written whole or not at all."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Any

LONGEST = 200
"""Bytes of a file's name: what is written first has a few more, and file systems allow 255."""
PAGES = (".html", ".htm")


def checked_target(path: Any, suffixes: Sequence[str]) -> Path:
    """Return where a file goes.

    Raises
    ------
    TypeError, ValueError, FileNotFoundError, IsADirectoryError
        If it cannot go there, in one sentence.

    Examples
    --------
    >>> checked_target("fox.pdf", PAGES)
    Traceback (most recent call last):
        ...
    ValueError: path must end in .html or .htm, got 'fox.pdf'
    """
    if not isinstance(path, (str, PathLike)) or isinstance(fspath(path), bytes):
        raise TypeError(f"path must be a file name (str or path), got {type(path).__name__}")
    name = fspath(path)
    if not name:
        raise ValueError("path must be a file name, got ''")
    if "\0" in name:
        raise ValueError(f"path must be a file name without a zero byte, got {name!r}")
    where = Path(path)
    if len(where.name.encode("utf-8", "surrogateescape")) > LONGEST:
        raise ValueError(
            f"path must have a name of at most {LONGEST} bytes, got one of {len(where.name):,} "
            f"letters: {where.name[:20]!r}…"
        )
    try:
        folder, there = where.is_dir(), where.parent.is_dir()
    except OSError as error:  # a folder's name too long, or one that may not be looked into
        raise type(error)(f"path cannot be reached, {name[:80]!r}: {error.strerror}") from None
    if folder:
        raise IsADirectoryError(f"path is a folder, {str(where)!r}: add a file name to it")
    if where.suffix.lower() not in suffixes:
        raise ValueError(f"path must end in {' or '.join(suffixes)}, got {str(where)!r}")
    if not there:
        raise FileNotFoundError(f"the folder of path does not exist: {str(where.parent)!r}")
    return where


def write_by(where: Path, write: Callable[[Path], Any]) -> None:
    """Let a file be written beside its place and then put there, whole or not at all.

    Raises
    ------
    OSError
        If it cannot be written, naming the file that was asked for.
    """
    half = where.with_name(f".{where.stem}.{secrets.token_hex(4)}.tmp{where.suffix.lower()}")
    try:
        write(half)
        half.replace(where)
    except BaseException as error:
        half.unlink(missing_ok=True)
        if isinstance(error, OSError) and half.name in str(error.filename):
            raise type(error)(f"path cannot be written, {str(where)!r}: {error.strerror}") from None
        raise
