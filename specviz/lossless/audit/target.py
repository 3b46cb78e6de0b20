"""The target of an audit: its next-token distributions, per context or along a whole text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from specviz.core.contract import Draft, FloatArray, IntArray, Sampling
from specviz.lossless.audit.ties import (
    Seen,
    Tie,
    TieCount,
    all_kept,
    as_one,
    find_ties,
    near_gap,
    shared_as_seen,
    truncates,
)
from specviz.lossless.statistics.conditional_distribution import ConditionalDistribution, Prefix
from specviz.lossless.statistics.prefix_tree import PrefixTree, grow
from specviz.lossless.statistics.scores import Scores, score_tokens

AT_ONCE = 2**24
"""Largest number of probabilities held at a time when a text is scored."""


@dataclass(frozen=True)
class ClaimedTarget:
    """The model whose distribution is claimed, its vocabulary and its end tokens.

    Parameters
    ----------
    model : Model or tabular model
        Whose distribution the texts are held to.
    vocab_size : int
        Width of that distribution.
    end_ids : frozenset of int
        Tokens that end a text.
    pair : Pair or None
        Where token strings and prompts as text come from.
    """

    model: Any
    vocab_size: int
    end_ids: frozenset[int]
    pair: Any = None

    def encode(self, prompt: Any) -> IntArray:
        """Return the prompt as ids ``(k,)``.

        Raises
        ------
        TypeError, ValueError
            If it is text and there is no tokenizer, empty, or outside the vocabulary.
        """
        if self.pair is not None:
            ids: IntArray = self.pair.encode(prompt)
            return ids
        return checked_prompt(prompt, self.vocab_size)

    def words(self, ids: Any) -> dict[int, str] | None:
        """Return display strings of token ids, where a tokenizer knows them."""
        if self.pair is None:
            return None
        found: dict[int, str] = self.pair.token_strings(sorted({int(i) for i in ids if i >= 0}))
        return found


def claimed_target(target: Any, end_ids: Any = None) -> ClaimedTarget:
    """Return what an audit's ``target=`` stands for: a pair, a model, or a Hugging Face model."""
    from specviz.models.model import as_model

    pair = None
    if hasattr(target, "token_strings") and hasattr(target, "target"):
        pair, target = target, target.target
    known = any(hasattr(target, name) for name in ("session", "vocab_size", "config"))
    if not known and not isinstance(target, (str, Path)):  # a name has a sentence of its own
        raise TypeError(
            f"target must be a Pair, a TabularModel or TabularPair, or a Hugging Face causal "
            f"language model in memory, got {target!r:.60}"
        )
    model = as_model(target, role="target")
    ends = (pair.stop_ids if pair is not None else model.eos_ids) if end_ids is None else end_ids
    return ClaimedTarget(model, int(model.vocab_size), frozenset(int(i) for i in ends), pair)


def checked_prompt(prompt: Any, vocab_size: int | None = None) -> IntArray:
    """Return token ids ``(k,)``, or say what a prompt must be."""
    if isinstance(prompt, (str, bytes)) or prompt is None:
        raise TypeError(f"prompt must be a list of token ids here, got {prompt!r:.60}")
    ids = np.asarray(prompt)
    if ids.ndim != 1 or not len(ids) or ids.dtype.kind not in "iu":
        raise ValueError(f"prompt must be a non-empty list of token ids, got {prompt!r:.60}")
    if ids.min() < 0 or (vocab_size is not None and ids.max() >= vocab_size):
        raise ValueError(f"prompt has an id outside the vocabulary: {prompt!r:.60}")
    return ids.astype(np.int64)


