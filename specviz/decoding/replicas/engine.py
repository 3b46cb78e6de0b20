"""Many independent continuations of one prompt, for the statistics.

Each replica is the shipped loop with its own sequence index, so replica i equals
``sv.generate(..., seed=seed, sequence=i)`` token for token (in float32 or better, up to near ties).
What makes it fast: where texts are short and meet again, the logits after a context are computed
once (:mod:`.memo`); where they are long, the passes of many texts are one batch (:mod:`.batched`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from tqdm.auto import tqdm

from specviz.core.checks import SEED_LIMIT
from specviz.core.contract import Drafter, DraftSession, IntArray, Sampling, Target
from specviz.core.draws import Draws, Sampler
from specviz.core.rules import Rule, check_fits
from specviz.decoding.distributions import distributions
from specviz.decoding.hf.cache import UnsupportedModelError
from specviz.decoding.hf.target import open_session
from specviz.decoding.loop import rounds
from specviz.decoding.replicas.batched import Batched, rows_for
from specviz.decoding.replicas.logit_cache import Continuation, NeedsPasses, RememberingPair
from specviz.decoding.stopping import Stopping

END = -1
"""After a text's end; the same symbol as :data:`specviz.lossless.END`."""

AHEAD = 20_000
"""Largest number of contexts computed ahead, in batches."""

SHORT = 16
"""Longer texts hardly ever meet again."""

