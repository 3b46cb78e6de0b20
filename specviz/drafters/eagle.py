"""EAGLE: a one-layer head drafts in the target's feature space (Li et al. 2024, 2024b).

Three shapes: a chain whose tokens are drawn from the head's distribution; a fixed tree, of top
choices or drawn without replacement; and EAGLE-2's dynamic tree, grown and pruned by the product
of the head's confidences. Pruning looks at the tokens, so it is done to deterministic nodes only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, asdict, dataclass
from typing import Any, ClassVar

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
from specviz.drafters.draft_model import checked_gamma
from specviz.drafters.eagle_growth import (
    DynamicTree,
    Growth,
    grow_chain,
    grow_dynamic,
    grow_sampled,
    grow_top,
)
from specviz.drafters.medusa import capture_from, heads_for, name_of
from specviz.drafters.topology import Topology, check_room, check_trees, checked_topology
from specviz.models.heads import EagleCache, EagleHead

CHOICES = ("top", "sampled")
DEFAULT_GAMMA = 4


@dataclass(frozen=True)
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
        If an argument is out of range or two contradict each other; from :meth:`start`, if the
        head does not fit the target.

    Examples
    --------
    >>> Eagle(gamma=3).settings()
    {'name': 'eagle', 'heads': 'bundled', 'gamma': 3, 'tree': None, 'choose': 'sampled'}
    """

    name: ClassVar[str] = "eagle"

    heads: Any = None
    _: KW_ONLY
    tree: Any = None
    gamma: int | None = None
    choose: str | None = None

    def __post_init__(self) -> None:
        gamma, choose = self.gamma, self.choose
        depth = DEFAULT_GAMMA if gamma is None else checked_gamma(gamma)
        tree: Topology | DynamicTree | None
        if isinstance(self.tree, str):
            if self.tree != "dynamic":
                raise ValueError(f"tree must be None, 'dynamic' or a fixed tree, got {self.tree!r}")
            if depth < 1:
                raise ValueError(f"gamma must be >= 1 for a dynamic tree, got {depth}")
            tree = DynamicTree(depth=depth)
        elif self.tree is not None and gamma is not None:
            raise ValueError(
                f"gamma={gamma} cannot be combined with a tree, which brings its own depth"
            )
        else:
            own = self.tree is None or isinstance(self.tree, DynamicTree)
            tree = self.tree if own else checked_topology(self.tree)
        fixed = isinstance(tree, Topology)
        if choose is not None and choose not in CHOICES:
            raise ValueError(f"choose must be 'top' or 'sampled', got {choose!r}")
        if choose is not None and not fixed:
            raise ValueError(
                f"choose={choose!r} is for a fixed tree: a chain is always drawn from q, and a "
                f"dynamic tree always takes the most likely tokens, or pruning it would change "
                f"the output"
            )
        object.__setattr__(self, "tree", tree)
        object.__setattr__(self, "choose", choose or ("sampled" if tree is None else "top"))
        object.__setattr__(self, "gamma", depth if tree is None else tree.depth)

    @property
    def depth(self) -> int:
        """How deep it proposes, where there is room."""
        assert self.gamma is not None  # set when it was made
        return self.gamma

    @property
    def traits(self) -> DrafterTraits:
        """A chain, or a tree."""
        return DrafterTraits(trees=self.tree is not None)

    def start(self, pair: ModelPair, target: Target, prompt: IntArray) -> EagleSession:
        """Load the head and ask the target for the features it reads.

        Raises
        ------
        HeadsError, ValueError
            If the head does not fit the target, or the tree does not fit into its context.
        """
        head = heads_for(pair, self.heads, "eagle")
        check_room(self.depth if self.tree is None else len(self.tree), self.depth, target)
        if self.traits.trees:
            check_trees(target)
        capture_from(target, head.config.layers)
        return EagleSession(self, head, target, int(pair.vocab_size))

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
            "gamma": self.gamma,
            "tree": tree,
            "choose": self.choose,
        }


class EagleSession(DraftSession):
    """One text: the head's own cache, and the target's features that it has not read yet."""

    def __init__(self, recipe: Eagle, head: EagleHead, target: Any, vocab_size: int) -> None:
        self.recipe, self.head, self.target = recipe, head, target
        self.vocab_size = vocab_size
        self._cache = EagleCache()
        self._unread: list[torch.Tensor] = []  # each (kept, layers, hidden)
        self._read = 0  # how many positions of the text the cache holds

    @property
    def gamma(self) -> int:
        """How deep it proposes, where there is room."""
        return self.recipe.depth

    @property
    def cache_length(self) -> int:
        """How many positions the head's own cache holds."""
        return self._cache.length

    def propose(self, context: Context, draws: Draws) -> Draft:
        """Read the new features, then grow a chain or a tree; nothing in the first round."""
        tree, depth = self.recipe.tree, min(self.gamma, context.room)
        if not self._unread or depth < 1:
            return Draft.empty(self.vocab_size)
        with torch.inference_mode():
            growth = Growth(self.head, self.target.model, self._cache, context, self.vocab_size)
            growth.read(torch.cat(self._unread), self._read)
            self._read, self._unread = self._cache.length, []
            if tree is None:
                grow_chain(growth, depth, draws)
            elif isinstance(tree, DynamicTree):
                grow_dynamic(growth, tree, depth)
            elif self.recipe.choose == "top" or context.sampling.greedy:
                grow_top(growth, tree.cut(depth))
            else:
                grow_sampled(growth, tree.cut(depth), draws)
        return growth.draft()

    def commit(self, emitted: IntArray, path: Sequence[int]) -> None:
        """Forget what was drafted; take the features of what the target has read since.

        An accepted token was drafted on a feature of the head's own making; it is read again
        with the real one.
        """
        self._cache.crop(self._read)
        self._unread.append(self.target.features)  # (kept, layers, hidden)

    def settings(self) -> dict[str, Any]:
        """Return what a trace says of this drafter."""
        return self.recipe.settings()


__all__ = ["DynamicTree", "Eagle"]
