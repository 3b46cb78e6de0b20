r"""Train, measure and write heads for a target: ``python -m specviz.models.training.heads``.

For the bundled family, once the target has been exported::

    python -m specviz.models.training.heads --target OUT/target --corpus CORPUS --run HEADS \
        --out OUT --kind eagle --draft OUT/draft --rate 0.08 --rows 8 --steps 300 --ablation
    python -m specviz.models.training.heads --target OUT/target --corpus CORPUS --run HEADS \
        --out OUT --kind medusa --rows 4 --steps 1600

Windows and features are written once into the run folder and serve both kinds; every stage goes
on where it was stopped. An EAGLE head that starts as the distilled draft has to learn only what
the features add; it needs small steps, or it first forgets the draft.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import AutoModelForCausalLM

from specviz.models.heads import EagleHead, MedusaHeads, save_heads
from specviz.models.model import Model, as_model
from specviz.models.training.batches import Mixture, heldout_windows, load_domains
from specviz.models.training.draft import _prompts
from specviz.models.training.eagle import (
    STEPS,
    eagle_config,
    eagle_loss,
    measure_eagle,
    start_from_draft,
)
from specviz.models.training.features import (
    Features,
    default_layers,
    read_layers,
    save_array,
    write_features,
)
from specviz.models.training.head_card import head_card
from specviz.models.training.head_loop import HeadPlan, fit
from specviz.models.training.medusa import measure_medusa, medusa_config, medusa_loss
from specviz.models.training.optimizers import ADAM_RATE, MUON_RATE
from specviz.models.training.sampling import continue_texts

DEPTH = 5
"""How deep an EAGLE head is measured: one level beyond what it was trained on."""

SEED = 7


def train_eagle(
    target: Model, data: Features, layers: tuple[int, ...], path: Path, plan: HeadPlan,
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


def train_medusa(
    target: Model, data: Features, layers: tuple[int, ...], path: Path, plan: HeadPlan,
    *, heads: int = 4, blocks: int = 1, read: tuple[int, ...] | None = None,
) -> tuple[MedusaHeads, dict[str, Any]]:  # fmt: skip
    """Train Medusa heads that read the layers ``read`` (all) of those kept in ``data``."""
    torch.manual_seed(plan.seed)
    read = layers if read is None else read
    module = MedusaHeads(medusa_config(target, read, heads=heads, blocks=blocks))
    module.to(target.model.device)
    inner = medusa_loss(module, target.model)
    columns = [layers.index(layer) for layer in read]
    return module, fit(module, lambda ids, f: inner(ids, f[:, :, columns]), data, path, plan)


@torch.no_grad()
def measure_heads(
    heads: MedusaHeads | EagleHead, target: Model, heldout: Mapping[str, torch.Tensor]
) -> dict[str, dict[str, Any]]:
    """Return per text what the heads' measure function says, averaged over its windows.

    Parameters
    ----------
    heads
        In eval mode.
    target
        The wrapped target.
    heldout
        Name → token ids ``(count, time + 1)``.
    """
    result: dict[str, dict[str, Any]] = {}
    device = target.model.device
    for name, windows in heldout.items():
        sums: dict[str, Any] = {}
        for part in windows.split(4):
            ids = part.to(device)
            kept = read_layers(target.model, ids[:, :-1], heads.config.layers)
            if isinstance(heads, MedusaHeads):
                values = measure_medusa(heads, target.model, kept, min(32, kept.shape[1] // 4))
            else:  # as far back as the head looks
                span = min(kept.shape[1], heads.config.window)
                rows = kept.shape[1] // span
                tokens = torch.cat([ids[:, i * span : (i + 1) * span + 1] for i in range(rows)])
                pieces = torch.cat(kept[:, : rows * span].split(span, dim=1))
                values = measure_eagle(heads, target.model, tokens, pieces, DEPTH, span // 8)
            for key, value in values.items():
                sums[key] = sums.get(key, 0.0) + np.array(value) * len(part)
        result[name] = {key: (total / len(windows)).tolist() for key, total in sums.items()}
    return result


def with_ranks(heads: MedusaHeads, measured: Mapping[str, Mapping[str, Any]]) -> None:
    """Keep the measured accuracy of every rank, averaged over texts, for the default tree."""
    mean = np.mean([row["ranks"] for row in measured.values()], axis=0)
    ranks = tuple(tuple(round(float(x), 4) for x in row) for row in mean)
    heads.config = replace(heads.config, ranks=ranks)


def corpus_windows(
    target: Model, corpus: Path, from_corpus: int, written: int, context: int
) -> NDArray[np.uint16]:
    """Return windows of the corpus, then windows that the target wrote itself."""
    mixture = Mixture(load_domains(corpus, "train"), seed=SEED)
    rows = mixture.rows(0, from_corpus, context).numpy().astype(np.uint16)
    generator = torch.Generator().manual_seed(SEED)
    parts = [rows]
    for part in _prompts(mixture, written, SEED).split(128) if written else ():
        text = continue_texts(target.model, part, context, generator)
        parts.append(torch.nn.functional.pad(text, (0, 1)).numpy().astype(np.uint16))
    return np.concatenate(parts)


def load_target(folder: Path) -> Model:
    """Return an exported target in float32, ready to be read from."""
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    model.requires_grad_(False)
    return as_model(model, folder.name)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the recipe; see the module's docstring."""
    parser = argparse.ArgumentParser(description="Train heads for the bundled target.")
    for name in ("--target", "--corpus", "--run", "--out"):
        parser.add_argument(name, type=Path, required=True)
    parser.add_argument("--kind", choices=("medusa", "eagle"), required=True)
    parser.add_argument("--steps", type=int, default=1200)
    parser.add_argument("--rows", type=int, default=16)
    parser.add_argument("--context", type=int, default=512, help="tokens the target reads at once")
    parser.add_argument("--corpus-windows", type=int, default=600)
    parser.add_argument("--written-windows", type=int, default=600)
    parser.add_argument("--windows", type=Path, help="a windows.npy to use instead")
    parser.add_argument("--draft", type=Path, help="eagle: start as this one-layer draft")
    parser.add_argument("--rate", type=float, default=1.0, help="factor on the learning rates")
    parser.add_argument("--start", type=Path, help="a checkpoint of the same kind to start from")
    parser.add_argument("--ablation", action="store_true", help="eagle: also without features")
    args = parser.parse_args(arguments)
    torch.set_num_threads(1)
    target = load_target(args.target)
    layers = default_layers(target.model.config.num_hidden_layers)
    args.run.mkdir(parents=True, exist_ok=True)
    windows = args.run / "chosen.npy"
    if not windows.is_file():
        if args.windows is not None:
            count = args.corpus_windows + args.written_windows
            every = np.load(args.windows, mmap_mode="r")
            chosen = np.asarray(every[:: max(1, len(every) // count)])
        else:
            chosen = corpus_windows(
                target, args.corpus, args.corpus_windows, args.written_windows, args.context
            )
        save_array(windows, chosen)
    data = write_features(target.model, np.load(windows), args.run / "features", layers)
    heldout = {
        name: heldout_windows(ids, args.context, 16)
        for name, ids in load_domains(args.corpus, "heldout").items()
    }
    plan = HeadPlan(
        steps=args.steps, rows=args.rows, start=args.start,
        muon_rate=MUON_RATE * args.rate, adam_rate=ADAM_RATE * args.rate,
    )  # fmt: skip
    draft = None if args.draft is None else load_target(args.draft).model
    path = args.run / f"{args.kind}.safetensors"
    ablation = None
    heads: MedusaHeads | EagleHead
    if args.kind == "medusa":
        heads, facts = train_medusa(target, data, layers, path, plan)
        measured = measure_heads(heads, target, heldout)
        with_ranks(heads, measured)
    else:
        heads, facts = train_eagle(target, data, layers, path, plan, draft=draft)
        measured = measure_heads(heads, target, heldout)
        if args.ablation:
            blind = args.run / "eagle_without_features.safetensors"
            other, _ = train_eagle(  # without features every roll-out step is the same
                target, data, layers, blind, replace(plan, start=None), steps=1, features=False,
                draft=draft,
            )  # fmt: skip
            ablation = measure_heads(other, target, heldout)
    text = (
        "Text of the corpus (stories, prose, records: see the target's card) and text that the "
        "target sampled at temperature 1."
    )
    card = head_card(
        heads.config, facts, measured, text=text, license="apache-2.0", ablation=ablation
    )
    save_heads(heads, args.out / args.kind, card, measured=measured)
    print(json.dumps({"measured": measured, "ablation": ablation}))


if __name__ == "__main__":
    main()
