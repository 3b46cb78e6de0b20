"""Weights on a coarse grid: int8 per output channel, made from a float model when it is loaded.

Symmetric rounding to nearest: row ``w`` of a weight matrix becomes ``scale * codes`` with
``scale = max|w| / (2**(bits - 1) - 1)`` and whole ``codes``. Where that pays on a CPU, the product
is taken between whole numbers too: each token's activations are rounded to int8 in the same way
(one scale a token), ``torch._int_mm`` multiplies and adds exactly in int32, and the two scales
are applied at the end. A token's result does not depend on what else is in its batch.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from transformers.pytorch_utils import Conv1D

from specviz.core import checks
from specviz.models.model import Model

BITS = (8, 4, 2)
KERNELS = ("auto", "integer", "float")

LARGE = 2**18
"""From so many weights on the integer product is faster for one token, although the activations
must be rounded first (a CPU with AVX-512 VNNI, ``_int_mm`` ÷ a float32 product: 2.1 at 256 × 256,
0.35 at 2,048 × 256, 0.37 at 1,024 × 1,024, 0.17 at 4,096 × 1,024, without the rounding)."""

INT8 = 127


class IntegerLinear(nn.Module):
    """A linear layer that multiplies whole numbers: int8 codes by int8 codes, summed in int32.

    Parameters
    ----------
    codes : Tensor of int8
        ``(out, in)``.
    scale : Tensor of float
        ``(out,)``: the weight is ``scale[:, None] * codes``.
    bias : Tensor, optional
        ``(out,)``.

    Examples
    --------
    >>> layer = IntegerLinear(torch.eye(8, dtype=torch.int8), torch.full((8,), 0.5))
    >>> layer(torch.tensor([[0.0, 127.0, 0, 0, 0, 0, 0, 0]]))[0, :2]
    tensor([ 0.0000, 63.5000])
    """

    def __init__(self, codes: Tensor, scale: Tensor, bias: Tensor | None = None) -> None:
        super().__init__()
        self.out_features, self.in_features = codes.shape
        self.weight = nn.Parameter(codes, requires_grad=False)
        self.scale = nn.Parameter(scale, requires_grad=False)
        self.bias = None if bias is None else nn.Parameter(bias, requires_grad=False)

    def forward(self, x: Tensor) -> Tensor:
        """Return ``(…, out)`` for ``x`` of shape ``(…, in)``, in its dtype."""
        rows = x.reshape(-1, self.in_features)  # (n, in)
        step = rows.abs().amax(dim=1, keepdim=True).float().clamp(min=1e-30) / INT8  # (n, 1)
        codes = torch.round(rows / step).to(torch.int8)
        products = torch._int_mm(codes, self.weight.t())  # (n, out) int32, exact
        out = products.to(self.scale.dtype) * step * self.scale
        if self.bias is not None:
            out = out + self.bias
        return out.to(x.dtype).reshape(*x.shape[:-1], self.out_features)

    def extra_repr(self) -> str:
        """Return the sizes, as ``nn.Linear`` prints them."""
        return f"in_features={self.in_features}, out_features={self.out_features}, int8"


def quantize(
    model: Any, bits: int = 8, *, head: bool = True, embeddings: bool = False,
    kernel: str = "auto",
) -> Model:  # fmt: skip
    """Return a copy of a model with rounded weights; the model itself is not touched.

    Parameters
    ----------
    model : Model
        A Hugging Face model (:func:`specviz.load`, :func:`specviz.models.model.as_model`).
    bits : int
        8, 4 or 2. Codes of fewer than 8 bits are kept in int8 too: they show what the rounding
        does to the distribution, not what it could save.
    head : bool
        Whether the output head is rounded.
    embeddings : bool
        Whether the input embeddings are rounded. Where they are tied to the head and only one of
        the two is rounded, the copy has both.
    kernel : {"auto", "integer", "float"}
        "integer" multiplies int8 by int8 everywhere (CPU only); "float" multiplies rounded weights
        as floats, which costs what the float model costs; "auto" takes the faster for each layer:
        whole numbers on a CPU from 262,144 weights on.

    Returns
    -------
    Model
        Named after the original, e.g. ``target int8``.

    Raises
    ------
    TypeError, ValueError
        If an argument is out of range, or there is nothing to round.

    Examples
    --------
    ::

        small = quantize(pair.draft)
        trace = sv.generate(pair, "Once", drafter=sv.DraftModel(gamma=4, model=small))
    """
    checks.one_of("bits", bits, BITS)
    if not isinstance(model, Model):
        kind = getattr(model, "kind", type(model).__name__)
        raise TypeError(f"model must be a Hugging Face model to be quantized, got kind {kind!r}")
    if kernel not in KERNELS:
        raise ValueError(f"kernel must be 'auto', 'integer' or 'float', got {kernel!r}")
    device = next(model.model.parameters()).device
    if kernel == "integer" and device.type != "cpu":
        raise ValueError(f"kernel='integer' works on a CPU, but the model is on {device}")
    if any(isinstance(module, IntegerLinear) for module in model.model.modules()):
        raise ValueError(f"model {model.name!r} is quantized already: give the float model")
    other = copy.deepcopy(model.model)
    places = list(_linear_layers(other))
    own_head = other.get_output_embeddings()
    if not head:
        places = [place for place in places if place[2] is not own_head]
    if not places and not embeddings:
        raise ValueError(f"model {model.name!r} has no linear layers to quantize")
    _untie(other, own_head, head=head, embeddings=embeddings)
    with torch.no_grad():
        for parent, name, layer in places:
            transposed = isinstance(layer, Conv1D)
            weight = layer.weight.t() if transposed else layer.weight  # (out, in)
            codes, scale = rounded(weight, bits)
            large = device.type == "cpu" and weight.numel() >= LARGE
            if kernel == "integer" or (kernel == "auto" and large):
                setattr(parent, name, IntegerLinear(codes, scale, layer.bias))
            else:
                new = (codes * scale[:, None]).to(weight.dtype)
                layer.weight.copy_(new.t() if transposed else new)
        if embeddings:
            table = other.get_input_embeddings().weight
            codes, scale = rounded(table, bits)
            table.copy_((codes * scale[:, None]).to(table.dtype))
    return Model(
        other.eval(), f"{model.name} int{bits}", model.vocab_size, model.context_length,
        model.eos_ids,
    )  # fmt: skip


def rounded(weight: Tensor, bits: int) -> tuple[Tensor, Tensor]:
    """Return (codes, scale): the nearest grid point for each weight, one grid for each row.

    Parameters
    ----------
    weight : Tensor
        ``(out, in)``.
    bits : int
        The codes lie in ``-(2**(bits - 1) - 1) … 2**(bits - 1) - 1``.

    Returns
    -------
    (Tensor of int8 ``(out, in)``, Tensor of float ``(out,)``)
        float32, or float64 for weights in float64. A row of zeros has scale 1.

    Examples
    --------
    >>> codes, scale = rounded(torch.tensor([[1.0, -0.5, 0.24]]), bits=2)
    >>> codes.tolist(), scale.tolist()
    ([[1, 0, 0]], [1.0])
    """
    wide = weight.detach().to(torch.promote_types(weight.dtype, torch.float32))
    largest = wide.abs().amax(dim=1)  # (out,)
    scale = torch.where(largest > 0, largest / (2 ** (bits - 1) - 1), torch.ones_like(largest))
    return torch.round(wide / scale[:, None]).to(torch.int8).contiguous(), scale


def _linear_layers(model: nn.Module) -> Iterator[tuple[nn.Module, str, Any]]:
    """Yield (parent, name, layer) for every linear layer."""
    for parent in model.modules():
        for name, child in parent.named_children():
            if isinstance(child, (nn.Linear, Conv1D)):
                yield parent, name, child


def _untie(model: Any, own_head: Any, *, head: bool, embeddings: bool) -> None:
    """Give head and input embeddings weights of their own, if only one of them is rounded."""
    table = model.get_input_embeddings()
    tied = own_head is not None and table is not None and own_head.weight is table.weight
    if not tied or head == embeddings:
        return
    own_head.weight = nn.Parameter(own_head.weight.detach().clone(), requires_grad=False)
    model.config.tie_word_embeddings = False  # or saving and loading would tie them again
