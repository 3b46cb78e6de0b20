"""What the key/value cache of a model can do: grow, be cut back, follow one path of a tree.

Speculative decoding feeds a model tokens that may be taken back. For an ordinary attention cache
that is a matter of dropping rows; a recurrent state has already forgotten what it was. So every
model is looked at before it runs, and one that cannot be rolled back is refused by name.

Layers with a sliding window keep *all* their rows here and get the window by their mask: a cache
that has thrown old rows away cannot be cut back past its edge.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel
from transformers.cache_utils import DummyLayer, DynamicLayer, DynamicSlidingWindowLayer


class GrowingLayer(DynamicLayer):
    """One layer's keys and values at the front of buffers with room to spare.

    The ordinary layer copies all it holds on every append; here appending costs as much as the
    tokens appended. ``keys`` and ``values`` are views, ``(batch, heads, length, head_dim)``.
    Rows are forgotten by setting ``length``: the next append writes over them.
    """

    def __init__(self) -> None:
        self.length = 0
        self._buffers: tuple[Tensor, Tensor] | None = None

    @property
    def is_initialized(self) -> bool:  # type: ignore[override]
        """Whether it has held anything."""
        return self._buffers is not None

    @property
    def keys(self) -> Tensor | None:  # type: ignore[override]
        """All keys; None before the first."""
        return None if self._buffers is None else self._buffers[0][:, :, : self.length]

    @property
    def values(self) -> Tensor | None:  # type: ignore[override]
        """All values; None before the first."""
        return None if self._buffers is None else self._buffers[1][:, :, : self.length]

    def get_seq_length(self) -> int:
        """Return how many tokens it holds."""
        return self.length

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        """Append rows; return all keys and all values."""
        start, count = self.length, key_states.shape[-2]
        end = self.length = start + count
        if self._buffers is None:
            self.device = key_states.device
            self._buffers = with_room(key_states, end, 0), with_room(value_states, end, 0)
        keys, values = self._buffers
        if end > keys.shape[-2]:
            keys, values = with_room(keys, end, start), with_room(values, end, start)
            self._buffers = keys, values
        keys.narrow(2, start, count).copy_(key_states)
        values.narrow(2, start, count).copy_(value_states)
        return keys.narrow(2, 0, end), values.narrow(2, 0, end)

    def append(self, both: Tensor) -> tuple[Tensor, Tensor]:
        """Append keys and values ``(batch, t, 2 * kv_heads, head_dim)``; return all of each."""
        keys, values = both.transpose(1, 2).chunk(2, dim=1)
        return self.update(keys, values)

    @classmethod
    def of(cls, layer: Any, rows: Tensor, room: int = 1) -> GrowingLayer:
        """Return a layer with some rows of a batch ``(k,)``, and room for ``room`` tokens more."""
        chosen = cls()
        chosen.device, chosen.length = layer.keys.device, layer.keys.shape[-2]
        buffers = []
        for states in (layer.keys, layer.values):
            shape = (len(rows), *states.shape[1:-2], chosen.length + room, states.shape[-1])
            buffer = states.new_empty(shape)
            torch.index_select(states, 0, rows, out=buffer[..., : chosen.length, :])
            buffers.append(buffer)
        chosen._buffers = buffers[0], buffers[1]
        return chosen


def with_room(states: Tensor, length: int, held: int) -> Tensor:
    """Return a buffer for ``length`` rows and more, with the first ``held`` rows of ``states``."""
    room = length + max(64, length // 2)
    buffer = states.new_empty((*states.shape[:-2], room, states.shape[-1]))
    buffer[..., :held, :] = states[..., :held, :]
    return buffer


def new_cache(kind: type[DynamicLayer] = GrowingLayer) -> DynamicCache:
    """Return an empty cache that keeps every row of every layer and can be cut back anywhere."""
    cache = DynamicCache()
    cache.layer_class_to_replicate = kind
    return cache


FULL = "full_attention"
SLIDING = "sliding_attention"
TREE_ATTENTION = ("eager", "sdpa")
"""Attention implementations that take an additive mask with one row per query."""


class UnsupportedModelError(ValueError):
    """A model that cannot do what was asked; the message names its type and says why."""


@dataclass(frozen=True)
class CacheKind:
    """What can be done with the cache of one model.

    Parameters
    ----------
    name : str
        ``"full"``, ``"sliding"`` or ``"mixed"``; for a cache that cannot be rolled back
        ``"recurrent"``, ``"encoder-decoder"`` or ``"unknown"``.
    model_type : str
        The model's own type, as its config states it.
    can_crop : bool
        The last tokens can be taken back: chains work.
    can_gather : bool
        One path of a tree can be picked out of what was appended.
    trees : bool
        A whole tree can be verified in one pass: gathering works, and so does a tree mask.
    why : str
        Why something does not work; empty if everything does.
    windows : mapping of str to (int or None)
        The kinds of attention among the layers, each with its window in tokens (None: all).
    """

    name: str
    model_type: str
    can_crop: bool
    can_gather: bool
    trees: bool
    why: str = ""
    windows: Mapping[str, int | None] = field(default_factory=dict)


def capabilities(model: PreTrainedModel) -> CacheKind:
    """Tell what the cache of ``model`` can do, from its config and its signature; nothing runs.

    Parameters
    ----------
    model : PreTrainedModel
        A causal language model.

    Returns
    -------
    CacheKind
        What works, and why the rest does not.

    Examples
    --------
    >>> from transformers import GPT2Config, GPT2LMHeadModel
    >>> tiny = GPT2Config(n_layer=1, n_head=1, n_embd=4, vocab_size=8, n_positions=8)
    >>> capabilities(GPT2LMHeadModel(tiny)).trees
    True
    """
    config = model.config.get_text_config(decoder=True)
    model_type = str(getattr(model.config, "model_type", type(model).__name__))

    def unusable(name: str, why: str) -> CacheKind:
        return CacheKind(name, model_type, False, False, False, why)

    if getattr(model.config, "is_encoder_decoder", False):
        return unusable("encoder-decoder", "it is an encoder–decoder, not a causal language model")
    if getattr(model, "_is_stateful", False):
        return unusable("recurrent", "it keeps a recurrent state, which cannot be rolled back")
    if cache_argument(model) is None:
        why = "its forward takes no key/value cache"
        if cache_argument(type(model)) is not None:  # the class's forward takes one
            why = "its forward was replaced by one that names no past_key_values"
        return unusable("unknown", why)
    try:
        layers = DynamicCache(config=config).layers
    except (KeyError, TypeError, AttributeError) as error:
        return unusable("unknown", f"its layers have a kind of cache that is not known ({error!r})")
    strange = [layer for layer in layers if not _holds_rows(layer)]
    if strange:
        kind = type(strange[0]).__name__
        recurrent = hasattr(strange[0], "recurrent_states")
        return unusable(
            "recurrent" if recurrent else "unknown",
            f"some of its layers keep {kind} states, which cannot be rolled back"
            if recurrent
            else f"some of its layers have a cache of kind {kind}, which is not known here",
        )
    windows = _windows(layers)
    name = "full" if set(windows) <= {FULL} else "sliding" if FULL not in windows else "mixed"
    why = _why_no_trees(model, config, windows)
    return CacheKind(name, model_type, True, True, not why, why, windows)


def refuse(kind: CacheKind, *, trees: bool = False) -> None:
    """Raise unless the model can be rolled back (``trees``: unless it can verify a tree).

    Raises
    ------
    UnsupportedModelError
        Names the model's type, the reason and what would work.
    """
    if not kind.can_crop:
        raise UnsupportedModelError(refusal(kind))
    if trees and not kind.trees:
        raise UnsupportedModelError(
            f"model type {kind.model_type!r} cannot verify a token tree: {kind.why}; "
            f"use a drafter that proposes a chain"
        )


def refusal(kind: CacheKind) -> str:
    """Return the sentence that refuses a model that cannot be rolled back."""
    hint = "use a causal model with an ordinary key/value cache (Llama, Qwen, GPT-2, Gemma, …)"
    if "was replaced" in kind.why:
        hint = "wrap it with functools.wraps(model.forward), so that its arguments can be read"
    refused = f"model type {kind.model_type!r} cannot be used for speculative decoding"
    return f"{refused}: {kind.why}; {hint}"


def cache_argument(model: PreTrainedModel | type[PreTrainedModel]) -> str | None:
    """Return the name under which the model's forward takes its cache, or None."""
    parameters = inspect.signature(model.forward).parameters
    return next((name for name in ("cache", "past_key_values") if name in parameters), None)


