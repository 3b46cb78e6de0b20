"""A Hugging Face causal language model as a :class:`~specviz.core.contract.Target`.

One pass scores everything the round needs: the tokens the cache has not seen yet (at first the
whole prompt, later one or two) and all proposals. What was proposed but not accepted is then taken
out of the cache again. A chain needs no mask but the causal one; a tree needs a mask that shows
each node its ancestors only, and positions that count depth.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from specviz.core.contract import ROOT, Draft, IntArray, Target
from specviz.decoding.hf.cache import (
    CacheKind,
    UnsupportedModelError,
    cache_argument,
    capabilities,
    crop_to,
    gather,
    new_cache,
    refuse,
    write_rows,
)
from specviz.decoding.hf.forward import additive, fed_tokens, forward_arguments, visibility
from specviz.decoding.hf.lean import JointLayer, lean_of
from specviz.decoding.hf.selftest import exit_tried, lean_agrees, tried
from specviz.decoding.hf.split_forward import ExitState, check_exit
from specviz.models.model import as_model, execution_device

if TYPE_CHECKING:
    from specviz.models.model import Model


def open_session(model: Any, vocab_size: int | None = None, *, fast: bool = True) -> Target:
    """Return a new session with ``model``: a cache of its own, nothing in it.

    Parameters
    ----------
    model : Model, or an object with a ``session`` method
        Tabular models bring their own sessions; anything else is a Hugging Face model.
    vocab_size : int, optional
        Width of the logits; by default the model's own.
    fast : bool
        See :class:`HFTarget`.

    Returns
    -------
    Target
        Ready for a prompt.
    """
    if hasattr(model, "session"):
        return model.session(vocab_size)
    return HFTarget(as_model(model), vocab_size, fast=fast)


def is_fast(session: Any) -> bool:
    """Whether a session was opened to be fast; what a drafter opens beside it follows suit."""
    return bool(getattr(session, "fast", True))


def forward_of(session: Any) -> str | None:
    """Return which forward pass a session runs: "lean" or "transformers"; None for a table."""
    if not isinstance(session, HFTarget):
        return None
    return "transformers" if session.lean is None else "lean"


class HFTarget:
    """Score tokens with a causal language model, and take the last ones back.

    Parameters
    ----------
    model : specviz.models.model.Model
        The model and what is known about it.
    vocab_size : int, optional
        Width of the logits returned. Wider than the model's own: the tail is ``-inf``. Narrower:
        the tail is cut (embeddings of one family padded to different sizes).
    fast : bool
        Take the forward pass that is written out in :mod:`.lean`, where the model is one of its
        families and a short trial agrees. False: always the model's own ``forward``.

    Attributes
    ----------
    lean : LeanModel or None
        The forward pass that is used; None: the model's own.

    Raises
    ------
    UnsupportedModelError
        If the model's cache cannot be rolled back, by its config or by a short trial, which is
        held once for each model.
    ValueError
        If the model is in training mode.

    Examples
    --------
    >>> from transformers import GPT2Config, GPT2LMHeadModel
    >>> from specviz.models.model import as_model
    >>> sizes = {"n_layer": 1, "n_head": 1, "n_embd": 4, "vocab_size": 8, "n_positions": 16}
    >>> target = HFTarget(as_model(GPT2LMHeadModel(GPT2Config(**sizes))))
    >>> target.verify(np.array([1, 2, 3]), Draft.chain([5, 6], None, 8)).shape
    (3, 8)
    >>> target.keep([0])  # only the first proposal was accepted
    """

    def __init__(self, model: Model, vocab_size: int | None = None, *, fast: bool = True) -> None:
        self.model = model.model
        self.vocab_size = int(model.vocab_size if vocab_size is None else vocab_size)
        self.context_length = model.context_length
        self.kind: CacheKind = capabilities(self.model)
        refuse(self.kind)
        if self.model.training:
            raise ValueError("the model is in training mode; call its eval() method first")
        self.device = execution_device(self.model)
        self.takes = frozenset(inspect.signature(self.model.forward).parameters)
        self.cache_argument = cache_argument(self.model)
        embeddings = getattr(self.model.get_input_embeddings(), "weight", None)
        self.known_ids = model.vocab_size if embeddings is None else len(embeddings)
        self.stand_in = min(model.eos_ids, default=0)
        self._layers: tuple[int, ...] = ()
        self._exit_state = ExitState()
        self.fast, self.lean = fast, lean_of(self.model) if fast else None
        self.begin()
        if self.lean is not None and not lean_agrees(self):
            self.lean = None
            self.begin()
        self.kind = tried(self)
        refuse(self.kind)

    def begin(self) -> None:
        """Forget everything."""
        self.cache = new_cache() if self.lean is None else new_cache(JointLayer)
        self.length = 0
        self.features: torch.Tensor | None = None
        """``(kept, layers, hidden)``: see :meth:`capture`."""
        self.verified: Draft | None = None
        self._exit_state.forget(self)

    def capture(self, layers: Sequence[int]) -> None:
        """Keep what these layers say of every token, for drafters that read it.

        After each :meth:`keep`, ``features`` is ``(kept, len(layers), hidden)``: a row for every
        token of the last pass that was kept, the pending tokens first, then the accepted path.
        Layer k is the output of the k-th decoder layer, counted from 1; the last one is what the
        model's head sees (after the final norm).

        Raises
        ------
        ValueError
            If the model has no such layer.
        """
        depth = int(self.model.config.get_text_config().num_hidden_layers)
        for layer in layers:
            if not 1 <= layer <= depth:
                raise ValueError(
                    f"layers must be from 1 to {depth}, the model's depth, got {layer}"
                )
        self._layers = tuple(layers)

    def verify(self, pending: IntArray, draft: Draft) -> NDArray[Any]:
        """Feed ``pending``, then the draft's nodes, in one pass.

        Parameters
        ----------
        pending : IntArray
            ``(k,)`` with k >= 1: tokens of the text that the cache does not hold yet.
        draft : Draft
            ``n`` proposals, a chain or a tree; ``n`` may be 0.

        Returns
        -------
        array of float32 (float64 if the model is)
            ``(1 + n, vocab_size)``: row 0 follows the last pending token, row ``1 + i`` follows
            node i and has seen only the text and that node's ancestors.

        Raises
        ------
        ValueError
            If there is nothing pending, a token id is not the model's, or the pass would not fit
            into the model's context.
        UnsupportedModelError
            If the draft is a tree and the model cannot verify one.
        RuntimeError
            If the proposals of the last pass have not been settled by :meth:`keep`.
        """
        fed = fed_tokens(self, pending, draft)  # (k + n,)
        if not draft.is_chain:
            refuse(self.kind, trees=True)
        try:
            logits = self._forward(fed, len(fed) - len(draft), draft)
        except BaseException:  # also an interrupt: what was appended so far goes again
            self._exit_state.forget(self)
            raise
        self.length += len(fed)
        self.verified = draft
        return self.fitted(logits)

    def open_exit(self, layer: int) -> None:
        """Get ready to draft with the first ``layer`` layers, or say why that is not possible.

        Parameters
        ----------
        layer : int
            From 1 to one less than the model's depth.

        Raises
        ------
        ValueError
            If there is no such layer.
        UnsupportedModelError
            If the model is not Llama-like, or a short trial (held once) finds that a pass in two
            halves is not the same as a pass.
        """
        check_exit(self, layer)
        captured, self._layers = self._layers, ()  # a capture would have all layers run at once
        try:
            exit_tried(self, layer)
        finally:
            self._layers = captured

    @torch.inference_mode()
    def draft_step(self, tokens: IntArray, layer: int) -> NDArray[Any]:
        """Return what the first ``layer`` layers, norm and head say follows ``tokens``.

        The cache is shared: tokens that went through these layers already are not run through
        them again, neither by the next step nor by :meth:`verify` (:mod:`.split_forward`).

        Parameters
        ----------
        tokens : IntArray
            ``(n,)`` with n >= 1: all tokens after those that the cache holds.
        layer : int
            See :meth:`open_exit`.

        Returns
        -------
        array of float32 (float64 if the model is)
            ``(vocab_size,)`` logits.

        Raises
        ------
        ValueError, UnsupportedModelError
            As :meth:`open_exit` and :meth:`verify`.
        """
        fed = fed_tokens(self, tokens, Draft.empty(self.vocab_size))
        try:
            return self.fitted(self._exit_state.exit_logits(self, fed, layer))[0]
        except BaseException:
            self._exit_state.forget(self)
            raise

    def keep(self, path: Sequence[int]) -> None:
        """Roll the last pass back to its pending tokens and the nodes in ``path``.

        Parameters
        ----------
        path : sequence of int
            Accepted nodes, from a child of the root downwards; empty if none was accepted.

        Raises
        ------
        RuntimeError
            If there was no pass since the last call.
        ValueError
            If ``path`` is not a path of the draft that was verified.
        """
        if self.verified is None:
            raise RuntimeError(
                "keep() needs a verify() before it: there was none since the last keep()"
            )
        draft, path = self.verified, [int(node) for node in path]
        parents = [int(draft.parent[node]) if 0 <= node < len(draft) else None for node in path]
        if parents != [ROOT, *path][: len(path)]:
            raise ValueError(f"path {path} does not lead from the root of the draft downwards")
        before = self.length - len(draft)
        self.length = before + len(path)
        if path == list(range(len(path))):
            crop_to(self.cache, self.length)
        else:
            gather(self.cache, before, path)
        if self.features is not None:
            pending = len(self.features) - len(draft)
            rows = [*range(pending), *(pending + node for node in path)]
            self.features = self.features[rows]
        self.verified = None

    def crop(self, length: int) -> None:
        """Forget every token after the first ``length``.

        Raises
        ------
        ValueError
            If the cache holds fewer.
        """
        if not 0 <= length <= self.length:
            raise ValueError(f"cannot keep {length} tokens of a cache that holds {self.length}")
        self.length = length
        self._exit_state.forget(self)
        self.verified = None

    @torch.inference_mode()
    def write_rows(self, start: int, rows: Sequence[tuple[torch.Tensor, torch.Tensor]]) -> None:
        """Put keys and values of tokens from ``start`` on into the cache, whoever made them.

        **Not exact**: what the model says afterwards is no longer what it says of the text.

        Raises
        ------
        RuntimeError
            If the proposals of the last pass have not been settled by :meth:`keep`.
        ValueError
            If ``start`` lies beyond the end of the cache.
        """
        if self.verified is not None and len(self.verified) > 0:
            raise RuntimeError("settle the proposals of the last verify() with keep() first")
        self._exit_state.forget(self)
        write_rows(self.cache, start, rows)
        self.length = max(self.length, start + rows[0][0].shape[-2])

    def fitted(self, logits: torch.Tensor) -> NDArray[Any]:
        """Return logits ``(rows, model's own)`` on the host, ``(rows, vocab_size)``."""
        wide = torch.float64 if logits.dtype == torch.float64 else torch.float32
        own: NDArray[Any] = logits.to("cpu", wide).numpy()
        if own.shape[1] >= self.vocab_size:
            return own[:, : self.vocab_size]
        fitted = np.full((len(own), self.vocab_size), -np.inf, dtype=own.dtype)
        fitted[:, : own.shape[1]] = own
        return fitted

    @torch.inference_mode()
    def _forward(self, fed: IntArray, pending: int, draft: Draft) -> torch.Tensor:
        """Return logits ``(1 + n, rows of the head)``, on the model's device."""
        if self._layers:  # captured layers must all run now
            self._exit_state.forget(self)
        logits = self._exit_state.finish(self, fed, pending, draft)
        if logits is not None:
            return logits
        if self.lean is not None:
            return self.lean.logits(self.lean_states(fed, pending, draft)[-(1 + len(draft)) :])
        arguments = forward_arguments(self, fed, pending, draft, masked=not draft.is_chain)
        if self._layers:
            arguments["output_hidden_states"] = True
        out = self.model(**arguments)
        if self._layers:  # hidden_states[0] is the embedding
            chosen = [out.hidden_states[layer][0] for layer in self._layers]
            self.features = torch.stack(chosen, dim=1)  # (k + n, layers, hidden)
        return out.logits[0, -(1 + len(draft)) :]

    def lean_states(
        self, fed: IntArray, pending: int, draft: Draft, *, done: int = 0,
        states: torch.Tensor | None = None, first: int = 0, last: int | None = None,
    ) -> torch.Tensor:  # fmt: skip
        """Run ``fed[done:]`` through layers ``first … last - 1`` of the lean forward pass.

        Return ``(k + n - done, hidden)``. Above the first layer ``states`` are what the layer
        below left, of the same shape.
        """
        lean, start, count = self.lean, self.length + done, len(fed) - done
        assert lean is not None
        total, windows = start + count, self.kind.windows
        depths = None
        if not draft.is_chain:
            places = np.concatenate([np.arange(pending), pending + draft.depths()])[done:] - done
            depths = torch.as_tensor(places, device=self.device)
        masks: dict[str, torch.Tensor | None] = {}
        for kind, window in windows.items():
            if draft.is_chain and (window is None or total <= window):
                masks[kind] = lean.causal(start, count)
            else:
                visible = visibility(self.length, pending, draft, window)[done:]
                masks[kind] = additive(visible, lean.dtype)[0, 0].to(self.device)
        if states is None:
            states = lean.embedded(torch.as_tensor(fed[done:], device=self.device))
        captured: dict[int, list[torch.Tensor]] = {layer: [] for layer in self._layers}
        rotations = lean.rotations(start, count, depths)
        states = lean.run(states, 1, rotations, masks, self.cache, first, last, captured)
        if self._layers:
            if len(lean.layers) in captured:  # of the last layer: what the head sees
                captured[len(lean.layers)] = [lean.norm(states)]
            chosen = [captured[layer][0] for layer in self._layers]
            self.features = torch.stack(chosen, dim=1)  # (k + n, layers, hidden)
        return states

    def tree_masks(self, pending: int, draft: Draft) -> torch.Tensor | dict[str, torch.Tensor]:
        """Return what is added to the attention scores, one mask for each kind of layer."""
        dtype, device = self.model.dtype, self.device
        masks = {}
        for kind, window in self.kind.windows.items():
            visible = visibility(self.length, pending, draft, window)
            masks[kind] = additive(visible, dtype).to(device)  # (1, 1, k + n, length + k + n)
        return masks if len(masks) > 1 else next(iter(masks.values()))


__all__ = ["HFTarget", "UnsupportedModelError", "open_session", "visibility"]
