"""transformers' own decoding as the subject of an audit: assisted, or plain as its reference.

``assisted`` covers what ``generate`` calls assisted generation: a draft model, prompt lookup,
early exit, and whatever further keyword arguments select. It draws one text at a time (that is all
assisted generation does); ``plain`` draws a batch.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

from specviz.core.contract import IntArray
from specviz.lossless.audit.adapters.function import Function
from specviz.lossless.audit.recorded_texts import SETTINGS, sampling_of

MAX_NEW_TOKENS = 6
DRAFTED = 3
"""Tokens that the assistant drafts per round; shorter than the text, so that bonus tokens count."""

OWN_ADVICE = ("Passing `generation_config` together with", "A custom logits processor of type")
"""How its messages on the nested call begin."""

OWN_PROPOSALS = ("prompt_lookup_num_tokens", "assistant_early_exit", "use_mtp")


def assisted(pair: Any, **generation: Any) -> Function:
    """Return transformers' assisted generation on a pair, as a sampler to audit.

    Parameters
    ----------
    pair : Pair
        Its target generates; its draft is the assistant, unless ``assistant_model`` (ours or a
        Hugging Face model), ``prompt_lookup_num_tokens`` or ``assistant_early_exit`` is given.
    **generation
        Passed on to ``generate``: ``temperature``, ``top_k``, ``top_p``, ``max_new_tokens`` (6),
        ``num_assistant_tokens`` (3), ``num_assistant_tokens_schedule``,
        ``assistant_confidence_threshold``, ``assistant_ensemble_weight`` (lossy by design), …
        For different tokenizers ``assistant_tokenizer``, and ``tokenizer`` where it is not the
        pair's. Then the assistant and its tokenizer are copied: ``generate`` changes the head of an
        assistant in place, and remembers by its tokenizer that it did. (With transformers 5.24.0
        such sampling is not lossless; notebook 04 shows why.)

    Returns
    -------
    Function
        ``(prompt_ids, n, seed)`` → n token sequences, up to and including the end token.

    Raises
    ------
    ValueError
        If nothing says what proposes.

    Examples
    --------
    ::

        sampler = sv.lossless.adapters.transformers.assisted(pair, temperature=0.8)
        sv.audit(sampler, "Once upon a time", target=pair, n=2000)
    """
    own = any(generation.get(name) for name in OWN_PROPOSALS)
    assistant = generation.pop("assistant_model", None)
    if assistant is None and not own:
        if pair.draft is None:
            raise ValueError(
                "the pair has no draft model: give assistant_model=, prompt_lookup_num_tokens= "
                "or assistant_early_exit="
            )
        assistant = pair.draft
    if assistant is not None:
        hugging_face = assistant if hasattr(assistant, "generate") else assistant.model
        generation["assistant_model"] = hugging_face
        generation.setdefault("num_assistant_tokens", DRAFTED)
        generation.setdefault("num_assistant_tokens_schedule", "constant")
    if generation.get("assistant_tokenizer") is not None:
        _for_different_tokenizers(pair, generation)
    model = pair.target.model

    def draw(prompt_ids: IntArray, n: int, seed: int) -> list[list[int]]:
        with _seeded(seed), _without_own_advice(), _drafting(generation) as arguments:
            return [_texts(pair, model, prompt_ids, 1, arguments)[0] for _ in range(n)]

    return Function(draw, _name(generation), _settings(generation), pair.stop_ids)


def _for_different_tokenizers(pair: Any, generation: dict[str, Any]) -> None:
    if generation.get("assistant_model") is None:
        raise ValueError("assistant_tokenizer needs a draft: a pair with one, or assistant_model=")
    generation.setdefault("tokenizer", pair.tokenizer)
    if generation["tokenizer"] is None:
        raise ValueError("the pair has no tokenizer: give tokenizer=, the target's")
    for name in ("assistant_model", "assistant_tokenizer"):
        generation[name] = deepcopy(generation[name])


def _name(generation: dict[str, Any]) -> str:
    if generation.get("prompt_lookup_num_tokens"):
        return "transformers' prompt lookup"
    if generation.get("assistant_early_exit"):
        return "transformers' early exit"
    different = generation.get("assistant_tokenizer") is not None
    return "transformers' assisted generation" + (", different tokenizers" if different else "")


def plain(pair: Any, **generation: Any) -> Function:
    """Return transformers' ordinary sampling on a pair's target: the reference, in batches.

    Parameters
    ----------
    pair : Pair
        Its target generates.
    **generation
        As for :func:`assisted`.
    """

    def draw(prompt_ids: IntArray, n: int, seed: int) -> list[list[int]]:
        with _seeded(seed):
            return _texts(pair, pair.target.model, prompt_ids, n, generation)

    return Function(draw, "transformers' plain sampling", _settings(generation), pair.stop_ids)


def _settings(generation: dict[str, Any]) -> dict[str, Any]:
    """Return what is recorded: the sampling settings, and every other plain value."""
    kept = {
        name: value
        for name, value in generation.items()
        if isinstance(value, (str, int, float, bool)) or value is None
    }
    if not kept.pop("do_sample", True):
        kept["temperature"] = 0.0
    sampling_of(kept)
    return kept


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Seed torch's generators for a while; the caller's own state comes back."""
    import torch

    with torch.random.fork_rng():
        torch.manual_seed(seed)
        yield


