"""A network and a plan small enough to train inside a test."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import torch
from transformers import LlamaForCausalLM

from specviz.models.training.bundled.target import TargetSettings, TrainingPlan

VOCAB = 64
TINY = TargetSettings(
    layers=3,
    vocab=VOCAB,
    hidden=32,
    intermediate=48,
    heads=4,
    kv_heads=2,
    max_context=64,
    tokens_per_step=128,
    warmup=4,
)
PLAN = TrainingPlan(context=32, log_every=1, compile=False)


def tiny(layers: int = 3, seed: int = 0, loud: float = 8.0) -> LlamaForCausalLM:
    """Return a small network whose distributions are far from uniform."""
    model = replace(TINY, layers=layers, seed=seed).build()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 2:
                parameter.mul_(loud)
    return model.eval()


def curve(run: Path, key: str = "loss") -> dict[int, float]:
    """Return the logged value by step."""
    lines = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    return {line["step"]: line[key] for line in lines if key in line}
