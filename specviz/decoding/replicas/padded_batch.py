"""A model with a cache row for each of many texts, which grow and are cut back independently.

In a row's cache the column of a token is its position. So a text is cut back by remembering its
length alone: a query sees the columns up to its own position, whatever lies beyond them is written
over by the next pass, and the filling of a shorter row in a batch lies there too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer

from specviz.core.contract import Draft, IntArray
from specviz.decoding.hf.cache import UnsupportedModelError
from specviz.decoding.hf.forward import visibility
from specviz.decoding.hf.selftest import LOOSE, STRICT, difference, plain_logits
from specviz.decoding.hf.target import HFTarget, open_session


@dataclass(frozen=True)
class Pass:
    """What one text wants of a pass.

    Parameters
    ----------
    row : int
        Its row of the cache.
    start : int
        How many tokens of the text the cache holds.
    fed : IntArray
        ``(k + n,)`` tokens that it does not hold, then the proposals.
    draft : Draft
        The ``n`` proposals.
    """

    row: int
    start: int
    fed: IntArray
    draft: Draft


@dataclass
class _Places:
    """Where a pass writes, and what it reads; shared by all layers."""

    rows: Tensor
    columns: Tensor  # (batch, fed)
    end: int
    in_order: bool  # the first rows, one after another: no need to pick them out


class PaddedLayer(DynamicLayer):
    """One layer's keys and values, ``(rows, heads, columns, head_dim)``, written row by row."""

    def __init__(self, rows: int, places: _Places) -> None:
        super().__init__()
        self._rows, self._places = rows, places
        self.keys: Any
        self.values: Any

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        """Write ``(batch, heads, fed, head_dim)``; return what these rows hold."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
            self.keys, self.values = (self._empty(s, 0) for s in (key_states, value_states))
        if self._places.end > self.keys.shape[-2]:
            room = self._places.end + max(32, self._places.end // 2)
            self.keys, self.values = (self._wider(s, room) for s in (self.keys, self.values))
        rows, columns = self._places.rows, self._places.columns
        self.keys[rows[:, None], :, columns] = key_states.transpose(1, 2)
        self.values[rows[:, None], :, columns] = value_states.transpose(1, 2)
        chosen = slice(len(rows)) if self._places.in_order else rows
        end = self._places.end
        return self.keys[chosen, :, :end], self.values[chosen, :, :end]

    def append(self, both: Tensor) -> tuple[Tensor, Tensor]:
        """Write ``(batch, fed, 2 * heads, head_dim)``; return what these rows hold."""
        keys, values = both.transpose(1, 2).chunk(2, dim=1)
        return self.update(keys, values)

    def _empty(self, like: Tensor, columns: int) -> Tensor:
        # zeros, not anything: what is masked is still multiplied, and NaN times 0 is NaN
        return like.new_zeros((self._rows, like.shape[1], columns, like.shape[-1]))

    def _wider(self, states: Tensor, columns: int) -> Tensor:
        wider = self._empty(states, columns)
        wider[..., : states.shape[-2], :] = states
        return wider


class PaddedBatch:
    """Runs passes of many texts as one.

    Parameters
    ----------
    session : HFTarget
        The model; its own cache is not used.
    rows : int
        How many texts there can be.

    Raises
    ------
    UnsupportedModelError
        If the model takes no mask of its own for each row; see also :func:`open_padded_batch`.

    Examples
    --------
    ::

        many = open_padded_batch(model, vocab_size, rows=2)
        none = Draft.empty(vocab_size)
        many.run([Pass(0, 0, np.array([5, 6, 7]), none), Pass(1, 0, np.array([8]), none)])
    """

    def __init__(self, session: HFTarget, rows: int) -> None:
        self.session, self.rows = session, rows
        if not session.kind.trees:
            raise UnsupportedModelError(
                f"model type {session.kind.model_type!r} cannot read texts of different lengths "
                f"in one batch: {session.kind.why}"
            )
        self.forget()

    def forget(self) -> None:
        """Empty all rows."""
        nowhere = torch.zeros(0, dtype=torch.long)
        self._places = _Places(nowhere, nowhere[None], 0, False)
        self._cache = DynamicCache()
        self._cache.layer_class_to_replicate = self._new_layer  # type: ignore[assignment]

    def _new_layer(self) -> PaddedLayer:
        return PaddedLayer(self.rows, self._places)

    @torch.inference_mode()
    def fill(self, tokens: IntArray) -> None:
        """Put the same beginning into every row; it is computed once."""
        if len(tokens) == 0:
            return
        self.run([Pass(0, 0, tokens, Draft.empty(self.session.vocab_size))])
        for layer in self._layers():
            for states in (layer.keys, layer.values):
                states[1:, :, : len(tokens)] = states[:1, :, : len(tokens)]

    @torch.inference_mode()
    def move(self, row: int, start: int, path: Sequence[int]) -> None:
        """Put the columns of one path of a tree, fed from ``start`` on, next to each other."""
        index = start + torch.as_tensor(list(path), dtype=torch.long)
        for layer in self._layers():
            for states in (layer.keys, layer.values):
                kept = states[row, :, index.to(states.device)]
                states[row, :, start : start + len(path)] = kept

    @torch.inference_mode()
    def run(self, passes: Sequence[Pass]) -> list[NDArray[Any]]:
        """Return for each pass its logits ``(1 + n, vocab)``, as :meth:`.HFTarget.verify` does."""
        session, device = self.session, self.session.device
        wide = max(len(one.fed) for one in passes)
        start = np.array([one.start for one in passes])[:, None]  # (batch, 1)
        ids = np.full((len(passes), wide), session.stand_in)
        for row, one in zip(ids, passes, strict=True):
            row[: len(one.fed)] = one.fed
        columns = start + np.arange(wide)  # (batch, fed)
        rows = np.array([one.row for one in passes])
        self._places.rows = torch.from_numpy(rows).to(device)
        self._places.columns = torch.from_numpy(columns).to(device)
        self._places.end = end = int(columns.max()) + 1
        self._places.in_order = np.array_equal(rows, np.arange(len(rows)))
        fed = torch.from_numpy(ids).to(device)
        positions = torch.from_numpy(self._positions(passes, columns)).to(device)
        masks = self._masks(passes, columns, end)
        longest = max(1 + len(one.draft) for one in passes)
        if session.lean is not None:
            rows_each = longest if len(passes) == 1 else wide  # a prompt needs no logits of its own
            logits = session.lean.batch_logits(fed, positions, masks, self._cache, rows_each)
            return self._split(session.fitted(logits.flatten(0, 1)), passes, rows_each)
        arguments: dict[str, Any] = {
            "input_ids": fed,
            "position_ids": positions,
            "attention_mask": masks if len(masks) > 1 else next(iter(masks.values())),
            "use_cache": True,
            session.cache_argument or "cache": self._cache,
        }
        if len(passes) == 1 and "logits_to_keep" in session.takes:
            arguments["logits_to_keep"] = longest  # a prompt needs no logits of its own
            logits = session.model(**arguments).logits[0]
            return [session.fitted(logits[len(logits) - longest :])]
        logits = session.model(**arguments).logits  # (batch, fed, vocab)
        return self._split(session.fitted(logits.flatten(0, 1)), passes, wide)

    def _split(
        self, logits: NDArray[Any], passes: Sequence[Pass], rows_each: int
    ) -> list[NDArray[Any]]:
        """Return each pass's ``(1 + n, vocab)`` of ``(batch * rows_each, vocab)``."""
        own = logits.reshape(len(passes), rows_each, -1)
        if len(passes) == 1:
            return [own[0, rows_each - 1 - len(passes[0].draft) :]]
        return [
            own[i, len(one.fed) - 1 - len(one.draft) : len(one.fed)] for i, one in enumerate(passes)
        ]

    def _layers(self) -> list[Any]:
        return [layer for layer in self._cache.layers if isinstance(layer, PaddedLayer)]

    def _positions(self, passes: Sequence[Pass], columns: IntArray) -> IntArray:
        """Return ``(batch, fed)``: columns for a text, depths for a tree; filling stays inside."""
        positions = columns.copy()
        for row, one in zip(positions, passes, strict=True):
            if not one.draft.is_chain:
                text = len(one.fed) - len(one.draft)
                row[text : len(one.fed)] = one.start + text + one.draft.depths()
        limit = self.session.context_length
        return positions if limit is None else np.minimum(positions, limit - 1)

    def _masks(
        self, passes: Sequence[Pass], columns: IntArray, end: int
    ) -> dict[str, Tensor | None]:
        """Return what is added to the attention scores, one mask for each kind of layer."""
        dtype, device = self.session.model.dtype, self.session.device
        masks: dict[str, Tensor | None] = {}
        for kind, window in self.session.kind.windows.items():
            apart = columns[..., None] - np.arange(end)  # (batch, fed, end)
            visible = apart >= 0
            if window is not None:
                visible &= apart < window
            for seen, one in zip(visible, passes, strict=True):
                if not one.draft.is_chain:
                    text, fed = len(one.fed) - len(one.draft), len(one.fed)
                    seen[:fed] = False
                    seen[:fed, : one.start + fed] = visibility(one.start, text, one.draft, window)
            mask = torch.zeros(visible.shape, dtype=dtype)
            mask.masked_fill_(~torch.from_numpy(visible), torch.finfo(dtype).min)
            masks[kind] = mask[:, None].to(device)  # (batch, 1, fed, end)
        return masks


