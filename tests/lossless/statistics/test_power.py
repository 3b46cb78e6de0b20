"""What would have been caught: published numbers, and rates that simulation confirms."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from specviz.lossless import (
    battery,
    detectable_tv,
    noise_floor,
    power_against,
    samples_for_tv,
)
from specviz.lossless.statistics.findings import holm
from specviz.lossless.statistics.pooling import pool_neighbours
from specviz.lossless.statistics.power import chi_square_power, noncentrality, texts_for_effect
from specviz.lossless.statistics.prefix_tree import walk
from specviz.lossless.statistics.tables import all_tables
from tests.core.golden import GOLDEN, number
from tests.lossless.samplers import (
    WRONG_RULES,
    P,
    Q,
    distribution_under,
    golden_tree,
    markov,
    texts,
    tree_of,
    wrong_distribution,
)

NOMINAL = GOLDEN["wrong_samplers_total_variation_of_the_first_three_tokens"]


@pytest.mark.parametrize(("dof", "expected"), [(7, 19.8), (19, 27.6), (63, 43.8), (4095, 295)])
def test_noncentrality_for_eighty_percent_power(dof: int, expected: float) -> None:
    assert noncentrality(dof, alpha=0.01) == pytest.approx(expected, rel=0.005)


def test_fifty_thousand_texts_show_a_hundredth_on_eight_tokens() -> None:
    assert detectable_tv(50_000, dof=7) == pytest.approx(0.01, rel=0.02)
    assert samples_for_tv(0.01, dof=7) == pytest.approx(50_000, rel=0.02)
    assert samples_for_tv(0.003, dof=7) > 500_000
    n = samples_for_tv(0.02, dof=63, alpha=0.001, power=0.9)
    assert detectable_tv(n, 63, 0.001, 0.9) <= 0.02 < detectable_tv(n - 1, 63, 0.001, 0.9)


def test_power_is_what_simulation_shows() -> None:
    """Pearson's test on an evenly shifted distribution, at the n that should catch it in 80%."""
    distribution = np.full(8, 1 / 8)
    wrong = distribution + np.array([1, -1] * 4) * 0.02 / 4
    n = samples_for_tv(0.02, dof=7)
    counts = np.random.default_rng(0).multinomial(n, wrong, size=2000)
    caught = float(np.mean(stats.chisquare(counts, n * distribution, axis=1).pvalue < 0.01))
    assert caught == pytest.approx(0.8, abs=0.03)
    twin = np.random.default_rng(0).multinomial(n // 2, wrong, size=2000)
    assert np.mean(stats.chisquare(twin, n // 2 * distribution, axis=1).pvalue < 0.01) < 0.6


def test_any_distribution_at_that_distance_is_caught_at_least_as_often() -> None:
    rng = np.random.default_rng(1)
    distribution = rng.dirichlet(np.ones(12))
    n, tv = 5000, detectable_tv(5000, dof=11)
    for _ in range(50):
        away = rng.normal(size=12) * distribution**2
        away -= away.sum() * distribution
        wrong = distribution + away * tv / (np.abs(away).sum() / 2)
        if wrong.min() < 0:
            continue
        strength = n * float(((wrong - distribution) ** 2 / distribution).sum())
        assert chi_square_power(11, strength, 0.01) >= 0.8 - 1e-9


@pytest.mark.parametrize("strength", [1e-12, 1.0, 1e3, 1e5, 1e8])
def test_power_stays_a_probability(strength: float) -> None:
    assert 0 <= chi_square_power(4095, strength, 0.001) <= 1
    assert chi_square_power(3, 0.0, 0.01) == 0.01


def test_noise_floor_is_what_a_perfect_sampler_shows() -> None:
    rng = np.random.default_rng(2)
    tree = tree_of(markov(8, seed=0), length=4)
    distribution = all_tables(tree, [walk(tree, tree.draw(10, 0).tokens)])[-1].distribution
    counts = rng.multinomial(10_000, distribution, size=200)
    shown = float(np.abs(counts / 10_000 - distribution).sum(axis=1).mean() / 2)
    assert np.count_nonzero(distribution) == 4096
    assert noise_floor(distribution, 10_000) == pytest.approx(shown, rel=0.01)
    assert noise_floor(distribution, 10_000) == pytest.approx(0.15, abs=0.03)
    assert noise_floor(distribution, 1_000_000) < 0.02
    assert noise_floor(np.array([1.0]), 100) == 0.0


@pytest.mark.parametrize("name", sorted(set(NOMINAL["faulty_sampler_throughout"])))
def test_known_faults_have_their_distance_and_full_power(name: str) -> None:
    wrong = wrong_distribution(name)
    best, *others = power_against(golden_tree(), wrong, 50_000)
    distance = {table.name: table.tv for table in [best, *others]}
    expected = number(NOMINAL["faulty_sampler_throughout"][name])
    assert distance["continuation"] == pytest.approx(expected, abs=1e-9)
    assert best.power >= 0.999


# In every context the same distribution: which position a bonus token is read from makes no
# difference.
SEEN = sorted(set(WRONG_RULES) - {"bonus_from_the_wrong_position"})


@pytest.mark.parametrize("name", SEEN)
def test_faults_with_full_power_are_caught(name: str) -> None:
    tree, wrong, n = golden_tree(), wrong_distribution(name), 3000
    assert power_against(tree, wrong, n)[0].power >= 0.999
    assert [battery(texts(wrong, n, seed, 4), tree).exit_code for seed in range(10)] == [1] * 10


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", SEEN)
def test_faults_with_full_power_are_caught_in_198_of_200_runs(name: str) -> None:
    tree, wrong, n = golden_tree(), wrong_distribution(name), 50_000
    assert power_against(tree, wrong, n)[0].power >= 0.999
    caught = sum(battery(texts(wrong, n, seed, 4), tree).exit_code == 1 for seed in range(200))
    assert caught >= 198


def test_a_target_without_context_cannot_see_a_bonus_from_the_wrong_position() -> None:
    rule = WRONG_RULES["bonus_from_the_wrong_position"]
    blind = power_against(golden_tree(), distribution_under(P, Q, rule), 10**6)[0]
    assert blind.noncentrality < 1e-12
    p, q = markov(4, seed=1), markov(4, seed=2)
    wrong = distribution_under(p, q, rule)
    best = power_against(tree_of(p), wrong, 5000)[0]
    assert best.power >= 0.999
    assert battery(texts(wrong, 5000, 0, 4), tree_of(p)).exit_code == 1


def test_a_fault_too_small_for_n_is_caught_as_often_as_computed() -> None:
    """Token 2 a little too often at the first position: only that table has power to speak of."""
    tree, n = golden_tree(), 5000
    first = P + np.array([-0.01, 0.0, 0.01, 0.0])
    wrong = {text: float(first[text[0]] * P[text[1]] * P[text[2]]) for text in np.ndindex(4, 4, 4)}
    best, *others = power_against(tree, wrong, n)
    assert best.name == "position 0"
    assert 0.1 < best.power < 0.5
    caught = sum(battery(texts(wrong, n, seed, 4), tree).exit_code == 1 for seed in range(60))
    assert caught >= stats.binom.ppf(0.005, 60, best.power)
    assert caught <= stats.binom.ppf(0.995, 60, min(1, best.power + sum(t.power for t in others)))


def test_a_distribution_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="texts of 3 tokens"):
        power_against(golden_tree(), {(0, 1): 1.0}, 100)
    with pytest.raises(ValueError, match=r"must sum to 1, got 0\.5"):
        power_against(golden_tree(), {(0, 1, 2): 0.5}, 100)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: samples_for_tv(0.0, 7), "tv must lie between 0 and 1"),
        (lambda: samples_for_tv(0.1, 0), "dof must be at least 1"),
        (lambda: samples_for_tv(0.1, 7, alpha=1.0), "alpha must be a number between 0 and 1"),
        (lambda: samples_for_tv(0.1, 7, power=0.001), "power must lie"),
        (lambda: detectable_tv(0, 7), "n must be at least 1"),
    ],
)
def test_senseless_questions_are_refused(call: object, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        call()  # type: ignore[operator]


def test_the_n_that_would_do_is_the_smallest() -> None:
    distribution = np.random.default_rng(0).dirichlet(np.ones(512))
    n = texts_for_effect(distribution, 0.1, alpha=0.001)
    assert n is not None
    assert texts_for_effect(np.array([1.0]), 0.1, alpha=0.01) is None
    assert texts_for_effect(distribution, 0.05, alpha=0.001) > n


def test_holm_keeps_the_family_at_its_level() -> None:
    rng = np.random.default_rng(0)
    p = rng.random((4000, 12))
    assert np.mean([min(holm(row)) < 0.05 for row in p]) == pytest.approx(0.05, abs=0.012)
    assert np.mean(p.min(axis=1) < 0.05) > 0.35  # the twin: no correction
    assert holm([]) == []


def test_the_search_for_n_finds_what_a_walk_up_the_grid_finds() -> None:
    from math import ceil

    random = np.random.default_rng(0)
    for cells in (2, 7, 40, 200):
        for concentration in (0.05, 1.0, 10.0):
            distribution = random.dirichlet([concentration] * cells)
            n = 10.0
            while True:  # the definition
                left = pool_neighbours(n * distribution).cells
                if left > 1 and detectable_tv(n, left - 1, 0.001, 0.8) <= 0.1:
                    break
                n *= 1.05
            assert texts_for_effect(distribution, 0.1, 0.001) == ceil(1.05 * n)
