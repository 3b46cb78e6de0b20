"""The linear map between two caches: places taken out and put back, fitted, saved and loaded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

import specviz as sv
from specviz.core.contract import Draft
from specviz.decoding.hf.cache import read_rows
from specviz.decoding.hf.target import HFTarget
from specviz.models.cache_projection import (
    CacheProjection,
    fit,
    flatten,
    shape_of,
    turned,
    unflatten,
)
from tests.decoding import families as f
from tests.drafters.small import small_llama

FITTED = CacheProjection(
    torch.arange(32.0).reshape(4, 8), torch.arange(8.0), (1, 1, 2), (1, 2, 2), 0.5
)


def rows_of(pair: sv.Pair, ids: np.ndarray) -> Any:
    session = HFTarget(pair.target)
    session.verify(ids, Draft.empty(pair.vocab_size))
    return read_rows(session.cache, 0, len(ids))


def test_turning_back_takes_the_place_out_of_a_key() -> None:
    """In the first layer a key depends on its token and its place only."""
    model = small_llama(3, layers=2)
    keys, _ = rows_of(sv.Pair(model), np.array([2, 1, 2, 0, 2]))[0]
    unturned = turned(keys, model, 0, back=True)
    assert not torch.allclose(keys[..., 0, :], keys[..., 2, :], atol=1e-2)
    for place in (2, 4):
        torch.testing.assert_close(unturned[..., place, :], unturned[..., 0, :])


@pytest.mark.parametrize("start", [0, 7])
def test_flattening_can_be_undone(start: int) -> None:
    pair = sv.Pair(f.FAMILIES["phi"]()[0])  # rotates part of each key only
    rows = rows_of(pair, np.arange(5))
    flat = flatten(rows, pair.target.model, start)
    back = unflatten(flat, shape_of(rows), pair.target.model, start, torch.float32)
    for (keys, values), (keys_2, values_2) in zip(rows, back, strict=True):
        torch.testing.assert_close(keys_2, keys, atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(values_2, values)


def test_a_linear_relation_is_found() -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(300, 4, generator=generator)
    weight, bias = torch.randn(4, 8, generator=generator), torch.randn(8, generator=generator)
    found = fit(x, x @ weight + bias, (1, 1, 2), (1, 2, 2), ridge=1e-9)
    torch.testing.assert_close(found.weight, weight, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(found.bias, bias, atol=1e-5, rtol=1e-5)
    assert found.explained == pytest.approx(1)
    noise = torch.randn(300, 8, generator=generator)
    assert abs(fit(x, noise, (1, 1, 2), (1, 2, 2)).explained) < 0.2


def test_layers_of_different_shapes() -> None:
    rows = [(torch.zeros(1, 1, 2, 4),) * 2, (torch.zeros(1, 2, 2, 4),) * 2]
    with pytest.raises(ValueError, match="layers differ"):
        shape_of(rows)


# Files -----------------------------------------------------------------------------------------


def test_saving_and_loading(tmp_path: Path) -> None:
    path = tmp_path / "kv.safetensors"
    FITTED.save(path)
    FITTED.save(path)
    again = CacheProjection.load(path)
    assert torch.equal(again.weight, FITTED.weight) and torch.equal(again.bias, FITTED.bias)
    assert again.draft_shape == FITTED.draft_shape and again.explained == FITTED.explained
    assert [p.name for p in tmp_path.iterdir()] == ["kv.safetensors"], "nothing half-written"


def test_files_that_are_something_else(tmp_path: Path) -> None:
    path = tmp_path / "kv.safetensors"
    with pytest.raises(FileNotFoundError, match="is not a file"):
        CacheProjection.load(path)
    path.write_bytes(b"\x80\x04K\x01.")
    with pytest.raises(ValueError, match="is not a safetensors file"):
        CacheProjection.load(path)
    save_file({"weight": torch.zeros(2, 2)}, path)
    with pytest.raises(ValueError, match="does not hold a KV projection of this version"):
        CacheProjection.load(path)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"weight": torch.zeros(3, 3)}, "is damaged: its weight is"),
        ({"bias": torch.zeros(1)}, "is damaged: its weight is"),
        ({"draft_shape": (1, 1)}, "is damaged"),
        ({"bias": None}, "holds numbers that are not finite"),
    ],
)
def test_damaged_files(tmp_path: Path, change: dict[str, Any], says: str) -> None:
    values = {**vars(FITTED), **change}
    if values["bias"] is None:
        values["bias"] = torch.full_like(FITTED.bias, torch.nan)
    path = tmp_path / "kv.safetensors"
    CacheProjection(**values).save(path)
    with pytest.raises(ValueError, match=says):
        CacheProjection.load(path)
