"""Measure an exported pair: losses, acceptance, early exits, and the gate for a release.

Everything is computed in float32 with Hugging Face's own forward pass on the exported files,
that is, on what users load. Conventions: losses in nats per token; alpha is the mean over
positions of sum(min(p, q)) at temperature 1, all positions of full-context windows of held-out
text ("corpus") or the positions after the prompt in text the target sampled ("written").
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from tqdm.auto import tqdm
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaForCausalLM

from specviz.models.training.batches import heldout_windows, load_domains
from specviz.models.training.network import END_OF_TEXT
from specviz.models.training.sampling import continue_texts

EXITS = (2, 4, 8, 12)
PROMPT = 16

Table = dict[str, float]


class GateError(RuntimeError):
    """The pair must not be released."""


def gate(target: Table, draft: Table) -> Table:
    """Return by how much the target beats the draft on held-out loss, per domain, in nats.

    A high acceptance is cheap when the target is no better than its draft.

    Raises
    ------
    GateError
        If the target does not have the lower loss in every domain.

    Examples
    --------
    >>> gate({"prose": 3.0}, {"prose": 3.5})
    {'prose': 0.5}
    """
    if set(target) != set(draft) or not target:
        raise GateError(f"target has domains {sorted(target)}, draft has {sorted(draft)}")
    margins = {name: round(draft[name] - target[name], 4) for name in target}
    bad = {name: margin for name, margin in margins.items() if not margin > 0}
    if bad:
        raise GateError(f"the draft is as good as its target or better, draft - target: {bad}")
    return margins


def overlap(p: Tensor, q: Tensor) -> Tensor:
    """Return sum(min(p, q)) per position for distributions ``(..., vocab)``."""
    return torch.minimum(p, q).sum(-1)


@torch.no_grad()
def compare(target: LlamaForCausalLM, draft: LlamaForCausalLM, windows: Tensor) -> dict[str, Any]:
    """Return losses, alpha, agreement and exits on ``windows`` ``(count, time + 1)``."""
    depth = target.config.num_hidden_layers
    exits = [k for k in EXITS if k < depth]
    totals: dict[str, float] = {}

    def add(name: str, values: Tensor) -> None:
        totals[name] = totals.get(name, 0.0) + values.double().mean().item() * len(values)

    for part in windows.split(4):
        ids, labels = part[:, :-1], part[:, 1:]
        out = target(ids, output_hidden_states=True)
        z_q = draft(ids).logits
        p, q = out.logits.softmax(-1), z_q.softmax(-1)
        add("loss_target", F.cross_entropy(out.logits.mT, labels, reduction="none"))
        add("loss_draft", F.cross_entropy(z_q.mT, labels, reduction="none"))
        add("alpha", overlap(p, q))
        favourite = p.argmax(-1)
        add("top1", (favourite == q.argmax(-1)).float())
        for k in exits:
            state = target.model.norm(out.hidden_states[k])
            distribution = target.lm_head(state).softmax(-1)
            add(f"exit_{k}", overlap(p, distribution))
            add(f"exit_{k}_top1", (favourite == distribution.argmax(-1)).float())
    return {name: round(total / len(windows), 4) for name, total in totals.items()}


@torch.no_grad()
def alpha_on_written(
    target: LlamaForCausalLM, draft: LlamaForCausalLM, prompts: Tensor, length: int, seed: int
) -> float:
    """Return alpha on text the target samples after ``prompts`` ``(count, n)``."""
    generator = torch.Generator().manual_seed(seed)
    text = continue_texts(target, prompts, length, generator, dtype=torch.float32, progress=False)
    given, total = prompts.shape[1], 0.0
    for part in text.split(4):
        p, q = target(part).logits.softmax(-1), draft(part).logits.softmax(-1)
        total += overlap(p, q)[:, given - 1 :].mean().item() * len(part)
    return round(total / len(text), 4)


def _load(place: Path) -> LlamaForCausalLM:
    return AutoModelForCausalLM.from_pretrained(place, dtype=torch.float32).eval()


def measure(
    target_place: Path,
    draft_place: Path,
    corpus: Path,
    *,
    windows: int = 32,
    context: int = 512,
    texts: int = 2,
    seed: int = 0,
) -> dict[str, Any]:
    """Measure two exported directories.

    Parameters
    ----------
    target_place, draft_place
        Hugging Face directories.
    corpus
        Folder with ``<domain>_heldout.npy``.
    windows
        Held-out windows per domain, at most.
    context
        Tokens per window.
    texts
        Sampled texts per domain in the result.
    seed
        For the sampled text.

    Returns
    -------
    dict
        ``corpus`` (per domain: see ``compare``), ``written`` (alpha per domain), ``margin``,
        ``samples``, ``protocol``. JSON-able.

    Raises
    ------
    GateError
        If the draft is not worse than the target everywhere.
    """
    target, draft = _load(target_place), _load(draft_place)
    tokenizer = AutoTokenizer.from_pretrained(target_place)
    result: dict[str, Any] = {
        "protocol": {
            "windows": windows, "context": context, "temperature": 1.0, "dtype": "float32",
            "written_prompt": PROMPT, "written_length": context // 2, "seed": seed,
        },
        "corpus": {}, "written": {}, "samples": {},
    }  # fmt: skip
    for name, ids in tqdm(load_domains(corpus, "heldout").items(), desc="measure"):
        chosen = heldout_windows(ids, context, windows)
        result["corpus"][name] = compare(target, draft, chosen)
        result["corpus"][name]["windows"] = len(chosen)
        starts = torch.from_numpy((ids == END_OF_TEXT).nonzero()[0])
        starts = starts[starts + PROMPT < len(ids)][:windows]
        prompts = torch.stack(
            [torch.from_numpy(ids[s : s + PROMPT].astype("int64")) for s in starts]
        )
        result["written"][name] = alpha_on_written(target, draft, prompts, context // 2, seed)
        generator = torch.Generator().manual_seed(seed)
        written = continue_texts(
            target, prompts[:texts], context // 2, generator, dtype=torch.float32, progress=False
        )
        result["samples"][name] = [_text(tokenizer, row.tolist()) for row in written]
    result["margin"] = gate(
        {name: row["loss_target"] for name, row in result["corpus"].items()},
        {name: row["loss_draft"] for name, row in result["corpus"].items()},
    )
    return result


def _text(tokenizer: Any, ids: list[int]) -> str:
    """Return the first document of ``ids`` as text; a trailing " […]" marks one cut short."""
    body = ids[1:] if ids[0] == END_OF_TEXT else ids
    ended = END_OF_TEXT in body
    body = body[: body.index(END_OF_TEXT)] if ended else body
    text = tokenizer.decode(body)
    return text if ended else text + " […]"
