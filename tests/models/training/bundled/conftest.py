"""A toy corpus."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from transformers import PreTrainedTokenizerFast

from specviz.models.training.bundled import llama
from specviz.models.training.bundled.batches import SHARES
from tests.models.training.bundled.small import VOCAB


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Return a folder with a learnable toy corpus in three domains and a tokenizer."""
    from tokenizers import Tokenizer, models

    place = tmp_path / "corpus"
    place.mkdir()
    generator = np.random.default_rng(0)
    for number, name in enumerate(SHARES):
        for part, size in (("train", 3000), ("heldout", 600)):
            steps = generator.choice([1, 2 + number], size, p=[0.8, 0.2])
            ids = 2 + np.cumsum(steps) % (VOCAB - 2)
            ids[::25] = llama.END_OF_TEXT
            np.save(place / f"{name}_{part}.npy", ids.astype(np.uint16))
    vocabulary = {"<|endoftext|>": 0, "<|pad|>": 1} | {f"w{i}": i for i in range(2, VOCAB)}
    PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(models.WordLevel(vocabulary, unk_token="<|pad|>")),
        bos_token="<|endoftext|>",
        eos_token="<|endoftext|>",
        pad_token="<|pad|>",
    ).save_pretrained(place / "tokenizer")
    return place
