"""A tree from a draft model: several candidates at each position, verified in one pass."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np

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
from specviz.decoding.hf.cache import refuse
from specviz.decoding.hf.target import is_fast, open_session
from specviz.decoding.sampling import logits_to_distributions
from specviz.drafters.draft_model import draft_model_of

KINDS = ("without_replacement", "with_replacement", "top_k")
MOST_NODES = 512


@dataclass(frozen=True)
class Tree:
    """Propose a tree: ``widths[d]`` candidates after every node of depth d.

    Exact under ``rejection`` whatever the kind, because each node's q is the distribution it was
    drawn from *given its earlier siblings*: without replacement that distribution has lost their
    tokens and is renormalised; with replacement it is unchanged, and a token drawn twice is two
    nodes; the ``top_k`` most likely tokens are deterministic choices with a one-hot q.

    Parameters
    ----------
    widths : sequence of int
        Candidates per node at each depth; ``(1, 1, 1)`` is a chain of three.
    kind : {"without_replacement", "with_replacement", "top_k"}
        How siblings are chosen.
    model : optional
        The draft model; the pair's own by default.

    Raises
    ------
    TypeError, ValueError
        If an argument is out of range.

    Examples
    --------
    >>> Tree((3, 2)).nodes
    9
    """

    name: ClassVar[str] = "tree"
    traits: ClassVar[DrafterTraits] = DrafterTraits(trees=True)

    widths: Sequence[int] = (3, 2, 1, 1)
    _: KW_ONLY
    kind: str = "without_replacement"
    model: Any = None

    def __post_init__(self) -> None:
        if not isinstance(self.widths, (list, tuple)) or not self.widths:
            raise TypeError(
                f"widths must be a list or tuple of whole numbers >= 1, such as (3, 2, 1), one for "
                f"each level, got {self.widths!r}"
            )
        widths = [checks.whole(f"widths[{i}]", width, 1) for i, width in enumerate(self.widths)]
        object.__setattr__(self, "widths", tuple(widths))
        checks.one_of("kind", self.kind, KINDS)
        if self.nodes > MOST_NODES:
            raise ValueError(
                f"widths {self.widths} make a tree of {self.nodes} nodes; "
                f"at most {MOST_NODES} are verified in one pass"
            )

    @property
    def nodes(self) -> int:
        """How many nodes the full tree has."""
        return int(np.cumprod(self.widths).sum())

    @property
    def depth(self) -> int:
        """How many levels the tree has."""
        return len(self.widths)

    def start(self, pair: ModelPair, target: Target, prompt: IntArray) -> TreeSession:
        """Open the draft model with an empty cache.

        Raises
        ------
        ValueError
            If there is no draft model, or a model that cannot verify trees.
        """
        model = draft_model_of(pair, self.model)
        drafting = open_session(model, pair.vocab_size, fast=is_fast(target))
        for session in (target, drafting):
            if hasattr(session, "kind"):
                refuse(session.kind, trees=True)
            if session.context_length is not None and self.nodes >= session.context_length:
                raise ValueError(
                    f"widths {self.widths} make a tree of {self.nodes} nodes, but the context "
                    f"is {session.context_length}"
                )
        return TreeSession(self, drafting)

    def settings(self) -> dict[str, Any]:
        """Return what a trace says of this drafter."""
        widths = list(self.widths)
        return {"name": self.name, "gamma": self.depth, "widths": widths, "kind": self.kind}


class TreeSession(DraftSession):
    """One text: the draft model's cache holds the text only, never a proposal between rounds."""

    def __init__(self, recipe: Tree, model: Target) -> None:
        self.recipe, self.model = recipe, model
        model.begin()

    @property
    def cache_length(self) -> int:
        """How many tokens the draft's cache holds."""
        return self.model.length

    def propose(self, context: Context, draws: Draws) -> Draft:
        """Grow the tree level by level."""
        text, session = context.tokens, self.model
        vocab_size = session.vocab_size
        depth = min(self.gamma, context.room)
        if session.context_length is not None:
            depth = min(depth, session.context_length - len(text))
        tokens: list[int] = []
        parents: list[int] = []
        used: list[FloatArray] = []
        rows: list[int] = []
        level = [ROOT]
        for width in self.recipe.widths[: max(depth, 0)]:
            tree = _draft(tokens, parents, used, rows, vocab_size)
            position = len(text) + len(tree.path(level[0]))
            distributions_here = self._distributions(context, tree, level)
            next_level = []
            for parent, (logits, q) in zip(level, distributions_here, strict=True):
                for token, distribution in self._siblings(
                    logits, q, width, draws, position, len(tokens)
                ):
                    rows.append(-1 if distribution is None else len(used))
                    if distribution is not None:
                        used.append(distribution)
                    if token not in context.stop_ids:
                        next_level.append(len(tokens))
                    tokens.append(token)
                    parents.append(parent)
            level = next_level
            if not level:
                break
        return _draft(tokens, parents, used, rows, vocab_size)

    def _distributions(
        self, context: Context, tree: Draft, level: list[int]
    ) -> list[tuple[FloatArray, FloatArray]]:
        """Return (logits, q) after each node of a level, from one pass of the draft model."""
        text, session = context.tokens, self.model
        logits = session.verify(text[session.length :], tree)  # (1 + nodes, vocab)
        session.crop(len(text) - 1)  # so that the next pass has a pending token
        rows = [node + 1 for node in level]
        histories = [np.concatenate([text, tree.tokens[tree.path(node)]]) for node in level]
        q = logits_to_distributions(logits[rows], context.sampling, histories, "draft")
        return list(zip(logits[rows], q, strict=True))

    def _siblings(
        self, logits: FloatArray, q: FloatArray, width: int, draws: Draws, position: int, node: int
    ) -> Iterator[tuple[int, FloatArray | None]]:
        """Yield (token, distribution used) for each candidate; None for a deterministic choice."""
        kind = self.recipe.kind
        if kind == "top_k":
            best = np.argsort(-logits, kind="stable")[:width]
            yield from ((int(token), None) for token in best if logits[token] > -np.inf)
            return
        for i in range(width):
            token = draws.categorical(q, position, node + i, Purpose.DRAFT)
            yield token, q
            if kind == "without_replacement":
                left = q.copy()
                left[token] = 0.0
                if not left.sum() > 0:
                    return  # every token with mass is a candidate already
                q = left / left.sum()


def _draft(
    tokens: list[int], parents: list[int], used: list[FloatArray], rows: list[int], vocab_size: int
) -> Draft:
    return Draft(
        np.array(tokens, dtype=np.int64),
        np.array(parents, dtype=np.int64),
        np.stack(used) if used else np.zeros((0, vocab_size)),
        np.array(rows, dtype=np.int64),
    )
