"""Hugging Face models with a handful of tokens: real passes and caches,
and distributions one can count.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from specviz.core.contract import Draft, IntArray, Sampling
from specviz.decoding.hf.target import HFTarget
from specviz.decoding.sampling import logits_to_distributions
from specviz.lossless import Distribution
from specviz.models.model import Model, as_model


def small_llama(vocab_size: int = 3, *, layers: int = 3, seed: int = 0, spread: float = 1.0) -> Any:
    """A float64 Llama whose distributions depend strongly on the context,
    logits spread by ``spread``.
    """
    config = LlamaConfig(
        vocab_size=vocab_size,
        hidden_size=8,
        intermediate_size=12,
        num_hidden_layers=layers,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=64,
        bos_token_id=None,
        eos_token_id=None,
        pad_token_id=None,
    )
    model = LlamaForCausalLM(config).double().eval()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in model.parameters():
            if weight.dim() == 2:
                std = 1.0 if weight.shape[0] == vocab_size else 1.5 / weight.shape[1] ** 0.5
                weight.copy_(std * torch.randn(weight.shape, generator=generator))
        ids = torch.randint(vocab_size, (8, 8), generator=generator)
        head = model.get_output_embeddings().weight
        head.mul_(spread / model(input_ids=ids).logits.std(-1).mean())
    return model


def with_noise(model: Any, noise: float, seed: int = 1) -> Any:
    """A copy with every weight a little off: a draft that is neither right nor useless."""
    other = copy.deepcopy(model)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in other.parameters():
            off = torch.randn(weight.shape, generator=generator).to(weight.dtype)
            weight.add_(noise * weight.std() * off if weight.numel() > 1 else 0)
    return other


def plain_distribution(model: Model | Any, prompt: IntArray, length: int) -> Distribution:
    """The distribution of the target's next ``length`` tokens: whole passes, no cache,
    none of our code.
    """
    module = as_model(model).model
    distribution: Distribution = {(): 1.0}
    for _ in range(length):
        longer: Distribution = {}
        for text, mass in distribution.items():
            ids = torch.tensor([[*prompt.tolist(), *text]])
            with torch.inference_mode():
                logits = module(input_ids=ids, use_cache=False).logits[0, -1]
            for token, p in enumerate(torch.softmax(logits, -1).tolist()):
                longer[(*text, token)] = mass * p
        distribution = longer
    return distribution


def distributions_along(model: Model, text: IntArray, start: int) -> np.ndarray:
    """Distributions ``(len(text) - start, vocab)`` at the positions from ``start`` on."""
    session = HFTarget(model)
    draft = Draft.chain(text[start:-1].tolist(), None, model.vocab_size)
    return logits_to_distributions(session.verify(text[:start], draft), Sampling())
