"""Pairs for the tests of generate and stream: tables, and tiny models with a tokenizer."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

import specviz as sv
from specviz.core.tabular import TabularModel, TabularPair, TabularSession
from tests.models.tiny import byte_level, llama

VOCAB = 8


def tables(vocab_size: int = VOCAB, order: int = 1, **options: Any) -> TabularPair:
    """A target and a draft of moderate agreement."""
    target = TabularModel.random(vocab_size, order, seed=0, **options)
    other = TabularModel.random(vocab_size, order, seed=1)
    return TabularPair(target, TabularModel(0.5 * target.table + 0.5 * other.table))


def equal_tables(**options: Any) -> TabularPair:
    """Draft = target."""
    target = TabularModel.random(VOCAB, 1, seed=0, **options)
    return TabularPair(target, TabularModel(target.table))


class Untouchable(TabularModel):
    """A model that must not run: opening it is an error already."""

    def session(self, vocab_size: int | None = None) -> TabularSession:
        raise AssertionError("a model ran before the arguments were checked")


def untouchable(**options: Any) -> TabularPair:
    table = np.full((VOCAB, VOCAB), 1 / VOCAB)
    return TabularPair(Untouchable(table, **options), Untouchable(table))


class FailingModel(TabularModel):
    """Runs for some passes; then its logits are bad, or somebody presses Ctrl-C."""

    def __init__(self, table: Any, passes: int, failure: Any, **options: Any) -> None:
        super().__init__(table, **options)
        self.passes = passes
        self.failure = failure

    def session(self, vocab_size: int | None = None) -> TabularSession:
        return _FailingSession(self, vocab_size or self.vocab_size)


class _FailingSession(TabularSession):
    def verify(self, pending: Any, draft: Any) -> Any:
        logits = super().verify(pending, draft)
        if self.passes > self.model.passes:
            failure = self.model.failure
            if isinstance(failure, float):
                logits[-1, 3] = failure
            else:
                raise failure
        return logits


def failing(failure: Any, *, passes: int = 4, who: str = "target") -> TabularPair:
    good = equal_tables()
    bad = FailingModel(good.target.table, passes, failure)
    return TabularPair(bad, good.draft) if who == "target" else TabularPair(good.target, bad)


def sharp(model: torch.nn.Module, scale: float = 8.0) -> torch.nn.Module:
    """Scale the head: a freshly initialised model's distribution is nearly uniform."""
    with torch.no_grad():
        for weight in model.parameters():
            if weight.dim() >= 2:
                weight.mul_(scale)
    return model


def texts(*, context: int = 128, **config: Any) -> sv.Pair:
    """A tiny pair with a tokenizer that has an end-of-text token, never very likely."""
    tokenizer = byte_level()
    size = len(tokenizer)
    config = {"eos_token_id": tokenizer.eos_token_id} | config
    target = sharp(llama(size, seed=0, context=context, **config))
    draft = sharp(llama(size, seed=1, context=context, **config))
    return sv.Pair(target=target, draft=draft, tokenizer=tokenizer)
