"""A parallel head: one layer that proposes gamma tokens in one pass.

Its first entry is an EAGLE head's: the target's features of the last token that was read, and the
embedding of the token after it. The further entries are placeholders for tokens that nobody has
drawn yet; each attends to the whole text and to the placeholders before it, and leads to the
distribution of its own token given the text alone. Multi-token-prediction modules (Gloeckle et
al. 2024; DeepSeek-AI 2024), block-diffusion drafters and parallel EAGLE work on this plan: gamma
times fewer drafting passes, paid for with proposals that do not know each other.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from specviz.models.heads.config import ParallelConfig
from specviz.models.heads.eagle import EagleCache, EagleHead


class ParallelHead(EagleHead):
    """An EAGLE head's layer with ``gamma - 1`` placeholders.

    Parameters
    ----------
    config : ParallelConfig
        Its shape.

    Examples
    --------
    >>> shape = {"intermediate_size": 16, "num_heads": 2, "num_kv_heads": 1, "head_dim": 4}
    >>> head = ParallelHead(ParallelConfig(hidden_size=8, vocab_size=16, layers=(2,), **shape))
    >>> head.placeholders(torch.ones(5, 8), 3).shape
    torch.Size([5, 3, 8])
    """

    config: ParallelConfig

    def __init__(self, config: ParallelConfig) -> None:
        super().__init__(config)
        width, count = config.hidden_size, config.gamma - 1
        del self.gain  # it weighs an EAGLE head's own output, which is never read here
        self.slots = nn.Parameter(torch.zeros(count, width))
        layers = [nn.Linear(width, width, bias=False) for _ in range(count)]
        for layer in layers:  # a placeholder begins as a copy of the last entry
            nn.init.eye_(layer.weight)
        self.maps = nn.ModuleList(layers)

    def placeholders(self, x: Tensor, count: int) -> Tensor:
        """Return the first ``count`` placeholders ``(..., count, hidden)`` after entries ``x``."""
        if count == 0:
            return x.new_zeros(*x.shape[:-1], 0, x.shape[-1])
        rows = [layer(x) + slot for layer, slot in zip(self.maps, self.slots, strict=True)]
        return torch.stack(rows[:count], dim=-2)

    def in_one_pass(self, x: Tensor, gamma: int, first: int, cache: EagleCache) -> Tensor:
        """Read new entries and the placeholders after the last of them, in one pass.

        Parameters
        ----------
        x : Tensor
            ``(n, hidden)``: fused features plus the next token embedded, of ``n`` new positions.
        gamma : int
            How many tokens to propose, at most the configuration's.
        first : int
            The position of the first of them: what the cache holds already.
        cache : EagleCache
            Gets the ``n`` entries; placeholders leave nothing behind.

        Returns
        -------
        Tensor
            ``(gamma, hidden)`` outputs, for :meth:`logits`.
        """
        count = len(x)
        entries = torch.cat([x, self.placeholders(x[-1], gamma - 1)])
        places = torch.arange(first + count + gamma - 1, device=x.device)
        back = places[first:, None] - places  # (count + gamma - 1, all)
        visible = (back >= 0) & (back < self.config.window)
        output: Tensor = self(entries, places[first:], visible, cache)
        cache.crop(first + count)
        return output[count - 1 :]
