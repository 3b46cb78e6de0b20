"""A stranger's file: one clear sentence, nothing executed, memory bounded."""

from __future__ import annotations

import pickle
import struct
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest

from specviz.core.trace import files
from specviz.core.trace.files import TraceFileError, load, save
from tests.core.handmade import assert_equal, one_of_each
from tests.core.tampering import NOBODY, Harmful, header, meta, npy, refusal, tampered


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.specviz"


def test_where_no_trace_is(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no such trace file: '.*none'"):
        load(tmp_path / "none")
    with pytest.raises(IsADirectoryError, match="path is a folder, not a trace file"):
        load(tmp_path)
    with pytest.raises(TypeError, match="path must be a file name"):
        load(7)  # type: ignore[arg-type]


NO_TRACE: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "is empty"),
    "short": (b"PK\x03\x04", "is truncated or no trace file"),
    "text": (b"hello world, this is no trace\n" * 10, "is not a trace file: it is not a zip file"),
    "noise": (np.random.default_rng(0).bytes(5000), "is not a trace file: it is not a zip file"),
    "noise like a zip": (b"PK\x03\x04" + np.random.default_rng(1).bytes(5000), "is truncated or"),
    "pickle": (pickle.dumps(Harmful(), 4), "is a pickle, which can run code"),
    "old pickle": (pickle.dumps(Harmful(), 0), "it is not a zip file"),
}


@pytest.mark.parametrize("kind", NO_TRACE)
def test_what_is_no_trace_is_named(kind: str, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)
    content, says = NO_TRACE[kind]
    path.write_bytes(content)
    assert says in refusal(path)
    assert not Path("harm").exists()
    if "pickle" in kind:  # the file is harmful indeed
        pickle.loads(content)
        assert Path("harm").exists()


def test_a_truncated_file_is_refused_wherever_it_ends(path: Path) -> None:
    save(one_of_each(), path)
    whole = path.read_bytes()
    for length in range(0, len(whole), 97):
        path.write_bytes(whole[:length])
        assert refusal(path)


def test_a_damaged_byte_is_noticed_or_harmless(path: Path) -> None:
    trace = one_of_each()
    save(trace, path)
    whole = bytearray(path.read_bytes())
    rng, refused = np.random.default_rng(2), 0
    for at in rng.choice(len(whole), 200, replace=False):
        damaged = bytearray(whole)
        damaged[at] ^= 1 << int(rng.integers(8))
        path.write_bytes(damaged)
        try:
            assert_equal(load(path), trace)  # a byte that nobody reads, such as a file's date
        except TraceFileError:
            refused += 1
    assert refused > 125


def test_tampering_with_nothing_is_fine(path: Path) -> None:
    for options in ({}, {"compression": zipfile.ZIP_STORED}):
        tampered(path, {}, **options)
        assert_equal(load(path), one_of_each())


def test_headers_made_here_are_like_numpys() -> None:
    assert npy(NOBODY) == header() + bytes(52)


