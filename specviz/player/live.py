"""The player while the model runs: a worker thread decodes, the player follows.

A running cell blocks a widget's messages, so the cell returns at once and a thread runs the model,
round by round. It looks between rounds whether it should stop: because of Cancel, a new run, the
widget's closing or the interpreter's end. Whatever goes wrong in it is said in the widget.
"""

from __future__ import annotations

import atexit
import threading
import weakref
from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any

import traitlets

from specviz.core import checks
from specviz.core.rules import RULES
from specviz.figures.coloured_text import plain
from specviz.player.live_settings import (
    MOST_GAMMA,
    checked_settings,
    choices,
    opened,
    sentence,
)
from specviz.player.options import checked_options
from specviz.player.page import compressed
from specviz.player.projection import pack, project
from specviz.player.widget import Widget, close_in_cell, picture_of, replace_in_cell

if TYPE_CHECKING:
    from specviz.core.trace.trace import Trace

EVERY = 0.2
"""Seconds between two messages to the front end, at least."""
SHARE = 10
"""A message may take this part of the time; a long run is told of less often."""

_alive: weakref.WeakSet[Live] = weakref.WeakSet()


class Live(Widget):
    """A run in progress, with its controls; made by :func:`specviz.play_live`.

    ``settings`` are those of the last run, ``status`` is what the front end shows.

    Parameters
    ----------
    pair : Pair
        The models.
    settings : mapping
        From :func:`~specviz.player.live_settings.checked_settings`.
    drafter : Drafter, optional
        One that the caller made.
    fixed : mapping, optional
        Further arguments of :func:`specviz.stream` for every run.
    ids : bool
        Whether prompts are token ids.
    options : dict, optional
        From :func:`~specviz.player.options.checked_options`.
    """

    settings = traitlets.Dict().tag(sync=True)
    status = traitlets.Dict().tag(sync=True)

    def __init__(
        self,
        pair: Any,
        settings: Mapping[str, Any],
        *,
        drafter: Any = None,
        fixed: Mapping[str, Any] | None = None,
        ids: bool = False,
        options: dict[str, Any] | None = None,
    ) -> None:
        self.pair = pair
        self._given = drafter
        self._fixed = dict(fixed or {})
        self._ids = ids
        self._trace: Trace | None = None
        self._number = 0
        self._shown = 0  # the run that the data is of
        self._closed = False
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._telling = threading.RLock()  # traits are set by two threads
        self._decoding = threading.Lock()  # a trace is read at rest
        self._choices = choices(pair, drafter)
        values = checked_settings(settings, self._choices)
        stream = self._open(values)  # here, so that the caller is told what is wrong
        told = {
            "drafters": [[one.name, one.takes_gamma] for one in self._choices],
            "rules": [[rule.name, rule.lossless] for rule in RULES.values()],
            "unfit": [
                [one.name, rule.name, why]
                for one in self._choices
                for rule in RULES.values()
                if (why := one.unfit(rule))
            ],
            "ids": ids,
            "most_gamma": max(MOST_GAMMA, values["gamma"]),
        }
        super().__init__(kind="live", options=(options or checked_options()) | told)
        self.on_msg(_listen)
        _alive.add(self)
        self._start(values, stream)

    # -- for Python ---------------------------------------------------------------------------

    @property
    def trace(self) -> Trace:
        """The last run's trace as far as it is recorded: a snapshot while the model runs."""
        assert self._trace is not None
        if not self.running:
            return self._trace
        with self._decoding:
            return self._trace.snapshot()

    @property
    def running(self) -> bool:
        """Whether the model runs."""
        return self._thread is not None and self._thread.is_alive()

    @property
    def error(self) -> str | None:
        """What went wrong with the last run, in a sentence; None if nothing did."""
        return self.status["say"] if self.status["state"] == "error" else None

    def run(self, **changes: Any) -> None:
        """Start again, with some settings changed; a run in progress is cancelled.

        Parameters
        ----------
        **changes
            Of ``prompt gamma temperature drafter rule seed max_new_tokens``.

        Raises
        ------
        TypeError, ValueError
            If a setting is unknown or not of its kind; what only shows when the run is opened is
            said in the widget, and by :attr:`error`.
        """
        if self._closed:
            raise RuntimeError("this live player is closed: make a new one with play_live()")
        self._start(checked_settings(self.settings | changes, self._choices))

    def cancel(self) -> None:
        """Stop after the round in progress; the trace keeps what is recorded."""
        self._stop.set()

    def wait(self, timeout: float | None = None) -> Trace:
        """Wait until the run is over, and return its trace.

        Raises
        ------
        TimeoutError
            If it is not over after so many seconds.
        """
        thread = self._thread
        if thread is not None:
            thread.join(timeout)
            if thread.is_alive():
                raise TimeoutError(f"the run is not over after {timeout} seconds")
        return self.trace

    def close(self) -> None:
        """Close the widget; its run stops after the round in progress."""
        self._closed = True
        self._stop.set()
        with self._telling:
            super().close()

    def plain_text(self) -> str:
        """Return the trace so far as text."""
        return plain(self.trace)

    def picture(self) -> bytes | None:
        """Return a PNG of p against q at the first rejection so far, or at the first proposal."""
        return picture_of(self.trace)

    # -- the worker ---------------------------------------------------------------------------

    def _start(self, settings: dict[str, Any], stream: Any = None) -> None:
        self._stop.set()  # the run before
        with self._telling:
            self._number += 1
            self._stop = threading.Event()
            if stream is not None:
                self._trace = stream.trace
            thread = threading.Thread(
                target=self._work,
                args=(self._number, self._stop, self._thread, settings, stream),
                name=f"specviz-live-{self._number}",
                daemon=True,
            )
            self._thread = thread
            with self.hold_sync():
                self.settings = settings
                self.status = self._told("running", "")
        thread.start()

    def _work(
        self,
        number: int,
        stop: threading.Event,
        before: threading.Thread | None,
        settings: dict[str, Any],
        stream: Any,
    ) -> None:
        """Run the model until the text ends or ``stop`` is set; say how it went."""
        if before is not None:
            before.join()
        state, say = "done", ""
        try:
            if stream is None and not stop.is_set():
                stream = self._open(settings, quietly=True)
                self._trace = stream.trace
            if stream is None:
                state = "cancelled"
            elif not self._decode(number, stop, stream):
                stream.close()
                state = "cancelled"
        except Exception as error:
            state, say = "error", sentence(error)
        self._tell(number, state, say, None if stream is None else stream.trace)

    def _decode(self, number: int, stop: threading.Event, stream: Any) -> bool:
        """Run round after round and tell of them; return whether the text came to its end."""
        due = 0.0
        while not stop.is_set():
            with self._decoding:
                over = next(stream, None) is None
            if over:
                return True
            started = perf_counter()
            if started >= due:
                self._tell(number, "running", "", stream.trace)
                now = perf_counter()
                due = now + max(EVERY, SHARE * (now - started))
        return False

    def _open(self, settings: Mapping[str, Any], quietly: bool = False) -> Any:
        return opened(self.pair, settings, self._given, self._fixed, ids=self._ids, quietly=quietly)

    def _tell(self, number: int, state: str, say: str, trace: Trace | None) -> None:
        """Hand the front end what there is so far, unless another run began meanwhile."""
        data = None
        if trace is not None and len(trace):
            data = [compressed(pack(project(trace)))]
        with self._telling:
            if self._closed or number != self._number:
                return
            if data is not None:
                self._shown = number
            with self.hold_sync():
                if data is not None:
                    self.data = data
                self.status = self._told(state, say)

    def _told(self, state: str, say: str) -> dict[str, Any]:
        trace = self._trace if self._shown == self._number else None
        return {
            "run": self._number,
            "shown": self._shown,
            "state": state,
            "say": say,
            "tokens": 0 if trace is None else len(trace.tokens),
            "passes": 0 if trace is None else len(trace),
            "ended": None if trace is None else trace.finish_reason,
            "lossy": trace is not None and trace.lossless is False,
        }


