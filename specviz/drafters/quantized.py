"""Rounded weights as a draft: the target itself in int8, or the draft model in int8."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

from specviz.core import checks
from specviz.core.contract import DrafterTraits, IntArray, ModelPair, Target
from specviz.decoding.hf.target import is_fast, open_session
from specviz.drafters.draft_model import AdaptiveGamma, DraftModel, DraftModelSession
from specviz.models.model import Model
from specviz.models.quantize import BITS, quantize

KINDS = ("draft", "target")

_made: WeakKeyDictionary[Any, dict[int, Model]] = WeakKeyDictionary()


@dataclass(frozen=True)
class Quantized:
    """Draft with an int8 version of the pair's draft, or of the target itself.

    The target as its own draft agrees with itself nearly always, but a draft token costs about
    as much as a target token: high acceptance, poor cost ratio. The draft model in int8 proposes
    nearly what it proposes in float; how much cheaper it is depends on its size.

    The copy is made when a text begins, once for each model; the models of the pair stay as
    they are (:func:`specviz.models.quantize.quantize`).

    Parameters
    ----------
    gamma : int or AdaptiveGamma
        How many tokens to propose per round.
    of : {"draft", "target"}
        Which of the pair's models is rounded.
    bits : int
        8, 4 or 2.
    noise : {"draft", "target"}
        As in :class:`~specviz.drafters.draft_model.DraftModel`.

    Raises
    ------
    TypeError, ValueError
        If an argument is out of range.

    Examples
    --------
    >>> Quantized(gamma=3, of="target").settings()
    {'name': 'quantized', 'gamma': 3, 'noise': 'draft', 'of': 'target', 'bits': 8}
    """

    name: ClassVar[str] = "quantized"

    gamma: int | AdaptiveGamma = 4
    _: KW_ONLY
    of: str = "draft"
    bits: int = 8
    noise: str = "draft"

    def __post_init__(self) -> None:
        object.__setattr__(self, "gamma", self._as_draft_model(None).gamma)
        checks.one_of("of", self.of, KINDS)
        checks.one_of("bits", self.bits, BITS)

    def _as_draft_model(self, model: Any) -> DraftModel:
        """Return the recipe that drafts with the copy."""
        return DraftModel(self.gamma, model=model, noise=self.noise)

    @property
    def depth(self) -> int:
        """How many tokens the first round proposes."""
        return self._as_draft_model(None).depth

    @property
    def traits(self) -> DrafterTraits:
        """Coupled to the target's draws if it shares their noise."""
        return self._as_draft_model(None).traits

    def start(self, pair: ModelPair, target: Target, prompt: IntArray) -> DraftModelSession:
        """Round the weights, unless that has been done, and open the copy with an empty cache.

        Raises
        ------
        ValueError
            If the pair has no draft model to round.
        TypeError
            If the model is no Hugging Face model.
        """
        original = pair.target if self.of == "target" else pair.draft
        if original is None:
            raise ValueError(
                "the pair has no draft model to quantize: give it one (draft=…), or quantize the "
                "target with Quantized(of='target')"
            )
        small = _copy_of(original, self.bits)
        return DraftModelSession(self, open_session(small, pair.vocab_size, fast=is_fast(target)))

    def settings(self) -> dict[str, Any]:
        """Return what a trace says of this drafter."""
        plain = self._as_draft_model(None).settings()
        return {**plain, "name": self.name, "of": self.of, "bits": self.bits}


def _copy_of(original: Any, bits: int) -> Model:
    """Return the rounded copy, made once for each model in memory and number of bits."""
    if not isinstance(original, Model):
        return quantize(original, bits)  # says why not
    copies = _made.setdefault(original.model, {})
    if bits not in copies:
        copies[bits] = quantize(original, bits)
    return copies[bits]
