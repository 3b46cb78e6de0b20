"""What the player's functions refuse: one sentence that names the argument, and no file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import specviz as sv
from specviz.core.atomic_writing import write_by
from tests.player.runs import branching, decoded

PAIR = sv.tabular.TabularPair(
    sv.tabular.TabularModel([0.5, 0.5]), sv.tabular.TabularModel([0.9, 0.1])
)


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"guided": "no"}, TypeError, "guided must be True or False, got 'no'"),
        (
            {"height": 10**9},
            ValueError,
            "height must be a whole number from 200 to 10,000, got 10",
        ),
        ({"views": ["text", "text"]}, ValueError, "views must have each name only once"),
        ({"views": 5}, TypeError, "views must be a list of names out of .*, got 5"),
        ({"views": ["tree"]}, ValueError, "views asks only for the tree, and this run has none"),
    ],
)
def test_options(
    tmp_path: Path, options: dict[str, Any], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        sv.to_html(decoded(), tmp_path / "a.html", **options)
    with pytest.raises(error, match=says):
        sv.play(decoded(), **options)
    assert list(tmp_path.iterdir()) == []


def test_a_tree_may_be_all_there_is_to_see(tmp_path: Path) -> None:
    assert sv.to_html(branching(), tmp_path / "a.html", views=["tree"]).exists()


@pytest.mark.parametrize(
    ("name", "error", "says"),
    [
        ("", ValueError, "path must be a file name, got ''"),
        ("a\0.html", ValueError, "path must be a file name without a zero byte"),
        ("a" * 300 + ".html", ValueError, "path must have a file name of at most 200 bytes"),
        ("a.txt", ValueError, r"path must end in \.\w+ or "),
        ("a" * 300 + "/b.html", OSError, "path cannot be reached"),
    ],
)
def test_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, error: type[Exception], says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for write in (
        lambda: sv.to_html(decoded(), name),
        lambda: sv.one_position_html(name),
        lambda: sv.watch_html(name),
        lambda: sv.still(decoded(), name.replace(".html", ".png")),
        lambda: sv.film(decoded(), name.replace(".html", ".gif"), rounds=[0]),
    ):
        with pytest.raises(error, match=says):
            write()
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_written_is_named_as_it_was_asked_for(tmp_path: Path) -> None:
    where = tmp_path / "a.html"

    def refused(half: Path) -> None:
        half.write_text("half")
        raise PermissionError(13, "Permission denied", str(half))

    with pytest.raises(PermissionError) as told:
        write_by(where, refused)
    assert str(told.value) == f"path cannot be written, {str(where)!r}: Permission denied"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"alpha": "x"}, TypeError, "alpha must be a number between 0 and 1, got 'x'"),
        ({"alpha": 2}, ValueError, "alpha must be a number between 0 and 1, got 2"),
        ({"fault": "x"}, ValueError, "fault must be one of 'right', "),
        ({"faults": "always_accept"}, TypeError, r"faults must be a list of names, such as \['alw"),
        (
            {"sampler": lambda n: [0] * n, "distribution": [0.5, 0.5]},
            TypeError,
            r"sampler 'your sampler' must take \(n, seed\) and return n cells, got one that takes",
        ),
    ],
)
def test_a_watch(options: dict[str, Any], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        sv.watch(**options)


def test_draws_are_counted_in_whole_numbers() -> None:
    live = sv.watch()
    for wrong in (-1, 0.5, True):
        with pytest.raises(ValueError, match="n must be a whole number of at least 0"):
            live.draw(wrong)  # type: ignore[arg-type]
    live.draw(0)
    assert live.run.n == 0
    live.close()


def test_the_rest(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="verify must be one of 'rejection', 'greedy'"):
        sv.play_live(PAIR, [0], verify="x")
    with pytest.raises(TypeError, match="progress must be True or False, got 'no'"):
        sv.film(decoded(), tmp_path / "a.gif", progress="no")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="views must have each name only once"):
        sv.still(decoded(), views=["text", "text"])
    assert list(tmp_path.iterdir()) == []
