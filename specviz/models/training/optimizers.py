"""Muon for the matrices inside the layers, AdamW for everything else, and the schedule.

Muon (Jordan et al. 2024) replaces a matrix's momentum by the nearest orthogonal matrix, found
with five Newton-Schulz steps. Here matrices of one shape are orthogonalised in one batch, and
with several workers each does its share and the results are summed.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from specviz.models.training.parallel import Workers

MUON_RATE = 0.02
ADAM_RATE = 2e-3
_SCHULZ = (3.4445, -4.7750, 2.0315)


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


def orthogonalise(matrices: Tensor, steps: int = 5) -> Tensor:
    """Return nearly orthogonal bfloat16 matrices with the row and column spaces of the input.

    Parameters
    ----------
    matrices
        ``(count, rows, columns)``.
    steps
        Newton-Schulz iterations; singular values end between about .7 and 1.2.
    """
    a, b, c = _SCHULZ
    x = matrices.bfloat16()
    tall = x.shape[-2] > x.shape[-1]
    if tall:
        x = x.mT
    x = x / (x.float().norm(dim=(-2, -1), keepdim=True) + 1e-7).bfloat16()
    for _ in range(steps):
        gram = x @ x.mT
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x.mT if tall else x


class Optimiser:
    """Both optimisers behind one ``step``.

    Parameters
    ----------
    model
        Its two-dimensional parameters whose name contains ``layers`` go to Muon.
    workers
        Who shares the orthogonalisation.
    momentum, decay
        Muon's momentum and (decoupled) weight decay.
    muon_rate, adam_rate
        Learning rates at factor 1.
    """

    def __init__(
        self,
        model: nn.Module,
        workers: Workers | None = None,
        *,
        momentum: float = 0.95,
        decay: float = 0.05,
        muon_rate: float = MUON_RATE,
        adam_rate: float = ADAM_RATE,
    ) -> None:
        self.workers = workers or Workers()
        self.momentum, self.decay = momentum, decay
        self.muon_rate, self.adam_rate = muon_rate, adam_rate
        named = dict(model.named_parameters())
        self.matrices = {n: p for n, p in named.items() if p.dim() == 2 and "layers" in n}
        self.others = {n: p for n, p in named.items() if n not in self.matrices}
        self.buffers = {n: torch.zeros_like(p) for n, p in self.matrices.items()}
        self.adam = torch.optim.AdamW(
            self.others.values(), lr=adam_rate, betas=(0.9, 0.95), weight_decay=0.0, fused=True
        )

    @torch.no_grad()
    def step(self, factor: float, clip: float = 1.0) -> None:
        """Clip the gradients to norm ``clip``, update at ``factor`` times the rates, clear."""
        everything = [*self.matrices.values(), *self.others.values()]
        nn.utils.clip_grad_norm_(everything, clip)
        for group in self.adam.param_groups:
            group["lr"] = self.adam_rate * factor
        self.adam.step()
        rate = self.muon_rate * factor
        for name, update in self._updates().items():
            matrix = self.matrices[name]
            scale = max(1.0, matrix.shape[0] / matrix.shape[1]) ** 0.5
            matrix.mul_(1 - rate * self.decay).add_(update, alpha=-rate * scale)
        for parameter in everything:
            parameter.grad = None

    def _updates(self) -> dict[str, Tensor]:
        """Return each matrix's orthogonalised Nesterov momentum."""
        shapes: dict[torch.Size, list[str]] = {}
        for name, matrix in self.matrices.items():
            buffer = self.buffers[name]
            assert matrix.grad is not None
            buffer.lerp_(matrix.grad, 1 - self.momentum)
            matrix.grad.lerp_(buffer, self.momentum)
            shapes.setdefault(matrix.shape, []).append(name)
        updates: dict[str, Tensor] = {}
        rank, world = self.workers.rank, self.workers.world
        for shape, names in shapes.items():
            stack = torch.zeros((len(names), *shape), dtype=torch.bfloat16)
            mine = names[rank::world]
            if mine:
                gradients = [self.matrices[name].grad for name in mine]
                stack[rank::world] = orthogonalise(torch.stack(gradients))  # type: ignore[arg-type]
            self.workers.sum_(stack)
            updates.update(zip(names, stack, strict=True))
        return updates

    def tensors(self) -> dict[str, Tensor]:
        """Return the whole state by name, ready for a checkpoint."""
        state = {f"muon.{name}": buffer for name, buffer in self.buffers.items()}
        for name, parameter in self.others.items():
            for key, value in self.adam.state[parameter].items():
                state[f"adam.{name}.{key}"] = value
        return state

    def load(self, state: dict[str, Tensor]) -> None:
        """Continue from what ``tensors`` returned."""
        for name, buffer in self.buffers.items():
            buffer.copy_(state[f"muon.{name}"])
        for name, parameter in self.others.items():
            keys = [key for key in state if key.startswith(f"adam.{name}.")]
            self.adam.state[parameter] = {key.rsplit(".", 1)[1]: state[key].clone() for key in keys}