def held(cache: DynamicCache) -> int:
    """Return how many tokens the cache holds (its longest layer, where layers differ)."""
    return max((layer.get_seq_length() for layer in _filled(cache)), default=0)


def crop_to(cache: DynamicCache, length: int) -> None:
    """Keep the first ``length`` tokens of every layer, also of layers that hold different many."""
    layer: Any
    for layer in cache.layers:
        if isinstance(layer, GrowingLayer):
            layer.length = min(layer.length, length)
        elif getattr(layer, "keys", None) is not None:
            layer.keys = layer.keys[..., :length, :]
            layer.values = layer.values[..., :length, :]


def crop(cache: DynamicCache, tokens: int) -> None:
    """Drop the last ``tokens`` tokens.

    Raises
    ------
    ValueError
        If the cache holds fewer.
    """
    if not 0 <= tokens <= held(cache):
        raise ValueError(f"cannot drop {tokens} tokens from a cache that holds {held(cache)}")
    crop_to(cache, held(cache) - tokens)


@torch.inference_mode()
def gather(cache: DynamicCache, start: int, rows: Sequence[int]) -> None:
    """Keep the first ``start`` tokens and one path of the tree that was appended after them.

    Positions in a tree are depths, so the rows that stay are right as they are, also where a
    rotary embedding has been applied to the keys.

    Parameters
    ----------
    cache : DynamicCache
        Changed in place.
    start : int
        How many tokens came before the tree.
    rows : sequence of int
        Indices among the appended tokens, from the root of the path to its end.

    Raises
    ------
    ValueError
        If an index is outside what was appended.
    """
    appended = held(cache) - start
    if any(not 0 <= row < appended for row in rows):
        raise ValueError(f"rows must be among the {appended} tokens appended, got {list(rows)}")
    end = start + len(rows)
    index = start + torch.as_tensor(list(rows), dtype=torch.long)
    for layer in _filled(cache):
        for states in (layer.keys, layer.values):
            states[..., start:end, :] = states.index_select(-2, index.to(states.device))
    crop_to(cache, end)


