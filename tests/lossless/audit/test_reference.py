"""Two samples: the same engine with speculation on and off."""

from __future__ import annotations

import numpy as np
import pytest

from specviz.lossless import (
    Sample,
    Verdict,
    two_sample,
)
from tests.lossless.samplers import golden_tree, markov, texts, tree_of, wrong_distribution

TABLE = markov(8)


def test_two_samples_of_one_sampler_agree_and_of_two_differ() -> None:
    tree = golden_tree()
    reference = tree.draw(20_000, 1)
    assert two_sample(tree.draw(10_000, 2), reference).verdict is Verdict.NO_DISCREPANCY_FOUND
    report = two_sample(texts(wrong_distribution("resample_from_p"), 10_000, 2, 4), reference)
    assert report.verdict is Verdict.DISCREPANCY
    assert report.witness is not None
    assert 0.05 < report.witness.low < 17 / 80
    same = two_sample(reference, Sample(np.repeat(reference.tokens[::2], 2, axis=0), 4))
    assert same.verdict is Verdict.NOT_INDEPENDENT
    few = two_sample(tree.draw(30, 2), reference)
    assert few.verdict is Verdict.INCONCLUSIVE
    assert two_sample(tree.draw(few.needed or 0, 3), tree.draw(few.needed or 0, 4)).exit_code == 0
    with pytest.raises(ValueError, match="sample has length 2, reference has 3"):
        two_sample(Sample.of([[0, 1]], 4), reference)


def test_two_samples_that_end() -> None:
    tree = tree_of(TABLE, end_ids=[3])
    a, b = tree.draw(4000, 0), tree.draw(4000, 1)
    assert two_sample(a, b).verdict is Verdict.NO_DISCREPANCY_FOUND
    late = TABLE.copy()
    late[:, 3] *= 0.7
    other = tree_of(late / late.sum(axis=1, keepdims=True), end_ids=[3])
    assert two_sample(other.draw(4000, 0), b).verdict is Verdict.DISCREPANCY
