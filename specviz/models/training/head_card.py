"""The cards of heads, written from measured numbers only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from specviz.models.heads.config import EagleConfig, HeadConfig

_HEADER = """---
license: {license}
library_name: specviz
---
"""

Measured = Mapping[str, Mapping[str, Any]]


def head_card(
    config: HeadConfig,
    facts: Mapping[str, Any],
    measured: Measured,
    *,
    text: str,
    license: str,
    ablation: Measured | None = None,
) -> str:
    """Return the README of Medusa heads or of an EAGLE head.

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
    if isinstance(config, EagleConfig):
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
        f"distributions, "
        f"{facts['seconds'] / 60:.0f} minutes.{_before(facts)}",
        "",
        "## Measured",
        "",
        _convention(config),
        "",
        *(_eagle_table(measured) if config.kind == "eagle" else _medusa_table(measured)),
        "",
    ]
    if ablation is not None:
        lines += [
            "The same size, start, data and steps with the features switched off:",
            "",
            *_eagle_table(ablation),
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
        "same "
        "token. "
    )
    if isinstance(config, EagleConfig):
        return alpha + "Depth d: the d-th proposal of a chain, those before it being the text's."
    return alpha + "Top-5: the target's favourite is among the head's five."


def _eagle_table(measured: Measured) -> list[str]:
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
