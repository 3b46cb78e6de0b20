"""``specviz info``: versions, devices and the bundled models."""

from __future__ import annotations

import argparse
import json
import platform
from importlib import metadata
from pathlib import Path
from typing import Any

from specviz._version import __version__
from specviz.cli.output import Output

LIBRARIES = ("torch", "transformers", "tokenizers", "numpy", "scipy", "matplotlib", "plotly")


def run(arguments: argparse.Namespace, output: Output) -> int:
    """Print what is installed here and return the exit code."""
    output.rows(
        [("specviz", __version__), ("python", platform.python_version())]
        + [(name, _version(name)) for name in LIBRARIES]
    )
    output.line()
    output.rows(_devices())
    output.heading("Bundled models")
    output.rows(_bundled())
    return 0


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"


def _devices() -> list[tuple[str, str]]:
    import torch

    rows = [("cpu", f"{platform.machine()}, {torch.get_num_threads()} threads")]
    rows += [(f"cuda:{i}", torch.cuda.get_device_name(i)) for i in range(torch.cuda.device_count())]
    if torch.backends.mps.is_available():
        rows.append(("mps", "Apple GPU"))
    return rows


def _bundled() -> list[tuple[str, str]]:
    """Return what the pair that comes with the package is, and what was measured of it."""
    from specviz.models.load import ModelNotFoundError, bundled, load

    try:
        folder = bundled()
        pair = load(device="cpu")
    except ModelNotFoundError as error:
        return [("none", str(error))]
    rows = [(role, _described(getattr(pair, role))) for role in ("target", "draft")]
    return [*rows, *_measured(folder), ("folder", str(folder))]


def _described(model: Any) -> str:
    context = "any length" if model.context_length is None else f"{model.context_length:,} tokens"
    return (
        f"{model.parameters:,} parameters, {model.kind}, vocabulary {model.vocab_size:,}, "
        f"context {context}"
    )


def _measured(folder: Path) -> list[tuple[str, str]]:
    """Return the losses and the alpha on the models' cards, where they were measured."""
    try:
        domains = json.loads((folder / "measured.json").read_text("utf-8"))["corpus"]
        return [
            (
                f"held-out {name}",
                f"alpha {row['alpha']:.3f}, loss of the target {row['loss_target']:.3f}, "
                f"of the draft {row['loss_draft']:.3f}",
            )
            for name, row in domains.items()
        ]
    except (OSError, ValueError, KeyError, TypeError):
        return []
