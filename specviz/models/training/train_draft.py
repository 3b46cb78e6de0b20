"""A one-layer draft for any Llama-like target, distilled on the target's distributions."""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from specviz.models.model import Model
from specviz.models.pair import Pair
from specviz.models.training.features import Features, replace_directory
from specviz.models.training.fit import HeadPlan, divergence, fit, log_distributions, overlap

PARTS = ("embed_tokens", "layers", "norm")


def check_draftable(model: Any) -> None:
    """Refuse a target of which no one-layer copy can be made, in one sentence.

    Raises
    ------
    ValueError
        If it is not Llama-like.
    """
    backbone = getattr(model, "model", None)
    if not all(hasattr(backbone, part) for part in PARTS):
        raise ValueError(
            f"a draft is distilled for Llama-like targets only, and {type(model).__name__} has no "
            f"model.embed_tokens, model.layers and model.norm: leave 'draft' out of kinds"
        )


def one_layer(model: Any) -> Any:
    """Return a float32 copy of a Llama-like model with its first layer only."""
    config = copy.deepcopy(model.config)
    config.num_hidden_layers = 1
    if getattr(config, "layer_types", None):
        config.layer_types = config.layer_types[:1]
    draft = type(model)(config).float()
    draft.model.embed_tokens.load_state_dict(model.model.embed_tokens.state_dict())
    draft.model.layers[0].load_state_dict(model.model.layers[0].state_dict())
    draft.model.norm.load_state_dict(model.model.norm.state_dict())
    if not config.tie_word_embeddings:
        draft.lm_head.load_state_dict(model.lm_head.state_dict())
    return draft.to(model.device)


def train_draft(
    target: Model, data: Features, path: Path, plan: HeadPlan, facts: dict[str, Any] | None = None
) -> tuple[Any, dict[str, Any]]:
    """Distil a draft from the features of a target; return it and the facts of the run."""
    draft, out = one_layer(target.model), target.model.get_output_embeddings()

    def loss(ids: Tensor, features: Tensor) -> Tensor:
        with torch.no_grad():
            log_p = log_distributions(features[:, :, -1], out)
        return divergence(log_p, draft(ids[:, :-1], use_cache=False).logits)

    return draft, fit(draft, loss, data, path, plan, facts)


@torch.no_grad()
def measure_draft(draft: Any, target: Model, windows: Tensor) -> dict[str, float]:
    """Return alpha and top-1 agreement on windows ``(count, time + 1)``."""
    totals = {"alpha": 0.0, "top1": 0.0}
    for part in windows.split(4):
        ids = part[:, :-1].to(target.model.device)
        p = target.model(ids).logits.float().softmax(-1)
        q = draft(ids).logits.float().softmax(-1)
        totals["alpha"] += overlap(p, q).mean().item() * len(part)
        totals["top1"] += (p.argmax(-1) == q.argmax(-1)).float().mean().item() * len(part)
    return {name: total / len(windows) for name, total in totals.items()}


def write_draft(
    pair: Pair, draft: Any, facts: Mapping[str, Any], texts: Mapping[str, Tensor], folder: Path,
    origin: str,
) -> None:  # fmt: skip
    """Measure a draft and write it as a Hugging Face folder with tokenizer and card."""
    rows = {name: measure_draft(draft, pair.target, windows) for name, windows in texts.items()}
    lines = [
        "---", "license: other", "library_name: transformers", "---", "",
        f"# Draft for {pair.target.name}", "",
        f"One layer, {sum(p.numel() for p in draft.parameters()):,} parameters, distilled from "
        f"`{pair.target.name}` for speculative decoding: {origin} {facts['step']:,} steps of "
        f"{facts['rows']} rows of {facts['context']} tokens, KL from the full target p.", "",
        "| text | alpha at temperature 1 | top-1 |", "|---|---|---|",
        *(f"| {name} | {row['alpha']:.3f} | {row['top1']:.3f} |" for name, row in rows.items()),
        "", "alpha = mean over positions of sum(min(p, q)), target p, draft q.", "",
    ]  # fmt: skip
    place = folder / "draft"
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        new = Path(scratch) / "draft"
        whole = copy.deepcopy(draft).to(pair.target.model.dtype)
        whole.save_pretrained(new)
        pair.tokenizer.save_pretrained(new)
        (new / "README.md").write_text("\n".join(lines), "utf-8")
        replace_directory(new, place)
