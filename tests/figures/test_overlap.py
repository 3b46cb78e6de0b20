"""Target p against draft q: the numbers are those of the trace, the letters stay letters."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

import specviz as sv
from specviz.core.formatting import format_number
from specviz.core.trace.trace import Trace
from specviz.figures.drawing import plotly_text, safe_text
from specviz.figures.plots.overlap import TOKENS, overlap
from tests.figures.runs import HOSTILE, hostile, story, trace_of


@pytest.fixture(autouse=True)
def closed() -> object:
    yield
    plt.close("all")


def with_tails(p: np.ndarray, q: np.ndarray, token: int, listed: int) -> Trace:
    """A trace of one proposal whose distributions are listed on their first tokens,
    the rest in tails.
    """
    trace = Trace({"rule": "rejection"}, [0], k=(listed - 1) // 2)
    trace.strings = {i: f" t{i}" for i in range(len(p))}
    above = p[listed:] > q[listed:]
    tails = {
        f"tail_{name}_{side}": [distribution[listed:][where].sum()]
        for name, distribution in (("p", p), ("q", q))
        for side, where in (("above", above), ("below", ~above))
    }
    node = {
        "token": [token],
        "parent": [-1],
        "verdict": [2],
        "p": [p[token]],
        "q": [q[token]],
        "overlap": [np.minimum(p, q).sum()],
        "top_ids": [np.arange(listed)],
        "top_p": [p[:listed]],
        "top_q": [q[:listed]],
        "q_draw": [1],
    }
    round_values = {"nodes": 1, "gamma": 1, "closing_token": 0, "closing_kind": 1}
    trace.append(round_values, node | tails)
    return trace


@pytest.fixture
def distributions() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.dirichlet([0.5] * 40), rng.dirichlet([0.5] * 40)


def test_the_data_are_the_distributions(distributions: tuple[np.ndarray, np.ndarray]) -> None:
    p, q = distributions
    token = int(np.argmin(np.maximum(p, q)[:21]))  # too unlikely for a row, were it not proposed
    data = overlap.data(with_tails(p, q, token, listed=21))
    assert len(data.labels) == TOKENS + 1
    assert data.labels[data.proposed] == f"␣t{token}"
    assert data.labels[-1] == "all others"
    assert data.p.sum() == pytest.approx(1, abs=1e-6)
    assert data.q.sum() == pytest.approx(1, abs=1e-6)
    assert data.shared.sum() == pytest.approx(np.minimum(p, q).sum(), abs=1e-6)
    assert data.overlap == pytest.approx(1 - 0.5 * np.abs(p - q).sum())
    assert np.all(np.diff(data.p[:-1]) <= 0)
    for label, of_p, of_q in zip(data.labels[:-1], data.p, data.q, strict=False):
        i = int(label.removeprefix("␣t"))
        assert (of_p, of_q) == pytest.approx((p[i], q[i]), abs=1e-6)


def test_what_is_drawn_is_the_data(distributions: tuple[np.ndarray, np.ndarray]) -> None:
    trace = with_tails(*distributions, token=3, listed=21)
    data, ax = overlap.data(trace), sv.figures.overlap(trace)
    band, q, above, p, residual = (  # the draft on top, as in the player
        [bar.get_width() for bar in container] for container in ax.containers
    )
    assert band == pytest.approx(data.shared)
    assert p == pytest.approx(data.shared)
    assert q == pytest.approx(data.shared)
    assert np.add(p, residual) == pytest.approx(data.p)
    assert np.add(q, above) == pytest.approx(data.q)
    # where both have more than the other, "all others" only: no token is above and below at once
    assert all(min(r, a) == 0 for r, a in zip(residual[:-1], above[:-1], strict=True))
    (strip,) = ax.child_axes
    said = " ".join(text.get_text() for text in strip.texts)
    assert f"1 − TV = {format_number(data.overlap, 3)}" in said
    assert strip.patches[0].get_width() == pytest.approx(data.overlap)


def test_only_a_rule_that_goes_by_the_ratio_accepts_the_overlap() -> None:
    def words(rule: str) -> str:
        ax = sv.figures.overlap(trace_of([([("a", "rejected")], ("b", "correction"))], rule=rule))
        texts = [*ax.get_legend().get_texts(), *ax.child_axes[0].texts]
        return " ".join(text.get_text() for text in texts)

    assert "accepted on average" in words("rejection")
    assert "overlap: accepted" in words("rejection")
    assert "accepted" not in words("match")
    assert "rejected" not in words("match")


def test_plotly_draws_the_same(distributions: tuple[np.ndarray, np.ndarray]) -> None:
    import plotly.graph_objects as go

    trace = with_tails(*distributions, token=3, listed=21)
    data, figure = overlap.data(trace), sv.figures.overlap(trace, backend="plotly")
    assert isinstance(figure, go.Figure)
    q, above, p, residual = (np.array(bar.x) for bar in figure.data)
    assert p + residual == pytest.approx(data.p)
    assert q + above == pytest.approx(data.q)
    assert f"1 − TV = {format_number(data.overlap, 3)}" in figure.layout.title.text


def test_it_draws_where_it_is_told_and_leaves_settings_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(plt, "show", lambda: pytest.fail("a figure showed itself"))
    before = dict(mpl.rcParams)
    figure, (left, right) = plt.subplots(1, 2)
    assert sv.figures.overlap(story(), ax=right) is right
    assert not left.containers
    assert isinstance(sv.figures.overlap(story(), round=1, node=1, theme="dark-slide"), Axes)
    assert dict(mpl.rcParams) == before
    figure.draw_without_rendering()


@pytest.mark.parametrize("index", range(len(HOSTILE)))
def test_hostile_tokens_are_drawn_as_text(index: int) -> None:
    ax = sv.figures.overlap(hostile(), round=index)
    ax.figure.draw_without_rendering()  # a formula or a missing letter would be an error here
    sv.figures.overlap(hostile(), round=index, backend="plotly")


def test_a_formula_would_have_been_an_error() -> None:
    ax = plt.figure().add_subplot()
    ax.set_title("$x^$")
    with pytest.raises(ValueError, match="Expected"):
        ax.figure.draw_without_rendering()
    ax.set_title(safe_text("$x^$"))
    ax.figure.draw_without_rendering()


def test_letters_a_font_lacks_are_named() -> None:
    assert safe_text("狐") == "⟨U+72D0⟩"
    assert safe_text("✓fox") == "✓fox"
    assert plotly_text("<b>") == "&lt;b&gt;"


@pytest.mark.parametrize("suffix", ["svg", "pdf", "png"])
def test_saved_letters_stay_letters(tmp_path: Path, suffix: str) -> None:
    where = sv.figures.save(sv.figures.overlap(story(), round=0), tmp_path / f"overlap.{suffix}")
    data = where.read_bytes()
    if suffix == "svg":
        assert "␣upon" in data.decode("utf-8")
    if suffix == "pdf":
        assert b"/Type3" not in data
    assert [path.name for path in tmp_path.iterdir()] == [where.name]


def test_what_cannot_be_drawn_is_refused(tmp_path: Path) -> None:
    for wrong, match in (
        ({"round": 9}, "round must be a whole number from 0 to 4, got 9"),
        ({"round": 0, "node": 4}, "node must be a whole number from 0 to 3, got 4"),
        ({"round": 2}, "round 2 has no proposal to draw"),
        ({"backend": "ggplot"}, "backend must be 'matplotlib' or 'plotly'"),
        ({"theme": "poster"}, "theme must be one of 'light'"),
        ({"backend": "plotly", "ax": plt.figure().add_subplot()}, "ax is for backend"),
    ):
        with pytest.raises(ValueError, match=match):
            sv.figures.overlap(story(), **wrong)
    bare = trace_of([([("a", "accepted")], ("b", "bonus"))])
    bare.node_table._data["top_ids"][:] = -1
    with pytest.raises(ValueError, match="were not recorded"):
        sv.figures.overlap(bare)
    with pytest.raises(ValueError, match="path must end in"):
        sv.figures.save(sv.figures.overlap(story()), tmp_path / "overlap.gif3")


@pytest.mark.parametrize("where", [{"round": "a"}, {"round": 1.5}, {"round": 0, "node": "b"}])
def test_a_round_or_node_that_is_no_number_is_named(where: dict[str, object]) -> None:
    with pytest.raises(TypeError, match=f"{list(where)[-1]} must be a whole number"):
        sv.figures.overlap(story(), **where)


def test_by_default_the_first_rejection_is_drawn() -> None:
    run = story()
    assert overlap.data(run).title == "round 1, proposal 1: “␣an” ✗ rejected"
    assert overlap.data(run, round=0).title.startswith("round 0, proposal ")
    kept = trace_of([([("a", "accepted"), ("b", "accepted")], ("c", "bonus"))])
    kept.node_table._data["overlap"][:2] = [0.9, 0.4]
    assert overlap.data(kept).title.startswith("round 0, proposal 1")  # the least overlap
    with pytest.raises(ValueError, match="trace has no proposal to draw"):
        overlap.data(trace_of([([], ("a", "plain"))]))
    with pytest.raises(ValueError, match="node needs a round as well"):
        overlap.data(run, node=1)
