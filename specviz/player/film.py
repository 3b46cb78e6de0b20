"""The player's film as a file: a GIF, or an MP4 with the extra ``video``.

Every frame is a still, painted with Pillow; what is shown how long follows from its phase.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from tqdm.auto import tqdm

from specviz.core import checks
from specviz.core.atomic_writing import checked_target, write_by
from specviz.player.options import checked_trace
from specviz.player.picture.colours import reduced
from specviz.player.picture.gif import write_gif
from specviz.player.picture.layout import fitted_to, pictured
from specviz.player.picture.pixels import paint
from specviz.player.picture.scene import Scene
from specviz.player.projection import run_of
from specviz.player.steps.frames import Frame, frame_at
from specviz.player.steps.run import Run
from specviz.player.still import THEMES, checked_theme, checked_views, default_views

if TYPE_CHECKING:
    from PIL.Image import Image

    from specviz.core.trace.trace import Trace

SUFFIXES = (".gif", ".mp4")
MOST_STEPS = 1_000
MOST_DRAFTED = 24
"""Steps of one round in which proposals are drafted; of larger trees several come at once."""
NARROWEST, WIDEST = 320, 1_920
LEAST_SCREEN, SHAPE = 960, 16 / 9
"""Pixels that the views are laid out on, whatever the film's width: more only if they need it."""
SHORTEST, LONGEST = 0.05, 10.0
FRAMES_PER_SECOND = 10

LASTS = {"draft": 0.7, "verify": 1.2, "decide": 1.0, "close": 1.3, "rollback": 1.1}
"""How many times ``seconds_per_step`` each phase is shown; a rejection is shown longer."""
REJECTION = 1.6
LAST = 4.0
"""How long the end is shown, before a GIF begins again."""


@dataclass(frozen=True)
class Shot:
    """A picture and the seconds it is shown."""

    image: Image
    seconds: float


def film(
    trace: Trace,
    path: str | PathLike[str],
    *,
    rounds: range | Sequence[int] | None = None,
    seconds_per_step: float = 0.5,
    theme: str = "light",
    views: Sequence[str] | None = None,
    width: int = 768,
    progress: bool = True,
) -> Path:
    """Write a run's film: draft, verify, accept or reject, resample or bonus, roll back.

    Parameters
    ----------
    trace : Trace
        The run.
    path : str or path
        ``….gif``, or ``….mp4`` (which needs the extra ``video``: ``pip install
        'specviz[video]'``). It is written whole or not at all.
    rounds : range or sequence of int, optional
        Which rounds to show, such as ``range(3, 8)``; by default those from the round that
        explains most to the end.
    seconds_per_step : float
        How long a step is shown; a rejection longer, a drafted token shorter.
    theme : str
        "light" or "dark".
    views : sequence of str, optional
        As for :func:`specviz.still`; by default few, so that they can be read from afar.
    width : int
        In pixels, 320 to 1,920; the film is 16:9.
    progress : bool
        Whether to show a bar where it takes more than two seconds.

    Returns
    -------
    Path
        Where the film is.

    Raises
    ------
    TypeError, ValueError
        If an argument is of another kind, or the film would be too long, in one sentence.
    FileNotFoundError, IsADirectoryError
        If the folder of ``path`` does not exist, or ``path`` is a folder.
    ModuleNotFoundError
        If an MP4 is asked for and the extra is not installed.

    Examples
    --------
    >>> film(trace, "fox.gif", rounds=range(3, 8))  # doctest: +SKIP
    >>> film(trace, "fox.mp4", theme="dark", width=1280)  # doctest: +SKIP
    """
    checked_trace(trace)
    where = checked_target(path, SUFFIXES)
    checked_theme(theme)
    checks.number("seconds_per_step", seconds_per_step, at_least=SHORTEST, at_most=LONGEST)
    checks.whole("width", width, NARROWEST, WIDEST, hint="it is in pixels")
    checks.flag("progress", progress)
    run = run_of(trace)
    steps = _steps(run, rounds)
    asked = default_views(run) if views is None else checked_views(views, run)
    screen = _screen(run, asked, steps[0])
    write = _gif if where.suffix.lower() == ".gif" else _mp4_writer()
    colours, scale = THEMES[theme], width / screen[0]
    shots = (
        Shot(paint(shown(run, frame, asked, screen), colours, scale), seconds)
        for frame, seconds in _timed(run, steps, seconds_per_step)
    )
    bar = tqdm(shots, total=len(steps), desc=where.name, delay=2, leave=False, disable=not progress)
    try:
        write_by(where, lambda half: write(half, bar, theme))
    finally:
        bar.close()
    return where


