"""Half a pass: the first layers of a model now, the others later, none of them twice.

Self-speculative decoding (Zhang et al. 2024; LayerSkip, Elhoushi et al. 2024) drafts with the
target's own first layers and head. The keys and values of those layers are the target's own, so
its cache is shared: what a proposal left there stays, and verification only has to add the other
layers. That is exact, because nothing is approximated: every token goes through every layer once.

The model's own ``forward`` is used for either half. For the lower half its list of layers is
cut short; for the upper half the first layers are stand-ins that hand on the states which the
lower half ended with. The list is put back when the half is over, whatever happens.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from specviz.core.contract import Draft, IntArray
from specviz.decoding.cache import TREE_ATTENTION, UnsupportedModelError, crop_to
from specviz.decoding.feeding import forward_arguments

if TYPE_CHECKING:
    from specviz.decoding.target import HFTarget


@dataclass(frozen=True)
class Stack:
    """The parts of a Llama-like model: a stack of layers, then the norm before the head."""

    base: nn.Module
    layers: nn.ModuleList
    norm: nn.Module


def stack_of(model: Any) -> Stack:
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
        return Stack(base, layers, norm)
    kind = str(getattr(model.config, "model_type", type(model).__name__))
    raise UnsupportedModelError(
        f"model type {kind!r} cannot draft by early exit: it is not built like Llama (layers "
        f"in model.layers, then model.norm, then a head); use another drafter, such as "
        f"PromptLookup()"
    )


def check_exit(target: HFTarget, layer: int) -> None:
    """Say, before anything runs, why a target cannot draft with its first ``layer`` layers.

    Raises
    ------
    UnsupportedModelError
        If the model is not Llama-like, or its attention takes no mask.
    ValueError
        If there is no such layer, or none would be left to verify with.
    """
    depth = len(stack_of(target.model).layers)
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

    def __init__(self, states: Tensor) -> None:
        super().__init__()
        self._states = states

    def forward(self, *args: Any, **kwargs: Any) -> Tensor:
        return self._states


@contextmanager
def lower_half(stack: Stack, layer: int) -> Iterator[list[Tensor]]:
    """Cut a model down to its first ``layer`` layers, norm and head.

    Yields a list to which each pass appends the states ``(1, n, hidden)`` that the last of these
    layers ended with, before the norm.
    """
    seen: list[Tensor] = []
    hook = stack.norm.register_forward_pre_hook(lambda _, args: seen.append(args[0]))
    try:
        stack.base.layers = nn.ModuleList(list(stack.layers)[:layer])
        yield seen
    finally:
        stack.base.layers = stack.layers
        hook.remove()


@contextmanager
def upper_half(stack: Stack, layer: int, states: Tensor) -> Iterator[None]:
    """Let a model begin after its first ``layer`` layers, with the states ``(1, n, hidden)``.

    The stand-ins keep the others at their places: some models look a layer's mask up by its
    place in the list.
    """
    stand_ins = [_HandOver(states)] * layer
    try:
        stack.base.layers = nn.ModuleList([*stand_ins, *list(stack.layers)[layer:]])
        yield
    finally:
        stack.base.layers = stack.layers


class HalfDone:
    """Tokens of one session that went through the first layers and not yet through the rest.

    They follow what the session's cache holds whole. In the first ``layer`` layers the cache has
    their rows too; ``states`` is ``(1, n, hidden)``, what these layers ended with.
    """

    def __init__(self) -> None:
        self._reset(0)

    def _reset(self, layer: int) -> None:
        self.layer = layer
        self.tokens: IntArray = np.zeros(0, dtype=np.int64)
        self.states: Tensor | None = None

    def __len__(self) -> int:
        return len(self.tokens)

    def forget(self, target: HFTarget) -> None:
        """Take their rows, and any beyond what the session holds whole, out of the cache."""
        crop_to(target.cache, target.length)
        self._reset(0)

    def exit_logits(self, target: HFTarget, fed: IntArray, layer: int) -> Tensor:
        """Return ``(1, rows of the head)``: what follows ``fed``, seen by the first layers only.

        Raises
        ------
        ValueError, UnsupportedModelError
            See :func:`check_exit`.
        """
        check_exit(target, layer)
        if layer != self.layer:
            self.forget(target)
            self.layer = layer
        self._agree_with(target, fed[:-1])
        none = Draft.empty(target.vocab_size)
        return self._run_lower(target, fed, len(fed), none, head=True)

    def finish(self, target: HFTarget, fed: IntArray, pending: int, draft: Draft) -> Tensor | None:
        """Run what is left of the half-done tokens, and of ``fed`` as a whole.

        Returns logits ``(1 + n, rows of the head)``, or None where nothing half-done can be used
        (and then nothing half-done is left).
        """
        self._agree_with(target, fed if draft.is_chain else fed[:pending])
        if not len(self):
            return None
        if len(self) < len(fed):  # usually by one: the last proposal was drawn, but not read
            self._run_lower(target, fed, pending, draft, head=False)
        arguments = forward_arguments(target, fed, pending, draft, masked=True)
        assert self.states is not None
        with upper_half(stack_of(target.model), self.layer, self.states):
            out = target.model(**arguments)
        self._reset(0)
        logits: Tensor = out.logits[0, -(1 + len(draft)) :]
        return logits

    def _agree_with(self, target: HFTarget, fed: IntArray) -> None:
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
        self, target: HFTarget, fed: IntArray, pending: int, draft: Draft, *, head: bool
    ) -> Tensor:
        """Run the tokens of ``fed`` that are not half-done yet; return the last row of logits."""
        stack, done = stack_of(target.model), len(self)
        arguments = forward_arguments(
            target, fed, pending, draft, done=done, masked=not draft.is_chain
        )
        with lower_half(stack, self.layer) as seen:
            if head:
                logits: Tensor = target.model(**arguments).logits[0, -1:]
            else:  # only the states are wanted
                arguments.pop("logits_to_keep", None)
                stack.base(**arguments)
                logits = seen[-1][0, :0]
        new = seen[-1]
        self.states = new if self.states is None else torch.cat([self.states, new], dim=1)
        self.tokens = fed.copy()
        return logits
