"""End ids after an end are padding, as ``generate`` writes it; anything else is not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import specviz as sv
from specviz.core.tabular import TabularModel
from specviz.lossless import Sample, Verdict

END = 3
LENGTH = 5
MODEL = TabularModel([0.25] * 4, eos_ids=[END])


def rows(seed: int, n: int = 2000, after: int = END) -> Any:
    """Return honest texts, filled up with ``after`` behind their end."""
    drawn = np.random.default_rng(seed).integers(0, 4, size=(n, LENGTH))
    ended = np.cumsum(drawn == END, axis=1) - (drawn == END) > 0
    return np.where(ended, after, drawn)


def ragged(seed: int) -> list[list[int]]:
    return [[*row, END][: [*row, END].index(END) + 1][:LENGTH] for row in rows(seed).tolist()]


@pytest.mark.parametrize("method", ["battery", "scores"])
def test_padding_with_the_end_id_passes(method: str) -> None:
    report = sv.audit(rows(0), [0], target=MODEL, length=LENGTH, method=method)
    assert report.verdict is Verdict.NO_DISCREPANCY_FOUND
    short = sv.audit(ragged(0), [0], target=MODEL, length=LENGTH, method=method)
    assert short.report.findings == report.report.findings  # the same texts, written otherwise


@pytest.mark.parametrize("method", ["battery", "scores"])
def test_other_tokens_after_an_end_do_not(method: str) -> None:
    wrong = sv.audit(rows(0, after=1), [0], target=MODEL, length=LENGTH, method=method)
    assert wrong.verdict is Verdict.IMPOSSIBLE_TOKEN
    broken = rows(0)
    text = int(np.argmax(broken[:, 0] == END))
    broken[text, 2] = 1  # end, padding, a token, padding
    late = sv.audit(broken, [0], target=MODEL, length=LENGTH, method=method)
    assert late.verdict is Verdict.IMPOSSIBLE_TOKEN
    assert late.report.impossible is not None
    assert late.report.impossible.text == text


def test_a_function_may_pad() -> None:
    for method in ("battery", "scores"):
        report = sv.audit(
            lambda prompt, n, seed: rows(seed, n), [0], target=MODEL, length=LENGTH, n=2000,
            method=method,
        )  # fmt: skip
        assert report.verdict is Verdict.NO_DISCREPANCY_FOUND


def test_padding_on_one_side_only() -> None:
    settings: dict[str, Any] = {"end_ids": [END], "vocab_size": 4}
    same = sv.audit(rows(0), [0], reference=ragged(1), **settings)
    assert same.verdict is Verdict.NO_DISCREPANCY_FOUND
    assert sv.audit(ragged(1), [0], reference=rows(0), **settings).exit_code == 0
    biased = rows(2)
    biased[:300, 0] = 0
    assert sv.audit(biased, [0], reference=ragged(1), **settings).exit_code == 1


def test_a_sample_reads_padding_as_the_end() -> None:
    sample = Sample.of([[1, 3, 3], [3, 3, 3], [1, 2, 3], [3, 3, 1]], 4, end_ids=[3])
    assert sample.tokens.tolist() == [[1, 3, -1], [3, -1, -1], [1, 2, 3], [3, -1, 1]]
    unpadded = Sample.of([[3, 3, 3]], 4)
    assert unpadded.tokens.tolist() == [[3, 3, 3]]  # no end ids, no padding


def test_texts_cut_short_are_said() -> None:
    """Texts of 4 tokens where 100 were asked for: judged, and said."""
    texts = np.random.default_rng(0).integers(0, 3, size=(2000, 4))
    uniform = TabularModel([1 / 3] * 3)
    for method in ("auto", "scores"):
        report = sv.audit(texts, [0], target=uniform, length=100, method=method)
        assert "2,000 of 2,000 texts are shorter than the 100 tokens asked for" in report.text
        whole = sv.audit(texts, [0], target=uniform, length=4, method=method)
        assert "shorter than" not in whole.text
    ended = sv.audit(ragged(0), [0], target=MODEL, length=LENGTH)
    assert "shorter than" not in ended.text
