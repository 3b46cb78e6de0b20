"""What one pass of a model is given: the tokens, checked, and the arguments of its forward."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import DynamicCache

from specviz.core.arrays import BoolArray
from specviz.core.contract import ROOT, Draft, IntArray
from specviz.decoding.hf.cache import CacheKind

if TYPE_CHECKING:
    from specviz.decoding.hf.lean import LeanModel


class HFSession(Protocol):
    """What the parts of this folder ask of an open session, which is an :class:`.HFTarget`.

    A protocol, because the session is made of these parts: it imports them, they cannot import it.
    """

    model: Any
    lean: LeanModel | None
    """The forward pass written out in :mod:`.lean`; None: the model's own is called."""
    kind: CacheKind
    device: torch.device
    vocab_size: int
    context_length: int | None
    known_ids: int
    """Rows of the input embedding: the ids that can be fed."""
    stand_in: int
    """What is fed for an id that the model does not know."""
    takes: frozenset[str]
    """Names of the arguments of the model's forward."""
    cache_argument: str | None
    cache: DynamicCache
    length: int
    """Tokens that the cache holds whole."""
    verified: Draft | None
    """The draft of a pass that was not settled yet."""

    def begin(self) -> None: ...  # noqa: D102
    def verify(self, pending: IntArray, draft: Draft) -> NDArray[Any]: ...  # noqa: D102
    def draft_step(self, tokens: IntArray, layer: int) -> NDArray[Any]: ...  # noqa: D102
    def keep(self, path: Sequence[int]) -> None: ...  # noqa: D102
    def fitted(self, logits: torch.Tensor) -> NDArray[Any]: ...  # noqa: D102
    def lean_states(  # noqa: D102
        self, fed: IntArray, pending: int, draft: Draft, *, done: int = 0,
        states: torch.Tensor | None = None, first: int = 0, last: int | None = None,
    ) -> torch.Tensor: ...  # fmt: skip
    def tree_masks(  # noqa: D102
        self, pending: int, draft: Draft
    ) -> torch.Tensor | dict[str, torch.Tensor]: ...


def visibility(length: int, pending: int, draft: Draft, window: int | None = None) -> BoolArray:
    """Return which tokens each token of a verification may look at.

    Everything in the cache and the pending tokens are seen causally; a node sees those, its
    ancestors and itself. Distances in a window are between positions, and a node's position is
    its depth.

    Parameters
    ----------
    length : int
        Tokens in the cache.
    pending : int
        Tokens of the text that are fed.
    draft : Draft
        The ``n`` proposals fed after them.
    window : int, optional
        A token sees the last ``window`` positions, its own included.

    Returns
    -------
    array of bool
        ``(pending + n, length + pending + n)``, True where the row's token sees the column's.

    Examples
    --------
    >>> siblings = Draft(np.array([5, 6]), np.array([-1, -1]), np.zeros((0, 9)), np.array([-1, -1]))
    >>> visibility(0, 1, siblings).astype(int).tolist()
    [[1, 0, 0], [1, 1, 0], [1, 0, 1]]
    """
    text = length + pending
    visible = np.zeros((pending + len(draft), text + len(draft)), dtype=bool)
    visible[:, :text] = np.tri(pending + len(draft), text, length, dtype=bool)
    for node, parent in enumerate(draft.parent.tolist()):
        if parent != ROOT:
            visible[pending + node] = visible[pending + parent]
        visible[pending + node, text + node] = True
    if window is not None:
        position = np.concatenate([np.arange(text), text + draft.depths()])
        visible &= position[length:, None] - position[None, :] < window
    return visible


def additive(visible: BoolArray, dtype: torch.dtype) -> torch.Tensor:
    """Return the mask ``(1, 1, rows, columns)`` that is added to attention scores.

    Added, not boolean: eager attention would add True and False as 1 and 0.

    Examples
    --------
    >>> additive(np.array([[True, False]]), torch.float32)[0, 0] < 0
    tensor([[False,  True]])
    """
    mask = torch.zeros(visible.shape, dtype=dtype)
    mask.masked_fill_(~torch.as_tensor(visible), torch.finfo(dtype).min)
    return mask[None, None]


SPARE_ROWS = 8
"""Unneeded rows that go through the head too: slicing can make a CPU copy its weight."""


def fed_tokens(target: HFSession, pending: IntArray, draft: Draft) -> IntArray:
    """Return ``(k + n,)``: the pending tokens, then the draft's nodes; or say what is wrong.

    Raises
    ------
    ValueError, RuntimeError
        See :meth:`.HFTarget.verify`.
    """
    if target.verified is not None and len(target.verified) > 0:
        raise RuntimeError("settle the proposals of the last verify() with keep() first")
    fed = np.concatenate([np.asarray(pending, dtype=np.int64), draft.tokens])
    if len(fed) == len(draft):
        raise ValueError("pending must hold at least one token, got none")
    ends = target.length + len(fed) - len(draft) + (int(draft.depths().max(initial=-1)) + 1)
    if target.context_length is not None and ends > target.context_length:
        raise ValueError(
            f"the pass would reach {ends} tokens, but the model's context holds "
            f"{target.context_length}"
        )
    unknown = (fed < 0) | (fed >= target.known_ids)
    if not unknown.any():
        return fed
    if fed.min() < 0 or fed.max() >= target.vocab_size:
        raise ValueError(
            f"token id {fed[unknown][0]} is not one of the model's {target.known_ids} ids"
        )
    # A draft may meet ids that only its target has. Whatever it then reads, q stays its
    # distribution.
    return np.where(unknown, target.stand_in, fed)


def forward_arguments(
    target: HFSession, fed: IntArray, pending: int, draft: Draft, *, masked: bool, done: int = 0
) -> dict[str, Any]:
    """Return what the model's forward is called with for ``fed[done:]``.

    Without ``masked`` the model makes its own causal mask, from the length of its cache.
    """
    device, rows = target.device, 1 + len(draft)
    arguments: dict[str, Any] = {
        "input_ids": torch.as_tensor(fed[done:], device=device)[None],  # (1, k + n - done)
        "use_cache": True,
        target.cache_argument or "cache": target.cache,
    }
    if "position_ids" in target.takes:
        depth = np.concatenate([np.arange(pending), pending + draft.depths()])[done:]
        places = torch.as_tensor(target.length + depth, device=device)
        arguments["position_ids"] = places[None]
    if masked:
        masks: Any = target.tree_masks(pending, draft)
        if done and isinstance(masks, dict):
            masks = {kind: mask[..., done:, :] for kind, mask in masks.items()}
        elif done:
            masks = masks[..., done:, :]
        arguments["attention_mask"] = masks
    if "logits_to_keep" in target.takes and len(fed) - done > rows + SPARE_ROWS:
        arguments["logits_to_keep"] = rows
    return arguments
