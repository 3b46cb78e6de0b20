"""What a token looks like on its own, and how a text is cut between its tokens."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from specviz.models.text import decode, pieces, show_bytes, token_strings
from tests.models.tiny import EOS, byte_level, sentencepiece_like, word_level

WORDS = ["<unk>", "the", "quick", "fox"]
TOKENIZERS = {
    "byte_level": byte_level(),
    "byte_level_with_bos": byte_level(specials=["<s>", EOS], bos=True),
    "sentencepiece": sentencepiece_like(),
    "words": word_level(WORDS),
}


def ids_of(tokenizer: Any, text: str) -> list[int]:
    return list(tokenizer(text, add_special_tokens=False)["input_ids"])


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (b"fox", "fox"),
        (" café".encode(), " café"),
        (b" caf\xc3", " caf⟨C3⟩"),
        (b"\x82\xac", "⟨82 AC⟩"),  # the tail of a euro sign
        (b"\xff\xe2\x82 \xfe", "⟨FF E2 82⟩ ⟨FE⟩"),
        ("\N{REPLACEMENT CHARACTER}".encode(), "\N{REPLACEMENT CHARACTER}"),
        (b"", ""),
    ],
)
def test_bytes_that_are_no_character_show_in_hexadecimal(data: bytes, shown: str) -> None:
    assert show_bytes(data) == shown


def test_a_split_character_shows_its_bytes_and_never_a_question_mark() -> None:
    for name in ("byte_level", "sentencepiece"):
        tokenizer = TOKENIZERS[name]
        ids = ids_of(tokenizer, "😀")
        shown = [token_strings(tokenizer, ids)[i] for i in ids]
        assert "".join(shown).replace("▁", "").strip() == "⟨F0⟩⟨9F⟩⟨98⟩⟨80⟩", name


def test_every_token_of_a_byte_level_vocabulary_keeps_all_its_bytes() -> None:
    tokenizer = TOKENIZERS["byte_level"]
    shown = token_strings(tokenizer, range(len(tokenizer)))
    assert len(set(shown.values())) == len(tokenizer)  # distinct tokens look distinct
    assert not any("\ufffd" in text for text in shown.values())
    assert {text for text in shown.values() if len(text) == 1 and text.isascii()} == {
        chr(byte) for byte in range(128)
    }


@pytest.mark.parametrize("name", TOKENIZERS)
def test_a_leading_space_is_kept(name: str) -> None:
    tokenizer = TOKENIZERS[name]
    ids = ids_of(tokenizer, "a fox" if name == "sentencepiece" else "the quick fox")
    assert token_strings(tokenizer, ids)[ids[-1]] == " fox"


def test_a_token_without_a_space_gets_none() -> None:
    for name in ("byte_level", "sentencepiece"):
        tokenizer = TOKENIZERS[name]
        ox = tokenizer.convert_tokens_to_ids("o")
        assert token_strings(tokenizer, [ox]) == {ox: "o"}, name


def test_control_characters_and_markup_stay_data() -> None:
    text = "</script>\u2028\n\x1b\u202e"
    tokenizer = TOKENIZERS["byte_level"]
    cut = pieces(tokenizer, ids_of(tokenizer, text))
    assert "".join(cut) == text
    newline = ids_of(tokenizer, "\n")[0]
    assert token_strings(tokenizer, [newline]) == {newline: "\n"}
    fallback = TOKENIZERS["sentencepiece"].convert_tokens_to_ids("<0x0A>")
    assert token_strings(TOKENIZERS["sentencepiece"], [fallback]) == {fallback: "\n"}


def test_special_tokens_show_their_name_and_are_not_text() -> None:
    tokenizer = TOKENIZERS["byte_level"]
    end = tokenizer.eos_token_id
    fox = ids_of(tokenizer, " fox")
    assert token_strings(tokenizer, [end]) == {end: EOS}
    assert decode(tokenizer, [*fox, end, *fox]) == " fox fox"
    assert pieces(tokenizer, [end, *fox, end])[-1] == ""


def test_ids_without_a_string_show_as_numbers() -> None:
    for tokenizer in (*TOKENIZERS.values(), None):
        assert token_strings(tokenizer, [9_999]) == {9_999: "⟨9999⟩"}
    for tokenizer in TOKENIZERS.values():  # padding rows of an embedding
        ids = [9_999, *ids_of(tokenizer, "fox"), 9_999]
        assert decode(tokenizer, ids).strip() == "fox"
        assert "".join(pieces(tokenizer, ids)) == decode(tokenizer, ids)


def test_without_a_tokenizer_everything_is_a_number() -> None:
    assert decode(None, [3, 1]) == "⟨3⟩⟨1⟩"
    assert pieces(None, [3, 1]) == ["⟨3⟩", "⟨1⟩"]
    assert token_strings(None, np.array([3, 3, 1])) == {3: "⟨3⟩", 1: "⟨1⟩"}


@pytest.mark.parametrize("name", TOKENIZERS)
@pytest.mark.parametrize("text", ["", "fox", "the quick fox", "a café 😀 — über\n\n  é", "  fox "])
def test_pieces_join_to_the_decoded_text(name: str, text: str) -> None:
    tokenizer = TOKENIZERS[name]
    ids = list(tokenizer(text)["input_ids"])
    cut = pieces(tokenizer, ids)
    assert len(cut) == len(ids)
    assert "".join(cut) == decode(tokenizer, ids)


@pytest.mark.parametrize("name", TOKENIZERS)
def test_pieces_join_to_the_decoded_text_for_any_ids_at_all(name: str) -> None:
    tokenizer = TOKENIZERS[name]
    rng = np.random.default_rng(0)
    for length in (1, 2, 3, 5, 40):
        for _ in range(10):
            ids = rng.integers(0, len(tokenizer) + 2, length).tolist()
            cut = pieces(tokenizer, ids)
            assert len(cut) == length
            assert "".join(cut) == decode(tokenizer, ids), ids


def test_a_split_character_belongs_to_the_token_that_completes_it() -> None:
    for name in ("byte_level", "sentencepiece"):
        tokenizer = TOKENIZERS[name]
        ids = ids_of(tokenizer, "a😀a")
        cut = pieces(tokenizer, ids)
        assert [piece for piece in cut if piece] == ["a", "😀", "a"], name
        assert cut.index("😀") == len(ids) - 2, name


def test_pieces_of_a_cut_off_character_are_those_of_the_decoded_text() -> None:
    tokenizer = TOKENIZERS["byte_level"]
    ids = ids_of(tokenizer, "a😀")[:-1]
    assert decode(tokenizer, ids) == "a\ufffd"
    assert pieces(tokenizer, ids) == ["a", "", "", "\ufffd"]


def test_words_carry_their_space_from_the_second_on() -> None:
    assert pieces(TOKENIZERS["words"], [1, 2, 3]) == ["the", " quick", " fox"]


def test_a_special_token_in_the_middle_does_not_shift_the_pieces() -> None:
    tokenizer = TOKENIZERS["sentencepiece"]
    fox, end = tokenizer.convert_tokens_to_ids("▁fox"), tokenizer.eos_token_id
    assert pieces(tokenizer, [end, fox, end, end, fox, fox]) == ["", "fox", "", "", " fox", " fox"]


def test_long_texts_are_cut_without_decoding_every_prefix(monkeypatch: pytest.MonkeyPatch) -> None:
    """The quadratic way is only for what the quick ways miss."""

    def refuse(*_: Any) -> list[str]:
        raise AssertionError("decoded every prefix")

    monkeypatch.setattr("specviz.models.text._pieces_by_prefix", refuse)
    for name, tokenizer in TOKENIZERS.items():
        ids = ids_of(tokenizer, "the quick fox 😀 a fox " * 50)
        if tokenizer.eos_token_id is not None:
            ids[100:100] = [tokenizer.eos_token_id]
        assert "".join(pieces(tokenizer, ids)) == decode(tokenizer, ids), name


@pytest.mark.parametrize("name", TOKENIZERS)
def test_what_the_quick_ways_cut_wrongly_is_cut_again(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for way in ("_pieces_by_bytes", "_pieces_by_window"):
        monkeypatch.setattr(f"specviz.models.text.{way}", lambda _, ids: ["?"] * len(ids))
    tokenizer = TOKENIZERS[name]
    ids = ids_of(tokenizer, "a fox 😀 a fox")
    cut = pieces(tokenizer, ids)
    assert "".join(cut) == decode(tokenizer, ids)
    assert cut[-1] == " fox"
