"""EAGLE: a one-layer head drafts in the target's feature space (Li et al. 2024, 2024b).

Three shapes: a chain whose tokens are drawn from the head's distribution; a fixed tree, of top
choices or drawn without replacement; and EAGLE-2's dynamic tree, grown and pruned by the product
of the head's confidences. Pruning looks at the tokens, so it is done to deterministic nodes only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import torch

from specviz.core.contract import Context, Draft, IntArray, Target
from specviz.core.draws import Draws
from specviz.drafters.draft_model import checked_gamma
from specviz.drafters.eagle_growth import (
    DynamicTree,
    Growth,
    grow_chain,
    grow_dynamic,
    grow_sampled,
    grow_top,
)
from specviz.drafters.medusa import capture_from, name_of
from specviz.drafters.topology import Topology, check_room, check_trees, checked_topology
from specviz.models.heads import EagleCache, EagleHead, load_heads

CHOICES = ("top", "sampled")
DEFAULT_GAMMA = 4


class Eagle:
    """Draft with an EAGLE head on the target's features.

    Parameters
    ----------
    heads : path or EagleHead, optional
        Folder of the head; by default that of the bundled target.
    tree : optional
        None: a chain. Children per level such as ``(3, 2, 1)`` or nodes by rank: a fixed tree.
        ``"dynamic"`` or a :class:`DynamicTree`: grown by confidence.
    gamma : int, optional
        Length of the chain, or depth of the dynamic tree given by name; 4 by default. A fixed
        tree and a :class:`DynamicTree` bring their own depth.
    choose : {"top", "sampled"}, optional
        How a fixed tree's siblings come about: the most likely tokens (one-hot distributions, the
        default), or draws without replacement (each distribution is the one used, its earlier
        siblings excluded).

    Raises
    ------
    TypeError, ValueError
        If an argument is out of range or two contradict each other; from :meth:`begin`, if the
        head does not fit the target.

    Examples
    --------
    >>> Eagle(gamma=3).settings()
    {'name': 'eagle', 'heads': 'bundled', 'gamma': 3, 'tree': None, 'choose': 'sampled'}
    """

    name = "eagle"

    def __init__(
        self,
        heads: Any = None,
        *,
        tree: Any = None,
        gamma: int | None = None,
        choose: str | None = None,
    ) -> None:
        self.heads = heads
        self.tree: Topology | DynamicTree | None
        depth = DEFAULT_GAMMA if gamma is None else checked_gamma(gamma)
        if isinstance(tree, str):
            if tree != "dynamic":
                raise ValueError(f"tree must be None, 'dynamic' or a fixed tree, got {tree!r}")
            if depth < 1:
                raise ValueError(f"gamma must be >= 1 for a dynamic tree, got {depth}")
            self.tree = DynamicTree(depth=depth)
        elif tree is not None and gamma is not None:
            raise ValueError(f"gamma={gamma} is given beside a tree, which brings its own depth")
        else:
            own = tree is None or isinstance(tree, DynamicTree)
            self.tree = tree if own else checked_topology(tree)
        fixed = isinstance(self.tree, Topology)
        if choose is not None and choose not in CHOICES:
            raise ValueError(f"choose must be 'top' or 'sampled', got {choose!r}")
        if choose is not None and not fixed:
            raise ValueError(
                f"choose={choose!r} is for a fixed tree: a chain is always drawn from q, and a "
                f"dynamic tree always takes the most likely tokens, or pruning it would change "
                f"the output"
            )
        self.choose = choose or ("sampled" if self.tree is None else "top")
        self._gamma = depth if self.tree is None else self.tree.depth
        self.trees = self.tree is not None
        self._cache = EagleCache()
        self._ready: tuple[Any, EagleHead] | None = None

    @property
    def gamma(self) -> int:
        """How deep it proposes, where there is room."""
        return self._gamma

    @property
    def cache_length(self) -> int:
        """How many positions the head's own cache holds."""
        return self._cache.length

    def begin(self, pair: Any, target: Target, prompt: IntArray) -> None:
        """Load the head and ask the target for the features it reads.

        Raises
        ------
        HeadsError, ValueError
            If the head does not fit the target, or the tree does not fit into its context.
        """
        if self._ready is None or self._ready[0] is not pair.target:
            self._ready = (pair.target, load_heads(self.heads, pair, "eagle"))
        size = self._gamma if self.tree is None else len(self.tree)
        check_room(size, self._gamma, target)
        if self.trees:
            check_trees(target)
        capture_from(target, self._ready[1].config.layers)
        self._target: Any = target
        self._vocab_size = int(pair.vocab_size)
        self._cache = EagleCache()
        self._unread: list[torch.Tensor] = []  # features that the head has not read yet
        self._read = 0  # how many positions of the text its cache holds

    def propose(self, context: Context, draws: Draws) -> Draft:
        """Read the new features, then grow a chain or a tree; nothing in the first round."""
        depth = min(self._gamma, context.room)
        if not self._unread or depth < 1:
            return Draft.empty(self._vocab_size)
        assert self._ready is not None, "propose() comes after begin()"
        with torch.inference_mode():
            growth = Growth(
                self._ready[1], self._target.model, self._cache, context, self._vocab_size
            )
            growth.read(torch.cat(self._unread), self._read)
            self._read, self._unread = self._cache.length, []
            if self.tree is None:
                grow_chain(growth, depth, draws)
            elif isinstance(self.tree, DynamicTree):
                grow_dynamic(growth, self.tree, depth)
            elif self.choose == "top" or context.sampling.greedy:
                grow_top(growth, self.tree.cut(depth))
            else:
                grow_sampled(growth, self.tree.cut(depth), draws)
        return growth.draft()

    def commit(self, emitted: IntArray, path: Sequence[int]) -> None:
        """Forget what was drafted; take the features of what the target has read since.

        An accepted token was drafted on a feature of the head's own making; it is read again
        with the real one.
        """
        self._cache.crop(self._read)
        self._unread.append(self._target.features)  # (kept, layers, hidden)

    def settings(self) -> dict[str, Any]:
        """Return what a trace says of this drafter."""
        tree: Any = None
        if isinstance(self.tree, DynamicTree):
            tree = asdict(self.tree)
        elif self.tree is not None:
            tree = [list(path) for path in self.tree.paths]
        return {
            "name": self.name,
            "heads": name_of(self.heads),
            "gamma": self._gamma,
            "tree": tree,
            "choose": self.choose,
        }


__all__ = ["DynamicTree", "Eagle"]