@contextmanager
def _without_own_advice() -> Iterator[None]:
    """Drop what assisted generation advises its caller on how *it* calls ``generate``."""

    def other(record: logging.LogRecord) -> bool:
        return not any(start in record.getMessage() for start in OWN_ADVICE)

    logger = logging.getLogger("transformers.generation.utils")
    logger.addFilter(other)
    try:
        yield
    finally:
        logger.removeFilter(other)


@contextmanager
def _drafting(generation: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Set what ``generate`` reads from the assistant's own config, for a while."""
    arguments = dict(generation)
    assistant = arguments.get("assistant_model")
    names = (
        "num_assistant_tokens", "num_assistant_tokens_schedule", "assistant_confidence_threshold",
    )  # fmt: skip
    if assistant is None:
        yield arguments
        return
    with _neutral(assistant) as before:
        for name in names:
            own = getattr(before, name, None)
            setattr(assistant.generation_config, name, arguments.pop(name, own))
        yield arguments


@contextmanager
def _neutral(model: Any) -> Iterator[Any]:
    """Take a model's own generation_config away for a while; gives it to the caller.

    ``generate`` fills what a call leaves out with the checkpoint's own temperature, penalties and
    suppressed tokens. What shapes the texts of an audit is what the audit was told, no more.
    """
    from transformers import GenerationConfig

    before = model.generation_config
    model.generation_config = GenerationConfig()  # type: ignore[no-untyped-call]
    try:
        yield before
    finally:
        model.generation_config = before


def _texts(
    pair: Any, model: Any, prompt_ids: IntArray, n: int, generation: dict[str, Any]
) -> list[list[int]]:
    import torch

    arguments = {"max_new_tokens": MAX_NEW_TOKENS, **generation}
    greedy = arguments.get("temperature") == 0 or not arguments.get("do_sample", True)
    if greedy:
        arguments = {k: v for k, v in arguments.items() if k not in SETTINGS[:4]}
    else:  # transformers' own defaults cut at top_k = 50
        arguments = {"top_k": 0, "top_p": 1.0, **arguments}
    arguments["do_sample"] = not greedy
    ends = sorted(pair.stop_ids)
    ids = torch.tensor([[int(i) for i in prompt_ids]] * n, device=model.device)
    with _neutral(model):
        out = model.generate(
            input_ids=ids, attention_mask=torch.ones_like(ids), eos_token_id=ends or None,
            pad_token_id=ends[0] if ends else 0, **arguments,
        )  # fmt: skip
    return [_up_to_end(row, pair.stop_ids) for row in out[:, ids.shape[1] :].tolist()]


def _up_to_end(row: list[int], ends: frozenset[int]) -> list[int]:
    """Return a row without the padding that follows its end token."""
    for i, token in enumerate(row):
        if token in ends:
            return row[: i + 1]
    return row
