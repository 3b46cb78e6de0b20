"""Nothing in a token acts, everything in it can be seen."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specviz.figures.escaping import LONGEST_TOKEN, columns, plain_ascii, split_gap, visible
from tests.figures.runs import HOSTILE

INVISIBLE = {"Cc", "Cs", "Co", "Cn", "Zl", "Zp"}


def acts(text: str) -> list[str]:
    """Characters that would move, hide, break or reorder something."""
    return [
        c
        for c in text
        if unicodedata.category(c) in INVISIBLE or unicodedata.bidirectional(c) in BIDI_CONTROLS
    ]


BIDI_CONTROLS = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI", "BN"} - {"BN"}


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_a_hostile_token_is_shown_as_text(text: str) -> None:
    shown = visible(text)
    assert shown.strip()
    assert not acts(shown)
    assert len(shown) < LONGEST_TOKEN + 30


def test_the_check_would_see_what_acts() -> None:
    assert [bool(acts(text)) for text in ("\x1b", "\u202e", "\u2028", "\udc80", "fox")] == [
        True,
        True,
        True,
        True,
        False,
    ]


@given(st.text(st.characters(), max_size=200))
def test_any_text_is_shown_without_what_acts(text: str) -> None:
    gap, rest = split_gap(text)
    assert gap in ("", " ")
    assert not acts(rest)
    assert not set(rest) & set("\n\r\t")
    rest.encode("utf-8")  # no lone surrogate is left
    assert plain_ascii(rest).isascii()


@given(st.text(st.characters(categories=["L", "N", "P"], exclude_characters="⟨⟩"), min_size=1))
def test_ordinary_text_is_shown_as_it_is(text: str) -> None:
    assert visible(text, limit=10_000) == text


def test_a_long_token_is_cut_and_says_so() -> None:
    assert visible("abc" * 1000) == ("abc" * 1000)[:LONGEST_TOKEN] + "…(3,000 characters)"


def test_blanks_are_signs() -> None:
    assert visible("") == "⟨empty⟩"
    assert visible("  ") == "␣␣"
    assert visible("a\n\n\n\n\nb") == "a⏎×5b"
    assert split_gap(" fox") == (" ", "fox")
    assert split_gap("  fox") == ("", "  fox")
    assert split_gap(" \n") == ("", " ⏎")


def test_columns_of_a_terminal() -> None:
    assert [columns(text) for text in ("fox", "狐狸", "e\u0301", "")] == [3, 4, 1, 0]


def test_an_endless_token_is_not_read_to_its_end() -> None:
    assert visible("\n" * 5_000_000) == "⏎×200,000…(5,000,000 characters)"
    assert len(visible("ab" * 5_000_000)) < 100
