"""Rows of a cache, read and written: over what is there, beyond its end, never with a gap."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from specviz.core.contract import Draft
from specviz.decoding.hf.cache import held, read_rows
from specviz.decoding.hf.target import HFTarget
from specviz.models.model import Model
from tests.decoding import families as f

TEXT = np.array([1, 5, 9, 33, 80, 41, 2, 17])
NONE = Draft.empty(f.VOCAB)


@pytest.fixture(scope="module")
def model() -> Model:
    return f.FAMILIES["llama"]()[0]


@pytest.fixture
def target(model: Model) -> HFTarget:
    return HFTarget(model)


def rows_of(model: Model, text: np.ndarray, start: int, end: int) -> list[tuple[torch.Tensor, ...]]:
    session = HFTarget(model)
    session.verify(text, NONE)
    return [(k.clone(), v.clone()) for k, v in read_rows(session.cache, start, end)]


def test_rows_are_those_of_every_layer(model: Model) -> None:
    rows = rows_of(model, TEXT, 2, 5)
    assert len(rows) == 2
    assert all(states.shape == (1, 2, 3, 8) for layer in rows for states in layer)
    whole = rows_of(model, TEXT, 0, 8)
    torch.testing.assert_close(rows[1][0], whole[1][0][..., 2:5, :])


@pytest.mark.parametrize(("start", "end"), [(0, 8), (0, 3), (2, 5), (4, 8), (5, 8)])
def test_writing_what_belongs_there(model: Model, target: HFTarget, start: int, end: int) -> None:
    """Over the first five tokens, or beyond their end: the model goes on as from the text."""
    target.verify(TEXT[:5], NONE)
    target.keep([])
    target.write_rows(start, rows_of(model, TEXT, start, end))
    length = max(5, end)
    assert target.length == held(target.cache) == length
    logits = target.verify(np.append(TEXT[length:], 3), NONE)
    np.testing.assert_allclose(logits[0], f.plain(model, [*TEXT, 3]), atol=1e-4)


def test_writing_something_else_is_seen(model: Model, target: HFTarget) -> None:
    target.verify(TEXT, NONE)
    target.keep([])
    other = np.where(np.arange(8) == 3, 50, TEXT)
    target.write_rows(3, rows_of(model, other, 3, 8))
    logits = target.verify(np.array([3]), NONE)
    np.testing.assert_allclose(logits[0], f.plain(model, [*other, 3]), atol=1e-4)
    assert np.abs(logits[0] - f.plain(model, [*TEXT, 3])).max() > 0.1


def test_an_empty_cache_can_be_filled(model: Model, target: HFTarget) -> None:
    target.write_rows(0, rows_of(model, TEXT, 0, 8))
    logits = target.verify(np.array([3]), NONE)
    np.testing.assert_allclose(logits[0], f.plain(model, [*TEXT, 3]), atol=1e-4)


def test_half_done_tokens_are_forgotten(target: HFTarget, model: Model) -> None:
    target.draft_step(TEXT, 1)
    target.write_rows(0, rows_of(model, TEXT, 0, 5))
    assert target.length == held(target.cache) == 5


def test_gaps_and_unsettled_proposals_are_refused(model: Model, target: HFTarget) -> None:
    rows = rows_of(model, TEXT, 0, 2)
    target.verify(TEXT[:5], Draft.chain([7], None, f.VOCAB))
    with pytest.raises(RuntimeError, match="settle the proposals"):
        target.write_rows(0, rows)
    target.keep([])
    with pytest.raises(ValueError, match="holds 5 tokens, so none can be put at 6"):
        target.write_rows(6, rows)
    assert target.length == held(target.cache) == 5
