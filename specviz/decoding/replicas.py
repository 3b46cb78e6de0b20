"""Many independent continuations of one prompt, for the statistics.

Each replica is the shipped loop with its own sequence index, so replica i equals
``sv.generate(..., seed=seed, sequence=i)`` token for token (in float32 or better, up to near ties).
What makes it fast is that the logits after a context are computed once (:mod:`.memo`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from tqdm.auto import tqdm

from specviz.core.contract import Drafter, IntArray, Sampling, Target
from specviz.core.draws import SEED_LIMIT, Draws, Sampler
from specviz.core.rules import Rule
from specviz.decoding.distributions import laws
from specviz.decoding.loop import rounds
from specviz.decoding.memo import (
    Continuation,
    LogitStore,
    RememberingModel,
)
from specviz.decoding.stopping import Stopping
from specviz.decoding.target import HFTarget, open_session

END = -1
"""After a text's end; the same symbol as :data:`specviz.lossless.END`."""

AHEAD = 20_000
"""At most so many contexts are computed ahead, in batches."""


class Replicas:
    """Continuations of one prompt, drawn in any order and number.

    Parameters
    ----------
    pair : Pair
        Target and draft.
    prompt : IntArray
        ``(k,)`` ids.
    length : int
        How many tokens of each text are wanted.
    drafter : Drafter
        What proposes.
    rule : Rule
        What decides.
    sampling : Sampling
        Shapes both laws.
    seed : int
        Key of all draws; the sequence index is the replica's.
    max_new_tokens : int, optional
        What the loop is asked for, ``length`` by default. With ``length + gamma`` no round that
        matters is cut short.
    target_of, draws_of : callable, optional
        Wrap the target or the draws (planted faults do).

    Examples
    --------
    >>> import specviz as sv
    >>> coin, other = sv.tabular.TabularModel([0.5, 0.5]), sv.tabular.TabularModel([0.9, 0.1])
    >>> pair = sv.tabular.TabularPair(coin, other)
    >>> many = Replicas(pair, np.array([0]), 3, sv.DraftModel(2), sv.rules.RULES["rejection"])
    >>> many.draw(100).shape
    (100, 3)
    """

    def __init__(
        self,
        pair: Any,
        prompt: IntArray,
        length: int,
        drafter: Drafter,
        rule: Rule,
        *,
        sampling: Sampling | None = None,
        seed: int = 0,
        max_new_tokens: int | None = None,
        target_of: Callable[[Target], Target] | None = None,
        draws_of: Callable[[Draws], Draws] | None = None,
    ) -> None:
        if length < 1:
            raise ValueError(f"length must be at least 1 token, got {length}")
        self.prompt = np.asarray(prompt, dtype=np.int64)
        self.length, self.drafter, self.rule, self.seed = length, drafter, rule, seed
        self.sampling = sampling or Sampling()
        self.max_new_tokens = length if max_new_tokens is None else max(length, max_new_tokens)
        self.stop_ids: frozenset[int] = pair.stop_ids
        self._target_of = target_of or (lambda target: target)
        self._draws_of = draws_of or (lambda draws: draws)
        self.pair: Any = _Remembering(pair, self.prompt)
        self._target: Target = self.pair.target.session()
        self._limit = self._target.context_length
        if self._limit is not None and len(self.prompt) + length > self._limit:
            raise ValueError(
                f"prompt and length need {len(self.prompt) + length} tokens, the target's context "
                f"holds {self._limit}: shorten one of them"
            )
        try:
            self._begin()
        except Exception:  # a drafter that reads hidden states or the cache: every pass is run
            self.pair, self._target = pair, open_session(pair.target, pair.vocab_size)
            self._begin()

    def _begin(self) -> Target:
        self._target.begin()
        target = self._target_of(self._target)
        self.drafter.begin(self.pair, target, self.prompt)
        return target

    def one(self, sequence: int) -> IntArray:
        """Return the tokens of one replica, at most ``length``."""
        target = self._begin()
        stopping = Stopping(len(self.prompt), self.max_new_tokens, self._limit, self.stop_ids)
        happening = rounds(
            target, self.drafter, self.rule, self.prompt, sampling=self.sampling,
            draws=self._draws_of(Sampler(self.seed, sequence)), stopping=stopping,
        )  # fmt: skip
        emitted: list[int] = []
        for happened in happening:
            emitted.extend(happened.emitted.tolist())
            if len(emitted) >= self.length:
                break
        return np.array(emitted[: self.length], dtype=np.int64)

    def draw(self, n: int, first: int = 0, *, progress: bool = True) -> IntArray:
        """Return ``(n, length)`` tokens of the replicas ``first … first + n - 1``.

        A text that ended goes on with :data:`END` (-1).

        Raises
        ------
        ValueError
            If n is below 1, or a sequence index is 2**32 or more.
        """
        if n < 1 or first < 0 or first + n > SEED_LIMIT:
            raise ValueError(f"n must be at least 1 with first + n <= 2**32, got {n} and {first}")
        self.look_ahead(n)
        tokens = np.full((n, self.length), END, dtype=np.int64)
        bar = tqdm(
            range(n), desc="replicas", unit="text", delay=2, leave=False, disable=not progress
        )
        for i in bar:
            text = self.one(first + i)
            tokens[i, : len(text)] = text
        return tokens

    def look_ahead(self, n: int) -> None:
        """Compute, in batches, the contexts that n texts are expected to meet."""
        if not isinstance(self.pair, _Remembering):
            return
        stores = self.pair.stores_of_networks()
        if not stores or self.pair.looked_ahead >= n:
            return
        self.pair.looked_ahead = n
        level: dict[Continuation, float] = {(): 1.0}
        for position in range(self.length):
            contexts = sorted(level, key=lambda c: -level[c])[: AHEAD // self.length]
            for store in stores[1:]:
                store.rows(contexts)
            logits = stores[0].rows(contexts)
            past = [np.append(self.prompt, c).astype(np.int64) for c in contexts]
            p = laws(logits, self.sampling, past)
            if position + 1 == self.length:
                break
            following: dict[Continuation, float] = {}
            for context, law in zip(contexts, p, strict=True):
                mass = level[context] * law
                for token in np.flatnonzero(n * mass >= 1).tolist():
                    if token not in self.stop_ids:
                        following[(*context, token)] = float(mass[token])
            level = following
            if not level:
                break


class _Remembering:
    """A pair whose models remember; everything else is the pair's own."""

    def __init__(self, pair: Any, prompt: IntArray) -> None:
        self._pair = pair
        self.looked_ahead = 0
        self.target = _remembering(pair.target, prompt, pair.vocab_size)
        self.draft = (
            None if pair.draft is None else _remembering(pair.draft, prompt, pair.vocab_size)
        )

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pair, name)

    def stores_of_networks(self) -> list[LogitStore]:
        """Return the target's store, then the draft's, where batches pay."""
        models = [self.target, self.draft] if self.draft is not None else [self.target]
        stores = [model.store for model in models]
        batched = all(isinstance(store.session, HFTarget) for store in stores)
        return stores if batched else []


