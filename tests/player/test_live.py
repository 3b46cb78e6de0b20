"""A live run: what its thread does, how it stops, and what is said when something is wrong."""

from __future__ import annotations

import base64
import gzip
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import specviz as sv
from specviz.player import live as live_widget
from specviz.player import widget
from specviz.player.live_settings import sentence
from specviz.player.projection import MAGIC
from tests.drafters.changed import Changed
from tests.player.runs import pair
from tests.player.slow import Slow

LONG = {"drafter": Slow(gamma=4), "max_new_tokens": 5_000}


@pytest.fixture
def made() -> Iterator[Any]:
    """Make live players and close them afterwards."""
    all_made: list[Any] = []

    def make(*arguments: Any, **options: Any) -> Any:
        one = sv.play_live(*(arguments or (pair(), [2])), **options)
        all_made.append(one)
        return one

    yield make
    for one in all_made:
        one.close()
        one.wait(20)
    assert not [t for t in threading.enumerate() if t.name.startswith("specviz-live")]


def until(holds: Any, seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.005)


def test_it_returns_at_once_and_ends_as_generate_does(made: Any) -> None:
    live = made(gamma=3, seed=7, max_new_tokens=40, temperature=0.9)
    alone = sv.generate(
        pair(), [2], gamma=3, seed=7, max_new_tokens=40, temperature=0.9, progress=False
    )
    trace = live.wait(20)
    assert trace.same_as(alone)
    assert (live.status["state"], live.status["tokens"]) == ("done", 40)
    assert live.status["run"] == live.status["shown"] == 1
    assert [gzip.decompress(run)[:4] for run in live.data] == [MAGIC]
    assert not live.running
    assert live.error is None


def test_it_runs_while_the_cell_is_over_and_tells_of_it_seldom(made: Any, monkeypatch: Any) -> None:
    told: list[float] = []
    tell = live_widget.Live._tell
    monkeypatch.setattr(
        live_widget.Live, "_tell", lambda *a: (told.append(time.monotonic()), tell(*a))[1]
    )
    live = made(**LONG)
    assert live.running
    until(lambda: len(told) > 3)
    live.cancel()
    live.wait(20)
    between = np.diff(told[:-1])  # the last one says that it is over
    assert min(between) >= live_widget.EVERY


def test_its_trace_can_be_read_while_it_grows(made: Any) -> None:
    live = made(max_new_tokens=400)
    seen = 0
    while live.running:
        trace = live.trace
        assert len(trace.tokens) == sum(len(trace.round_tokens(i)) for i in range(len(trace)))
        assert len(trace.tokens) >= seen
        seen = len(trace.tokens)
    assert len(live.trace.tokens) == 400


def test_cancel_keeps_what_is_recorded(made: Any) -> None:
    live = made(**LONG)
    until(lambda: live.status["tokens"] > 3)
    live.cancel()
    trace = live.wait(20)
    assert trace.interrupted
    assert trace.finish_reason == "interrupted"
    assert 3 < len(trace.tokens) < 5_000
    assert trace.check().ok
    assert live.status["state"] == "cancelled"
    assert live.status["tokens"] == len(trace.tokens)


def test_a_second_run_ends_the_first(made: Any) -> None:
    live = made(**LONG)
    until(lambda: live.status["tokens"] > 0)
    first, thread = live._trace, live._thread  # itself, not what it was just now
    live.run(max_new_tokens=10, seed=3, drafter="draft model")
    second = live.wait(20)
    assert not thread.is_alive()
    assert first.interrupted
    assert second is not first
    assert len(second.tokens) == 10
    assert second.meta["seed"] == 3
    assert live.settings["gamma"] == 4
    assert (live.status["run"], live.status["shown"]) == (2, 2)


def test_many_changes_in_a_row_end_in_the_last(made: Any) -> None:
    live = made(**LONG)
    for seed in range(8):
        live.run(seed=seed, max_new_tokens=8, drafter="prompt lookup")
    assert live.wait(20).meta["seed"] == 7
    until(lambda: live.status["state"] == "done")
    assert live.status["run"] == live.status["shown"] == 9


