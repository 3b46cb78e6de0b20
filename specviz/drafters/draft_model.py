"""A smaller model as the draft: it draws ``gamma`` tokens on its own, each from its q."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, asdict, dataclass
from typing import Any, ClassVar

import numpy as np

from specviz.core.contract import (
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
from specviz.decoding.hf.target import is_fast, open_session
from specviz.decoding.sampling import logits_to_distributions

NOISES = ("draft", "target")


@dataclass(frozen=True)
class AdaptiveGamma:
    """Grow gamma after full acceptance, shrink it after a rejection.

    The heuristic looks at accept counts of *past* rounds only, and every proposal is verified
    under numbers that were never looked at before, so the output distribution is unchanged.
    (Stopping within a round at a low-confidence token and dropping it would change it.)

    Parameters
    ----------
    start, low, high : int
        First gamma, and its bounds.
    up, down : int
        What is added after full acceptance, and taken off after a rejection.

    Examples
    --------
    >>> AdaptiveGamma(start=5).after(gamma=5, proposed=5, accepted=5)
    7
    """

    start: int = 5
    low: int = 1
    high: int = 16
    up: int = 2
    down: int = 1

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ValueError(f"{name} must be a whole number >= 1, got {value!r}")
        if not self.low <= self.start <= self.high:
            raise ValueError(
                f"start must lie between low and high, got low={self.low}, start={self.start}, "
                f"high={self.high}"
            )

    def after(self, gamma: int, proposed: int, accepted: int) -> int:
        """Return the next gamma; a round in which nothing was proposed changes nothing."""
        if proposed == 0:
            return gamma
        step = self.up if accepted == proposed else -self.down
        return min(self.high, max(self.low, gamma + step))


def checked_gamma(gamma: Any) -> int:
    """Return gamma as an int.

    Raises
    ------
    TypeError, ValueError
        If it is not a whole number >= 0.
    """
    if isinstance(gamma, bool) or not isinstance(gamma, (int, np.integer)):
        raise TypeError(f"gamma must be a whole number >= 0 or an AdaptiveGamma, got {gamma!r}")
    if gamma < 0:
        raise ValueError(f"gamma must be >= 0 (0 is target only), got {gamma}")
    return int(gamma)


@dataclass(frozen=True)
class DraftModel:
    """Draft with a model: the bundled draft, the pair's, or one given here.

    Parameters
    ----------
    gamma : int or AdaptiveGamma
        How many tokens to propose per round.
    model : optional
        The draft model; the pair's own by default. It must share the target's vocabulary.
    noise : {"draft", "target"}
        "target" lets the draft race with the target's own noise, for ``verify="coupled"``:
        target and draft then agree with probability at least (1 - TV) / (1 + TV).

    Raises
    ------
    TypeError, ValueError
        If an argument is out of range.

    Examples
    --------
    >>> DraftModel(gamma=3).settings()
    {'name': 'draft_model', 'gamma': 3, 'noise': 'draft'}
    >>> DraftModel(gamma=3) == DraftModel(3)
    True
    """

    name: ClassVar[str] = "draft_model"

    gamma: int | AdaptiveGamma = 4
    _: KW_ONLY
    model: Any = None
    noise: str = "draft"

    def __post_init__(self) -> None:
        if not isinstance(self.gamma, AdaptiveGamma):
            object.__setattr__(self, "gamma", checked_gamma(self.gamma))
        if self.noise not in NOISES:
            raise ValueError(f"noise must be 'draft' or 'target', got {self.noise!r}")

    @property
    def depth(self) -> int:
        """How many tokens the first round proposes."""
        return self.gamma.start if isinstance(self.gamma, AdaptiveGamma) else self.gamma

    @property
    def traits(self) -> DrafterTraits:
        """Coupled to the target's draws if it shares their noise."""
        return DrafterTraits(coupled=self.noise == "target")

    def start(self, pair: ModelPair, target: Target, prompt: IntArray) -> DraftModelSession:
        """Open the draft model with an empty cache.

        Raises
        ------
        ValueError
            If there is no draft model.
        """
        model = self.model if self.model is not None else pair.draft
        if model is None:
            raise ValueError(
                "the pair has no draft model: give it one (draft=…), use another drafter, "
                "or pass gamma=0 for target-only decoding"
            )
        return DraftModelSession(self, open_session(model, pair.vocab_size, fast=is_fast(target)))

    def settings(self) -> dict[str, Any]:
        """Return what a trace says of this drafter."""
        gamma = asdict(self.gamma) if isinstance(self.gamma, AdaptiveGamma) else self.gamma
        return {"name": self.name, "gamma": gamma, "noise": self.noise}


class DraftModelSession(DraftSession):
    """One text drafted by a model.

    Parameters
    ----------
    recipe : DraftModel
        Gamma, noise and what a trace says; a :class:`~.quantized.Quantized` serves as well.
    model : Target
        The draft model's session: a cache of its own.
    """

    def __init__(self, recipe: Any, model: Target) -> None:
        self.recipe, self.model = recipe, model
        model.begin()
        self._gamma: int = recipe.depth
        self._text_length, self._proposed = 0, 0

    @property
    def gamma(self) -> int:
        """How many tokens the next round proposes, where there is room."""
        return self._gamma

    @property
    def cache_length(self) -> int:
        """How many tokens the draft's cache holds."""
        return self.model.length

    def settings(self) -> dict[str, Any]:
        """Return what a trace says of this drafter."""
        settings: dict[str, Any] = self.recipe.settings()
        return settings

    def propose(self, context: Context, draws: Draws) -> Draft:
        """Draw up to gamma tokens one by one, feeding each to the draft model."""
        model = self.model
        self._text_length, self._proposed = len(context.tokens), 0
        depth = min(self._gamma, context.room)
        if model.context_length is not None:
            depth = min(depth, model.context_length - len(context.tokens))
        vocab_size = model.vocab_size
        text, tokens, used = context.tokens, [], []
        for node in range(depth):
            # After full acceptance the cache lacks two tokens: the last proposal was never fed.
            pending = text[model.length :]
            logits = model.verify(pending, Draft.empty(vocab_size))  # (1, vocab)
            whose = f"after {len(text)} tokens, the draft"
            q = logits_to_distributions(logits, context.sampling, [text], whose)[0]  # (vocab,)
            token = self._draw(q, context, draws, len(text), node)
            tokens.append(token)
            used.append(q)
            text = np.append(text, token)
            if token in context.stop_ids:  # nothing can follow; a choice of later nodes only
                break
        if not tokens:
            return Draft.empty(vocab_size)
        self._proposed = len(tokens)
        one_hot = context.sampling.greedy
        return Draft.chain(tokens, None if one_hot else np.stack(used), vocab_size)

    def _draw(self, q: FloatArray, context: Context, draws: Draws, position: int, node: int) -> int:
        if context.sampling.greedy:
            return int(q.argmax())
        if self.recipe.noise == "target":
            return draws.race(q, position, node)
        return draws.categorical(q, position, node, Purpose.DRAFT)

    def commit(self, emitted: IntArray, path: Sequence[int]) -> None:
        """Forget the proposals that were not accepted; adapt gamma."""
        self.model.crop(min(self.model.length, self._text_length + len(path)))
        if isinstance(self.recipe.gamma, AdaptiveGamma):
            self._gamma = self.recipe.gamma.after(self._gamma, self._proposed, len(path))
        self._text_length, self._proposed = self.model.length, 0  # until it proposes again
