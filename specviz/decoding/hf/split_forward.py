"""Half a pass: the first layers of a model now, the others later, none of them twice.

Self-speculative decoding (Zhang et al. 2024; LayerSkip, Elhoushi et al. 2024) drafts with the
target's own first layers and head. The keys and values of those layers are the target's own, so
its cache is shared: what a proposal left there stays, and verification only has to add the other
layers. That is exact, because nothing is approximated: every token goes through every layer once.

The model's own ``forward`` is used for either half, on a second set of the outer modules: in the
lower half the list of layers is cut short; in the upper half the first layers are stand-ins that
hand on the states which the lower half ended with. Parameters and layers are shared, and the model
itself is never changed, so nothing need be put back, whatever happens, and others may go on
using it meanwhile.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from specviz.core.contract import Draft, IntArray
from specviz.decoding.hf.cache import TREE_ATTENTION, UnsupportedModelError, crop_to
from specviz.decoding.hf.forward import HFSession, forward_arguments


@dataclass(frozen=True)
class LayerStack:
    """The parts of a Llama-like model: a stack of layers, then the norm before the head."""

    layers: nn.ModuleList
    norm: nn.Module


def layer_stack_of(model: Any) -> LayerStack:
    """Return the parts of a Llama-like model (Llama, Mistral, Qwen, Gemma, Phi-3, …).

    Raises
    ------
    UnsupportedModelError
        If the model is built in another way, naming its type.
    """
    base: Any = getattr(model, "model", None)
    layers, norm = getattr(base, "layers", None), getattr(base, "norm", None)
    head = model.get_output_embeddings()
    if isinstance(layers, nn.ModuleList) and isinstance(norm, nn.Module) and head is not None:
        return LayerStack(layers, norm)
    kind = str(getattr(model.config, "model_type", type(model).__name__))
    raise UnsupportedModelError(
        f"model type {kind!r} cannot draft by early exit: it is not built like Llama (layers "
        f"in model.layers, then model.norm, then a head); use another drafter, such as "
        f"PromptLookup()"
    )


def check_exit(target: HFSession, layer: int) -> None:
    """Say, before anything runs, why a target cannot draft with its first ``layer`` layers.

    Raises
    ------
    UnsupportedModelError
        If the model is not Llama-like, or its attention takes no mask.
    ValueError
        If there is no such layer, or none would be left to verify with.
    """
    depth = len(layer_stack_of(target.model).layers)
    if not 1 <= layer < depth:
        wanted = f"1 to {depth - 1}" if depth > 1 else "less than that, so there is none"
        raise ValueError(
            f"layer must be {wanted} for this target, which is {depth} layers deep, got {layer}"
        )
    if not target.kind.windows or not target.kind.trees:
        why = target.kind.why or f"its attention is none of {', '.join(TREE_ATTENTION)}"
        raise UnsupportedModelError(
            f"model type {target.kind.model_type!r} cannot draft by early exit: {why}"
        )


class _HandOver(nn.Module):
    """Stands in for a layer that has run already: returns the states it left, whatever comes in."""

    states: Tensor | None = None

    def forward(self, *args: Any, **kwargs: Any) -> Tensor | None:
        return self.states


class _Seen(nn.Module):
    """A norm that remembers what came in: the states of the last layer before it."""

    states: Tensor | None = None

    def __init__(self, norm: nn.Module) -> None:
        super().__init__()
        self.norm = norm

    def forward(self, states: Tensor, *args: Any, **kwargs: Any) -> Any:
        self.states = states
        return self.norm(states, *args, **kwargs)


class SplitModel:
    """A model cut in two after its first ``layer`` layers; the model itself stays whole.

    Parameters
    ----------
    model : PreTrainedModel
        Built like Llama.
    layer : int
        How many layers the lower half has.

    Raises
    ------
    UnsupportedModelError
        See :func:`layer_stack_of`.
    """

    def __init__(self, model: Any, layer: int) -> None:
        stack = layer_stack_of(model)
        layers = list(stack.layers)
        self._seen, self._stand_in = _Seen(stack.norm), _HandOver()
        self._lower = _sharing(model, nn.ModuleList(layers[:layer]), self._seen)
        # Stand-ins keep the others at their places: some models look a mask up by place.
        upper = nn.ModuleList([*[self._stand_in] * layer, *layers[layer:]])
        self._upper = _sharing(model, upper, stack.norm)

    def lower(self, arguments: dict[str, Any], *, head: bool) -> tuple[Tensor, Tensor]:
        """Return (states before the norm ``(1, n, hidden)``, logits ``(n, vocab)`` of the exit).

        Without ``head`` there are no rows of logits.
        """
        if head:
            logits: Tensor = self._lower(**arguments).logits[0]
        else:
            arguments.pop("logits_to_keep", None)
            self._lower.model(**arguments)
        states, self._seen.states = self._seen.states, None
        assert states is not None
        return states, logits if head else states[0, :0]

    def upper(self, arguments: dict[str, Any], states: Tensor) -> Tensor:
        """Return logits ``(n, vocab)`` of the whole model, from the lower half's states."""
        self._stand_in.states = states
        try:
            logits: Tensor = self._upper(**arguments).logits[0]
        finally:
            self._stand_in.states = None
        return logits