_tried: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
"""What the trial of a model said; empty if all was well."""


def open_padded_batch(model: Any, vocab_size: int, rows: int) -> PaddedBatch:
    """Return a model with room for many texts, after a short trial (held once for each model).

    Raises
    ------
    UnsupportedModelError
        If it is not a Hugging Face model, takes no mask for each row, or the trial failed.
    """
    session = open_session(model, vocab_size)
    if not isinstance(session, HFTarget):
        raise UnsupportedModelError(
            f"{type(model).__name__} is not a network, so its passes cannot be batched"
        )
    why = _tried.get(session.model)
    if why is None:
        why = _tried[session.model] = _trial(PaddedBatch(session, 2))
    if why:
        raise UnsupportedModelError(
            f"model type {session.kind.model_type!r} cannot read texts of different lengths in "
            f"one batch: {why}"
        )
    return PaddedBatch(session, rows)


def _trial(many: PaddedBatch) -> str:
    """Return what is wrong with rows of different lengths, one of them cut back; or nothing."""
    session = many.session
    usable = min(session.known_ids, session.vocab_size)
    ids = np.arange(1, 8) * usable // 9  # (7,) spread over the vocabulary
    if session.context_length is not None and session.context_length < 6:
        return ""
    none = Draft.empty(session.vocab_size)
    many.fill(ids[:1])
    many.run([Pass(0, 1, ids[1:4], none), Pass(1, 1, ids[4:5], none)])
    first, second = many.run([Pass(0, 2, ids[5:6], none), Pass(1, 2, ids[1:4], none)])
    wanted = [
        plain_logits(session, ids[[0, 1, 5]])[-1],
        plain_logits(session, ids[[0, 4, 1, 2, 3]])[-1],
    ]
    half = session.model.dtype in (torch.float16, torch.bfloat16)
    off = max(difference(first[0], wanted[0]), difference(second[0], wanted[1]))
    if off <= (LOOSE if half else STRICT):
        return ""
    return (
        f"in the self-test its logits differed from those of plain passes by {off:.0%} of their "
        f"spread"
    )