class ModelDistribution:
    """Emitted tokens so far → the model's distribution of the next, after every sampling setting.

    Each context is computed once; contexts asked for together go through the model in batches.

    Parameters
    ----------
    logits : LogitCache
        The model after one prompt.
    sampling : Sampling
        The settings.
    role : {"target", "draft"}
        For an error.
    near : float, optional
        Gap between logits that counts as a tie; ties are counted in ``ties``. By default none are
        looked for.
    reading : {"some", "all"}, optional
        How ties are read (:mod:`specviz.lossless.audit.ties`); by default as this package breaks
        them.
    seen : mapping
        For ``"some"``: how often each token came after each beginning.
    """

    def __init__(
        self, logits: Any, sampling: Sampling, role: str = "target", *, near: float | None = None,
        reading: str | None = None, seen: Seen | None = None,
    ) -> None:  # fmt: skip
        self._logits, self._sampling, self._role = logits, sampling, role
        self._near, self._reading, self._seen = near, reading, seen or {}
        self.ties = TieCount()

    def __call__(self, prefix: Prefix) -> FloatArray:
        """Return the distribution ``(vocab,)`` after one context."""
        distribution: FloatArray = self.many([prefix])[0]
        return distribution

    def many(self, prefixes: Sequence[Prefix]) -> FloatArray:
        """Return distributions ``(k, vocab)``."""
        from specviz.decoding.sampling import logits_to_distributions

        past = [np.append(self._logits.prompt, prefix).astype(np.int64) for prefix in prefixes]
        whose = (
            f"after {len(past[0]) if past else 0} tokens (the prompt's included), the {self._role}"
        )
        logits = self._logits.rows(list(prefixes))
        found: FloatArray = logits_to_distributions(logits, self._sampling, past, whose)
        if self._near is None or not truncates(self._sampling):
            return found
        ties = find_ties(logits, found, self._sampling, past, self._near)
        for row, (prefix, tie) in enumerate(zip(prefixes, ties, strict=True)):
            self.ties.add(tie, prefix)
            if tie is not None and self._reading == "all":
                found[row] = all_kept(found[row], tie)
            elif tie is not None and self._reading == "some":
                found[row] = shared_as_seen(found[row], tie, self._seen.get(prefix, {}))
        return found


class PromptTarget:
    """The target's distribution after one prompt, and its tree, grown when first needed.

    Parameters
    ----------
    claimed : ClaimedTarget
        The model.
    prompt : IntArray
        ``(k,)`` ids.
    length : int
        Tokens per text.
    sampling : Sampling
        The settings.
    draft : Model or None
        Adds the draft's distribution.
    progress : bool
        Show a bar.
    """

    def __init__(
        self, claimed: ClaimedTarget, prompt: IntArray, length: int, sampling: Sampling, draft: Any,
        progress: bool,
    ) -> None:  # fmt: skip
        self.claimed, self.prompt, self.length, self.sampling = claimed, prompt, length, sampling
        self.draft, self._progress = draft, progress

    @cached_property
    def _logits(self) -> Any:
        from specviz.decoding.replicas.logit_cache import LogitCache

        return LogitCache(self.claimed.model, self.prompt, self.claimed.vocab_size)

    @cached_property
    def _distribution(self) -> ModelDistribution:
        return ModelDistribution(self._logits, self.sampling, near=near_gap(self.claimed.model))

    @cached_property
    def tree(self) -> PrefixTree:
        """The contexts of the first ``length`` tokens."""
        return self._grown(self._distribution)

    @property
    def ties(self) -> TieCount:
        """The ties among the contexts of the tree."""
        return self._distribution.ties

    def tree_read(self, reading: str, seen: Seen) -> PrefixTree:
        """Return the tree with ties read in another way."""
        return self._grown(
            ModelDistribution(
                self._logits, self.sampling, near=near_gap(self.claimed.model), reading=reading,
                seen=seen,
            )
        )  # fmt: skip

    def _grown(self, distribution: ModelDistribution) -> PrefixTree:
        return grow(
            distribution, self.claimed.vocab_size, self.length, end_ids=self.claimed.end_ids,
            progress=self._progress,
        )  # fmt: skip

    @cached_property
    def draft_distribution(self) -> ConditionalDistribution | None:
        """The draft's distribution, where it is known."""
        from specviz.decoding.replicas.logit_cache import LogitCache

        if self.draft is None:
            return None
        logits = LogitCache(self.draft, self.prompt, self.claimed.vocab_size)
        distribution = ModelDistribution(logits, self.sampling, "draft")
        return ConditionalDistribution(distribution, self.claimed.vocab_size, "draft")


