"""Medusa: extra heads on the target's last hidden state propose a tree (Cai et al. 2024).

Head i guesses the token i + 1 places after the state it reads, all from one state and so without
knowing each other's choice. Their first few choices, combined by a fixed tree, are verified in
one pass. Every choice is deterministic, so every node has a one-hot distribution.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

import numpy as np
import torch

from specviz.core.contract import (
    Context,
    Draft,
    DrafterTraits,
    DraftSession,
    IntArray,
    ModelPair,
    Target,
)
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


@dataclass(frozen=True)
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
        If ``tree`` is not a tree; from :meth:`start`, if the heads do not fit the target.

    Examples
    --------
    >>> Medusa(tree=(3, 2)).depth
    2
    """

    name: ClassVar[str] = "medusa"
    traits: ClassVar[DrafterTraits] = DrafterTraits(trees=True)

    heads: Any = None
    _: KW_ONLY
    tree: Any = None

    def __post_init__(self) -> None:
        if self.tree is not None:
            object.__setattr__(self, "tree", checked_topology(self.tree))

    @property
    def depth(self) -> int:
        """How deep its tree is."""
        return (self.tree or DEFAULT_TREE).depth

    def start(self, pair: ModelPair, target: Target, prompt: IntArray) -> MedusaSession:
        """Load the heads and ask the target for the states they read.

        Raises
        ------
        HeadsError, ValueError
            If the heads do not fit the target, or the tree fits neither heads nor context.
        """
        heads = heads_for(pair, self.heads, "medusa")
        tree = self._tree_for(heads)
        check_room(len(tree), tree.depth, target)
        check_trees(target)
        capture_from(target, heads.config.layers)
        return MedusaSession(self, heads, tree, target, int(pair.vocab_size))

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

    def settings(self) -> dict[str, Any]:
        """Return what a trace says of this drafter."""
        return _settings(self, self.tree or DEFAULT_TREE)


def _settings(recipe: Medusa, tree: Topology) -> dict[str, Any]:
    paths = [list(path) for path in tree.paths]
    return {"name": recipe.name, "heads": name_of(recipe.heads), "tree": paths}


class MedusaSession(DraftSession):
    """One text; no cache of its own: the heads read the target's states."""

    def __init__(
        self, recipe: Medusa, heads: MedusaHeads, tree: Topology, target: Any, vocab_size: int
    ) -> None:
        self.recipe, self.heads, self.tree = recipe, heads, tree
        self.target, self.vocab_size = target, vocab_size
        self._state: torch.Tensor | None = None  # (hidden,) of the last token the target has read

    @property
    def gamma(self) -> int:
        """How deep its tree is."""
        return self.tree.depth

    def propose(self, context: Context, draws: Draws) -> Draft:
        """Combine the heads' most likely tokens; nothing in the first round, without a state."""
        tree = self.tree.cut(context.room)
        if self._state is None or len(tree) == 0:
            return Draft.empty(self.vocab_size)
        with torch.inference_mode():
            states = self.heads(self._state)[: tree.depth]  # (depth, hidden)
            logits = self.target.model.get_output_embeddings()(states)  # (depth, vocab)
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
        return one_hot_draft(tokens, parent, self.vocab_size)

    def commit(self, emitted: IntArray, path: Sequence[int]) -> None:
        """Take the state of the last token that the target has read."""
        self._state = self.target.features[-1]  # of (kept, layers, hidden)

    def settings(self) -> dict[str, Any]:
        """Return what a trace says of this drafter, with the tree that is used."""
        return _settings(self.recipe, self.tree)


_loaded: WeakKeyDictionary[Any, dict[Any, Any]] = WeakKeyDictionary()


def heads_for(pair: ModelPair, heads: Any, kind: str) -> Any:
    """Return heads that fit the pair's target, loaded once for each target in memory.

    Raises
    ------
    HeadsError
        If there are none that fit.
    """
    model = getattr(pair.target, "model", None)
    if not isinstance(model, torch.nn.Module):
        return load_heads(heads, pair, kind)  # says why not
    key: Any = heads
    if isinstance(heads, (str, os.PathLike)):
        folder = Path(heads)
        files = sorted(folder.iterdir()) if folder.is_dir() else []
        # written anew, a folder is loaded anew
        key = (str(folder.resolve()), *((f.name, f.stat().st_mtime_ns) for f in files))
    known = _loaded.setdefault(model, {})
    if (kind, key) not in known:
        known[kind, key] = load_heads(heads, pair, kind)
    return known[kind, key]


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
        raise HeadsError(
            "heads need a Hugging Face model's hidden states, and this target has none"
        )
    capture(layers)
