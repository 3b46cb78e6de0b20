"""Drafts of the same size that were *not* distilled.

What similar data and the target's distributions buy.

``text-only`` reads the same corpus as the target, and nothing of the target; ``prose-only`` has
only ever read novels. Beside the distilled draft they show what "trained on similar data" and
"trained on the target's outputs" do to alpha.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from specviz.models.training.batches import SHARES
from specviz.models.training.draft import load_target
from specviz.models.training.export import export
from specviz.models.training.measure import measure
from specviz.models.training.parallel import launch
from specviz.models.training.target import Plan, Settings, train

BASELINES: dict[str, dict[str, float]] = {
    "text-only": dict(SHARES),
    "prose-only": {name: float(name == "prose") for name in SHARES},
}
"""Name → share of the training windows per domain."""

WHAT = {
    "text-only": "trained on the target's corpus, never on what the target says",
    "prose-only": "trained on the novels only: another domain than stories and records",
}

CARD = """---
language: en
license: apache-2.0
library_name: transformers
pipeline_tag: text-generation
---

# specviz bundled draft, {name}

A draft (q) of the same size as the distilled one beside it, {what}. Llama, 1 layer of width 256,
vocabulary 2048 (the target's tokenizer), stored in float16, loaded in float32. It is here to be
compared: `sv.load(draft="{name}")`. Data and licences: see the target's card; {tokens:,} tokens
read, {steps:,} steps, cross-entropy.

## Measured

{windows} held-out windows of 512 tokens per domain, float32, temperature 1; loss in nats per token;
alpha = mean over positions of sum(min(p, q)).

| domain | loss | target's loss | alpha | top-1 |
|---|---|---|---|---|
{rows}

## Limits

As the target's card says, and more so.
"""


def train_baseline(
    corpus: Path, run: Path, name: str, *, steps: int = 800, cooldown: int = 400
) -> None:
    """Train a one-layer model on text, at a constant rate and then cooling down; it resumes.

    Raises
    ------
    ValueError
        If there is no baseline of that name.
    """
    settings = Settings(layers=1, shares=_shares(name), seed=1)
    launch(1, train, corpus, run, settings, Plan(context=512, steps=steps))
    launch(1, train, corpus, run, settings, Plan(context=512, cooldown=cooldown))


def publish_baseline(
    corpus: Path, run: Path, name: str, models: Path, *, windows: int = 32
) -> dict[str, Any]:
    """Export a trained baseline beside ``models/target``, measured as users load it, with a card.

    Returns
    -------
    dict
        What was measured, per domain.
    """
    _shares(name)
    model, facts = load_target(run)
    place = models / f"draft-{name}"
    export(model, corpus / "tokenizer", place)
    measured = measure(models / "target", place, corpus, windows=windows)
    table: dict[str, Any] = measured["corpus"]
    rows = "\n".join(
        f"| {domain} | {row['loss_draft']:.3f} | {row['loss_target']:.3f} "
        f"| {row['alpha']:.3f} | {row['top1']:.3f} |"
        for domain, row in table.items()
    )
    text = CARD.format(
        name=name, what=WHAT[name], tokens=facts["tokens"], steps=facts["step"],
        windows=windows, rows=rows,
    )  # fmt: skip
    (place / "README.md").write_text(text, "utf-8")
    (place / "measured.json").write_text(json.dumps(table, indent=1) + "\n", "utf-8")
    return table


def _shares(name: str) -> dict[str, float]:
    if name not in BASELINES:
        raise ValueError(f"name must be one of {', '.join(map(repr, BASELINES))}, got {name!r}")
    return BASELINES[name]
