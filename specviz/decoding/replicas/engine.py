"""Many independent continuations of one prompt, for the statistics.

Each replica is the shipped loop with its own sequence index, so replica i equals
``sv.generate(..., seed=seed, sequence=i)`` token for token (in float32 or better, up to near ties).
One of three engines runs it (:data:`ENGINES`):

- ``"loop"``: each text by itself, with the passes and caches that ``sv.generate`` uses. Slow, and
  the only one that runs the shipped verification pass.
- ``"logit cache"``: short texts of one prompt meet the same contexts again and again, so the logits
  after a context are computed once (:mod:`.logit_cache`). No verification pass runs.
- ``"batches"``: long texts seldom meet, so the passes of many texts are computed as one padded
  batch (:mod:`.batch_scheduler`). Its pass is the batch's own.

``"auto"`` chooses; :attr:`Replicas.ran` says which ran, and why. A fourth machine, for a draft
model under ``rejection`` only, does without the loop (:mod:`.vectorised_rejection`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from tqdm.auto import tqdm

from specviz.core import checks
from specviz.core.checks import SEED_LIMIT
from specviz.core.contract import Drafter, DraftSession, IntArray, Sampling, Target
from specviz.core.draws import Draws, Sampler
from specviz.core.rules import Rule, check_fits
from specviz.decoding.hf.cache import UnsupportedModelError
from specviz.decoding.hf.target import open_session
from specviz.decoding.loop import rounds
from specviz.decoding.replicas.batch_scheduler import BatchedPair, rows_for
from specviz.decoding.replicas.logit_cache import CachedPair, Continuation, NeedsModelPasses
from specviz.decoding.sampling import logits_to_distributions
from specviz.decoding.stopping import Stopping

END = -1
"""After a text's end; the same symbol as :data:`specviz.lossless.END`."""

AHEAD = 20_000
"""Largest number of contexts computed ahead, in batches."""

SHORT = 16
"""Longer texts hardly ever meet again."""

MEETING = 0.97
"""Below this share of texts that meet contexts known from others, passes are batched instead."""


ENGINES = ("auto", "loop", "logit cache", "batches")
"""What can be asked for."""


