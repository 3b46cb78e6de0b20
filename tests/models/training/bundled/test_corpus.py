"""The corpus half of the training recipe: texts, tokenizer, splits."""

from __future__ import annotations

import bz2
import hashlib
import json
import lzma
import random
import re
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from transformers import AutoTokenizer, PreTrainedTokenizerBase

from specviz.models.training.bundled import corpus, grammar, prose, records, stories

STORIES = [stories.story(seed) for seed in range(400)]
RECORDS = [records.record(seed) for seed in range(400)]


# -- the template language ---------------------------------------------------------------------


def test_templates_choose_fill_and_capitalise() -> None:
    phrases = grammar.read_phrases("== greet (who)\n[Who] {waved|bowed} to [who.him].\n")
    slots: dict[str, grammar.Value] = {"cat": {"call": "the cat", "him": "her"}, "thing": "old map"}
    writer = grammar.Writer(phrases, random.Random(0), slots)
    text = writer.write(grammar.parse("[A thing]! <greet cat>"))
    assert re.fullmatch(r"An old map! The cat (waved|bowed) to her\.", text)


@pytest.mark.parametrize("bad", ["{a|b", "a}", "a|b", "[slot", "[a b c]"])
def test_a_broken_template_is_refused(bad: str) -> None:
    with pytest.raises(ValueError, match=r"template|slot"):
        grammar.parse(bad)


@pytest.mark.parametrize(
    ("noun", "expected"),
    [("old map", "an old map"), ("red kite", "a red kite"), ("useful map", "a useful map")],
)
def test_articles(noun: str, expected: str) -> None:
    assert grammar.with_article(noun) == expected


# -- stories and records -----------------------------------------------------------------------


def test_the_texts_are_those_the_bundled_models_were_trained_on() -> None:
    """Editing a template changes the corpus: then retrain, and only then change these."""
    digest = {
        name: hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]
        for name, texts in (("stories", STORIES), ("records", RECORDS))
    }
    assert digest == {"stories": "3e10a58474c66db5", "records": "ee1db1756fcf390d"}


def _faults(text: str) -> list[str]:
    """What is wrong with a text, as a list of rule names."""
    rules = {
        "leftover mark": r"[{}<>|]|\[(?!x\]| \])",
        "double space": r"  ",
        "space before a stop": r" [,.!?;:]",
        "doubled stop": r"[.,!?]{2}",
        "article": r"\b[Aa] [aeiou](?!ne\b)|\b[Aa]n [^aeiou]",
        "lower case after a stop": r"[.!?] [a-z]",
    }
    found = [name for name, pattern in rules.items() if re.search(pattern, text)]
    return found + (["odd quotes"] if text.count('"') % 2 else [])


@pytest.mark.parametrize("write", [stories.story, records.record])
def test_a_seed_fixes_the_text(write: Callable[[int], str]) -> None:
    assert write(11) == write(11)
    assert len({write(seed) for seed in range(100)}) > 95


@pytest.mark.parametrize("texts", [STORIES, RECORDS], ids=["stories", "records"])
def test_texts_are_well_formed(texts: list[str]) -> None:
    assert [(text, _faults(text)) for text in texts if _faults(text)] == []


def test_the_fault_finder_finds_faults() -> None:
    bad = {
        "leftover mark": "He saw [thing].",
        "double space": "He saw  it.",
        "space before a stop": "He saw it .",
        "doubled stop": "He saw it..",
        "article": "He saw a owl.",
        "lower case after a stop": "He saw it. she did not.",
        "odd quotes": 'He said, "Yes.',
    }
    assert {name: _faults(text) for name, text in bad.items()} == {n: [n] for n in bad}


def test_a_story_keeps_to_its_own_people() -> None:
    words = stories._library()[0]
    names = {n for sex in words["children"].values() for n in sex}
    names |= {n for by_sex in words["animals"].values() for sex in by_sex.values() for n in sex}
    for text in STORIES:
        used = names & set(re.findall(r"[A-Z][a-z]+", text))
        introduced = set(re.findall(r"named ([A-Z][a-z]+)", text))
        introduced |= set(re.findall(r"(?:^|letter to )([A-Z][a-z]+) (?:was a|at)", text))
        words_too = {"Will"}  # also the word that opens a question
        assert used - words_too <= introduced, text


def test_every_plot_is_told_and_every_slot_is_known() -> None:
    assert len(stories.plots()) >= 14
    for seed in range(4000):
        stories.story(seed)  # an unknown slot or phrase raises KeyError
    assert 700 < np.mean([len(text) for text in STORIES]) < 1300


def test_records_repeat_themselves_and_stories_less_so() -> None:
    def repeated(texts: list[str]) -> float:
        """Share of words at which the last three words already occurred in the document."""
        hits = total = 0
        for text in texts:
            seen, words = set(), text.split()
            for at in range(3, len(words)):
                hits += tuple(words[at - 3 : at]) in seen
                seen.add(tuple(words[at - 3 : at]))
            total += len(words)
        return hits / total

    assert repeated(RECORDS) > 0.25 > repeated(STORIES)


@pytest.mark.parametrize("kind", records.KINDS, ids=lambda kind: kind.__name__)
def test_each_kind_of_record(kind: Callable[[random.Random], str]) -> None:
    texts = [kind(random.Random(seed)) for seed in range(60)]
    assert [_faults(text) for text in texts if _faults(text)] == []
    assert len(set(texts)) > 40


# -- the novels --------------------------------------------------------------------------------


def _serialised(lines: list[str], version: int = 3) -> bytes:
    """A character vector as R writes it (XDR)."""
    head = b"X\n" + struct.pack(">iii", version, 0x040300, 0x030500)
    if version == 3:
        head += struct.pack(">i", 5) + b"UTF-8"
    body = struct.pack(">Ii", 16, len(lines))
    for line in lines:
        encoded = line.encode()
        body += struct.pack(">Ii", 0x40009, len(encoded)) + encoded
    return head + body


