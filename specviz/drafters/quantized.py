"""Rounded weights as a draft: the target itself in int8, or the draft model in int8."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

from specviz.core.contract import IntArray, Target
from specviz.drafters.draft_model import AdaptiveGamma, DraftModel
from specviz.models.model import Model
from specviz.models.quantize import checked_bits, quantize

KINDS = ("draft", "target")

_made: WeakKeyDictionary[Any, dict[int, Model]] = WeakKeyDictionary()


class Quantized(DraftModel):
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

    name = "quantized"

    def __init__(
        self, gamma: int | AdaptiveGamma = 4, *, of: str = "draft", bits: int = 8,
        noise: str = "draft",
    ) -> None:  # fmt: skip
        super().__init__(gamma, noise=noise)
        if of not in KINDS:
            raise ValueError(f"of must be 'draft' or 'target', got {of!r}")
        self.of = of
        self.bits = checked_bits(bits)

    def begin(self, pair: Any, target: Target, prompt: IntArray) -> None:
        """Round the weights, unless that has been done, and open the copy with an empty cache.

        Raises
        ------
        ValueError
            If the pair has no draft model to round.
        TypeError
            If the model is no Hugging Face model.
        """
        original = getattr(pair, self.of)
        if original is None:
            raise ValueError(
                "the pair has no draft model to quantize: give it one (draft=…), or quantize the "
                "target with Quantized(of='target')"
            )
        self.model = _copy_of(original, self.bits)
        super().begin(pair, target, prompt)

    def settings(self) -> dict[str, Any]:
        """Return what a trace says of this drafter."""
        return {**super().settings(), "of": self.of, "bits": self.bits}


def _copy_of(original: Any, bits: int) -> Model:
    """Return the rounded copy, made once for each model in memory and number of bits."""
    if not isinstance(original, Model):
        return quantize(original, bits)  # says why not
    copies = _made.setdefault(original.model, {})
    if bits not in copies:
        copies[bits] = quantize(original, bits)
    return copies[bits]
