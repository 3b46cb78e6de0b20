"""The model cards, written from measured numbers only."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

_HEADER = """---
language: en
license: apache-2.0
library_name: transformers
pipeline_tag: text-generation
---
"""

_DATA = """## Data

| domain | what | licence | share of training |
|---|---|---|---|
| stories | short stories from this repository's own grammar (`models/training/stories.py`) | \
Apache-2.0 | {stories} |
| prose | six novels by Jane Austen (Debian's `r-cran-janeaustenr`) | public domain | {prose} |
| records | small structured records from this repository's own grammar \
(`models/training/records.py`) | Apache-2.0 | {records} |

The people in stories and records are invented; nothing comes from the web. Held out: stories and
records from seeds that training never used (they measure how well the grammar was learned, not
how far it carries); the last fortieth of each novel.
"""

_MAKE = """## Make it again

`python -m specviz.models.training --help` and the docstring of `specviz.models.training` give
the whole recipe, from corpus to card, on two CPU cores. A retraining gives a sibling, not these
very bits: compilers and thread timing round differently.
"""

_LIMITS = """## Limits

Made to show and test speculative decoding, for nothing else. It writes stories of the kinds its
grammar knows, Austen-like nonsense with words of its own, and records that do not always add up.
It knows no facts, follows no instructions and understands only English of these kinds. It may
repeat phrases of the novels. Contexts longer than {context} tokens were never seen.
"""


def _per_domain(rows: dict[str, dict[str, Any]], columns: dict[str, str]) -> list[str]:
    """Return a Markdown table: a line per domain, a column per measure."""
    lines = ["| domain | " + " | ".join(columns.values()) + " |"]
    lines.append("|---" * (len(columns) + 1) + "|")
    for name, row in rows.items():
        lines.append(f"| {name} | " + " | ".join(f"{row[key]:.3f}" for key in columns) + " |")
    return lines


def _shape(config: dict[str, Any]) -> str:
    return (
        f"Llama, {config['num_hidden_layers']} layer(s) of width {config['hidden_size']}, "
        f"intermediate {config['intermediate_size']}, {config['num_attention_heads']} heads / "
        f"{config['num_key_value_heads']} key-value heads, vocabulary {config['vocab_size']} "
        f"(byte-level BPE), context {config['max_position_embeddings']}, tied embeddings, "
        f"{config['parameters']:,} parameters, stored in float16, loaded in float32"
    )


def _quote(samples: dict[str, list[str]]) -> list[str]:
    lines = [
        "## What it writes",
        "",
        "Temperature 1; the first 16 tokens are a held-out document's, the rest is sampled. "
        "Not selected.",
        "",
    ]
    for name, texts in samples.items():
        lines += [f"**{name}**", ""]
        for text in texts:
            lines += ["```text", text.strip().replace("```", "'''"), "```", ""]
    return lines


def _protocol(measured: dict[str, Any]) -> str:
    p = measured["protocol"]
    counts = ", ".join(f"{r['windows']} {n}" for n, r in measured["corpus"].items())
    return (
        f"Held-out windows of {p['context']} tokens ({counts}), float32, temperature 1. "
        "Loss in nats per token. alpha = mean over positions of sum(min(p, q)), p the target's "
        f"and q the draft's distribution. *Written*: alpha on text the target samples itself "
        f"after the "
        f"first {p['written_prompt']} tokens of held-out documents, to {p['written_length']} "
        "tokens. *Top-1*: how often both favour the same token."
    )


def target_card(measured: dict[str, Any]) -> str:
    """Return the README of the target.

    Parameters
    ----------
    measured
        What ``measure`` returned, with ``training`` (facts of the run), and ``configs`` (each
        model's configuration with its number of ``parameters``).
    """
    facts, config = measured["training"]["target"], measured["configs"]["target"]
    rows = {
        name: {**row, "margin": measured["margin"][name]}
        for name, row in measured["corpus"].items()
    }
    first = next(iter(measured["corpus"].values()))
    exits = [key for key in first if key.startswith("exit_") and not key.endswith("top1")]
    stable = facts["decay_start"] if facts["decay_start"] is not None else facts["step"]
    lengths = ", then ".join(
        f"{steps:,} on windows of {context} tokens" for context, steps in facts["contexts"].items()
    )
    shares = facts["settings"]["shares"]
    lines = [
        _HEADER,
        "# specviz bundled target",
        "",
        "The large one (p) of a small pair for speculative decoding on a CPU. " + _shape(config)
        + ".",
        "",
        _DATA.format(**{name: f"{share:.0%}" for name, share in shares.items()}),
        "## Training",
        "",
        f"{facts['tokens']:,} tokens in {facts['step']:,} steps of "
        f"{facts['settings']['tokens_per_step']:,} ({stable:,} at a constant rate, "
        f"{facts['step'] - stable:,} of cooldown; {lengths}), "
        f"{facts['seconds'] / 60:.0f} minutes on two shared "
        "CPU cores; Muon and AdamW, bfloat16. Besides the next-token loss, exits after "
        "layer 4 and after layers 2, 6, 8 and 12 in turn learn the final distribution with small "
        "weights.",
        "",
        "## Measured",
        "",
        _protocol(measured),
        "",
        *_per_domain(rows, {"loss_target": "loss", "loss_draft": "draft's loss",
                            "margin": "margin"}),
        "",
        "Acceptance of its own early exits (first k layers, shared final norm and head):",
        "",
        *_per_domain(
            measured["corpus"],
            {key: f"alpha, exit after {key.removeprefix('exit_')}" for key in exits},
        ),
        "",
        *_quote(measured["samples"]),
        _LIMITS.format(context=config["max_position_embeddings"]),
        _MAKE,
    ]  # fmt: skip
    return "\n".join(lines)


def draft_card(measured: dict[str, Any]) -> str:
    """Return the README of the draft; see ``target_card``."""
    facts, config = measured["training"]["draft"], measured["configs"]["draft"]
    rows = {
        name: {**row, "written": measured["written"][name]}
        for name, row in measured["corpus"].items()
    }
    shares = measured["training"]["target"]["settings"]["shares"]
    lines = [
        _HEADER,
        "# specviz bundled draft",
        "",
        "The small one (q) of a pair for speculative decoding on a CPU, distilled from the "
        "target beside it. " + _shape(config) + ".",
        "",
        _DATA.format(**{name: f"{share:.0%}" for name, share in shares.items()}),
        "## Training",
        "",
        f"{facts['step']:,} steps of {facts['rows']} windows of {facts['context']} tokens on "
        "KL(p || q) over the target's full distributions, on two kinds of text: "
        f"{facts['corpus_windows']:,} windows of the corpus and {facts['written_windows']:,} "
        "that the target sampled. It started from the target's embedding, final norm and first "
        "layer.",
        "",
        "## Measured",
        "",
        _protocol(measured),
        "",
        *_per_domain(
            rows,
            {"loss_draft": "loss", "loss_target": "target's loss", "alpha": "alpha",
             "written": "alpha, written", "top1": "top-1"},
        ),
        "",
        _LIMITS.format(context=config["max_position_embeddings"]),
        _MAKE,
    ]  # fmt: skip
    return "\n".join(lines)


def write_cards(place: Path) -> None:
    """Write ``README.md`` into the two directories of ``place`` from its ``measured.json``.

    Parameters
    ----------
    place
        Has ``target/config.json``, ``draft/config.json`` and ``measured.json``.
    """
    measured = json.loads((place / "measured.json").read_text())
    measured["configs"] = {
        name: json.loads((place / name / "config.json").read_text())
        | {"parameters": measured["parameters"][name]}
        for name in ("target", "draft")
    }
    (place / "target" / "README.md").write_text(target_card(measured))
    (place / "draft" / "README.md").write_text(draft_card(measured))
