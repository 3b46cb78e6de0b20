"""Numbers for people: two significant digits, and never shown as what they are not."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from specviz.core.formatting import format_duration, format_number, format_p_value


@given(st.floats(1e-12, 1e6))
def test_a_number_is_within_two_digits_of_what_it_says(x: float) -> None:
    said = format_number(x)
    if said == ">.9999":
        assert 0.9999 < x < 1
        return
    assert abs(float(said.replace(",", "")) - x) <= 0.05 * x
    assert (said == "1") == (x == 1) and said != "0"


def test_ratios_of_what_is_shown_agree() -> None:
    """ "at .003, target .001, accepted with .22": a reader computes .33."""
    q, p = 0.0029, 0.00064
    assert [format_number(x) for x in (q, p, p / q)] == [".0029", "6.4e-4", ".22"]


def test_what_is_missing_and_what_is_negative() -> None:
    assert format_number(float("nan")) == format_duration(float("inf")) == "–"
    assert format_number(float("nan"), missing="not recorded") == "not recorded"
    assert format_p_value(np.nan) == "–" and format_number(-0.25) == "-.25"


def test_rounding_carries_to_the_next_digit() -> None:
    assert [format_number(x) for x in (0.0996, 0.00996, 9.996, 99.96, 0.996)] == [
        ".10", ".010", "10.0", "100", ".996",
    ]  # fmt: skip
    assert format_number(0.87654, digits=3) == ".877"
    assert [format_p_value(x) for x in (1.0, 0.9996, 0.01, 0.00099)] == ["1", "1", ".010", "9.9e-4"]
