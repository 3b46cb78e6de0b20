"""Train a parallel head: every placeholder after every position at once.

Entry t reads the target's features at t and x[t + 1], and leads to the distribution of x[t + 2],
as in EAGLE. Placeholder j after it stands at t + j and learns the target's distribution of
x[t + 2 + j] given the text up to x[t + 1 + j]. The text in between is drawn from about that
distribution, so on average it learns the right marginal, as a Medusa head does.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from specviz.models.heads.config import ParallelConfig
from specviz.models.heads.eagle import rotation
from specviz.models.heads.parallel import ParallelHead
from specviz.models.training.features import Features
from specviz.models.training.fit import (
    HeadPlan,
    Loss,
    divergence,
    fit,
    log_distributions,
    overlap,
)
from specviz.models.training.train_eagle import eagle_config

DECAY = 0.8
"""How much less each further placeholder counts in the loss."""
GAMMA = 4


def parallel_config(
    target: Any, layers: tuple[int, ...], *, window: int, gamma: int = GAMMA
) -> ParallelConfig:
    """Return the shape of a head whose layer is of the size of the target's own."""
    shape = asdict(eagle_config(target, layers, steps=1, window=window))
    return ParallelConfig(**shape, gamma=gamma)


def slot_outputs(
    head: ParallelHead, features: Tensor, following: Tensor, embedding: Any
) -> list[Tensor]:
    """Return the outputs of all entries, then of each placeholder after them.

    Parameters
    ----------
    head
        The head.
    features
        ``(batch, time, layers, hidden)`` of x[t].
    following
        ``(batch, time)`` ids: x[t + 1].
    embedding
        The target's.

    Returns
    -------
    list of Tensor
        ``gamma`` tensors ``(batch, time, hidden)``; output j at t leads to x[t + 2 + j].
    """
    time, config = following.shape[1], head.config
    share = config.num_heads // config.num_kv_heads
    entry = head.fused(features) + head.embedded(following, embedding)  # (batch, time, hidden)
    inputs = [entry, *head.placeholders(entry, config.gamma - 1).unbind(-2)]
    places = torch.arange(time, device=entry.device)
    back = places[:, None] - places  # (time, time)
    keys: list[Tensor] = []
    values: list[Tensor] = []
    outputs = []
    # scores of pass j are (batch, heads, time, time + j): the text, then placeholders 1 to j
    for j, x in enumerate(inputs):
        cos, sin = rotation(places + j, config.head_dim, config.rope_theta, torch.float32)
        query, key, value = head.heads_of(x, cos, sin)  # (batch, heads, time, dim)
        keys.append(key.repeat_interleave(share, 1))
        values.append(value.repeat_interleave(share, 1))
        query = query * config.head_dim**-0.5
        hidden = (back < 0) | (back + j >= config.window)
        # the text's entries up to t, then the placeholders 1 to j after the same t
        scores = [(query @ keys[0].mT).float().masked_fill(hidden, -torch.inf)]
        scores += [(query * key).sum(-1, keepdim=True).float() for key in keys[1:]]
        weights = torch.cat(scores, -1).softmax(-1).to(query.dtype)
        mixed = weights[..., :time] @ values[0].to(query.dtype)
        for i, value in enumerate(values[1:]):
            mixed = mixed + weights[..., time + i, None] * value
        outputs.append(head.finished(x, mixed.transpose(1, 2).flatten(-2)))
    return outputs


def parallel_loss(head: ParallelHead, model: Any) -> Loss:
    """Return the weighted KL(p || q) of all gamma places; ``model`` is the target as it is."""
    embedding, out = model.get_input_embeddings(), model.get_output_embeddings()

    def loss(ids: Tensor, features: Tensor) -> Tensor:
        with torch.no_grad():
            log_p = log_distributions(features[:, :, -1], out)  # of x[t + 1] at t
        total = torch.zeros((), device=ids.device)
        weights = [DECAY**j for j in range(head.config.gamma)]
        for j, output in enumerate(slot_outputs(head, features, ids[:, 1:], embedding)):
            logits = head.logits(output[:, : -j - 1], out)
            total = total + weights[j] * divergence(log_p[:, j + 1 :], logits)
        return total / sum(weights)

    return loss


def train_parallel(
    target: Any, data: Features, layers: tuple[int, ...], path: Path, plan: HeadPlan,
    *, gamma: int = GAMMA,
) -> tuple[ParallelHead, dict[str, Any]]:  # fmt: skip
    """Train a parallel head of the size of the target's own layers; return it and the facts."""
    torch.manual_seed(plan.seed)
    window = min(plan.context, data.time)
    head = ParallelHead(parallel_config(target, layers, window=window, gamma=gamma))
    head.to(target.model.device)
    return head, fit(head, parallel_loss(head, target.model), data, path, plan)


@torch.no_grad()
def measure_parallel(
    head: ParallelHead, model: Any, ids: Tensor, features: Tensor, skip: int = 32
) -> dict[str, list[float]]:
    """Return alpha = mean of sum(min(p, q)) and top-1 agreement at each of the gamma places.

    The text is given (``ids``), so place d is the acceptance of the d-th proposal when those
    before it were right. The first ``skip`` positions, with little context, are left out.
    """
    embedding, out = model.get_input_embeddings(), model.get_output_embeddings()
    p = log_distributions(features[:, :, -1], out).exp()
    result: dict[str, list[float]] = {"alpha": [], "top1": []}
    for j, output in enumerate(slot_outputs(head, features, ids[:, 1:], embedding)):
        q = head.logits(output[:, skip : -j - 1], out).float().softmax(-1)
        here = p[:, skip + j + 1 :]
        result["alpha"].append(overlap(here, q).mean().item())
        result["top1"].append((here.argmax(-1) == q.argmax(-1)).float().mean().item())
    return result
