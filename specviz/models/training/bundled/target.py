"""Train the target: next-token loss, early-exit losses from the first step, a stoppable schedule.

The learning rate is constant until a cooldown is asked for. ``checkpoint.safetensors`` always
holds the constant phase; a cooldown starts from it, writes ``cooled.safetensors`` beside it and
leaves it alone, so that training can go on from it another day.

**Early exits.** After layer 4, and after one of layers 8, 2, 12 and 6 in turn, the stream is
read out through the shared final norm and head, and the divergence KL(p || q_exit) from the
final distribution p (taken as a constant) is added with a small weight. Drafting with an exit is
accepted with sum(min(p, q_exit)), so agreement with p, rather than with the text, is what an exit
needs. To keep this cheap, exits are scored on a half and on a quarter of the positions.
"""

from __future__ import annotations

import json
import math
import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor
from torch.multiprocessing.spawn import spawn
from transformers import LlamaForCausalLM

from specviz.models.training.bundled.batches import SHARES, Mixture, load_domains
from specviz.models.training.bundled.llama import (
    block,
    build,
    compiled_block,
    hidden_states,
    logits,
    read_out,
)
from specviz.models.training.features import heldout_windows
from specviz.models.training.fit import (
    Optimiser,
    load_checkpoint,
    restore,
    save_checkpoint,
    warmup_stable_decay,
)

FIXED_EXIT = 4
ROTATING_EXITS = (8, 2, 12, 6)
FIXED_WEIGHT = 0.2
ROTATING_WEIGHT = 0.1
STABLE = "checkpoint.safetensors"
COOLED = "cooled.safetensors"
WEIGHTS, STATE = "weights.safetensors", "optimiser.safetensors"


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


@dataclass(frozen=True)
class TargetSettings:
    """Everything that decides what a run computes; kept in its checkpoints."""

    layers: int = 16
    vocab: int = 4096
    hidden: int = 256
    intermediate: int = 512
    heads: int = 4
    kv_heads: int = 2
    max_context: int = 512
    tokens_per_step: int = 4096
    warmup: int = 60
    seed: int = 0
    shares: dict[str, float] = field(default_factory=lambda: dict(SHARES))

    def build(self) -> LlamaForCausalLM:
        """Return the freshly initialised network."""
        return build(
            self.layers,
            vocab=self.vocab,
            hidden=self.hidden,
            intermediate=self.intermediate,
            heads=self.heads,
            kv_heads=self.kv_heads,
            context=self.max_context,
            seed=self.seed,
        )


@dataclass(frozen=True)
class TrainingPlan:
    """What this call should do with a run."""

    context: int = 512
    minutes: float | None = None
    steps: int | None = None
    cooldown: int = 0
    save_every: float = 300.0
    log_every: int = 20
    compile: bool = True
    start: Path | None = None
    """A folder of :func:`pack` that a new run starts from."""


def losses(
    final: Tensor, fixed: Tensor, rotating: Tensor, norm: Tensor, head: Tensor, labels: Tensor
) -> Tensor:
    """Return cross-entropy and both exits' divergences from the final p: ``(3,)``, in nats.

    ``final``, ``fixed`` and ``rotating`` are streams ``(batch, time, hidden)``.
    """
    z = read_out(final, norm, head)  # (batch, time, vocab)
    log_p = z.log_softmax(-1)
    text = F.nll_loss(log_p.flatten(0, 1), labels.flatten())
    log_p = log_p.detach()
    parts = [text]
    for state, first, stride in ((fixed, 0, 2), (rotating, 1, 4)):
        log_q = read_out(state[:, first::stride], norm, head).log_softmax(-1)
        part = log_p[:, first::stride]
        parts.append((part.exp() * (part - log_q)).sum(-1).mean())
    return torch.stack(parts)


@cache
def compiled_losses() -> Any:
    """Return ``losses`` compiled."""
    return torch.compile(losses, dynamic=False)


def exit_layers(step: int, layers: int) -> tuple[int, int]:
    """Return the two depths scored at ``step``; small networks use what they have."""
    return min(FIXED_EXIT, layers), min(ROTATING_EXITS[step % len(ROTATING_EXITS)], layers)


