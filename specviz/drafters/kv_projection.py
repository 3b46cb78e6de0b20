"""Projected keys and values: the target reads the draft's cache through a linear map. Lossy.

"The draft has read the text already, so spare the target the reading." Where the two share a
backbone that is exact (:mod:`specviz.drafters.early_exit`); between two models it is not: the
target's distribution of the next token is then a distribution given other keys and values. The
rounds look right, ``trace.check()`` follows every decision, and the text still does not have the
target's distribution.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

import numpy as np
import torch
from tqdm.auto import trange

from specviz.core import checks
from specviz.core.contract import Context, Draft, DrafterTraits, IntArray, ModelPair, Target
from specviz.core.draws import Draws, invert
from specviz.decoding.hf.cache import cache_argument, read_rows
from specviz.decoding.hf.target import HFTarget
from specviz.drafters.draft_model import (
    AdaptiveGamma,
    DraftModel,
    DraftModelSession,
    draft_model_of,
)
from specviz.models.cache_projection import (
    CacheProjection,
    check_rotation,
    fit,
    flatten,
    shape_of,
    unflatten,
)

AT_ONCE = 32
"""Number of texts the target writes side by side."""

NEEDS_MODELS = "KVProjection needs two Hugging Face models: a table has no keys and values"

_fitted: WeakKeyDictionary[Any, WeakKeyDictionary[Any, CacheProjection]] = WeakKeyDictionary()


@dataclass(frozen=True)
class KVProjection:
    """Draft with the draft model, and project its cache into the target's: not lossless.

    Before the first verification the target's keys and values of the prompt are made from the
    draft's by a linear map, instead of running the target over it; after each round those of the
    kept tokens are replaced likewise. So the target only ever computes what it scores.

    Parameters
    ----------
    gamma : int or AdaptiveGamma
        How many tokens to propose per round.
    projection : CacheProjection, optional
        The map (:func:`fit_projection`); by default one is fitted, in seconds, to texts that the
        target writes, when the first text begins.
    model : optional
        The draft model; the pair's own by default.

    Raises
    ------
    TypeError, ValueError
        If an argument is out of range.

    Examples
    --------
    >>> KVProjection(gamma=2).traits.lossless
    False
    """

    name: ClassVar[str] = "kv_projection"
    traits: ClassVar[DrafterTraits] = DrafterTraits(lossless=False)
    noise: ClassVar[str] = "draft"

    gamma: int | AdaptiveGamma = 4
    _: KW_ONLY
    projection: CacheProjection | None = None
    model: Any = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "gamma", DraftModel(self.gamma).gamma)
        if self.projection is not None and not isinstance(self.projection, CacheProjection):
            raise TypeError(
                f"projection must come from fit_projection() or CacheProjection.load(), "
                f"got {self.projection!r}"
            )

    @property
    def depth(self) -> int:
        """How many tokens the first round proposes."""
        return DraftModel(self.gamma).depth

    def start(self, pair: ModelPair, target: Target, prompt: IntArray) -> KVProjectionSession:
        """Open the draft model with an empty cache; fit the map if there is none.

        Raises
        ------
        ValueError
            If there is no draft model, a model has no cache of keys and values, or the map was
            fitted to models of other shapes.
        """
        draft = DraftModel(self.gamma, model=self.model).start(pair, target, prompt).model
        if not (isinstance(target, HFTarget) and isinstance(draft, HFTarget)):
            raise ValueError(NEEDS_MODELS)
        check_rotation(draft.model)
        check_rotation(target.model)
        projection = self.projection
        if projection is None:
            known = _fitted.setdefault(target.model, WeakKeyDictionary())
            if draft.model not in known:
                known[draft.model] = fit_projection(pair, model=self.model)
            projection = known[draft.model]
        _check_fits(projection, draft.model, target.model)
        return KVProjectionSession(self, draft, target, projection)

    def settings(self) -> dict[str, Any]:
        """Return what a trace says of this drafter."""
        return {**DraftModel(self.gamma).settings(), "name": self.name}


class KVProjectionSession(DraftModelSession):
    """One text whose target is given keys and values that it did not compute."""

    model: HFTarget

    def __init__(
        self, recipe: KVProjection, model: HFTarget, target: HFTarget, projection: CacheProjection
    ) -> None:
        super().__init__(recipe, model)
        self.target, self.projection = target, projection
        self._projected = 0

    def propose(self, context: Context, draws: Draws) -> Draft:
        """Draw up to gamma tokens; the target is given what the draft has read of the text."""
        draft = super().propose(context, draws)
        self._project(len(context.tokens) - 1)  # the last token of the text stays to be fed
        return draft

    def commit(self, emitted: IntArray, path: Sequence[int]) -> None:
        """Forget what was not accepted; replace the target's keys and values of the rest."""
        super().commit(emitted, path)
        self._project(self.target.length)

    def _project(self, end: int) -> None:
        """Replace the target's keys and values of the tokens before ``end`` not replaced yet."""
        own, target, start = self.model, self.target, self._projected
        end = min(end, own.length)
        if end <= start:
            return
        with torch.inference_mode():
            numbers = flatten(read_rows(own.cache, start, end), own.model, start)
            numbers = self.projection(numbers.to(target.device))
            shape, dtype = self.projection.target_shape, target.model.dtype
            target.write_rows(start, unflatten(numbers, shape, target.model, start, dtype))
        self._projected = end

    def settings(self) -> dict[str, Any]:
        """Return what a trace says of this drafter, and how much the map explains."""
        return {**super().settings(), "explained": round(self.projection.explained, 6)}


