"""A model that remembers: the logits after a context are computed once, whoever asks again.

Many short continuations of one prompt meet the same contexts again and again. A
:class:`LogitCache` keeps their logits; a :class:`StandInModel` stands where a model does, so that
the shipped loop, drafters and rules run unchanged on top of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from specviz.core.contract import ROOT, Draft, IntArray, Target
from specviz.decoding.hf.target import HFTarget, open_session

Continuation = tuple[int, ...]
"""What comes after the prompt."""

LARGEST = 2**29
"""Bytes of logits that a store keeps; what comes later is computed each time."""

TOGETHER = 8192
"""Tokens that go through a Hugging Face model in one batch."""


class NeedsModelPasses(Exception):
    """A drafter reads what a pass leaves behind (features, a shared cache): nothing to remember."""


class LogitCache:
    """The logits after every continuation of one prompt that was asked for.

    Parameters
    ----------
    model : Model or tabular model
        What computes them.
    prompt : IntArray
        ``(k,)`` ids; at least one.
    vocab_size : int
        Width of the logits.

    Examples
    --------
    >>> from specviz.core.tabular import TabularModel
    >>> store = LogitCache(TabularModel([0.5, 0.5]), np.array([0]), 2)
    >>> np.exp(store.rows([(), (1, 1)])).tolist()
    [[0.5, 0.5], [0.5, 0.5]]
    """

    def __init__(self, model: Any, prompt: IntArray, vocab_size: int) -> None:
        self.prompt = np.asarray(prompt, dtype=np.int64)
        self.vocab_size = vocab_size
        self.computed = 0
        """For how many contexts a model ran."""
        self.session: Target = open_session(model, vocab_size)
        self.session.begin()
        self._known: dict[Continuation, NDArray[Any]] = {}

    @property
    def context_length(self) -> int | None:
        """The longest text the model takes."""
        return self.session.context_length

    def rows(self, continuations: Sequence[Continuation]) -> NDArray[Any]:
        """Return logits ``(k, vocab)`` after k continuations; new ones are computed together."""
        new = [c for c in dict.fromkeys(continuations) if c not in self._known]
        fresh = self._computed(new)
        return np.stack([self._known[c] if c in self._known else fresh[c] for c in continuations])

    def along(self, start: Continuation, draft: Draft) -> NDArray[Any]:
        """Return logits ``(1 + n, vocab)`` after ``start`` and after every node of a draft."""
        paths = [
            start + tuple(draft.tokens[draft.path(node)].tolist())
            for node in range(ROOT, len(draft))
        ]
        fresh: dict[Continuation, NDArray[Any]] = {}
        for path in sorted(paths, key=len, reverse=True):
            if path not in self._known and path not in fresh:
                fresh.update(self._pass(path, len(start)))
        return np.stack([self._known[p] if p in self._known else fresh[p] for p in paths])

    def _pass(self, path: Continuation, shortest: int) -> dict[Continuation, NDArray[Any]]:
        """Return the logits after a path and after its beginnings, from one pass."""
        session, kept = self.session, len(self.prompt) - 1
        pending = np.append(self.prompt, path[:shortest]).astype(np.int64)[session.length :]
        logits = session.verify(pending, Draft.chain(path[shortest:], None, self.vocab_size))
        session.crop(min(kept, session.length))  # the prompt stays in the cache
        found = {path[: shortest + i]: row for i, row in enumerate(logits)}
        self._keep(found)
        return found

    def _computed(self, new: list[Continuation]) -> dict[Continuation, NDArray[Any]]:
        found: dict[Continuation, NDArray[Any]] = {}
        if not isinstance(self.session, HFTarget) or len(new) < 2:
            for continuation in new:
                if continuation not in found:
                    found.update(self._pass(continuation, len(continuation)))
            return found
        for length in sorted({len(c) for c in new}):
            alike = [c for c in new if len(c) == length]
            size = max(1, TOGETHER // (len(self.prompt) + length))
            for first in range(0, len(alike), size):
                part = alike[first : first + size]
                batch = dict(zip(part, self._batch(self.session, part), strict=True))
                self._keep(batch)
                found.update(batch)
        return found

    @torch.inference_mode()
    def _batch(self, session: HFTarget, part: list[Continuation]) -> NDArray[Any]:
        """Return logits ``(k, vocab)`` of continuations of one length, from one batched pass."""
        ids = np.array([[*self.prompt.tolist(), *c] for c in part], dtype=np.int64)
        limit = session.context_length
        if limit is not None and ids.shape[1] > limit:
            raise ValueError(f"a text of {ids.shape[1]} tokens is longer than the context {limit}")
        ids = np.where(ids >= session.known_ids, session.stand_in, ids)
        arguments: dict[str, Any] = {"use_cache": False}
        if "logits_to_keep" in session.takes:
            arguments["logits_to_keep"] = 1
        fed = torch.from_numpy(ids).to(session.device)
        return session.fitted(session.model(input_ids=fed, **arguments).logits[:, -1])

    def _keep(self, found: dict[Continuation, NDArray[Any]]) -> None:
        self.computed += len(found)
        row = next(iter(found.values()), None)
        if row is not None and (len(self._known) + len(found)) * row.nbytes <= LARGEST:
            self._known.update((c, np.array(row)) for c, row in found.items())


class StandInModel:
    """Stands where a model of a pair does: another session, the same facts.

    Parameters
    ----------
    model : Model or tabular model
        What it stands for.
    open_session : callable
        Returns the session that a drafter is given instead of the model's own.
    """

    def __init__(self, model: Any, open_session: Callable[[], Target]) -> None:
        self.name, self.kind, self.vocab_size = model.name, model.kind, model.vocab_size
        self.context_length = model.context_length
        self._open_session = open_session

    def session(self, vocab_size: int | None = None) -> Target:
        """Open it as a :class:`~specviz.core.contract.Target`."""
        return self._open_session()


class StandInPair:
    """A pair with stand-ins for its models: what a drafter may ask of one, and no more."""

    def __init__(self, pair: Any, target: StandInModel, draft: StandInModel | None) -> None:
        self.target, self.draft = target, draft
        self.vocab_size: int = pair.vocab_size


class CachedSession:
    """A :class:`~specviz.core.contract.Target` that reads a store instead of running a model."""

    def __init__(self, store: LogitCache) -> None:
        self._store = store
        self.vocab_size = store.vocab_size
        self.context_length = store.context_length
        self.begin()

    def begin(self) -> None:
        """Forget the text."""
        self._text: list[int] = []
        self._pending = 0
        self._draft: Draft | None = None

    @property
    def length(self) -> int:
        """How many tokens were fed."""
        return len(self._text)

    def verify(self, pending: IntArray, draft: Draft) -> NDArray[Any]:
        """Return logits ``(1 + n, vocab)``, remembered where they are known."""
        text = self._text + [int(t) for t in pending]
        prompt = len(self._store.prompt)
        if len(text) < prompt:
            raise RuntimeError(f"the text has {len(text)} tokens, fewer than the prompt's {prompt}")
        rows = self._store.along(tuple(text[prompt:]), draft)
        self._pending, self._draft = len(text), draft
        self._text = text + draft.tokens.tolist()
        return rows

    def keep(self, path: Sequence[int]) -> None:
        """Roll the last pass back to its pending tokens and the nodes in ``path``."""
        assert self._draft is not None, "keep() comes after verify()"
        self._text = self._text[: self._pending] + [int(self._draft.tokens[i]) for i in path]
        self._draft = None

    def crop(self, length: int) -> None:
        """Forget every token after the first ``length``."""
        self._text, self._draft = self._text[:length], None

    def capture(self, layers: Iterable[int]) -> None:
        """Refuse: hidden states come from a pass."""
        raise NeedsModelPasses

    def open_exit(self, layer: int) -> None:
        """Refuse: early exit shares a cache."""
        raise NeedsModelPasses


class CachedPair(StandInPair):
    """A pair whose models remember the logits of contexts that were asked for before."""

    def __init__(self, pair: Any, prompt: IntArray) -> None:
        self.looked_ahead, self.meeting = 0, 1.0
        """For how many texts contexts were computed ahead; what share of them meets those."""
        models = [pair.target] if pair.draft is None else [pair.target, pair.draft]
        self._stores = [LogitCache(model, prompt, pair.vocab_size) for model in models]
        stand_ins = [
            StandInModel(model, partial(CachedSession, store))
            for model, store in zip(models, self._stores, strict=True)
        ]
        super().__init__(pair, stand_ins[0], stand_ins[1] if len(stand_ins) > 1 else None)

    def stores_of_networks(self) -> list[LogitCache]:
        """Return the target's store, then the draft's, where batches pay."""
        batched = all(isinstance(store.session, HFTarget) for store in self._stores)
        return self._stores if batched else []
