"""Who may look at whom in a verification: the text causally, a node its ancestors only."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from specviz.core.contract import ROOT, Draft

BoolArray = NDArray[np.bool_]


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
