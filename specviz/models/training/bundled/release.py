"""Release the family: write directories, train what to compare with, cards from measured numbers.

``text-only`` and ``prose-only`` are drafts of the same size that were *not* distilled. The first
reads the same corpus as the target, and nothing of the target; the second has only ever read
novels. Beside the distilled draft they show what similar data, and the target's distributions,
do for alpha.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

import torch
from transformers import GenerationConfig, LlamaForCausalLM

from specviz.models.training.bundled.batches import SHARES
from specviz.models.training.bundled.llama import END_OF_TEXT, PADDING
from specviz.models.training.bundled.measure import measure
from specviz.models.training.bundled.target import (
    TargetSettings,
    TrainingPlan,
    launch,
    load_target,
    train,
)
from specviz.models.training.features import replace_directory

TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json")


def export(model: LlamaForCausalLM, tokenizer: Path, place: Path) -> None:
    """Write weights (float16), configurations and tokenizer to the directory ``place``.

    The file holds float16, tied weights once; ``config.json`` says float32, so that
    ``AutoModelForCausalLM.from_pretrained(place)`` gives float32, in which CPUs are at home.

    Parameters
    ----------
    model
        Left untouched.
    tokenizer
        Folder with ``tokenizer.json`` and its configuration.
    place
        Replaced as a whole, or, if anything fails, not at all.

    Raises
    ------
    FileNotFoundError
        If ``tokenizer`` has no ``tokenizer.json``.
    ValueError
        If a weight does not fit float16.
    """
    if not (tokenizer / "tokenizer.json").is_file():
        raise FileNotFoundError(f"no tokenizer.json in {tokenizer}; build the corpus first")
    limit = torch.finfo(torch.float16).max
    for name, weight in model.named_parameters():
        if not bool((weight.abs() <= limit).all()):
            raise ValueError(f"{name} has values outside float16 (or not numbers)")
    half = LlamaForCausalLM(model.config).half()
    half.load_state_dict(model.state_dict())
    ids = {"bos_token_id": END_OF_TEXT, "eos_token_id": END_OF_TEXT, "pad_token_id": PADDING}
    half.generation_config = GenerationConfig(do_sample=True, **ids)
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent) as folder:
        new = Path(folder) / place.name
        half.save_pretrained(new)
        for name in TOKENIZER_FILES:
            if (tokenizer / name).is_file():
                shutil.copyfile(tokenizer / name, new / name)
        config = json.loads((new / "config.json").read_text())
        config["dtype"] = "float32"
        (new / "config.json").write_text(json.dumps(config, indent=2) + "\n")
        for path in new.iterdir():
            path.chmod(0o644)
        replace_directory(new, place)


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
the target's tokenizer, stored in float16, loaded in float32. It is here to be
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
    settings = TargetSettings(layers=1, shares=_shares(name), seed=1)
    launch(1, train, corpus, run, settings, TrainingPlan(context=512, steps=steps))
    launch(1, train, corpus, run, settings, TrainingPlan(context=512, cooldown=cooldown))


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
| stories | short stories from this repository's own grammar \
(`models/training/bundled/stories.py`) | \
Apache-2.0 | {stories} |
| prose | six novels by Jane Austen (Debian's `r-cran-janeaustenr`) | public domain | {prose} |
| records | small structured records from this repository's own grammar \
(`models/training/bundled/records.py`) | Apache-2.0 | {records} |

The people in stories and records are invented; nothing comes from the web. Held out: stories and
records from seeds that training never used (they measure how well the grammar was learned, not
how far it carries); the last fortieth of each novel.
"""

_MAKE = """## Make it again

`python -m specviz.models.training.bundled --help` and the docstring of that package give the whole
recipe, from corpus to card, on two CPU cores. A retraining gives a sibling, not these very bits:
compilers and thread timing round differently.
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


def _readable(text: dict[str, Any]) -> list[str]:
    """Return the table of :func:`text_quality`, and how often prose invents a word."""
    keys = {
        "nats_per_character": "nats per character",
        "one_token_words": "words of one token",
        "characters_per_token": "characters per token",
    }
    rows = {name: {key: text[key][name] for key in keys} for name in text["nats_per_character"]}
    return [
        "Whole held-out documents, comparable across vocabularies:",
        "",
        *_per_domain(rows, keys),
        "",
        f"Of 2,000 words of prose sampled at temperature .8, {text['invented_words']['share']:.1%} "
        "occur nowhere in the corpus.",
        "",
    ]


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
        *_readable(measured["text"]),
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