def fit_projection(
    pair: Any,
    texts: Sequence[Any] | None = None,
    *,
    tokens: int = 2048,
    model: Any = None,
    ridge: float = 1e-3,
    seed: int = 0,
    progress: bool = True,
) -> CacheProjection:
    """Fit the linear map from the draft's keys and values to the target's, by least squares.

    Parameters
    ----------
    pair : Pair
        Target and draft.
    texts : sequence of str or of token ids, optional
        What to fit to; by default texts that the target writes, starting from random tokens.
    tokens : int
        How many tokens the target writes, if it does.
    model : optional
        The draft model; the pair's own by default.
    ridge : float
        Regularisation, as a share of the inputs' mean variance.
    seed : int
        Of what the target writes.
    progress : bool
        Show a progress bar on runs of over two seconds.

    Returns
    -------
    CacheProjection
        Save and load it with its own methods.

    Raises
    ------
    ValueError
        If there are fewer than 20 tokens to fit to, or no draft model.

    Examples
    --------
    ::

        projection = fit_projection(pair)
        projection.save("kv.safetensors")
        sv.generate(pair, "Once", drafter=sv.KVProjection(projection=projection))
    """
    checks.seed(seed)
    draft = draft_model_of(pair, model)
    if hasattr(draft, "session") or hasattr(pair.target, "session"):
        raise ValueError(NEEDS_MODELS)
    for either in (draft, pair.target):
        check_rotation(either.model)
    if texts is None:
        batches = _written(pair.target, tokens, seed, progress)
    elif isinstance(texts, (str, bytes)):
        raise TypeError("texts must be a list of texts, got one text: put it in brackets")
    else:
        batches = [pair.encode(text) for text in texts]
    limit = min(_context(pair.target), _context(draft))
    sessions = [HFTarget(m, pair.vocab_size) for m in (draft, pair.target)]
    numbers: list[list[torch.Tensor]] = [[], []]  # of the draft, of the target
    shapes = []
    for ids in batches:
        for session, seen in zip(sessions, numbers, strict=True):
            session.begin()
            session.verify(ids[:limit], Draft.empty(pair.vocab_size))
            rows = read_rows(session.cache, 0, session.length)
            shapes.append(shape_of(rows))
            seen.append(flatten(rows, session.model, 0).cpu())
    return fit(torch.cat(numbers[0]), torch.cat(numbers[1]), shapes[0], shapes[1], ridge=ridge)


@torch.inference_mode()
def _written(target: Any, tokens: int, seed: int, progress: bool) -> list[IntArray]:
    """Return texts that the target writes at temperature 1, side by side."""
    length = max(2, min(-(-tokens // AT_ONCE), _context(target)))
    rng = np.random.default_rng(seed)
    model, name = target.model, cache_argument(target.model) or "cache"
    ids = rng.integers(0, target.vocab_size, (AT_ONCE, 1))  # (AT_ONCE, length so far)
    cache: dict[str, Any] = {}
    for _ in trange(length - 1, desc="writing", unit="token", delay=2, leave=False,
                    disable=not progress):  # fmt: skip
        out = model(torch.as_tensor(ids[:, -1:], device=model.device), use_cache=True, **cache)
        cache = {name: getattr(out, "cache", None) or out.past_key_values}
        p = torch.softmax(out.logits[:, -1].double(), -1).cpu().numpy()  # (AT_ONCE, vocab)
        drawn = [invert(row.cumsum(), u) for row, u in zip(p, rng.random(AT_ONCE), strict=True)]
        ids = np.concatenate([ids, np.array(drawn)[:, None]], axis=1)
    return list(ids)


def _context(model: Any) -> int:
    return int(model.context_length or 2**31)


def _check_fits(projection: CacheProjection, draft: Any, target: Any) -> None:
    for role, model, shape in (
        ("draft", draft, projection.draft_shape),
        ("target", target, projection.target_shape),
    ):
        own = _cache_shape(model)
        if own != shape:
            raise ValueError(
                f"projection was fitted to another {role}: (layers, heads, head_dim) {shape}, "
                f"this one has {own}"
            )


def _cache_shape(model: Any) -> tuple[int, int, int]:
    """Return (layers, heads, head_dim) of a model's cache, as its config states them."""
    config = model.config.get_text_config(decoder=True)
    heads = int(getattr(config, "num_key_value_heads", None) or config.num_attention_heads)
    dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    return int(config.num_hidden_layers), heads, int(dim)