@dataclass(frozen=True)
class EngineRun:
    """Which engine draws the texts, and why this one.

    Parameters
    ----------
    name : str
        "loop", "logit cache" or "batches".
    why : str
        The reason, in words.
    """

    name: str
    why: str


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
        How many texts are decoded in one batch: a number above 1 asks for the engine "batches",
        1 for any other.
    engine : {"auto", "loop", "logit cache", "batches"}
        What runs the texts (see above); "auto" takes the fastest for the model, the length and the
        number of texts. :attr:`ran` tells afterwards.
    target_of, draws_of : callable, optional
        Wrap the target or the draws (planted faults do).

    Raises
    ------
    ValueError
        If prompt and length do not fit into the target's context, or a number is out of range.
    UnsupportedModelError
        If an engine is asked for that the models or the drafter cannot do.

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
        checks.one_of("engine", engine, ENGINES)
        checks.whole("length", length, 1)
        if at_once is not None:
            checks.whole("at_once", at_once, 1)
        check_fits(drafter, rule)
        self.prompt = np.asarray(prompt, dtype=np.int64)
        self.length, self.drafter, self.rule, self.seed = length, drafter, rule, seed
        self.sampling = sampling or Sampling()
        self.max_new_tokens = length if max_new_tokens is None else max(length, max_new_tokens)
        self.stop_ids: frozenset[int] = pair.stop_ids
        self._target_of = target_of or (lambda target: target)
        self._draws_of = draws_of or (lambda draws: draws)
        self.pair: Any = CachedPair(pair, self.prompt)
        self._target: Target = self.pair.target.session()
        self._limit = self._target.context_length
        if self._limit is not None and len(self.prompt) + length > self._limit:
            raise ValueError(
                f"prompt and length need {len(self.prompt) + length} tokens, the target's context "
                f"holds {self._limit}: shorten one of them"
            )
        self._at_once, self._whole_pair = at_once, pair
        self._batched: BatchedPair | None = None
        if engine in ("loop", "logit cache"):
            if at_once not in (None, 1):
                raise ValueError(
                    f"at_once={at_once} needs engine='batches': leave out at_once or engine"
                )
            self._at_once = 1
        elif engine == "batches" and at_once == 1:
            raise ValueError("engine='batches' needs at_once >= 2: leave out at_once or engine")
        elif engine == "batches" and at_once is None:
            self._at_once = max(2, rows_for(SEED_LIMIT, len(self.prompt) + self.max_new_tokens))
        self._why = "texts of one prompt meet the same contexts again"
        if engine == "loop":
            self._run_every_pass(pair, "it was asked for")
            return
        try:
            self._start(self._target, self.pair)
        except Exception as error:  # it reads what a pass leaves behind, or cannot run at all
            self._run_every_pass(pair, f"drafter {drafter.name!r} reads what a pass leaves behind")
            if engine == "logit cache":
                raise UnsupportedModelError(
                    f"engine='logit cache' cannot run drafter {drafter.name!r}, which reads what "
                    f"a pass leaves behind: use engine='loop'"
                ) from error
        else:
            if self._at_once == 1:
                self._why = "it was asked for"

    @property
    def ran(self) -> EngineRun:
        """Which engine draws the texts; after :meth:`draw`, which one drew them."""
        if self._batched is not None:
            return EngineRun("batches", self._why)
        name = "logit cache" if isinstance(self.pair, CachedPair) else "loop"
        return EngineRun(name, self._why)

    def _run_every_pass(self, pair: Any, why: str) -> None:
        """Go over to the models' own sessions; an error of the drafter is raised here."""
        self.pair, self._target = pair, open_session(pair.target, pair.vocab_size)
        self._start(self._target, self.pair)
        self._why = why

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
        results = rounds(
            target, session, self.rule, self.prompt, sampling=self.sampling,
            draws=self._draws_of(Sampler(self.seed, sequence)), stopping=stopping,
        )  # fmt: skip
        emitted: list[int] = []
        for result in results:
            tick(min(len(result.emitted), self.length - len(emitted)))
            emitted.extend(result.emitted.tolist())
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

    def _batches(self, n: int) -> BatchedPair | None:
        """Return what decodes in batches, or None where texts come one after another."""
        longest = len(self.prompt) + self.max_new_tokens
        rows = min(n, self._at_once) if self._at_once is not None else rows_for(n, longest)
        if self._at_once == 1 or (self._batched is not None and self._batched.rows >= rows):
            return self._batched
        if self._batched is None and self._at_once is None:
            remembering = isinstance(self.pair, CachedPair)
            if n == 1 or not remembering or not self.pair.stores_of_networks():
                return None
            if self.length <= SHORT and self.look_ahead(n) >= MEETING:
                return None
        elif not isinstance(self.pair, CachedPair):
            raise UnsupportedModelError(
                f"drafter {self.drafter.name!r} reads what a pass leaves behind, which a batch "
                f"does not keep: leave at_once out, or use engine='loop'"
            )
        try:
            batched = BatchedPair(self._whole_pair, self.prompt, rows)
            target, row_pair = batched.slot(0)
            self._start(target, row_pair)
        except (UnsupportedModelError, NeedsModelPasses):
            if self._at_once is not None:
                raise
            self._at_once = 1
            self._why = "the models or the drafter cannot run in batches"
            return None
        self._why = (
            "texts of this length seldom meet" if self._at_once is None else "it was asked for"
        )
        self._batched = batched
        return batched

    def look_ahead(self, n: int) -> float:
        """Compute, in batches, the contexts that n texts are expected to meet.

        Returns the share of texts that are expected to meet computed contexts up to their end.
        """
        stores = self.pair.stores_of_networks() if isinstance(self.pair, CachedPair) else []
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
            p = logits_to_distributions(logits, self.sampling, past, "target")
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
    engine: str = "auto",
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
        engine=engine,
    )  # fmt: skip
    return many.draw(n, first, progress=progress)