@torch.no_grad()
def evaluate(
    model: LlamaForCausalLM, heldout: dict[str, Tensor], rows: int = 4
) -> dict[str, float]:
    """Return each domain's mean loss in nats per token, in bfloat16, uncompiled."""
    result = {}
    for name, windows in heldout.items():
        total = 0.0
        for part in windows.split(rows):
            with torch.autocast("cpu", torch.bfloat16):
                z = logits(model, hidden_states(model, part[:, :-1])[-1])
            total += F.cross_entropy(z.flatten(0, 1), part[:, 1:].flatten()).item() * len(part)
        result[name] = round(total / len(windows), 4)
    return result


class _Stop:
    """True once SIGTERM or SIGINT has asked for a checkpoint and an end."""

    def __init__(self) -> None:
        self.asked = False
        for name in (signal.SIGTERM, signal.SIGINT):
            signal.signal(name, self._ask)

    def _ask(self, *_: object) -> None:
        self.asked = True


class TrainingRun:
    """A model in training: its optimiser, its place in the schedule, its folder."""

    def __init__(
        self,
        workers: Workers,
        corpus: Path,
        folder: Path,
        settings: TargetSettings,
        plan: TrainingPlan,
    ) -> None:
        self.workers, self.folder, self.plan = workers, folder, plan
        self.facts: dict[str, Any] = {
            "step": 0, "rows": 0, "tokens": 0, "seconds": 0.0, "decay_start": None,
            "decay_steps": 0, "contexts": {}, "settings": asdict(settings),
        }  # fmt: skip
        tensors = self._find()
        self.settings = TargetSettings(**self.facts["settings"])
        self.model = self.settings.build()
        self.optimiser = Optimiser(self.model)
        if tensors:
            restore(self.model, tensors)
            self.optimiser.load(tensors)
        self.mixture = Mixture(
            load_domains(corpus, "train"), self.settings.shares, self.settings.seed
        )
        self.heldout = {
            name: heldout_windows(ids, plan.context, 8)
            for name, ids in load_domains(corpus, "heldout").items()
        }
        rows = self.settings.tokens_per_step // plan.context
        if plan.context > self.settings.max_context or rows < 1 or rows % workers.world:
            raise ValueError(
                f"context {plan.context} with {workers.world} workers: it must divide "
                f"{self.settings.tokens_per_step} tokens per step into whole rows for each "
                f"worker and be at most {self.settings.max_context}"
            )
        self.rows = rows

    def _find(self) -> dict[str, Tensor]:
        """Load what to continue from and set ``facts``; an unfinished cooldown goes on."""
        stable, cooled = self.folder / STABLE, self.folder / COOLED
        if self.plan.cooldown:
            tensors, facts = load_checkpoint(stable)
            start = facts["step"]
            if cooled.is_file():
                begun, half = load_checkpoint(cooled)
                if half["decay_start"] == start and half["decay_steps"] == self.plan.cooldown:
                    tensors, facts = begun, half
            self.facts = {**facts, "decay_start": start, "decay_steps": self.plan.cooldown}
            return tensors
        if stable.is_file():
            tensors, self.facts = load_checkpoint(stable)
            return tensors
        if self.plan.start is not None:
            tensors, self.facts = load_checkpoint(self.plan.start / WEIGHTS)
            return {**tensors, **load_checkpoint(self.plan.start / STATE)[0]}
        return {}

    def save(self) -> None:
        """Write the checkpoint of the phase the run is in (worker 0 only)."""
        if self.workers.rank == 0:
            tensors = {f"model.{n}": p for n, p in self.model.named_parameters()}
            path = self.folder / (STABLE if self.facts["decay_start"] is None else COOLED)
            save_checkpoint(path, {**tensors, **self.optimiser.tensors()}, self.facts)

    def log(self, **line: Any) -> None:
        """Print a line and append it to ``log.jsonl`` (worker 0 only)."""
        if self.workers.rank == 0:
            text = json.dumps(line)
            print(text, flush=True)
            with (self.folder / "log.jsonl").open("a") as file:
                file.write(text + "\n")

    def step(self, stop: bool) -> tuple[Tensor, bool]:
        """Train on one batch; return its losses ``(3,)`` and whether any worker wants to stop."""
        facts, model, plan = self.facts, self.model, self.plan
        share = self.rows // self.workers.world
        first = facts["rows"] + self.workers.rank * share
        batch = self.mixture.rows(first, share, plan.context)
        fixed, rotating = exit_layers(facts["step"], self.settings.layers)
        run, score = (compiled_block(), compiled_losses()) if plan.compile else (block, losses)
        with torch.autocast("cpu", torch.bfloat16):
            states = hidden_states(model, batch[:, :-1], run)
            parts = score(
                states[-1], states[fixed], states[rotating],
                model.model.norm.weight, model.lm_head.weight, batch[:, 1:].contiguous(),
            )  # fmt: skip
        weights = torch.tensor([1.0, FIXED_WEIGHT, ROTATING_WEIGHT])
        (parts * weights).sum().backward()
        extra = torch.cat([parts.detach(), torch.tensor([float(stop)])])
        extra = self.workers.average_gradients(model.parameters(), extra)
        self.optimiser.step(
            warmup_stable_decay(
                facts["step"], self.settings.warmup, facts["decay_start"], facts["decay_steps"]
            )
        )
        facts["step"] += 1
        facts["rows"] += self.rows
        facts["tokens"] += self.rows * plan.context
        steps, key = facts["contexts"], str(plan.context)
        steps[key] = steps.get(key, 0) + 1
        return extra[:3], bool(extra[3] > 0)


