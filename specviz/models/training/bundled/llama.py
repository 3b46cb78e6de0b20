"""The network of the bundled family: an ordinary Llama, run by a lean trainable forward pass.

The weights live in a Hugging Face ``LlamaForCausalLM``, so that what is trained is exactly what
users load. Only the forward pass is ours: every layer goes through one function, ``block``,
which ``torch.compile`` compiles once and all layers share, and attention is written out in
query chunks that never look at keys behind the diagonal (on CPUs the backward pass of fused
attention is slower). A test holds it equal to Hugging Face's forward.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from tqdm.auto import tqdm
from transformers import LlamaConfig, LlamaForCausalLM

END_OF_TEXT = 0
PADDING = 1
QUERY_CHUNK = 128

Block = Callable[..., Tensor]


def build(
    layers: int,
    *,
    vocab: int = 4096,
    hidden: int = 256,
    intermediate: int = 512,
    heads: int = 4,
    kv_heads: int = 2,
    context: int = 512,
    seed: int = 0,
) -> LlamaForCausalLM:
    """Return a freshly initialised Llama with tied embeddings.

    Matrices are drawn from N(0, .02); the two that write into the residual stream are scaled
    down by sqrt(2 * layers), so that the stream keeps its size whatever the depth
    (Radford et al. 2019, GPT-2, section 2.3).

    Examples
    --------
    >>> build(1, vocab=64, hidden=32, intermediate=64, heads=2, kv_heads=1).num_parameters()
    11360
    """
    config = LlamaConfig(
        vocab_size=vocab,
        hidden_size=hidden,
        intermediate_size=intermediate,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        head_dim=hidden // heads,
        max_position_embeddings=context,
        rope_parameters={"rope_type": "default", "rope_theta": 10000.0},
        rms_norm_eps=1e-5,
        tie_word_embeddings=True,
        bos_token_id=END_OF_TEXT,
        eos_token_id=END_OF_TEXT,
        pad_token_id=PADDING,
    )
    model = LlamaForCausalLM(config)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() != 2:
                continue
            writes = name.endswith(("o_proj.weight", "down_proj.weight"))
            std = 0.02 / math.sqrt(2 * layers) if writes else 0.02
            parameter.normal_(0.0, std, generator=generator)
    return model


@cache
def rope_table(context: int, head_dim: int, theta: float = 10000.0) -> tuple[Tensor, Tensor]:
    """Return the cosines and sines of rotary positions, each ``(context, head_dim)``."""
    frequency = theta ** (-torch.arange(0, head_dim, 2).float() / head_dim)
    angle = torch.outer(torch.arange(context).float(), frequency)
    angle = torch.cat([angle, angle], -1)
    return angle.cos(), angle.sin()


def _rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    first, second = x.chunk(2, -1)
    return x * cos.to(x.dtype) + torch.cat([-second, first], -1) * sin.to(x.dtype)


def attend(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Causal grouped-query attention, one chunk of queries at a time.

    Parameters
    ----------
    query
        ``(batch, heads, time, head_dim)``.
    key, value
        ``(batch, kv_heads, time, head_dim)``.

    Returns
    -------
    Tensor
        ``(batch, time, heads * head_dim)``.
    """
    batch, heads, time, dim = query.shape
    groups = key.shape[1]
    share = heads // groups
    query = (query * dim**-0.5).view(batch, groups, share, time, dim)
    chunk = QUERY_CHUNK if time % QUERY_CHUNK == 0 else time
    future = torch.full((chunk, chunk), -1e9).triu(1)
    outputs = []
    for start in range(0, time, chunk):
        stop = start + chunk
        rows = query[:, :, :, start:stop].reshape(batch, groups, share * chunk, dim)
        scores = torch.matmul(rows, key[:, :, :stop].transpose(-1, -2)).float()
        scores = scores.view(batch, groups, share, chunk, stop) + F.pad(future, (start, 0))
        weights = scores.softmax(-1).to(value.dtype).view(batch, groups, share * chunk, stop)
        mixed = torch.matmul(weights, value[:, :, :stop])
        outputs.append(mixed.view(batch, heads, chunk, dim))
    return torch.cat(outputs, 2).transpose(1, 2).reshape(batch, time, heads * dim)


