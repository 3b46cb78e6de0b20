"""EAGLE: a one-layer head drafts in the target's feature space (Li et al. 2024, 2024b).

Three shapes: a chain whose tokens are drawn from the head's distribution; a fixed tree, of top
choices or drawn without replacement; and EAGLE-2's dynamic tree, grown and pruned by the product
of the head's confidences. Pruning looks at the tokens, so it is done to deterministic nodes only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, asdict, dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch

from specviz.core import checks
from specviz.core.contract import (
    ROOT,
    Context,
    Draft,
    DrafterTraits,
    DraftSession,
    FloatArray,
    IntArray,
    ModelPair,
    Target,
)
from specviz.core.draws import Draws, Purpose
from specviz.decoding.sampling import logits_to_distributions
from specviz.drafters.medusa import capture_from, heads_for, name_of
from specviz.drafters.topology import (
    MOST_NODES,
    Topology,
    check_room,
    check_trees,
    checked_topology,
)
from specviz.models.heads import EagleCache, EagleHead


@dataclass(frozen=True)
class DynamicTree:
    """EAGLE-2's tree: expand the most confident nodes, then keep the most confident of all.

    Parameters
    ----------
    depth : int
        Levels.
    width : int
        How many nodes of a level are expanded.
    branch : int
        Children of an expanded node.
    nodes : int
        How many nodes are kept and verified.

    Examples
    --------
    >>> len(DynamicTree(depth=3, nodes=10))
    10
    """

    depth: int = 4
    width: int = 4
    branch: int = 4
    nodes: int = 16

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            checks.whole(name, value, 1)
        if max(self.nodes, self.depth * self.width * self.branch) > MOST_NODES:
            raise ValueError(f"a dynamic tree may grow to at most {MOST_NODES:,} nodes: {self}")
        if self.nodes < self.depth:
            raise ValueError(
                f"nodes must be at least depth, got nodes={self.nodes} and depth={self.depth}"
            )

    def __len__(self) -> int:
        return self.nodes


class GrowingDraft:
    """One round's draft as it grows: nodes, the distributions they came from, the head's outputs.

    Parameters
    ----------
    head : EagleHead
        What drafts.
    model : transformers.PreTrainedModel
        The target: its embedding and output head are used.
    cache : EagleCache
        The head's cache; nodes that are read are appended to it.
    context : Context
        The text so far and the sampling settings.
    vocab_size : int
        Width of the distributions.
    """

    def __init__(
        self, head: EagleHead, model: Any, cache: EagleCache, context: Context, vocab_size: int
    ) -> None:
        self.head, self.cache, self.context = head, cache, context
        self.embedding = model.get_input_embeddings()
        self.output = model.get_output_embeddings()
        self.vocab_size = vocab_size
        self.tokens: list[int] = []
        self.parent: list[int] = []
        self.used: dict[
            int, FloatArray
        ] = {}  # node → the distribution it was drawn from; else one-hot
        self._outputs: dict[int, torch.Tensor] = {}  # node → (hidden,); ROOT: after the text
        self._entry: dict[int, int] = {}  # node → its place in the cache
        self._text = 0  # entries of the text

    def read(self, features: torch.Tensor, first: int) -> None:
        """Read the features of positions ``first`` to the last but one of the text.

        Each goes with the token that follows it, so that the last entry knows the whole text.
        """
        text = self.context.tokens
        count = len(features)
        assert first + count == len(text) - 1, "a feature for every token but the last"
        device = features.device
        following = torch.as_tensor(text[first + 1 :], device=device)  # (count,)
        x = self.head.fused(features) + self.head.embedded(following, self.embedding)
        positions = torch.arange(first, first + count, device=device)
        back = positions[:, None] - torch.arange(first + count, device=device)  # (count, all)
        visible = (back >= 0) & (back < self.head.config.window)
        self._outputs[ROOT] = self.head(x, positions, visible, self.cache)[-1]
        self._text = self.cache.length

    def add(self, token: int, parent: int, distribution: FloatArray | None = None) -> int:
        """Add a proposal, with the distribution it was drawn from unless it was chosen.

        Return its index.
        """
        node = len(self.tokens)
        self.tokens.append(token)
        self.parent.append(parent)
        if distribution is not None:
            self.used[node] = distribution
        return node

    def path(self, node: int) -> list[int]:
        """Return the nodes from the root down to ``node``."""
        nodes = []
        while node != ROOT:
            nodes.append(node)
            node = self.parent[node]
        return nodes[::-1]

    def ends(self, node: int) -> bool:
        """Return whether ``node`` ends the text, so that nothing can follow it."""
        return node != ROOT and self.tokens[node] in self.context.stop_ids

    def expand(self, nodes: list[int]) -> None:
        """Let the head read ``nodes``, all of one level, each seeing the text and its ancestors."""
        new = [node for node in nodes if node not in self._outputs]
        if not new:
            return
        before = self.cache.length
        paths = [self.path(node) for node in new]
        fused = torch.stack([self._outputs[self.parent[node]] for node in new])
        device = fused.device
        ids = torch.as_tensor([self.tokens[node] for node in new], device=device)
        x = self.head.continued(fused) + self.head.embedded(ids, self.embedding)
        visible = torch.zeros(len(new), before + len(new), dtype=torch.bool, device=device)
        window = self.head.config.window
        for row, (node, path) in enumerate(zip(new, paths, strict=True)):
            self._entry[node] = before + row
            visible[row, max(0, self._text + len(path) - window) : self._text] = True
            visible[row, [self._entry[i] for i in path[-window:]]] = True
        depth = torch.as_tensor([self._text + len(path) - 1 for path in paths], device=device)
        for node, output in zip(new, self.head(x, depth, visible, self.cache), strict=True):
            self._outputs[node] = output

    def logits(self, nodes: list[int]) -> tuple[Any, list[Any] | None]:
        """Return logits ``(m, vocab)`` after each node, and what each follows if that matters."""
        states = torch.stack([self._outputs[node] for node in nodes])
        rows = self.head.logits(states, self.output).double().cpu().numpy()
        if self.context.sampling.repetition_penalty == 1:
            return rows, None
        text = self.context.tokens
        paths = [[self.tokens[i] for i in self.path(node)] for node in nodes]
        return rows, [np.concatenate([text, np.array(p, dtype=np.int64)]) for p in paths]

    def distributions(self, nodes: list[int]) -> FloatArray:
        """Return q after each node, ``(m, vocab)``, shaped by the sampling settings."""
        rows, histories = self.logits(nodes)
        return logits_to_distributions(rows, self.context.sampling, histories)

    def confidences(self, nodes: list[int]) -> FloatArray:
        """Return what choices are ranked by after each node, ``(m, vocab)``.

        The head's distribution without truncation, and at temperature 0 that of temperature 1: a
        one-hot distribution would rank nothing.
        """
        sampling = self.context.sampling
        warm = 1.0 if sampling.greedy else sampling.temperature
        rows, histories = self.logits(nodes)
        return logits_to_distributions(
            rows, replace(sampling, temperature=warm, top_k=0, top_p=1, min_p=0), histories
        )

    def draft(self) -> Draft:
        """Return the nodes as the target is to see them."""
        if not self.tokens:
            return Draft.empty(self.vocab_size)
        rows = np.full(len(self.tokens), -1, dtype=np.int64)
        for row, node in enumerate(self.used):
            rows[node] = row
        q = np.stack(list(self.used.values())) if self.used else np.zeros((0, self.vocab_size))
        return Draft(np.array(self.tokens), np.array(self.parent), q, rows)


def grow_chain(growth: GrowingDraft, depth: int, draws: Draws) -> None:
    """Draw one token after another from q."""
    node, start = ROOT, len(growth.context.tokens)
    for level in range(depth):
        if growth.ends(node):
            return
        if node != ROOT:
            growth.expand([node])
        q = growth.distributions([node])[0]
        if growth.context.sampling.greedy:
            node = growth.add(int(q.argmax()), node)
        else:
            token = draws.categorical(q, start + level, level, Purpose.DRAFT)
            node = growth.add(token, node, q)


def grow_top(growth: GrowingDraft, tree: Topology) -> None:
    """Fill a fixed tree with the most likely tokens: one-hot nodes."""
    place = {ROOT: ROOT}  # node of the tree → node of the draft
    for above, node in _level_by_level(growth, tree, place):
        ranked = _most_likely(growth.confidences([node])[0], len(tree.children(above)))
        for child, token in zip(tree.children(above), ranked, strict=False):
            place[child] = growth.add(token, node)


def grow_sampled(growth: GrowingDraft, tree: Topology, draws: Draws) -> None:
    """Fill a fixed tree by drawing siblings without replacement.

    The distribution of a sibling is q without the tokens of its elder siblings, renormalised: what
    it was in fact drawn from. A node exists unless that distribution has no mass left, which its
    own token has no say in.
    """
    place = {ROOT: ROOT}
    start = len(growth.context.tokens)
    for above, node in _level_by_level(growth, tree, place):
        left = growth.distributions([node])[0]
        position = start + len(growth.path(node))
        for child in tree.children(above):
            distribution = left / left.sum()
            token = draws.categorical(distribution, position, len(growth.tokens), Purpose.DRAFT)
            place[child] = growth.add(token, node, distribution)
            left = distribution.copy()
            left[token] = 0.0
            if not left.sum() > 0:
                break


def grow_dynamic(growth: GrowingDraft, tree: DynamicTree, depth: int) -> None:
    """Expand by the product of confidences, then keep the best nodes of all (EAGLE-2, section 4).

    All nodes are deterministic choices; those that are pruned were never drawn.
    """
    value = {ROOT: 1.0}
    level = [ROOT]
    for _ in range(depth):
        chosen = sorted((n for n in level if not growth.ends(n)), key=lambda n: -value[n])
        chosen = sorted(chosen[: tree.width])
        if not chosen:
            break
        growth.expand([node for node in chosen if node != ROOT])
        level = []
        for node, distribution in zip(chosen, growth.confidences(chosen), strict=True):
            for token in _most_likely(distribution, tree.branch):
                child = growth.add(token, node)
                value[child] = value[node] * float(distribution[token])
                level.append(child)
    order = sorted(range(len(growth.tokens)), key=lambda n: (-value[n], n))
    kept = sorted(order[: tree.nodes])  # a parent is worth no less than its children, and earlier
    index = {ROOT: ROOT, **{node: i for i, node in enumerate(kept)}}
    growth.parent = [index[growth.parent[node]] for node in kept]
    growth.tokens = [growth.tokens[node] for node in kept]


def _level_by_level(growth: GrowingDraft, tree: Topology, place: dict[int, int]) -> Any:
    """Yield (node of the tree, node of the draft) for every parent, a level read at a time."""
    for depth in range(tree.depth):
        above = [ROOT] if depth == 0 else tree.level(depth - 1)
        parents = [n for n in above if n in place and tree.children(n)]
        parents = [n for n in parents if not growth.ends(place[n])]
        growth.expand([place[n] for n in parents if n != ROOT])
        for n in parents:
            yield n, place[n]


def _most_likely(distribution: FloatArray, count: int) -> list[int]:
    """Return the ``count`` most likely tokens, lowest id first among equals, none impossible."""
    best = np.argsort(-distribution, kind="stable")[:count]
    return [int(token) for token in best if distribution[token] > 0]


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
        depth = DEFAULT_GAMMA if gamma is None else checks.whole("gamma", gamma, 0)
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
        if choose is not None:
            checks.one_of("choose", choose, CHOICES)
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
    def cache_length(self) -> int:
        """How many positions the head's own cache holds."""
        return self._cache.length

    def propose(self, context: Context, draws: Draws) -> Draft:
        """Read the new features, then grow a chain or a tree; nothing in the first round."""
        tree, depth = self.recipe.tree, min(self.gamma, context.room)
        if not self._unread or depth < 1:
            return Draft.empty(self.vocab_size)
        with torch.inference_mode():
            growth = GrowingDraft(
                self.head, self.target.model, self._cache, context, self.vocab_size
            )
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


__all__ = ["DynamicTree", "Eagle"]
