"""Verdicts: each for its reason, and none without one."""

from __future__ import annotations

import numpy as np
import pytest

from specviz.lossless import (
    END,
    Answer,
    Sample,
    Verdict,
    battery,
    grow,
)
from tests.lossless.samplers import (
    P,
    conditional,
    markov,
    texts,
    top_k,
    tree_of,
)

TABLE = markov(8)


def test_a_right_sampler_passes_and_the_report_says_what_was_tested() -> None:
    tree = tree_of(TABLE)
    report = battery(tree.draw(20_000, 0), tree, draft=conditional(markov(8, seed=4)))
    assert report.verdict is Verdict.NO_DISCREPANCY_FOUND
    assert report.exit_code == 0
    assert [finding.name for finding in report.findings] == [
        "support", "position 0", "position 1", "position 2", "positions 0, 1", "positions 1, 2",
        "continuation", "transform u", "neighbouring u", "mean of log p", "mean of log p/q",
    ]  # fmt: skip
    assert all(f.answer is Answer.AS_EXPECTED for f in report.findings)
    assert all(f.p is None or f.adjusted is not None for f in report.findings)
    assert (report.n, report.tokens, report.length, report.vocab_size) == (20_000, 60_000, 3, 8)
    assert report.detectable is not None
    assert report.detectable.table == "continuation"
    assert report.distance is not None
    assert report.distance.low == 0.0
    assert report.distance.plug_in < 1.3 * report.distance.noise_floor


def test_one_impossible_token_settles_it() -> None:
    table = top_k(TABLE, 3)
    tree = tree_of(table)
    sample = tree.draw(5000, 0)
    tokens = sample.tokens.copy()
    last = int(tokens[777, 0])
    tokens[777, 1] = int(np.flatnonzero(table[last] == 0)[0])
    report = battery(Sample(tokens, 8), tree, words=[f"w{i}" for i in range(8)])
    assert report.verdict is Verdict.IMPOSSIBLE_TOKEN
    assert report.exit_code == 1
    found = report.impossible
    assert found is not None
    assert (found.count, found.text, found.position) == (1, 777, 1)
    assert found.token == tokens[777, 1]
    assert f"'w{found.token}' (id {found.token}) after 'w{last}'" in found.shown
    assert battery(sample, tree).verdict is Verdict.NO_DISCREPANCY_FOUND


def test_a_token_after_the_end_is_impossible() -> None:
    tree = tree_of(TABLE, end_ids=[3])
    sample = tree.draw(3000, 0)
    tokens = sample.tokens.copy()
    row = int(np.flatnonzero(tokens[:, 0] == 3)[5])
    assert tokens[row].tolist() == [3, END, END]
    tokens[row] = [3, 1, 1]
    report = battery(Sample(tokens, 8, frozenset({3})), tree)
    assert report.verdict is Verdict.IMPOSSIBLE_TOKEN
    assert report.impossible is not None
    assert (report.impossible.text, report.impossible.position) == (row, 1)


def test_a_sampler_that_never_ends_is_caught() -> None:
    tree = tree_of(TABLE, end_ids=[3])
    never = TABLE.copy()
    never[:, 3] = 0
    sample = tree_of(never / never.sum(axis=1, keepdims=True)).draw(3000, 0)
    report = battery(Sample(sample.tokens, 8, frozenset({3})), tree)
    assert report.verdict is Verdict.DISCREPANCY


def test_repeats_make_every_test_void() -> None:
    tree = tree_of(TABLE)
    right = tree.draw(4000, 0).tokens
    for repeated in (
        np.repeat(right[:2000], 2, axis=0),  # every seed twice in a row
        np.tile(right[:2000], (2, 1)),  # the whole run twice
        np.tile(right[:10], (400, 1)),  # a generator re-seeded every ten
        np.tile(right[:1], (4000, 1)),  # one seed for all
        right[np.random.default_rng(0).integers(0, 20, 4000)],  # twenty seeds
    ):
        report = battery(Sample(repeated, 8), tree)
        assert report.verdict is Verdict.NOT_INDEPENDENT
        assert report.exit_code == 2
        assert "seed" in report.independence.reason
    shuffled = np.random.default_rng(0).permutation(right)
    assert battery(Sample(shuffled, 8), tree).verdict is Verdict.NO_DISCREPANCY_FOUND


def test_repeats_that_the_target_makes_are_none() -> None:
    """Two likely texts: most neighbours are equal, as they should be."""
    distribution = np.array([0.97, 0.03])
    tree = grow(lambda prefix: distribution, 2, 2)
    report = battery(tree.draw(5000, 0), tree)
    assert report.verdict is Verdict.NO_DISCREPANCY_FOUND
    assert report.independence.repeat_rate > 0.85
    assert report.independence.repeat_rate_expected == pytest.approx((0.97**2 + 0.03**2) ** 2)


def test_a_wrong_distribution_is_not_mistaken_for_a_reused_seed() -> None:
    sharper = TABLE**2 / (TABLE**2).sum(axis=1, keepdims=True)  # temperature .5
    report = battery(tree_of(sharper).draw(5000, 0), tree_of(TABLE))
    assert report.verdict is Verdict.DISCREPANCY


