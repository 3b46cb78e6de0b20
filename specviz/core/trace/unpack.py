"""Reading a zip of ``.npy`` columns that may come from a stranger.

No pickle, no code, and no memory before its size is known and bounded: the table of contents is
measured before it is parsed, every member's unpacked size before it is read, and every array's
header is compared with what the column must be before memory is taken for it.
"""

from __future__ import annotations

import re
import struct
import zipfile
import zlib
from collections.abc import Mapping
from math import prod
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from specviz.core.trace.columns import FULL_NODES, FULL_ROUNDS

MAX_BYTES = 2**30
"""The most a trace file may hold, unpacked: some 270,000 rounds of four proposals."""

MAX_META_BYTES = 2**24
MAX_RATIO = 500  # unpacked to packed; whole distributions may be mostly 0 and are left out of it
RATIO_MATTERS = 2**24  # below this size a bomb is no bomb
MAX_MEMBERS = 256
CHUNK = 2**20
WHOLE_DISTRIBUTIONS = {
    *(f"nodes/{n}.npy" for n in FULL_NODES),
    *(f"rounds/{n}.npy" for n in FULL_ROUNDS),
}

DAMAGED = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, NotImplementedError)
"""What Python's zip reader raises on files that are not whole."""

# A .npy header as numpy writes it; anything else (objects, records) is not one of ours.
HEADER = re.compile(
    rb"\{'descr': '([<|][a-z][0-9])', 'fortran_order': False, "
    rb"'shape': \(([0-9]{1,18}),(?: ([0-9]{1,18}))?\), \} *\n"
)
MAGIC = b"\x93NUMPY\x01\x00"


class Refused(Exception):
    """What is wrong with a file, in words that follow its name."""


def check_directory(file: IO[bytes], size: int) -> None:
    """Refuse what is no zip of few members, before zipfile builds an object for each."""
    if size == 0:
        raise Refused("is empty")
    if size > MAX_BYTES:
        raise Refused(f"has {size:,} bytes; a trace file has at most {MAX_BYTES:,}")
    start = file.read(4)
    if start[:1] == b"\x80" and start[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05"):
        raise Refused("is a pickle, which can run code, so it is not read; a trace is a zip file")
    if start != b"PK\x03\x04":
        raise Refused("is not a trace file: it is no zip file")
    file.seek(max(0, size - 42))
    tail = file.read()
    if len(tail) < 42 or tail[20:24] != b"PK\x05\x06" or tail[40:] != b"\0\0":
        raise Refused("is truncated or no trace file: its table of contents is missing")
    entries, table_bytes = struct.unpack("<H I", tail[30:32] + tail[32:36])
    if tail[:4] == b"PK\x06\x07" or entries > MAX_MEMBERS or table_bytes > MAX_MEMBERS * 128:
        raise Refused(f"is no trace file: it has more than {MAX_MEMBERS} members")
    file.seek(0)


def check_sizes(members: Mapping[str, zipfile.ZipInfo]) -> None:
    """Refuse members that would unpack to too much, before one of them is read."""
    for info in members.values():
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise Refused(f"is no trace file: {info.filename!r} is packed in an unknown way")
        if info.flag_bits & 1:
            raise Refused(f"is no trace file: {info.filename!r} is encrypted")
    unpacked = sum(info.file_size for info in members.values())
    if unpacked > MAX_BYTES:
        raise Refused(f"would unpack to {unpacked:,} bytes; a trace has at most {MAX_BYTES:,}")
    small = [info for name, info in members.items() if name not in WHOLE_DISTRIBUTIONS]
    unpacked = sum(info.file_size for info in small)
    packed = sum(info.compress_size for info in small)
    if unpacked > RATIO_MATTERS and unpacked > MAX_RATIO * packed:
        raise Refused(f"would unpack to over {MAX_RATIO} times its size; no trace does")
    if members["meta.json"].file_size > MAX_META_BYTES:
        raise Refused(f"has a meta.json of more than {MAX_META_BYTES:,} bytes")


def read_column(
    archive: zipfile.ZipFile,
    info: zipfile.ZipInfo,
    dtype: np.dtype[Any],
    width: tuple[int, ...],
    rows: dict[str, int],
) -> NDArray[Any]:
    """Read one ``.npy`` of a known type into memory of a known size.

    Parameters
    ----------
    archive, info
        Where it stands.
    dtype, width
        What it must be, and what must follow the number of rows in its shape.
    rows : dict
        Folder → number of rows; the first column read in a folder decides for the others.

    Raises
    ------
    Refused
        If it is anything else, before memory is taken for it.
    """
    name = info.filename
    with archive.open(info) as member:
        header = _header(name, member)
        found = header[1].decode("ascii")
        shape = tuple(int(n) for n in header.groups()[1:] if n is not None)
        count = rows.setdefault(name.split("/")[0], shape[0])
        if found != dtype.str or shape != (count, *width):
            raise Refused(
                f"is damaged: {name!r} is {found} {shape}, not {dtype.str} {(count, *width)}"
            )
        nbytes = dtype.itemsize * prod(shape)
        if info.file_size != len(MAGIC) + 2 + len(header[0]) + nbytes:
            raise Refused(f"is damaged: {name!r} is not as long as its header says")
        column = np.empty(shape, dtype=dtype)
        _fill(member, column.reshape(-1).view(np.uint8))
    return column


def _header(name: str, member: IO[bytes]) -> re.Match[bytes]:
    start = member.read(len(MAGIC) + 2)
    if len(start) == len(MAGIC) + 2 and start.startswith(MAGIC):
        (length,) = struct.unpack("<H", start[-2:])
        if length <= 512:
            header = HEADER.fullmatch(member.read(length))
            if header is not None:
                return header
    raise Refused(f"is damaged: {name!r} is not a plain .npy array")


def _fill(member: IO[bytes], memory: NDArray[np.uint8]) -> None:
    done = 0
    while done < len(memory):
        block = member.read(min(CHUNK, len(memory) - done))
        if not block:
            raise EOFError("a member ends early")
        memory[done : done + len(block)] = np.frombuffer(block, dtype=np.uint8)
        done += len(block)
    if member.read(1):  # also where zipfile compares the checksum
        raise EOFError("a member is longer than it says")
