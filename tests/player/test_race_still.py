"""The still of a race says of each run what the race itself comes to."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from specviz.core.formatting import format_duration
from specviz.figures.summary import seconds
from specviz.player.picture.scene import Box, Letters
from specviz.player.steps.race import verdict, why_texts_differ
from specviz.player.still import MARGIN, WIDTH, race_picture, race_scene, still
from tests.player.runs import decoded


def test_each_run_has_its_name_its_numbers_and_a_bar_as_long_as_it_took() -> None:
    runs = [decoded(), decoded(gamma=0), decoded(seed=1)]
    scene = race_scene(runs)
    said = [one.text for one in scene.items if isinstance(one, Letters)]
    taken = [sum(seconds(run).values()) for run in runs]
    for run, took in zip(runs, taken, strict=True):
        told = f"{len(run.tokens)} tokens · {len(run)} passes · {format_duration(took)}"
        assert any(words.endswith(told) for words in said), told
    bars = [one for one in scene.items if isinstance(one, Box) and one.fill != "panel"]
    whole = WIDTH - 2 * MARGIN
    assert [bar.w for bar in bars] == pytest.approx([whole * t / max(taken) for t in taken])
    first = taken.index(min(taken))
    assert [bar.fill == "accepted" for bar in bars] == [i == first for i in range(3)]
    assert all(one.y < scene.height for one in scene.items if isinstance(one, Letters | Box))


def test_the_picture_is_a_png_and_the_themes_differ() -> None:
    from PIL import Image

    runs = [decoded(), decoded(gamma=0)]
    light, dark = race_picture(runs, "light"), race_picture(runs, "dark")
    assert light.startswith(b"\x89PNG") and light != dark
    assert Image.open(io.BytesIO(light)).width == 1500
    assert race_picture(runs, "auto") == light


def test_a_race_says_the_ratio_its_times_and_why_the_texts_differ() -> None:
    runs = [decoded(), decoded(gamma=0)]
    took = [sum(seconds(run).values()) for run in runs]
    ratio = max(took) / min(took)
    names = ["draft model, rejection", "target alone"]
    first = took.index(min(took))
    times = f"{format_duration(min(took))} and in {format_duration(max(took))}"
    shown = f"{ratio:.2f}" if ratio < 1.1 else f"{ratio:.1f}"
    assert verdict(runs) == (
        f"{names[first]} is {shown}× as fast as {names[1 - first]}: 60 tokens in {times}."
    )
    assert why_texts_differ(runs).startswith("The texts differ because each run makes other")
    assert why_texts_differ([decoded(), decoded()]).startswith("The texts are equal")
    assert verdict([decoded(), decoded()]) == "All runs are equally fast."


def test_a_still_of_several_runs_is_their_race(tmp_path: Path) -> None:
    runs = [decoded(), decoded(gamma=0)]
    made = still(runs, tmp_path / "race.svg", size="16:9")
    assert (made.scene.width, made.scene.height) == (1280, 720)
    said = " ".join(one.text for one in made.scene.items if isinstance(one, Letters))
    assert "× as fast as" in said and "× as fast as" in made.alt
    assert (tmp_path / "race.svg").exists()
    with pytest.raises(ValueError, match="round is for one trace; a race of several"):
        still(runs, round=1)
    with pytest.raises(ValueError, match="traces must be 2 to 8 runs, got 1"):
        still([decoded()])
