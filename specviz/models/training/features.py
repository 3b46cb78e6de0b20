"""What heads are trained on: windows of text, and the target's hidden states at every position.

The target runs over each window once; what its heads need of it is kept in float16, in numbered
parts, so that an interrupted pass goes on with the first part that is missing. Layer k of L is
the output of decoder layer k, for k < L divided by its root mean square; layer L is what the
target's own output head reads, so that the target's distributions can be recomputed from it.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor
from tqdm.auto import tqdm

PART = 64
"""Windows in a part: what an interrupt can lose."""


@dataclass(frozen=True)
class Features:
    """Windows and features of a target, memory-mapped.

    ``windows`` is ``(count, time + 1)``; each of ``parts`` is ``(64, time, layers, hidden)``, the
    last one shorter.
    """

    windows: NDArray[Any]
    parts: list[NDArray[Any]]

    def __len__(self) -> int:
        return len(self.windows)

    @property
    def time(self) -> int:
        """Positions in a window."""
        return self.windows.shape[1] - 1

    def batch(self, chosen: NDArray[np.int64], context: int) -> tuple[Tensor, Tensor]:
        """Return pieces of ``context`` positions; each window has ``time // context`` of them.

        Returns
        -------
        ids : Tensor
            ``(rows, context + 1)``.
        features : Tensor
            ``(rows, context, layers, hidden)``, of a target that saw the whole window.
        """
        ids, features = [], []
        for piece in chosen.tolist():
            window, place = divmod(piece, self.time // context)
            start = place * context
            ids.append(self.windows[window, start : start + context + 1].astype(np.int64))
            part = self.parts[window // PART]
            features.append(part[window % PART, start : start + context])
        return torch.from_numpy(np.stack(ids)), torch.from_numpy(np.stack(features)).float()


def heldout_windows(ids: np.ndarray, context: int, most: int) -> Tensor:
    """Return up to ``most`` windows spread evenly over ``ids``, ``(count, context + 1)``."""
    whole = (len(ids) - 1) // context
    if whole < 1:
        raise ValueError(f"held-out text has {len(ids)} tokens, too few for context {context}")
    chosen = np.unique(np.linspace(0, whole - 1, min(most, whole)).astype(int))
    rows = [np.asarray(ids[i * context : (i + 1) * context + 1], np.int64) for i in chosen]
    return torch.from_numpy(np.stack(rows))


def default_layers(depth: int) -> tuple[int, ...]:
    """Return four layers spread over a target of ``depth`` layers, the last among them.

    Examples
    --------
    >>> default_layers(16), default_layers(2)
    ((4, 8, 12, 16), (1, 2))
    """
    return tuple(sorted({max(1, round(depth * share)) for share in (0.25, 0.5, 0.75, 1.0)}))


@torch.no_grad()
def read_layers(model: Any, ids: Tensor, layers: tuple[int, ...]) -> Tensor:
    """Return float32 features ``(batch, time, layers, hidden)`` of a Hugging Face model."""
    backbone = getattr(model, model.base_model_prefix)
    states = backbone(ids, output_hidden_states=True, use_cache=False).hidden_states
    last = len(states) - 1
    rows = []
    for layer in layers:
        state = states[layer].float()
        rows.append(state if layer == last else F.rms_norm(state, state.shape[-1:], eps=1e-5))
    return torch.stack(rows, dim=2)


def write_features(
    model: Any, windows: NDArray[Any], folder: Path, layers: tuple[int, ...], rows: int = 4
) -> Features:
    """Run the target over every window and keep its features; goes on where it was stopped.

    Parameters
    ----------
    model : transformers.PreTrainedModel
        In eval mode.
    windows : array of int
        ``(count, time + 1)`` token ids; the last column is only a label.
    folder : Path
        Gets ``windows.npy``, ``features.json`` and ``features_<part>.npy``.
    layers : tuple of int
        Which layers to keep.
    rows : int
        Windows in one pass.

    Raises
    ------
    ValueError
        If the folder holds features of other windows or layers.
    """
    folder.mkdir(parents=True, exist_ok=True)
    facts = {"layers": list(layers), "shape": list(windows.shape)}
    described = folder / "features.json"
    if described.is_file():
        if json.loads(described.read_text("utf-8")) != facts:
            raise ValueError(f"{folder} holds features of other layers or windows: {described}")
        windows = np.load(folder / "windows.npy", mmap_mode="r")
    else:
        save_array(folder / "windows.npy", windows)
        described.write_text(json.dumps(facts), "utf-8")
    device = model.get_input_embeddings().weight.device
    half = device.type == "cpu"  # bfloat16 products: on CPUs several times as fast
    starts = range(0, len(windows), PART)
    for number, start in enumerate(tqdm(starts, desc="features", delay=2, mininterval=5)):
        path = folder / f"features_{number:04}.npy"
        if path.is_file():
            continue
        parts = []
        for first in range(start, min(start + PART, len(windows)), rows):
            chunk = windows[first : min(first + rows, start + PART), :-1].astype(np.int64)
            with torch.autocast("cpu", torch.bfloat16, enabled=half):
                kept = read_layers(model, torch.from_numpy(chunk).to(device), layers)
            parts.append(kept.clamp(-6e4, 6e4).half().cpu().numpy())
        save_array(path, np.concatenate(parts))
    return load_features(folder)


def load_features(folder: Path) -> Features:
    """Open what :func:`write_features` wrote."""
    windows = np.load(folder / "windows.npy", mmap_mode="r")
    count = -(-len(windows) // PART)
    paths = [folder / f"features_{number:04}.npy" for number in range(count)]
    return Features(windows, [np.load(path, mmap_mode="r") for path in paths])


def save_array(path: Path, array: NDArray[Any]) -> None:
    """Write a .npy file, whole or not at all."""
    temporary = path.with_suffix(".part")
    with temporary.open("wb") as file:
        np.save(file, array)
    temporary.replace(path)


def replace_directory(new: Path, place: Path) -> None:
    """Move the finished folder ``new`` to ``place``, and what was there out of the way."""
    old = None
    if place.exists():
        old = Path(tempfile.mkdtemp(prefix=f".{place.name}-old-", dir=place.parent))
        place.replace(old / "directory")
    new.replace(place)
    if old is not None:
        shutil.rmtree(old)
