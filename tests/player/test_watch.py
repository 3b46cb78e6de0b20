"""Samples watched in Python: the run, the thread that draws, the twin, the page."""

from __future__ import annotations

import base64
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import specviz as sv
from specviz.core.formatting import format_number
from specviz.core.tabular import TabularModel, TabularPair
from specviz.lossless import EProcess
from specviz.player import watch_widget
from specviz.player.watch_run import WatchedRun, looks_up_to
from specviz.player.watch_samplers import of_pair
from tests.core.one_position import P, Q

COIN = TabularPair(TabularModel([0.5, 0.5]), TabularModel([0.9, 0.1]))


def until(holds: Callable[[], object], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.02)


def stopped(live: Any) -> bool:
    """Whether its thread is gone."""
    return live._thread is not None and not live._thread.is_alive()


def alarm(live: Any) -> int | None:
    """The sample with which the e-process alarmed, as told to the front end."""
    at: int | None = live.state["e_alarm"]
    return at


def fair(n: int, seed: int) -> Any:
    return np.random.default_rng(seed).integers(0, 2, size=n)


def biased(n: int, seed: int) -> Any:
    return (np.random.default_rng(seed).random(n) < 0.3).astype(int)


def test_a_run_is_the_e_process_whatever_the_parts() -> None:
    cells = np.random.default_rng(0).choice(len(P), 700, p=Q)
    run, whole = WatchedRun(P, 0.01, looks_up_to(1000)), EProcess(P)
    log_e = whole.update_log(cells)
    for part in np.array_split(cells, 13):
        run.take(part)
    assert run.log_e == pytest.approx(log_e[-1])
    assert run.watch.crossed_at == whole.crossed_at is not None
    looks = [n for n in run.looks if n <= 700]
    assert [round(100 * float(log_e[n - 1]) / np.log(10)) for n in looks] == run.e
    assert run.cells.tolist() == cells.tolist()
    with pytest.raises(ValueError, match="a run has 1000 samples at most, got 1100"):
        run.take(np.zeros(400, dtype=int))


def test_what_is_told_stays_small() -> None:
    import json

    run = WatchedRun(P, 0.01, looks_up_to(20_000))
    run.take(np.random.default_rng(0).choice(len(P), 20_000, p=P))
    assert len(json.dumps(run.told())) < 6_000


def test_a_right_sampler_and_every_fault_on_a_pair() -> None:
    choice = of_pair(TabularPair(TabularModel(P), TabularModel(Q)), length=1, gamma=1, faults=None,
                     seed=0)  # fmt: skip
    assert choice.distribution == pytest.approx(P.tolist())
    assert [one.right for one in choice.samplers].count(True) == 1
    assert len(choice.samplers) > 10
    for one in choice.samplers:
        run = WatchedRun(choice.distribution, 0.01, looks_up_to(3000))
        run.take(one.draw(3000, 0, 0))
        seen = run.watch.counts / 3000
        assert np.abs(np.subtract(seen, one.distribution or [])).sum() / 2 < 0.04, one.name
        if one.right or one.told(choice.distribution)["tv"] > 0.03:  # rounding needs more samples
            assert run.watch.rejected == (not one.right), one.name


def test_whole_texts_show_what_one_token_hides() -> None:
    hidden = "constant_u"
    live: Any = sv.watch(COIN, length=2, faults=[hidden])
    assert live.choice.cells == ["a a", "a b", "b a", "b b"]
    told = live.options["samplers"][1]
    assert told["tv"] > 0.05
    assert len(told["distribution"]) == 4
    one = sv.watch(COIN, length=1, faults=[hidden])
    assert one.options["samplers"][1]["tv"] == pytest.approx(0, abs=1e-9)
    live.close()
    one.close()


def test_the_thread_draws_pauses_and_goes_on() -> None:
    live: Any = sv.watch(COIN, rate=10_000)
    assert not live.running
    live.start()
    live.start()  # once is enough
    until(lambda: live.run.n > 300)
    live.pause()
    n = live.run.n
    assert not live.running
    assert stopped(live)
    time.sleep(0.3)
    assert live.run.n == n
    assert live.state["n"] == n
    assert live.state["running"] is False
    live.start()
    until(lambda: live.run.n > n)
    live.close()
    until(lambda: stopped(live))


