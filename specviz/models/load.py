"""``sv.load()``: the bundled pair, or any target and draft by name or folder."""

from __future__ import annotations

import importlib.resources
import os
from pathlib import Path
from typing import Any

import torch

from specviz.models.checkpoint import (
    ModelNotFoundError,
    Source,
    load_model,
    load_tokenizer,
    locate,
)
from specviz.models.model import Model, as_model
from specviz.models.pair import Pair
from specviz.models.quiet import quiet

__all__ = ["Model", "ModelNotFoundError", "as_model", "load"]

BUNDLED_VARIABLE = "SPECVIZ_BUNDLED"
"""Environment variable: another folder with ``target`` and ``draft`` to load by default."""

BUNDLED_DRAFTS = {
    "distilled": "draft",
    "text-only": "draft-text-only",
    "prose-only": "draft-prose-only",
}
"""Drafts of the bundled target: name → folder."""


def load(
    target: str | os.PathLike[str] | None = None,
    *,
    draft: str | os.PathLike[str] | None = None,
    device: str | torch.device = "auto",
    dtype: str | torch.dtype = "auto",
    device_map: Any = None,
    revision: str | None = None,
    draft_revision: str | None = None,
    trust_remote_code: bool = False,
) -> Pair:
    """Load a target and its draft.

    Parameters
    ----------
    target : str or path, optional
        A folder that ``save_pretrained`` wrote, or a name on the Hugging Face Hub. Without it the
        pair that comes with the package is loaded.
    draft : str or path, optional
        The smaller model of the same tokenizer. Without it the pair has no draft model, and needs
        a drafter that works without one. Of the bundled target: ``"distilled"`` (the default),
        ``"text-only"`` or ``"prose-only"``, drafts of one size that learned from different things.
    device : str
        ``"cpu"``, ``"cuda"``, ``"cuda:1"``, ``"mps"``; ``"auto"`` is a CUDA GPU if there is one,
        else the CPU.
    dtype : str or torch.dtype
        ``"float32"``, ``"bfloat16"``, ``"float16"``, ``"float64"``. ``"auto"`` is what the
        checkpoint says on a GPU, and float32 on a CPU, where half precision gains little and its
        rounding lets batched verification and single steps disagree about near ties; always
        float32 for the bundled pair, which is stored in half precision only to be small.
    device_map : str or dict, optional
        Spreads the target over several devices in transformers' own way (needs ``accelerate``);
        ``device`` then only places the draft.
    revision, draft_revision : str, optional
        Branch, tag or commit on the Hub. A copy in the local cache is used as it is.
    trust_remote_code : bool
        Let Python code that comes with a checkpoint run. Only safetensors are read either way.

    Returns
    -------
    Pair

    Raises
    ------
    ModelNotFoundError
        If a model is nowhere, or cannot be reached.
    ValueError, TypeError
        If a checkpoint cannot be used, the two tokenizers differ, or an argument is wrong.

    Examples
    --------
    ::

        pair = sv.load()
        pair = sv.load("org/target", draft="org/draft", device="cuda")
    """
    _check_place("target", target)
    _check_place("draft", draft)
    if target is None:
        if revision is not None:
            raise ValueError(f"revision={revision!r} was given without a target")
        if draft is not None and str(draft) not in BUNDLED_DRAFTS:
            known = ", ".join(map(repr, BUNDLED_DRAFTS))
            raise ValueError(
                f"draft={str(draft)!r} was given without a target; "
                f"the bundled target comes with the drafts {known}"
            )
    if draft is None and draft_revision is not None:
        raise ValueError(f"draft_revision={draft_revision!r} was given without a draft")
    place = _device(device)
    number = _dtype(dtype)
    if target is None:
        folder = bundled()
        which = BUNDLED_DRAFTS["distilled" if draft is None else str(draft)]
        if not (folder / which / "config.json").is_file():
            raise ModelNotFoundError(f"the bundled models have no draft {str(draft)!r}")
        places = {"target": "target", "draft": which}
        sources = [Source(role, str(folder / place), True) for role, place in places.items()]
        number = torch.float32 if number is None else number
    else:
        sources = [locate("target", target, revision, trust_remote_code)]
        if draft is not None:
            sources.append(locate("draft", draft, draft_revision, trust_remote_code))
    models, tokenizers = [], []
    with quiet(progress=target is not None):
        for source in sources:
            spread = device_map if source.role == "target" else None
            models.append(_load_one(source, place, number, spread))
            tokenizers.append(load_tokenizer(source))
    return Pair(
        models[0],
        models[1] if len(models) > 1 else None,
        tokenizers[0],
        draft_tokenizer=tokenizers[1] if len(tokenizers) > 1 and tokenizers[0] else None,
    )


