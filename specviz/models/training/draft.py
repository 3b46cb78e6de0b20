"""Distil the draft: one layer that learns the target's distributions, not only the text.

1. *Windows*: half of them corpus text, half text that the target wrote itself at temperature 1
   from the first tokens of training documents, because that is what a draft is asked about.
2. *Features*: the target's last hidden state at every position, in float16 on disk (256 numbers
   stand for a distribution over 2,048 tokens).
3. *Training*: forward KL(p || q) over the full distribution. The draft starts from the target's
   embedding, final norm and first layer.

Each stage's result stays in the run folder; a call continues with the first one missing.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor
from tqdm.auto import tqdm
from transformers import LlamaForCausalLM

from specviz.models.training import checkpoint
from specviz.models.training.batches import SHARES, Mixture, load_domains
from specviz.models.training.network import block, build, compiled_block, hidden_states, read_out
from specviz.models.training.optimizers import Optimiser, warmup_stable_decay
from specviz.models.training.parallel import Workers
from specviz.models.training.sampling import continue_texts
from specviz.models.training.target import COOLED, STABLE, Settings

DRAFT = "draft.safetensors"
PROMPT = 12


@dataclass(frozen=True)
class DraftPlan:
    """How much text, how many steps."""

    steps: int = 3000
    corpus_windows: int = 1200
    written_windows: int = 1200
    context: int = 512
    rows: int = 8
    warmup: int = 40
    seed: int = 7
    compile: bool = True
    start: Path | None = None


def load_target(run: Path) -> tuple[LlamaForCausalLM, dict[str, Any]]:
    """Return the target of a run (after its cooldown if it had one) and its facts."""
    path = run / (COOLED if (run / COOLED).is_file() else STABLE)
    tensors, facts = checkpoint.load(path)
    model = Settings(**facts["settings"]).build()
    checkpoint.restore(model, tensors)
    return model.eval().requires_grad_(False), facts


def load_draft(run: Path) -> tuple[LlamaForCausalLM, dict[str, Any]]:
    """Return the draft of a run and its facts."""
    tensors, facts = checkpoint.load(run / DRAFT)
    model = build(**facts["shape"])
    checkpoint.restore(model, tensors)
    return model.eval(), facts


def _prompts(mixture: Mixture, count: int, seed: int) -> Tensor:
    """Return the first ``PROMPT`` tokens of random training documents, in the usual shares."""
    generator = np.random.default_rng(seed)
    names = generator.choice(mixture.names, count, p=[SHARES[n] for n in mixture.names])
    rows = []
    for name in names:
        starts = mixture.starts[name]
        start = generator.choice(starts[starts + PROMPT < len(mixture.domains[name])])
        rows.append(np.asarray(mixture.domains[name][start : start + PROMPT], np.int64))
    return torch.from_numpy(np.stack(rows))


def _save_array(path: Path, array: np.ndarray) -> None:
    temporary = path.with_suffix(".part")
    with temporary.open("wb") as file:
        np.save(file, array)
    temporary.replace(path)


def write_windows(
    workers: Workers, target: LlamaForCausalLM, corpus: Path, folder: Path, plan: DraftPlan
) -> None:
    """Stage 1: ``written_<rank>.npy`` by every worker, then ``windows.npy`` by worker 0."""
    final = folder / "windows.npy"
    if final.is_file():
        return
    mixture = Mixture(load_domains(corpus, "train"), seed=plan.seed)
    mine = folder / f"written_{workers.rank}.npy"
    count = plan.written_windows // workers.world
    if count and not mine.is_file():
        generator = torch.Generator().manual_seed(plan.seed * 1000 + workers.rank)
        prompts = _prompts(mixture, count, plan.seed * 1000 + workers.rank)
        parts = [
            continue_texts(target, part, plan.context, generator, progress=workers.rank == 0)
            for part in prompts.split(128)
        ]
        # the last token has no successor; a window is context + 1 wide like corpus windows
        text = F.pad(torch.cat(parts), (0, 1))
        _save_array(mine, text.numpy().astype(np.uint16))
    _meet(workers)
    if workers.rank == 0:
        rows = mixture.rows(0, plan.corpus_windows, plan.context).numpy().astype(np.uint16)
        written = [np.load(path) for path in sorted(folder.glob("written_*.npy"))]
        _save_array(final, np.concatenate([rows, *written]))
    _meet(workers)


@torch.no_grad()
def write_features(workers: Workers, target: LlamaForCausalLM, folder: Path, rows: int = 8) -> None:
    """Stage 2: ``features_<rank>.npy``, float16 (windows, context, hidden), one per worker."""
    windows = np.load(folder / "windows.npy", mmap_mode="r")
    path = folder / f"features_{workers.rank}_of_{workers.world}.npy"
    if not path.is_file():
        mine = windows[workers.rank :: workers.world]
        shape = (len(mine), mine.shape[1] - 1, target.config.hidden_size)
        features = np.empty(shape, np.float16)
        places = range(0, len(mine), rows)
        for i in tqdm(places, desc="features", disable=workers.rank > 0, mininterval=5):
            ids = torch.from_numpy(mine[i : i + rows, :-1].astype(np.int64))
            with torch.autocast("cpu", torch.bfloat16):
                features[i : i + rows] = hidden_states(target, ids)[-1].half().numpy()
        _save_array(path, features)
    _meet(workers)


def _meet(workers: Workers) -> None:
    if workers.world > 1:
        dist.barrier()


def divergence(
    draft_state: Tensor,
    draft_norm: Tensor,
    draft_head: Tensor,
    target_state: Tensor,
    target_norm: Tensor,
    target_head: Tensor,
) -> Tensor:
    """Return the mean KL(p || q) in nats over all positions of ``(batch, time, hidden)``."""
    log_q = read_out(draft_state, draft_norm, draft_head).log_softmax(-1)
    log_p = read_out(target_state, target_norm, target_head).log_softmax(-1)
    return (log_p.exp() * (log_p - log_q)).sum(-1).mean()


@cache
def compiled_divergence() -> Any:
    """Return ``divergence`` compiled."""
    return torch.compile(divergence, dynamic=False)


def _start(target: LlamaForCausalLM, plan: DraftPlan) -> tuple[LlamaForCausalLM, dict[str, Any]]:
    config: Any = target.config
    shape = {
        "layers": 1, "vocab": config.vocab_size, "hidden": config.hidden_size,
        "intermediate": config.intermediate_size, "heads": config.num_attention_heads,
        "kv_heads": config.num_key_value_heads, "context": config.max_position_embeddings,
    }  # fmt: skip
    draft = build(**shape)
    if plan.start is not None:
        checkpoint.restore(draft, checkpoint.load(plan.start / DRAFT)[0])
        return draft, shape
    draft.model.embed_tokens.load_state_dict(target.model.embed_tokens.state_dict())
    draft.model.norm.load_state_dict(target.model.norm.state_dict())
    draft.model.layers[0].load_state_dict(target.model.layers[0].state_dict())
    return draft, shape


def distil(workers: Workers, corpus: Path, target_run: Path, folder: Path, plan: DraftPlan) -> None:
    """Run all three stages; the draft ends in ``folder / "draft.safetensors"``.

    Parameters
    ----------
    workers
        Given by ``parallel.launch``. A batch has ``plan.rows`` rows whatever their number.
    corpus, target_run
        The corpus folder, and the folder of the target's run.
    folder
        The draft's own run folder.
    plan
        How much text and how many steps.
    """
    if plan.rows % workers.world:
        raise ValueError(f"{plan.rows} rows cannot be split among {workers.world} workers")
    if workers.rank == 0:
        folder.mkdir(parents=True, exist_ok=True)
    _meet(workers)
    target, target_facts = load_target(target_run)
    write_windows(workers, target, corpus, folder, plan)
    write_features(workers, target, folder)
    world = workers.world
    mine = np.load(folder / "windows.npy", mmap_mode="r")[workers.rank :: world]
    features = np.load(folder / f"features_{workers.rank}_of_{world}.npy", mmap_mode="r")
    usable = len(np.load(folder / "windows.npy", mmap_mode="r")) // world
    draft, shape = _start(target, plan)
    draft.train().requires_grad_(True)
    optimiser = Optimiser(draft, workers)
    facts: dict[str, Any] = {
        "step": 0, "shape": shape, "seconds": 0.0, "target": target_facts, "rows": plan.rows,
        "context": plan.context, "corpus_windows": plan.corpus_windows,
        "written_windows": plan.written_windows,
    }  # fmt: skip
    path = folder / DRAFT
    if path.is_file():
        tensors, facts = checkpoint.load(path)
        checkpoint.restore(draft, tensors)
        optimiser.load(tensors)
    share = plan.rows // world
    run, score = (compiled_block(), compiled_divergence()) if plan.compile else (block, divergence)
    head, norm = target.lm_head.weight, target.model.norm.weight
    begin, before, saved, mean = time.monotonic(), facts["seconds"], time.monotonic(), None
    while facts["step"] < plan.steps:
        rows = range(facts["step"] * share, (facts["step"] + 1) * share)
        chosen = [int(_order(plan.seed, row // usable, usable)[row % usable]) for row in rows]
        ids = torch.from_numpy(mine[chosen][:, :-1].astype(np.int64))
        state = torch.from_numpy(features[chosen]).float()
        with torch.autocast("cpu", torch.bfloat16):
            hidden = hidden_states(draft, ids, run)[-1]
            loss = score(hidden, draft.model.norm.weight, draft.lm_head.weight, state, norm, head)
        loss.backward()
        extra = workers.average_gradients(draft.parameters(), loss.detach().view(1))
        half = plan.steps // 2
        optimiser.step(warmup_stable_decay(facts["step"], plan.warmup, half, plan.steps - half))
        facts["step"] += 1
        now = time.monotonic()
        facts["seconds"] = before + now - begin
        mean = extra if mean is None else 0.97 * mean + 0.03 * extra
        if workers.rank == 0 and facts["step"] % 50 == 0:
            line = {"step": facts["step"], "seconds": facts["seconds"], "kl": mean.item()}
            print(json.dumps({k: round(v, 4) for k, v in line.items()}), flush=True)
        if facts["step"] == plan.steps or now - saved > 300:
            saved = now
            if workers.rank == 0:
                tensors = {f"model.{n}": p for n, p in draft.named_parameters()}
                checkpoint.save(path, {**tensors, **optimiser.tensors()}, facts)


@cache
def _order(seed: int, epoch: int, count: int) -> np.ndarray:
    return np.random.default_rng((seed, epoch)).permutation(count)
