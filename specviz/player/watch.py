"""Losslessness live: samples drawn in Python and watched while they arrive, in a notebook."""

from __future__ import annotations

import atexit
import threading
import weakref
from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any

import traitlets

from specviz.core.draws import checked_seed
from specviz.player.assets import LAB
from specviz.player.options import checked_options
from specviz.player.watch_run import WatchedRun, looks_up_to
from specviz.player.watch_samplers import Choice, fox_pair, of_functions, of_pair
from specviz.player.watch_twin import picture_of_run, said
from specviz.player.widget import Widget, replace_in_cell

EVERY = 0.2
"""Seconds between two messages to the front end."""
FIRST_CALL, MOST_AT_ONCE = 16, 1_024
"""So many samples are drawn before the thread looks whether it should stop: as many as take about
a quarter of EVERY, however slow the sampler is."""
RATES = (20, 100, 500, 2_500, 10_000)
LIMIT, LARGEST = 20_000, 1_000_000
KEPT = 200
PREVIEW, PREVIEW_RUN = 2_000, 2**31

_alive: weakref.WeakSet[Watch] = weakref.WeakSet()


class Watch(Widget):
    """Samples watched while they arrive; made by :func:`watch`.

    A worker thread draws; it stops at :meth:`pause`, at :meth:`close` and with the interpreter.
    ``state`` is what the front end shows: counts, and the evidence at every look.
    """

    entry = LAB
    state = traitlets.Dict().tag(sync=True)

    def __init__(self, choice: Choice, options: dict[str, Any], alpha: float, rate: int) -> None:
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
        """Draw ``n`` samples here and now, without the thread; as many as the run still takes."""
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
        return WatchedRun(self.choice.law, self._alpha, self._looks)

    def _shown(self) -> WatchedRun:
        """Return the run, or a short one of our own loop where nothing was drawn yet."""
        with self._busy:
            sampler = self.choice.named(self._sampler)
            if self.run.n or sampler.law is None:
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


def watch(
    sampler: Any = None,
    *,
    law: Any = None,
    labels: Sequence[str] | None = None,
    length: int = 1,
    gamma: int | None = None,
    faults: Sequence[str] | None = None,
    fault: str | None = None,
    alpha: float = 0.01,
    rate: int = 500,
    limit: int = LIMIT,
    seed: int = 0,
    theme: str = "auto",
    height: int | None = None,
    title: str | None = None,
) -> Watch:
    """Watch samples arrive: observed against expected, and the evidence against the target's law.

    The verdict is that of an e-process, which may be looked at after every sample
    (:class:`specviz.lossless.EProcess`); beside it a p-value wanders that is looked at again and
    again, and alarms falsely. Samples are drawn on another thread, which can be paused.

    Parameters
    ----------
    sampler : TabularPair, callable or mapping, optional
        A target and a draft as tables, drawn from by this package's own loop, right or with a
        planted fault; or a function ``(n, seed)`` → ``(n,)`` cells, or several by name, with
        ``law``. By default a pair of five tokens.
    law : array ``(cells,)``, optional
        With functions: the target's probability of each cell.
    labels : sequence of str, optional
        With functions: what the cells are called.
    length : int
        With a pair: tokens per text; whole texts are the cells (24 at most).
    gamma : int
        With a pair: proposals per round; by default as many as ``length``.
    faults : sequence of str, optional
        With a pair: which of :data:`specviz.lossless.faults.FAULTS` can be switched on; by default
        those that show.
    fault : str, optional
        Which of them, or of the functions' names, is drawn from at first.
    alpha : float
        Probability of ever alarming on a right sampler.
    rate : int
        Samples a second at first: 20, 100, 500, 2500 or 10000.
    limit : int
        Samples per run at most.
    seed : int
        Of the first run; later runs draw others.
    theme, height, title
        As in :func:`specviz.play`.

    Returns
    -------
    Watch
        The widget: ``start()``, ``pause()``, ``reset()``, ``choose(name)`` do what its buttons do,
        ``run`` has the numbers.

    Raises
    ------
    TypeError, ValueError
        If an argument is of another kind, or does not fit the others, in one sentence.

    Examples
    --------
    >>> live = watch(fault="always_accept")
    >>> live.draw(1000)
    >>> print(live.plain_text().splitlines()[0])
    EVIDENCE AGAINST THE TARGET'S LAW
    >>> live.close()
    """
    options = checked_options(theme=theme, height=height, title=title)
    checked_seed(seed)
    gamma = length if gamma is None else gamma
    for name, value in (("length", length), ("gamma", gamma), ("limit", limit)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ValueError(f"{name} must be a whole number of at least 1, got {value!r}")
    if not 0 < alpha < 1:
        raise ValueError(f"alpha must lie between 0 and 1, got {alpha!r}")
    if rate not in RATES:
        raise ValueError(f"rate must be one of {', '.join(map(str, RATES))}, got {rate!r}")
    if not 100 <= limit <= LARGEST:
        raise ValueError(f"limit must be between 100 and {LARGEST:,} samples, got {limit}")
    if callable(sampler) or isinstance(sampler, Mapping):
        given = sampler if isinstance(sampler, Mapping) else {"your sampler": sampler}
        choice = of_functions(given, law, labels, seed)
    else:
        if law is not None or labels is not None:
            raise ValueError("law and labels are for functions: a pair brings its own")
        pair = fox_pair() if sampler is None else sampler
        choice = of_pair(pair, length=length, gamma=gamma, faults=faults, seed=seed)
    first = choice.samplers[0] if fault is None else choice.named(fault)
    options |= {
        "law": choice.law, "cells": choice.cells, "alpha": alpha, "limit": limit,
        "looks": looks_up_to(limit), "rates": list(RATES), "sampler": first.name,
        "samplers": [one.told(choice.law) for one in choice.samplers], "from": choice.came_from,
    }  # fmt: skip
    made = Watch(choice, options, alpha, rate)
    replace_in_cell(made)
    return made
