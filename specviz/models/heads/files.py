"""Heads on disk: a folder with config.json, model.safetensors and a card. Never a pickle."""

from __future__ import annotations

import copy
import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from specviz.models.heads.config import (
    HeadConfig,
    HeadsError,
    MedusaConfig,
    ParallelConfig,
    fingerprint,
    from_json,
    same_target,
    to_json,
)
from specviz.models.heads.eagle import EagleHead
from specviz.models.heads.medusa import MedusaHeads
from specviz.models.heads.parallel import ParallelHead
from specviz.models.load import bundled

CONFIG, WEIGHTS, CARD = "config.json", "model.safetensors", "README.md"
LARGEST_CONFIG = 1 << 20
LARGE = 1 << 17
TRAINING = "specviz train heads makes heads for a target of your own"

Heads = MedusaHeads | EagleHead


def build_heads(config: HeadConfig) -> Heads:
    """Return freshly initialised heads of this shape."""
    if isinstance(config, MedusaConfig):
        return MedusaHeads(config)
    return ParallelHead(config) if isinstance(config, ParallelConfig) else EagleHead(config)


def save_heads(
    heads: Heads,
    folder: str | os.PathLike[str],
    card: str,
    *,
    measured: Mapping[str, Any] | None = None,
) -> None:
    """Write heads as a folder, whole or not at all.

    Weights are float16; matrices of more than ``LARGE`` entries are int8 with a scale for each
    row, which is half the size and measures the same.

    Parameters
    ----------
    heads : MedusaHeads or EagleHead
        Left untouched.
    folder : path
        Replaced if it exists.
    card : str
        The text of its README.md.
    measured : mapping, optional
        What the card's numbers are; kept in config.json for whoever measures again.

    Raises
    ------
    ValueError
        If a weight does not fit float16.
    """
    place = Path(folder)
    state = heads.state_dict()
    for name, tensor in state.items():
        if not bool((tensor.abs() <= torch.finfo(torch.float16).max).all()):
            raise ValueError(f"{name} has values outside float16 (or not numbers)")
    packed = _packed(state)
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent, prefix=f".{place.name}-") as scratch:
        fresh, old = Path(scratch) / "new", Path(scratch) / "old"
        fresh.mkdir()
        save_file(packed, fresh / WEIGHTS, metadata={"format": "pt"})
        facts = {**to_json(heads.config), "measured": _rounded(measured or {})}
        (fresh / CONFIG).write_text(json.dumps(facts, indent=1) + "\n", "utf-8")
        (fresh / CARD).write_text(card, "utf-8")
        if place.exists():
            place.replace(old)
        fresh.replace(place)
        shutil.rmtree(old, ignore_errors=True)


