"""Tiny Hugging Face models whose distributions depend on their context, and tokenizers for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from tests.decoding import families

VOCAB = 8
WORDS = [f"w{i}" for i in range(VOCAB)]


def small(seed: int, vocab_size: int = VOCAB, end: int | None = 0) -> Any:
    """A tiny model with a small vocabulary, whose distribution depends on its context."""
    torch.manual_seed(seed)
    model = families.llama(vocab_size=vocab_size, bos_token_id=1, eos_token_id=end).eval()
    with torch.no_grad():
        for weight in model.parameters():
            if weight.dim() >= 2:
                weight.normal_(0, 1.6 / weight.shape[-1] ** 0.5)
        ids = torch.randint(vocab_size, (4, 16))
        head = model.get_output_embeddings().weight
        head.mul_(1.5 / model(input_ids=ids).logits.std(-1).mean())
    return model


def tokenizer(words: Sequence[str], order: Sequence[int] | None = None) -> Any:
    """A tokenizer with a token per word; ``order`` is the one in which it lists its vocabulary.

    Real ones list theirs in the order of a hash map, which is another in every process.
    """
    ids = {word: i for i, word in enumerate(words)}
    inner = Tokenizer(models.WordLevel(ids, unk_token=words[-1]))
    inner.pre_tokenizer = pre_tokenizers.Whitespace()
    made = PreTrainedTokenizerFast(tokenizer_object=inner, unk_token=words[-1])
    if order is not None:
        made.get_vocab = lambda: {words[i]: i for i in order}
    return made
