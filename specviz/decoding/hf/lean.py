"""The forward pass of Llama-like models, written out: the same numbers, far less Python.

A transformers model spends most of a small pass in modules, look-ups and mask code. Here the same
weights go through the same arithmetic (Touvron et al. 2023, LLaMA, section 2; Ainslie et al. 2023
for grouped heads) in about thirty calls a layer. :func:`lean_of` says which models that is; all
others, and ``fast=False``, take the model's own ``forward``.

Weights are not copied: query, key and value become views of one matrix, so do gate and up, and
the model's parameters point into them. Only in float32 on a CPU is there a second copy, laid out
for products with a handful of rows, which wait for memory: in half precision where that holds the
very same numbers (checkpoints are often stored so), else in oneDNN's blocks. Sums are float32 in
either.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from specviz.decoding.hf.cache import FULL, SLIDING, TREE_ATTENTION, GrowingLayer, with_room
from specviz.models.quantize import IntegerLinear

LLAMA_LIKE = ("Llama", "Mistral", "Qwen2", "Qwen3")
"""Families by the first part of their classes' names: RMSNorm, rotary positions, gated MLP."""

STEADY_ROTATIONS = ("default", "linear", "llama3", "yarn")
"""Kinds of rotary positions whose frequencies do not depend on the length of the text."""

PACKED_BYTES = 2**31
"""A model whose weights take more than this is not packed: they stay single."""

WORTH_BLOCKS = 2**18
"""From so many products of rows and weights on, oneDNN's blocks repay what their call costs."""

FEW = 64
"""Up to so many tokens attention is three products; beyond, torch's fused kernel is faster."""


# The operator behind torch's dispatcher in Python, whose own look-ups cost as much as a small norm.
LISTENERS = "transformers.utils.output_capturing"

_half_product: Any = getattr(getattr(torch.ops.quantized, "linear_dynamic_fp16", None), "_op", None)


class Product:
    """``x @ weight.T + bias`` for the weights of one or more linear layers, side by side.

    Parameters
    ----------
    layers : sequence of nn.Linear or IntegerLinear
        They share an input. Their parameters become views of one matrix.
    packed : bool
        Keep a second copy in a layout for few rows.
    """

    def __init__(self, layers: Sequence[Any], packed: bool) -> None:
        self.layers, self.weight, self.bias = list(layers), None, None
        self.half: Any = None
        self.blocks: Tensor | None = None
        if any(isinstance(layer, IntegerLinear) for layer in layers):
            return
        self.weight = _one(layers, "weight")  # (out, in)
        if layers[0].bias is not None:
            self.bias = _one(layers, "bias")  # (out,)
        if packed:
            self.half = _in_half_precision(self.weight, self.bias)
        if packed and self.half is None:
            self.blocks = torch.ops.mkldnn._reorder_linear_weight(self.weight, 8)
            self._rows = WORTH_BLOCKS / self.weight.numel()

    def __call__(self, x: Tensor) -> Tensor:
        """Return ``(n, out)`` for ``(n, in)``."""
        if self.half is not None:
            product: Tensor = _half_product(x, self.half)
            return product
        if self.blocks is not None and len(x) >= self._rows:
            product = torch.ops.mkldnn._linear_pointwise(x, self.blocks, self.bias, "none", [], "")
            return product
        if self.weight is not None:
            return F.linear(x, self.weight, self.bias)
        return torch.cat([layer(x) for layer in self.layers], dim=-1)


def _one(layers: Sequence[Any], name: str) -> Tensor:
    """Return the parameters of some layers as one tensor, which they become views of."""
    own = [getattr(layer, name) for layer in layers]
    if len(own) == 1:
        only: Tensor = own[0].data
        return only
    whole = torch.cat([parameter.data for parameter in own])
    for parameter, part in zip(own, whole.split([len(p) for p in own]), strict=True):
        parameter.data = part
    return whole


def _in_half_precision(weight: Tensor, bias: Tensor | None) -> Any:
    """Return weights packed as float16 for float32 products; None if that would change one."""
    if _half_product is None or not torch.equal(weight, weight.half().float()):
        return None
    try:
        packed = torch.ops.quantized.linear_prepack_fp16(weight, bias)
        held = torch.ops.quantized.linear_unpack_fp16(packed)[0]
    except (AttributeError, RuntimeError):  # this build or this processor has no such product
        return None
    return packed if torch.equal(held, weight) else None


