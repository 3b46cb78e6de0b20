"""Self-test, once per model: does its KV cache roll back correctly? On a handful of tokens.

A config says what a model claims. Attention that looks ahead, a cache that was not really cut
back, or a tree mask that is passed over would all be silently wrong, so a short draft is verified
and rolled back, and the logits are compared with passes that use neither cache nor mask.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from numpy.typing import NDArray

from specviz.core.contract import Draft, IntArray
from specviz.decoding.hf.cache import FULL, SLIDING, CacheKind, UnsupportedModelError, refusal
from specviz.decoding.hf.forward import HFSession

LOOSE = 0.1
"""Error allowed, relative to the spread of the logits: above the noise of bf16 and of int8 drafts,
below attention that looks ahead or a cache that was not rolled back (both 0.2 and more)."""

STRICT = 0.01
"""For trees in float32 and better: positions that count nodes instead of depth make about 0.03."""

NARROW = 3
"""Tokens of a sliding window while it is tried: fewer than the trial's positions."""

_WINDOW = re.compile(r"(^|_)window(_size|_len|_length)?$")
"""Names under which configs and layers keep the width of a sliding window."""

TEXT, A, B, A_CHILD, B_CHILD = (0, 1, 2), 3, 4, 5, 6
"""The trial's tokens; 7 places in the model's context are enough."""

Differences = Callable[["HFSession", IntArray], tuple[str, list[float]]]
"""(target, token ids) → what was tried, and how far each row of logits was off."""

EQUAL = {torch.float64: 1e-9, torch.float32: 1e-5}
"""For the forward pass written out in :mod:`.lean`, which does the same arithmetic. In half
precision the order of sums shows: :data:`LOOSE`."""

_tried: WeakKeyDictionary[Any, tuple[CacheKind, CacheKind]] = WeakKeyDictionary()
_lean: WeakKeyDictionary[Any, bool] = WeakKeyDictionary()
_exits: WeakKeyDictionary[Any, dict[int, str]] = WeakKeyDictionary()


def tried(target: HFSession) -> CacheKind:
    """Put to the test what ``target.kind`` claims; what fails is taken out of it.

    Parameters
    ----------
    target : HFSession
        Freshly begun. It is used for the trial and begun again.

    Returns
    -------
    CacheKind
        The claim, or less; remembered for as long as the model lives.
    """
    claimed = target.kind
    known = _tried.get(target.model)
    if known is None or known[0] != claimed:
        known = (claimed, _after_trials(target, claimed))
        _tried[target.model] = known
    target.begin()
    return known[1]


def lean_agrees(target: HFSession) -> bool:
    """Whether the lean forward pass says what the model's own says, for a chain, a tree, a window.

    Parameters
    ----------
    target : HFSession
        Freshly begun, with a lean forward pass. It is begun again. The answer is remembered for as
        long as that forward pass lives.
    """
    known = _lean.get(target.lean)
    if known is None:
        allowed = EQUAL.get(target.model.dtype, LOOSE)
        known = not _trial(target, _chain_differences, allowed)[0]
        if known and target.kind.trees:
            known = not _trial(target, _tree_differences, allowed)[0]
        if known and target.kind.windows.get(SLIDING):
            with past_the_window(target):
                known = not _trial(target, _chain_differences, allowed)[0]
        _lean[target.lean] = known
    target.begin()
    return known


def exit_tried(target: HFSession, layer: int) -> None:
    """Test, once for each exit, that a pass made in two halves is the pass.

    Parameters
    ----------
    target : HFSession
        Freshly begun, of a model that can be cut at ``layer``. It is begun again.

    Raises
    ------
    UnsupportedModelError
        If logits differ from those of a plain pass.
    """
    known = _exits.setdefault(target.model, {})
    if layer not in known:
        why = ""
        if target.context_length is None or target.context_length >= len(TEXT) + 4:
            why, failure = _trial(target, _exit_differences(layer), _strictness(target))
            if failure is not None:  # nothing is remembered: the next attempt may go better
                raise failure
            if not why and target.kind.windows.get(SLIDING):
                with past_the_window(target):
                    why, _ = _trial(target, _exit_differences(layer), _strictness(target))
        known[layer] = why
    target.begin()
    if known[layer]:
        raise UnsupportedModelError(
            f"model type {target.kind.model_type!r} cannot draft by early exit: {known[layer]}"
        )


