"""Train Medusa heads on the target's distributions, and measure each head.

Head i at position t learns the target's distribution of x[t + 1 + i] given the text up to
x[t + i]. The text in between is drawn from about that distribution, so on average the head learns
the right marginal.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from specviz.models.heads.config import MedusaConfig, fingerprint
from specviz.models.heads.medusa import MedusaHeads
from specviz.models.training.features import Features
from specviz.models.training.fit import (
    HeadPlan,
    Loss,
    divergence,
    fit,
    log_distributions,
    logits_of,
    overlap,
)

DECAY = 0.8
"""How much less each further head counts in the loss (Cai et al. 2024, section 2.2.1)."""
RANKS = 10


def medusa_config(
    target: Any, layers: tuple[int, ...], *, heads: int = 4, blocks: int = 1
) -> MedusaConfig:
    """Return the shape of heads for a wrapped Hugging Face model."""
    shape = target.model.config.get_text_config()
    return MedusaConfig(
        hidden_size=int(shape.hidden_size),
        vocab_size=target.vocab_size,
        layers=layers,
        heads=heads,
        blocks=blocks,
        target=target.name,
        fingerprint=fingerprint(target.model.get_input_embeddings().weight),
    )


def medusa_loss(heads: MedusaHeads, model: Any) -> Loss:
    """Return the weighted KL(p || q) of all heads; ``model`` is the target as it is."""
    out = model.get_output_embeddings()

    def loss(ids: Tensor, features: Tensor) -> Tensor:
        with torch.no_grad():
            log_p = log_distributions(features[:, :, -1], out)  # of x[t + 1] at t
        states = heads(features)  # (batch, time, heads, hidden)
        total = torch.zeros((), device=ids.device)
        weights = [DECAY**i for i in range(heads.config.heads)]
        for i, weight in enumerate(weights, start=1):
            total = total + weight * divergence(log_p[:, i:], logits_of(states[:, :-i, i - 1], out))
        return total / sum(weights)

    return loss


def train_medusa(
    target: Any, data: Features, layers: tuple[int, ...], path: Path, plan: HeadPlan,
    *, heads: int = 4, blocks: int = 1, read: tuple[int, ...] | None = None,
) -> tuple[MedusaHeads, dict[str, Any]]:  # fmt: skip
    """Train Medusa heads that read the layers ``read`` (all) of those kept in ``data``."""
    torch.manual_seed(plan.seed)
    read = layers if read is None else read
    module = MedusaHeads(medusa_config(target, read, heads=heads, blocks=blocks))
    module.to(target.model.device)
    inner = medusa_loss(module, target.model)
    columns = [layers.index(layer) for layer in read]
    return module, fit(module, lambda ids, f: inner(ids, f[:, :, columns]), data, path, plan)


@torch.no_grad()
def measure_medusa(
    heads: MedusaHeads, model: Any, features: Tensor, skip: int = 32
) -> dict[str, list[Any]]:
    """Return alpha, top-1 and top-5 agreement, and the probability of each rank, per head.

    Top-k: how often the target's favourite is among the head's k; ``ranks[i][r]`` is the
    target's mean probability of the token that head i + 1 ranks r-th, which is how often a
    deterministic proposal of it is accepted. The first ``skip`` positions are left out.
    """
    out = model.get_output_embeddings()
    p = log_distributions(features[:, :, -1], out).exp()
    states = heads(features)
    result: dict[str, list[Any]] = {"alpha": [], "top1": [], "top5": [], "ranks": []}
    for i in range(1, heads.config.heads + 1):
        q = log_distributions(states[:, skip:-i, i - 1], out).exp()
        here = p[:, skip + i :]
        best = q.topk(min(RANKS, q.shape[-1]), -1).indices
        hit = best == here.argmax(-1, keepdim=True)
        result["alpha"].append(overlap(here, q).mean().item())
        result["top1"].append(hit[..., 0].float().mean().item())
        result["top5"].append(hit[..., :5].any(-1).float().mean().item())
        result["ranks"].append(here.gather(-1, best).mean((0, 1)).tolist())
    return result
