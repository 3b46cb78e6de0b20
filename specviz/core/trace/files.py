"""Traces as files: one zip of plain ``.npy`` columns and a small ``meta.json``.

::

    meta.json            format_version, k, full_vocab, the run's settings, strings, pieces
    prompt.npy           ids of the prompt
    nodes/<column>.npy   one row per proposal (:data:`specviz.core.trace.columns.NODES`)
    rounds/<column>.npy  one row per round (:data:`specviz.core.trace.columns.ROUNDS`)

A file may come from a stranger: nothing in it is executed, every size is bounded before memory is
taken for it (:mod:`specviz.core.trace.unpack`), and what it says is checked before anybody reads it
(:mod:`specviz.core.trace.validity`).
"""

from __future__ import annotations

import json
import os
import re
import secrets
import zipfile
from collections.abc import Iterator
from math import isfinite
from os import PathLike
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from specviz.core.trace.trace import Trace
from specviz.core.trace.unpack import (
    DAMAGED,
    MAX_BYTES,
    MAX_META_BYTES,
    Refused,
    check_directory,
    check_sizes,
    read_column,
)
from specviz.core.trace.validity import problem

FORMAT_VERSION = 1
MAX_K = 2**12
MAX_VOCAB = 2**20


class TraceFileError(ValueError):
    """A file that is no trace, is damaged, or is of a version this package does not read."""


# -- writing --------------------------------------------------------------------------------------


def save(trace: Trace, path: str | PathLike[str]) -> None:
    """Write a trace to a file, whole or not at all.

    Parameters
    ----------
    trace : Trace
        What to write.
    path : str or path
        Where; by custom it ends in ``.specviz``. A file of that name is replaced.

    Raises
    ------
    TypeError, FileNotFoundError, IsADirectoryError
        If ``path`` is no path, its folder does not exist, or it is a folder itself.
    ValueError
        If :attr:`Trace.meta` is not plain JSON, or :func:`load` would not read the file.

    Examples
    --------
    >>> save(trace, "fox.specviz")  # doctest: +SKIP
    """
    if not isinstance(trace, Trace):
        raise TypeError(f"trace must be a Trace, got {type(trace).__name__}")
    where = _checked_path(path)
    if where.is_dir():
        raise IsADirectoryError(f"path is a folder, {str(where)!r}: add a file name to it")
    if not where.parent.is_dir():
        raise FileNotFoundError(f"the folder of path does not exist: {str(where.parent)!r}")
    text = _meta_text(trace)
    wrong = _too_large(trace, len(text)) or problem(trace)
    if wrong:
        raise ValueError(f"this trace could not be read back, so it is not written: {wrong}")
    # beside its final place, so that moving it there is one step of the file system
    half = where.with_name(f".{where.name}.{secrets.token_hex(4)}.tmp")
    try:
        with half.open("xb") as file:
            _write(trace, text, file)
            file.flush()
            os.fsync(file.fileno())
        half.replace(where)
    except BaseException:
        half.unlink(missing_ok=True)
        raise


def _checked_path(path: Any) -> Path:
    if not isinstance(path, (str, PathLike)) or isinstance(os.fspath(path), bytes):
        raise TypeError(f"path must be a file name (str or path), got {type(path).__name__}")
    if not os.fspath(path):
        raise ValueError("path must be a file name, got an empty string")
    return Path(path)


def _meta_text(trace: Trace) -> bytes:
    content = {
        "format_version": FORMAT_VERSION,
        "k": trace.k,
        "full_vocab": trace.full_vocab,
        "meta": trace.meta,
        "strings": {str(token): text for token, text in trace.strings.items()},
        "prompt_pieces": trace.prompt_pieces,
        "pieces": trace.pieces,
    }
    try:  # ascii: half a UTF-8 character (a lone surrogate) comes back as it was
        return json.dumps(content, allow_nan=False, ensure_ascii=True).encode("ascii")
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"trace.meta must hold plain JSON values without NaN or infinity: {error}"
        ) from None


def _too_large(trace: Trace, meta_bytes: int) -> str | None:
    if not 1 <= trace.k <= MAX_K or not 0 <= trace.full_vocab <= MAX_VOCAB:
        return (
            f"k = {trace.k} must be within 1..{MAX_K}, and full_vocab = {trace.full_vocab} "
            f"within 0..{MAX_VOCAB}"
        )
    total = meta_bytes + sum(column.nbytes for _, column in _columns(trace))
    if total > MAX_BYTES:
        return f"it holds {total:,} bytes, a trace file at most {MAX_BYTES:,}"
    if meta_bytes > MAX_META_BYTES:
        return f"its settings and strings take {meta_bytes:,} bytes, at most {MAX_META_BYTES:,}"
    return None


def _columns(trace: Trace) -> Iterator[tuple[str, NDArray[Any]]]:
    yield "prompt.npy", trace.prompt
    for folder, table in (("nodes", trace.node_table), ("rounds", trace.round_table)):
        for name in table.names:
            yield f"{folder}/{name}.npy", table[name]


