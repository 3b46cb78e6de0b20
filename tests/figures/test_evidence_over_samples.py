"""Evidence over samples: the lines are those of the tests, and they cross where they must."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot as plt

import specviz as sv
from specviz.figures.plots.evidence_over_samples import BOTTOM, CEILING, evidence_panel
from specviz.lossless.statistics.eprocess import e_values, peeking

DISTRIBUTION = np.array([0.4, 0.3, 0.2, 0.1])
WRONG = np.array([0.3, 0.4, 0.2, 0.1])


def stream(distribution: np.ndarray, n: int = 2_000, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).choice(len(distribution), n, p=distribution)


@pytest.fixture(autouse=True)
def closed() -> object:
    yield
    plt.close("all")


def test_the_data_are_those_of_the_tests() -> None:
    cells = stream(DISTRIBUTION, 2_500)  # in a fiftieth of them the rarest cell expects five
    data = evidence_panel(cells, DISTRIBUTION, every=10)
    looks = peeking(cells, DISTRIBUTION, every=10)
    assert data.n.tolist() == list(range(10, 2_501, 10))
    known = np.isfinite(looks.p)
    assert known.sum() == 246
    assert data.p[known] == pytest.approx(looks.p[known])
    assert np.exp(data.log_e) == pytest.approx(e_values(cells, DISTRIBUTION)[9::10])


def test_a_broken_sampler_crosses_and_a_right_one_does_not() -> None:
    wrong = evidence_panel(stream(WRONG), DISTRIBUTION, alpha=0.01, every=10)
    assert wrong.p_crossed is not None
    assert wrong.e_crossed is not None
    first = wrong.n[np.flatnonzero(wrong.p < 0.01)[0]]
    assert wrong.p_crossed == first
    e = e_values(stream(WRONG), DISTRIBUTION)
    assert wrong.e_crossed == np.flatnonzero(e >= 100)[0] + 1
    right = evidence_panel(stream(DISTRIBUTION), DISTRIBUTION, alpha=0.01, every=10)
    assert right.e_crossed is None
    assert "never crosses" in right.says[1]


def test_peeking_crosses_for_some_right_samplers() -> None:
    """The point of the figure: of 100 right streams p crosses in several, e in hardly any."""
    runs = [
        evidence_panel(stream(DISTRIBUTION, seed=seed), DISTRIBUTION, every=5)
        for seed in range(100)
    ]
    assert sum(run.p_crossed is not None for run in runs) >= 5
    assert sum(run.e_crossed is not None for run in runs) <= 4


def test_rare_cells_are_one_cell_and_impossible_ones_are_infinite_evidence() -> None:
    distribution = np.array([0.5, 0.4999, 0.0001, 0.0])
    cells = np.append(np.tile([0, 1], 500), 3)
    data = evidence_panel(cells, distribution, every=1)
    assert np.isfinite(data.p[500:1000]).all()
    assert data.log_e[-1] == np.inf
    assert data.e_crossed == 1_001
    assert data.against_e[-1] == pytest.approx(CEILING / 0.01)


def test_two_samplers_stand_side_by_side_on_one_scale() -> None:
    figure = sv.figures.evidence_over_samples(
        {"right": stream(DISTRIBUTION), "broken": stream(WRONG)}, DISTRIBUTION, every=10
    )
    left, right = figure.axes
    assert left.get_ylim() == right.get_ylim()
    assert left.get_title(loc="left").startswith("right\n")
    assert "crosses at" in right.get_title(loc="left")
    data = evidence_panel(stream(WRONG), DISTRIBUTION, every=10)
    drawn = {tuple(line.get_ydata()) for line in right.lines}
    assert tuple(data.against_e) in drawn
    assert any(line.get_ydata()[0] == 100 for line in left.lines)  # the line at 1/alpha
    figure.draw_without_rendering()


def test_lines_stay_within_the_axes() -> None:
    for cells in (stream(DISTRIBUTION, 30_000), stream(WRONG, 30_000)):
        data = evidence_panel(cells, DISTRIBUTION)
        for line in (data.against_p, data.against_e):
            known = line[np.isfinite(line)]
            assert known.min() >= BOTTOM * (1 - 1e-9)
            assert known.max() <= CEILING / data.alpha * (1 + 1e-9)


def test_plotly_draws_the_same() -> None:
    streams = {"right": stream(DISTRIBUTION), "<b>broken": stream(WRONG)}
    figure = sv.figures.evidence_over_samples(streams, DISTRIBUTION, every=10, backend="plotly")
    drawn = [trace for trace in figure.data if trace.mode == "lines"]
    level = [trace for trace in drawn if trace.name == "1/α = 100"]
    assert [list(trace.y) for trace in level] == [[100, 100]] * 2
    lines = [trace for trace in drawn if trace not in level]
    assert len(lines) == 4
    data = evidence_panel(streams["<b>broken"], DISTRIBUTION, every=10)
    assert lines[3].y == pytest.approx(data.against_e)
    assert any("&lt;b&gt;broken" in note.text for note in figure.layout.annotations)


def test_it_draws_where_it_is_told_and_leaves_settings_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(plt, "show", lambda: pytest.fail("a figure showed itself"))
    before = dict(mpl.rcParams)
    _, (left, right) = plt.subplots(1, 2)
    assert sv.figures.evidence_over_samples(stream(DISTRIBUTION), DISTRIBUTION, ax=right) is right
    assert not left.lines
    sv.figures.evidence_over_samples(
        {"$x^$": stream(DISTRIBUTION)}, DISTRIBUTION, theme="dark-slide"
    )
    assert dict(mpl.rcParams) == before
    for number in plt.get_fignums():
        plt.figure(number).draw_without_rendering()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"streams": {}}, "streams is empty"),
        ({"streams": [0, 1]}, "too few for a p-value"),
        ({"every": 5_000}, "at least as many as every=5000"),
        ({"streams": [7] * 2_000}, "outside 0 … 3"),
        ({"alpha": 2}, "alpha must be a number between 0 and 1"),
        ({"backend": "ggplot"}, "backend must be"),
        ({"theme": "poster"}, "theme must be"),
    ],
)
def test_what_cannot_be_drawn_is_refused(arguments: dict[str, object], says: str) -> None:
    settings = {"streams": stream(DISTRIBUTION), "distribution": DISTRIBUTION, **arguments}
    with pytest.raises(ValueError, match=says):
        sv.figures.evidence_over_samples(**settings)


@pytest.mark.parametrize("options", [{"backend": "plotly"}, {}])
def test_axes_are_for_one_stream_in_matplotlib(options: dict[str, str]) -> None:
    streams = stream(DISTRIBUTION) if options else {"one": stream(DISTRIBUTION)}
    with pytest.raises(ValueError, match="ax"):
        sv.figures.evidence_over_samples(
            streams, DISTRIBUTION, ax=plt.figure().add_subplot(), **options
        )


def test_a_line_that_is_cut_off_says_how_far_it_goes() -> None:
    certain = evidence_panel(np.zeros(2_000, dtype=int), DISTRIBUTION)
    assert certain.log_e.max() > np.log(CEILING / certain.alpha)
    reached = f"reaches 10^{certain.log_e.max() / np.log(10):.0f} (cut off here)"
    assert certain.says[1].endswith(reached)
    assert "reaches" not in evidence_panel(stream(DISTRIBUTION), DISTRIBUTION).says[1]
