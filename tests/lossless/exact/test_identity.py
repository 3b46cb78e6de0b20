"""The identity behind one position: its terms are the rule's own, and they add up to p."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest

import specviz as sv
from specviz.lossless import enumerate_distribution
from specviz.lossless.exact.identity import identity
from tests.core.golden import GOLDEN, distribution


def test_golden_distributions_add_up() -> None:
    p, q = (distribution(GOLDEN["one_position"][name]) for name in ("p", "q"))
    shown = identity(p, q)
    assert shown.total == pytest.approx(p, abs=1e-15)
    assert shown.accepted == pytest.approx(np.minimum(p, q), abs=1e-15)
    assert shown.corrected == pytest.approx(np.maximum(p - q, 0), abs=1e-15)
    assert shown.rejected == pytest.approx(0.5 * np.abs(p - q).sum())


@pytest.mark.parametrize("seed", range(5))
def test_it_is_the_distribution_that_enumeration_finds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    p, q = rng.dirichlet([0.4] * 5, size=2)
    pair = sv.tabular.TabularPair(sv.tabular.TabularModel(p), sv.tabular.TabularModel(q))
    found = enumerate_distribution(pair, sv.DraftModel(gamma=1), prompt=[0], length=1)
    total = identity(p, q).total
    assert [found.get((x,), 0.0) for x in range(5)] == pytest.approx(total, abs=1e-14)


@pytest.mark.parametrize(
    ("p", "q"),
    [
        ([0.5, 0.5, 0.0], [0.0, 0.5, 0.5]),  # zeros on either side
        ([1.0, 0.0], [0.0, 1.0]),  # nothing in common
        ([0.25, 0.75], [0.25, 0.75]),  # the same distribution: nothing is rejected
    ],
)
def test_edges_add_up(p: list[float], q: list[float]) -> None:
    assert identity(p, q).error < 1e-15


def test_a_wrong_correction_would_show(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sum is computed from the rule's own parts, so that a wrong part shows in it."""
    module = import_module("specviz.lossless.exact.identity")
    monkeypatch.setattr(module, "residual", lambda p, q: p)  # a fresh draw from the target
    p, q = (distribution(GOLDEN["one_position"][name]) for name in ("p", "q"))
    assert identity(p, q).error > 0.01


def test_the_table_shows_every_term_and_pools_what_is_rare() -> None:
    rng = np.random.default_rng(0)
    p, q = rng.dirichlet([0.4] * 40, size=2)
    shown = identity(p, q, words={i: f"<b>{i}" for i in range(40)})
    rows = shown.rows()
    assert [row[0] for row in rows[-2:]] == ["28 other tokens", "all"]
    assert sum(row[4] for row in rows[:-1]) == pytest.approx(1)
    assert all(row[1] + row[2] == pytest.approx(row[3]) == pytest.approx(row[4]) for row in rows)
    assert "q · min(1, p/q)" in repr(shown)
    assert "P(reject) · residual" in repr(shown)
    assert "<b>" not in shown._repr_html_()
    assert "&lt;b&gt;" in shown._repr_html_()


@pytest.mark.parametrize(
    ("p", "q", "says"),
    [
        ([0.5, 0.5], [1.0], "same tokens"),
        ([1.0], [1.0], "two or more"),
        ([[0.5, 0.5]], [[0.5, 0.5]], r"got shapes \(1, 2\)"),
        ([0.5, 0.6], [0.5, 0.5], "probabilities of target p do not sum to 1"),
        (
            [0.5, 0.5],
            [1.5, -0.5],
            "probabilities of draft q must be .* not negative, got -0.5",
        ),
        ([0.5, float("nan")], [0.5, 0.5], "probabilities of target p must be finite"),
    ],
)
def test_what_is_no_distribution_is_refused(p: list[float], q: list[float], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        identity(p, q)
