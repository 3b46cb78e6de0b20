"""Measure an exported pair: losses, acceptance, early exits, the gate, and how well text reads.

Everything is computed in float32 with Hugging Face's own forward pass on the exported files,
that is, on what users load. Conventions: losses in nats per token; alpha is the mean over
positions of sum(min(p, q)) at temperature 1, all positions of full-context windows of held-out
text ("corpus") or the positions after the prompt in text the target sampled ("written").

Nats per token depend on the vocabulary. To compare editions, :func:`nats_per_character` counts
per character of the same held-out documents; :func:`one_token_words` and :func:`invented_words`
say how often a word stays whole on screen, and how often one occurs nowhere in the corpus.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from tqdm.auto import tqdm
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaForCausalLM

from specviz.models.training.bundled.batches import load_domains
from specviz.models.training.bundled.llama import END_OF_TEXT, continue_texts
from specviz.models.training.bundled.target import load_target
from specviz.models.training.features import heldout_windows
from specviz.models.training.fit import overlap

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


WORD = re.compile(r"(?<![A-Za-z'])[A-Za-z]+(?![A-Za-z])")


def documents(ids: np.ndarray, tokenizer: Any) -> list[str]:
    """Return the texts of joined documents, each of which begins with token 0."""
    pieces = np.split(ids, np.flatnonzero(ids == END_OF_TEXT))
    return [tokenizer.decode(piece[1:].tolist()) for piece in pieces if len(piece) > 1]


@torch.no_grad()
def nats_per_character(
    model: LlamaForCausalLM, tokenizer: Any, texts: Sequence[str], context: int = 512
) -> float:
    """Return the loss of whole documents in nats per character, comparable across vocabularies.

    A document longer than ``context`` is read in windows that overlap by a half; each token is
    scored once, with at least half a window before it.
    """
    total = characters = 0.0
    for text in texts:
        ids = [END_OF_TEXT, *tokenizer.encode(text, add_special_tokens=False)]
        characters += len(text)
        scored = 1
        for start in range(0, len(ids), context // 2):
            window = torch.tensor(ids[start : start + context])
            if scored >= start + len(window):
                break
            z = model(window[None, :-1]).logits[0].float()  # (time - 1, vocab)
            losses = F.cross_entropy(z, window[1:], reduction="none")
            total += losses[scored - start - 1 :].sum().item()
            scored = start + len(window)
    return total / characters


def one_token_words(tokenizer: Any, texts: Iterable[str]) -> float:
    """Return the share of all words in ``texts`` that are one token with the space before them."""
    words = Counter(word for text in texts for word in WORD.findall(text))
    whole = sum(
        count
        for word, count in words.items()
        if len(tokenizer.encode(f" {word}", add_special_tokens=False)) == 1
    )
    return whole / max(1, sum(words.values()))


def invented_words(
    model: LlamaForCausalLM, tokenizer: Any, prompts: Tensor, known: set[str], *,
    words: int = 2000, temperature: float = 0.8, seed: int = 0,
) -> tuple[float, list[str]]:  # fmt: skip
    """Return the share of sampled words that are not in ``known`` (lower case), and those words.

    Parameters
    ----------
    model, tokenizer
        Who writes.
    prompts
        ``(count, n)`` ids; as many are continued to half the context as ``words`` need.
    known
        Every word of the corpus.
    words
        How many words to look at.
    temperature, seed
        Of the sampling.
    """
    generator = torch.Generator().manual_seed(seed)
    length = model.config.max_position_embeddings // 2
    found: list[str] = []
    for part in prompts.split(8):
        rows = continue_texts(
            model, part, length, generator, dtype=torch.float32, progress=False,
            temperature=temperature,
        )  # fmt: skip
        for row in rows[:, prompts.shape[1] :]:  # the cut may halve a row's first and last word
            text = tokenizer.decode(row.tolist(), skip_special_tokens=True)
            found += [word.lower() for word in WORD.findall(text)[1:-1]]
        if len(found) >= words:
            break
    found = found[:words]
    strange = [word for word in found if word not in known]
    return len(strange) / max(1, len(found)), strange


def text_quality(place: Path, corpus: Path, tokenizer: Any | None = None) -> dict[str, Any]:
    """Measure what a reader of the target's text sees; any edition, on the same held-out text.

    Parameters
    ----------
    place
        A Hugging Face directory with its own tokenizer, or a run's folder with ``tokenizer``.
    corpus
        The folder whose held-out documents are read.
    tokenizer
        Of a run that was not exported yet.

    Returns
    -------
    dict
        ``nats_per_character``, ``one_token_words`` and ``characters_per_token`` per domain;
        ``invented_words`` of prose: their share, and the words.
    """
    theirs = AutoTokenizer.from_pretrained(corpus / "tokenizer")
    if tokenizer is None:
        model, tokenizer = _load(place), AutoTokenizer.from_pretrained(place)
    else:
        model = load_target(place)[0]
    texts = {n: documents(ids, theirs) for n, ids in load_domains(corpus, "heldout").items()}
    known = {
        word.lower()
        for ids in load_domains(corpus, "train").values()
        for text in documents(ids, theirs)
        for word in WORD.findall(text)
    }
    beginnings = [tokenizer.encode(text, add_special_tokens=False) for text in texts["prose"]]
    prompts = torch.tensor([[END_OF_TEXT, *ids[: PROMPT - 1]] for ids in beginnings])
    share, strange = invented_words(model, tokenizer, prompts, known)
    result: dict[str, Any] = {
        "nats_per_character": {}, "one_token_words": {}, "characters_per_token": {},
        "invented_words": {"share": round(share, 4), "words": strange},
    }  # fmt: skip
    for name, every in texts.items():
        some = every[:60]
        tokens = sum(len(tokenizer.encode(text, add_special_tokens=False)) for text in every)
        nats = nats_per_character(model, tokenizer, some)
        result["nats_per_character"][name] = round(nats, 4)
        result["one_token_words"][name] = round(one_token_words(tokenizer, every), 4)
        result["characters_per_token"][name] = round(sum(map(len, every)) / tokens, 2)
    return result


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
