"""Observed against expected: the numbers are those of the battery, what departs is marked."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot as plt
from scipy import stats

import specviz as sv
from specviz.figures.plots.against_expected import against_expected
from specviz.lossless import END, Sample, grow, noise_floor

TABLE = np.random.default_rng(3).dirichlet(
    [1.0] * 4, size=4
)  # (4, 4) a distribution after each token


def distribution(prefix: tuple[int, ...]) -> np.ndarray:
    return TABLE[prefix[-1] if prefix else 0]


def texts(n: int, seed: int, shift: float = 0.0, length: int = 3) -> Sample:
    """Texts of the distribution, or of one that leans towards token 0 by ``shift``."""
    rng = np.random.default_rng(seed)
    wrong = (1 - shift) * TABLE + shift * np.eye(4)[0]
    tokens = np.zeros((n, length + 1), dtype=np.int64)
    for t in range(length):
        cdf = wrong[tokens[:, t]].cumsum(axis=1)
        tokens[:, t + 1] = (rng.random((n, 1)) > cdf).sum(axis=1).clip(max=3)
    return Sample.of(tokens[:, 1:], vocab_size=4)


@pytest.fixture(autouse=True)
def closed() -> object:
    yield
    plt.close("all")


def test_the_data_of_a_position_are_counts_and_exact_intervals() -> None:
    sample = texts(2_000, seed=0)
    data = against_expected.data(sample, distribution, table="position 0")
    order = np.argsort(-TABLE[0])
    seen = np.bincount(sample.tokens[:, 0], minlength=4)
    assert data.expected == pytest.approx(2_000 * TABLE[0][order])
    assert data.observed == pytest.approx(seen[order])
    assert data.labels == [f"⟨{i}⟩" for i in order]
    assert data.tv == pytest.approx(np.abs(seen / 2_000 - TABLE[0]).sum() / 2)
    assert data.floor == pytest.approx(noise_floor(TABLE[0], 2_000))
    k = int(seen[order[0]])
    exact = stats.binomtest(k, 2_000).proportion_ci(1 - 0.01 / 4, method="exact")
    assert (data.low[0] / 2_000, data.high[0] / 2_000) == pytest.approx((exact.low, exact.high))


def test_intervals_of_right_samplers_miss_as_rarely_as_they_promise() -> None:
    """Joint coverage 99%: of 200 right samples at most 7 have any cell outside (p < .005)."""
    tree = grow(distribution, 4, 2)
    runs = [
        against_expected.data(texts(500, seed, length=2), tree, cells=99) for seed in range(200)
    ]
    assert sum(bool(run.outside.any()) for run in runs) <= 7
    assert sum(run.above_chance for run in runs) <= 7


def test_what_departs_is_marked_and_total_variation_is_above_chance() -> None:
    wrong = against_expected.data(
        texts(20_000, seed=1, shift=0.1), distribution, table="position 0"
    )
    assert wrong.above_chance
    assert wrong.outside.any()
    assert wrong.p < 1e-6
    assert "above chance" in wrong.verdict
    right = against_expected.data(texts(20_000, seed=1), distribution, table="position 0")
    assert not right.above_chance
    assert not right.outside.any()
    assert "no more than chance" in right.verdict


def test_rare_cells_are_pooled_and_said_to_be() -> None:
    data = against_expected.data(texts(150, seed=0), distribution, cells=99)
    pooled = [label for label in data.labels if label.endswith(" more")]
    assert pooled
    assert data.expected.sum() == pytest.approx(150)
    assert data.observed.sum() == 150
    assert data.expected.min() >= 5
    few = against_expected.data(texts(150, seed=0), distribution, cells=3)
    assert len(few.labels) == 3
    assert "drawn: the 3 cells that depart most" in few.title
    assert few.tv == data.tv  # over all cells, drawn or not


def test_token_texts_are_shown_and_cannot_act() -> None:
    words = [" fox", "$x^$", "<b>", "\u202e"]
    sample = texts(2_000, seed=0)
    data = against_expected.data(sample, distribution, table="position 0", words=words)
    assert set(data.labels) == {"␣fox", "$x^$", "<b>", "⟨U+202E⟩"}
    ax = sv.figures.against_expected(sample, distribution, table="position 0", words=words)
    ax.figure.draw_without_rendering()  # a formula would be an error here
    figure = sv.figures.against_expected(
        sample, distribution, table="position 0", words=words, backend="plotly"
    )
    assert "&lt;b&gt;" in figure.layout.yaxis.ticktext


def test_texts_that_end_early_have_a_cell_for_it() -> None:
    rows = [[1, END] if i % 4 == 0 else [0, 0] for i in range(400)]
    sample = Sample.of(np.array(rows), vocab_size=2, end_ids=[1])
    half = lambda prefix: [0.75, 0.25] if not prefix else [1.0, 0.0]  # noqa: E731
    data = against_expected.data(sample, half, table="position 1")
    assert data.labels == ["⟨0⟩", "(end)"]
    assert data.observed.tolist() == [300, 100]


def test_what_is_drawn_is_the_data() -> None:
    sample = texts(5_000, seed=2, shift=0.1)
    data = against_expected.data(sample, distribution, table="position 1")
    ax = sv.figures.against_expected(sample, distribution, table="position 1")
    assert [bar.get_width() for bar in ax.patches] == pytest.approx(data.expected)
    drawn = np.concatenate([line.lines[0].get_xdata() for line in ax.containers[1:]])
    assert sorted(drawn) == pytest.approx(sorted(data.observed))
    strip = ax.child_axes[1]
    assert [bar.get_width() for bar in strip.patches] == pytest.approx([data.chance, data.floor])
    assert strip.lines[1].get_xdata()[0] == pytest.approx(data.tv)
    names = {text.get_text() for text in ax.get_legend().get_texts()}
    assert "seen, interval misses p" in names
    figure = sv.figures.against_expected(sample, distribution, table="position 1", backend="plotly")
    assert figure.data[0].x == pytest.approx(data.expected)
    assert sum(len(trace.x) for trace in figure.data[1:]) == len(data.labels)


def test_it_draws_where_it_is_told_and_leaves_settings_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(plt, "show", lambda: pytest.fail("a figure showed itself"))
    before = dict(mpl.rcParams)
    figure, (left, right) = plt.subplots(1, 2)
    assert sv.figures.against_expected(texts(500, 0), distribution, ax=right) is right
    assert not left.containers
    sv.figures.against_expected(texts(500, 0), distribution, theme="dark-slide")
    assert dict(mpl.rcParams) == before
    figure.draw_without_rendering()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"table": "position 9"}, "table must be one of 'position 0'"),
        ({"cells": 1}, "cells must be a whole number >= 2"),
        ({"confidence": 1.0}, "confidence must be a number between 0 and 1"),
        ({"backend": "ggplot"}, "backend must be"),
        ({"theme": "poster"}, "theme must be"),
        ({"target": grow(distribution, 4, 2)}, "target covers 2 tokens of 4, sample has 3 of 4"),
        ({"sample": texts(4, 0)}, "draw more texts"),
    ],
)
def test_what_cannot_be_drawn_is_refused(arguments: dict[str, object], says: str) -> None:
    settings = {"sample": texts(500, 0), "target": distribution, **arguments}
    with pytest.raises(ValueError, match=says):
        sv.figures.against_expected(**settings)


def test_plotly_takes_no_axes() -> None:
    with pytest.raises(ValueError, match="ax is for backend"):
        sv.figures.against_expected(
            texts(500, 0), distribution, backend="plotly", ax=plt.figure().add_subplot()
        )
