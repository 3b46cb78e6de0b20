"""Six Jane Austen novels (public domain), the hard domain: read from an R package, without R.

The Debian package ``r-cran-janeaustenr`` carries the texts in ``Rdata.rdb``: compressed chunks,
each holding one serialised R object. This module reads the chunks (zlib, bzip2 or xz) and the
one kind of object it needs, a character vector. The novels are never part of this repository.

The format is described in the R Internals manual, section "Serialization Formats".
"""

from __future__ import annotations

import bz2
import lzma
import re
import struct
import subprocess
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path

_STRSXP, _CHARSXP = 16, 9
_FIRST_WORDS = {
    "The family of Dashwood had long been settled in Sussex": "Sense and Sensibility",
    "It is a truth universally acknowledged": "Pride and Prejudice",
    "About thirty years ago": "Mansfield Park",
    "Emma Woodhouse, handsome, clever, and rich": "Emma",
    "No one who had ever seen Catherine Morland": "Northanger Abbey",
    "Sir Walter Elliot, of Kellynch Hall": "Persuasion",
}
_EDITORIAL = re.compile(r"^[\[*]|conformity with modern British usage")
"""Notes by later editors and transcribers, which are not the author's."""
MIN_PARAGRAPH = 12
"""Shorter paragraphs (numbers, signatures) are dropped; in characters."""


def chunks(data: bytes) -> Iterator[bytes]:
    """Yield the decompressed chunks of an ``.rdb`` file, in order.

    Each chunk is a big-endian length of the plain bytes, then zlib data, or a type letter
    (``2`` bzip2, ``Z`` xz) and its data. Their compressed lengths are in the index file, which
    is not needed: every format says itself where it ends.

    Raises
    ------
    ValueError
        If a chunk does not decompress to the length it declares.
    """
    at = 0
    while at < len(data):
        (length,) = struct.unpack_from(">I", data, at)
        kind, body = data[at + 4 : at + 5], data[at + 5 :]
        if kind == b"2":
            bzip = bz2.BZ2Decompressor()
            plain, rest = bzip.decompress(body), bzip.unused_data
        elif kind == b"Z":
            filters = [{"id": lzma.FILTER_LZMA2, "preset": 6}]
            xz = lzma.LZMADecompressor(format=lzma.FORMAT_RAW, filters=filters)
            plain, rest = xz.decompress(body), xz.unused_data
        else:
            deflate = zlib.decompressobj()
            plain, rest = deflate.decompress(data[at + 4 :]), deflate.unused_data
        if len(plain) != length:
            raise ValueError(
                f"chunk at byte {at} should hold {length} bytes but holds {len(plain)}: "
                "this is not an R 'Rdata.rdb' file, or it is damaged"
            )
        yield plain
        at = len(data) - len(rest)


def character_vector(plain: bytes) -> list[str] | None:
    """Decode a serialised R character vector (XDR, version 2 or 3); None for other objects."""
    if plain[:2] != b"X\n":
        return None
    (version,) = struct.unpack_from(">i", plain, 2)
    at = 14
    if version == 3:
        at += 4 + struct.unpack_from(">i", plain, at)[0]  # the name of the native encoding
    flags, count = struct.unpack_from(">Ii", plain, at)
    if flags & 0xFF != _STRSXP:
        return None
    at += 8
    lines = []
    for _ in range(count):
        flags, length = struct.unpack_from(">Ii", plain, at)
        if flags & 0xFF != _CHARSXP:
            raise ValueError(f"expected a string at byte {at} of an R character vector")
        at += 8
        lines.append(plain[at : at + max(length, 0)].decode("utf-8", "replace"))
        at += max(length, 0)  # a length of -1 is NA
    return lines


def paragraphs(lines: list[str]) -> list[str]:
    """Join lines into paragraphs and clean them: plain quotes, no underscores, no headings."""
    out = []
    for block in re.split(r"\n\s*\n", "\n".join(lines)):
        text = re.sub(r"\s+", " ", block.replace("_", "")).strip()
        for fancy, plain in (("“", '"'), ("”", '"'), ("’", "'"), ("‘", "'"), ("--", "—")):
            text = text.replace(fancy, plain)
        heading = re.match(r"(?i)(chapter|volume)\b", text) or text.upper() == text
        if len(text) >= MIN_PARAGRAPH and not heading and not _EDITORIAL.search(text):
            out.append(text)
    return out


def _title(texts: list[str], number: int) -> str:
    for text in texts[:12]:
        for words, title in _FIRST_WORDS.items():
            if text.startswith(words):
                return title
    return f"text {number}"


def _read_rdb(path: Path) -> bytes:
    if path.suffix != ".deb":
        return path.read_bytes()
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["dpkg-deb", "-x", str(path), folder], check=True)
        found = sorted(Path(folder).rglob("Rdata.rdb"))
        if not found:
            raise ValueError(f"path: no Rdata.rdb in {path}; give the r-cran-janeaustenr package")
        return found[0].read_bytes()


def novels(path: str | Path) -> dict[str, list[str]]:
    """Read the novels.

    Parameters
    ----------
    path
        The Debian package ``r-cran-janeaustenr*.deb``, or the ``Rdata.rdb`` inside it.

    Returns
    -------
    dict
        Title to cleaned paragraphs, in the order of the file.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file holds no texts.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(
            f"path: {path} is not a file; get one with 'apt-get download r-cran-janeaustenr'"
        )
    books: dict[str, list[str]] = {}
    for plain in chunks(_read_rdb(path)):
        lines = character_vector(plain)
        if lines:
            texts = paragraphs(lines)
            books[_title(texts, len(books) + 1)] = texts
    if not books:
        raise ValueError(f"path: {path} holds no character vectors, so no novels")
    return books
