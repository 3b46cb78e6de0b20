"""Traces as files: one zip of plain ``.npy`` columns and a small ``meta.json``.

::

    meta.json            format_version, k, full_vocab, the run's settings, strings, pieces
    prompt.npy           ids of the prompt
    nodes/<column>.npy   one row per proposal (:data:`specviz.core.trace.columns.NODES`)
    rounds/<column>.npy  one row per round (:data:`specviz.core.trace.columns.ROUNDS`)

A file may come from a stranger. So there is no pickle and no code in it; the table of contents is
measured before it is parsed, every member's unpacked size before it is read, and every array's
header is compared with what the column must be before memory is taken for it. What the file says is
checked (:mod:`specviz.core.trace.validity`) before anybody reads it.
"""

from __future__ import annotations

import json
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from math import isfinite, prod
from os import PathLike
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from specviz.core import checks
from specviz.core.atomic_writing import write_by
from specviz.core.trace.columns import FULL_NODES, FULL_ROUNDS
from specviz.core.trace.trace import Trace
from specviz.core.trace.validity import problem

FORMAT_VERSION = 2
"""1 was never released: it could not say which settings a run must have."""

MAX_BYTES = 2**30
"""The most a trace file may hold, unpacked: some 270,000 rounds of four proposals."""

MAX_META_BYTES = 2**24
MAX_MEMBERS = 256
MAX_HEADER_BYTES = 512
MAX_RATIO = 500  # unpacked to packed; full distributions may be mostly 0 and are left out of it
RATIO_MATTERS = 2**24  # below this size a bomb is no bomb
MAX_K = 2**12
MAX_VOCAB = 2**20
FULL = {*(f"nodes/{n}.npy" for n in FULL_NODES), *(f"rounds/{n}.npy" for n in FULL_ROUNDS)}

DAMAGED = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, NotImplementedError)
"""What Python's zip reader raises on files that are not whole."""


class TraceFileError(ValueError):
    """A file that is no trace, is damaged, or is of a version this package does not read."""


class Refused(Exception):
    """What is wrong with a file, in words that follow its name."""


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
    checks.instance("trace", trace, Trace)
    where = checks.new_file(path)
    text = _meta_text(trace)
    wrong = _too_large(trace, len(text)) or problem(trace)
    if wrong:
        raise ValueError(f"this trace could not be read back, so it is not written: {wrong}")
    write_by(where, lambda half: _write(trace, text, half))


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


