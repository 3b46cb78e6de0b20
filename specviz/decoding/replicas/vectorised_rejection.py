"""A draft model and ``rejection`` for very many replicas at once, position by position.

Each replica carries its context and where it stands in its round. At a position its proposal is
drawn from q and judged, or, after a rejection or with the whole draft accepted, its closing token
is drawn: the rounds of all replicas side by side. The tree of their prefixes is walked depth first,
so many contexts at a time as fit into one batch, each on top of its parent's cache.

With keyed draws each replica is token for token what the loop gives (:mod:`.loop`), up to draws
that fall within rounding of the edge between two tokens: batched float32 logits differ by some 4e-6
from single ones, and with 2,048 tokens of a flat distribution about one draw in a thousand then
gives its neighbour. With a plain generator it has the same distribution and is faster.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np
import torch
from tqdm.auto import tqdm

from specviz.core import philox
from specviz.core.contract import FloatArray, IntArray, Sampling
from specviz.core.draws import Purpose
from specviz.core.rules import residual
from specviz.decoding.replicas.prefix_batches import COLUMNS, PrefixBatch, PrefixBatches, walk_tree
from specviz.decoding.sampling import logits_to_distributions

KEYED_AT_ONCE = 2**14
"""Keyed numbers computed at a time: they stay in the processor's cache."""

SELDOM = 8
"""A distribution drawn from so seldom is compared with, not searched."""

ROWS_AT_ONCE = 128
"""Distributions that are compared with at a time."""


@dataclass(frozen=True)
class ReplicaGroup:
    """Replicas whose texts have the same length, in contexts that are computed together.

    Parameters
    ----------
    position : int
        How many tokens of each text are decided.
    above : tuple of (PrefixBatch, PrefixBatch), optional
        The target's and the draft's level of one token less; None at the prompt.
    only : bool
        Whether no other group grows from the level above.
    parents, tokens : IntArray
        ``(contexts,)`` row in the level above, and the token that came after it.
    who, context, rounds, node, depth : IntArray
        ``(replicas,)`` index, which of the contexts, rounds so far, proposals accepted so far in
        this round, proposals in this round.
    """

    position: int
    above: tuple[PrefixBatch, PrefixBatch] | None
    only: bool
    parents: IntArray
    tokens: IntArray
    who: IntArray
    context: IntArray
    rounds: IntArray
    node: IntArray
    depth: IntArray