class Teacher:
    """Scores texts with a model, each in one teacher-forced pass (long ones in pieces).

    Parameters
    ----------
    target : ClaimedTarget
        Whose distribution the texts are held to.
    draft : Model or tabular model, optional
        Adds log p/q.
    reading : {"some", "all"}, optional
        How ties are read (:mod:`specviz.lossless.audit.ties`); by default as this package breaks
        them. With "some", tied tokens are scored as one.
    """

    def __init__(
        self, target: ClaimedTarget, draft: Any = None, reading: str | None = None
    ) -> None:
        from specviz.decoding.hf.target import open_session

        self.ties = TieCount()
        self._near, self._reading = near_gap(target.model), reading
        self._vocab_size = target.vocab_size
        self._target = open_session(target.model, target.vocab_size)
        self._draft = None if draft is None else open_session(draft, target.vocab_size)

    def score(self, prompt: IntArray, tokens: IntArray, sampling: Sampling) -> Scores:
        """Return the scores of one text.

        Raises
        ------
        ValueError
            If an id is outside the vocabulary, or the text is longer than the context.
        """
        outside = np.flatnonzero((tokens < 0) | (tokens >= self._vocab_size))
        if len(outside):
            raise ValueError(
                f"a text has id {tokens[outside[0]]} at position {outside[0]}, outside the "
                f"target's vocabulary of {self._vocab_size:,}"
            )
        limit = self._target.context_length
        if limit is not None and len(prompt) + len(tokens) > limit + 1:
            raise ValueError(
                f"a text has {len(prompt) + len(tokens)} tokens with its prompt, the target's "
                f"context holds {limit}: cut it"
            )
        sessions = [self._target, self._draft] if self._draft is not None else [self._target]
        for session in sessions:
            session.begin()
        piece = max(1, AT_ONCE // self._vocab_size)
        parts = []
        for first in range(0, len(tokens), piece):
            some = tokens[first : first + piece]
            ties: list[Tie | None] = []
            p, *q = (
                self._distributions(s, prompt, tokens, first, some, sampling, ties)
                for s in sessions
            )
            if any(tie is not None for tie in ties):
                p, q, some = self._read(p, q, some, ties)
            parts.append(score_tokens(p, some, q[0] if q else None))
        return _one_text(Scores.join(parts))

    def _read(
        self, p: FloatArray, q: list[FloatArray], tokens: IntArray, ties: list[Tie | None]
    ) -> tuple[FloatArray, list[FloatArray], IntArray]:
        """Return distributions and tokens with ties read as asked."""
        tokens = tokens.copy()
        for row, tie in enumerate(ties):
            if tie is None:
                continue
            if self._reading == "all":
                p[row] = all_kept(p[row], tie)
            elif self._reading == "some":
                for distribution in (p, *q):
                    distribution[row] = as_one(distribution[row], tie)
                if tokens[row] in tie.tokens:
                    tokens[row] = tie.tokens[0]
        return p, q, tokens

    def _distributions(
        self, session: Any, prompt: IntArray, tokens: IntArray, first: int, some: IntArray,
        sampling: Sampling, ties: list[Tie | None],
    ) -> FloatArray:  # fmt: skip
        """Return the distributions ``(len(some), vocab)`` before each token of a piece."""
        from specviz.decoding.sampling import logits_to_distributions

        text = np.concatenate([prompt, tokens[:first]])
        chain = Draft.chain(some[:-1].tolist(), None, self._vocab_size)
        logits = session.verify(text[session.length :], chain)
        session.keep(list(range(len(chain))))
        past = None
        if sampling.repetition_penalty != 1:
            past = [np.concatenate([text, some[:i]]) for i in range(len(some))]
        role = "target" if session is self._target else "draft"
        whose = f"after {len(text)} tokens (the prompt's included), the {role}"
        found: FloatArray = logits_to_distributions(logits, sampling, past, whose)
        if session is self._target and truncates(sampling):
            ties.extend(find_ties(logits, found, sampling, past, self._near))
            for i, tie in enumerate(ties):
                self.ties.add(tie, tokens[: first + i].tolist() if tie is not None else ())
        return found


def _one_text(scores: Scores) -> Scores:
    zero = np.zeros(len(scores), dtype=np.int64)
    return Scores(scores.p, scores.below, zero, scores.log_p, scores.log_ratio)
