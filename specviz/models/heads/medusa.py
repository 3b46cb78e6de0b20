"""Medusa heads: small residual networks on the target's last hidden state (Cai et al. 2024).

Head i reads the state from which the target predicts the next token, and predicts the token
i places further on. What it returns is a hidden state again; the target's own output head turns
it into logits, so that no vocabulary-sized matrix need be learned or stored.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from specviz.models.heads.config import MedusaConfig


class ResidualBlock(nn.Module):
    """``x + silu(W x + b)``; begins as the identity (Medusa, eq. 1)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, width)
        nn.init.zeros_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)

    def forward(self, x: Tensor) -> Tensor:
        """Map ``(..., width)`` to the same shape."""
        return x + F.silu(self.linear(x))


class MedusaHeads(nn.Module):
    """K heads on the target's hidden states.

    Parameters
    ----------
    config : MedusaConfig
        Their shape. With several layers the last one's state is the base, to which a linear map
        of all (each normalised) is added before the heads; with one this is Medusa as published.

    Examples
    --------
    >>> heads = MedusaHeads(MedusaConfig(hidden_size=8, vocab_size=16, layers=(2,)))
    >>> heads(torch.ones(3, 1, 8)).shape
    torch.Size([3, 4, 8])
    """

    def __init__(self, config: MedusaConfig) -> None:
        super().__init__()
        self.config = config
        width, count = config.hidden_size, len(config.layers)
        self.fuse = nn.Linear(count * width, width, bias=False) if count > 1 else None
        if self.fuse is not None:
            nn.init.zeros_(self.fuse.weight)
        self.heads = nn.ModuleList(
            nn.Sequential(*(ResidualBlock(width) for _ in range(config.blocks)))
            for _ in range(config.heads)
        )

    def forward(self, features: Tensor) -> Tensor:
        """Return what the target's head is to read.

        Parameters
        ----------
        features : Tensor
            ``(..., layers, hidden)`` outputs of ``config.layers`` at one position each.

        Returns
        -------
        Tensor
            ``(..., heads, hidden)``: entry i leads to the token i + 2 places after the position
            (the target itself predicts the one 1 place after it).
        """
        x = features[..., -1, :]
        if self.fuse is not None:
            normed = F.rms_norm(features, features.shape[-1:], eps=1e-5)
            x = x + self.fuse(normed.flatten(-2))
        return torch.stack([head(x) for head in self.heads], dim=-2)
