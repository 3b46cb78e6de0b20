"""The map of gains is the theory's, number by number."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import specviz as sv
from specviz import theory
from tests.figures.runs import trace_of

GOLDEN = json.loads((Path(__file__).parents[1] / "core" / "golden.json").read_text("utf-8"))


def test_best_gammas_are_those_of_leviathan() -> None:
    data = sv.figures.gain_map.data(highest_c=0.5)
    for name, row in GOLDEN["leviathan"]["best_gamma"].items():
        i = int(np.argmin(np.abs(data.c - float(name.removeprefix("c=")))))
        for alpha, gamma in row.items():
            j = int(np.argmin(np.abs(data.alpha - float(alpha))))
            assert data.alpha[j] == pytest.approx(float(alpha))
            assert data.gamma[i, j] == gamma
            assert data.gain[i, j] == pytest.approx(theory.speedup(float(alpha), gamma, data.c[i]))


def test_nothing_is_won_where_alpha_is_below_c() -> None:
    data = sv.figures.gain_map.data()
    alpha, c = np.meshgrid(data.alpha, data.c)
    assert np.array_equal(data.gamma == 0, alpha <= c + 1e-9)  # Corollary 3.9
    assert np.all(data.gain[data.gamma == 0] == 1)


def test_a_run_stands_where_it_was_measured() -> None:
    run = sv.recorded("stories/draft-model")
    numbers = run.measures()
    alpha, c, gamma = sv.figures.gain_map.data(run).measured or (0, 0, 0)
    assert (alpha, c) == (numbers["alpha"].value, numbers["draft_cost"].value)
    assert gamma == theory.best_gamma(alpha, c, highest=50)
    title = sv.figures.gain_map(run).get_title("left")
    assert f"best gamma {gamma}" in title
    assert "this run" not in sv.figures.gain_map().get_title("left")


def test_what_has_no_place_is_refused() -> None:
    plain = trace_of([([], ("a", "plain"))])
    with pytest.raises(ValueError, match="no measured alpha or no times"):
        sv.figures.gain_map(plain)
    with pytest.raises(ValueError, match="highest_c must be"):
        sv.figures.gain_map(highest_c=0)
    with pytest.raises(ValueError, match="highest_gamma must be"):
        sv.figures.gain_map(highest_gamma=0)