def _after_trials(target: HFSession, kind: CacheKind) -> CacheKind:
    if target.context_length is not None and target.context_length < len(TEXT) + 4:
        return kind
    why, failure = _trial(target, _chain_differences, LOOSE)
    if why:
        kind = replace(kind, name="unknown", can_crop=False, can_gather=False, trees=False, why=why)
        if failure is not None:  # nothing is remembered: the next attempt may go better
            raise UnsupportedModelError(refusal(kind)) from failure
    stated = kind.windows.get(SLIDING)
    if stated and not _window_used(target):
        kind = replace(kind, name="full", windows={FULL: None})
    hidden = _hidden_window(target, stated)
    if kind.trees and hidden:
        kind = replace(kind, trees=False, why=hidden)
    if kind.trees:
        target.kind = kind
        why, _ = _trial(target, _tree_differences, _strictness(target))
        if not why and kind.windows.get(SLIDING):
            with past_the_window(target):
                why, _ = _trial(target, _tree_differences, _strictness(target))
        kind = replace(kind, trees=not why, why=why)
    return kind


@contextmanager
def past_the_window(target: HFSession) -> Iterator[None]:
    """Narrow a sliding window, so that a trial of seven tokens runs past it; then put it back.

    A window of thousands of tokens would need a pass that long. Whatever reads the window, from
    the config or from a layer's own attribute, reads the narrow one meanwhile.
    """
    wide = target.kind.windows.get(SLIDING)
    if not wide or wide <= 1:
        yield
        return
    narrow, kind = min(NARROW, wide - 1), target.kind
    config = target.model.config.get_text_config(decoder=True)
    holders = [config, target.model.config, *target.model.modules()]
    held = [(one, name) for one in holders for name, width in _windows_in(one) if width == wide]
    try:
        for one, name in held:
            setattr(one, name, narrow)
        target.kind = replace(kind, windows={**kind.windows, SLIDING: narrow})
        yield
    finally:
        target.kind = kind
        for one, name in held:
            setattr(one, name, wide)


def _windows_in(holder: Any) -> list[tuple[str, int]]:
    """Return the attributes of a config or module that are windows by their name: (name, width)."""
    return [
        (name, value)
        for name, value in vars(holder).items()
        if _WINDOW.search(name) and type(value) is int and value > 0
    ]


def _hidden_window(target: HFSession, stated: int | None) -> str:
    """Return why trees are refused: a layer has a window that the masks here would not show.

    Why not find it by running past it? That takes a pass as long as the window, which may be
    thousands of tokens. A window that reaches over the whole context hides nothing.
    """
    find = getattr(target.model, "get_decoder", None)
    decoder = find() if find is not None else target.model
    whole = target.context_length or np.inf
    for module in (decoder or target.model).modules():
        for name, width in _windows_in(module):
            if width != stated and width < whole:
                where = f"{type(module).__name__}.{name}"
                return (
                    f"its layers look back {width} tokens ({where}), which no tree mask here says"
                )
    return ""


def _window_used(target: HFSession) -> bool:
    """Whether the layers look at the window that the config states: some read past it."""
    usable = min(target.known_ids, target.vocab_size)
    ids = np.arange(1, 8) * usable // 9  # (7,) spread over the vocabulary
    before = plain_logits(target, ids)[-1]
    with past_the_window(target):
        after = plain_logits(target, ids)[-1]
    return difference(after, before) > 1e-6


def _strictness(target: HFSession) -> float:
    return LOOSE if target.model.dtype in (torch.float16, torch.bfloat16) else STRICT


def _trial(
    target: HFSession, differences: Differences, allowed: float
) -> tuple[str, Exception | None]:
    """Return what went wrong (empty if nothing did), and the exception if that is what it was."""
    usable = min(target.known_ids, target.vocab_size)
    ids = np.arange(1, 8) * usable // 9  # (7,) spread over the vocabulary
    target.begin()
    try:
        what, errors = differences(target, ids)
    except torch.OutOfMemoryError:
        raise  # says nothing about the model
    except Exception as failure:  # whatever else foreign code raises is an answer
        return f"a pass of the self-test failed with {type(failure).__name__}: {failure}", failure
    if max(errors) <= allowed:
        return "", None
    return (
        f"in the self-test, logits of {what}, or after it was rolled back, differed from those of "
        f"an ordinary pass by {max(errors):.0%} of their spread"
    ), None


