"""A film shows every step in order, keeps to its size, and is written whole or not at all."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageChops

import specviz as sv
from specviz.core.trace.trace import Trace
from specviz.figures.theme import DARK, LIGHT
from specviz.player import film as film_module
from specviz.player.picture.colours import few_colours, reduced
from specviz.player.picture.gif import SAME, write_gif
from specviz.player.picture.pixels import paint
from specviz.player.projection import run_of
from specviz.player.steps.frames import frame_at
from tests.figures.runs import hostile, long_story, story
from tests.player.runs import branching, decoded

film = sv.film


def frames(path: Path) -> list[tuple[Image.Image, int]]:
    """Every frame of a GIF as it is seen, with its milliseconds."""
    found = []
    with Image.open(path) as held:
        for i in range(held.n_frames):
            held.seek(i)
            found.append((held.convert("RGB"), held.info["duration"]))
    return found


def alike(one: Image.Image, other: Image.Image) -> bool:
    return ImageChops.difference(one.convert("RGB"), other.convert("RGB")).getbbox() is None


def test_every_step_is_a_frame_and_each_is_the_still(tmp_path: Path) -> None:
    trace = decoded()
    where = film(trace, tmp_path / "a.gif", rounds=range(1, 4), width=960, progress=False)
    run = run_of(trace)
    steps = range(int(run.first_step[1]), int(run.first_step[4]))
    views = ("text", "caption", "phase")
    screen = film_module._screen(run, views, steps[0])
    seen = frames(where)
    assert len(seen) == len(steps)
    for step, (image, _) in zip(steps, seen, strict=True):
        scene = film_module.shown(run, frame_at(run, step), views, screen)
        assert alike(image, reduced(paint(scene, LIGHT, 960 / screen[0]), LIGHT))


def test_the_story_shows_the_caches_while_they_are_rolled_back() -> None:
    run = run_of(decoded())
    views = ("text", "caption", "phase")
    for step in range(20):
        frame = frame_at(run, step)
        scene = film_module.shown(run, frame, views, (960, 540))
        said = [item.text for item in scene.items if hasattr(item, "text")]
        assert ("target cache" in said) == (frame.phase == "rollback")


def test_a_rejection_is_shown_longer_than_a_draft(tmp_path: Path) -> None:
    where = film(
        story(), tmp_path / "a.gif", rounds=[1], seconds_per_step=1.0, width=400, progress=False
    )
    # two drafted and one more, the pass, kept, rejected, closing token, rollback (the end)
    assert [ms for _, ms in frames(where)] == [700, 700, 700, 1200, 1000, 1600, 1300, 4000]


@pytest.mark.parametrize("run", [branching, hostile, story])
def test_any_run_can_be_filmed(tmp_path: Path, run: Any) -> None:
    where = film(run(), tmp_path / "a.gif", rounds=[0], theme="dark", width=480, progress=False)
    image, _ = frames(where)[-1]
    assert image.size == (480, 270)
    colours = {"#{:02x}{:02x}{:02x}".format(*c) for _, c in image.getcolors(1 << 20) or []}
    assert DARK.background in colours


@pytest.mark.slow
def test_sixty_rounds_stay_small(tmp_path: Path) -> None:
    where = film(decoded(tokens=200), tmp_path / "a.gif", rounds=range(60), progress=False)
    assert where.stat().st_size < 6_000_000


def test_an_mp4_is_an_mp4(tmp_path: Path) -> None:
    where = film(
        decoded(), tmp_path / "a.mp4", rounds=[0], seconds_per_step=0.1, width=401, progress=False
    )
    data = where.read_bytes()
    assert data[4:8] == b"ftyp"
    assert b"avc1" in data
    assert [path.name for path in tmp_path.iterdir()] == ["a.mp4"]


def test_without_the_extra_one_sentence_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    with pytest.raises(ModuleNotFoundError, match=r"needs the extra 'video' \(pip install"):
        film(story(), tmp_path / "a.mp4")
    assert list(tmp_path.iterdir()) == []
    film(story(), tmp_path / "a.gif", rounds=[2], progress=False)


@pytest.mark.parametrize("name", ["a.gif", "a.mp4"])
def test_it_is_written_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    where = tmp_path / name
    film(story(), where, rounds=[2], width=320, progress=False)
    before = where.read_bytes()
    painted = []

    def stops(*arguments: Any) -> Any:
        if len(painted) == 3:
            raise KeyboardInterrupt
        painted.append(paint(*arguments))
        return painted[-1]

    monkeypatch.setattr(film_module, "paint", stops)
    with pytest.raises(KeyboardInterrupt):
        film(story(), where, width=320, progress=False)
    assert where.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize(
    ("wrong", "kind", "said"),
    [
        (
            {"rounds": range(3, 9)},
            ValueError,
            r"rounds\[2\] must be a whole number from 0 to 4",
        ),
        (
            {"rounds": [1, 1]},
            ValueError,
            r"rounds must name each round once, in order, got \[1, 1\]",
        ),
        ({"rounds": [2, 1]}, ValueError, "rounds must name each round once, in order"),
        ({"rounds": [-1]}, ValueError, r"rounds\[.\] must be a whole number from 0 to 4, got -1"),
        ({"rounds": []}, ValueError, "rounds must name at least one round"),
        ({"rounds": "all"}, TypeError, r"rounds must be a range, such as range\(0, 10\)"),
        ({"rounds": 3}, TypeError, "rounds must be a range"),
        ({"rounds": [0.5]}, TypeError, r"rounds\[0\] must be a whole number from 0 to 4, got 0.5"),
        ({"seconds_per_step": 0}, ValueError, r"seconds_per_step must be a number from 0.05 to 10"),
        ({"seconds_per_step": "1"}, TypeError, "seconds_per_step must be a number from 0.05 to 10"),
        (
            {"seconds_per_step": float("nan")},
            ValueError,
            "must be a finite number from 0.05 to",
        ),
        (
            {"width": 100},
            ValueError,
            "to 1,920, got 100: it is in pixels",
        ),
        ({"width": 800.0}, TypeError, "width must be a whole number from 320 to 1,920, got 800.0"),
        ({"theme": "auto"}, ValueError, "theme must be 'light' or 'dark'"),
        ({"views": ["words"]}, ValueError, "views must be a list of names out of"),
    ],
)
def test_wrong_arguments_are_refused(
    tmp_path: Path, wrong: dict[str, Any], kind: type[Exception], said: str
) -> None:
    with pytest.raises(kind, match=said):
        film(story(), tmp_path / "a.gif", **wrong)
    assert list(tmp_path.iterdir()) == []


def test_a_place_or_a_trace_that_cannot_be_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"path must end in \.gif or \.mp4"):
        film(story(), tmp_path / "a.avi")
    with pytest.raises(FileNotFoundError, match="the folder of path does not exist"):
        film(story(), tmp_path / "no" / "a.gif")
    with pytest.raises(TypeError, match="trace must be a Trace"):
        film(3, tmp_path / "a.gif")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="there is no film in it"):
        film(Trace({"rule": "rejection"}, np.array([1])), tmp_path / "a.gif")


def test_a_film_that_would_never_end_is_refused_with_what_fits(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"would have [\d,]+ steps, and at most 1,000") as told:
        film(long_story(500), tmp_path / "a.gif")
    fits = int(str(told.value).rsplit(", ", 1)[1].rstrip(")"))
    run = run_of(long_story(500))
    first = int(run.first_step[run.header["opening"]])
    assert run.first_step[fits] - first <= film_module.MOST_STEPS < run.first_step[fits + 1] - first


def test_a_gif_of_two_colours_comes_back_as_it_went(tmp_path: Path) -> None:
    palette = few_colours(LIGHT)
    rng = np.random.default_rng(3)
    made = []
    entries = np.zeros((40, 60), dtype=np.uint8)
    for _ in range(6):
        entries = entries.copy()
        x, y = rng.integers(0, 40, 2)
        entries[y : y + 9, x : x + 11] = rng.integers(0, SAME, (9, 11))[: 40 - y, : 60 - x]
        image = Image.frombytes("P", (60, 40), entries.tobytes())
        image.putpalette(palette.getpalette() or [])
        made.append(image)
    made.insert(3, made[2])  # a frame like the one before only lasts longer
    with (tmp_path / "a.gif").open("wb") as file:
        write_gif(file, iter([(image, 0.1) for image in made]))
    seen = frames(tmp_path / "a.gif")
    del made[3]
    assert [ms for _, ms in seen] == [100, 100, 200, 100, 100, 100]
    for (image, _), wanted in zip(seen, made, strict=True):
        assert alike(image, wanted)