class VectorisedRejection:
    """Replicas of ``DraftModel(gamma)`` × ``rejection``.

    Parameters
    ----------
    target, draft : Model or tabular model
        The distributions p and q.
    prompt : IntArray
        ``(k,)`` ids.
    vocab_size : int
        The target's.
    length : int
        How many tokens of each text are wanted.
    gamma : int
        Proposals per round.
    sampling : Sampling, optional
        Shapes both distributions.
    stop_ids : frozenset of int
        Tokens that end a text.
    max_new_tokens : int, optional
        What the loop would be asked for; ``length`` by default.

    Examples
    --------
    >>> from specviz.core.tabular import TabularModel
    >>> coin, other = TabularModel([0.5, 0.5]), TabularModel([0.9, 0.1])
    >>> many = VectorisedRejection(coin, other, np.array([0]), 2, length=3, gamma=2)
    >>> many.draw(1000, seed=0).shape
    (1000, 3)
    """

    def __init__(
        self,
        target: Any,
        draft: Any,
        prompt: IntArray,
        vocab_size: int,
        *,
        length: int,
        gamma: int,
        sampling: Sampling | None = None,
        stop_ids: frozenset[int] = frozenset(),
        max_new_tokens: int | None = None,
    ) -> None:
        self.prompt = np.asarray(prompt, dtype=np.int64)
        self.sampling = sampling or Sampling()
        if self.sampling.greedy:
            raise ValueError(
                "temperature must be above 0 for replicas: greedy texts are all the same"
            )
        self.length, self.gamma, self.stop_ids = length, gamma, stop_ids
        self.longest = length if max_new_tokens is None else max(length, max_new_tokens)
        self._p = PrefixBatches(target, self.prompt, vocab_size)
        self._q = PrefixBatches(draft, self.prompt, vocab_size)
        limit = self._p.context_length
        if limit is not None:
            self.longest = min(self.longest, limit - len(self.prompt))
        if self.longest < length:
            raise ValueError(
                f"prompt and length need {len(self.prompt) + length} tokens, the target's context "
                f"holds {limit}: shorten one of them"
            )
        draft_limit = self._q.context_length
        self._draft_room = np.inf if draft_limit is None else draft_limit - len(self.prompt)

    def draw(
        self, n: int, *, seed: int, first: int = 0, keyed: bool = True, progress: bool = False
    ) -> IntArray:
        """Return ``(n, length)`` tokens; -1 after a text's end.

        Parameters
        ----------
        n : int
            How many.
        seed, first : int
            Key, and sequence index of the first replica.
        keyed : bool
            Draw each number from its key as the loop does, so that replicas equal the loop's texts;
            else from one generator, which is faster.
        progress : bool
            Show a bar on runs of over two seconds.
        """
        tokens = np.full((n, self.length), -1, dtype=np.int64)
        draws = KeyedUniforms(seed, first) if keyed else SequentialUniforms(seed, first)
        none, zero = np.zeros(0, dtype=np.int64), np.zeros(n, dtype=np.int64)
        depth = np.full(n, self._depth(0), dtype=np.int64)
        everyone = ReplicaGroup(0, None, True, none, none, np.arange(n), zero, zero, zero, depth)
        bar = tqdm(
            total=n * self.length, desc="replicas", unit="token", unit_scale=True, delay=2,
            leave=False, disable=not progress,
        )  # fmt: skip
        one_at_a_time = Lock()

        def step(group: ReplicaGroup) -> list[ReplicaGroup]:
            levels = self._levels(group)
            x, kept = self._decided(group, levels, draws)
            tokens[group.who, group.position] = x
            following = self._following(group, levels, x, kept)
            ended = len(group.who) - sum(len(part.who) for part in following)
            with one_at_a_time:
                bar.update(len(group.who) + ended * (self.length - group.position - 1))
            return following

        with bar:
            walk_tree(everyone, step, self._threads() if keyed else 1)
        return tokens

    @property
    def is_network(self) -> bool:
        """Whether a network computes the target's distributions."""
        return self._p.is_network

    def _threads(self) -> int:
        """Return how many groups are computed at a time; which is first matters to no draw."""
        on_cores = self._p.on_cores and self._q.on_cores
        return torch.get_num_threads() if on_cores else 1

    def _levels(self, group: ReplicaGroup) -> tuple[PrefixBatch, PrefixBatch]:
        if group.above is None:
            return self._p.root(), self._q.root()
        of_p, of_q = (
            levels.grown(above, group.parents, group.tokens, spent=group.only)
            for levels, above in zip((self._p, self._q), group.above, strict=True)
        )
        return of_p, of_q

    def _decided(
        self,
        group: ReplicaGroup,
        levels: tuple[PrefixBatch, PrefixBatch],
        draws: KeyedUniforms | SequentialUniforms,
    ) -> tuple[IntArray, Any]:
        """Return each replica's next token, and whether it is an accepted proposal."""
        p, q = (self._distribution(level) for level in levels)  # (contexts, vocab)
        where = len(self.prompt) + group.position
        x = np.empty(len(group.who), dtype=np.int64)
        kept = np.zeros(len(group.who), dtype=bool)

        proposing = np.flatnonzero(group.node < group.depth)
        key = (group.who[proposing], where, group.rounds[proposing], group.node[proposing])
        row = group.context[proposing]
        u, v = draws(Purpose.DRAFT, *key), draws(Purpose.ACCEPT, *key)
        chosen = invert_rows(q, row, u)
        chance = np.minimum(1.0, p[row, chosen] / q[row, chosen])
        x[proposing], kept[proposing] = chosen, v < chance

        closing = np.flatnonzero(~kept)
        zero = np.zeros(len(closing), dtype=np.int64)
        u = draws(Purpose.CLOSING, group.who[closing], where, group.rounds[closing], zero)
        row, refused = group.context[closing], (group.node < group.depth)[closing]
        x[closing[~refused]] = invert_rows(p, row[~refused], u[~refused])
        if refused.any():
            rows, which = np.unique(row[refused], return_inverse=True)
            left = np.stack([residual(p[c], q[c]) for c in rows.tolist()])
            x[closing[refused]] = invert_rows(left, which, u[refused])
        return x, kept

    def _following(
        self, group: ReplicaGroup, levels: tuple[PrefixBatch, PrefixBatch], x: IntArray, kept: Any
    ) -> list[ReplicaGroup]:
        """Return the replicas that go on, in groups of contexts that fit into one batch."""
        position = group.position + 1
        if position == self.length:
            return []
        # a closing token ends the round
        node = np.where(kept, group.node + 1, 0)
        rounds = np.where(kept, group.rounds, group.rounds + 1)
        depth = np.where(kept, group.depth, self._depth(position))
        goes_on = np.flatnonzero(~np.isin(x, list(self.stop_ids)))
        values, context = distinct(group.context[goes_on] * self._p.vocab_size + x[goes_on])
        parents, tokens = np.divmod(values, self._p.vocab_size)
        parts = 1
        if self._p.is_network:
            parts = -(-len(values) * (len(self.prompt) + position) // COLUMNS)
        width = max(1, -(-len(values) // max(1, parts)))
        order = np.argsort(context, kind="stable") if parts > 1 else np.arange(len(context))
        following = []
        for start in range(0, len(values), width):
            some = order
            if parts > 1:
                low, high = np.searchsorted(context[order], [start, start + width])
                some = order[low:high]
            who = goes_on[some]
            part = slice(start, start + width)
            following.append(
                ReplicaGroup(
                    position, levels, parts == 1, parents[part], tokens[part], group.who[who],
                    context[some] - start, rounds[who], node[who], depth[who],
                )
            )  # fmt: skip
        return following

    def _depth(self, position: int) -> int:
        """Return how many proposals a round has that begins at this position."""
        room = self.longest - position - 1
        return int(max(0, min(self.gamma, room, self._draft_room - position)))

    def _distribution(self, level: PrefixBatch) -> FloatArray:
        if level.logits is None:  # never drawn from: too long for the model
            return np.ones((len(level.contexts), self._p.vocab_size))
        past = None
        if self.sampling.repetition_penalty != 1:
            past = [np.append(self.prompt, c).astype(np.int64) for c in level.contexts]
        return logits_to_distributions(level.logits, self.sampling, past)


class KeyedUniforms:
    """Uniforms by key: those of :class:`specviz.core.draws.Sampler`."""

    def __init__(self, seed: int, first: int) -> None:
        self._seed, self._first = seed, first

    def __call__(
        self, purpose: int, who: IntArray, position: int, when: IntArray, lane: IntArray
    ) -> FloatArray:
        """Return a uniform for each replica in ``who`` ``(n,)``, in its round and lane."""
        out = np.empty(len(who))
        for start in range(0, len(who), KEYED_AT_ONCE):
            part = slice(start, start + KEYED_AT_ONCE)
            sequence = who[part] + self._first
            what, where = (np.full(len(sequence), word) for word in (int(purpose), position))
            key: Any = (self._seed, sequence)
            high, low, _, _ = philox.philox((what, where, when[part], lane[part]), key)
            out[part] = (((high << 20) | (low >> 12)) + 0.5) * 2.0**-52
        return out


class SequentialUniforms:
    """Uniforms of one generator, in the order asked for."""

    def __init__(self, seed: int, first: int) -> None:
        self._rng = np.random.default_rng([seed, first])

    def __call__(
        self, purpose: int, who: IntArray, position: int, when: IntArray, lane: IntArray
    ) -> FloatArray:
        """Return a uniform for each replica in ``who`` ``(n,)``."""
        out: FloatArray = self._rng.random(len(who))
        return out


def groups(labels: IntArray, size: int) -> Iterator[tuple[int, IntArray]]:
    """Yield each label and the places that have it."""
    small = labels.astype(np.uint16) if size < 2**16 else labels  # sorts faster
    order = np.argsort(small, kind="stable")
    ends = np.cumsum(np.bincount(labels, minlength=size))
    start = 0
    for label, end in enumerate(ends.tolist()):
        if end > start:
            yield label, order[start:end]
        start = end


def distinct(numbers: IntArray) -> tuple[IntArray, IntArray]:
    """Return the distinct numbers in order, and for each number which of them it is.

    Examples
    --------
    >>> distinct(np.array([7, 3, 7]))
    (array([3, 7]), array([1, 0, 1]))
    """
    size = int(numbers.max(initial=-1)) + 1
    if size > 4 * len(numbers) + 2**16:
        return np.unique(numbers, return_inverse=True)
    there = np.zeros(size, dtype=bool)  # without sorting
    there[numbers] = True
    return np.flatnonzero(there), (np.cumsum(there) - 1)[numbers]


def invert_rows(distributions: FloatArray, row: IntArray, u: FloatArray) -> IntArray:
    """Return the tokens that :func:`specviz.core.draws.invert` gives, all at once.

    Parameters
    ----------
    distributions : FloatArray
        ``(m, vocab)``.
    row : IntArray
        ``(n,)`` which distribution each token is drawn from.
    u : FloatArray
        ``(n,)`` the uniforms.

    Examples
    --------
    >>> invert_rows(np.array([[0.5, 0.5], [0.9, 0.1]]), np.array([0, 1]), np.array([0.7, 0.7]))
    array([1, 0])
    """
    out = np.empty(len(row), dtype=np.int64)
    often = np.bincount(row, minlength=len(distributions)) > SELDOM
    many, rare = np.flatnonzero(often[row]), np.flatnonzero(~often[row])
    for label, some in groups(row[many], len(distributions)):
        cdf = np.cumsum(distributions[label])
        out[many[some]] = np.searchsorted(cdf, u[many[some]] * cdf[-1], side="right")
        last = np.searchsorted(cdf, cdf[-1], side="left")
        out[many[some]] = np.minimum(out[many[some]], last)
    for start in range(0, len(rare), ROWS_AT_ONCE):
        some = rare[start : start + ROWS_AT_ONCE]
        cdf = np.cumsum(distributions[row[some]], axis=1)  # (rows, vocab)
        mass = cdf[:, -1:]
        tokens = np.count_nonzero(cdf <= u[some, None] * mass, axis=1)
        out[some] = np.minimum(tokens, np.count_nonzero(cdf < mass, axis=1))
    return out
