"""Train an EAGLE head on its own roll-outs, and measure it at every depth.

Pass 0 reads the target's features everywhere. Pass j reads, at position t, what pass j - 1 put
out at t - 1: a feature of its own making, as in drafting. All positions are trained at once: a
query of pass j sees the keys of pass 0 up to t - j, and of pass i in 1..j only the one at
t - (j - i), its own ancestors in the roll-out (EAGLE-3's training-time test, Li et al. 2025).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from specviz.models.heads.config import EagleConfig, fingerprint
from specviz.models.heads.eagle import EagleHead, rotation
from specviz.models.training.features import Features
from specviz.models.training.fit import HeadPlan, Loss, divergence, fit, log_distributions, overlap

DECAY = 0.9
"""How much less each further roll-out step counts in the loss."""
STEPS = 4


def eagle_config(
    target: Any,
    layers: tuple[int, ...],
    *,
    steps: int = STEPS,
    window: int,
    features: bool = True,
    own_vocabulary: bool = False,
) -> EagleConfig:
    """Return the shape of a head whose layer is of the size of the target's own.

    Parameters
    ----------
    target : Model
        Any Hugging Face causal model, wrapped.
    layers : tuple of int
        The layers whose outputs are the features.
    steps : int
        Roll-out steps it will be trained on.
    window : int
        Positions in its training rows.
    features : bool
        False for the ablation.
    own_vocabulary : bool
        Whether it gets an embedding of its own.
    """
    shape = target.model.config.get_text_config()
    heads = int(shape.num_attention_heads)
    head_dim = int(getattr(shape, "head_dim", None) or shape.hidden_size // heads)
    inner = getattr(shape, "intermediate_size", None) or 4 * shape.hidden_size
    ropes = getattr(shape, "rope_parameters", None) or {}
    theta = ropes.get("rope_theta", 10000.0) if isinstance(ropes, dict) else 10000.0
    return EagleConfig(
        hidden_size=int(shape.hidden_size),
        vocab_size=target.vocab_size,
        layers=layers,
        intermediate_size=int(inner),
        num_heads=heads,
        num_kv_heads=int(getattr(shape, "num_key_value_heads", None) or heads),
        head_dim=head_dim + head_dim % 2,
        rope_theta=float(theta),
        features=features,
        steps=steps,
        window=window,
        own_vocabulary=own_vocabulary,
        target=target.name,
        fingerprint=fingerprint(target.model.get_input_embeddings().weight),
    )


def start_from_draft(head: EagleHead, draft: Any) -> None:
    """Make a head with a vocabulary of its own say exactly what a one-layer draft says.

    The features start with no weight, so training can only add what they know. The draft must be
    Llama-like and have the head's sizes, and its embedding is its output head.

    Raises
    ------
    ValueError
        If it is not of that shape.
    """
    layers = draft.model.layers
    own = head.vocabulary
    same = own is not None and own.weight.shape == draft.lm_head.weight.shape
    if not same or own is None or len(layers) != 1 or not draft.config.tie_word_embeddings:
        raise ValueError("an EAGLE head can start from a one-layer draft with tied embeddings only")
    attention, mlp = layers[0].self_attn, layers[0].mlp
    pairs = [
        (own.weight, draft.lm_head.weight),
        *((getattr(head, f"{n}_proj").weight, getattr(attention, f"{n}_proj").weight)
          for n in "qkvo"),
        *((getattr(head, f"{n}_proj").weight, getattr(mlp, f"{n}_proj").weight)
          for n in ("gate", "up", "down")),
        (head.attention_norm, layers[0].input_layernorm.weight),
        (head.mlp_norm, layers[0].post_attention_layernorm.weight),
        (head.final_norm, draft.model.norm.weight),
    ]  # fmt: skip
    with torch.no_grad():
        for weight, source in pairs:
            weight.copy_(source)
        head.fuse.weight.zero_()
        head.gain.zero_()


def _delayed(x: Tensor, by: int, dim: int) -> Tensor:
    """Move entries ``by`` places later along ``dim``; the first ones are zeros."""
    if by == 0:
        return x
    kept = x.narrow(dim, 0, x.shape[dim] - by)
    return torch.cat([torch.zeros_like(x.narrow(dim, 0, by)), kept], dim)


def attend(query: Tensor, keys: list[Tensor], values: list[Tensor], pass_: int) -> Tensor:
    """Attention of one roll-out pass: pass 0 causally, each later pass at one place.

    Parameters
    ----------
    query
        ``(batch, heads, time, head_dim)`` of pass ``pass_``.
    keys, values
        Of passes 0 to ``pass_``, with as many heads as the query.

    Returns
    -------
    Tensor
        ``(batch, time, heads * head_dim)``.
    """
    time, dim = query.shape[-2:]
    query = query * dim**-0.5
    later = torch.ones(time, time, dtype=torch.bool, device=query.device).triu(1 - pass_)
    later[:pass_, 0] = False  # no position has come so far: whatever it sees is not scored
    scores = [(query @ keys[0].mT).float().masked_fill(later, -1e9)]
    for i in range(1, pass_ + 1):
        key = _delayed(keys[i], pass_ - i, -2)
        scores.append((query * key).sum(-1, keepdim=True).float())
    weights = torch.cat(scores, -1).softmax(-1).to(query.dtype)
    mixed = weights[..., :time] @ values[0].to(query.dtype)
    for i in range(1, pass_ + 1):
        mixed = mixed + weights[..., time + i - 1, None] * _delayed(values[i], pass_ - i, -2)
    return mixed.transpose(1, 2).flatten(-2)


def roll_out(
    head: EagleHead, features: Tensor, following: Tensor, embedding: Any, steps: int
) -> list[Tensor]:
    """Return the head's output in each of ``steps`` passes, ``(batch, time, hidden)`` each.

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
    steps
        Output j at position t leads to the distribution of x[t + 2] as a draft of depth j + 1 has
        it; it means something from t = j on.
    """
    time, config = following.shape[1], head.config
    positions = torch.arange(time, device=following.device)
    embedded = head.embedded(following, embedding)
    cos, sin = rotation(positions, config.head_dim, config.rope_theta, torch.float32)
    share = config.num_heads // config.num_kv_heads
    fused, outputs = head.fused(features), []
    keys: list[Tensor] = []
    values: list[Tensor] = []
    for pass_ in range(steps):
        x = fused + embedded
        query, key, value = head.heads_of(x, cos, sin)
        keys.append(key.repeat_interleave(share, 1))
        values.append(value.repeat_interleave(share, 1))
        output = head.finished(x, attend(query, keys, values, pass_))
        outputs.append(output)
        fused = _delayed(head.continued(output), 1, 1)
    return outputs


def eagle_loss(head: EagleHead, model: Any, *, steps: int) -> Loss:
    """Return KL(p || q) over the roll-out, each step counting ``DECAY`` times the one before.

    Parameters
    ----------
    head
        What is trained.
    model
        The target, a Hugging Face model: its embedding and output head are used as they are.
    steps
        Roll-out steps.
    """
    embedding, out = model.get_input_embeddings(), model.get_output_embeddings()

    def loss(ids: Tensor, features: Tensor) -> Tensor:
        with torch.no_grad():
            log_p = log_distributions(features[:, :, -1], out)  # of x[t + 1] at t
        total = torch.zeros((), device=ids.device)
        weights = [DECAY**j for j in range(steps)]
        for j, output in enumerate(roll_out(head, features, ids[:, 1:], embedding, steps)):
            every = 1 if j == 0 else 2  # later passes: half the positions, which are like the rest
            logits = head.logits(output[:, j:-1:every], out)
            total = total + weights[j] * divergence(log_p[:, j + 1 :: every], logits)
        return total / sum(weights)

    return loss


def train_eagle(
    target: Any, data: Features, layers: tuple[int, ...], path: Path, plan: HeadPlan,
    *, steps: int = STEPS, features: bool = True, draft: Any = None,
) -> tuple[EagleHead, dict[str, Any]]:  # fmt: skip
    """Train an EAGLE head of the size of the target's own layers; return it and the run's facts.

    With a ``draft`` (one layer, Llama-like) it starts as that draft and has its vocabulary.
    """
    torch.manual_seed(plan.seed)
    window = min(plan.context, data.time)
    config = eagle_config(
        target, layers, steps=steps, window=window, features=features,
        own_vocabulary=draft is not None,
    )  # fmt: skip
    head = EagleHead(config)
    if draft is not None:
        start_from_draft(head, draft)
    head.to(target.model.device)
    loss = eagle_loss(head, target.model, steps=steps)
    return head, fit(head, loss, data, path, plan)


@torch.no_grad()
def measure_eagle(
    head: EagleHead, model: Any, ids: Tensor, features: Tensor, depth: int, skip: int = 32
) -> dict[str, list[float]]:
    """Return alpha = mean of sum(min(p, q)) and top-1 agreement at depths 1 to ``depth``.

    The text is given (``ids``), so depth d is the acceptance of the d-th proposal when those
    before it were right. The first ``skip`` positions, with little context, are left out.
    """
    embedding, out = model.get_input_embeddings(), model.get_output_embeddings()
    p = log_distributions(features[:, :, -1], out).exp()
    result: dict[str, list[float]] = {"alpha": [], "top1": []}
    for j, output in enumerate(roll_out(head, features, ids[:, 1:], embedding, depth)):
        q = head.logits(output[:, skip + j : -1], out).float().softmax(-1)
        here = p[:, skip + j + 1 :]
        result["alpha"].append(overlap(here, q).mean().item())
        result["top1"].append((here.argmax(-1) == q.argmax(-1)).float().mean().item())
    return result
