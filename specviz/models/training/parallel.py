"""One worker, or several that share each batch and average their gradients (gloo).

The rows of a batch are a function of the step alone (see ``batches``), so a run started with
one worker continues with two and the other way round.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.multiprocessing.spawn import spawn


@dataclass(frozen=True)
class Workers:
    """Which worker this process is, of how many."""

    rank: int = 0
    world: int = 1

    def sum_(self, tensor: Tensor) -> None:
        """Replace ``tensor`` by its sum over the workers."""
        if self.world > 1:
            dist.all_reduce(tensor)

    def average_gradients(self, parameters: Iterable[torch.nn.Parameter], extra: Tensor) -> Tensor:
        """Average the gradients in place and return the average of ``extra`` (1-D) as well."""
        if self.world == 1:
            return extra
        gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
        flat = torch.cat([extra, *(gradient.flatten() for gradient in gradients)])
        self.sum_(flat)
        flat /= self.world
        place = len(extra)
        for gradient in gradients:
            gradient.copy_(flat[place : place + gradient.numel()].view_as(gradient))
            place += gradient.numel()
        return flat[: len(extra)]


def _enter(rank: int, world: int, meeting: str, work: Callable[..., None], args: Any) -> None:
    if Path("/sys/class/net/lo").exists():
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=world)
    try:
        work(Workers(rank, world), *args)
    finally:
        dist.destroy_process_group()


def launch(count: int, work: Callable[..., None], *args: Any) -> None:
    """Call ``work(workers, *args)`` in ``count`` processes with one thread each.

    With ``count`` 1 it is called here. ``work`` and ``args`` must be picklable otherwise.
    """
    if count < 1:
        raise ValueError(f"workers must be at least 1, not {count}")
    torch.set_num_threads(1)
    if count == 1:
        work(Workers(), *args)
        return
    with tempfile.TemporaryDirectory() as folder:
        meeting = str(Path(folder) / "meeting")
        spawn(_enter, (count, meeting, work, args), nprocs=count)
