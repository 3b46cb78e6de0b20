"""What every figure shares: themes, back ends, checks; one small table of all of them."""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import plotly.graph_objects as go
import pytest
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import specviz as sv
from specviz.figures.drawing import THEMES
from specviz.figures.theme import contrast
from specviz.lossless import Sample, battery
from tests.figures.runs import branching, hostile, story

HALF = [0.5, 0.5]
COIN = Sample.of([[0], [1], [1], [0]] * 50, vocab_size=2)
REPORT = battery(COIN, lambda prefix: HALF, tables=True)
FLIPS = np.tile([0, 1], 300)
STORIES = sv.recorded("stories/draft-model")
ALONE = sv.recorded("stories/target-only")
TABLES = sv.tabular.TabularPair(
    sv.tabular.TabularModel([0.5, 0.5]), sv.tabular.TabularModel([0.75, 0.25])
)
CASES: dict[str, tuple[Any, ...]] = {
    "overlap": (story(),),
    "against_expected": (COIN, lambda prefix: HALF),
    "p_values": (REPORT,),
    "audit": (REPORT,),
    "evidence_over_samples": (FLIPS, HALF),
    "gain_map": (STORIES,),
    "acceptance": (STORIES,),
    "acceptance_by": (STORIES,),
    "caches": (STORIES,),
    "draws": (STORIES,),
    "expected_tokens": (STORIES,),
    "flow": (STORIES,),
    "gain_by_gamma": (STORIES,),
    "loop": (STORIES,),
    "methods": ([ALONE, STORIES],),
    "overlap_map": (TABLES, [0, 1, 1, 0, 1]),
    "race": ([ALONE, STORIES],),
    "roofline": (STORIES,),
    "text": (STORIES,),
    "timeline": (STORIES,),
    "tree": (branching(),),
}
PANELS = ("audit", "acceptance", "caches", "methods", "roofline", "tree")
PRINT_ONLY = ("caches", "text")  # nothing in them is worth pointing at


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    plt.close("all")


def test_every_figure_is_in_this_table() -> None:
    assert set(CASES) == set(sv.figures.__all__) - {"save", "to_html"}


@pytest.mark.parametrize("name", CASES)
def test_a_figure_draws_in_every_theme_and_back_end_and_shows_nothing(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plt, "show", lambda: pytest.fail("a figure showed itself"))
    draw: Callable[..., Any] = getattr(sv.figures, name)
    before = dict(mpl.rcParams)
    # every theme is drawn once, in the figure that is drawn fastest
    for theme in THEMES if name == "overlap" else ("paper", "dark"):
        look = THEMES[theme]
        drawn = draw(*CASES[name], theme=theme)
        assert isinstance(drawn, Figure if name in PANELS else Axes)
        figure = drawn if isinstance(drawn, Figure) else drawn.get_figure(root=True)
        assert mpl.colors.to_hex(figure.get_facecolor()) == look.colours.background
        figure.draw_without_rendering()
        assert touching(figure) == []
        letters = [text for text in figure.findobj(mpl.text.Text) if is_seen(text)]
        least = min(text.get_fontsize() for text in letters)
        assert least >= 9 if theme == "paper" else least >= 0.9 * look.points
        assert drawn.caption.endswith(f"specviz {sv.__version__}")
        assert len(drawn.alt) > 20
        assert all(
            contrast(mpl.colors.to_hex(text.get_color()), look.colours.background) >= 4.5
            for text in letters
        )
    assert dict(mpl.rcParams) == before
    if name in PRINT_ONLY:
        with pytest.raises(ValueError, match="is drawn with matplotlib only"):
            draw(*CASES[name], backend="plotly")
        return
    other = draw(*CASES[name], theme="dark", backend="plotly")
    assert isinstance(other, go.Figure)
    assert other.layout.paper_bgcolor == THEMES["dark"].colours.background
    assert other.data
    assert dict(mpl.rcParams) == before


def touching(figure: Figure) -> list[tuple[str, str]]:
    """Pairs of texts of a drawn figure that lie on each other, and texts that leave it."""
    ticks: set[int] = set()  # those that are there, but beyond the ends of their axis
    for axes in figure.findobj(Axes):
        for axis in (axes.xaxis, axes.yaxis):
            drawn = {id(tick) for tick in axis._update_ticks()}
            for tick in (*axis.majorTicks, *axis.minorTicks):
                ticks |= set() if id(tick) in drawn else {id(tick.label1), id(tick.label2)}
    texts = [t for t in figure.findobj(mpl.text.Text) if id(t) not in ticks and is_seen(t)]
    boxes = [(text.get_text(), text.get_window_extent()) for text in texts]
    wide, high = figure.bbox.size
    found = [(said, "the edge") for said, box in boxes if box.x0 < -2 or box.x1 > wide + 2
             or box.y0 < -2 or box.y1 > high + 2]  # fmt: skip
    for i, (said, box) in enumerate(boxes):
        for other, beside in boxes[i + 1 :]:
            across = min(box.x1, beside.x1) - max(box.x0, beside.x0)
            down = min(box.y1, beside.y1) - max(box.y0, beside.y0)
            if across > 1.5 and down > 2.5 and (said, box.x0) != (other, beside.x0):
                found.append((said, other))
    return found