def _write(trace: Trace, meta: bytes, file: IO[bytes]) -> None:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        # ZipInfo's fixed date: the same trace gives the same bytes
        archive.writestr(_entry("meta.json"), meta)
        for name, column in _columns(trace):
            with archive.open(_entry(name), "w") as member:
                np.lib.format.write_array(
                    member, np.ascontiguousarray(column), version=(1, 0), allow_pickle=False
                )


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    return entry


# -- reading --------------------------------------------------------------------------------------


def load(path: str | PathLike[str]) -> Trace:
    """Read a trace; safe for files from strangers.

    Parameters
    ----------
    path : str or path
        A file that :func:`save` wrote.

    Raises
    ------
    TypeError, FileNotFoundError, IsADirectoryError
        If ``path`` is no path, there is no such file, or it is a folder.
    TraceFileError
        If the file is no trace, is damaged, of another version, or holds more than
        :data:`~specviz.core.trace.unpack.MAX_BYTES`, in one sentence that names it.

    Examples
    --------
    >>> trace = load("fox.specviz")  # doctest: +SKIP
    """
    where = _checked_path(path)
    if where.is_dir():
        raise IsADirectoryError(f"path is a folder, not a trace file: {str(where)!r}")
    if not where.exists():
        raise FileNotFoundError(f"no such trace file: {str(where)!r}")
    try:
        with where.open("rb") as file:
            check_directory(file, where.stat().st_size)
            with zipfile.ZipFile(file) as archive:
                return _read(archive)
    except Refused as refused:
        raise TraceFileError(f"{str(where)!r} {refused}") from None
    except DAMAGED as error:
        raise TraceFileError(f"{str(where)!r} is damaged: {error}") from None


def _read(archive: zipfile.ZipFile) -> Trace:
    members = {info.filename: info for info in archive.infolist()}
    if len(members) != len(archive.infolist()):
        raise Refused("is no trace file: two of its members have the same name")
    if "meta.json" not in members:
        raise Refused("is not a trace file: it has no meta.json")
    check_sizes(members)
    trace = _read_meta(archive, members["meta.json"])
    shapes = _expected(trace)
    if set(members) - {"meta.json"} != set(shapes):
        unknown = sorted(set(members) - {"meta.json"} - set(shapes))
        missing = sorted(set(shapes) - set(members))
        which = f"has the unknown member {unknown[0]!r}" if unknown else f"lacks {missing[0]!r}"
        raise Refused(f"is no trace of format version {FORMAT_VERSION}: it {which}")
    rows: dict[str, int] = {}
    for name, (dtype, width) in shapes.items():
        column = read_column(archive, members[name], dtype, width, rows)
        _put(trace, name, column)
    wrong = problem(trace)
    if wrong:
        raise Refused(f"is damaged: {wrong}")
    return trace


def _read_meta(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Trace:
    def finite(text: str) -> float:
        if not isfinite(float(text)):
            raise ValueError("a number is too large")
        return float(text)

    def refused(text: str) -> float:
        raise ValueError(f"{text} is no JSON")

    with archive.open(info) as member:
        text = member.read(info.file_size)
    try:
        content = json.loads(text, parse_float=finite, parse_constant=refused)
    except (ValueError, RecursionError) as error:
        raise Refused(f"has a meta.json that is not JSON: {error}") from None
    version = content.get("format_version") if isinstance(content, dict) else None
    if type(version) is not int:
        raise Refused("is not a trace file: its meta.json has no format_version")
    if version != FORMAT_VERSION:
        raise Refused(
            f"has format version {version}, and this specviz reads version {FORMAT_VERSION}"
            + (": a newer specviz reads it" if version > FORMAT_VERSION else "")
        )
    k, full_vocab = content.get("k"), content.get("full_vocab")
    if type(k) is not int or not 1 <= k <= MAX_K:
        raise Refused(f"says k = {k!r}; it must be a whole number from 1 to {MAX_K}")
    if type(full_vocab) is not int or not 0 <= full_vocab <= MAX_VOCAB:
        raise Refused(f"says full_vocab = {full_vocab!r}; it must be within 0..{MAX_VOCAB}")
    if not isinstance(content.get("meta"), dict):
        raise Refused("has a meta.json without the run's settings")
    trace = Trace(content["meta"], np.zeros(0, dtype=np.int64), k, full_vocab)
    strings = content.get("strings")
    if not isinstance(strings, dict) or not all(re.fullmatch("[0-9]{1,10}", s) for s in strings):
        raise Refused("has a meta.json whose strings are not a table of token id to text")
    trace.strings = {int(token): text for token, text in strings.items()}
    trace.prompt_pieces, trace.pieces = content.get("prompt_pieces"), content.get("pieces")
    if not isinstance(trace.prompt_pieces, list) or not isinstance(trace.pieces, list):
        raise Refused("has a meta.json without lists of pieces")
    return trace


def _expected(trace: Trace) -> dict[str, tuple[np.dtype[Any], tuple[int, ...]]]:
    """Every member but meta.json: its dtype and what follows the number of rows in its shape."""
    return {name: (column.dtype, column.shape[1:]) for name, column in _columns(trace)}


def _put(trace: Trace, name: str, column: NDArray[Any]) -> None:
    if name == "prompt.npy":
        trace.prompt = column
        return
    folder, _, file = name.partition("/")
    table = trace.node_table if folder == "nodes" else trace.round_table
    table.replace(file.removesuffix(".npy"), column)