def test_a_fault_is_caught_a_right_sampler_is_not_and_runs_are_counted() -> None:
    live: Any = sv.watch(COIN, faults=["always_accept"], limit=2000)
    live.draw(5000)  # as many as there may be
    assert live.state["n"] == 2000
    assert live.state["ended"]
    assert alarm(live) is None
    first = live.state["counts"]
    live.choose("always_accept")
    assert live.state["n"] == 0
    live.draw(500)
    assert alarm(live) is not None
    live.reset()
    live.choose("right")
    live.draw(2000)
    assert live.state["counts"] != first  # a run has numbers of its own
    assert [one[0] for one in live.state["tally"]] == ["right", "always_accept"]
    live.close()


def test_a_run_that_ended_begins_anew() -> None:
    live: Any = sv.watch(COIN, faults=[], limit=100, rate=10_000)
    live.start()
    until(lambda: live.state["ended"] and not live.running)
    live.start()
    until(lambda: live.state["run"] == 1 and live.state["n"] > 0)
    live.close()


def test_requests_of_the_front_end_are_done_and_strange_ones_left_alone() -> None:
    live: Any = sv.watch(COIN, faults=["always_accept"])
    for content in ("start", None, {"do": "explode"}, {"do": "rate", "value": 10**9},
                    {"do": "sampler", "value": "no such"}, {"do": "close"}):  # fmt: skip
        live._handle_custom_msg(content, [])
    assert live.comm is not None
    assert live.state["sampler"] == "right"
    live._handle_custom_msg({"do": "sampler", "value": "always_accept"}, [])
    live._handle_custom_msg({"do": "rate", "value": 20}, [])
    assert (live.state["sampler"], live.state["rate"]) == ("always_accept", 20)
    live._handle_custom_msg({"do": "start"}, [])
    assert live.running
    live._handle_custom_msg({"do": "pause"}, [])
    assert not live.running
    live.close()


def test_functions_of_the_readers_own() -> None:
    live: Any = sv.watch(
        {"fair": fair, "biased": biased}, distribution=[0.5, 0.5], labels=["heads", "tails"]
    )
    assert live.choice.cells == ["heads", "tails"]
    live.draw(800)
    assert alarm(live) is None
    live.choose("biased")
    live.draw(800)
    assert alarm(live) is not None
    assert live.plain_text().startswith("EVIDENCE AGAINST")
    live.close()
    one = sv.watch(fair, distribution=[0.5, 0.5])
    assert one.choice.samplers[0].name == "your sampler"
    one.close()


def test_a_slow_function_is_asked_for_few_at_a_time() -> None:
    asked: list[int] = []

    def slow(n: int, seed: int) -> Any:
        asked.append(n)
        time.sleep(0.02 * n)
        return fair(n, seed)

    live: Any = sv.watch(slow, distribution=[0.5, 0.5], rate=10_000)
    live.start()
    until(lambda: len(asked) >= 6)
    live.pause()
    assert max(asked) <= 16
    assert min(asked[3:]) < asked[0]
    live.close()


