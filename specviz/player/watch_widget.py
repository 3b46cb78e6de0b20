"""The widget of samples watched while they arrive: a thread draws, the front end is told.

A running cell blocks a widget's messages, so the samples come from a thread of their own. It looks
between a few samples whether it should stop: because of a pause, the widget's closing or the
interpreter's end. Whatever goes wrong in the reader's sampler is said in the widget.
"""

from __future__ import annotations

import atexit
import io
import threading
import weakref
from collections.abc import Sequence
from textwrap import wrap
from time import perf_counter
from typing import Any

import numpy as np
import traitlets

from specviz.lossless.statistics.power import noise_floor
from specviz.player.assets import LAB
from specviz.player.watch_run import WatchedRun
from specviz.player.watch_samplers import Watchable
from specviz.player.widget import Widget

EVERY = 0.2
"""Seconds between two messages to the front end."""
FIRST_CALL, MOST_AT_ONCE = 16, 1_024
"""So many samples are drawn before the thread looks whether it should stop: as many as take about
a quarter of EVERY, however slow the sampler is."""
RATES = (20, 100, 500, 2_500, 10_000)
KEPT = 200
PREVIEW, PREVIEW_RUN = 2_000, 2**31

_alive: weakref.WeakSet[Watch] = weakref.WeakSet()


