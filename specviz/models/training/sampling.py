"""Many continuations of the target at once: a lean batched loop with a fixed key/value cache."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from tqdm.auto import tqdm
from transformers import LlamaForCausalLM

from specviz.models.training.network import layer_weights, read_out, rope_table


def _rotate_one(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat([-second, first], -1) * sin


@torch.no_grad()
def continue_texts(
    model: LlamaForCausalLM,
    prompts: Tensor,
    length: int,
    generator: torch.Generator,
    *,
    dtype: torch.dtype = torch.bfloat16,
    progress: bool = True,
) -> Tensor:
    """Sample from the model at temperature 1 until every row has ``length`` tokens.

    A row that draws <|endoftext|> goes on with a new document, as the training windows do.

    Parameters
    ----------
    model
        A Llama.
    prompts
        ``(batch, n)`` ids, n at least 1; all rows equally long.
    length
        Tokens per row in the result, at most the model's context.
    generator
        The only source of randomness.
    dtype
        Of the matrix products; distributions are drawn from in float32.

    Returns
    -------
    Tensor
        int64 ``(batch, length)``, beginning with ``prompts``.
    """
    batch, given = prompts.shape
    config: Any = model.config
    if not 1 <= given <= length <= config.max_position_embeddings:
        raise ValueError(
            f"length {length} must lie between the prompt's {given} tokens (at least 1) and the "
            f"model's context {config.max_position_embeddings}"
        )
    heads, groups, dim = config.num_attention_heads, config.num_key_value_heads, config.head_dim
    share, eps = heads // groups, config.rms_norm_eps
    layers = [[w.to(dtype) for w in layer_weights(layer)] for layer in model.model.layers]
    embedding = model.model.embed_tokens.weight.to(dtype)
    norm = model.model.norm.weight.to(dtype)
    cosines, sines = (table.to(dtype) for table in rope_table(length, dim))
    keys = torch.zeros(len(layers), batch, groups, length, dim, dtype=dtype)
    values = torch.zeros_like(keys)
    ids = torch.zeros(batch, length, dtype=torch.long)
    ids[:, :given] = prompts
    for t in tqdm(range(length - 1), desc="sampling", disable=not progress, mininterval=5):
        x = F.embedding(ids[:, t], embedding)  # (batch, hidden)
        cos, sin = cosines[t], sines[t]
        for k, (n1, wq, wk, wv, wo, n2, wg, wu, wd) in enumerate(layers):
            h = F.rms_norm(x, (x.shape[-1],), n1, eps)
            query = _rotate_one(F.linear(h, wq).view(batch, groups, share, dim), cos, sin)
            keys[k, :, :, t] = _rotate_one(F.linear(h, wk).view(batch, groups, dim), cos, sin)
            values[k, :, :, t] = F.linear(h, wv).view(batch, groups, dim)
            # the heads of a group are rows of one query: the cache is read once
            mixed = F.scaled_dot_product_attention(
                query, keys[k, :, :, : t + 1], values[k, :, :, : t + 1]
            )
            x = x + F.linear(mixed.reshape(batch, heads * dim), wo)
            h = F.rms_norm(x, (x.shape[-1],), n2, eps)
            x = x + F.linear(F.silu(F.linear(h, wg)) * F.linear(h, wu), wd)
        if t + 1 < given:
            continue
        distribution = read_out(x, norm, embedding, eps).softmax(-1)
        ids[:, t + 1] = torch.multinomial(distribution, 1, generator=generator)[:, 0]
    return ids