def test_labels_that_lie_on_each_other_would_be_reported() -> None:
    figure, ax = plt.subplots()
    ax.text(0.5, 0.5, "one")
    ax.text(0.51, 0.5, "two")
    ax.text(0.95, 0.9, "beyond the edge of the page")
    figure.draw_without_rendering()
    found = touching(figure)
    assert ("one", "two") in found
    assert ("beyond the edge of the page", "the edge") in found


def is_seen(text: mpl.text.Text) -> bool:
    hidden = text.axes is not None and not text.axes.axison and text not in text.axes.texts
    return bool(text.get_text().strip()) and text.get_visible() and not hidden


@pytest.mark.parametrize("name", CASES)
def test_the_numbers_come_without_a_drawing(name: str) -> None:
    numbers = getattr(sv.figures, name).data(*CASES[name])
    assert type(numbers).__dataclass_params__.frozen
    assert type(numbers).__doc__
    assert not plt.get_fignums()


@pytest.mark.parametrize("name", CASES)
def test_help_names_every_argument_of_a_figure(name: str) -> None:
    figure = getattr(sv.figures, name)
    said = inspect.getdoc(figure) or ""
    names = list(inspect.signature(figure).parameters)
    assert names[-3:] == ["ax", "backend", "theme"]
    told = said.partition("Parameters\n")[2].partition("\nReturns\n")[0]
    for one in names:
        assert one in told, f"{one} is not explained"


@pytest.mark.parametrize("name", CASES)
def test_a_wrong_setting_is_refused_before_anything_is_computed(name: str) -> None:
    draw = getattr(sv.figures, name)
    with pytest.raises(ValueError, match="did you mean 'slide'"):
        draw(None, theme="slides")
    with pytest.raises(ValueError, match="backend must be 'matplotlib' or 'plotly'"):
        draw(None, backend="ggplot")
    with pytest.raises(TypeError, match="ax must be matplotlib Axes, got str"):
        draw(None, ax="here")
    if name not in PRINT_ONLY:
        with pytest.raises(ValueError, match="ax is for backend='matplotlib'"):
            draw(None, ax=plt.figure().add_subplot(), backend="plotly")


def test_several_panels_take_no_axes() -> None:
    with pytest.raises(ValueError, match="audit makes a figure with several"):
        sv.figures.audit(REPORT, ax=plt.figure().add_subplot())


def test_a_tree_is_drawn_as_a_chain_is() -> None:
    sv.figures.overlap(branching()).get_figure(root=True).draw_without_rendering()


def test_plotly_figures_are_saved_as_pages_that_ask_for_nothing(tmp_path: Path) -> None:
    figure = sv.figures.overlap(story(), backend="plotly")
    where = sv.figures.save(figure, tmp_path / "overlap.html")
    assert '<script src="http' not in where.read_text("utf-8")
    with pytest.raises(ValueError, match=r"path must end in \.html"):
        sv.figures.save(figure, tmp_path / "overlap.png")


def test_a_notebook_gets_words_and_a_dark_twin_until_the_figure_is_changed() -> None:
    ax = sv.figures.overlap(story())
    shown = ax.get_figure(root=True)._repr_html_()
    assert shown.count("<img") == 2
    assert f'alt="{ax.alt.partition(".")[0]}' in shown
    assert "specviz" in shown.partition("<figcaption>")[2]
    ax = sv.figures.overlap(story())
    ax.set_title("mine")  # the dark one would not have it
    assert ax.get_figure(root=True)._repr_html_().count("<img") == 1
    again = sv.figures.overlap(story()).get_figure(root=True)
    assert [again._repr_html_().count("<img") for _ in range(2)] == [2, 2]
    again.axes[0].set_title("mine")
    assert again._repr_html_().count("<img") == 1
    assert not plt.fignum_exists(again.number)  # a cell that ends in it shows it once
    dark = sv.figures.overlap(story(), theme="dark").get_figure(root=True)
    assert dark._repr_html_().count("<img") == 1
    pickle.loads(pickle.dumps(dark))
    mine, own = plt.subplots()
    sv.figures.overlap(story(), ax=own)
    assert mine._repr_html_() is None  # somebody else's figure shows itself as it did
    assert sv.figures.overlap(hostile()).get_figure(root=True)._repr_html_().count("<script") == 0


@pytest.mark.parametrize("suffix", ["svg", "pdf", "png", "html"])
def test_a_saved_file_says_what_it_shows(tmp_path: Path, suffix: str) -> None:
    figure = sv.figures.flow(STORIES)
    where = sv.save(figure, tmp_path / f"flow.{suffix}")
    assert [where] == list(tmp_path.iterdir())
    data = where.read_bytes()
    if suffix in ("svg", "html"):
        assert "seed 6" in data.decode("utf-8")
        assert "Where the probability of one token goes" in data.decode("utf-8")
    if suffix == "svg":
        assert ">draft q</text>" in data.decode("utf-8")  # letters stay letters
    if suffix == "html":
        assert b"<script" not in data
        assert b"<figcaption" in data
    assert plt.get_fignums()  # it can still be shown
    with pytest.raises(ValueError, match="path must end in"):
        sv.save(figure, tmp_path / "flow.docx")
    somebody_s, _ = plt.subplots()
    assert sv.save(somebody_s, tmp_path / f"plain.{suffix}").stat().st_size > 500


def test_what_is_no_figure_is_not_saved(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="what must be a figure or its Axes, got NoneType"):
        sv.save(None, tmp_path / "x.png")