def test_closing_stops_the_thread_and_says_nothing_more(made: Any) -> None:
    live = made(**LONG)
    until(lambda: live.status["tokens"] > 0)
    live.close()
    live.wait(20)
    assert live.trace.interrupted
    assert live.comm is None
    with pytest.raises(RuntimeError, match="closed"):
        live.run()


def test_running_the_cell_again_stops_the_run_before(
    made: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell = SimpleNamespace(get_parent=lambda: {"metadata": {"cellId": "a"}})
    monkeypatch.setitem(widget.sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    first = made(**LONG)
    second = made(**LONG)
    assert not first.running
    assert first.comm is None
    assert second.running
    widget._by_cell.clear()


def test_the_page_asks_by_messages(made: Any) -> None:
    live = made(max_new_tokens=10)
    live.wait(20)
    asked = dict(live.settings) | {"temperature": 0.5, "gamma": 2.0}  # a browser's number
    live._handle_custom_msg({"ask": "run", "settings": asked}, [])
    assert live.wait(20).meta["sampling"]["temperature"] == 0.5
    assert live.settings["gamma"] == 2
    live._handle_custom_msg({"ask": "run", "settings": {"drafter": "slow"}}, [])
    assert live.error.startswith("drafter must be one of 'draft model', 'prompt lookup', 'tree'")
    live._handle_custom_msg({"ask": "weather"}, [])
    live._handle_custom_msg(None, [])
    live._handle_custom_msg({"ask": "run", "settings": dict(live.settings)}, [])
    live.wait(20)
    assert live.error is None


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"rule": "greedy"}, "verify='greedy' needs temperature=0"),
        ({"rule": "block", "drafter": "tree"}, "verify='block' judges chains only"),
        ({"rule": "coupled", "drafter": "prompt lookup"}, "verify='coupled'"),
        ({"prompt": "2 99"}, "prompt has id 99, outside"),
        ({"prompt": "Once upon"}, "prompt must be token ids such as '2 5 7', got Once upon"),
        ({"prompt": ""}, "prompt must be token ids"),
    ],
)
def test_what_shows_when_a_run_is_opened_is_said_in_a_sentence(
    made: Any, capfd: pytest.CaptureFixture[str], changes: dict[str, Any], says: str
) -> None:
    live = made(max_new_tokens=10)
    before = live.wait(20)
    live.run(**changes)
    live.wait(20)
    assert live.error.startswith(says)
    assert "\n" not in live.error
    assert live.trace is before  # what is shown stays
    assert (live.status["run"], live.status["shown"]) == (2, 1)
    live.run(prompt="2", rule="rejection", drafter="draft model")
    assert len(live.wait(20).tokens) == 10
    assert live.error is None
    assert "Traceback" not in "".join(capfd.readouterr())


class Breaks(Changed, sv.DraftModel):
    """A drafter that fails in its third round, with untrusted words."""

    name = "breaks"
    left = 3

    def change(self, inner: Any, context: Any, draws: Any) -> sv.Draft:
        self.left -= 1
        if not self.left:
            raise RuntimeError("out of <b>memory</b>\nand more")
        return inner.propose(context, draws)