def test_too_few_texts_are_inconclusive_and_the_n_named_would_do() -> None:
    tree = tree_of(TABLE)
    report = battery(tree.draw(40, 0), tree)
    assert report.verdict is Verdict.INCONCLUSIVE
    assert report.exit_code == 2
    assert report.needed is not None
    enough = battery(tree.draw(report.needed, 1), tree)
    assert enough.verdict is Verdict.NO_DISCREPANCY_FOUND
    few = battery(tree.draw(report.needed // 2, 1), tree)
    assert few.verdict is Verdict.INCONCLUSIVE
    finer = battery(tree.draw(report.needed, 1), tree, effect=0.02)
    assert finer.verdict is Verdict.INCONCLUSIVE


def test_untestable_is_not_passed() -> None:
    report = battery(Sample.of([[0, 1, 2]], 8), tree_of(TABLE))
    assert report.verdict is Verdict.INCONCLUSIVE
    tested = [finding for finding in report.findings if finding.kind != "support"]
    assert all(finding.answer is Answer.NOT_TESTABLE and finding.p is None for finding in tested)
    assert report.detectable is None


def test_a_target_without_choice_is_tested_by_support_alone() -> None:
    greedy = tree_of(top_k(TABLE, 1))
    right = greedy.draw(500, 0)
    report = battery(right, greedy)
    assert report.verdict is Verdict.NO_DISCREPANCY_FOUND
    assert report.detectable is not None
    assert report.detectable.table == "support"
    assert report.detectable.tv == pytest.approx(1 - 0.2 ** (1 / 500))
    wrong = right.tokens.copy()
    wrong[3, 2] = (wrong[3, 2] + 1) % 8
    assert battery(Sample(wrong, 8), greedy).verdict is Verdict.IMPOSSIBLE_TOKEN


def test_single_positions_miss_what_only_whole_texts_show() -> None:
    """Each token and each pair has the right distribution; three together have not."""
    parity = {
        text: (1 + 0.8 * (-1) ** sum(text)) / 8 for text in np.ndindex(2, 2, 2)
    }  # fmt: skip
    report = battery(texts(parity, 4000, 0, 2), grow(lambda prefix: [0.5, 0.5], 2, 3))
    answers = {finding.name: finding.answer for finding in report.findings}
    assert report.verdict is Verdict.DISCREPANCY
    assert answers["continuation"] is Answer.DIFFERS
    for name in ("position 0", "position 1", "position 2", "positions 0, 1", "positions 1, 2"):
        assert answers[name] is Answer.AS_EXPECTED


def test_a_fault_beyond_the_trees_contexts_is_still_seen() -> None:
    """A large vocabulary: most contexts are one cell together, and no text is lost."""
    table = markov(60, seed=2, concentration=0.3)
    right = tree_of(table, max_contexts=20_000).draw(20_000, 0)
    small = tree_of(table, max_contexts=90)
    assert small.covered < 0.95
    report = battery(right, small)
    assert report.verdict is Verdict.NO_DISCREPANCY_FOUND
    assert report.covered == pytest.approx(small.covered, abs=0.01)
    mixed = tree_of(0.9 * table + 0.1 / 60, max_contexts=20_000).draw(20_000, 0)
    assert battery(mixed, small).verdict is Verdict.DISCREPANCY


def test_the_wrong_target_is_a_discrepancy() -> None:
    tree, other = tree_of(TABLE), tree_of(markov(8, seed=9))
    assert battery(other.draw(2000, 0), tree).verdict is Verdict.DISCREPANCY


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"alpha": 0.0}, "alpha must lie between 0 and 1"),
        ({"margin": -0.1}, "margin must be a total variation per token"),
        ({"margin": 1.0}, "margin must be"),
        ({"effect": 0.0}, "effect must be"),
    ],
)
def test_senseless_settings_are_refused(options: dict[str, float], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        battery(Sample.of([[0, 1, 2]], 4), lambda prefix: P, **options)


def test_the_same_seed_gives_the_same_report_and_only_the_transform_depends_on_it() -> None:
    tree = tree_of(TABLE)
    sample = tree.draw(2000, 0)
    a, b, c = (battery(sample, tree, seed=seed).findings for seed in (1, 1, 2))
    assert a == b
    assert {f.name for f, g in zip(a, c, strict=True) if f.p != g.p} == {
        "transform u", "neighbouring u",
    }  # fmt: skip


def test_a_sampler_with_the_batterys_own_generator_passes() -> None:
    """v must not be the very number that drew the token."""
    distribution = np.array([0.1, 0.2, 0.3, 0.4])
    tree = grow(lambda prefix: distribution, 4, 1)
    for seed in range(5):
        report = battery(tree.draw(4000, seed), tree, seed=seed)
        u = next(finding for finding in report.findings if finding.name == "transform u")
        assert u.p is not None
        assert u.p > 1e-4