MEETING = 0.97
"""Below this share of texts that meet contexts known from others, passes are batched instead."""


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
        Shapes both distributions.
    seed : int
        Key of all draws; the sequence index is the replica's.
    max_new_tokens : int, optional
        What the loop is asked for, ``length`` by default. With ``length + gamma`` no round that
        matters is cut short.
    at_once : int, optional
        How many texts are decoded in one batch. 1: one after another, over remembered logits. By
        default whichever is faster for the model, the length and the number of texts.
    engine : {"auto", "loop"}
        "loop" runs every text by itself with real passes, as :func:`specviz.generate` does; "auto"
        remembers logits or batches passes where that gives the same texts faster. What ran is in
        :attr:`engine` afterwards.
    target_of, draws_of : callable, optional
        Wrap the target or the draws (planted faults do).

    Raises
    ------
    ValueError
        If prompt and length do not fit into the target's context, or a number is out of range.
    UnsupportedModelError
        If ``at_once`` asks for batches that the models or the drafter cannot do.

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
        at_once: int | None = None,
        engine: str = "auto",
        target_of: Callable[[Target], Target] | None = None,
        draws_of: Callable[[Draws], Draws] | None = None,
    ) -> None:
        if length < 1:
            raise ValueError(f"length must be at least 1 token, got {length}")
        if at_once is not None and at_once < 1:
            raise ValueError(f"at_once must be at least 1 text, got {at_once}")
        check_fits(drafter, rule)
        self.prompt = np.asarray(prompt, dtype=np.int64)
        self.length, self.drafter, self.rule, self.seed = length, drafter, rule, seed
        self.sampling = sampling or Sampling()
        self.max_new_tokens = length if max_new_tokens is None else max(length, max_new_tokens)
        self.stop_ids: frozenset[int] = pair.stop_ids
        self._target_of = target_of or (lambda target: target)
        self._draws_of = draws_of or (lambda draws: draws)
        self.pair: Any = RememberingPair(pair, self.prompt)
        self._target: Target = self.pair.target.session()
        self._limit = self._target.context_length
        if self._limit is not None and len(self.prompt) + length > self._limit:
            raise ValueError(
                f"prompt and length need {len(self.prompt) + length} tokens, the target's context "
                f"holds {self._limit}: shorten one of them"
            )
        self._at_once, self._whole_pair = 1 if engine == "loop" else at_once, pair
        self._batched: Batched | None = None
        if engine == "loop":
            self.pair, self._target = pair, open_session(pair.target, pair.vocab_size)
            self._start(self._target, self.pair)
            return
        try:
            self._start(self._target, self.pair)
        except Exception:  # a drafter that reads hidden states or the cache: every pass is run
            self.pair, self._target = pair, open_session(pair.target, pair.vocab_size)
            self._start(self._target, self.pair)

    @property
    def engine(self) -> str:
        """What draws the texts: "batches", "logit cache", or "loop" with real passes."""
        if self._batched is not None:
            return "batches"
        return "logit cache" if isinstance(self.pair, RememberingPair) else "loop"

    def _start(self, target: Target, pair: Any) -> tuple[Target, DraftSession]:
        """Return the target with nothing fed, and the drafter's session for the same text."""
        target.begin()
        target = self._target_of(target)
        return target, self.drafter.start(pair, target, self.prompt)

    def one(self, sequence: int) -> IntArray:
        """Return the tokens of one replica, at most ``length``."""
        return self._one(self._target, self.pair, sequence, lambda tokens: None)

    def _one(
        self, target: Target, pair: Any, sequence: int, tick: Callable[[int], Any]
    ) -> IntArray:
        target, session = self._start(target, pair)
        stopping = Stopping(len(self.prompt), self.max_new_tokens, self._limit, self.stop_ids)
        happening = rounds(
            target, session, self.rule, self.prompt, sampling=self.sampling,
            draws=self._draws_of(Sampler(self.seed, sequence)), stopping=stopping,
        )  # fmt: skip
        emitted: list[int] = []
        for happened in happening:
            tick(min(len(happened.emitted), self.length - len(emitted)))
            emitted.extend(happened.emitted.tolist())
            if len(emitted) >= self.length:
                break
        tick(max(0, self.length - len(emitted)))  # a text that ended
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
        batched = self._batches(n)
        tokens = np.full((n, self.length), END, dtype=np.int64)
        bar = tqdm(
            total=n * self.length, desc="replicas", unit="token", unit_scale=True, delay=2,
            leave=False, disable=not progress,
        )  # fmt: skip

        def one(target: Target, pair: Any, sequence: int) -> None:
            text = self._one(target, pair, sequence, bar.update)
            tokens[sequence - first, : len(text)] = text

        with bar:
            if batched is not None:
                batched.run(range(first, first + n), one)
                return tokens
            for sequence in range(first, first + n):
                one(self._target, self.pair, sequence)
        return tokens

    def _batches(self, n: int) -> Batched | None:
        """Return what decodes in batches, or None where texts come one after another."""
        longest = len(self.prompt) + self.max_new_tokens
        rows = min(n, self._at_once) if self._at_once is not None else rows_for(n, longest)
        if self._at_once == 1 or (self._batched is not None and self._batched.rows >= rows):
            return self._batched
        if self._batched is None and self._at_once is None:
            remembering = isinstance(self.pair, RememberingPair)
            if n == 1 or not remembering or not self.pair.stores_of_networks():
                return None
            if self.length <= SHORT and self.look_ahead(n) >= MEETING:
                return None
        elif not isinstance(self.pair, RememberingPair):
            raise UnsupportedModelError(
                f"drafter {self.drafter.name!r} reads what a pass leaves behind, which a batch "
                f"does not keep: leave at_once out"
            )
        try:
            batched = Batched(self._whole_pair, self.prompt, rows)
            target, row_pair = batched.slot(0)
            self._start(target, row_pair)
        except (UnsupportedModelError, NeedsPasses):
            if self._at_once is not None:
                raise
            self._at_once = 1
            return None
        self._batched = batched
        return batched

    def look_ahead(self, n: int) -> float:
        """Compute, in batches, the contexts that n texts are expected to meet.

        Returns the share of texts that are expected to meet computed contexts up to their end.
        """
        stores = self.pair.stores_of_networks() if isinstance(self.pair, RememberingPair) else []
        if not stores:
            return 1.0
        if self.pair.looked_ahead >= n:
            return float(self.pair.meeting)
        self.pair.looked_ahead = n
        level: dict[Continuation, float] = {(): 1.0}
        ended = 0.0
        for position in range(self.length):
            contexts = sorted(level, key=lambda c: -level[c])[: AHEAD // self.length]
            self.pair.meeting = ended + sum(level[c] for c in contexts)
            for store in stores[1:]:
                store.rows(contexts)
            logits = stores[0].rows(contexts)
            past = [np.append(self.prompt, c).astype(np.int64) for c in contexts]
            p = distributions(logits, self.sampling, past, "target")
            if position + 1 == self.length:
                break
            following: dict[Continuation, float] = {}
            for context, distribution in zip(contexts, p, strict=True):
                mass = level[context] * distribution
                for token in np.flatnonzero(n * mass >= 1).tolist():
                    if token in self.stop_ids:
                        ended += float(mass[token])
                    else:
                        following[(*context, token)] = float(mass[token])
            level = following
            self.pair.meeting = ended + sum(level.values())
            if not level or (self._at_once is None and self.pair.meeting < MEETING):
                break
        return float(self.pair.meeting)


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
    at_once: int | None = None,
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
        sampling=sampling, seed=seed, max_new_tokens=max_new_tokens, at_once=at_once,
    )  # fmt: skip
    return many.draw(n, first, progress=progress)
