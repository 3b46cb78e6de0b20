"""Build the training corpus: three domains, a tokenizer, and a record of where it came from.

``python -m specviz.models.training.bundled.corpus --work DIR --prose PATH`` writes into ``DIR``:

* ``tokenizer/``: a Hugging Face directory;
* ``{stories,prose,records}_{train,heldout}.npy``: uint16 tokens, documents joined, each
  beginning with token 0;
* ``corpus.json``: sizes, sources, licences, seeds (first, one past the last).

What *held out* means differs by domain. Stories and records: seeds that training never uses,
from the same grammar, with any text that also occurs in training removed; so they measure how
well the grammar was learned, not how far it carries. Prose: the last fortieth of each novel, in
whole paragraphs, never trained on.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from tqdm.auto import tqdm
from transformers import PreTrainedTokenizerFast

from specviz.models.training.bundled import prose, records, stories
from specviz.models.training.features import replace_directory

DOMAINS = ("stories", "prose", "records")
SPLITS = ("train", "heldout")
HELDOUT_SEED = 1_000_000_000
"""Held-out stories and records use seeds from here on; training counts from 0."""
HELDOUT_DOCUMENTS = 300
HELDOUT_SHARE = 40
"""The last 1/40 of each novel is held out."""
PROSE_DOCUMENT = 1800
"""A prose document closes at the first paragraph end beyond this many characters."""
_SOURCES = {
    "stories": ("specviz/models/training/bundled/stories.py", "same licence as this repository"),
    "prose": ("six novels by Jane Austen, Debian package r-cran-janeaustenr", "public domain"),
    "records": ("specviz/models/training/bundled/records.py", "same licence as this repository"),
}

VOCAB_SIZE = 4096
"""So 97% of the words of held-out stories, and 83% of the novels', are one token."""
END_OF_TEXT = "<|endoftext|>"
"""Begins and ends every document; id 0, both ``bos`` and ``eos``."""
PADDING = "<|pad|>"
"""Id 1; never trained on."""


def train_tokenizer(texts: Iterable[str], vocab_size: int = VOCAB_SIZE) -> PreTrainedTokenizerFast:
    """Learn a byte-level BPE (Sennrich et al. 2016) from texts.

    Parameters
    ----------
    texts
        Documents.
    vocab_size
        Tokens in all: 2 special ones, 256 bytes, and merges.

    Returns
    -------
    PreTrainedTokenizerFast
        Adds no token of its own when encoding, and decodes byte for byte.
    """
    if vocab_size < 258:
        raise ValueError(f"vocab_size must be at least 258 (2 special + 256 bytes): {vocab_size}")
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=[END_OF_TEXT, PADDING],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        min_frequency=2,
        show_progress=False,
    )
    bpe.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=bpe,
        bos_token=END_OF_TEXT,
        eos_token=END_OF_TEXT,
        pad_token=PADDING,
        clean_up_tokenization_spaces=False,
        add_bos_token=False,
        add_eos_token=False,
    )


def save_tokenizer(tokenizer: PreTrainedTokenizerFast, folder: str | Path) -> None:
    """Write the tokenizer as a Hugging Face directory, all or nothing."""
    folder = Path(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        fresh = Path(scratch) / "tokenizer"
        tokenizer.save_pretrained(fresh)
        replace_directory(fresh, folder)


def generated(
    write: Callable[[int], str], count: int, heldout: int, label: str
) -> tuple[list[str], list[str]]:
    """Write ``count`` training and at most ``heldout`` held-out documents from disjoint seeds."""
    train = [write(seed) for seed in tqdm(range(count), desc=label)]
    seen = set(train)
    later = dict.fromkeys(write(HELDOUT_SEED + i) for i in range(heldout))
    return train, [text for text in later if text not in seen]


def documents(paragraphs: Sequence[str], size: int = PROSE_DOCUMENT) -> list[str]:
    """Join consecutive paragraphs (one line break between) into documents of about ``size``."""
    out: list[str] = []
    current: list[str] = []
    for paragraph in paragraphs:
        current.append(paragraph)
        if sum(map(len, current)) > size:
            out.append("\n".join(current))
            current = []
    return [*out, "\n".join(current)] if current else out


def split_prose(novels: dict[str, list[str]]) -> tuple[list[str], list[str]]:
    """Hold out the last 1/40 of each novel by characters, in whole paragraphs."""
    train, heldout = [], []
    for paragraphs in novels.values():
        budget = sum(map(len, paragraphs)) / HELDOUT_SHARE
        cut, kept = len(paragraphs), 0
        while cut > 1 and kept < budget:
            cut -= 1
            kept += len(paragraphs[cut])
        train += documents(paragraphs[:cut])
        heldout += documents(paragraphs[cut:])
    return train, heldout


def encode(texts: Sequence[str], tok: PreTrainedTokenizerFast, label: str) -> np.ndarray:
    """Encode documents, each preceded by token 0, into one array ``(tokens,)`` of uint16."""
    parts: list[np.ndarray] = []
    for start in tqdm(range(0, len(texts), 500), desc=f"encode {label}"):
        batch = tok(list(texts[start : start + 500]), add_special_tokens=False)["input_ids"]
        parts += [np.array([0, *ids], dtype=np.uint16) for ids in batch]
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.uint16)