def _chain_differences(target: HFSession, ids: IntArray) -> tuple[str, list[float]]:
    logits = target.verify(ids[[*TEXT]], _chosen(target, ids[[B, A]], [-1, 0]))
    target.keep([0])
    # Where the trial goes on, it goes on with another token than the one it takes back.
    after = target.verify(ids[[B_CHILD]], Draft.empty(target.vocab_size))  # (1, vocab)
    plain = plain_logits(target, ids[[*TEXT, B, B_CHILD]])[-3:]
    return "the chain", _compared([*logits[:2], after[0]], plain)


def _tree_differences(target: HFSession, ids: IntArray) -> tuple[str, list[float]]:
    nodes, parent = ids[[A, B, A_CHILD, B_CHILD]], [-1, -1, 0, 1]
    logits = target.verify(ids[[*TEXT]], _chosen(target, nodes, parent))
    target.keep([1, 3])
    after = target.verify(ids[[A]], Draft.empty(target.vocab_size))  # (1, vocab)
    through_a = plain_logits(target, ids[[*TEXT, A, A_CHILD]])
    through_b = plain_logits(target, ids[[*TEXT, B, B_CHILD, A]])
    ours = [*logits[[0, 1, 3]], *logits[[0, 2, 4]], after[0]]
    return "the tree", _compared(ours, [*through_a[-3:], *through_b[-4:]])


def _exit_differences(layer: int) -> Differences:
    """Draft two tokens with the first layers, verify them, take one back, go on."""

    def differences(target: HFSession, ids: IntArray) -> tuple[str, list[float]]:
        target.draft_step(ids[[*TEXT]], layer)
        target.draft_step(ids[[*TEXT, B]], layer)
        logits = target.verify(ids[[*TEXT]], _chosen(target, ids[[B, A]], [-1, 0]))
        target.keep([0])
        target.draft_step(ids[[B_CHILD]], layer)
        after = target.verify(ids[[B_CHILD]], Draft.empty(target.vocab_size))  # (1, vocab)
        plain = [
            *plain_logits(target, ids[[*TEXT, B, A]])[-3:],
            *plain_logits(target, ids[[*TEXT, B, B_CHILD]]),
        ]
        return "two halves of a pass", _compared([*logits, after[0]], [*plain[:3], plain[-1]])

    return differences


def _chosen(target: HFSession, tokens: IntArray, parent: list[int]) -> Draft:
    """Return a draft of deterministic choices."""
    none = np.zeros((0, target.vocab_size))
    return Draft(tokens, np.array(parent), none, np.full(len(tokens), -1))


def _compared(ours: Iterable[NDArray[Any]], plain: Iterable[NDArray[Any]]) -> list[float]:
    return [difference(row, other) for row, other in zip(ours, plain, strict=True)]


@torch.inference_mode()
def plain_logits(target: HFSession, ids: IntArray) -> NDArray[Any]:
    """Return logits ``(len(ids), vocab)`` of an ordinary pass."""
    takes_cache = "use_cache" in inspect.signature(target.model.forward).parameters
    output = target.model(
        input_ids=torch.as_tensor(ids, device=target.device)[None],
        **({"use_cache": False} if takes_cache else {}),
    )
    return target.fitted(output.logits[0])


def difference(ours: NDArray[Any], plain: NDArray[Any]) -> float:
    """Return how far logits ``(vocab,)`` are off, relative to the spread of the plain ones."""
    finite = np.isfinite(plain)
    if not finite.any() or not np.isfinite(ours[finite]).all():
        return 0.0  # bad weights, not a bad cache: the distributions will say where
    spread = float(np.linalg.norm(plain[finite] - plain[finite].mean()))
    return float(np.linalg.norm(ours[finite] - plain[finite])) / max(spread, 1e-6)
