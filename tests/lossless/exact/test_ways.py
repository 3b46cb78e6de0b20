"""An enumeration that would run for years is refused before it runs."""

from __future__ import annotations

from typing import Any

import pytest

import specviz as sv
from specviz.core.tabular import TabularModel, TabularPair
from specviz.lossless import enumerate_distribution, faults, outcomes, target_distribution
from specviz.lossless.exact.enumerate import MOST, refuse_endless, ways_of

PAIR = TabularPair(TabularModel([0.5, 0.5]), TabularModel([0.9, 0.1]))


def program(draws: Any) -> int:
    """Branch twice where the first draw is kept, five times where it is not."""
    count = 2 if draws.accept(0.5, 0, 0) else 5
    return sum(draws.categorical([0.2, 0.3, 0.5], i) for i in range(count))


def test_the_number_of_ways_is_estimated() -> None:
    exact = sum(1 for _ in outcomes(program))
    assert exact == 3**2 + 3**5
    assert abs(ways_of(program, walks=4_000) / exact - 1) < 0.1
    assert ways_of(lambda draws: draws.categorical([0.0, 1.0], 0)) == 1


def test_the_length_that_would_do_is_one() -> None:
    def program_of(length: int) -> Any:
        return lambda draws: [draws.categorical([0.5, 0.5], i) for i in range(length)]

    assert refuse_endless(program_of, 6, 2, most=64) == 64
    with pytest.raises(ValueError, match=r"length=7 has up to 1e\+02 texts.*length=6 would do"):
        refuse_endless(program_of, 7, 2, most=64)
    with pytest.raises(ValueError, match="use a smaller table"):
        refuse_endless(program_of, 7, 2, most=1)


ENDLESS = [
    lambda: sv.audit(PAIR, [0], method="enumeration", length=40, progress=False),
    lambda: sv.audit(PAIR, [0], method="enumeration", length=40, fault="always_accept"),
    lambda: enumerate_distribution(PAIR, sv.DraftModel(gamma=2), prompt=[0], length=40),
    lambda: target_distribution(PAIR, prompt=[0], length=40),
    lambda: faults.expected_tv(PAIR, [0], "always_accept", length=40),
]


@pytest.mark.parametrize("endless", ENDLESS)
def test_what_never_ends_is_refused(endless: Any) -> None:
    with pytest.raises(ValueError, match=f"length=40 .*{MOST:,}") as raised:
        endless()
    assert "\n" not in str(raised.value)


def test_a_long_text_without_choices_is_computed() -> None:
    certain = TabularModel([[0.0, 1.0], [1.0, 0.0]])
    distribution = target_distribution(TabularPair(certain, certain), prompt=[0], length=40)
    assert distribution == {(1, 0) * 20: 1.0}


def test_only_our_loop_on_tables_is_enumerated() -> None:
    for subject in (lambda prompt, n, seed: [[0]] * n, [[0, 1]] * 300):
        with pytest.raises(ValueError, match="subject=a TabularPair"):
            sv.audit(subject, [0], target=PAIR, method="enumeration")
