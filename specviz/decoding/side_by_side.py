"""A draft model and ``rejection`` for very many replicas at once, position by position.

Each replica carries its context and where it stands in its round. At a position its proposal is
drawn from q and judged, or, after a rejection or with the whole draft accepted, its closing token
is drawn: the rounds of all replicas side by side. With keyed draws each replica is token for token
what the loop gives (:mod:`.loop`), up to draws that fall within rounding of the edge between two
tokens: batched float32 logits differ by some 4e-6 from single ones, and with 2,048 tokens of a flat
law about one draw in a thousand then gives its neighbour. With a plain generator it has the same
law and is faster.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from specviz.core import philox
from specviz.core.contract import FloatArray, IntArray, Sampling
from specviz.core.draws import Purpose
from specviz.core.rule import residual
from specviz.decoding.distributions import laws
from specviz.decoding.memo import Continuation, LogitStore

BLOCK = 2**14
"""Keyed numbers are computed so many at a time: they stay in the processor's cache."""


class SideBySide:
    """Replicas of ``DraftModel(gamma)`` × ``rejection``.

    Parameters
    ----------
    target, draft : Model or tabular model
        The laws p and q.
    prompt : IntArray
        ``(k,)`` ids.
    vocab_size : int
        The target's.
    length : int
        How many tokens of each text are wanted.
    gamma : int
        Proposals per round.
    sampling : Sampling, optional
        Shapes both laws.
    stop_ids : frozenset of int
        Tokens that end a text.
    max_new_tokens : int, optional
        What the loop would be asked for; ``length`` by default.

    Examples
    --------
    >>> from specviz.core.tabular import TabularModel
    >>> coin, other = TabularModel([0.5, 0.5]), TabularModel([0.9, 0.1])
    >>> many = SideBySide(coin, other, np.array([0]), 2, length=3, gamma=2)
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
            raise ValueError("temperature must be above 0 here: greedy replicas are all alike")
        self.length, self.gamma, self.stop_ids = length, gamma, stop_ids
        self.longest = length if max_new_tokens is None else max(length, max_new_tokens)
        self._p = LogitStore(target, self.prompt, vocab_size)
        self._q = LogitStore(draft, self.prompt, vocab_size)
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

    def draw(self, n: int, *, seed: int, first: int = 0, keyed: bool = True) -> IntArray:
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
        """
        tokens = np.full((n, self.length), -1, dtype=np.int64)
        live = np.arange(n)  # replicas whose text goes on
        context = np.zeros(n, dtype=np.int64)  # (live,) which of `contexts`
        contexts: list[Continuation] = [()]
        rounds, node = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
        depth = np.full(n, self._depth(0), dtype=np.int64)  # proposals in this round
        draws = _Keyed(seed, first) if keyed else _Generator(seed, first)
        for position in range(self.length):
            p, q = self._law(self._p, contexts), self._law(self._q, contexts)
            where = len(self.prompt) + position
            x, kept = np.empty(len(live), dtype=np.int64), np.zeros(len(live), dtype=bool)
            proposing = np.flatnonzero(node < depth)
            who, when, lane = live[proposing], rounds[proposing], node[proposing]
            u = draws(Purpose.DRAFT, who, where, when, lane)
            v = draws(Purpose.ACCEPT, who, where, when, lane)
            for row, some in _groups(context[proposing], len(contexts)):
                chosen = _invert(q[row], u[some])
                chance = np.minimum(1.0, p[row][chosen] / q[row][chosen])
                x[proposing[some]] = chosen
                kept[proposing[some]] = v[some] < chance
            closing = np.flatnonzero(~kept)
            zero = np.zeros(len(closing), dtype=np.int64)
            u = draws(Purpose.CLOSING, live[closing], where, rounds[closing], zero)
            refused = (node < depth)[closing].astype(np.int64)
            for cell, some in _groups(2 * context[closing] + refused, 2 * len(contexts)):
                row = cell // 2
                law = residual(p[row], q[row]) if cell % 2 else p[row]
                x[closing[some]] = _invert(law, u[some])
            tokens[live, position] = x
            # a closing token ends the round
            node = np.where(kept, node + 1, 0)
            rounds = np.where(kept, rounds, rounds + 1)
            depth = np.where(kept, depth, self._depth(position + 1))
            if position + 1 == self.length:
                break
            goes_on = ~np.isin(x, list(self.stop_ids))
            live, node, rounds, depth = (a[goes_on] for a in (live, node, rounds, depth))
            pairs = (context * self._p.vocab_size + x)[goes_on]
            values, context = np.unique(pairs, return_inverse=True)
            parents, last = np.divmod(values, self._p.vocab_size)
            contexts = [
                (*contexts[parent], token)
                for parent, token in zip(parents.tolist(), last.tolist(), strict=True)
            ]
            if not len(live):
                break
        return tokens

    def _depth(self, position: int) -> int:
        """Return how many proposals a round has that begins at this position."""
        room = self.longest - position - 1
        return int(max(0, min(self.gamma, room, self._draft_room - position)))

    def _law(self, store: LogitStore, contexts: list[Continuation]) -> FloatArray:
        limit = store.context_length
        if limit is not None and len(self.prompt) + len(contexts[0]) > limit:
            return np.ones((len(contexts), store.vocab_size))  # never drawn from: too long for it
        past = [np.append(self.prompt, c).astype(np.int64) for c in contexts]
        return laws(store.rows(contexts), self.sampling, past)


def _groups(labels: IntArray, size: int) -> Iterator[tuple[int, IntArray]]:
    """Yield each label and the places that have it."""
    small = labels.astype(np.uint16) if size < 2**16 else labels  # sorts faster
    order = np.argsort(small, kind="stable")
    ends = np.cumsum(np.bincount(labels, minlength=size))
    start = 0
    for label, end in enumerate(ends.tolist()):
        if end > start:
            yield label, order[start:end]
        start = end


def _invert(law: FloatArray, u: FloatArray) -> IntArray:
    """Return the tokens that :func:`specviz.core.draws.invert` gives, all at once."""
    cdf = np.cumsum(law)
    tokens = np.searchsorted(cdf, u * cdf[-1], side="right")
    last = np.searchsorted(cdf, cdf[-1], side="left")
    out: IntArray = np.minimum(tokens, last)
    return out


class _Keyed:
    """Uniforms by key: those of :class:`specviz.core.draws.Sampler`."""

    def __init__(self, seed: int, first: int) -> None:
        self._seed, self._first = seed, first

    def __call__(
        self, purpose: int, who: IntArray, position: int, when: IntArray, lane: IntArray
    ) -> FloatArray:
        out = np.empty(len(who))
        for start in range(0, len(who), BLOCK):
            part = slice(start, start + BLOCK)
            sequence = who[part] + self._first
            what, where = (np.full(len(sequence), word) for word in (int(purpose), position))
            key: Any = (self._seed, sequence)
            high, low, _, _ = philox.philox((what, where, when[part], lane[part]), key)
            out[part] = (((high << 20) | (low >> 12)) + 0.5) * 2.0**-52
        return out


class _Generator:
    """Uniforms of one generator, in the order asked for."""

    def __init__(self, seed: int, first: int) -> None:
        self._rng = np.random.default_rng([seed, first])

    def __call__(
        self, purpose: int, who: IntArray, position: int, when: IntArray, lane: IntArray
    ) -> FloatArray:
        out: FloatArray = self._rng.random(len(who))
        return out
