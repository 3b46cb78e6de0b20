"""Medusa heads, an EAGLE head, a parallel head and a distilled draft for your own target.

:func:`train_heads` is what ``specviz train heads`` calls: a target, a text file, and a folder for
the results. The target runs over windows of the text and over text it writes itself; everything
is then trained on its distributions. What is done is kept in ``OUT/.training``, so that an
interrupted call goes on when it is repeated.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from tqdm.auto import tqdm
from transformers import DynamicCache

from specviz.core import checks
from specviz.decoding.hf.cache import cache_argument
from specviz.models.heads import save_heads
from specviz.models.load import load
from specviz.models.pair import Pair
from specviz.models.training.features import (
    Features,
    default_layers,
    heldout_windows,
    load_features,
    save_array,
    write_features,
)
from specviz.models.training.fit import HeadPlan
from specviz.models.training.measure_heads import head_card, measure_heads, with_ranks
from specviz.models.training.train_draft import check_draftable, train_draft, write_draft
from specviz.models.training.train_eagle import train_eagle
from specviz.models.training.train_medusa import train_medusa
from specviz.models.training.train_parallel import train_parallel

KINDS = ("medusa", "eagle", "parallel", "draft")
CONTEXT = 512
MOST_WINDOWS = 800
FEWEST_WINDOWS = 8
HELDOUT = 20
"""One token in this number, at the end of the text, is held out."""
WRITTEN = 4
"""The target writes one window for this number of the text's."""
PROMPT = 16


@dataclass(frozen=True)
class _Job:
    """What a folder of half-finished work belongs to."""

    target: str
    text: str
    steps: int
    seed: int


def train_heads(
    target: Any,
    text: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    kinds: Sequence[str] = KINDS,
    steps: int = 600,
    seed: int = 0,
) -> dict[str, Path]:
    """Train what a target needs for speculation, measure it, and write it with cards.

    Parameters
    ----------
    target : str, path or Pair
        A Hugging Face folder or name, or a loaded pair. It is only read.
    text : path
        A UTF-8 text file of the kind the target will continue.
    out : path
        Gets a folder per kind: ``Medusa("OUT/medusa")``, ``Eagle("OUT/eagle")``,
        ``Parallel(heads="OUT/parallel")``, and ``OUT/draft`` to load as ``draft=``.
    kinds : sequence of {"medusa", "eagle", "parallel", "draft"}
        What to train.
    steps : int
        Training steps for each.
    seed : int
        For initial weights, order, and the text the target writes.

    Returns
    -------
    dict
        Kind → its folder.

    Raises
    ------
    ValueError, TypeError
        In one sentence, before any model runs, if an argument cannot be used.

    Examples
    --------
    ::

        train_heads("my/target", "notes.txt", "my-heads", kinds=["eagle"])
        sv.generate(pair, prompt, drafter=sv.Eagle("my-heads/eagle"))
    """
    kinds = checks.some_of("kinds", [kinds] if isinstance(kinds, str) else kinds, KINDS)
    checks.whole("steps", steps, 1)
    checks.seed(seed)
    words = _read_text(Path(text))
    folder = Path(out)
    job = _Job(
        target=target.target.name if isinstance(target, Pair) else str(target),
        text=hashlib.sha256(words.encode()).hexdigest(), steps=steps, seed=seed,
    )  # fmt: skip
    _check_unfinished(folder, kinds, job)
    pair = target if isinstance(target, Pair) else load(target)
    if pair.tokenizer is None:
        raise ValueError("target must come with its tokenizer, or its text cannot be read")
    if "draft" in kinds:
        check_draftable(pair.target.model)
    ids = np.asarray(pair.tokenizer(words, verbose=False)["input_ids"], dtype=np.int64)
    context = min(CONTEXT, pair.target.context_length or CONTEXT)
    rows, heldout = _windows(ids, context)

    work = folder / ".training"
    work.mkdir(parents=True, exist_ok=True)
    (work / "job.json").write_text(json.dumps(job.__dict__), "utf-8")
    pair.target.model.requires_grad_(False)
    layers = default_layers(int(pair.target.model.config.get_text_config().num_hidden_layers))
    data = _features(pair, rows, layers, work, seed)
    plan = HeadPlan(steps=steps, seed=seed)
    origin = f"Text of the file `{Path(text).name}` and text that the target sampled from it."
    for kind in kinds:
        if not (folder / kind / "config.json").is_file():
            _train(kind, pair, data, layers, heldout, folder, plan, origin)
    shutil.rmtree(work)
    return {kind: folder / kind for kind in kinds}


