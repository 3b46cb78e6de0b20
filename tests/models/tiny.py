"""Models and tokenizers small enough to make in a test."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from tokenizers.trainers import BpeTrainer
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM
from transformers import PreTrainedTokenizerFast as Fast

SENTENCES = ["the quick brown fox", "the fox said: café!", "a fox, the quick one"]
EOS = "<|end|>"


def llama(vocab: int = 16, *, seed: int = 0, context: int = 32, **config: Any) -> LlamaForCausalLM:
    """A one-layer Llama with a random distribution."""
    torch.manual_seed(seed)
    settings = {"bos_token_id": None, "eos_token_id": None, "pad_token_id": None} | config
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=vocab,
            hidden_size=8,
            intermediate_size=8,
            num_hidden_layers=1,
            num_attention_heads=2,
            num_key_value_heads=1,
            max_position_embeddings=context,
            **settings,
        )
    )


def gpt2(vocab: int = 16) -> GPT2LMHeadModel:
    """A one-layer GPT-2, which calls its context n_positions."""
    size = {"n_embd": 8, "n_layer": 1, "n_head": 2, "n_positions": 24}
    return GPT2LMHeadModel(
        GPT2Config(vocab_size=vocab, bos_token_id=None, eos_token_id=None, **size)
    )


def byte_level(size: int = 290, specials: Sequence[str] = (EOS,), *, bos: bool = False) -> Fast:
    """A byte-level BPE; with ``bos`` it begins every text with its first special token."""
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    trainer = BpeTrainer(
        vocab_size=size,
        special_tokens=list(specials),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    backend.train_from_iterator(SENTENCES, trainer)
    if bos:
        backend.post_processor = processors.TemplateProcessing(
            single=f"{specials[0]} $A", special_tokens=[(specials[0], 0)]
        )
    return Fast(
        tokenizer_object=backend,
        eos_token=specials[-1],
        bos_token=specials[0] if bos else None,
    )


def sentencepiece_like(*, eos_too: bool = False) -> Fast:
    """Pieces with ▁ for a space and single bytes to fall back on, as Llama-2 has them."""
    pieces = ["▁", "a", "b", "f", "o", "x", "▁a", "▁f", "ox", "▁fox"]
    names = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *pieces]
    backend = Tokenizer(
        models.BPE(
            vocab={name: i for i, name in enumerate(names)},
            merges=[("▁", "a"), ("▁", "f"), ("o", "x"), ("▁f", "ox")],
            unk_token="<unk>",
            byte_fallback=True,
            fuse_unk=True,
        )
    )
    backend.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    backend.decoder = decoders.Sequence(
        [
            decoders.Replace("▁", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )
    backend.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>" if eos_too else "<s> $A", special_tokens=[("<s>", 1), ("</s>", 2)]
    )
    return Fast(tokenizer_object=backend, bos_token="<s>", eos_token="</s>", unk_token="<unk>")


def word_level(words: Sequence[str], eos: str | None = None) -> Fast:
    """One token a word, in the order given."""
    backend = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, words[0]))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return Fast(tokenizer_object=backend, unk_token=words[0], eos_token=eos)