def train(
    workers: Workers, corpus: Path, folder: Path, settings: TargetSettings, plan: TrainingPlan
) -> None:
    """Start or continue the run in ``folder`` until the plan's minutes or steps are over.

    Parameters
    ----------
    workers
        Given by ``parallel.launch``.
    corpus
        Folder with ``<domain>_train.npy`` and ``<domain>_heldout.npy``.
    folder
        The run: checkpoints and ``log.jsonl``.
    settings
        Used by a new run; a continued run keeps its own.
    plan
        What to do. With ``cooldown`` the run ends after that many steps; without any limit it
        ends at SIGTERM or SIGINT, after a checkpoint.
    """
    if workers.rank == 0:
        folder.mkdir(parents=True, exist_ok=True)
    run = TrainingRun(workers, corpus, folder, settings, plan)
    facts, stop = run.facts, _Stop()
    last = math.inf if plan.steps is None else facts["step"] + plan.steps
    if plan.cooldown:
        last = min(last, facts["decay_start"] + plan.cooldown)
    begin, before = time.monotonic(), facts["seconds"]
    saved, mark, mean = begin, (begin, facts["tokens"]), None
    over = facts["step"] >= last
    while not over:
        now = time.monotonic()
        late = plan.minutes is not None and now - begin > 60 * plan.minutes
        parts, over = run.step(stop.asked or late)
        mean = parts if mean is None else 0.95 * mean + 0.05 * parts
        now = time.monotonic()
        facts["seconds"] = before + now - begin
        over = over or facts["step"] >= last
        if facts["step"] % plan.log_every == 0:
            speed = (facts["tokens"] - mark[1]) / (now - mark[0])
            mark = (now, facts["tokens"])
            run.log(
                step=facts["step"], tokens=facts["tokens"], seconds=round(facts["seconds"]),
                speed=round(speed), loss=round(mean[0].item(), 4),
                exit_4=round(mean[1].item(), 4), exit_other=round(mean[2].item(), 4),
            )  # fmt: skip
        if over or now - saved > plan.save_every:
            saved = now
            run.save()
            if workers.rank == 0:
                run.log(step=facts["step"], heldout=evaluate(run.model, run.heldout))


def load_target(run: Path) -> tuple[LlamaForCausalLM, dict[str, Any]]:
    """Return the target of a run (after its cooldown if it had one) and its facts."""
    path = run / (COOLED if (run / COOLED).is_file() else STABLE)
    tensors, facts = load_checkpoint(path)
    model = TargetSettings(**facts["settings"]).build()
    restore(model, tensors)
    return model.eval().requires_grad_(False), facts


def pack(run: Path, place: Path) -> dict[str, Any]:
    """Write a run's checkpoint at half its size: weights in float16, optimiser in bfloat16.

    A run that starts from ``place`` reads the batches that would have come; its weights differ
    from those of the run that was never packed by the rounding, so it is not bit-equal to it. Two
    runs from the same ``place`` are.
    """
    tensors, facts = load_checkpoint(run / STABLE)
    weights = {n: t.half() for n, t in tensors.items() if n.startswith("model.")}
    state = {n: t if t.dim() == 0 else t.bfloat16() for n, t in tensors.items() if n not in weights}
    save_checkpoint(place / WEIGHTS, weights, facts)
    save_checkpoint(place / STATE, state, facts)
    return facts
