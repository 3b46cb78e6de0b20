"""A linear map from one model's keys and values to another's, fitted by least squares.

It is made to be looked at, not to be relied on: a target that reads projected keys and values no
longer has its own distribution (:class:`specviz.drafters.kv_projection.KVProjection`).
"""

from __future__ import annotations

import contextlib
import inspect
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

Rows = Sequence[tuple[Tensor, Tensor]]
"""For each layer (keys, values), ``(1, heads, n, head_dim)``."""

FORMAT = "specviz kv projection 1"


@dataclass(frozen=True, eq=False)  # tensors have no single truth value
class CacheProjection:
    """A fitted map from a draft's keys and values to a target's.

    Parameters
    ----------
    weight : Tensor
        ``(in, out)`` float32: ``in`` numbers that the draft caches for a token, ``out`` numbers
        that the target caches for it, layer by layer, keys before values.
    bias : Tensor
        ``(out,)``.
    draft_shape, target_shape : (int, int, int)
        (layers, heads, head_dim) of the two caches.
    explained : float
        Share of the target's variance that the map explains on tokens it was not fitted to.
    """

    weight: Tensor
    bias: Tensor
    draft_shape: tuple[int, int, int]
    target_shape: tuple[int, int, int]
    explained: float

    def __call__(self, numbers: Tensor) -> Tensor:
        """Return ``(n, out)`` for ``(n, in)``."""
        weight, bias = self.weight.to(numbers.device), self.bias.to(numbers.device)
        return numbers.float() @ weight + bias

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a safetensors file; an existing one is replaced when the new one is whole."""
        path = Path(path)
        tensors = {"weight": self.weight.contiguous(), "bias": self.bias.contiguous()}
        meta = {
            "format": FORMAT,
            "draft_shape": " ".join(map(str, self.draft_shape)),
            "target_shape": " ".join(map(str, self.target_shape)),
            "explained": repr(self.explained),
        }
        unfinished = path.with_name(f".{path.name}.{os.getpid()}.part")
        try:
            save_file(tensors, unfinished, metadata=meta)
            unfinished.replace(path)
        finally:
            with contextlib.suppress(FileNotFoundError):
                unfinished.unlink()

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> CacheProjection:
        """Read a file that :meth:`save` wrote; nothing in it is executed.

        Raises
        ------
        FileNotFoundError
            If it is not there.
        ValueError
            If it is another kind of file, or damaged.
        """
        if not Path(path).is_file():
            raise FileNotFoundError(f"path {os.fspath(path)!r} is not a file")
        try:
            with safe_open(path, framework="pt") as file:
                meta = file.metadata() or {}
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        except SafetensorError as error:
            raise ValueError(f"{os.fspath(path)!r} is not a safetensors file: {error}") from None
        if meta.get("format") != FORMAT:
            raise ValueError(f"{os.fspath(path)!r} does not hold a KV projection of this version")
        try:
            draft, target = (_shape(meta[f"{role}_shape"]) for role in ("draft", "target"))
            whole = cls(tensors["weight"], tensors["bias"], draft, target, float(meta["explained"]))
        except (KeyError, ValueError) as error:
            raise ValueError(f"{os.fspath(path)!r} is damaged: {error}") from None
        sizes = (size_of(draft), size_of(target))
        if whole.weight.shape != sizes or whole.bias.shape != sizes[1:]:
            raise ValueError(
                f"{os.fspath(path)!r} is damaged: its weight is {tuple(whole.weight.shape)}, "
                f"but its shapes need {sizes}"
            )
        if not (whole.weight.isfinite().all() and whole.bias.isfinite().all()):
            raise ValueError(f"{os.fspath(path)!r} holds numbers that are not finite")
        return whole


def fit(
    draft: Tensor,
    target: Tensor,
    draft_shape: tuple[int, int, int],
    target_shape: tuple[int, int, int],
    *,
    ridge: float = 1e-3,
) -> CacheProjection:
    """Return the least-squares map from ``draft`` to ``target``, lightly regularised.

    Every tenth token is left out of the fit and says how much the map explains.

    Parameters
    ----------
    draft, target : Tensor
        ``(n, in)`` and ``(n, out)``: what the two models cache for the same tokens.
    draft_shape, target_shape : (int, int, int)
        (layers, heads, head_dim).
    ridge : float
        Added to the variance of every input, as a share of the mean variance.

    Raises
    ------
    ValueError
        If there are fewer than 20 tokens.
    """
    if len(draft) < 20:
        raise ValueError(f"a projection needs at least 20 tokens to be fitted to, got {len(draft)}")
    held_out = torch.arange(len(draft)) % 10 == 9
    x, y = draft[~held_out].double(), target[~held_out].double()
    x_mean, y_mean = x.mean(0), y.mean(0)
    x, y = x - x_mean, y - y_mean
    gram = x.t() @ x  # (in, in)
    gram += ridge * gram.diagonal().mean().clamp(min=1e-12) * torch.eye(len(gram)).to(gram)
    weight = torch.linalg.solve(gram, x.t() @ y)  # (in, out)
    left = target[held_out].double() - y_mean - (draft[held_out].double() - x_mean) @ weight
    spread = target[held_out].double() - y_mean
    explained = 1 - float(left.square().sum() / spread.square().sum().clamp(min=1e-30))
    bias = y_mean - x_mean @ weight
    return CacheProjection(weight.float(), bias.float(), draft_shape, target_shape, explained)


def flatten(rows: Rows, model: Any, start: int) -> Tensor:
    """Return ``(n, layers * 2 * heads * head_dim)``: keys and values without their places.

    Keys are turned back to place 0, where the model rotates them: otherwise no one map could
    serve all places.
    """
    flat = []
    for keys, values in rows:
        unturned = turned(keys, model, start, back=True)
        flat += [states[0].transpose(0, 1).flatten(1) for states in (unturned, values)]
    return torch.cat(flat, dim=1).float()


def unflatten(
    numbers: Tensor, shape: tuple[int, int, int], model: Any, start: int, dtype: torch.dtype
) -> list[tuple[Tensor, Tensor]]:
    """Return rows for a cache from ``(n, …)``; the inverse of :func:`flatten`."""
    layers, heads, dim = shape
    states = numbers.to(dtype).reshape(len(numbers), layers, 2, heads, dim)
    states = states.permute(1, 2, 3, 0, 4)  # (layers, 2, heads, n, dim)
    return [(turned(keys[None], model, start), values[None]) for keys, values in states]


def turned(keys: Tensor, model: Any, start: int, *, back: bool = False) -> Tensor:
    """Return keys ``(…, n, head_dim)`` rotated to the places from ``start`` on, or back to 0.

    Rotary embeddings in the half-split form of Llama (Su et al. 2021); a model without them
    leaves its keys as they are.
    """
    rotary = _rotary(model)
    if rotary is None:
        return keys
    n = keys.shape[-2]
    places = torch.arange(start, start + n, device=keys.device)[None]
    cos, sin = (table[0].to(keys) for table in rotary(keys.float(), places))  # (n, rotated)
    size = cos.shape[-1]
    part, rest = keys[..., :size], keys[..., size:]
    swapped = torch.cat([-part[..., size // 2 :], part[..., : size // 2]], dim=-1)
    if back:  # a rotation by the opposite angle; cos² + sin² is 1, or a model's own scaling
        part = (part * cos - swapped * sin) / (cos.square() + sin.square())
    else:
        part = part * cos + swapped * sin
    return torch.cat([part, rest], dim=-1)


def check_rotation(model: Any) -> None:
    """Say, before anything runs, that a model's keys cannot be turned back.

    Raises
    ------
    ValueError
        If each kind of its layers rotates keys in another way.
    """
    rotary = _rotary(model)
    if rotary is not None and "layer_type" in inspect.signature(rotary.forward).parameters:
        raise ValueError(
            f"model type {model.config.model_type!r} cannot be projected: its layers rotate their "
            f"keys in different ways"
        )


def _rotary(model: Any) -> Any:
    return getattr(getattr(model, "model", None), "rotary_emb", None)


def shape_of(rows: Rows) -> tuple[int, int, int]:
    """Return (layers, heads, head_dim) of a cache.

    Raises
    ------
    ValueError
        If layers differ.
    """
    shapes = {tuple(states.shape[1::2]) for layer in rows for states in layer}
    if len(shapes) != 1:
        raise ValueError(f"a cache whose layers differ cannot be projected: {sorted(shapes)}")
    heads, dim = shapes.pop()
    return len(rows), int(heads), int(dim)


def size_of(shape: tuple[int, int, int]) -> int:
    """Return how many numbers such a cache holds for a token."""
    layers, heads, dim = shape
    return layers * 2 * heads * dim


def _shape(text: str) -> tuple[int, int, int]:
    layers, heads, dim = map(int, text.split())
    return layers, heads, dim