def _remembering(model: Any, prompt: IntArray, vocab_size: int) -> RememberingModel:
    return RememberingModel(model, LogitStore(model, prompt, vocab_size))


def replicas(
    pair: Any,
    prompt: Any,
    n: int,
    *,
    length: int,
    drafter: Drafter,
    rule: Rule,
    sampling: Sampling | None = None,
    seed: int = 0,
    first: int = 0,
    max_new_tokens: int | None = None,
    progress: bool = True,
) -> IntArray:
    """Return ``(n, length)`` tokens of n independent continuations; see :class:`Replicas`.

    Examples
    --------
    >>> import specviz as sv
    >>> coin = sv.tabular.TabularModel([0.5, 0.5])
    >>> pair = sv.tabular.TabularPair(coin, coin)
    >>> rule = sv.rules.RULES["rejection"]
    >>> texts = replicas(pair, [0], 3, length=4, drafter=sv.DraftModel(2), rule=rule, seed=7)
    >>> one = sv.generate(pair, [0], gamma=2, seed=7, sequence=2, max_new_tokens=4)
    >>> texts[2].tolist() == one.tokens.tolist()
    True
    """
    many = Replicas(
        pair, pair.encode(prompt), length, drafter, rule,
        sampling=sampling, seed=seed, max_new_tokens=max_new_tokens,
    )  # fmt: skip
    return many.draw(n, first, progress=progress)
