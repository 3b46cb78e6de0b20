"""The still of a race says of each run what the race itself comes to."""

from __future__ import annotations

import io

import pytest

from specviz.core.formatting import format_duration
from specviz.figures.summary import seconds
from specviz.player.picture.scene import Box, Letters
from specviz.player.still import MARGIN, WIDTH, race_picture, race_scene
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
