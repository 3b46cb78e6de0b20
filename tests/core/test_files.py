"""Trace files: exact round trips, whole or not at all, and no harm from a stranger's file."""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from specviz.core.trace import files
from specviz.core.trace.columns import NODES, ROUNDS
from specviz.core.trace.files import load, save
from specviz.core.trace.trace import Trace
from tests.core.handmade import add_round, assert_equal, decoded, empty, one_of_each

ODD_TEXT = [
    "</script><img src=x onerror=alert(1)>", "<!--", "\u2028\u2029", "\u202eright to left",
    "\udc80 half a character", "\x00\x1f", "\n" * 10_000, "🙂", "",
]  # fmt: skip


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.specviz"


# -- round trips ----------------------------------------------------------------------------------

TRACES: dict[str, Callable[[], Trace]] = {
    "by hand": one_of_each,
    "empty": empty,
    "rejection": decoded,
    "match": lambda: decoded(verify="match"),
    "block": lambda: decoded(verify="block"),
    "greedy": lambda: decoded(temperature=0.0),
    "plain": lambda: decoded(gamma=0),
    "top k": lambda: decoded(top_k=2, k=3),
    "whole distributions": lambda: decoded(full_distributions=True),
    "no tokens": lambda: decoded(tokens=0),
}


@pytest.mark.parametrize("kind", TRACES)
def test_a_round_trip_is_exact(kind: str, path: Path) -> None:
    trace = TRACES[kind]()
    trace.save(path)
    assert_equal(Trace.load(str(path)), trace)


def test_any_text_comes_back_as_it_was(path: Path) -> None:
    trace = one_of_each()
    trace.strings = dict(enumerate(ODD_TEXT))
    trace.pieces = (ODD_TEXT * 2)[: len(trace.tokens)]
    trace.prompt_pieces = ODD_TEXT[:2]
    trace.meta["target"] = {"name": ODD_TEXT[0], "sizes": [1, 2.5, None, True, 2**70]}
    save(trace, path)
    assert_equal(load(path), trace)


def test_a_loaded_trace_can_grow(path: Path) -> None:
    for trace in (one_of_each(), empty()):
        save(trace, path)
        again = load(path)
        for grown in (trace, again):
            add_round(grown, closing=3)
            add_round(grown, [1, 2], path=[0], closing=3)
        assert again.same_as(trace)


def test_the_same_trace_gives_the_same_bytes(path: Path) -> None:
    save(one_of_each(), path)
    first = path.read_bytes()
    save(load(path), path)
    assert path.read_bytes() == first


def test_a_file_is_a_zip_of_plain_arrays(path: Path) -> None:
    trace = one_of_each()
    save(trace, path)
    with zipfile.ZipFile(path) as archive:
        meta = json.loads(archive.read("meta.json"))
        assert (meta["format_version"], meta["k"], meta["full_vocab"]) == (2, 3, 0)
        names = {f"nodes/{n}.npy" for n in NODES} | {f"rounds/{n}.npy" for n in ROUNDS}
        assert set(archive.namelist()) == names | {"meta.json", "prompt.npy"}
        tokens = np.load(io.BytesIO(archive.read("nodes/token.npy")), allow_pickle=False)
    assert tokens.tolist() == trace.node_table["token"].tolist()
    assert path.stat().st_mode & 0o777 == 0o666 & ~_umask()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


# -- writing: whole or not at all -----------------------------------------------------------------


def test_a_failure_in_mid_write_leaves_the_old_file_and_nothing_else(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(one_of_each(), path)
    before = path.read_bytes()

    def fails(trace: Trace, meta: bytes, file: Any) -> None:
        file.write_bytes(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(files, "_write", fails)
    with pytest.raises(OSError, match="disk full"):
        save(empty(), path)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_where_a_trace_cannot_go(tmp_path: Path) -> None:
    trace = empty()
    with pytest.raises(FileNotFoundError, match=r"the folder of path does not exist: '.*nowhere'"):
        save(trace, tmp_path / "nowhere" / "run.specviz")
    with pytest.raises(IsADirectoryError, match=r"path is a folder, '.*': add a file name"):
        save(trace, tmp_path)
    for wrong in (3, None, b"bytes", io.BytesIO()):
        with pytest.raises(TypeError, match="path must be a file name"):
            save(trace, wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="must be a file name, got ''"):
        save(trace, "")
    with pytest.raises(TypeError, match="trace must be a Trace, got dict"):
        save({}, tmp_path / "x")  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("value", [float("nan"), float("inf"), np.zeros(2), {1, 2}, b"bytes"])
def test_settings_that_are_not_json_are_refused(value: Any, path: Path) -> None:
    with pytest.raises(ValueError, match=r"trace\.meta must hold plain JSON values"):
        save(empty(setting=value), path)
    assert not path.exists()


def test_a_trace_that_could_not_be_read_back_is_not_written(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = one_of_each()
    trace.node_table.replace("p", np.full(len(trace.node_table), np.nan))
    with pytest.raises(ValueError, match="not written: nodes/p holds NaN where a number must be"):
        save(trace, path)
    monkeypatch.setattr(files, "MAX_BYTES", 1000)
    with pytest.raises(ValueError, match=r"not written: it holds .* bytes, a trace file at most"):
        save(one_of_each(), path)
    assert not path.exists()