def read_rows(cache: DynamicCache, start: int, end: int) -> list[tuple[Tensor, Tensor]]:
    """Return each layer's (keys, values) of the tokens ``start … end - 1``.

    Views ``(batch, heads, end - start, head_dim)``; keys are as cached, so rotated to their places.
    """
    return [
        (layer.keys[..., start:end, :], layer.values[..., start:end, :]) for layer in _filled(cache)
    ]


def write_rows(cache: DynamicCache, start: int, rows: Sequence[tuple[Tensor, Tensor]]) -> None:
    """Put (keys, values) for every layer at ``start``, over what is there and beyond its end.

    Raises
    ------
    ValueError
        If that would leave a gap.
    """
    length = held(cache)
    if start > length:
        raise ValueError(f"the cache holds {length} tokens, so none can be put at {start}")
    over = min(length - start, rows[0][0].shape[-2])  # rows that replace what is there
    for layer, (keys, values) in zip(_filled(cache), rows, strict=False):
        layer.keys[..., start : start + over, :] = keys[..., :over, :]
        layer.values[..., start : start + over, :] = values[..., :over, :]
    if over < rows[0][0].shape[-2]:
        for index, (keys, values) in enumerate(rows):
            cache.update(keys[..., over:, :], values[..., over:, :], index)


def _filled(cache: Any) -> list[Any]:
    layers = [layer for layer in cache.layers if getattr(layer, "keys", None) is not None]
    return [layer for layer in layers if layer.keys.numel() > 0]


def _holds_rows(layer: Any) -> bool:
    """Whether a layer keeps one row a token and nothing else, or nothing at all."""
    # Exact types: a subclass keeps something more, such as an index or a recurrent state.
    return type(layer) in (DynamicLayer, DynamicSlidingWindowLayer, DummyLayer)


def _windows(layers: Sequence[Any]) -> dict[str, int | None]:
    """Return the window of each kind of attention; 0 if layers of one kind differ."""
    windows: dict[str, int | None] = {}
    for layer in layers:
        if type(layer) is DynamicLayer:
            windows[FULL] = None
        elif type(layer) is DynamicSlidingWindowLayer:
            width = layer.sliding_window
            windows[SLIDING] = width if windows.get(SLIDING, width) == width else 0
    return windows


def _why_no_trees(model: PreTrainedModel, config: Any, windows: Mapping[str, int | None]) -> str:
    attention = str(getattr(config, "_attn_implementation", "eager"))
    if _uses_alibi(model, config):
        return "its ALiBi attention bias counts cached tokens instead of positions in the tree"
    if "position_ids" not in inspect.signature(model.forward).parameters:
        return "its forward takes no position ids, so siblings cannot share a position"
    if "local" in (getattr(config, "attention_layers", None) or ()):
        return "its local attention counts cached tokens instead of positions in the tree"
    if getattr(config, "attention_chunk_size", None) is not None:
        return "its chunked attention has no tree mask here"
    if windows.get(SLIDING) == 0:
        return "its layers have sliding windows of different widths"
    if attention not in TREE_ATTENTION:
        return (
            f"its attention implementation {attention!r} takes no tree mask "
            f"(load it with attn_implementation='sdpa' or 'eager')"
        )
    return ""


def _uses_alibi(model: PreTrainedModel, config: Any) -> bool:
    inner = getattr(config, "attn_config", None)
    stated = any(bool(getattr(place, "alibi", False)) for place in (config, inner))
    named = str(getattr(config, "position_embedding_type", "")).lower() == "alibi"
    built = any(
        "alibi" in name for kind in {type(m) for m in model.modules()} for name in dir(kind)
    )
    return stated or named or built
