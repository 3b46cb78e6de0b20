"""Trace files that a stranger changed, and the sentence they are refused with."""

from __future__ import annotations

import io
import json
import os
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from specviz.core.trace.files import FORMAT_VERSION, TraceFileError, load, save
from tests.core.handmade import one_of_each


def refusal(path: Path) -> str:
    """The one sentence a file is refused with."""
    with pytest.raises(TraceFileError) as caught:
        load(path)
    sentence = str(caught.value)
    assert sentence.startswith(repr(str(path)))
    assert "\n" not in sentence
    return sentence.removeprefix(repr(str(path)) + " ")


class Harmful:
    def __reduce__(self) -> Any:
        return (os.mkdir, ("harm",))


def tampered(path: Path, changes: dict[str, bytes | None], **options: Any) -> None:
    """Write a trace file with other content in some members (None: without it)."""
    save(one_of_each(), path)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members.update({name: content for name, content in changes.items() if content is not None})
    with zipfile.ZipFile(path, "w", **{"compression": zipfile.ZIP_DEFLATED, **options}) as archive:
        for name, content in members.items():
            if changes.get(name, b"") is not None:
                archive.writestr(name, content)


def meta(**changes: Any) -> bytes:
    content = {
        "format_version": FORMAT_VERSION, "k": 3, "full_vocab": 0, "meta": {}, "strings": {},
        "prompt_pieces": [], "pieces": [], **changes,
    }  # fmt: skip
    return json.dumps({k: v for k, v in content.items() if v != "absent"}).encode()


def npy(array: Any, **options: Any) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array(file, np.asarray(array), version=(1, 0), **options)
    return file.getvalue()


def header(descr: str = "'<i4'", shape: str = "(13,)", length: int = 118) -> bytes:
    """The first bytes of a .npy file."""
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}"
    return (
        b"\x93NUMPY\x01\x00" + struct.pack("<H", length) + text.encode().ljust(length - 1) + b"\n"
    )


NOBODY = np.zeros(13, dtype="<i4")
