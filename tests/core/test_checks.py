"""Every check: what it lets through, and the one sentence for what it does not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from specviz.core import checks

NAN, INF = float("nan"), float("inf")
HOLDS = "probabilities of p"

RIGHT: list[tuple[Callable[[], Any], Any]] = [
    (lambda: checks.whole("n", np.int32(3), 1, 3), 3),
    (lambda: checks.number("x", np.float32(0.5), at_least=0.5, at_most=0.5), 0.5),
    (lambda: checks.number("x", 2, above=1), 2.0),
    (lambda: checks.seed(2**32 - 1), 2**32 - 1),
    (lambda: checks.flag("on", np.True_), True),
    (lambda: checks.text("name", "a"), "a"),
    (lambda: checks.one_of("bits", 8, (8, 4)), 8),
    (lambda: checks.some_of("views", ["a", "b"], "abc"), ("a", "b")),
    (lambda: checks.instance("x", 3, int), 3),
    (lambda: checks.token_ids("ids", []).tolist(), []),
    (lambda: checks.token_ids("ids", np.array([2, 0]), 3, least=2).tolist(), [2, 0]),
    (lambda: checks.distribution("p", [0.5, 0.5]).tolist(), [0.5, 0.5]),
    (lambda: checks.distributions("p", [[1, 0], [0, 1]], 2).tolist(), [[1.0, 0.0], [0.0, 1.0]]),
]

WRONG: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: checks.whole("n", 2.0), TypeError, "n must be a whole number, got 2.0"),
    (lambda: checks.whole("n", True, 0), TypeError, "n must be a whole number >= 0, got True"),
    (lambda: checks.whole("n", 0, 1, 16), ValueError, "a whole number from 1 to 16, got 0"),
    (lambda: checks.whole("n", 0, 1, 10**9), ValueError, "n must be a whole number >= 1, got 0"),
    (lambda: checks.whole("n", 10**10, 1, 10**9), ValueError, "from 1 to 1,000,000,000, got"),
    (lambda: checks.whole("n", 3, most=2), ValueError, "n must be a whole number <= 2, got 3"),
    (
        lambda: checks.whole("gamma", "4", 0, also="an AdaptiveGamma"),
        TypeError,
        "gamma must be a whole number >= 0 or an AdaptiveGamma, got '4'",
    ),
    (lambda: checks.whole("n", -1, 0, hint="0 is off"), ValueError, "got -1: 0 is off"),
    (lambda: checks.number("x", "hot"), TypeError, "x must be a number, got 'hot'"),
    (lambda: checks.number("x", True), TypeError, "x must be a number, got True"),
    (lambda: checks.number("x", NAN), ValueError, "x must be a finite number, got nan"),
    (lambda: checks.number("x", INF, at_least=0), ValueError, "a finite number >= 0, got inf"),
    (lambda: checks.number("x", -1, at_least=0), ValueError, "x must be a number >= 0, got -1"),
    (lambda: checks.number("x", 0, above=0), ValueError, "x must be a number > 0, got 0"),
    (lambda: checks.number("x", 2, at_least=0, at_most=1), ValueError, "a number from 0 to 1"),
    (lambda: checks.number("x", 1, above=0, below=1), ValueError, "a number between 0 and 1"),
    (lambda: checks.number("x", 0, above=0, at_most=1), ValueError, "above 0 and at most 1"),
    (lambda: checks.number("x", 1, at_least=0, below=1), ValueError, "at least 0 and below 1"),
    (lambda: checks.seed(-1), ValueError, r"a whole number from 0 to 2\*\*32 - 1, got -1"),
    (lambda: checks.seed(1.5, "sequence"), TypeError, "sequence must be a whole number from 0"),
    (lambda: checks.flag("on", "no"), TypeError, "on must be True or False, got 'no'"),
    (lambda: checks.text("name", 3), TypeError, "name must be a str, got int"),
    (lambda: checks.one_of("bits", True, (8, 1)), ValueError, "bits must be 8 or 1, got True"),
    (lambda: checks.one_of("bits", [8], (8, 4, 2)), ValueError, r"8, 4 or 2, got \[8\]"),
    (lambda: checks.one_of("rule", "grdy", ["greedy"]), ValueError, "did you mean 'greedy'"),
    (lambda: checks.one_of("x", "e", "abcd"), ValueError, "one of 'a', 'b', 'c', 'd', got 'e'"),
    (lambda: checks.some_of("views", "a", "abc"), TypeError, "views must be a list of names"),
    (lambda: checks.some_of("views", [], "abc"), ValueError, "views must be a list of names"),
    (lambda: checks.some_of("views", ["d"], "abc"), ValueError, r"out of 'a', 'b', 'c', got"),
    (lambda: checks.some_of("views", ["a", "a"], "abc"), ValueError, "each name only once"),
    (lambda: checks.instance("x", int, int), TypeError, "x must be an? int, got the class int"),
    (lambda: checks.pair(4), TypeError, "pair must be a Pair or TabularPair, got int"),
    (lambda: checks.token_ids("ids", "fox"), TypeError, "got the text 'fox': encode it first"),
    (lambda: checks.token_ids("ids", 3), TypeError, "one list of token ids, got int"),
    (lambda: checks.token_ids("ids", [[1]]), TypeError, r"got shape \(1, 1\)"),
    (lambda: checks.token_ids("ids", [0, True]), TypeError, "got bool such as True"),
    (lambda: checks.token_ids("ids", [0.5]), TypeError, "got float such as 0.5"),
    (lambda: checks.token_ids("ids", [1, [2]]), TypeError, "lists of different lengths in it"),
    (lambda: checks.token_ids("ids", [7], 7), ValueError, "id 7, outside the vocabulary of 7"),
    (lambda: checks.token_ids("ids", [], least=1), ValueError, "1 or more, got an empty one"),
    (lambda: checks.distribution("p", "ab"), TypeError, f"{HOLDS} must be numbers, got 'ab'"),
    (lambda: checks.distribution("p", [1.0], 2), ValueError, r"must have shape \(2,\), got \(1,"),
    (lambda: checks.distribution("p", [[1.0]]), ValueError, r"must have shape \(vocab,\)"),
    (lambda: checks.distributions("p", [1.0]), ValueError, r"must have shape \(n, vocab\)"),
    (lambda: checks.distribution("p", [2, -1]), ValueError, "not negative, got -1 at token 1"),
    (lambda: checks.distributions("p", [[1], [NAN]]), ValueError, "got nan at row 1, token 0"),
    (lambda: checks.distribution("p", [0.5, 0.4]), ValueError, r"sum to 1 \(off by 0.1\)"),
    (lambda: checks.new_file(3), TypeError, "path must be a file name .*, got int"),
    (lambda: checks.new_file(""), ValueError, "path must be a file name, got ''"),
    (lambda: checks.new_file("a\0"), ValueError, "without a zero byte"),
    (lambda: checks.new_file("a" * 300), ValueError, "at most 200 bytes, got one of 300 letters"),
    (lambda: checks.new_file("/"), IsADirectoryError, "path is a folder, '/': add a file name"),
    (lambda: checks.new_file("/no/a"), FileNotFoundError, "the folder of path does not exist"),
    (lambda: checks.new_file("/a.pdf", (".svg",), "out"), ValueError, "out must end in .svg"),
    (lambda: checks.old_file("/no/a", what="trace"), FileNotFoundError, "no such trace: '/no/a'"),
    (lambda: checks.old_file("/", what="trace"), IsADirectoryError, "a folder, not a trace"),
]


@pytest.mark.parametrize(("call", "value"), RIGHT)
def test_what_is_right_comes_back(call: Callable[[], Any], value: Any) -> None:
    found = call()
    assert found == value and type(found) is type(value)


@pytest.mark.parametrize(("call", "error", "says"), WRONG, ids=[says for *_, says in WRONG])
def test_what_is_wrong_is_one_sentence(
    call: Callable[[], Any], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says) as raised:
        call()
    assert "\n" not in str(raised.value) and len(str(raised.value)) < 300


def test_a_file_that_is_there_may_be_read_and_replaced(tmp_path: Path) -> None:
    place = tmp_path / "fox.svg"
    place.write_text("")
    assert checks.new_file(str(place), (".svg",)) == checks.old_file(place) == place


def test_shown_is_short_and_on_one_line() -> None:
    assert checks.shown(np.eye(50)).count("\n") == 0
    assert len(checks.shown(["x" * 500] * 500)) < 700
