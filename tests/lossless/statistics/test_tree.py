"""The tree of contexts: its distribution is the target's, and a walk counts every text once."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from specviz.lossless import END, Sample, grow
from specviz.lossless.statistics.prefix_tree import walk
from specviz.lossless.statistics.tables import all_tables
from tests.lossless.samplers import conditional, markov, top_k, tree_of

TABLE = markov(4, seed=1)


def exact(length: int, ends: frozenset[int]) -> dict[tuple[int, ...], float]:
    """Every text and its probability, by plain multiplication."""
    out: dict[tuple[int, ...], float] = {}
    for text in product([*range(4), END], repeat=length):
        mass, last, ended = 1.0, 0, False
        for token in text:
            if ended or token == END:
                mass *= float(ended and token == END)
            else:
                mass *= float(TABLE[last, token])
            last, ended = token, ended or token in ends
        if mass > 0:
            out[text] = mass
    return out


@pytest.mark.parametrize("ends", [frozenset(), frozenset({2})])
def test_every_table_has_the_distributions_of_brute_force(ends: frozenset[int]) -> None:
    tree = tree_of(TABLE, end_ids=ends)
    every = exact(3, ends)
    sample = np.array(list(every))
    positions_and_pairs = all_tables(tree, [walk(tree, sample)])
    joint = positions_and_pairs[-1]
    assert np.isclose(sum(every.values()), 1)
    for t in range(3):
        brute = np.zeros(6)
        for text, mass in every.items():
            brute[text[t] if text[t] != END else 4] += mass
        assert np.allclose(positions_and_pairs[t].distribution, brute)
    for table in positions_and_pairs:
        assert np.isclose(table.distribution.sum(), 1)
        assert table.counts.sum() == len(every)
    seen = joint.counts[0] > 0
    assert np.allclose(np.sort(joint.distribution[seen]), np.sort(list(every.values())))
    assert np.all(joint.counts[0][seen] == 1)


def test_cells_are_in_prefix_order() -> None:
    tree = tree_of(TABLE, end_ids=[2])
    every = sorted(exact(3, frozenset({2})), key=lambda t: [x if x != END else 9 for x in t])
    joint = all_tables(tree, [walk(tree, np.array(every))])[-1]
    shown = [joint.describe(int(cell), None) for cell in np.flatnonzero(joint.counts[0])]
    words = [" ".join(f"⟨{x}⟩" for x in text if x != END) for text in every]
    assert shown == words


def test_rare_contexts_are_one_cell_and_nothing_is_lost() -> None:
    tree = tree_of(markov(8), length=4, max_contexts=60)
    whole = tree_of(markov(8), length=4)
    assert tree.contexts <= 60 < whole.contexts == 585
    assert tree.covered < whole.covered == 1.0
    sample = whole.draw(2000, 0)
    for table in all_tables(tree, [walk(tree, sample.tokens)]):
        assert np.isclose(table.distribution.sum(), 1)
        assert table.counts.sum() == 2000
    with pytest.raises(ValueError, match="raise max_contexts"):
        tree.draw(10, 0)


def test_the_most_likely_contexts_are_kept() -> None:
    table = markov(8)
    tree = tree_of(table, length=2, max_contexts=6)
    kept = set(tree.levels[1].prefixes[:, 0].tolist())
    assert kept == set(np.argsort(-table[0])[:3].tolist())


def test_a_perfect_sampler_never_emits_the_impossible() -> None:
    table = top_k(markov(8), 2)
    sample = tree_of(table, length=6).draw(20_000, 1)
    last = np.concatenate([np.zeros((20_000, 1), dtype=int), sample.tokens[:, :-1]], axis=1)
    assert np.all(table[last, sample.tokens] > 0)


def test_draws_follow_the_distribution() -> None:
    tree = tree_of(TABLE, end_ids=[2])
    every = exact(3, frozenset({2}))
    drawn = tree.draw(100_000, 7).tokens
    texts, counts = np.unique(drawn, axis=0, return_counts=True)
    assert {tuple(text) for text in texts.tolist()} <= set(every)
    for text, count in zip(texts.tolist(), counts, strict=True):
        mass = every[tuple(text)]
        assert abs(count - 1e5 * mass) < 5 * np.sqrt(1e5 * mass) + 1


def test_large_vocabularies_get_fewer_contexts() -> None:
    distribution = np.full(30_000, 1 / 30_000)
    tree = grow(lambda prefix: distribution, 30_000, 2)
    assert tree.levels[1].contexts < 40
    sample = Sample.of(np.random.default_rng(0).integers(0, 30_000, size=(500, 2)), 30_000)
    assert all(t.counts.sum() == 500 for t in all_tables(tree, [walk(tree, sample.tokens)]))


def test_the_walk_gives_each_text_its_own_conditional_distribution() -> None:
    tree = tree_of(TABLE, length=3)
    tokens = tree.draw(50, 3).tokens
    steps = walk(tree, tokens).cells
    for text, *cells in zip(tokens.tolist(), *steps, strict=True):
        for t, cell in enumerate(cells):
            distribution = conditional(TABLE)(tuple(text[:t]))
            assert np.isclose(
                tree.levels[t].distribution.ravel()[cell], distribution[text[t]], rtol=1e-12
            )