def shown(run: Run, frame: Frame, views: Sequence[str], screen: tuple[int, int]) -> Scene:
    """Return a frame on the screen."""
    scene = pictured(run, frame, views, screen[0])
    return fitted_to(scene, *screen)


def _screen(run: Run, views: Sequence[str], step: int) -> tuple[int, int]:
    """Return the smallest 16:9 that the views fit on: the smaller, the larger the letters."""
    high = pictured(run, frame_at(run, step), views, LEAST_SCREEN).height
    wide = max(LEAST_SCREEN, round(high * SHAPE))
    return wide, round(wide / SHAPE)


def _timed(run: Run, steps: Sequence[int], each: float) -> Iterator[tuple[Frame, float]]:
    """Yield the frames with the seconds that each is shown."""
    for step in steps:
        frame = frame_at(run, step)
        lasts = LASTS[frame.phase]
        if frame.phase == "decide" and frame.status[frame.node] == "rejected":
            lasts = REJECTION
        yield frame, each * (LAST if step == steps[-1] else lasts)


def _gif(half: Path, shots: Iterator[Shot], theme: str) -> None:
    with half.open("wb") as file:
        write_gif(file, ((reduced(one.image, THEMES[theme]), one.seconds) for one in shots))


def _mp4_writer() -> Any:
    """Return what writes an MP4.

    Raises
    ------
    ModuleNotFoundError
        If the extra is not installed, in one sentence.
    """
    try:
        import imageio_ffmpeg
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "writing ….mp4 needs the extra 'video' (pip install 'specviz[video]'); ….gif does not",
            name="imageio_ffmpeg",
        ) from error

    def write(half: Path, shots: Iterator[Shot], theme: str) -> None:
        writer: Any = None
        try:
            for shot in shots:
                size = (shot.image.width // 2 * 2, shot.image.height // 2 * 2)
                if writer is None:
                    writer = imageio_ffmpeg.write_frames(
                        str(half),
                        size,
                        fps=FRAMES_PER_SECOND,
                        codec="libx264",
                        pix_fmt_out="yuv420p",
                        macro_block_size=2,
                        quality=None,
                        output_params=[
                            "-threads", "1", "-preset", "veryfast", "-crf", "18",
                            "-tune", "stillimage", "-movflags", "+faststart",
                        ],
                    )  # fmt: skip
                    writer.send(None)
                data = shot.image.crop((0, 0, *size)).tobytes()
                for _ in range(max(1, round(shot.seconds * FRAMES_PER_SECOND))):
                    writer.send(data)
        finally:
            if writer is not None:
                writer.close()

    return write


def _steps(run: Run, rounds: Any) -> list[int]:
    """Return the steps of the rounds asked for.

    Raises
    ------
    TypeError, ValueError
        If there are no such rounds, or more steps than a film may have.
    """
    if not len(run):
        raise ValueError("trace has no rounds, so there is no film in it; decode a token first")
    asked = range(int(run.header["opening"]), len(run)) if rounds is None else rounds
    if isinstance(asked, (str, bytes)) or not isinstance(asked, (range, Sequence, np.ndarray)):
        raise TypeError(f"rounds must be a range, such as range(0, 10), got {rounds!r}")
    if not len(asked):
        raise ValueError("rounds must name at least one round, such as range(0, 10); got none")
    for i, one in enumerate(asked):
        checks.whole(f"rounds[{i}]", one, 0, len(run) - 1)
    if list(asked) != sorted(set(asked)):
        raise ValueError(f"rounds must name each round once, in order, got {list(asked)[:8]}")
    steps = [
        step
        for r in asked
        for step in range(run.first_step[int(r)], run.first_step[int(r) + 1])
        if _is_shown(step - int(run.first_step[int(r)]), int(run.round["nodes"][int(r)]))
    ]
    if len(steps) > MOST_STEPS:
        first = int(asked[0])
        fits = int(np.searchsorted(run.first_step, run.first_step[first] + MOST_STEPS, "right")) - 1
        raise ValueError(
            f"the film would have {len(steps):,} steps, and at most {MOST_STEPS:,} fit: ask for "
            f"fewer rounds, such as rounds=range({first}, {max(first + 1, fits)})"
        )
    return steps


def _is_shown(k: int, n: int) -> bool:
    """Whether a round's step ``k`` is in the film: of many drafted proposals only some are."""
    return k >= n - 1 or k % -(-n // MOST_DRAFTED) == 0