def _packed(state: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Return what is stored: float16, or int8 and ``<name>.scale``, float16 ``(rows, 1)``."""
    packed = {}
    for name, tensor in state.items():
        weight = tensor.detach().cpu().float()
        if weight.dim() == 2 and weight.numel() > LARGE:
            scale = (weight.abs().amax(1, keepdim=True) / 127).half().clamp_min(1e-7)
            packed[f"{name}.scale"] = scale
            packed[name] = (weight / scale.float()).round().clamp(-127, 127).to(torch.int8)
        else:
            packed[name] = weight.half().contiguous()
    return packed


def _unpacked(packed: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Return float32 weights."""
    state = {}
    for name, tensor in packed.items():
        if name.endswith(".scale") and name.removesuffix(".scale") in packed:
            continue
        scale = packed.get(f"{name}.scale")
        state[name] = tensor.float() if scale is None else tensor.float() * scale.float()
    return state


def _rounded(value: Any) -> Any:
    """Return nested measurements with four decimals."""
    if isinstance(value, Mapping):
        return {name: _rounded(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_rounded(one) for one in value]
    return round(value, 4) if isinstance(value, float) else value


def load_heads(heads: Any, pair: Any, kind: str) -> Any:
    """Return heads that fit the pair's target, on its device and in its precision.

    Parameters
    ----------
    heads : path, MedusaHeads, EagleHead or None
        A folder that :func:`save_heads` wrote, or heads in memory; None for those that come with
        the bundled pair.
    pair : Pair
        Its target decides whether they fit.
    kind : {"medusa", "eagle", "parallel"}
        What is wanted.

    Returns
    -------
    MedusaHeads or EagleHead
        In eval mode.

    Raises
    ------
    HeadsError
        In one sentence, if there are none, they are of another kind, the file is not what it
        should be, or they were made for another target.
    """
    model: Any = getattr(pair.target, "model", None)
    if not isinstance(model, torch.nn.Module):
        raise HeadsError(
            f"{kind} heads read a Hugging Face model's hidden states; this pair's target is "
            f"{pair.target.name!r}, which has none"
        )
    if isinstance(heads, (MedusaHeads, EagleHead)):
        config, label = heads.config, f"heads={type(heads).__name__}(…)"
        _check_kind(config, kind, label)
        check_fits(config, pair.target, label)
        found: Heads = copy.deepcopy(heads)  # the caller's own keeps its device and precision
    else:
        folder = bundled() / kind if heads is None else _folder(heads)
        label = f"heads {folder.name!r}" if heads is None else f"heads {os.fspath(heads)!r}"
        config = _read_config(folder, label, kind)
        check_fits(config, pair.target, label)
        with torch.device("meta"):  # no memory before the file is known to be of this shape
            found = build_heads(config)
        _read_weights(found, folder / WEIGHTS, label)
    weight = pair.target.model.get_output_embeddings().weight
    dtype = weight.dtype if weight.dtype.is_floating_point else torch.float32
    return found.to(weight.device, dtype).eval().requires_grad_(False)


def check_fits(config: HeadConfig, target: Any, label: str) -> None:
    """Refuse heads that were made for another target, in one sentence."""
    model = target.model
    shape = model.config.get_text_config()
    depth, width = int(shape.num_hidden_layers), int(shape.hidden_size)
    theirs = f"{label} were trained for {config.target!r} and do not fit {target.name!r}"
    differs, last = "", config.layers[-1]
    if config.hidden_size != width:
        differs = f"hidden size {config.hidden_size}, not {width}"
    elif config.vocab_size != target.vocab_size:
        differs = f"vocabulary {config.vocab_size}, not {target.vocab_size}"
    elif last > depth or (config.kind == "medusa" and last != depth):
        differs = f"they read layer {last} of its {depth}"
    elif config.fingerprint:
        embedding = model.get_input_embeddings().weight
        if not same_target(config.fingerprint, fingerprint(embedding)):
            differs = "the two have different weights"
    if differs:
        raise HeadsError(f"{theirs}: {differs}. {TRAINING}")


def _check_kind(config: HeadConfig, kind: str, label: str) -> None:
    if config.kind != kind:
        raise HeadsError(f"{label} are {config.kind} heads, but {kind} heads are needed here")


def _folder(heads: Any) -> Path:
    if not isinstance(heads, (str, os.PathLike)) or not os.fspath(heads):
        raise HeadsError(f"heads must be a folder, or heads in memory, got {heads!r}")
    return Path(heads).expanduser()


def _read_config(folder: Path, label: str, kind: str) -> HeadConfig:
    path = folder / CONFIG
    if not path.is_file():
        raise HeadsError(f"{label}: there is no {CONFIG} in that folder. {TRAINING}")
    if path.stat().st_size > LARGEST_CONFIG:
        raise HeadsError(f"{label}: {CONFIG} is larger than {LARGEST_CONFIG:,} bytes")
    try:
        values = json.loads(path.read_text("utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError):
        raise HeadsError(f"{label}: {CONFIG} is not JSON") from None
    if not isinstance(values, dict):
        raise HeadsError(f"{label}: {CONFIG} must be a JSON object")
    try:
        config = from_json(values)
    except HeadsError as error:
        raise HeadsError(f"{label}: {error}") from None
    _check_kind(config, kind, label)
    return config


def _read_weights(heads: Heads, path: Path, label: str) -> None:
    """Read the weights; every name and shape must be the one the configuration implies."""
    if not path.is_file():
        raise HeadsError(f"{label}: there is no {WEIGHTS}; heads are read from safetensors only")
    try:
        state = _unpacked(load_file(path))
    except (SafetensorError, OSError, RuntimeError) as error:
        raise HeadsError(f"{label}: {WEIGHTS} cannot be read: {error}") from None
    wanted = {name: tuple(tensor.shape) for name, tensor in heads.state_dict().items()}
    given = {name: tuple(tensor.shape) for name, tensor in state.items()}
    if wanted != given:
        odd = sorted(n for n in wanted.keys() | given.keys() if wanted.get(n) != given.get(n))[0]
        raise HeadsError(
            f"{label}: {WEIGHTS} has {odd!r} of shape {given.get(odd)}, but {CONFIG} implies "
            f"{wanted.get(odd)}"
        )
    if not all(bool(torch.isfinite(tensor).all()) for tensor in state.values()):
        raise HeadsError(f"{label}: {WEIGHTS} holds values that are not finite numbers")
    heads.load_state_dict(state, assign=True)