def _write(trace: Trace, meta: bytes, half: Path) -> None:
    with zipfile.ZipFile(half, "x", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
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
        :data:`MAX_BYTES`, in one sentence that names it.

    Examples
    --------
    >>> trace = load("fox.specviz")  # doctest: +SKIP
    """
    where = checks.old_file(path, what="trace file")
    try:
        with where.open("rb") as file:
            _check_directory(file, where.stat().st_size)
            with zipfile.ZipFile(file) as archive:
                return _read(archive)
    except Refused as refused:
        raise TraceFileError(f"{str(where)!r} {refused}") from None
    except DAMAGED as error:
        raise TraceFileError(f"{str(where)!r} is damaged: {error}") from None


def _check_directory(file: IO[bytes], size: int) -> None:
    """Refuse what is no zip of few members, before zipfile builds an object for each."""
    if size == 0:
        raise Refused("is empty")
    if size > MAX_BYTES:
        raise Refused(f"has {size:,} bytes; a trace file has at most {MAX_BYTES:,}")
    start = file.read(4)
    if start[:1] == b"\x80" and start[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05"):
        raise Refused("is a pickle, which can run code, so it is not read; a trace is a zip file")
    if start != b"PK\x03\x04":
        raise Refused("is not a trace file: it is not a zip file")
    file.seek(max(0, size - 42))
    tail = file.read()
    if len(tail) < 42 or tail[20:24] != b"PK\x05\x06" or tail[40:] != b"\0\0":
        raise Refused("is truncated or no trace file: its table of contents is missing")
    entries, table_bytes = struct.unpack("<H I", tail[30:32] + tail[32:36])
    if tail[:4] == b"PK\x06\x07" or entries > MAX_MEMBERS or table_bytes > MAX_MEMBERS * 128:
        raise Refused(f"is no trace file: it has more than {MAX_MEMBERS} members")
    file.seek(0)


def _check_sizes(members: Mapping[str, zipfile.ZipInfo]) -> None:
    """Refuse members that would unpack to too much, before one of them is read."""
    for info in members.values():
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise Refused(f"is no trace file: {info.filename!r} uses an unknown compression")
        if info.flag_bits & 1:
            raise Refused(f"is no trace file: {info.filename!r} is encrypted")
    unpacked = sum(info.file_size for info in members.values())
    if unpacked > MAX_BYTES:
        raise Refused(f"would unpack to {unpacked:,} bytes; a trace has at most {MAX_BYTES:,}")
    small = [info for name, info in members.items() if name not in FULL]
    unpacked = sum(info.file_size for info in small)
    packed = sum(info.compress_size for info in small)
    if unpacked > RATIO_MATTERS and unpacked > MAX_RATIO * packed:
        raise Refused(f"would unpack to over {MAX_RATIO} times its size; no trace does")
    if members["meta.json"].file_size > MAX_META_BYTES:
        raise Refused(f"has a meta.json of more than {MAX_META_BYTES:,} bytes")


def _read(archive: zipfile.ZipFile) -> Trace:
    members = {info.filename: info for info in archive.infolist()}
    if len(members) != len(archive.infolist()):
        raise Refused("is no trace file: two of its members have the same name")
    if "meta.json" not in members:
        raise Refused("is not a trace file: it has no meta.json")
    _check_sizes(members)
    trace = _read_meta(archive, members["meta.json"])
    # every member but meta.json: its dtype and what follows the number of rows in its shape
    shapes = {name: (column.dtype, column.shape[1:]) for name, column in _columns(trace)}
    if set(members) - {"meta.json"} != set(shapes):
        unknown = sorted(set(members) - {"meta.json"} - set(shapes))
        missing = sorted(set(shapes) - set(members))
        which = f"has the unknown member {unknown[0]!r}" if unknown else f"lacks {missing[0]!r}"
        raise Refused(f"is no trace of format version {FORMAT_VERSION}: it {which}")
    rows: dict[str, int] = {}
    for name, (dtype, width) in shapes.items():
        _put(trace, name, _read_column(archive, members[name], dtype, width, rows))
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
        way_out = "a newer specviz reads it" if version > FORMAT_VERSION else "record the run again"
        raise Refused(
            f"has format version {version}, and this specviz reads version {FORMAT_VERSION}: "
            f"{way_out}"
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


def _read_column(
    archive: zipfile.ZipFile,
    info: zipfile.ZipInfo,
    dtype: np.dtype[Any],
    width: tuple[int, ...],
    rows: dict[str, int],
) -> NDArray[Any]:
    """Read one ``.npy`` whose header is what it must be; the first of a folder sets its rows."""
    name = info.filename
    with archive.open(info) as member:
        shape, found = _header(name, member)
        start = member.tell()
    count = rows.setdefault(name.split("/")[0], shape[0])
    if found.str != dtype.str or shape != (count, *width):
        raise Refused(
            f"is damaged: {name!r} is {found.str} {shape}, not {dtype.str} {(count, *width)}"
        )
    if info.file_size != start + dtype.itemsize * prod(shape):
        raise Refused(f"is damaged: {name!r} is not as long as its header says")
    with archive.open(info) as member:
        try:
            column: NDArray[Any] = np.lib.format.read_array(
                member, allow_pickle=False, max_header_size=MAX_HEADER_BYTES
            )
        except ValueError as error:  # the member ends early
            raise EOFError(error) from None
        if member.read(1):  # also where zipfile compares the checksum
            raise EOFError("a member is longer than it says")
    return column


def _header(name: str, member: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Return shape and dtype as a ``.npy`` file's header says them."""
    try:
        if np.lib.format.read_magic(member) == (1, 0):
            shape, fortran_order, dtype = np.lib.format.read_array_header_1_0(
                member, max_header_size=MAX_HEADER_BYTES
            )
            if min(shape, default=-1) >= 0 and not fortran_order and not dtype.hasobject:
                return shape, dtype
    except DAMAGED:
        raise
    except Exception:  # numpy parses the header as a literal of Python: any of its errors
        pass
    raise Refused(f"is damaged: {name!r} is not a plain .npy array")


def _put(trace: Trace, name: str, column: NDArray[Any]) -> None:
    if name == "prompt.npy":
        trace.prompt = column
        return
    folder, _, file = name.partition("/")
    table = trace.node_table if folder == "nodes" else trace.round_table
    table.replace(file.removesuffix(".npy"), column)