def bundled() -> Path:
    """Return the folder of the pair that comes with the package.

    Raises
    ------
    ModelNotFoundError
        If the weights are not there.
    """
    elsewhere = os.environ.get(BUNDLED_VARIABLE)
    own = importlib.resources.files("specviz.models") / "bundled"
    folder = Path(elsewhere).expanduser() if elsewhere else Path(str(own))
    for role in ("target", "draft"):
        if not (folder / role / "config.json").is_file():
            where = f"{BUNDLED_VARIABLE}={elsewhere!r}" if elsewhere else "this installation"
            raise ModelNotFoundError(
                f"{where} has no bundled {role} model: "
                f'load a pair by name with sv.load("org/target", draft="org/draft")'
            )
    return folder


def _load_one(
    source: Source, device: torch.device, dtype: torch.dtype | None, device_map: Any
) -> Model:
    """Load one checkpoint and put it where it belongs."""
    if dtype is None:
        on_cpu = device.type == "cpu" and device_map is None
        dtype = torch.float32 if on_cpu else None
    options: dict[str, Any] = {"dtype": "auto" if dtype is None else dtype}
    if device_map is not None:
        options["device_map"] = device_map
    model = load_model(source, **options)
    if device_map is None:
        model.to(device)
    wrapped: Model = as_model(model, source.name, role=source.role)
    return wrapped


def _check_place(role: str, where: Any) -> None:
    if where is None:
        return
    if not isinstance(where, (str, os.PathLike)):
        raise TypeError(
            f"{role} must be a folder or a name on the Hub, got an object of type "
            f"{type(where).__name__}: sv.Pair(target=…, draft=…) takes models in memory"
        )
    text = os.fspath(where)
    if not text:
        raise ValueError(f"{role} must be a folder or a name on the Hub, got an empty string")
    if str(text).endswith(".specviz"):
        raise ValueError(
            f"{role} {str(text)!r} is a recorded trace, not a model: "
            f"sv.Trace.load({str(text)!r}) opens it"
        )


def _device(device: Any) -> torch.device:
    """Return a device that is there, or say in one sentence why not."""
    if not isinstance(device, (str, torch.device)):
        raise TypeError(f"device must be a name such as 'cpu' or 'cuda', got {device!r}")
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        place = torch.device(device)
    except RuntimeError:
        raise ValueError(
            f"device must be 'auto', 'cpu', 'cuda', 'cuda:1' or 'mps', got {device!r}"
        ) from None
    here = {
        "cpu": 1,
        "cuda": torch.cuda.device_count(),
        "mps": int(torch.backends.mps.is_available()),
    }
    if (place.index or 0) >= here.get(place.type, 0):
        raise ValueError(
            f"device={str(device)!r}, but this machine has {here.get(place.type, 0)} devices of "
            f"type {place.type!r}: use 'auto', or 'cpu'"
        )
    return place


def _dtype(dtype: Any) -> torch.dtype | None:
    """Return a floating-point type, or None for ``"auto"``."""
    known = {name: getattr(torch, name) for name in ("float32", "bfloat16", "float16", "float64")}
    if isinstance(dtype, torch.dtype) and dtype in known.values():
        return dtype
    if isinstance(dtype, str):
        name = dtype.removeprefix("torch.")
        if name == "auto":
            return None
        if name in known:
            return known[name]
    if not isinstance(dtype, (str, torch.dtype)):
        raise TypeError(f"dtype must be a name such as 'float32' or a torch.dtype, got {dtype!r}")
    raise ValueError(f"dtype must be 'auto', {', '.join(map(repr, known))}, got {str(dtype)!r}")