class Watch(Widget):
    """Samples watched while they arrive; made by :func:`specviz.watch`.

    A worker thread draws; it stops at :meth:`pause`, at :meth:`close` and with the interpreter.
    ``state`` is what the front end shows: counts, and the evidence at every look.
    """

    entry = LAB
    state = traitlets.Dict().tag(sync=True)

    def __init__(self, choice: Watchable, options: dict[str, Any], alpha: float, rate: int) -> None:
        self.choice = choice
        self._looks: list[int] = options["looks"]
        self._alpha = alpha
        self._number, self._tally = 0, []  # type: ignore[var-annotated]
        self._sampler, self._rate, self._error = options["sampler"], rate, ""
        self._stop = threading.Event()
        self._stop.set()
        self._thread: threading.Thread | None = None
        self._busy = threading.RLock()
        self.run = self._new()
        super().__init__(kind="watch", options=options, state=self._state())
        self.on_msg(_listen)
        _alive.add(self)

    # -- for Python ---------------------------------------------------------------------------

    @property
    def running(self) -> bool:
        """Whether samples are being drawn."""
        return not self._stop.is_set()

    def start(self) -> None:
        """Draw on, from another thread; a run that has ended is begun anew."""
        with self._busy:
            if self.running or self.comm is None:
                return
            if self.run.ended:
                self.reset()
            self._error = ""
            self._stop = threading.Event()
            self._thread = threading.Thread(
                target=self._work, args=(self._stop,), daemon=True, name="specviz watch"
            )
            self._thread.start()
            self._tell()

    def pause(self) -> None:
        """Stop drawing; what was drawn stays."""
        self._stop.set()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout=10)
        self._tell()

    def reset(self) -> None:
        """Begin a new run: other samples, counts from nothing; a running one goes on running."""
        with self._busy:
            if self.run.n:
                run = self.run
                one = [self._sampler, run.n, run.p_alarm, run.watch.crossed_at]
                self._tally = [*self._tally, one][-KEPT:]
                self._number += 1
            self.run = self._new()
            self._tell()

    def choose(self, sampler: str) -> None:
        """Draw from another sampler, in a new run.

        Raises
        ------
        ValueError
            If there is none of that name.
        """
        name = self.choice.named(sampler).name
        with self._busy:
            self.reset()
            self._sampler = name
            self._tell()

    def draw(self, n: int) -> None:
        """Draw ``n`` samples here and now, without the thread; as many as the run still takes.

        Raises
        ------
        ValueError
            If ``n`` is no whole number of at least 0.
        """
        if isinstance(n, bool) or not isinstance(n, int) or n < 0:
            raise ValueError(f"n must be a whole number of at least 0, got {n!r}")
        with self._busy:
            self._take(min(n, self.run.limit - self.run.n))
            self._tell()

    def close(self) -> None:
        """Stop drawing and close the widget."""
        self._stop.set()
        super().close()

    def plain_text(self) -> str:
        """Return the verdict in words, as far as samples have arrived."""
        with self._busy:
            run = self._shown()
            return said(run, self.choice, self._sampler, preview=run is not self.run)

    def picture(self) -> bytes | None:
        """Return a PNG: observed against expected, and the evidence; of a short run at first."""
        with self._busy:
            return picture_of_run(self._shown(), self.choice.cells)

    # -- inside -------------------------------------------------------------------------------

    def _new(self) -> WatchedRun:
        return WatchedRun(self.choice.distribution, self._alpha, self._looks)

    def _shown(self) -> WatchedRun:
        """Return the run, or a short one of our own loop where nothing was drawn yet."""
        with self._busy:
            sampler = self.choice.named(self._sampler)
            if self.run.n or sampler.distribution is None:
                return self.run
            short = self._new()
            short.take(sampler.draw(min(PREVIEW, short.limit), PREVIEW_RUN, 0))
            return short

    def _take(self, n: int) -> None:
        if n > 0:
            draw = self.choice.named(self._sampler).draw
            self.run.take(draw(n, self._number, self.run.n))

    def _work(self, stop: threading.Event) -> None:
        due, last, at_once = 0.0, perf_counter(), FIRST_CALL
        try:
            while not stop.is_set():
                begun = perf_counter()
                due = min(due + (begun - last) * self._rate, 2 * EVERY * self._rate)
                last = begun
                while due >= 1 and not stop.is_set() and perf_counter() - begun < EVERY:
                    with self._busy:
                        n = min(int(due), at_once, self.run.limit - self.run.n)
                        called = perf_counter()
                        self._take(n)
                        took = perf_counter() - called
                        due -= max(n, 1)
                        if self.run.ended:
                            stop.set()
                    if took > EVERY / 2:
                        at_once = max(1, at_once // 2)
                    elif took < EVERY / 8:
                        at_once = min(MOST_AT_ONCE, 2 * at_once)
                self._tell()
                stop.wait(max(0.0, EVERY - (perf_counter() - begun)))
        except Exception as error:  # the reader's own function: said in the widget
            self._error = f"{type(error).__name__}: {error}"
        finally:
            stop.set()
            self._tell()

    def _state(self) -> dict[str, Any]:
        return {
            "run": self._number, "sampler": self._sampler, "rate": self._rate,
            "running": self.running, "error": self._error, "tally": self._tally,
            **self.run.told(), "e": list(self.run.e), "p": list(self.run.p),
        }  # fmt: skip

    def _tell(self) -> None:
        with self._busy:
            if self.comm is not None:
                self.state = self._state()


def _listen(widget: Watch, content: Any, buffers: Any) -> None:
    """Do what the front end asks; what is no request of ours is left alone."""
    if not isinstance(content, dict):
        return
    what, value = content.get("do"), content.get("value")
    if what in ("start", "pause", "reset"):
        getattr(widget, what)()
    elif what == "sampler" and any(one.name == value for one in widget.choice.samplers):
        widget.choose(str(value))
    elif what == "rate" and value in RATES:
        widget._rate = value
        widget._tell()


@atexit.register
def _stop_all() -> None:
    for one in list(_alive):
        one._stop.set()


# -- where there are no widgets -------------------------------------------------------------------


def said(run: WatchedRun, choice: Watchable, sampler: str, preview: bool = False) -> str:
    """Return the verdict in words; it never claims that two distributions are equal.

    ``preview`` says that the run is a short one of its own, before anything was drawn.
    """
    one, bound = choice.named(sampler), f"{1 / run.alpha:g}"
    what = one.label + (f" ({one.wrong})" if one.wrong else "")
    if not run.n:
        return f"Nothing was drawn yet: {what}. Start it with start(), or draw(n)."
    counts = run.watch.counts
    tv = float(np.abs(counts / run.n - run.distribution).sum() / 2)
    seen = (
        f"{run.n:,} samples of {what}: total variation {tv:.3g}, where chance alone shows "
        f"{noise_floor(run.distribution, run.n):.3g} on average."
    )
    forbidden = np.flatnonzero((run.distribution == 0) & (counts > 0))
    if run.watch.rejected:
        head = "EVIDENCE AGAINST THE TARGET'S DISTRIBUTION"
        why = (
            f"“{choice.cells[int(forbidden[0])]}” was emitted, to which the target gives "
            f"probability 0: once is enough."
            if len(forbidden)
            else f"The e-process reached {bound} at sample {run.watch.crossed_at:,}; under the "
            f"target's distribution it ever does so with probability {run.alpha:g} at most, "
            f"however often "
            f"one looks."
        )
    else:
        head = "NO EVIDENCE AGAINST THE TARGET'S DISTRIBUTION"
        why = (
            f"The e-process stands at {np.exp(min(run.log_e, 700)):.3g}, and would alarm at "
            f"{bound}. That is no certainty: a small difference may need more samples."
        )
    peeked = (
        f"A p-value looked at {len(run.p)} times fell below {run.alpha:g} at sample "
        f"{run.p_alarm:,}: that is no evidence, it does so for right samplers too."
        if run.p_alarm is not None
        else f"A p-value looked at {len(run.p)} times never fell below {run.alpha:g}."
    )
    lines = [head, *wrap(f"{seen} {why}", 88), *wrap(peeked, 88)]
    if preview:
        lines.append(
            "(A short run, shown where there are no widgets: start() begins the real one.)"
        )
    return "\n".join(lines)


def picture_of_run(run: WatchedRun, cells: Sequence[str]) -> bytes | None:
    """Return a PNG of what was seen and of the evidence; None where there is too little."""
    from matplotlib.figure import Figure

    from specviz.figures.plots.against_expected import against_expected
    from specviz.figures.plots.evidence_over_samples import evidence_over_samples
    from specviz.lossless.statistics.pooling import pool_rare
    from specviz.lossless.statistics.sample import Sample

    drawn = run.cells
    if (
        pool_rare(len(drawn) / 2 * run.distribution).cells < 2
    ):  # too few for a p-value in half of them
        return None
    figure = Figure(figsize=(12.4, 4.8), dpi=90, layout="constrained")
    left, right = figure.subplots(1, 2)
    evidence_over_samples(drawn, run.distribution, alpha=run.alpha, ax=right)
    sample = Sample.of(drawn[:, None], vocab_size=len(cells))
    against_expected(sample, lambda prefix: run.distribution, words=list(cells), ax=left)
    held = io.BytesIO()
    figure.savefig(held, format="png")
    return held.getvalue()