@pytest.mark.parametrize(
    ("returned", "says"),
    [
        (lambda n: np.full(n, 5), "a cell outside 0 … 1"),
        (lambda n: np.zeros(n), "whole numbers, got float64"),
        (lambda n: np.zeros(n + 1, dtype=int), "must return"),
        (lambda n: 1 // 0, "ZeroDivisionError"),
    ],
)
def test_a_function_that_fails_is_told_in_the_widget(
    returned: Callable[[int], Any], says: str
) -> None:
    live: Any = sv.watch(lambda n, seed: returned(n), distribution=[0.5, 0.5], rate=10_000)
    live.start()
    until(lambda: live.state["error"])
    assert says in live.state["error"]
    assert not live.running
    live.close()


def test_words_and_picture_without_a_front_end() -> None:
    live: Any = sv.watch(COIN, faults=["always_accept"])
    text = live.plain_text()  # nothing drawn yet: a short run of our own
    assert text.startswith("NO EVIDENCE AGAINST THE TARGET'S DISTRIBUTION\n2,000 samples")
    assert "no certainty" in text.replace("\n", " ")
    live.choose("always_accept")
    assert live.plain_text().startswith("EVIDENCE AGAINST THE TARGET'S DISTRIBUTION\n2,000 samples")
    live.draw(2000)
    data, _ = live._repr_mimebundle_()
    assert base64.b64decode(data["image/png"]).startswith(b"\x89PNG")
    assert "EVIDENCE AGAINST" in data["text/plain"]
    assert "proved" not in text + data["text/plain"]
    live.close()
    mine = sv.watch(fair, distribution=[0.5, 0.5])
    assert mine.plain_text().startswith("Nothing was drawn yet")  # yours is not called
    assert mine.picture() is None
    mine.close()


def test_closing_stops_the_thread_and_nothing_keeps_it_alive() -> None:
    live: Any = sv.watch(COIN, faults=[], rate=10_000)
    live.start()
    watch_widget._stop_all()
    until(lambda: stopped(live))
    live.close()
    live.start()  # closed: it does not begin again
    assert not live.running
    until(lambda: not [one for one in threading.enumerate() if one.name == "specviz watch"])


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ({"sampler": "always"}, TypeError, "sampler must be a TabularPair with a draft"),
        ({"sampler": TabularPair(TabularModel(P))}, TypeError, "TabularPair with a draft"),
        ({"length": 3}, ValueError, "5 tokens and length 3 give 125"),
        ({"length": 0}, ValueError, "length must be a whole number >= 1"),
        ({"gamma": True}, TypeError, "gamma must be a whole number >= 1"),
        ({"alpha": 1}, ValueError, "alpha must be a number between 0 and 1"),
        ({"rate": 3}, ValueError, "rate must be one of 20, 100"),
        ({"limit": 10}, ValueError, "limit must be a whole number"),
        ({"distribution": [0.5, 0.5]}, ValueError, "distribution and labels are for functions"),
        ({"sampler": fair}, ValueError, "distribution must be given with functions"),
        (
            {"sampler": fair, "distribution": [0.5, 0.6]},
            ValueError,
            "distribution must be probabilities",
        ),
        (
            {"sampler": fair, "distribution": [1.0]},
            ValueError,
            "distribution must have 2 to 24 cells",
        ),
        (
            {"sampler": fair, "distribution": [0.5, 0.5], "labels": ["a"]},
            ValueError,
            "labels must be 2 str",
        ),
        (
            {"sampler": {"a": 3}, "distribution": [0.5, 0.5]},
            TypeError,
            r"sampler\['a'\] must be a function",
        ),
        ({"sampler": {}, "distribution": [0.5, 0.5]}, ValueError, "sampler is empty"),
        ({"fault": "no such"}, ValueError, "fault must be one of 'right'"),
        ({"faults": ["siblings_one_distribution"]}, ValueError, "does not show with a draft model"),
        ({"seed": 2**40}, ValueError, "seed must be a whole number"),
    ],
)
def test_wrong_input_is_one_sentence(
    arguments: dict[str, Any], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        sv.watch(**arguments)


def test_the_page_needs_no_model_and_says_so_without_scripts(tmp_path: Path) -> None:
    where = sv.watch_html(tmp_path / "watch.html", P, Q, fault="resample_from_p")
    text = where.read_text("utf-8")
    without = text.split("<noscript>")[1].split("</noscript>")[0]
    assert "needs scripts" in without
    assert without.count('<th scope="row">') == len(P)
    assert all(f"<td>{format_number(one, 3)}</td>" in without for one in [*P, *Q])
    assert len(text) < 80_000
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"p": P}, "p and q must be given together"),
        ({"labels": ["a"]}, "labels must come with p and q"),
        ({"alpha": 0}, "alpha must be a number between 0 and 1"),
        ({"limit": 1}, "limit must be a whole number >= 100"),
        ({"p": P, "q": [0.5, 0.5]}, "p and q must have one length"),
        ({"fault": "no such"}, "fault must be one of"),
    ]
    for arguments, says in wrong:
        with pytest.raises(ValueError, match=says):
            sv.watch_html(tmp_path / "no.html", **arguments)
    assert not (tmp_path / "no.html").exists()