MEMBERS: dict[str, tuple[dict[str, bytes | None], str]] = {
    "no meta": ({"meta.json": None}, "has no meta.json"),
    "not json": ({"meta.json": b"{'a': 1}"}, "meta.json that is not JSON"),
    "not a table": ({"meta.json": b"[1]"}, "has no format_version"),
    "not text": ({"meta.json": b"\xff\xfe\xfd"}, "meta.json that is not JSON"),
    "too deep": ({"meta.json": b"[" * 100_000}, "meta.json that is not JSON"),
    "nan": ({"meta.json": meta()[:-1] + b', "x": NaN}'}, "not JSON: NaN is no JSON"),
    "huge number": ({"meta.json": meta()[:-1] + b', "x": 1e999}'}, "a number is too large"),
    "endless integer": ({"meta.json": meta()[:-1] + b', "x": ' + b"9" * 9999 + b"}"}, "not JSON"),
    "no version": ({"meta.json": meta(format_version="absent")}, "has no format_version"),
    "true version": ({"meta.json": meta(format_version=True)}, "has no format_version"),
    "version 1": (
        {"meta.json": meta(format_version=1)},
        "has format version 1, and this specviz reads version 2: record the run again",
    ),
    "version 3": (
        {"meta.json": meta(format_version=3), "nodes/new.npy": b""},
        "has format version 3, and this specviz reads version 2: a newer specviz reads it",
    ),
    "k 0": ({"meta.json": meta(k=0)}, "says k = 0; it must be a whole number from 1 to"),
    "k huge": ({"meta.json": meta(k=10**9)}, "says k = 1000000000"),
    "k text": ({"meta.json": meta(k="3")}, "says k = '3'"),
    "k other": ({"meta.json": meta(k=4)}, "'nodes/top_ids.npy' is <i4 (13, 7), not <i4 (13, 9)"),
    "vocab": ({"meta.json": meta(full_vocab=2**30)}, "says full_vocab = 1073741824"),
    "vocab of none": ({"meta.json": meta(full_vocab=5)}, "it lacks 'nodes/full_p.npy'"),
    "no settings": ({"meta.json": meta(meta=None)}, "without the run's settings"),
    "strings list": ({"meta.json": meta(strings=[])}, "strings are not a table"),
    "strings key": ({"meta.json": meta(strings={"-1": ""})}, "strings are not a table"),
    "strings value": ({"meta.json": meta(strings={"1": 5})}, "must all be text"),
    "pieces": ({"meta.json": meta(pieces="abc")}, "without lists of pieces"),
    "pieces number": ({"meta.json": meta(pieces=[1] * 12)}, "must all be text"),
    "pieces few": ({"meta.json": meta(pieces=["a"])}, "it has 1 pieces for 12 tokens"),
    "prompt pieces": ({"meta.json": meta(prompt_pieces=["a"])}, "1 prompt_pieces for 2 tokens"),
    "vocabulary": ({"meta.json": meta(meta={"vocab_size": 5})}, "the vocabulary has 5 tokens"),
    "unknown": ({"nodes/extra.npy": b"x"}, "has the unknown member 'nodes/extra.npy'"),
    "outside": ({"../../evil.npy": b"x"}, "has the unknown member '../../evil.npy'"),
    "missing": ({"rounds/gamma.npy": None}, "it lacks 'rounds/gamma.npy'"),
    "not npy": ({"nodes/token.npy": b"x" * 400}, "'nodes/token.npy' is not a plain .npy array"),
    "objects": (
        {"nodes/token.npy": npy(np.array([Harmful()] * 13, dtype=object), allow_pickle=True)},
        "'nodes/token.npy' is not a plain .npy array",
    ),
    "pickle inside": ({"nodes/token.npy": pickle.dumps(Harmful())}, "not a plain .npy array"),
    "records": ({"nodes/token.npy": npy(np.zeros(13, dtype="i4,f8"))}, "is |V12 (13,), not <i4"),
    "other dtype": ({"nodes/token.npy": npy(NOBODY.astype("<i8"))}, "is <i8 (13,), not <i4 (13,)"),
    "big endian": ({"nodes/p.npy": npy(np.zeros(13, dtype=">f8"))}, "is >f8 (13,), not <f8"),
    "text dtype": ({"nodes/p.npy": npy(np.array(["a"] * 13))}, "is <U1 (13,), not <f8"),
    "fortran": (
        {"nodes/top_p.npy": npy(np.asfortranarray(np.zeros((13, 7))))},
        "not a plain .npy array",
    ),
    "no axis": ({"nodes/token.npy": npy(np.zeros((), dtype="<i4"))}, "not a plain .npy array"),
    "wide": ({"nodes/token.npy": npy(np.zeros((13, 2), dtype="<i4"))}, "is <i4 (13, 2)"),
    "short column": ({"nodes/u.npy": npy(np.zeros(12))}, "is <f8 (12,), not <f8 (13,)"),
    "long tail": ({"nodes/token.npy": npy(NOBODY) + b"x"}, "not as long as its header says"),
    "cut": ({"nodes/token.npy": npy(NOBODY)[:-1]}, "not as long as its header says"),
    "huge shape": (
        {"nodes/token.npy": header(shape="(99999999999999999,)") + bytes(52)},
        "'nodes/token.npy' is not as long as its header says",
    ),
    "negative shape": (
        {"nodes/token.npy": header(shape="(-13,)") + bytes(52)},
        "not a plain .npy array",
    ),
    "long header": ({"nodes/token.npy": header(length=60_000)}, "not a plain .npy array"),
    "code in header": (
        {"nodes/token.npy": header(descr="__import__('os').mkdir('harm')") + bytes(52)},
        "not a plain .npy array",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", MEMBERS)
def test_tampered_members_are_refused(
    kind: str, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(path.parent)
    changes, says = MEMBERS[kind]
    tampered(path, changes)
    sentence = refusal(path)
    assert says in sentence
    assert not Path("harm").exists()


# -- bombs -------------------------------------------------------------------------------


def peak_of_refusal(path: Path) -> tuple[str, int]:
    """The sentence, and the most memory that was taken on the way to it."""
    tracemalloc.start()
    try:
        return refusal(path), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_zip_bomb_is_not_unpacked(path: Path) -> None:
    zeros = bytes(32 * 2**20)
    tampered(path, {"nodes/token.npy": zeros})
    assert path.stat().st_size < 2**17
    sentence, peak = peak_of_refusal(path)
    assert "would unpack to over 500 times its size" in sentence
    assert peak < 2**20


def test_sizes_are_bounded_before_anything_is_read(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    noise = np.random.default_rng(0).bytes(2**21)
    tampered(path, {"nodes/token.npy": noise})
    monkeypatch.setattr(files, "MAX_BYTES", 2**20 + 2**19)
    sentence, peak = peak_of_refusal(path)
    assert "has 2,1" in sentence and "a trace file has at most 1,572,864" in sentence
    tampered(path, {"nodes/token.npy": bytes(2**21)})
    sentence, more = peak_of_refusal(path)
    assert "would unpack to 2,1" in sentence and "a trace has at most 1,572,864" in sentence
    assert max(peak, more) < 2**19


def test_a_large_meta_is_not_read(path: Path) -> None:
    tampered(path, {"meta.json": meta(x=" " * 2**24)}, compression=zipfile.ZIP_STORED)
    sentence, peak = peak_of_refusal(path)
    assert "has a meta.json of more than 16,777,216 bytes" in sentence
    assert peak < 2**20


def test_a_member_that_unpacks_to_more_than_it_says_is_refused(path: Path) -> None:
    """The table of contents promises 13 rows; the packed data are 32 MiB."""
    honest = npy(NOBODY)
    tampered(path, {"nodes/token.npy": honest + bytes(32 * 2**20)})
    content = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        start = archive.start_dir
    at = content.index(b"nodes/token.npy", start) - 46
    assert content[at : at + 4] == b"PK\x01\x02"
    content[at + 24 : at + 28] = struct.pack("<I", len(honest))
    path.write_bytes(content)
    sentence, peak = peak_of_refusal(path)
    assert "is damaged" in sentence
    assert peak < 2**22


def test_many_members_are_refused_before_they_are_listed(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for i in range(5_000):
            archive.writestr(f"{i}", b"")
    sentence, peak = peak_of_refusal(path)
    assert "it has more than 256 members" in sentence
    assert peak < 2**17


def test_two_members_of_one_name_are_refused(path: Path) -> None:
    save(one_of_each(), path)
    with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate name"):
        archive.writestr("meta.json", meta())
    assert "two of its members have the same name" in refusal(path)


def test_other_packings_are_refused(path: Path) -> None:
    tampered(path, {}, compression=zipfile.ZIP_LZMA)
    assert "uses an unknown compression" in refusal(path)


def test_encrypted_members_are_refused(path: Path) -> None:
    save(one_of_each(), path)
    content = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        at = archive.start_dir
    content[at + 8] |= 1
    path.write_bytes(content)
    assert "is encrypted" in refusal(path)