class RMSNorm:
    """``gain * x / sqrt(mean(x**2) + eps)`` over the last axis (Zhang & Sennrich 2019)."""

    def __init__(self, gain: Tensor, eps: float) -> None:
        self.gain, self.eps = gain, eps
        width = gain.shape[-1]
        # As gain * sqrt(width) * x / sqrt(|x|**2 + width * eps): few kernels, and hypot adds the
        # second term under the root.
        self.scaled_gain = gain * width**0.5
        self.floor = torch.tensor((width * eps) ** 0.5, dtype=gain.dtype, device=gain.device)

    def __call__(self, x: Tensor) -> Tensor:
        """Return ``x`` normalised, in float32 whatever its precision, as the models do."""
        if x.dtype != torch.float32:
            wide = x.float()
            wide = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + self.eps)
            return self.gain * wide.to(x.dtype)
        size = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
        return x.div(torch.hypot(size, self.floor)).mul_(self.scaled_gain)


class JointLayer(GrowingLayer):
    """Keys and values of one layer in one buffer, ``(batch, 2 * kv_heads, room, head_dim)``."""

    def __init__(self) -> None:
        super().__init__()
        self._buffer: Tensor | None = None

    @property
    def keys(self) -> Tensor | None:  # type: ignore[override]
        """All keys, ``(batch, kv_heads, length, head_dim)``; None before the first."""
        return None if self._buffer is None else self._halves(self.length)[0]

    @property
    def values(self) -> Tensor | None:  # type: ignore[override]
        """All values, likewise."""
        return None if self._buffer is None else self._halves(self.length)[1]

    def _halves(self, end: int) -> tuple[Tensor, Tensor]:
        assert self._buffer is not None
        both = self._buffer.narrow(2, 0, end)
        batch, heads, _, dim = both.shape
        keys, values = both.view(batch, 2, heads // 2, end, dim).unbind(1)
        return keys, values

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        """Append rows ``(batch, kv_heads, t, head_dim)``; return all keys and all values."""
        return self.append(torch.cat([key_states, value_states], dim=1).transpose(1, 2))

    def append(self, both: Tensor) -> tuple[Tensor, Tensor]:
        """Append keys and values ``(batch, t, 2 * kv_heads, head_dim)``; return all of each."""
        start, rows = self.length, both.transpose(1, 2)
        count = rows.shape[2]
        end = self.length = start + count
        if self._buffer is None:
            self._buffer = with_room(rows, end, 0)
        elif end > self._buffer.shape[2]:
            self._buffer = with_room(self._buffer, end, start)
        self._buffer.narrow(2, start, count).copy_(rows)
        return self._halves(end)


@dataclass
class Layer:
    """One decoder layer's weights. ``qk_norm`` is Qwen3's, over each head."""

    kind: str
    attention_norm: RMSNorm
    qkv: Product
    qk_norm: RMSNorm | None
    out: Product
    mlp_norm: RMSNorm
    gate_up: Product
    down: Product


class LeanModel:
    """A Llama-like model's forward pass over a cache of :class:`.GrowingLayer` or its kin.

    Parameters
    ----------
    model : PreTrainedModel
        One that :func:`why_not_lean` has nothing to say about.
    """

    def __init__(self, model: Any) -> None:
        base, config = model.model, model.config
        weights = [p for p in model.parameters() if p.dim() == 2]
        packed = (
            model.device.type == "cpu" and model.dtype == torch.float32
            and torch.backends.mkldnn.is_available()
            and sum(p.numel() * p.element_size() for p in weights) <= PACKED_BYTES
        )  # fmt: skip
        self._packed = packed
        attention = base.layers[0].self_attn
        self.heads, self.kv_heads = config.num_attention_heads, config.num_key_value_heads
        self.head_dim, self.scale = attention.head_dim, float(attention.scaling)
        self.share = self.heads // self.kv_heads
        self.embedding, self.rotary = base.embed_tokens.weight, base.rotary_emb
        self.layers = [self._layer(model, layer, packed) for layer in base.layers]
        self.norm = RMSNorm(base.norm.weight, base.norm.variance_epsilon)
        self.head = Product([model.lm_head], packed)
        self.device, self.dtype = model.device, model.dtype
        self.by_hand = self.device.type == "cpu" and self.dtype in (torch.float32, torch.float64)
        ones = torch.ones(FEW, FEW, dtype=torch.bool, device=self.device)
        self.future = torch.zeros(FEW, FEW, dtype=self.dtype, device=self.device)
        self.future.masked_fill_(ones.triu(1), -torch.inf)
        self._none = torch.zeros(1, dtype=self.dtype, device=self.device)
        self._rotate_up_to(256)
        # None stands for the model itself, which must not be kept alive from here.
        self._parts = [
            (None if parent is model else parent, name, part)
            for parent in model.modules()
            for name, part in [*parent._modules.items(), *parent._parameters.items()]
            if part is not None
        ]
        self._weights = list(model.parameters())
        copied = ("variance_epsilon", "scaling", "attention_scaling", "sliding_window")
        self._settings = [
            (module, name) for module in base.modules() for name in copied if hasattr(module, name)
        ]
        widest = max([weight.shape[1] for weight in weights], default=1)
        numbers = torch.Generator().manual_seed(0)
        self._probe = torch.randn(widest, generator=numbers).to(model.device, model.dtype)
        self._seen = self._state()

    def _layer(self, model: Any, layer: Any, packed: bool) -> Layer:
        attention, mlp = layer.self_attn, layer.mlp
        qk_norm = None
        if hasattr(attention, "q_norm"):
            gains = [attention.q_norm.weight] * self.heads
            gains.extend([attention.k_norm.weight] * self.kv_heads)
            qk_norm = RMSNorm(torch.stack(gains), attention.q_norm.variance_epsilon)
        sliding = getattr(attention, "sliding_window", None) is not None
        if model.config.model_type == "mistral":
            sliding = model.config.sliding_window is not None
        before, after = layer.input_layernorm, layer.post_attention_layernorm
        return Layer(
            SLIDING if sliding else FULL,
            RMSNorm(before.weight, before.variance_epsilon),
            Product([attention.q_proj, attention.k_proj, attention.v_proj], packed),
            qk_norm,
            Product([attention.o_proj], packed),
            RMSNorm(after.weight, after.variance_epsilon),
            Product([mlp.gate_proj, mlp.up_proj], packed),
            Product([mlp.down_proj], packed),
        )

    def is_current(self, model: Any) -> bool:
        """Whether the model still has the weights and the parts that this was made from."""
        for owner, name, part in self._parts:
            parent = model if owner is None else owner
            is_weight = isinstance(part, nn.Parameter)
            held: Any = parent._parameters if is_weight else parent._modules
            if held.get(name) is not part or (not is_weight and _wrapped(part)):
                return False
        now = self._state()
        same = all(
            torch.equal(before, after) if isinstance(before, Tensor) else before == after
            for before, after in zip(self._seen, now, strict=True)
        )
        return not _wrapped(model) and same

    def _state(self) -> list[Any]:
        """Return what changes when a number does that was copied from the model.

        Version counters count most writes, but none through ``.data`` or numpy. So every copy's
        source is read once: vectors as they are, packed matrices times a fixed random vector.
        """
        state: list[Any] = [(weight.data_ptr(), weight._version) for weight in self._weights]
        state += [getattr(module, name) for module, name in self._settings]
        vectors = [weight.data for weight in self._weights if weight.dim() == 1]
        state.append(torch.cat([vector.reshape(-1).double() for vector in vectors]))
        state.append(self.rotary.inv_freq.clone())
        products = [self.head] + [
            product for layer in self.layers
            for product in (layer.qkv, layer.out, layer.gate_up, layer.down)
        ]  # fmt: skip
        for product in products:
            if product.half is not None or product.blocks is not None:
                assert product.weight is not None
                state.append(product.weight @ self._probe[: product.weight.shape[1]])
        return state

    def _rotate_up_to(self, length: int) -> None:
        """Have the model's own module compute the rotations of positions below ``length``."""
        places = torch.arange(length, device=self.device)[None]
        cos, sin = self.rotary(self._none, places)  # (1, length, head_dim) each
        half = self.head_dim // 2
        # Rotating is x * cos + swapped(x) * sin, the first half of the sines with a minus sign.
        self.sin = torch.cat([-sin[0, :, :half], sin[0, :, half:]], dim=-1)[:, None]
        self.cos = cos[0][:, None]  # (length, 1, head_dim)

    def rotations(
        self, start: int, count: int, depths: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return cosines and sines ``(count, 1, head_dim)`` of positions from ``start`` on.

        ``depths`` ``(count,)``: how far after ``start`` each is; by default 0, 1, 2, …
        """
        if start + count > len(self.cos):
            self._rotate_up_to(2 * (start + count))
        if depths is not None:
            return self.cos[start + depths], self.sin[start + depths]
        return self.cos[start : start + count], self.sin[start : start + count]

    def causal(self, start: int, count: int) -> Tensor | None:
        """Return the mask of ``count`` tokens after ``start`` others, ``(count, start + count)``.

        None where one token sees everything.
        """
        if count == 1:
            return None
        mask = self._none.new_zeros(count, start + count)
        if count <= FEW:
            mask[:, start:] = self.future[:count, :count]
            return mask
        ones = torch.ones(count, count, dtype=torch.bool, device=self.device)
        mask[:, start:].masked_fill_(ones.triu(1), -torch.inf)
        return mask

    def embedded(self, ids: Tensor) -> Tensor:
        """Return ``(n, hidden)`` for ids ``(n,)``."""
        return F.embedding(ids, self.embedding)

    def logits(self, x: Tensor) -> Tensor:
        """Return ``(n, rows of the head)`` for what the last layer left, ``(n, hidden)``."""
        return self.head(self.norm(x))

    def batch_logits(
        self, ids: Tensor, positions: Tensor, masks: Mapping[str, Tensor | None], cache: Any,
        rows: int,
    ) -> Tensor:  # fmt: skip
        """Return logits ``(batch, rows, vocab)`` after the last ``rows`` of ``(batch, t)`` ids.

        ``positions`` is ``(batch, t)``; a mask is ``(batch, 1, t, all)``, or None where each text
        sees all that the cache holds.
        """
        batch, tokens = ids.shape
        rotations = self.rotations(0, int(positions.max()) + 1, positions)
        x = self.run(self.embedded(ids.flatten()), batch, rotations, masks, cache)
        last = x.view(batch, tokens, -1)[:, tokens - rows :]
        return self.logits(last.flatten(0, 1)).view(batch, rows, -1)

    def run(
        self, x: Tensor, batch: int, rotations: tuple[Tensor, Tensor],
        masks: Mapping[str, Tensor | None], cache: Any, first: int = 0, last: int | None = None,
        captured: Mapping[int, Any] | None = None,
    ) -> Tensor:  # fmt: skip
        """Take ``batch`` texts of ``t`` tokens each through layers ``first … last - 1``.

        Parameters
        ----------
        x : Tensor
            ``(batch * t, hidden)``: embeddings, or what layer ``first - 1`` left.
        batch : int
            How many texts.
        rotations : pair of Tensor
            Cosines and sines, ``(t, 1, head_dim)`` or ``(batch, t, 1, head_dim)``.
        masks : mapping
            Kind of attention → what is added to the scores, ``(t, all)`` or
            ``(batch, 1, t, all)``, or None.
        cache : DynamicCache
            Its layers' ``append`` takes keys and values and returns all of them.
        first, last : int
            Which layers.
        captured : mapping, optional
            Layer, counted from 1 → a list that takes what it left.

        Returns
        -------
        Tensor
            ``(batch * t, hidden)``, before the final norm.
        """
        heads, both, dim = self.heads, self.heads + self.kv_heads, self.head_dim
        cos, sin = rotations
        last = len(self.layers) if last is None else last
        while len(cache.layers) < last:
            cache.layers.append(cache.layer_class_to_replicate())
        tokens = len(x) // batch
        by_hand = self.by_hand and batch == 1 and tokens <= FEW
        ready = {kind: self._shaped(mask, by_hand) for kind, mask in masks.items()}
        for index in range(first, last):
            layer = self.layers[index]
            qkv = layer.qkv(layer.attention_norm(x)).view(batch, tokens, -1, dim)
            qk = qkv[:, :, :both]
            normed = qk if layer.qk_norm is None else layer.qk_norm(qk)
            torch.addcmul(normed * cos, normed.roll(dim // 2, -1), sin, out=qk)
            q = qkv[:, :, :heads].transpose(1, 2)  # (batch, heads, t, dim)
            # (batch, kv, all, dim) each, the new ones last
            keys, values = cache.layers[index].append(qkv[:, :, heads:])
            mask = ready[layer.kind]
            if by_hand:
                seen = self._attention(q, keys[0], values[0], mask)
            else:
                seen = F.scaled_dot_product_attention(
                    q, keys, values, attn_mask=mask, scale=self.scale, enable_gqa=self.share > 1
                )
            x = x + layer.out(seen.transpose(1, 2).reshape(batch * tokens, heads * dim))
            gate, up = layer.gate_up(layer.mlp_norm(x)).chunk(2, dim=-1)
            x = x + layer.down(F.silu(gate).mul_(up))
            if captured and index + 1 in captured:
                captured[index + 1].append(x)
        return x

    def _shaped(self, mask: Tensor | None, by_hand: bool) -> Tensor | None:
        """Return a mask as the attention takes it: by hand one row for each query head."""
        if mask is None or not by_hand:
            return mask
        return mask.view(-1, mask.shape[-1]).repeat(self.share, 1)  # (share * t, all)

    def _attention(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        """Return what queries ``(1, heads, t, dim)`` see of ``(kv_heads, all, dim)``.

        The query heads that share a key head are rows of one product.
        """
        rows = q.reshape(self.kv_heads, -1, self.head_dim)  # (kv, share * t, dim)
        start, beta = (self._none, 0) if mask is None else (mask, 1)
        scores = torch.baddbmm(start, rows, k.mT, beta=beta, alpha=self.scale)
        return torch.bmm(scores.softmax(-1), v).view(q.shape)


def why_not_lean(model: Any) -> str:
    """Return why a model must take its own ``forward``; empty if it need not.

    Nothing is taken on trust: classes must be the very ones known here, and nobody may have put
    hooks, wrappers or other layers in. What passes is compared with the model before it is used
    (:func:`.selftest.lean_agrees`).
    """
    name = type(model).__name__
    family = name.removesuffix("ForCausalLM")
    home = f"transformers.models.{family.lower()}.modeling_{family.lower()}"
    if family not in LLAMA_LIKE or type(model).__module__ != home:
        return f"{name} is not one of the families written out here"
    config = model.config
    if config.hidden_act not in ("silu", "swish"):
        return f"its activation is {config.hidden_act!r}"
    if getattr(config, "_attn_implementation", "eager") not in TREE_ATTENTION:
        return "it was loaded with an attention implementation of its own"
    if getattr(model.model.rotary_emb, "rope_type", None) not in STEADY_ROTATIONS:
        return "its rotary positions depend on the length of the text"
    own = {"RMSNorm", "Attention", "MLP", "DecoderLayer", "RotaryEmbedding", "Model", "ForCausalLM"}
    known = {f"{family}{part}" for part in own}
    for module in model.modules():
        if _wrapped(module):
            return f"a {type(module).__name__} in it has hooks or a forward of its own"
        kind = type(module)
        ordinary = kind.__module__.startswith("torch.nn.") or kind.__module__ == (
            "transformers.activations"
        )
        if not (ordinary or kind is IntegerLinear or (
            kind.__module__ == home and kind.__name__ in known
        )):  # fmt: skip
            return f"it holds a {kind.__name__}"
        for parameter in module._parameters.values():
            if parameter is None:
                continue
            if type(parameter) is not nn.Parameter or type(parameter.data) is not Tensor:
                return f"its weights are of type {type(parameter.data).__name__}"
            if parameter.device != model.device or parameter.is_inference():
                return "its weights are spread over devices or cannot be watched"
            if kind is not IntegerLinear and parameter.dtype != model.dtype:
                return "its weights differ in precision"
    return ""


def _wrapped(module: nn.Module) -> bool:
    """Whether something has been put around a module's forward.

    What transformers leaves behind after a pass with hidden states only listens while asked.
    """
    hooks = [*module._forward_hooks.values(), *module._forward_pre_hooks.values()]
    others = [hook for hook in hooks if getattr(hook, "__module__", "") != LISTENERS]
    return bool(others) or "forward" in module.__dict__


_lean: WeakKeyDictionary[Any, LeanModel] = WeakKeyDictionary()


@torch.inference_mode(False)
@torch.no_grad()
def lean_of(model: Any) -> LeanModel | None:
    """Return a model's lean forward pass, made once for its weights; None if it has none.

    Examples
    --------
    >>> from transformers import GPT2Config, GPT2LMHeadModel
    >>> lean_of(GPT2LMHeadModel(GPT2Config(n_layer=1, n_head=1, n_embd=4, vocab_size=8))) is None
    True
    """
    known = _lean.get(model)
    if known is not None and known.is_current(model):
        return known
    _lean.pop(model, None)
    if why_not_lean(model):
        return None
    _lean[model] = LeanModel(model)
    return _lean[model]
