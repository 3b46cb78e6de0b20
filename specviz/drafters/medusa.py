"""Medusa: extra heads on the target's last hidden state propose a tree (Cai et al. 2024).

Head i guesses the token i + 1 places after the state it reads, all from one state and so without
knowing each other's choice. Their first few choices, combined by a fixed tree, are verified in
one pass. Every choice is deterministic, so every node has a one-hot distribution.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from specviz.core.contract import Context, Draft, IntArray, Target
from specviz.core.draws import Draws
from specviz.drafters.topology import (
    Topology,
    best_tree,
    check_room,
    check_trees,
    checked_topology,
)
from specviz.models.heads import HeadsError, MedusaHeads, load_heads

NODES = 24
DEFAULT_TREE = checked_topology(
    [
        *((rank,) for rank in range(5)),
        *((0, rank) for rank in range(4)), *((1, rank) for rank in range(2)), (2, 0), (3, 0),
        *((0, 0, rank) for rank in range(3)), (0, 1, 0), (0, 2, 0), (1, 0, 0),
        (0, 0, 0, 0), (0, 0, 0, 1), (0, 0, 1, 0), (0, 1, 0, 0),
    ]
)  # fmt: skip
"""Used where the heads' own accuracy is not on record: 23 nodes for four heads."""


class Medusa:
    """Draft with Medusa heads and a fixed tree of their most likely tokens.

    Parameters
    ----------
    heads : path or MedusaHeads, optional
        Folder of the heads; by default those of the bundled target.
    tree : sequence, optional
        Children per level such as ``(4, 2, 1)``, or nodes by rank such as
        ``[(0,), (1,), (0, 0)]``, at most as deep as there are heads. By default the 24 nodes
        that are worth most by the heads' measured accuracy.

    Raises
    ------
    TypeError, ValueError
        If ``tree`` is not a tree; from :meth:`begin`, if the heads do not fit the target.

    Examples
    --------
    >>> Medusa(tree=(3, 2)).gamma
    2
    """

    name = "medusa"
    trees = True
    cache_length = 0  # it reads the target's states and keeps none of its own

    def __init__(self, heads: Any = None, *, tree: Any = None) -> None:
        self.heads = heads
        self.tree = None if tree is None else checked_topology(tree)
        self._ready: tuple[Any, MedusaHeads, Topology] | None = None
        self._target: Any = None

    @property
    def gamma(self) -> int:
        """How deep its tree is."""
        return self._shape().depth

    def _shape(self) -> Topology:
        if self.tree is not None:
            return self.tree
        return DEFAULT_TREE if self._ready is None else self._ready[2]

    def begin(self, pair: Any, target: Target, prompt: IntArray) -> None:
        """Load the heads and ask the target for the states they read.

        Raises
        ------
        HeadsError, ValueError
            If the heads do not fit the target, or the tree fits neither heads nor context.
        """
        if self._ready is None or self._ready[0] is not pair.target:
            heads = load_heads(self.heads, pair, "medusa")
            tree = self._tree_for(heads)
            self._ready = (pair.target, heads, tree)
        tree = self._ready[2]
        check_room(len(tree), tree.depth, target)
        check_trees(target)
        capture_from(target, self._ready[1].config.layers)
        self._target, self._vocab_size = target, int(pair.vocab_size)
        self._state: torch.Tensor | None = None

    def _tree_for(self, heads: MedusaHeads) -> Topology:
        config = heads.config
        if self.tree is None:
            tree = best_tree(config.ranks, NODES) if config.ranks else DEFAULT_TREE
            return tree.cut(config.heads)
        if self.tree.depth > config.heads:
            raise HeadsError(
                f"tree is {self.tree.depth} levels deep, but there are {config.heads} Medusa "
                f"heads: give a tree of at most {config.heads} levels"
            )
        return self.tree

    def propose(self, context: Context, draws: Draws) -> Draft:
        """Combine the heads' most likely tokens; nothing in the first round, without a state."""
        assert self._ready is not None, "propose() comes after begin()"
        _, heads, tree = self._ready
        tree = tree.cut(context.room)
        if self._state is None or len(tree) == 0:
            return Draft.empty(self._vocab_size)
        with torch.inference_mode():
            states = heads(self._state)[: tree.depth]  # (depth, hidden)
            logits = self._target.model.get_output_embeddings()(states)  # (depth, vocab)
        widest = max(path[-1] for path in tree.paths) + 1
        best = logits.float().topk(min(widest, logits.shape[-1]), dim=-1).indices.cpu().numpy()
        tokens: list[int] = []
        parent: list[int] = []
        place = {-1: -1}  # node of the tree → node of the draft
        for node, path in enumerate(tree.paths):
            above = place.get(tree.parent[node])
            if above is None or path[-1] >= best.shape[1]:
                continue
            if above >= 0 and tokens[above] in context.stop_ids:  # nothing can follow the end
                continue
            place[node] = len(tokens)
            tokens.append(int(best[len(path) - 1, path[-1]]))
            parent.append(above)
        return one_hot_draft(tokens, parent, self._vocab_size)

    def commit(self, emitted: IntArray, path: Sequence[int]) -> None:
        """Take the state of the last token that the target has read."""
        features = self._target.features  # (kept, layers, hidden)
        self._state = features[-1]

    def settings(self) -> dict[str, Any]:
        """Return what a trace says of this drafter."""
        tree = [list(path) for path in self._shape().paths]
        return {"name": self.name, "heads": name_of(self.heads), "tree": tree}


def one_hot_draft(tokens: Sequence[int], parent: Sequence[int], vocab_size: int) -> Draft:
    """Return a tree of deterministic choices."""
    ids, above = np.asarray(tokens, dtype=np.int64), np.asarray(parent, dtype=np.int64)
    none = np.zeros((0, vocab_size))
    return Draft(ids, above, none, np.full(len(ids), -1, dtype=np.int64))


def name_of(heads: Any) -> str:
    """Return what to call heads in a trace: of a folder only its name."""
    if heads is None:
        return "bundled"
    return Path(heads).name if isinstance(heads, (str, os.PathLike)) else "in memory"


def capture_from(target: Any, layers: tuple[int, ...]) -> None:
    """Ask the target for the outputs of some layers, or say in one sentence that it has none.

    Raises
    ------
    HeadsError
        If the target has no hidden states.
    """
    capture = getattr(target, "capture", None)
    if capture is None:
        raise HeadsError("heads read a Hugging Face model's hidden states; this target has none")
    capture(layers)
