"""Contexts that grow by one token at a time: each is fed one token on top of its parent's cache.

Many texts of one prompt form a tree of prefixes. Here a *level* is a handful of contexts of one
length with what a model says after each; the next level is computed in one batched pass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Condition, Thread
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import DynamicCache

from specviz.core.contract import IntArray
from specviz.decoding.hf.cache import GrowingLayer, new_cache
from specviz.decoding.hf.target import HFTarget
from specviz.decoding.replicas.logit_cache import Continuation, LogitCache

COLUMNS = 8192
"""Tokens that the cache of one level holds at most, prompts included."""


@dataclass(frozen=True)
class PrefixBatch:
    """Contexts of one length, and what a model says after each of them.

    Parameters
    ----------
    contexts : sequence of tuple of int
        What came after the prompt.
    logits : array or None
        ``(contexts, vocab)``; None where the texts are too long for the model.
    cache : DynamicCache or None
        A row for each context, where a network computed them.
    """

    contexts: Sequence[Continuation]
    logits: NDArray[Any] | None
    cache: DynamicCache | None = None


class PrefixBatches:
    """What a model says after the prefixes of many texts.

    Parameters
    ----------
    model : Model or tabular model
        What computes the logits.
    prompt : IntArray
        ``(k,)`` ids; at least one.
    vocab_size : int
        Width of the logits.

    Examples
    --------
    >>> from specviz.core.tabular import TabularModel
    >>> levels = PrefixBatches(TabularModel([0.5, 0.5]), np.array([0]), 2)
    >>> root = levels.root()
    >>> levels.grown(root, np.array([0, 0]), np.array([0, 1])).contexts
    [(0,), (1,)]
    """

    def __init__(self, model: Any, prompt: IntArray, vocab_size: int) -> None:
        self._store = LogitCache(model, prompt, vocab_size)
        self.vocab_size = vocab_size
        self.context_length = self._store.context_length
        self._prompt = self._store.prompt

    @property
    def is_network(self) -> bool:
        """Whether a network computes them, in batches that should not be too wide."""
        return isinstance(self._store.session, HFTarget)

    @property
    def on_cores(self) -> bool:
        """Whether that network runs on the processor's cores."""
        session = self._store.session
        return isinstance(session, HFTarget) and session.device.type == "cpu"

    def root(self) -> PrefixBatch:
        """Return the level of the prompt alone."""
        session = self._store.session
        if self._too_long(0):
            return PrefixBatch([()], None)
        if not isinstance(session, HFTarget):
            return PrefixBatch([()], self._store.rows([()]))
        return self._pass(session, [()], None, self._prompt[None])

    def grown(
        self, level: PrefixBatch, parents: IntArray, tokens: IntArray, *, spent: bool = False
    ) -> PrefixBatch:
        """Return the contexts of ``parents`` (rows of ``level``), each with one token more.

        Parameters
        ----------
        level : PrefixBatch
            One token shorter.
        parents, tokens : IntArray
            ``(k,)``.
        spent : bool
            Nothing else will grow from ``level``: its cache may be gone on with.
        """
        contexts = [
            (*level.contexts[parent], token)
            for parent, token in zip(parents.tolist(), tokens.tolist(), strict=True)
        ]
        session = self._store.session
        if self._too_long(len(contexts[0])):
            return PrefixBatch(contexts, None)
        if not isinstance(session, HFTarget):
            return PrefixBatch(contexts, self._store.rows(contexts))
        every = spent and np.array_equal(parents, np.arange(len(level.contexts)))
        cache = level.cache if every else _chosen(level.cache, parents)
        return self._pass(session, contexts, cache, tokens[:, None])

    def _too_long(self, length: int) -> bool:
        limit = self.context_length
        return limit is not None and len(self._prompt) + length > limit

    @torch.inference_mode()
    def _pass(
        self,
        session: HFTarget,
        contexts: list[Continuation],
        cache: DynamicCache | None,
        ids: IntArray,
    ) -> PrefixBatch:
        """Feed ``(k, tokens)`` ids on top of a cache with a row for each context."""
        cache = new_cache() if cache is None else cache
        ids = np.where(ids >= session.known_ids, session.stand_in, ids)
        device = session.device
        start = len(self._prompt) + len(contexts[0]) - ids.shape[1]
        if session.lean is not None and self._in_every_window(session, start, ids.shape[1]):
            masks = dict.fromkeys(session.kind.windows, session.lean.causal(start, ids.shape[1]))
            fed = torch.from_numpy(ids).to(device)
            places = torch.arange(start, start + ids.shape[1], device=device).expand(len(ids), -1)
            rows = session.lean.batch_logits(fed, places, masks, cache, 1)  # (k, 1, vocab)
            return PrefixBatch(contexts, session.fitted(rows[:, 0]), cache)
        arguments: dict[str, Any] = {
            "input_ids": torch.from_numpy(ids).to(device),
            "use_cache": True,
            session.cache_argument or "cache": cache,
        }
        if "position_ids" in session.takes:
            places = torch.arange(start, start + ids.shape[1], device=device)
            arguments["position_ids"] = places.expand(len(ids), -1)
        if "logits_to_keep" in session.takes and ids.shape[1] > 1:
            arguments["logits_to_keep"] = 1
        logits = session.fitted(session.model(**arguments).logits[:, -1])
        return PrefixBatch(contexts, logits, cache)

    @staticmethod
    def _in_every_window(session: HFTarget, start: int, tokens: int) -> bool:
        """Whether no sliding window hides anything yet: the lean pass is given no mask for it."""
        return all(w is None or start + tokens <= w for w in session.kind.windows.values())