def _sharing(model: Any, layers: nn.ModuleList, norm: nn.Module) -> Any:
    """Return the model with other layers and another norm; everything else is the same object."""
    base = _twin(model.model, layers=layers, norm=norm)
    return _twin(model, model=base)


def _twin(module: nn.Module, **parts: nn.Module) -> Any:
    other = object.__new__(type(module))
    other.__dict__ = {**module.__dict__, "_modules": {**module._modules, **parts}}
    # What wraps forward (accelerate does) is bound to the first module and would call its parts.
    other.__dict__.pop("forward", None)
    return other


class ExitState:
    """Tokens of one session that went through the first layers and not yet through the rest.

    They follow what the session's cache holds whole. In the first ``layer`` layers the cache has
    their rows too; ``states`` is ``(1, n, hidden)``, what these layers ended with.
    """

    def __init__(self) -> None:
        self.layer = 0
        self._halves: SplitModel | None = None
        self._reset()

    def _reset(self) -> None:
        self.tokens: IntArray = np.zeros(0, dtype=np.int64)
        self.states: Tensor | None = None

    def __len__(self) -> int:
        return len(self.tokens)

    def forget(self, target: HFSession) -> None:
        """Take their rows, and any beyond what the session holds whole, out of the cache."""
        crop_to(target.cache, target.length)
        self._reset()

    def exit_logits(self, target: HFSession, fed: IntArray, layer: int) -> Tensor:
        """Return ``(1, rows of the head)``: what follows ``fed``, seen by the first layers only.

        Raises
        ------
        ValueError, UnsupportedModelError
            See :func:`check_exit`.
        """
        if layer != self.layer or self._halves is None:
            check_exit(target, layer)
            self.forget(target)
            self._halves, self.layer = SplitModel(target.model, layer), layer
        self._agree_with(target, fed[:-1])
        none = Draft.empty(target.vocab_size)
        return self._run_lower(target, fed, len(fed), none, head=True)

    def finish(self, target: HFSession, fed: IntArray, pending: int, draft: Draft) -> Tensor | None:
        """Run the other layers for the tokens at the exit, and all layers for the rest of ``fed``.

        Returns logits ``(1 + n, rows of the head)``, or None where no token at the exit can
        be used (and then none is left there).
        """
        if len(self):
            self._agree_with(target, fed if draft.is_chain else fed[:pending])
        if not len(self):
            return None
        if len(self) < len(fed):  # usually by one: the last proposal was drawn, but not read
            self._run_lower(target, fed, pending, draft, head=False)
        assert self.states is not None and self._halves is not None
        rows = slice(-(1 + len(draft)), None)
        if target.lean is not None:
            states = target.lean_states(
                fed, pending, draft, states=self.states[0], first=self.layer
            )
            logits = target.lean.logits(states[rows])
        else:
            arguments = forward_arguments(target, fed, pending, draft, masked=True)
            logits = self._halves.upper(arguments, self.states)[rows]
        self._reset()
        return logits

    def _agree_with(self, target: HFSession, fed: IntArray) -> None:
        """Forget from the first token on that is not the one in ``fed``."""
        n = min(len(self), len(fed))
        differ = np.flatnonzero(self.tokens[:n] != fed[:n])
        same = int(differ[0]) if len(differ) else n
        if same < len(self):
            crop_to(target.cache, target.length + same)
            self.tokens = self.tokens[:same]
            assert self.states is not None
            self.states = self.states[:, :same] if same else None

    def _run_lower(
        self, target: HFSession, fed: IntArray, pending: int, draft: Draft, *, head: bool
    ) -> Tensor:
        """Run the tokens of ``fed`` that are not at the exit yet; return the last row of logits."""
        done = len(self)
        if target.lean is not None:
            states = target.lean_states(fed, pending, draft, done=done, last=self.layer)
            new, logits = states[None], target.lean.logits(states[-1:]) if head else states[:0]
        else:
            arguments = forward_arguments(
                target, fed, pending, draft, done=done, masked=not draft.is_chain
            )
            assert self._halves is not None
            new, logits = self._halves.lower(arguments, head=head)
        self.states = new if self.states is None else torch.cat([self.states, new], dim=1)
        self.tokens = fed.copy()
        return logits[-1:]
