"""Where greedy texts part: a near tie, or not a rounding matter."""

from __future__ import annotations

import numpy as np
import pytest

from specviz.core.tabular import TabularModel
from specviz.lossless.audit.difference import first_difference

TARGET = TabularModel([[0.5, 0.3, 0.2], [0.2, 0.4, 0.4], [0.1, 0.8, 0.1]])


def test_equal_texts_have_none() -> None:
    assert first_difference([0, 1, 2], [0, 1, 2], TARGET, prompt=[0]) is None


def test_a_tie_is_a_rounding_matter() -> None:
    found = first_difference([0, 1, 1], [0, 1, 2], TARGET, prompt=[0])
    assert found is not None
    assert (found.position, found.tokens, found.top) == (2, (1, 2), (1, 2))
    assert found.near_tie
    assert "near tie: rounding" in str(found)


def test_a_clear_gap_is_not() -> None:
    found = first_difference([0, 0], [0, 1], TARGET, prompt=[0])
    assert found is not None and not found.near_tie
    assert found.gap == pytest.approx(np.log(0.5 / 0.3))


def test_a_token_outside_the_top_two_is_not_even_at_a_tie() -> None:
    found = first_difference([0, 1, 0], [0, 1, 2], TARGET, prompt=[0])
    assert found is not None and not found.near_tie


def test_a_text_that_ends_early_differs() -> None:
    found = first_difference([0, 1], [0], TARGET, prompt=[0])
    assert found is not None
    assert (found.position, found.tokens) == (1, (1, -1))


def test_an_empty_prompt_is_named() -> None:
    with pytest.raises(ValueError, match="prompt must be"):
        first_difference([0], [1], TARGET, prompt=[])