def _train(
    kind: str, pair: Pair, data: Features, layers: tuple[int, ...], heldout: torch.Tensor,
    folder: Path, plan: HeadPlan, origin: str,
) -> None:  # fmt: skip
    """Train one kind, measure it on held-out text and write its folder."""
    path = folder / ".training" / f"{kind}.safetensors"
    texts = {"held-out text": heldout}
    if kind == "draft":
        write_draft(pair, *train_draft(pair.target, data, path, plan), texts, folder, origin)
        return
    train: Any = {"medusa": train_medusa, "eagle": train_eagle, "parallel": train_parallel}[kind]
    heads, facts = train(pair.target, data, layers, path, plan)
    measured = measure_heads(heads, pair.target, texts)
    if kind == "medusa":
        with_ranks(heads, measured)
    card = head_card(heads.config, facts, measured, text=origin, license="other")
    save_heads(heads, folder / kind, card, measured=measured)


def _read_text(path: Path) -> str:
    if not path.is_file():
        raise ValueError(f"text must be a text file, and {str(path)!r} is not a file")
    try:
        return path.read_text("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"text {str(path)!r} is not UTF-8 at byte {error.start}") from None


def _check_unfinished(folder: Path, kinds: Sequence[str], job: _Job) -> None:
    """Refuse to overwrite finished work, or to go on with work that was for something else."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"out must be a folder, and {str(folder)!r} is a file")
    described = folder / ".training" / "job.json"
    if described.is_file():
        before = json.loads(described.read_text("utf-8"))
        other = [name for name, value in job.__dict__.items() if before.get(name) != value]
        if other:
            raise ValueError(
                f"out {str(folder)!r} holds unfinished work with another {' and '.join(other)}: "
                f"repeat that call, or give another folder"
            )
        return
    there = [kind for kind in kinds if (folder / kind).exists()]
    if there:
        raise ValueError(f"out {str(folder)!r} already has {there[0]!r}: give another folder")


def _windows(ids: NDArray[np.int64], context: int) -> tuple[NDArray[np.int64], torch.Tensor]:
    """Return training windows ``(count, context + 1)`` and held-out windows."""
    rows = (len(ids) - 1) // context
    if rows < FEWEST_WINDOWS:
        raise ValueError(
            f"text has {len(ids):,} tokens; at least {FEWEST_WINDOWS * context + 1:,} are needed, "
            f"and some hundred thousand are better"
        )
    kept = max(1, rows // HELDOUT)
    cut = (rows - kept) * context
    starts = np.unique(np.linspace(0, rows - kept - 1, min(MOST_WINDOWS, rows - kept)).astype(int))
    train = np.stack([ids[i * context : (i + 1) * context + 1] for i in starts])
    return train, heldout_windows(ids[cut:], context, 16)


def _features(
    pair: Pair, rows: NDArray[np.int64], layers: tuple[int, ...], work: Path, seed: int
) -> Features:
    """Return the target's features on its text and on what it writes, made once."""
    folder, chosen = work / "features", work / "chosen.npy"
    if not chosen.is_file():
        count = max(1, len(rows) // WRITTEN)
        prompts = torch.from_numpy(rows[:: max(1, len(rows) // count)][:count, :PROMPT])
        written = write_text(pair.target.model, prompts, rows.shape[1], seed)
        save_array(chosen, np.concatenate([rows, written]))
    write_features(pair.target.model, np.load(chosen), folder, layers)
    return load_features(folder)


@torch.no_grad()
def write_text(
    model: Any, prompts: torch.Tensor, length: int, seed: int, rows: int = 32
) -> NDArray[np.int64]:
    """Let a model continue ``prompts`` ``(count, n)`` at temperature 1 to ``length`` tokens each.

    Windows are text, so a row that ends goes on with whatever the model says next.
    """
    device = model.get_input_embeddings().weight.device
    generator = torch.Generator(device).manual_seed(seed)
    done = []
    bar = tqdm(total=-(-len(prompts) // rows) * length, desc="the target writes", delay=2)
    for part in prompts.split(rows):
        ids, fed = part.to(device), part.to(device)
        state: dict[str, Any] = {cache_argument(model) or "cache": DynamicCache()}
        while ids.shape[1] < length:
            out = model(fed, use_cache=True, **state)
            distribution = out.logits[:, -1].float().softmax(-1)
            fed = torch.multinomial(distribution, 1, generator=generator)
            ids = torch.cat([ids, fed], dim=1)
            bar.update()
        done.append(ids.cpu().numpy())
    bar.close()
    return np.concatenate(done)
