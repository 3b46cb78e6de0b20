"""A smaller model as the draft: it draws ``gamma`` tokens on its own, each from its q."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, asdict, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from specviz.core import checks
from specviz.core.contract import (
    Context,
    Draft,
    DrafterTraits,
    DraftSession,
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
            checks.whole(name, value, 1)
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


def draft_model_of(pair: ModelPair, own: Any = None) -> Any:
    """Return the draft model: a drafter's own if it has one, else the pair's.

    Raises
    ------
    ValueError
        If there is neither.
    """
    model = own if own is not None else pair.draft
    if model is None:
        raise ValueError(
            "the pair has no draft model: load one with draft=…, use a drafter that needs none, "
            "such as PromptLookup(), or pass gamma=0 for target-only decoding"
        )
    return model


def draw_chain(
    logits_after: Callable[[IntArray], NDArray[Any]],
    depth: int,
    context: Context,
    draws: Draws,
    vocab_size: int,
    *,
    noise: str = "draft",
) -> Draft:
    """Draw up to ``depth`` tokens one after another, each from its own q: a chain.

    Parameters
    ----------
    logits_after : callable
        The text and the tokens drawn so far → the draft's logits ``(vocab,)``. It is asked once
        for each token, in order.
    depth : int
        How many tokens to draw; fewer if one of them ends the text.
    context, draws
        As the session's :meth:`~specviz.core.contract.DraftSession.propose` got them.
    vocab_size : int
        Width of q.
    noise : {"draft", "target"}
        See :class:`DraftModel`.
    """
    text, greedy = context.tokens, context.sampling.greedy
    tokens, used = [], []
    for node in range(depth):
        whose = f"after {len(text)} tokens, the draft"
        logits = logits_after(text)  # (vocab,)
        q = logits_to_distributions(logits[None], context.sampling, [text], whose)[0]  # (vocab,)
        if greedy:
            token = int(q.argmax())
        elif noise == "target":
            token = draws.race(q, len(text), node)
        else:
            token = draws.categorical(q, len(text), node, Purpose.DRAFT)
        tokens.append(token)
        used.append(q)
        text = np.append(text, token)
        if token in context.stop_ids:
            break  # Why may it stop here? Nothing is dropped: only later nodes do not exist.
    # At temperature 0 each token is a deterministic choice: one-hot, no rows of q.
    return Draft.chain(tokens, None if greedy or not used else np.stack(used), vocab_size)


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
            gamma = checks.whole(
                "gamma", self.gamma, 0, also="an AdaptiveGamma", hint="0 is target only"
            )
            object.__setattr__(self, "gamma", gamma)
        checks.one_of("noise", self.noise, NOISES)

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
        model = draft_model_of(pair, self.model)
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

    def propose(self, context: Context, draws: Draws) -> Draft:
        """Draw up to gamma tokens one by one, feeding each to the draft model."""
        model, text = self.model, context.tokens
        depth = min(self._gamma, context.room)
        if model.context_length is not None:
            depth = min(depth, model.context_length - len(text))
        nothing = Draft.empty(model.vocab_size)

        def logits_after(text: IntArray) -> NDArray[Any]:
            # After full acceptance the cache lacks two tokens: the last proposal was never fed.
            return model.verify(text[model.length :], nothing)[0]  # (vocab,)

        draft = draw_chain(
            logits_after, depth, context, draws, model.vocab_size, noise=self.recipe.noise
        )
        self._text_length, self._proposed = len(text), len(draft)
        return draft

    def commit(self, emitted: IntArray, path: Sequence[int]) -> None:
        """Forget the proposals that were not accepted; adapt gamma."""
        self.model.crop(min(self.model.length, self._text_length + len(path)))
        if isinstance(self.recipe.gamma, AdaptiveGamma):
            self._gamma = self.recipe.gamma.after(self._gamma, self._proposed, len(path))
        self._text_length, self._proposed = self.model.length, 0  # until it proposes again
