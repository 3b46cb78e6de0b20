"""A key/value cache to which appending is cheap, and which can be cut back anywhere."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer


class GrowingLayer(DynamicLayer):
    """One layer's keys and values at the front of buffers with room to spare.

    The ordinary layer copies all it holds on every append; here appending costs as much as the
    tokens appended. ``keys`` and ``values`` are views, ``(batch, heads, length, head_dim)``, so
    cutting them back is enough to forget rows: the next append writes over them.
    """

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        """Append rows; return all keys and all values."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
            self._buffers = key_states[..., :0, :], value_states[..., :0, :]
        start = self.get_seq_length()
        end = start + key_states.shape[-2]
        keys, values = self._buffers
        if end > keys.shape[-2]:
            keys, values = (_with_room(states[..., :start, :], end) for states in self._buffers)
            self._buffers = keys, values
        keys[..., start:end, :] = key_states
        values[..., start:end, :] = value_states
        self.keys, self.values = keys[..., :end, :], values[..., :end, :]
        return self.keys, self.values

    @classmethod
    def of(cls, layer: Any, rows: Tensor, room: int = 1) -> GrowingLayer:
        """Return a layer with some rows of a batch ``(k,)``, and room for ``room`` tokens more."""
        chosen = cls()
        chosen.lazy_initialization(layer.keys, layer.values)
        length = layer.keys.shape[-2]
        buffers = []
        for states in (layer.keys, layer.values):
            shape = (len(rows), *states.shape[1:-2], length + room, states.shape[-1])
            buffer = states.new_empty(shape)
            torch.index_select(states, 0, rows, out=buffer[..., :length, :])
            buffers.append(buffer)
        chosen._buffers = buffers[0], buffers[1]
        chosen.keys, chosen.values = (buffer[..., :length, :] for buffer in buffers)
        return chosen


def _with_room(held: Tensor, length: int) -> Tensor:
    room = length + max(64, length // 2)
    buffer = held.new_empty((*held.shape[:-2], room, held.shape[-1]))
    buffer[..., : held.shape[-2], :] = held
    return buffer


def new_cache() -> DynamicCache:
    """Return an empty cache that keeps every row of every layer and can be cut back anywhere."""
    cache = DynamicCache()
    cache.layer_class_to_replicate = GrowingLayer
    return cache