def _replace(path: Path, write: Callable[[Path], object]) -> None:
    scratch = path.with_name(f".{path.name}")
    write(scratch)
    scratch.replace(path)


def _save_array(array: np.ndarray, path: Path) -> None:
    with path.open("wb") as file:
        np.save(file, array, allow_pickle=False)


def build(work: str | Path, prose_path: str | Path, n_stories: int, n_records: int) -> Path:
    """Build the whole corpus into ``work`` and return that folder.

    Parameters
    ----------
    work
        Folder to write into; made if missing.
    prose_path
        Package or data file of the novels, see :func:`specviz.models.training.prose.novels`.
    n_stories, n_records
        Training documents of the two generated domains.
    """
    if min(n_stories, n_records) < 1:
        raise ValueError(f"stories and records must be at least 1, got {n_stories}, {n_records}")
    work = Path(work)
    novels = prose.novels(prose_path)
    work.mkdir(parents=True, exist_ok=True)
    texts = {
        "stories": generated(stories.story, n_stories, HELDOUT_DOCUMENTS, "stories"),
        "prose": split_prose(novels),
        "records": generated(records.record, n_records, HELDOUT_DOCUMENTS, "records"),
    }
    sample = texts["stories"][0][:3000] + texts["prose"][0] + texts["records"][0][:3000]
    tok = train_tokenizer(sample)
    save_tokenizer(tok, work / "tokenizer")
    summary: dict[str, Any] = {"vocab_size": len(tok), "domains": {}, "novels": list(novels)}
    for domain, both in texts.items():
        source, licence = _SOURCES[domain]
        entry: dict[str, Any] = {"source": source, "licence": licence}
        if domain != "prose":
            entry["seeds"] = {
                "train": [0, len(both[0])],
                "heldout": [HELDOUT_SEED, HELDOUT_SEED + HELDOUT_DOCUMENTS],
            }
        for split, split_texts in zip(SPLITS, both, strict=True):
            array = encode(split_texts, tok, f"{domain} {split}")
            _replace(work / f"{domain}_{split}.npy", partial(_save_array, array))
            entry[split] = {
                "documents": len(split_texts),
                "characters": sum(map(len, split_texts)),
                "tokens": len(array),
            }
        summary["domains"][domain] = entry
    text = json.dumps(summary, indent=2) + "\n"
    _replace(work / "corpus.json", lambda p: p.write_text(text, "utf-8"))
    return work


def load_split(work: str | Path, domain: str, split: str) -> np.ndarray:
    """Load the tokens of one domain and split: a read-only memory map ``(tokens,)`` of uint16.

    Raises
    ------
    ValueError
        If the domain or the split does not exist.
    FileNotFoundError
        If the corpus has not been built in ``work``.
    """
    if domain not in DOMAINS:
        raise ValueError(f"domain must be one of {', '.join(DOMAINS)}, got {domain!r}")
    if split not in SPLITS:
        raise ValueError(f"split must be one of {', '.join(SPLITS)}, got {split!r}")
    path = Path(work) / f"{domain}_{split}.npy"
    if not path.is_file():
        raise FileNotFoundError(
            f"work: {path} is missing; build it with "
            "'python -m specviz.models.training.bundled.corpus --work DIR --prose PATH'"
        )
    array: np.ndarray = np.load(path, mmap_mode="r", allow_pickle=False)
    return array


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what ``build`` takes to its command line."""
    parser.add_argument("--work", required=True, help="folder to write into")
    parser.add_argument("--prose", required=True, help="r-cran-janeaustenr .deb, or Rdata.rdb")
    parser.add_argument("--stories", type=int, default=36_000)
    parser.add_argument("--records", type=int, default=12_000)
