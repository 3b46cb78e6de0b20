"""Which ids two models share: strings decide, sizes only bound them."""

from __future__ import annotations

import pytest
from tokenizers import AddedToken

from specviz.models.vocabulary import VocabularyError, shared_vocabulary
from tests.models.tiny import byte_level, word_level

WORDS = ["<unk>", "the", "quick", "brown", "fox", "cat"]


@pytest.mark.parametrize(("target", "draft"), [(152_064, 151_936), (16, 12), (12, 16), (12, 12)])
def test_padded_embeddings_share_the_smaller_height(target: int, draft: int) -> None:
    same = word_level(WORDS)
    assert shared_vocabulary(target, draft) == min(target, draft)
    assert shared_vocabulary(target, draft, same, word_level(WORDS)) == min(target, draft)


def test_same_size_but_other_tokens_is_refused_by_the_first_string_that_differs() -> None:
    other = ["<unk>", "the", "quick", "red", "fox", "dog"]
    with pytest.raises(VocabularyError) as caught:
        shared_vocabulary(6, 6, word_level(WORDS), word_level(other))
    message = str(caught.value)
    assert "id 3 is 'brown' in the target and 'red' in the draft" in message
    assert "2 of 6 shared ids differ" in message
    assert "\n" not in message


def test_two_ids_swapped_is_refused_although_the_sets_of_strings_are_equal() -> None:
    swapped = ["<unk>", "the", "brown", "quick", "fox", "cat"]
    with pytest.raises(VocabularyError, match="id 2 is 'quick' in the target and 'brown'"):
        shared_vocabulary(6, 6, word_level(WORDS), word_level(swapped))


def test_a_difference_above_the_shared_ids_does_not_matter() -> None:
    other = [*WORDS[:5], "dog"]
    assert shared_vocabulary(8, 5, word_level(WORDS), word_level(other)) == 5
    with pytest.raises(VocabularyError, match="id 5"):
        shared_vocabulary(8, 6, word_level(WORDS), word_level(other))


def test_an_id_only_one_tokenizer_defines_is_padding_for_the_other() -> None:
    assert shared_vocabulary(8, 8, word_level(WORDS), word_level(WORDS[:4])) == 8
    assert shared_vocabulary(8, 8, word_level(WORDS[:4]), word_level(WORDS)) == 8


def test_added_and_special_tokens_are_compared_too_and_named_as_such() -> None:
    target, draft = word_level(WORDS), word_level(WORDS)
    target.add_tokens([AddedToken("<|user|>", special=True)])
    draft.add_tokens([AddedToken("<|tool|>", special=True)])
    with pytest.raises(VocabularyError) as caught:
        shared_vocabulary(8, 8, target, draft)
    assert "id 6 is the special token '<|user|>'" in str(caught.value)
    assert "the special token '<|tool|>' in the draft" in str(caught.value)


def test_hostile_token_text_is_quoted_and_short() -> None:
    hostile = word_level([*WORDS[:3], "x\n\x1b[31m\u202e" + "y" * 500])
    with pytest.raises(VocabularyError) as caught:
        shared_vocabulary(4, 4, word_level(WORDS[:4]), hostile)
    message = str(caught.value)
    assert message.isprintable()
    assert len(message) < 400


def test_vocabularies_with_no_id_in_common_are_refused() -> None:
    early, late = word_level(WORDS), word_level(WORDS)
    late.get_vocab = lambda: {word: i + 100 for i, word in enumerate(WORDS)}  # type: ignore
    with pytest.raises(VocabularyError, match="no id in common"):
        shared_vocabulary(200, 200, early, late)


def test_two_strings_at_one_id_are_not_a_difference() -> None:
    plain, aliased = word_level(WORDS), word_level(WORDS)
    aliased.get_vocab = lambda: plain.get_vocab() | {"the-too": 1}  # type: ignore
    assert shared_vocabulary(6, 6, plain, aliased) == 6
    assert shared_vocabulary(6, 6, aliased, plain) == 6


def test_byte_level_tokenizers_trained_alike_agree_and_others_do_not() -> None:
    assert shared_vocabulary(300, 320, byte_level(), byte_level()) == 300
    with pytest.raises(VocabularyError):
        shared_vocabulary(300, 300, byte_level(), byte_level(specials=["<s>", "<|end|>"]))