def _listen(live: Live, content: Any, buffers: Any) -> None:
    """Do what a front end asks for; what is wrong with it is said there."""
    asked = content.get("ask") if isinstance(content, dict) else None
    if asked == "cancel":
        live.cancel()
    if asked != "run" or live._closed:
        return
    changes = content.get("settings")
    try:
        live.run(**(changes if isinstance(changes, dict) else {}))
    except (TypeError, ValueError) as error:
        live._stop.set()
        with live._telling:
            live._number += 1
            live.status = live._told("error", sentence(error))


@atexit.register
def _stop_all() -> None:
    """Let no thread run a model while the interpreter goes down."""
    for live in list(_alive):
        live._stop.set()
    for live in list(_alive):
        if live._thread is not None:
            live._thread.join(5)


# -- ``play_live``: the player with controls, over a run in progress ------------------------------


def play_live(
    pair: Any,
    prompt: str | Sequence[int],
    *,
    gamma: int | None = None,
    temperature: float = 1.0,
    drafter: Any = None,
    verify: str | None = None,
    seed: int = 0,
    max_new_tokens: int = 128,
    top_k: int = 0,
    top_p: float = 1.0,
    min_p: float = 0.0,
    repetition_penalty: float = 1.0,
    stop: str | Sequence[str] = (),
    guided: bool = True,
    views: Sequence[str] | None = None,
    height: int | None = None,
    theme: str = "auto",
    title: str | None = None,
) -> Live:
    """Watch the model run: the player with controls, fed by a thread; the cell returns at once.

    The reader can change the prompt, gamma, the temperature, the drafter, the rule, the seed and
    the length, run again and cancel. The player follows the newest round until one steps back.
    Running the cell again closes what it made before and stops its thread.

    Parameters
    ----------
    pair : Pair
        From :func:`specviz.load` or :class:`specviz.Pair`.
    prompt : str or sequence of int
        The text to continue, or token ids.
    gamma : int, optional
        Tokens proposed a round, to begin with; 4 by default.
    temperature : float
        To begin with.
    drafter : str or Drafter, optional
        One of those that this pair can do, by its name in the list ("draft model",
        "prompt lookup", "tree", "early exit", "Medusa", "EAGLE", "EAGLE tree", "quantized draft",
        "target alone"), or a drafter, which joins that list.
    verify : str, optional
        The rule to begin with: "rejection", or "greedy" at temperature 0.
    seed, max_new_tokens : int
        To begin with.
    top_k, top_p, min_p, repetition_penalty, stop
        As in :func:`specviz.generate`, for every run.
    guided, views, height, theme, title
        As in :func:`specviz.play`.

    Returns
    -------
    Live
        ``live.trace`` is the run so far; ``live.run(gamma=8)``, ``live.cancel()`` and
        ``live.wait()`` do what the buttons do, from Python.

    Raises
    ------
    TypeError, ValueError
        If an argument is wrong, in one sentence, before the model runs.

    Examples
    --------
    >>> from specviz.core.tabular import TabularModel, TabularPair
    >>> pair = TabularPair(TabularModel([0.5, 0.5]), TabularModel([0.9, 0.1]))
    >>> live = play_live(pair, [0], gamma=2, max_new_tokens=5)
    >>> len(live.wait().tokens)
    5
    >>> live.close()
    """
    from specviz.api.arguments import checked_pair
    from specviz.core.rules import RULES, check_fits

    if verify is not None:
        checks.one_of("verify", verify, RULES)
    options = checked_options(views=views, height=height, theme=theme, guided=guided, title=title)
    pair = checked_pair(pair)
    given = None if drafter is None or isinstance(drafter, str) else drafter
    if given is not None:
        check_fits(given, RULES[verify or ("greedy" if temperature == 0 else "rejection")])
    if given is not None and gamma is not None:
        raise ValueError(
            f"gamma={gamma!r} cannot be combined with a drafter, which has its own: leave it out"
        )
    ids = not isinstance(prompt, str)
    settings = {
        "prompt": " ".join(str(int(i)) for i in pair.encode(prompt)) if ids else prompt,
        "gamma": 4 if gamma is None else gamma,
        "temperature": temperature,
        "drafter": drafter if isinstance(drafter, str) else choices(pair, given)[0].name,
        "rule": verify or ("greedy" if temperature == 0 else "rejection"),
        "seed": seed,
        "max_new_tokens": max_new_tokens,
    }
    fixed = {
        "top_k": top_k, "top_p": top_p, "min_p": min_p,
        "repetition_penalty": repetition_penalty, "stop": stop,
    }  # fmt: skip
    old = close_in_cell(Live)
    if isinstance(old, Live):
        old.wait(60)  # for its round in progress: both may run the same models
    live = Live(pair, settings, drafter=given, fixed=fixed, ids=ids, options=options)
    replace_in_cell(live)
    return live
