"""Texts as cells: the counts are those of the tables, the distribution is the target's."""

from __future__ import annotations

import numpy as np
import pytest

from specviz.lossless import EProcess, Sample, cells_of_position, cells_of_texts
from specviz.lossless.statistics.prefix_tree import walk
from specviz.lossless.statistics.tables import all_tables
from tests.lossless.samplers import golden_tree, markov, texts, tree_of, wrong_distribution

N = 3000


@pytest.mark.parametrize("options", [{}, {"end_ids": [3]}, {"max_contexts": 12}])
def test_cells_count_what_the_tables_count(options: dict) -> None:
    tree = tree_of(markov(8), **options)
    sample = tree_of(markov(8), end_ids=options.get("end_ids", ())).draw(N, 0)
    tables = all_tables(tree, [walk(tree, sample.tokens)])
    for table, cells in (
        (tables[-1], cells_of_texts(tree, N)),
        (tables[1], cells_of_position(tree, 1, N)),
    ):
        found = np.bincount(cells.of(sample), minlength=len(cells.distribution))
        assert np.allclose(cells.distribution, table.pooled_distribution)
        assert np.array_equal(found, table.pooled_counts().sum(axis=0))


def test_an_impossible_text_still_has_a_cell() -> None:
    tree = tree_of(markov(8), end_ids=[3])
    sample = Sample(np.array([[3, 1, 1], [1, 3, 3]]), 8, frozenset({3}))
    assert cells_of_texts(tree, N).of(sample).min() >= 0
    assert cells_of_position(tree, 1, N).of(sample).min() >= 0


def test_watching_texts_finds_a_wrong_sampler_and_leaves_a_right_one_alone() -> None:
    tree = golden_tree()
    cells = cells_of_texts(tree, N)
    distribution = wrong_distribution("resample_from_p")

    def crossed(sample: Sample) -> bool:
        watch = EProcess(cells.distribution, alpha=0.01)
        watch.update(cells.of(sample))
        return watch.rejected

    assert all(crossed(texts(distribution, N, seed, 4)) for seed in range(20))
    assert sum(crossed(tree.draw(N, seed)) for seed in range(40)) <= 2  # three: probability .008


def test_a_position_that_is_not_there_is_refused() -> None:
    with pytest.raises(ValueError, match=r"position must lie in 0 … 2, got 3"):
        cells_of_position(golden_tree(), 3, N)
