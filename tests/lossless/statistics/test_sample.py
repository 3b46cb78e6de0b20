"""Samples and distributions: what is taken, what is refused and in which words."""

from __future__ import annotations

import numpy as np
import pytest

from specviz.lossless import END, ConditionalDistribution, Sample, battery, grow
from specviz.lossless.statistics.sample import word


def test_texts_that_ended_go_on_with_the_end_symbol() -> None:
    sample = Sample.of([[1, 2, 0], [0], [3, 0]], 4, end_ids=[0])
    assert sample.tokens.tolist() == [[1, 2, 0], [0, END, END], [3, 0, END]]
    assert (len(sample), sample.length, sample.end_ids) == (3, 3, frozenset({0}))


def test_texts_are_cut_at_a_fixed_length() -> None:
    assert Sample.of([[1, 2, 3], [3, 2, 1, 0]], 4, length=2).tokens.tolist() == [[1, 2], [3, 2]]
    assert Sample.of(np.arange(6).reshape(2, 3), 6, length=2).tokens.tolist() == [[0, 1], [3, 4]]


@pytest.mark.parametrize(
    ("sequences", "options", "says"),
    [
        ([], {}, "sequences is empty"),
        ([[]], {}, "sequences is empty"),
        (np.zeros((0, 3), dtype=int), {}, "sequences is empty"),
        ([[1, 4]], {}, r"has id 4; ids must lie in 0 … 3"),
        ([[1, -2]], {}, "has id -2"),
        ([[1, 2], [3]], {}, r"sequences\[1\] has 1 tokens where 2 are needed.*length=1"),
        ([[1, 2], [3]], {"end_ids": [0]}, r"does not end with one of end_ids=\[0\]"),
        ([[1, 2], []], {"end_ids": [0]}, r"sequences\[1\] has 0 tokens"),
        ([[1, -1]], {}, "after a token that is not in end_ids"),
        ([[1, -1], [1, 0]], {"end_ids": [0]}, "after a token that is not in end_ids"),
        ([[1, 2]], {"length": 0}, "length must be a whole number >= 1, got 0"),
        ([[[1, 2]]], {}, r"sequences\[0\] must be one list"),
    ],
)
def test_wrong_sequences_are_refused(sequences: object, options: dict, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        Sample.of(sequences, 4, **options)


@pytest.mark.parametrize(
    ("sequences", "vocab_size", "says"),
    [
        ("a text", 4, "not text"),
        ([[0.5, 1.5]], 4, "whole numbers, got float64"),
        ([[1]], 4.0, "vocab_size must be a whole number"),
    ],
)
def test_wrong_types_are_refused(sequences: object, vocab_size: object, says: str) -> None:
    with pytest.raises(TypeError, match=says):
        Sample.of(sequences, vocab_size)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("distribution", "says"),
    [
        ([0.5, np.nan], "probabilities of target after .* must be finite .* got nan"),
        ([0.5, np.inf], "must be finite .* got inf"),
        ([1.5, -0.5], "not negative, got -0.5 at token 1"),
        ([0.5, 0.4], r"do not sum to 1 \(off by 0.1"),
        ([1.0], r"must have shape \(2,\), got \(1,\)"),
    ],
)
def test_what_is_no_distribution_is_refused(distribution: list[float], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        battery(Sample.of([[0, 1], [1, 1]], 2), lambda prefix: distribution)


def test_a_distribution_of_low_precision_is_renormalised() -> None:
    distribution = ConditionalDistribution(lambda prefix: np.array([0.1, 0.9], dtype=np.float16), 2)
    assert distribution(()).dtype == np.float64
    assert abs(distribution(()).sum() - 1) < 1e-15


def test_a_distribution_is_asked_once_per_context() -> None:
    asked: list[tuple[int, ...]] = []

    def conditional(prefix: tuple[int, ...]) -> list[float]:
        asked.append(prefix)
        return [0.5, 0.5]

    distribution = ConditionalDistribution(conditional, 2)
    grow(distribution, 2, 3)
    grow(distribution, 2, 3)
    assert sorted(asked) == sorted([(), (0,), (1,), (0, 0), (0, 1), (1, 0), (1, 1)])


def test_contexts_can_be_asked_for_together() -> None:
    class Batched:
        calls = 0

        def __call__(self, prefix: tuple[int, ...]) -> list[float]:
            raise AssertionError("many() should have been used")

        def many(self, prefixes: list[tuple[int, ...]]) -> np.ndarray:
            self.calls += 1
            return np.array([[0.25, 0.75] for _ in prefixes])

    batched = Batched()
    tree = grow(batched, 2, 4)
    assert (tree.contexts, batched.calls) == (15, 4)


def test_a_sample_must_fit_the_tree() -> None:
    tree = grow(lambda prefix: [0.5, 0.5], 2, 3)
    with pytest.raises(ValueError, match="must agree on length, got 2 and 3"):
        battery(Sample.of([[0, 1]], 2), tree)
    with pytest.raises(TypeError, match="target must be a callable"):
        battery(Sample.of([[0, 1]], 2), [0.5, 0.5])  # type: ignore[arg-type]


def test_token_strings_are_shown_escaped() -> None:
    assert word(3) == "⟨3⟩"
    assert word(END) == "(end)"
    assert word(1, ["a", " fox"]) == "' fox' (id 1)"
    assert word(0, {0: "\u202eevil\n"}) == r"'\u202eevil\n' (id 0)"
    assert word(7, {0: "x"}) == "⟨7⟩"
    assert len(word(0, ["x" * 10_000])) < 60