def block(
    x: Tensor,
    cos: Tensor,
    sin: Tensor,
    norm_1: Tensor,
    w_query: Tensor,
    w_key: Tensor,
    w_value: Tensor,
    w_out: Tensor,
    norm_2: Tensor,
    w_gate: Tensor,
    w_up: Tensor,
    w_down: Tensor,
    head_dim: int,
    eps: float,
) -> Tensor:
    """One Llama layer as a function of its input ``x`` (batch, time, hidden) and its weights."""
    batch, time, hidden = x.shape
    h = F.rms_norm(x, (hidden,), norm_1, eps)
    query = F.linear(h, w_query).view(batch, time, -1, head_dim).transpose(1, 2)
    key = F.linear(h, w_key).view(batch, time, -1, head_dim).transpose(1, 2)
    value = F.linear(h, w_value).view(batch, time, -1, head_dim).transpose(1, 2)
    mixed = attend(_rotate(query, cos, sin), _rotate(key, cos, sin), value)
    x = x + F.linear(mixed, w_out)
    h = F.rms_norm(x, (hidden,), norm_2, eps)
    return x + F.linear(F.silu(F.linear(h, w_gate)) * F.linear(h, w_up), w_down)


@cache
def compiled_block() -> Block:
    """Return ``block`` compiled; every layer of every network shares it."""
    return torch.compile(block, dynamic=False)


def layer_weights(layer: Any) -> tuple[Tensor, ...]:
    """Return the nine weights of a Hugging Face Llama layer in the order ``block`` takes them."""
    attention, mlp = layer.self_attn, layer.mlp
    return (
        layer.input_layernorm.weight,
        attention.q_proj.weight,
        attention.k_proj.weight,
        attention.v_proj.weight,
        attention.o_proj.weight,
        layer.post_attention_layernorm.weight,
        mlp.gate_proj.weight,
        mlp.up_proj.weight,
        mlp.down_proj.weight,
    )


def hidden_states(model: LlamaForCausalLM, ids: Tensor, run: Block = block) -> list[Tensor]:
    """Return the residual stream before the first layer and after each one.

    Parameters
    ----------
    model
        The weights.
    ids
        Token ids ``(batch, time)``; positions count from 0 in every row.
    run
        ``block``, or ``compiled_block()``.

    Returns
    -------
    list of Tensor
        ``layers + 1`` tensors ``(batch, time, hidden)``, none of them normalised: entry k is
        what an exit after k layers reads.
    """
    config: Any = model.config
    cos, sin = rope_table(ids.shape[1], config.head_dim)
    x = F.embedding(ids, model.model.embed_tokens.weight)
    states = [x]
    for layer in model.model.layers:
        x = run(x, cos, sin, *layer_weights(layer), config.head_dim, config.rms_norm_eps)
        states.append(x)
    return states


def read_out(state: Tensor, norm: Tensor, head: Tensor, eps: float = 1e-5) -> Tensor:
    """Return float32 logits: the final norm and the output matrix, shared by every exit."""
    return F.linear(F.rms_norm(state, (state.shape[-1],), norm, eps), head).float()


def logits(model: LlamaForCausalLM, state: Tensor) -> Tensor:
    """Return the logits ``(..., vocab)`` that ``model`` gives to a hidden state."""
    config: Any = model.config
    return read_out(state, model.model.norm.weight, model.lm_head.weight, config.rms_norm_eps)


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
    temperature: float = 1.0,
) -> Tensor:
    """Sample from the model until every row has ``length`` tokens: many texts at once.

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
    progress
        Show a progress bar.
    temperature
        Logits are divided by it.

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
        distribution = (read_out(x, norm, embedding, eps) / temperature).softmax(-1)
        ids[:, t + 1] = torch.multinomial(distribution, 1, generator=generator)[:, 0]
    return ids