NOVEL = [
    "CHAPTER I",
    "",
    "It is a truth universally acknowledged, that a _test_ must",
    "be short--and “quoted”.",
    "",
    "A second paragraph, long enough to be kept, ends this novel.",
]


def _xz(data: bytes) -> bytes:
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 6}]
    return lzma.compress(data, format=lzma.FORMAT_RAW, filters=filters)


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize(
    ("code", "compress"),
    [(b"", zlib.compress), (b"2", bz2.compress), (b"Z", _xz)],
    ids=["zlib", "bzip2", "xz"],
)
def test_novels_are_read_from_a_synthetic_rdb(
    tmp_path: Path, version: int, code: bytes, compress: Callable[[bytes], bytes]
) -> None:
    plain = _serialised(NOVEL, version)
    number = b"X\n" + struct.pack(">iiiIIi", 2, 0, 0, 13, 1, 7)  # an integer vector
    chunks = [(b"", zlib.compress(number)), (code, compress(plain))]
    data = b"".join(
        struct.pack(">I", len(raw)) + mark + packed
        for raw, (mark, packed) in zip((number, plain), chunks, strict=True)
    )
    path = tmp_path / "Rdata.rdb"
    path.write_bytes(data)
    assert prose.novels(path) == {
        "Pride and Prejudice": [
            'It is a truth universally acknowledged, that a test must be short—and "quoted".',
            NOVEL[5],
        ]
    }


def test_a_damaged_rdb_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "Rdata.rdb"
    path.write_bytes(struct.pack(">I", 99) + zlib.compress(b"short"))
    with pytest.raises(ValueError, match="99 bytes"):
        prose.novels(path)
    with pytest.raises(FileNotFoundError, match="r-cran-janeaustenr"):
        prose.novels(tmp_path / "nothing.rdb")


def test_the_end_of_each_novel_is_held_out() -> None:
    novels = {t: [f"{t} paragraph {i}: " + "word " * 30 for i in range(200)] for t in "AB"}
    train, heldout = corpus.split_prose(novels)
    paragraphs = [set("\n".join(part).split("\n")) for part in (train, heldout)]
    assert not paragraphs[0] & paragraphs[1]
    assert paragraphs[0] | paragraphs[1] == {p for book in novels.values() for p in book}
    assert paragraphs[1] == {p for book in novels.values() for p in book[-5:]}


# -- the tokenizer and the arrays --------------------------------------------------------------


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    plain = _serialised([line for i in range(60) for line in (f"Paragraph {i} " + "x" * 40, "")])
    rdb = folder / "Rdata.rdb"
    rdb.write_bytes(struct.pack(">I", len(plain)) + zlib.compress(plain))
    return corpus.build(folder / "work", rdb, n_stories=40, n_records=30)


@pytest.mark.parametrize(
    "text",
    ["", " leading", "two  spaces , odd .", "CRLF\r\n\ttab\x00", "emoji 🦊é漢", "do n't . It 's"],
)
def test_any_text_round_trips(work: Path, text: str) -> None:
    tok = AutoTokenizer.from_pretrained(work / "tokenizer")
    ids = tok(text)["input_ids"]
    assert tok.decode(ids) == text
    assert 0 not in ids


def test_the_reloaded_tokenizer_is_the_same(work: Path) -> None:
    tok = corpus.train_tokenizer(STORIES[:20], vocab_size=400)
    corpus.save_tokenizer(tok, work / "again")
    reloaded = AutoTokenizer.from_pretrained(work / "again")
    assert (len(reloaded), reloaded.bos_token_id, reloaded.eos_token_id) == (400, 0, 0)
    assert reloaded.pad_token_id == 1
    for text in STORIES[:5] + RECORDS[:5]:
        assert reloaded(text)["input_ids"] == tok(text)["input_ids"]


def _documents(tok: PreTrainedTokenizerBase, ids: np.ndarray) -> list[str]:
    return str(tok.decode(ids)).split(corpus.END_OF_TEXT)[1:]


def test_arrays_decode_to_the_documents(work: Path) -> None:
    tok = AutoTokenizer.from_pretrained(work / "tokenizer")
    ids = corpus.load_split(work, "stories", "train")
    assert ids.dtype == np.uint16
    assert ids[0] == 0
    assert _documents(tok, ids) == STORIES[:40]


def test_heldout_is_disjoint_and_counted(work: Path) -> None:
    tok = AutoTokenizer.from_pretrained(work / "tokenizer")
    summary = json.loads((work / "corpus.json").read_text())
    for domain in corpus.DOMAINS:
        docs = {}
        for split in corpus.SPLITS:
            ids = corpus.load_split(work, domain, split)
            docs[split] = _documents(tok, ids)
            assert summary["domains"][domain][split]["documents"] == len(docs[split])
            assert summary["domains"][domain][split]["tokens"] == len(ids)
        assert not set(docs["train"]) & set(docs["heldout"])


def test_generated_removes_what_training_has_seen() -> None:
    train, heldout = corpus.generated(lambda seed: f"text {seed % 3}", 2, 6, "test")
    assert (train, heldout) == (["text 0", "text 1"], ["text 2"])


def test_wrong_names_are_explained(work: Path) -> None:
    with pytest.raises(ValueError, match="domain must be one of stories"):
        corpus.load_split(work, "poems", "train")
    with pytest.raises(ValueError, match="split must be one of"):
        corpus.load_split(work, "stories", "dev")
    with pytest.raises(FileNotFoundError, match="build it with"):
        corpus.load_split(work / "nowhere", "stories", "train")
