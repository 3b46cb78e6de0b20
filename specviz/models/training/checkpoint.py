"""Checkpoints: tensors and plain facts in one safetensors file, written whole or not at all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor, nn


def save(path: Path, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
    """Write ``tensors`` and the JSON-able ``facts`` to ``path`` atomically.

    An interrupted save leaves the previous file untouched.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".tmp")
    whole = {name: tensor.detach().contiguous() for name, tensor in tensors.items()}
    save_file(whole, temporary, metadata={"format": "pt", "facts": json.dumps(facts)})
    temporary.replace(path)


def load(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return the tensors and the facts of a checkpoint.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    """
    if not path.is_file():
        raise FileNotFoundError(f"no checkpoint at {path}; train first, or give another --run")
    with safe_open(path, framework="pt") as file:
        facts = json.loads(file.metadata()["facts"])
        names = file.keys()
        return {name: file.get_tensor(name) for name in names}, facts


@torch.no_grad()
def restore(model: nn.Module, tensors: dict[str, Tensor]) -> None:
    """Copy a checkpoint's weights (names with ``model.`` before them) into ``model``."""
    for name, parameter in model.named_parameters():
        parameter.copy_(tensors[f"model.{name}"])
