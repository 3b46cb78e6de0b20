"""How anything here is trained: Muon and AdamW, one schedule, checkpoints, and the loop for heads.

Muon (Jordan et al. 2024) replaces a matrix's momentum by the nearest orthogonal matrix; it takes
the matrices inside the layers, AdamW everything else. A checkpoint is one safetensors file of
tensors and plain facts. Together with the number of the step it is the whole state, because which
rows a step reads follows from its number: training that goes on from one is bit-equal to training
that never stopped (same machine, same number of threads).
"""

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
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor, nn
from tqdm.auto import tqdm

from specviz.models.training.features import Features

MUON_RATE = 0.02
ADAM_RATE = 2e-3


def warmup_stable_decay(
    step: int, warmup: int, decay_start: int | None = None, decay_steps: int = 0
) -> float:
    """Return the learning-rate factor of ``step`` (the first step is 0).

    It rises linearly over ``warmup`` steps, stays at 1, and, once a cooldown has been asked for
    at ``decay_start``, falls as 1 - sqrt(progress) to nearly 0 (Hägele et al. 2024, "Scaling
    distributions and compute-optimal training beyond fixed training durations"): nobody has to know
    in advance when training ends.

    Examples
    --------
    >>> [warmup_stable_decay(s, 2, 10, 4) for s in (0, 1, 5, 11)]
    [0.5, 1.0, 1.0, 0.5]
    """
    factor = min(1.0, (step + 1) / warmup) if warmup else 1.0
    if decay_start is None or step < decay_start:
        return factor
    progress = min(1.0, (step - decay_start) / max(1, decay_steps))
    return factor * max(0.0, 1.0 - progress**0.5)


class Optimiser:
    """Muon and AdamW behind one ``step``.

    Parameters
    ----------
    model
        Its two-dimensional parameters whose name contains ``layers`` go to Muon.
    decay
        Muon's decoupled weight decay.
    muon_rate, adam_rate
        Learning rates at factor 1.
    """

    def __init__(
        self,
        model: nn.Module,
        *,
        decay: float = 0.05,
        muon_rate: float = MUON_RATE,
        adam_rate: float = ADAM_RATE,
    ) -> None:
        named = dict(model.named_parameters())
        self.matrices = {n: p for n, p in named.items() if p.dim() == 2 and "layers" in n}
        self.others = {n: p for n, p in named.items() if n not in self.matrices}
        self.rates = (muon_rate, adam_rate)
        # "original": a tall matrix's update is scaled by sqrt(rows / columns)
        self.muon = torch.optim.Muon(
            self.matrices.values(), lr=muon_rate, weight_decay=decay, adjust_lr_fn="original"
        )
        self.adam = torch.optim.AdamW(
            self.others.values(), lr=adam_rate, betas=(0.9, 0.95), weight_decay=0.0, fused=True
        )

    def step(self, factor: float, clip: float = 1.0) -> None:
        """Clip the gradients to norm ``clip``, update at ``factor`` times the rates, clear."""
        nn.utils.clip_grad_norm_([*self.matrices.values(), *self.others.values()], clip)
        for optimiser, rate in zip((self.muon, self.adam), self.rates, strict=True):
            optimiser.param_groups[0]["lr"] = rate * factor
            optimiser.step()
            optimiser.zero_grad(set_to_none=True)

    def tensors(self) -> dict[str, Tensor]:
        """Return the whole state by name, ready for a checkpoint."""
        state = {
            f"muon.{name}": self.muon.state[matrix]["momentum_buffer"]
            for name, matrix in self.matrices.items()
            if matrix in self.muon.state
        }
        for name, parameter in self.others.items():
            for key, value in self.adam.state[parameter].items():
                state[f"adam.{name}.{key}"] = value
        return state

    def load(self, state: dict[str, Tensor]) -> None:
        """Continue from what ``tensors`` returned."""
        for name, matrix in self.matrices.items():
            if f"muon.{name}" in state:
                momentum = state[f"muon.{name}"].to(matrix, copy=True)
                self.muon.state[matrix] = {"momentum_buffer": momentum}
        for name, parameter in self.others.items():
            keys = [key for key in state if key.startswith(f"adam.{name}.")]
            self.adam.state[parameter] = {
                key.rsplit(".", 1)[1]: state[key].to(parameter, copy=True) for key in keys
            }


def save_checkpoint(path: Path, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
    """Write ``tensors`` and the JSON-able ``facts`` to ``path`` atomically.

    An interrupted save leaves the previous file untouched.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".tmp")
    whole = {name: tensor.detach().contiguous() for name, tensor in tensors.items()}
    save_file(whole, temporary, metadata={"format": "pt", "facts": json.dumps(facts)})
    temporary.replace(path)


def load_checkpoint(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return the tensors and the facts of a checkpoint.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    """
    if not path.is_file():
        raise FileNotFoundError(f"no checkpoint at {path}; train first, or give another --run")
    with safe_open(path, framework="pt") as file:
        facts = json.loads(file.metadata()["facts"])
        names = file.keys()
        return {name: file.get_tensor(name) for name in names}, facts


@torch.no_grad()
def restore(model: nn.Module, tensors: dict[str, Tensor]) -> None:
    """Copy a checkpoint's weights (names with ``model.`` before them) into ``model``."""
    for name, parameter in model.named_parameters():
        parameter.copy_(tensors[f"model.{name}"])


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
        tensors, now_facts = load_checkpoint(path)
        restore(module, tensors)
        optimiser.load(tensors)
    elif plan.start is not None:
        tensors, earlier = load_checkpoint(plan.start)
        restore(module, tensors)
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
            save_checkpoint(path, {**tensors, **optimiser.tensors()}, now_facts)
    bar.close()
    module.eval().requires_grad_(False)
    return now_facts


def logits_of(state: Tensor, head: Any) -> Tensor:
    """Return the logits ``(..., vocab)`` that the target's output head gives to a state."""
    logits: Tensor = head(state.to(head.weight.dtype))
    return logits


def log_distributions(state: Tensor, head: Any) -> Tensor:
    """Return float32 log-probabilities ``(..., vocab)``: the target's output head on a state."""
    return logits_of(state, head).float().log_softmax(-1)


class Divergence(torch.autograd.Function):
    """Mean KL(p || q) with its gradient, (q - p) / positions, made in the forward pass.

    Automatic differentiation would go through memory four times as often, and these tensors are
    as wide as the vocabulary.
    """

    @staticmethod
    def forward(ctx: Any, logits: Tensor, log_p: Tensor) -> Tensor:
        """Return a scalar from draft logits and target log-probabilities, ``(..., vocab)`` each."""
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
    """Return the mean KL(p || q) in nats from log p and the draft's logits, ``(..., vocab)``."""
    value: Tensor = Divergence.apply(logits, log_p)
    return value


def overlap(p: Tensor, q: Tensor) -> Tensor:
    """Return sum(min(p, q)) per position for distributions ``(..., vocab)``."""
    return torch.minimum(p, q).sum(-1)
