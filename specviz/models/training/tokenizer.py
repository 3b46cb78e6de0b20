"""The bundled models' tokenizer: byte-level BPE, 2,048 tokens, any text round-trips exactly."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

VOCAB_SIZE = 2048
END_OF_TEXT = "<|endoftext|>"
"""Begins and ends every document; id 0, both ``bos`` and ``eos``."""
PADDING = "<|pad|>"
"""Id 1; never trained on."""


def train(texts: Iterable[str], vocab_size: int = VOCAB_SIZE) -> PreTrainedTokenizerFast:
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


def save(tokenizer: PreTrainedTokenizerFast, folder: str | Path) -> None:
    """Write the tokenizer as a Hugging Face directory, all or nothing."""
    folder = Path(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        fresh = Path(scratch) / "tokenizer"
        tokenizer.save_pretrained(fresh)
        if folder.exists():
            shutil.rmtree(folder)
        fresh.replace(folder)
