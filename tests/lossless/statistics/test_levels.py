"""A right sampler is called wrong at most as often as alpha says, all tests together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from specviz.lossless import BatteryReport, Scores, battery, battery_of_scores, two_sample
from specviz.lossless import score_tokens as score
from tests.lossless.samplers import (
    conditional,
    markov,
    texts,
    top_k,
    top_p,
    tree_of,
    upper_bound,
    wrong_distribution,
)

LENGTH = 4
DENSE = markov(8)
DISTRIBUTIONS = {
    "dense": (DENSE, ()),
    "top-k": (top_k(DENSE, 3), ()),
    "top-p": (top_p(DENSE, 0.8), ()),
    "ends": (DENSE, (2,)),
}


def one_sample(name: str) -> Callable[[int], BatteryReport]:
    table, ends = DISTRIBUTIONS[name]
    tree, draft = tree_of(table, LENGTH, end_ids=ends), conditional(markov(8, seed=4))
    return lambda seed: battery(tree.draw(2000, seed), tree, draft=draft, seed=seed)


def two_samples(name: str) -> Callable[[int], BatteryReport]:
    table, ends = DISTRIBUTIONS[name]
    tree = tree_of(table, LENGTH, end_ids=ends)
    return lambda seed: two_sample(tree.draw(2000, 2 * seed), tree.draw(3000, 2 * seed + 1))


def scored(name: str) -> Callable[[int], BatteryReport]:
    """Teacher-forced: four texts of 300 tokens, of a larger vocabulary."""
    table = markov(40, seed=5) if name == "dense" else top_k(markov(40, seed=5), 6)
    q = markov(40, seed=6)
    cdf = np.cumsum(table, axis=1)

    def run(seed: int) -> BatteryReport:
        rng = np.random.default_rng(seed)
        parts = []
        for _ in range(4):
            text = [0]
            for u in rng.random(300):
                text.append(int(np.searchsorted(cdf[text[-1]], u * cdf[text[-1], -1], "right")))
            parts.append(score(table[text[:-1]], text[1:], q[text[:-1]]))
        return battery_of_scores(Scores.join(parts), seed=seed)

    return run


ENGINES: dict[str, Callable[[int], BatteryReport]] = {
    **{f"distribution known, {name}": one_sample(name) for name in DISTRIBUTIONS},
    "reference sample, dense": two_samples("dense"),
    "reference sample, top-k": two_samples("top-k"),
    "scored, dense": scored("dense"),
    "scored, top-k": scored("top-k"),
}


def alarms(run: Callable[[int], BatteryReport], seeds: Any) -> int:
    return sum(run(seed).exit_code != 0 for seed in seeds)


@pytest.mark.parametrize("name", ENGINES)
def test_false_alarms_are_rare(name: str) -> None:
    """At 1%, four or more alarms in 60 runs have probability .003."""
    assert alarms(ENGINES[name], range(60)) <= 3


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", ENGINES)
def test_false_alarms_stay_at_their_level(name: str) -> None:
    runs = 6000
    found = alarms(ENGINES[name], range(runs))
    print(f"{name}: {found} of {runs}, at most {upper_bound(found, runs):.4f} (99%)")
    assert upper_bound(found, runs) <= 0.015


def test_the_bound_is_failed_by_what_is_not_corrected() -> None:
    """The planted twin: the smallest of eleven p-values, as if it had been the only test."""
    run = one_sample("dense")
    found = 0
    for seed in range(100):
        p = [finding.p for finding in run(seed).findings if finding.p is not None]
        found += min(p) < 0.05
    assert found >= 25
    assert upper_bound(150, 6000) > 0.015


def test_the_same_tests_see_a_sampler_that_is_wrong() -> None:
    from tests.lossless.samplers import golden_tree

    wrong, tree = wrong_distribution("resample_from_p"), golden_tree()
    assert alarms(lambda seed: battery(texts(wrong, 2000, seed, 4), tree), range(10)) == 10
