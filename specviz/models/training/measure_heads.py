"""Measure heads on held-out text, and write their cards from those numbers only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from specviz.models.heads import EagleHead, MedusaHeads, ParallelHead
from specviz.models.heads.config import EagleConfig, HeadConfig, ParallelConfig
from specviz.models.training.features import read_layers
from specviz.models.training.train_eagle import measure_eagle
from specviz.models.training.train_medusa import measure_medusa
from specviz.models.training.train_parallel import measure_parallel

DEPTH = 5
"""How deep an EAGLE head is measured: one level beyond what it was trained on."""

_HEADER = """---
license: {license}
library_name: specviz
---
"""

Measured = Mapping[str, Mapping[str, Any]]


@torch.no_grad()
def measure_heads(
    heads: MedusaHeads | EagleHead, target: Any, heldout: Mapping[str, torch.Tensor]
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
                if isinstance(heads, ParallelHead):
                    values = measure_parallel(heads, target.model, tokens, pieces, span // 8)
                else:
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


def head_card(
    config: HeadConfig,
    facts: Mapping[str, Any],
    measured: Measured,
    *,
    text: str,
    license: str,
    ablation: Measured | None = None,
) -> str:
    """Return the README of Medusa heads, of an EAGLE head or of a parallel head.

    Parameters
    ----------
    config : MedusaConfig or EagleConfig
        Their shape.
    facts : mapping
        Of the run: ``step``, ``rows``, ``context``, ``windows``, ``seconds``.
    measured : mapping
        Per domain what ``measure_eagle`` or ``measure_medusa`` returned.
    text : str
        One sentence on the text they were trained on.
    license : str
        Of the weights.
    ablation : mapping, optional
        The same measurements of a head of equal size without features.
    """
    layers = ", ".join(map(str, config.layers))
    if isinstance(config, ParallelConfig):
        what = (
            f"A parallel head for `{config.target}`: one decoder layer of width "
            f"{config.hidden_size} that reads the normalised outputs of layers {layers} and the "
            f"embedding of the next token, and proposes {config.gamma} tokens in one pass, all "
            f"but the first from placeholders."
        )
    elif isinstance(config, EagleConfig):
        size = f"one decoder layer of width {config.hidden_size}"
        what = (
            f"An EAGLE head for `{config.target}`: {size} that reads the normalised outputs of "
            f"layers {layers} and the embedding of the next token, and continues on "
            f"its own outputs; trained on {config.steps} of its own roll-out steps."
        )
    else:
        what = (
            f"{config.heads} Medusa heads for `{config.target}`: {config.blocks} residual "
            f"block(s) each, on the outputs of layer(s) {layers}."
        )
    lines = [
        _HEADER.format(license=license),
        f"# specviz {config.kind} heads",
        "",
        f"{what} {_words(config)} These weights are useless with any other target, and loading "
        "them there is refused. Stored in float16, large matrices in int8 with a scale per row.",
        "",
        "## Training",
        "",
        f"{text} {facts['windows']:,} windows, read in pieces of {facts['context']} tokens, "
        f"{facts['step']:,} steps of {facts['rows']} pieces, KL from the target's full "
        f"distributions, {facts['seconds'] / 60:.0f} minutes.{_before(facts)}",
        "",
        "## Measured",
        "",
        _convention(config),
        "",
        *(_medusa_table(measured) if config.kind == "medusa" else _depth_table(measured)),
        "",
    ]
    if ablation is not None:
        lines += [
            "The same size, start, data and steps with the features switched off:",
            "",
            *_depth_table(ablation),
            "",
        ]
    return "\n".join(lines)


def _before(facts: Mapping[str, Any]) -> str:
    """Say what the run started from, if it was not from nothing."""
    steps = facts.get("before", 0)
    if not steps:
        return ""
    return (
        f" It started from heads of {steps:,} earlier steps, on earlier states of the target too."
    )


def _words(config: HeadConfig) -> str:
    """Say whose embedding and output head are used."""
    if isinstance(config, EagleConfig) and config.own_vocabulary:
        return (
            "It began as the pair's one-layer draft, whose embedding and output head it keeps, "
            "and learned to use the features."
        )
    return "The target's own embedding and output head are used."


def _convention(config: HeadConfig) -> str:
    alpha = (
        "Held-out text the heads never saw, float32, temperature 1. alpha = mean over positions "
        "of sum(min(p, q)), p the target's distribution and q the draft's; top-1: both favour the "
        "same token. "
    )
    if isinstance(config, EagleConfig):
        return alpha + "Depth d: the d-th proposal of a chain, those before it being the text's."
    return alpha + "Top-5: the target's favourite is among the head's five."


def _depth_table(measured: Measured) -> list[str]:
    depth = max(len(row["alpha"]) for row in measured.values())
    names = [f"depth {d + 1}" for d in range(depth)]
    lines = ["| text, alpha / top-1 | " + " | ".join(names) + " |", "|---" * (depth + 1) + "|"]
    for domain, row in measured.items():
        cells = [
            f"{alpha:.3f} / {top:.3f}" for alpha, top in zip(row["alpha"], row["top1"], strict=True)
        ]
        lines.append(f"| {domain} | " + " | ".join(cells) + " |")
    return lines


def _medusa_table(measured: Measured) -> list[str]:
    count = max(len(row["alpha"]) for row in measured.values())
    names = [f"head {i + 1}" for i in range(count)]
    lines = [
        "| text, alpha / top-1 / top-5 | " + " | ".join(names) + " |",
        "|---" * (count + 1) + "|",
    ]
    for domain, row in measured.items():
        rows = zip(row["alpha"], row["top1"], row["top5"], strict=True)
        cells = [f"{alpha:.3f} / {one:.3f} / {five:.3f}" for alpha, one, five in rows]
        lines.append(f"| {domain} | " + " | ".join(cells) + " |")
    return lines
