"""The loop that trains any head: shuffled batches, Muon and AdamW, checkpoints, a log, resume."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from tqdm.auto import tqdm

from specviz.models.training import checkpoint
from specviz.models.training.features import Features
from specviz.models.training.optimizers import ADAM_RATE, MUON_RATE, Optimiser, warmup_stable_decay

Loss = Callable[[Tensor, Tensor], Tensor]
"""(ids ``(rows, time + 1)``, features ``(rows, time, layers, hidden)``) → a scalar."""


@dataclass(frozen=True)
class HeadPlan:
    """How long to train a head, and on what batches."""

    steps: int = 800
    rows: int = 16
    context: int = 256
    """Positions in a row; windows are cut into pieces of this length."""
    warmup: int = 30
    steady: float = 0.4
    """Share of the steps at the full learning rate; then it falls to 0."""
    muon_rate: float = MUON_RATE
    adam_rate: float = ADAM_RATE
    seed: int = 0
    save_every: float = 60.0
    log_every: int = 20
    only: tuple[str, ...] = ()
    """Beginnings of the names of what is trained; everything if empty."""
    start: Path | None = None
    """A checkpoint of the same shape to start from."""


@lru_cache(maxsize=2)
def _order(seed: int, epoch: int, count: int) -> NDArray[np.int64]:
    return np.random.default_rng((seed, epoch)).permutation(count)


def rows_of(step: int, plan: HeadPlan, count: int) -> NDArray[np.int64]:
    """Return which of ``count`` pieces step ``step`` reads: all in every epoch, in a new order."""
    rows = range(step * plan.rows, (step + 1) * plan.rows)
    return np.array([int(_order(plan.seed, row // count, count)[row % count]) for row in rows])


class _Sorted(nn.Module):
    """A module whose parameters are named as ``Optimiser`` sorts them: Muon takes "layers"."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def named_parameters(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, nn.Parameter]]:
        """Yield every parameter once; a matrix that is no vocabulary's as one of a layer."""
        for name, parameter in self.module.named_parameters(*args, **kwargs):
            if not parameter.requires_grad:
                continue
            words = any(part in name for part in ("vocabulary", "embed_tokens", "lm_head"))
            inside = parameter.dim() == 2 and not words
            yield (f"layers.{name}" if inside else f"other.{name}"), parameter


def fit(
    module: nn.Module,
    loss: Loss,
    data: Features,
    path: Path,
    plan: HeadPlan,
    facts: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Train ``module`` in place; return the facts of the run.

    Parameters
    ----------
    module : nn.Module
        What is trained. Matrices go to Muon, embeddings and everything else to AdamW.
    loss : callable
        See :data:`Loss`; called under bfloat16 autocast on a CPU.
    data : Features
        What it is trained on.
    path : Path
        The checkpoint; a call with one goes on from there, and a finished one only loads it. The
        log is the file of the same name with ``.jsonl``.
    plan : HeadPlan
        How long, and how.
    facts : dict, optional
        Kept in the checkpoint.

    Returns
    -------
    dict
        ``facts`` with ``step``, ``seconds``, ``rows``, ``context``, ``windows``, and ``before``,
        the steps behind the checkpoint it started from.
    """
    context = min(plan.context, data.time)
    pieces = len(data) * (data.time // context)
    now_facts: dict[str, Any] = {
        **(facts or {}), "step": 0, "seconds": 0.0, "rows": plan.rows,
        "context": context, "windows": len(data),
    }  # fmt: skip
    module.train().requires_grad_(True)
    for name, parameter in module.named_parameters():
        parameter.requires_grad_(not plan.only or name.startswith(plan.only))
    optimiser = Optimiser(_Sorted(module), muon_rate=plan.muon_rate, adam_rate=plan.adam_rate)
    if path.is_file():
        tensors, now_facts = checkpoint.load(path)
        _restore(module, tensors)
        optimiser.load(tensors)
    elif plan.start is not None:
        tensors, earlier = checkpoint.load(plan.start)
        _restore(module, tensors)
        now_facts["before"] = earlier["step"] + earlier.get("before", 0)
    device = next(module.parameters()).device
    begin = saved = time.monotonic()
    before, mean = now_facts["seconds"], None
    bar = tqdm(total=plan.steps, initial=now_facts["step"], desc=path.stem, delay=2, mininterval=5)
    while now_facts["step"] < plan.steps:
        ids, features = data.batch(rows_of(now_facts["step"], plan, pieces), context)
        with torch.autocast("cpu", torch.bfloat16, enabled=device.type == "cpu"):
            value = loss(ids.to(device), features.to(device))
        value.backward()
        steady = int(plan.steady * plan.steps)
        factor = warmup_stable_decay(
            now_facts["step"], min(plan.warmup, 1 + plan.steps // 10), steady, plan.steps - steady
        )
        optimiser.step(factor)
        now_facts["step"] += 1
        now = time.monotonic()
        now_facts["seconds"] = before + now - begin
        mean = value.item() if mean is None else 0.95 * mean + 0.05 * value.item()
        bar.update()
        if now_facts["step"] % plan.log_every == 0:
            line = {"step": now_facts["step"], "seconds": now_facts["seconds"], "loss": mean}
            with path.with_suffix(".jsonl").open("a") as file:
                file.write(json.dumps({k: round(v, 4) for k, v in line.items()}) + "\n")
        if now_facts["step"] == plan.steps or now - saved > plan.save_every:
            saved = now
            tensors = {f"model.{name}": p for name, p in module.named_parameters()}
            checkpoint.save(path, {**tensors, **optimiser.tensors()}, now_facts)
    bar.close()
    module.eval().requires_grad_(False)
    return now_facts


def _restore(module: nn.Module, tensors: dict[str, Tensor]) -> None:
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            parameter.copy_(tensors[f"model.{name}"])


def logits_of(state: Tensor, head: Any) -> Tensor:
    """Return the logits ``(..., vocab)`` that the target's output head gives to a state."""
    logits: Tensor = head(state.to(head.weight.dtype))
    return logits


def log_distributions(state: Tensor, head: Any) -> Tensor:
    """Return float32 log distributions ``(....

    Vocab)`` that the target's output head gives to a state.
    """
    return logits_of(state, head).float().log_softmax(-1)


class Divergence(torch.autograd.Function):
    """Mean KL(p || q) with its gradient, (q - p) / positions, made in the forward pass.

    Automatic differentiation would go through memory four times as often, and these tensors are
    as wide as the vocabulary.
    """

    @staticmethod
    def forward(ctx: Any, logits: Tensor, log_p: Tensor) -> Tensor:
        """Return a scalar from draft logits and target log distributions, ``(..., vocab)`` each."""
        q = logits.float()
        log_mass = q.logsumexp(-1, keepdim=True)
        p = log_p.exp()
        value = (p * (log_p - q)).sum(-1) + log_mass[..., 0]
        gradient = (q - log_mass).exp_().sub_(p).div_(value.numel())
        ctx.save_for_backward(gradient.to(logits.dtype))
        return value.mean()

    @staticmethod
    def backward(ctx: Any, *outer: Tensor) -> tuple[Tensor, None]:
        """Return the gradient of the logits; the target has none."""
        (gradient,) = ctx.saved_tensors
        return gradient * outer[0], None


def divergence(log_p: Tensor, logits: Tensor) -> Tensor:
    """Return the mean KL(p || q) in nats; target log distributions and draft logits ``(....

    Vocab)``.
    """
    value: Tensor = Divergence.apply(logits, log_p)
    return value