def _chosen(cache: DynamicCache | None, rows: IntArray) -> DynamicCache:
    """Return a new cache with some rows of another, in the order given."""
    assert cache is not None, "a network's level has a cache"
    chosen = new_cache()
    layer: Any
    for layer in cache.layers:
        if getattr(layer, "keys", None) is None:  # keeps nothing
            chosen.layers.append(layer)
        else:
            place = torch.from_numpy(rows).to(layer.keys.device)
            chosen.layers.append(GrowingLayer.of(layer, place))
    return chosen


def walk_tree(first: Any, step: Callable[[Any], Sequence[Any]], threads: int) -> None:
    """Call ``step`` with ``first``, then with everything that follows from it, depth first.

    Why threads that compute on one core each? On a processor two batches side by side are faster
    than one batch on two cores, whose threads wait for each other at every operation.

    Parameters
    ----------
    first : object
        Where the walk begins.
    step : callable
        One place → the places that follow from it, which may be visited in any order.
    threads : int
        With 1 everything happens in the calling thread, in order.

    Raises
    ------
    BaseException
        The first error of a step, or an interrupt; all threads have ended then.

    Examples
    --------
    >>> seen = []
    >>> walk_tree(3, lambda n: seen.append(n) or [n - 1] * (n > 0), threads=1)
    >>> seen
    [3, 2, 1, 0]
    """
    waiting = [first]
    if threads == 1:
        while waiting:
            waiting.extend(reversed(step(waiting.pop())))
        return
    changed = Condition()
    at_work: list[Any] = []
    errors: list[BaseException] = []

    def visit() -> None:
        torch.set_num_threads(1)
        while True:
            with changed:
                while not waiting and at_work and not errors:
                    changed.wait()
                if errors or not waiting:
                    return
                place = waiting.pop()
                at_work.append(place)
            following: Sequence[Any] = []
            try:
                following = step(place)
            except BaseException as error:
                errors.append(error)
            with changed:
                waiting.extend(reversed(following))
                at_work.pop()
                changed.notify_all()

    before = torch.get_num_threads()
    workers = [Thread(target=visit, daemon=True) for _ in range(threads)]
    try:
        for thread in workers:
            thread.start()
        with changed:  # not join(): an interrupt would have it forget a thread that still runs
            while (waiting or at_work) and not errors:
                changed.wait()
    except BaseException as error:
        errors.append(error)
    with changed:
        changed.notify_all()
    for thread in workers:
        if thread.ident is not None:
            thread.join()
    torch.set_num_threads(before)
    if errors:
        raise errors[0]
