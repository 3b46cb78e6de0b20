"""What a trace says about the run that made it: settings, models, versions."""

from __future__ import annotations

import platform
from dataclasses import asdict
from importlib import metadata
from typing import Any

from specviz._version import __version__
from specviz.core.contract import DrafterTraits, DraftSession, Sampling
from specviz.core.rules import Rule


def provenance(
    pair: Any,
    session: DraftSession,
    rule: Rule,
    sampling: Sampling,
    traits: DrafterTraits,
    **settings: Any,
) -> dict[str, Any]:
    """Return plain JSON values: enough to run it again, and to know where it ran."""
    return {
        "rule": rule.name,
        "rule_settings": dict(rule.settings),
        "lossless": rule.lossless and traits.lossless,
        "drafter": session.settings(),
        "sampling": {name: _plain(value) for name, value in asdict(sampling).items()},
        "target": describe(pair.target),
        "draft": None if pair.draft is None else describe(pair.draft),
        "vocab_size": pair.vocab_size,
        "stop_ids": sorted(pair.stop_ids),
        **settings,
        "versions": {
            "specviz": __version__,
            "python": platform.python_version(),
            **{name: metadata.version(name) for name in ("numpy", "torch", "transformers")},
        },
        "interrupted": False,
        "finish_reason": None,
    }


def _plain(value: Any) -> Any:
    """Return a number of numpy's as one of Python's, which JSON knows."""
    return value.item() if hasattr(value, "item") else value


def describe(model: Any) -> dict[str, Any]:
    """Return what is needed to say which model it was."""
    return {
        "name": model.name,
        "kind": model.kind,
        "device": str(model.device),
        "dtype": str(model.dtype),
        "parameters": model.parameters,
        "vocab_size": model.vocab_size,
        "context_length": model.context_length,
    }
