"""An EAGLE head: one decoder layer that continues the target's own features (Li et al. 2024).

At position t it reads the target's features there (the outputs of several layers, as in EAGLE-3)
and the embedding of the token that *follows*, x[t + 1]; its output leads, through its norm and
the target's own output head, to the distribution of x[t + 2]. Beyond the text there are no
features: its own normalised output takes their place, and so it drafts on its own. Both inputs are
normalised: a raw feature would drown the embedding.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from specviz.models.heads.config import EagleConfig


@dataclass
class EagleCache:
    """Keys and values of the positions read so far, ``(kv_heads, length, head_dim)`` each."""

    keys: Tensor | None = None
    values: Tensor | None = None

    @property
    def length(self) -> int:
        """How many entries it holds: positions of the text, then nodes of a draft."""
        return 0 if self.keys is None else self.keys.shape[1]

    def append(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Add entries; return all keys and values, the new ones last."""
        if self.keys is not None and self.values is not None:
            keys = torch.cat([self.keys, keys], dim=1)
            values = torch.cat([self.values, values], dim=1)
        self.keys, self.values = keys, values
        return keys, values

    def crop(self, length: int) -> None:
        """Forget every entry after the first ``length``."""
        if self.keys is not None and self.values is not None and length < self.length:
            self.keys, self.values = self.keys[:, :length], self.values[:, :length]


class EagleHead(nn.Module):
    """Fused features and the next token's embedding → one Llama-like layer → a norm.

    Parameters
    ----------
    config : EagleConfig
        Its shape.

    Examples
    --------
    >>> shape = {"intermediate_size": 16, "num_heads": 2, "num_kv_heads": 1, "head_dim": 4}
    >>> head = EagleHead(EagleConfig(hidden_size=8, vocab_size=16, layers=(1, 2), **shape))
    >>> head.fused(torch.ones(3, 2, 8)).shape
    torch.Size([3, 8])
    """

    def __init__(self, config: EagleConfig) -> None:
        super().__init__()
        self.config = config
        width, inner = config.hidden_size, config.intermediate_size
        own, shared = config.num_heads * config.head_dim, config.num_kv_heads * config.head_dim

        def linear(columns: int, rows: int) -> nn.Linear:
            layer = nn.Linear(columns, rows, bias=False)
            nn.init.normal_(layer.weight, std=0.02)
            return layer

        self.fuse = linear(len(config.layers) * width, width)
        self.gain = nn.Parameter(torch.ones(width))
        self.vocabulary: nn.Embedding | None = None
        if config.own_vocabulary:
            self.vocabulary = nn.Embedding(config.vocab_size, width)
            nn.init.normal_(self.vocabulary.weight, std=0.02)
        else:
            self.embed = linear(width, width)
            self.embed.weight.data = 0.5 * torch.eye(width)
        self.q_proj, self.o_proj = linear(width, own), linear(own, width)
        self.k_proj, self.v_proj = linear(width, shared), linear(width, shared)
        self.gate_proj, self.up_proj = linear(width, inner), linear(width, inner)
        self.down_proj = linear(inner, width)
        self.attention_norm = nn.Parameter(torch.ones(width))
        self.mlp_norm = nn.Parameter(torch.ones(width))
        self.final_norm = nn.Parameter(torch.ones(width))

    def normed(self, x: Tensor, weight: Tensor | None = None) -> Tensor:
        """Return ``x`` divided by its root mean square over the last axis, times ``weight``."""
        weight = None if weight is None else weight.to(x.dtype)
        return F.rms_norm(x, x.shape[-1:], weight, self.config.eps)

    def fused(self, features: Tensor) -> Tensor:
        """Map the target's features ``(..., layers, hidden)`` to ``(..., hidden)``."""
        seen = features if self.config.features else torch.zeros_like(features)
        return self.fuse(self.normed(seen).flatten(-2))

    def continued(self, output: Tensor) -> Tensor:
        """Return what stands in for the fused features where only the head's output is known."""
        return self.gain * (self.normed(output) if self.config.features else 0.0 * output)

    def embedded(self, ids: Tensor, embedding: Any) -> Tensor:
        """Return what the layer reads of tokens; ``embedding`` is the target's."""
        if self.vocabulary is not None:
            return self.vocabulary(ids)
        return self.embed(self.normed(embedding(ids).to(self.embed.weight.dtype)))

    def heads_of(self, x: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return rotated queries and keys, and values, each ``(..., heads, time, head_dim)``."""
        h = self.normed(x, self.attention_norm)

        def split(projection: nn.Linear) -> Tensor:
            return projection(h).unflatten(-1, (-1, self.config.head_dim)).transpose(-2, -3)

        query, key, value = split(self.q_proj), split(self.k_proj), split(self.v_proj)
        return rotated(query, cos, sin), rotated(key, cos, sin), value

    def finished(self, x: Tensor, attended: Tensor) -> Tensor:
        """Return the layer's output from its input and ``(..., time, heads * head_dim)``."""
        x = x + self.o_proj(attended)
        h = self.normed(x, self.mlp_norm)
        return x + self.down_proj(F.silu(self.gate_proj(h)) * self.up_proj(h))

    def logits(self, output: Tensor, head: Any) -> Tensor:
        """Return draft logits ``(..., vocab)``; ``head`` is the target's own output head."""
        state = self.normed(output, self.final_norm)
        if self.vocabulary is not None:
            return F.linear(state, self.vocabulary.weight)
        logits: Tensor = head(state.to(head.weight.dtype))
        return logits

    def forward(self, x: Tensor, positions: Tensor, visible: Tensor, cache: EagleCache) -> Tensor:
        """Run the layer on ``n`` entries of one text, adding them to the cache.

        Parameters
        ----------
        x : Tensor
            ``(n, hidden)``: features fused or continued, plus the next token embedded.
        positions : Tensor
            ``(n,)`` of the features; nodes of a tree count by depth.
        visible : Tensor
            ``(n, cache.length + n)`` bool: which entries, itself among them, each may look at.
        cache : EagleCache
            Changed in place.

        Returns
        -------
        Tensor
            ``(n, hidden)``, for :meth:`logits` and :meth:`continued`.
        """
        config = self.config
        cos, sin = rotation(positions, config.head_dim, config.rope_theta, x.dtype)
        query, key, value = self.heads_of(x, cos, sin)  # (heads, n, dim), (kv_heads, n, dim)
        keys, values = cache.append(key, value)  # (kv_heads, all, dim)
        share = config.num_heads // config.num_kv_heads
        keys, values = keys.repeat_interleave(share, 0), values.repeat_interleave(share, 0)
        scores = (query @ keys.mT).float() * config.head_dim**-0.5  # (heads, n, all)
        weights = scores.masked_fill(~visible, -torch.inf).softmax(-1).to(values.dtype)
        return self.finished(x, (weights @ values).transpose(0, 1).flatten(-2))


def rotation(
    positions: Tensor, head_dim: int, theta: float, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    """Return cosines and sines of rotary positions, ``(n, head_dim)`` each (Su et al. 2021)."""
    powers = torch.arange(0, head_dim, 2, device=positions.device).float() / head_dim
    angle = positions[:, None].float() * theta**-powers
    angle = torch.cat([angle, angle], dim=-1)
    return angle.cos().to(dtype), angle.sin().to(dtype)


def rotated(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate ``(..., n, head_dim)``: the two halves of each head are the two coordinates."""
    first, second = x.chunk(2, dim=-1)
    return x * cos.to(x.dtype) + torch.cat([-second, first], dim=-1) * sin.to(x.dtype)
