"""Everything that is distilled from the trained target: the draft, and heads of every kind.

Windows (half of them corpus text, half text that the target wrote at temperature 1, because that
is what a drafter is asked about) and the target's hidden states are written once into the run
folder and serve every kind; every stage goes on where it was stopped.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor
from transformers import AutoModelForCausalLM

from specviz.models.heads import save_heads
from specviz.models.model import Model, as_model
from specviz.models.training.bundled.batches import SHARES, Mixture, load_domains
from specviz.models.training.bundled.llama import continue_texts
from specviz.models.training.bundled.target import load_target
from specviz.models.training.features import (
    Features,
    default_layers,
    heldout_windows,
    save_array,
    write_features,
)
from specviz.models.training.fit import ADAM_RATE, MUON_RATE, HeadPlan, load_checkpoint, restore
from specviz.models.training.measure_heads import head_card, measure_heads, with_ranks
from specviz.models.training.train_draft import one_layer, train_draft
from specviz.models.training.train_eagle import train_eagle
from specviz.models.training.train_medusa import train_medusa
from specviz.models.training.train_parallel import train_parallel

KINDS = ("draft", "medusa", "eagle", "parallel")
DRAFT = "draft.safetensors"
PROMPT = 12
SEED = 7
TEXT = (
    "Text of the corpus (stories, prose, records: see the target's card) and text that the "
    "target sampled at temperature 1."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what ``distil`` takes to its command line."""
    for name in ("--target", "--corpus", "--run"):
        parser.add_argument(name, type=Path, required=True)
    parser.add_argument("--kind", choices=KINDS, required=True)
    parser.add_argument("--out", type=Path, help="gets the folder of the heads; draft: not used")
    parser.add_argument("--steps", type=int, default=1200)
    parser.add_argument("--rows", type=int, default=16)
    parser.add_argument("--context", type=int, default=512, help="tokens the target reads at once")
    parser.add_argument("--piece", type=int, default=256, help="tokens a head reads at once")
    parser.add_argument("--corpus-windows", type=int, default=600)
    parser.add_argument("--written-windows", type=int, default=600)
    parser.add_argument("--draft", type=Path, help="eagle: start as this one-layer draft")
    parser.add_argument("--rate", type=float, default=1.0, help="factor on the learning rates")
    parser.add_argument("--start", type=Path, help="a checkpoint of the same kind to start from")
    parser.add_argument("--ablation", action="store_true", help="eagle: also without features")


def open_target(place: Path) -> Model:
    """Return the target of a run, or of an exported folder, in float32, ready to be read from."""
    if not (place / "config.json").is_file():
        return as_model(load_target(place)[0], "target")
    model = AutoModelForCausalLM.from_pretrained(place, dtype=torch.float32).eval()
    model.requires_grad_(False)
    return as_model(model, place.name)


def load_draft(run: Path, target: Any) -> tuple[Any, dict[str, Any]]:
    """Return the draft that was distilled in ``run`` from the network ``target``, and its facts."""
    tensors, facts = load_checkpoint(run / DRAFT)
    draft = one_layer(target)
    restore(draft, tensors)
    return draft.eval().requires_grad_(False), facts


def document_starts(mixture: Mixture, count: int, seed: int) -> Tensor:
    """Return the first ``PROMPT`` tokens of random training documents, in the usual shares."""
    generator = np.random.default_rng(seed)
    names = generator.choice(mixture.names, count, p=[SHARES[n] for n in mixture.names])
    rows = []
    for name in names:
        starts = mixture.starts[name]
        start = generator.choice(starts[starts + PROMPT < len(mixture.domains[name])])
        rows.append(np.asarray(mixture.domains[name][start : start + PROMPT], np.int64))
    return torch.from_numpy(np.stack(rows))


def corpus_windows(
    target: Model, corpus: Path, from_corpus: int, written: int, context: int
) -> NDArray[np.uint16]:
    """Return windows of the corpus, then windows that the target wrote itself."""
    mixture = Mixture(load_domains(corpus, "train"), seed=SEED)
    parts = [mixture.rows(0, from_corpus, context).numpy().astype(np.uint16)]
    generator = torch.Generator().manual_seed(SEED)
    for part in document_starts(mixture, written, SEED).split(128) if written else ():
        text = continue_texts(target.model, part, context, generator)
        # a window is context + 1 wide; what follows the last written token is not known
        parts.append(F.pad(text, (0, 1)).numpy().astype(np.uint16))
    return np.concatenate(parts)


def distil(args: argparse.Namespace) -> dict[str, Any]:
    """Train one kind, measure it on held-out text, and, unless it is a draft, write its folder."""
    torch.set_num_threads(1)
    if args.kind != "draft" and args.out is None:
        raise ValueError(f"--out is missing: which folder gets {args.kind}/?")
    target = open_target(args.target)
    layers = default_layers(target.model.config.num_hidden_layers)
    args.run.mkdir(parents=True, exist_ok=True)
    windows = args.run / "chosen.npy"
    if not windows.is_file():
        chosen = corpus_windows(
            target, args.corpus, args.corpus_windows, args.written_windows, args.context
        )
        save_array(windows, chosen)
    data = write_features(target.model, np.load(windows), args.run / "features", layers)
    plan = HeadPlan(
        steps=args.steps, rows=args.rows, context=args.piece, start=args.start,
        muon_rate=MUON_RATE * args.rate, adam_rate=ADAM_RATE * args.rate,
    )  # fmt: skip
    path = args.run / f"{args.kind}.safetensors"
    if args.kind == "draft":
        facts = {"corpus_windows": args.corpus_windows, "written_windows": args.written_windows}
        return train_draft(target, data, path, plan, facts)[1]
    return _heads(args, target, data, layers, path, plan)


def _heads(
    args: argparse.Namespace, target: Model, data: Features, layers: tuple[int, ...],
    path: Path, plan: HeadPlan,
) -> dict[str, Any]:  # fmt: skip
    """Train, measure and write heads; an EAGLE head also without its features, if asked."""
    heldout = {
        name: heldout_windows(ids, args.context, 16)
        for name, ids in load_domains(args.corpus, "heldout").items()
    }
    draft = None if args.draft is None else open_target(args.draft).model
    ablation = None
    heads: Any
    if args.kind == "medusa":
        heads, facts = train_medusa(target, data, layers, path, plan)
    elif args.kind == "parallel":
        heads, facts = train_parallel(target, data, layers, path, plan)
    else:
        heads, facts = train_eagle(target, data, layers, path, plan, draft=draft)
    measured = measure_heads(heads, target, heldout)
    if args.kind == "medusa":
        with_ranks(heads, measured)
    if args.kind == "eagle" and args.ablation:
        blind, _ = train_eagle(  # without features every roll-out step is the same
            target, data, layers, args.run / "eagle_without_features.safetensors",
            replace(plan, start=None), steps=1, features=False, draft=draft,
        )  # fmt: skip
        ablation = measure_heads(blind, target, heldout)
    card = head_card(
        heads.config, facts, measured, text=TEXT, license="apache-2.0", ablation=ablation
    )
    save_heads(heads, args.out / args.kind, card, measured=measured)
    return {"measured": measured, "ablation": ablation}