def test_a_failure_in_the_middle_is_said_and_keeps_the_trace(
    made: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    live = made(drafter=Breaks(gamma=2))
    trace = live.wait(20)
    assert live.error == "RuntimeError: out of <b>memory</b>"  # text, never markup
    assert len(trace) == 2
    assert trace.finish_reason == "error"
    assert live.status["tokens"] == len(trace.tokens)
    assert "Traceback" not in "".join(capfd.readouterr())


@pytest.mark.parametrize(
    ("options", "kind", "says"),
    [
        ({"gamma": -1}, ValueError, "gamma must be a whole number >= 0, got -1"),
        ({"gamma": 2.5}, TypeError, "gamma must be a whole number >= 0, got 2.5"),
        ({"temperature": -1}, ValueError, "temperature must be a number >= 0, got -1"),
        (
            {"temperature": float("nan")},
            ValueError,
            "temperature must be a finite number >= 0",
        ),
        ({"temperature": "hot"}, TypeError, "temperature must be a number >= 0, got 'hot'"),
        ({"seed": -1}, ValueError, "seed must be a whole number >= 0, got -1"),
        ({"max_new_tokens": 0}, ValueError, "max_new_tokens must be a whole number >= 1, got 0"),
        (
            {"drafter": "Medusa"},
            ValueError,
            "drafter must be one of 'draft model', ",
        ),
        ({"verify": "strict"}, ValueError, "verify must be one of 'rejection', 'greedy'"),
        ({"verify": "greedy"}, ValueError, "verify='greedy' needs temperature=0"),
        ({"drafter": Slow(), "gamma": 2}, ValueError, "gamma=2 cannot be combined with a drafter"),
        ({"drafter": 3}, TypeError, "drafter must be a specviz drafter"),
        ({"top_p": 0}, ValueError, "top_p"),
        ({"theme": "pink"}, ValueError, "theme must be 'auto', 'light' or 'dark'"),
    ],
)
def test_wrong_arguments_are_refused_before_anything_runs(
    options: dict[str, Any], kind: type[Exception], says: str
) -> None:
    with pytest.raises(kind) as caught:
        sv.play_live(pair(), [2], **options)
    assert str(caught.value).startswith(says)
    with pytest.raises(TypeError, match="pair must be a specviz"):
        sv.play_live("gpt", [2])


def test_unknown_settings_are_refused(made: Any) -> None:
    live = made(max_new_tokens=5)
    with pytest.raises(TypeError, match="got 'top_k'"):
        live.run(top_k=3)
    with pytest.raises(TypeError, match="prompt must be text, got list"):
        live.run(prompt=[1])


def test_only_what_the_pair_can_do_is_offered(made: Any) -> None:
    alone = sv.tabular.TabularPair(pair().target)
    live = made(alone, [2], max_new_tokens=5)
    assert live.options["drafters"] == [["prompt lookup", True], ["target alone", False]]
    for name, _ in made(max_new_tokens=5).options["drafters"]:
        one = made(drafter=name, max_new_tokens=12)
        one.wait(20)
        assert (one.error, one.status["tokens"]) == (None, 12), name


def test_a_lossy_rule_is_marked_and_warns_only_who_asked_in_python(made: Any) -> None:
    live = made(max_new_tokens=10)
    live.wait(20)
    assert live.status["lossy"] is False
    live.run(rule="typical")  # a warning here would be an error of these tests
    live.wait(20)
    assert live.status["lossy"] is True


def test_its_twin_needs_no_front_end(made: Any) -> None:
    live = made(max_new_tokens=30)
    live.wait(20)
    data, _ = live._repr_mimebundle_()
    assert data["text/plain"] == str(live.trace)
    assert base64.b64decode(data["image/png"]).startswith(b"\x89PNG")
    running = made(**LONG)  # also in mid-run, from another thread
    until(lambda: running.status["tokens"] > 0)
    assert "prompt:  the" in running._repr_mimebundle_()[0]["text/plain"]


def test_errors_become_one_safe_line() -> None:
    assert sentence(ValueError("a\nb")) == "a"
    assert sentence(RuntimeError("a")) == "RuntimeError: a"
    assert sentence(MemoryError()) == "MemoryError"
    assert "\u202e" not in sentence(ValueError("x\u202ey"))


ENDS = """
import specviz as sv
from tests.player.runs import pair
from tests.drafters.changed import Changed
from tests.player.slow import Slow
live = sv.play_live(pair(), [2], drafter=Slow(), max_new_tokens=100_000)
print(live.running)
"""


def test_an_interpreter_that_ends_takes_the_thread_with_it(root: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", ENDS],
        capture_output=True,
        text=True,
        cwd=root,
        timeout=100,
        check=False,
    )
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "True", "")


def test_every_pair_that_is_offered_runs_and_what_is_not_says_why(made: Any) -> None:
    live = made(max_new_tokens=4)
    grey = {(drafter, rule): why for drafter, rule, why in live.options["unfit"]}
    assert "only it draws with the target's own noise" in grey["prompt lookup", "coupled"]
    assert grey["tree", "block"] == "block judges one chain, and tree proposes a tree"
    for drafter, _ in live.options["drafters"]:
        for rule, _ in live.options["rules"]:
            live.run(drafter=drafter, rule=rule, temperature=0.0 if rule == "greedy" else 1.0)
            live.wait(20)
            until(lambda: live.status["state"] != "running")
            assert (live.status["state"] == "error") == ((drafter, rule) in grey), live.status
