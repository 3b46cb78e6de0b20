"""A tiny target and untrained heads for it: what they propose is poor, and must not matter."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import torch

import specviz as sv
from specviz.models.heads import (
    EagleConfig,
    EagleHead,
    MedusaConfig,
    MedusaHeads,
    ParallelConfig,
    ParallelHead,
    fingerprint,
)
from specviz.models.model import as_model
from tests.decoding.families import llama, make
from tests.drafters.small import small_llama

PROMPT = [3, 1, 4, 1, 5]


@cache
def tiny_pair() -> Any:
    """A target of 96 tokens with a distribution far from uniform; no draft, no tokenizer."""
    return sv.Pair(target=make(llama)[0])


@cache
def few_token_pair(vocab_size: int = 5) -> Any:
    """A target of a few tokens, in float64."""
    return sv.Pair(target=as_model(small_llama(vocab_size, spread=1.5)))


def medusa_for(pair: Any, **changes: Any) -> MedusaHeads:
    """Heads that guess at random, but guess different things at every depth."""
    model = pair.target.model
    config = MedusaConfig(
        hidden_size=model.config.hidden_size, vocab_size=pair.vocab_size,
        layers=(model.config.num_hidden_layers,), target=pair.target.name,
        fingerprint=fingerprint(model.get_input_embeddings().weight),
    )  # fmt: skip
    heads = MedusaHeads(replace(config, **changes))
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for weight in heads.parameters():
            weight.copy_(0.3 * torch.randn(weight.shape, generator=generator))
    return heads


def parallel_for(pair: Any, *, loud: float = 1.0, **changes: Any) -> ParallelHead:
    """A parallel head with random weights; ``loud`` spreads its distributions."""
    head: ParallelHead = eagle_for(pair, loud=loud, kind=ParallelConfig, **changes)
    return head


def eagle_for(
    pair: Any, *, loud: float = 1.0, kind: type[EagleConfig] = EagleConfig, **changes: Any
) -> Any:
    """A head with random weights; ``loud`` spreads its distributions."""
    model = pair.target.model
    config = kind(
        hidden_size=model.config.hidden_size, vocab_size=pair.vocab_size,
        layers=(1, model.config.num_hidden_layers), intermediate_size=16, num_heads=4,
        num_kv_heads=2, head_dim=8, target=pair.target.name,
        fingerprint=fingerprint(model.get_input_embeddings().weight),
    )  # fmt: skip
    config = replace(config, **changes)
    head = ParallelHead(config) if isinstance(config, ParallelConfig) else EagleHead(config)
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for weight in head.parameters():
            if weight.dim() == 2:
                size = weight.shape[1] ** -0.5
                weight.copy_(size * torch.randn(weight.shape, generator=generator))
        head.final_norm.mul_(loud)
    return head
