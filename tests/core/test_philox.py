"""Philox against its published vectors, on Python numbers, numpy arrays and torch tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats

from specviz.core import philox

# Random123's known-answer tests for philox4x32-10: counter, key, result.
KNOWN = [
    ("00000000 00000000 00000000 00000000", "00000000 00000000",
     "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff",
     "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0",
     "d16cfe09 94fdcceb 5001e420 24126ea1"),
]  # fmt: skip
KINDS = {
    "int": int,
    "numpy": lambda word: np.array([word, word]),
    "torch": lambda word: torch.tensor([word, word]),
}


def words(text: str) -> tuple[int, ...]:
    return tuple(int(word, 16) for word in text.split())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("counter", "key", "result"), KNOWN)
def test_published_vectors(counter: str, key: str, result: str, kind: str) -> None:
    found: Any = philox.philox(tuple(map(KINDS[kind], words(counter))), words(key))  # type: ignore[arg-type]
    flat = np.array([np.asarray(word).ravel() for word in found])  # (4, 1 or 2)
    assert flat.T.tolist() == [list(words(result))] * flat.shape[1]


def test_numpy_and_torch_agree_on_any_counter() -> None:
    counters = np.random.default_rng(0).integers(0, 2**32, size=(4, 2000))
    key = (0xDEADBEEF, 12345)
    ours = philox.philox(tuple(counters), key)
    theirs = philox.philox(tuple(torch.from_numpy(c) for c in counters), key)
    assert all(np.array_equal(a, b.numpy()) for a, b in zip(ours, theirs, strict=True))
    assert all(word.min() >= 0 and word.max() < 2**32 for word in ours)


def test_one_number_is_the_same_as_that_of_its_lane() -> None:
    lanes = np.array([0, 1, 5, 2**31, 2**32 - 1])
    many = philox.uniforms(2**32 - 1, 7, 3, 12_345, 99, lanes)
    one = [philox.uniform(2**32 - 1, 7, 3, 12_345, 99, int(lane)) for lane in lanes]
    assert many.tolist() == one


def test_numpy_integers_are_as_good_as_ints() -> None:
    key = [np.int64(7), np.int32(2**31 - 1), np.int64(3)]
    assert philox.uniform(0, 0, 1, *key) == philox.uniform(0, 0, 1, *map(int, key))  # type: ignore[arg-type]


def test_no_number_is_0_or_1() -> None:
    smallest, largest = philox._unit(0, 0), philox._unit(philox.MASK, philox.MASK)
    assert 0 < smallest < 2**-52
    assert 1 - 2**-52 < largest < 1


N, BINS = 100_000, 200


def along(axis: str) -> Any:
    """Uniforms along one word of the counter or of the key, the others fixed."""
    steps = np.arange(N)
    fixed = np.full(N, 1)
    counter = dict.fromkeys(("purpose", "position", "round", "lane"), fixed)
    key: dict[str, Any] = {"seed": 0, "sequence": 0}
    (key if axis in key else counter)[axis] = steps
    high, low, _, _ = philox.philox(tuple(counter.values()), tuple(key.values()))  # type: ignore[arg-type]
    return philox._unit(high, low)


def p_values(u: Any) -> tuple[float, float]:
    """Chi-square of the numbers, and of neighbouring pairs on a grid."""
    single = np.histogram(u, BINS, (0, 1))[0]
    pairs = np.histogram2d(u[::2], u[1::2], 15, ((0, 1), (0, 1)))[0]
    return float(stats.chisquare(single).pvalue), float(stats.chisquare(pairs.ravel()).pvalue)


@pytest.mark.parametrize("axis", ["position", "round", "lane", "seed", "sequence"])
def test_numbers_are_uniform_and_neighbours_independent(axis: str) -> None:
    assert min(p_values(along(axis))) > 1e-3


@pytest.mark.parametrize("axis", ["position", "round", "lane", "seed", "sequence"])
def test_a_generator_of_two_rounds_is_caught(axis: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(philox, "ROUNDS", 2)
    assert min(p_values(along(axis))) < 1e-12


def test_a_small_bias_is_caught() -> None:
    assert p_values(along("lane") ** 1.05)[0] < 1e-12
