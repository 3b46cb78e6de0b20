"""A pair: how prompts become ids and ids text, and what is refused in one sentence."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from specviz.models.pair import Pair
from specviz.models.vocabulary import VocabularyError
from tests.models.tiny import EOS, byte_level, llama, sentencepiece_like, word_level

TEMPLATE = (
    "{% for m in messages %}{{ m['role'] }}:{{ m['content'] }};{% endfor %}"
    "{% if add_generation_prompt %}assistant:{% endif %}"
)


@pytest.fixture(scope="module")
def pair() -> Pair:
    return Pair(llama(300), llama(292, seed=1), byte_level(specials=["<s>", EOS], bos=True))


def one_sentence(caught: pytest.ExceptionInfo[Exception]) -> str:
    message = str(caught.value)
    assert "\n" not in message and len(message) < 300
    return message


# --- the pair


def test_a_padded_draft_shares_its_ids_and_the_pair_says_how_many() -> None:
    small = Pair(llama(16), llama(12))
    assert (small.vocab_size, small.shared_vocab) == (16, 12)
    assert "12 of them shared with the draft" in repr(small)
    large = Pair(llama(12), llama(16))
    assert (large.vocab_size, large.shared_vocab) == (12, 12)
    assert small.encode([15]).tolist() == [15]  # the target may use its tail


def test_a_draft_with_another_tokenizer_is_refused_at_construction() -> None:
    ours, theirs = word_level(["<unk>", "fox", "dog"]), word_level(["<unk>", "fox", "cat"])
    with pytest.raises(VocabularyError, match="id 2 is 'dog' in the target and 'cat'"):
        Pair(llama(3), llama(3), ours, draft_tokenizer=theirs)
    assert Pair(llama(3), llama(3), ours, draft_tokenizer=ours).shared_vocab == 3


def test_a_draft_tokenizer_with_nothing_to_compare_is_an_error() -> None:
    words = word_level(["<unk>", "fox"])
    with pytest.raises(ValueError, match="without a draft"):
        Pair(llama(3), tokenizer=words, draft_tokenizer=words)
    with pytest.raises(ValueError, match="without a tokenizer"):
        Pair(llama(3), llama(3), draft_tokenizer=words)


def test_a_text_stops_at_the_end_tokens_of_model_and_tokenizer() -> None:
    tokenizer = byte_level()
    assert Pair(llama(300, eos_token_id=[7, 9]), tokenizer=tokenizer).stop_ids == {7, 9, 0}
    assert Pair(llama()).stop_ids == frozenset()


def test_the_pair_is_readable(pair: Pair) -> None:
    lines = repr(pair).splitlines()
    assert lines[0] == "Pair" and len(lines) == 5
    assert "llama" in lines[1] and "float32 on cpu" in lines[2]
    assert "none" in repr(Pair(llama()))


def test_something_else_as_a_tokenizer_is_refused() -> None:
    with pytest.raises(TypeError, match=r"tokenizer must be a Hugging Face tokenizer.*type str"):
        Pair(llama(), tokenizer="gpt2")
    with pytest.raises(TypeError, match="PreTrainedTokenizerFast") as caught:
        Pair(llama(), tokenizer=byte_level().backend_tokenizer)
    one_sentence(caught)


# --- prompts


def test_text_gets_its_beginning_token_once(pair: Pair) -> None:
    ids = pair.encode("the fox")
    assert ids.dtype == np.int64 and ids.ndim == 1
    assert ids.tolist().count(0) == 1 and ids[0] == 0
    assert pair.encode("<s>the fox").tolist() == ids.tolist()
    assert pair.decode(ids) == "the fox"


def test_no_beginning_token_where_the_tokenizer_adds_none() -> None:
    plain = Pair(llama(300, bos_token_id=5), tokenizer=byte_level())
    assert 5 not in plain.encode("the fox")
    assert plain.decode(plain.encode("  the fox ")) == "  the fox "


def test_the_emitted_text_fed_back_as_ids_gains_no_second_beginning_token(pair: Pair) -> None:
    ids = pair.encode("the fox")
    assert pair.encode(ids).tolist() == ids.tolist()
    assert pair.encode(ids[1:]).tolist() == ids[1:].tolist()


def test_an_end_token_the_tokenizer_would_append_is_left_off() -> None:
    tokenizer = sentencepiece_like(eos_too=True)
    ids = Pair(llama(300), tokenizer=tokenizer).encode("a fox")
    assert tokenizer("a fox")["input_ids"][-1] == tokenizer.eos_token_id
    assert ids[0] == tokenizer.bos_token_id
    assert tokenizer.eos_token_id not in ids


def test_an_end_token_inside_the_prompt_stays(pair: Pair) -> None:
    assert pair.tokenizer.eos_token_id in pair.encode(f"the fox{EOS} a fox")
    assert pair.encode([5, 1, 5]).tolist() == [5, 1, 5]


@pytest.mark.parametrize(
    "ids",
    [
        [3, 1, 4],
        (3, 1, 4),
        np.array([3, 1, 4], dtype=np.uint8),
        torch.tensor([3, 1, 4]),
        torch.tensor([[3, 1, 4]]),
        [[3, 1, 4]],
        range(3, 6),
        [np.int32(3), np.int64(1), 4],
    ],
)
def test_one_sequence_of_ids_in_any_container(pair: Pair, ids: Any) -> None:
    encoded = pair.encode(ids)
    assert encoded.dtype == np.int64 and encoded.shape == (3,)
    assert encoded.tolist() == np.asarray(ids).ravel().tolist()


@pytest.mark.parametrize("empty", ["", [], np.zeros(0, dtype=np.int64)])
def test_an_empty_prompt_becomes_the_beginning_token(pair: Pair, empty: Any) -> None:
    assert pair.encode(empty).tolist() == [0]
    assert Pair(llama(300, bos_token_id=5), tokenizer=byte_level()).encode(empty).tolist() == [5]


def test_an_empty_prompt_without_a_beginning_token_says_what_is_needed() -> None:
    for without in (Pair(llama(300), tokenizer=byte_level()), Pair(llama())):
        with pytest.raises(ValueError, match=r"prompt is empty.*at least one token") as caught:
            without.encode([])
        one_sentence(caught)


def test_a_one_token_prompt_works(pair: Pair) -> None:
    assert pair.encode([7]).tolist() == [7]


@pytest.mark.parametrize(
    ("prompt", "error", "names"),
    [
        ([1, 2, 300], ValueError, "id 300 at position 2.*vocabulary of 300 .ids 0 to 299"),
        ([-1], ValueError, "id -1 at position 0"),
        ([2**70], TypeError, "prompt must be text or one sequence of token ids"),
        (np.array([2**64 - 1], dtype=np.uint64), ValueError, "18446744073709551615"),
        ([1.5], TypeError, "float64"),
        ([True, False], TypeError, "bool"),
        (["the", "fox"], TypeError, "one sequence of token ids"),
        ([[1, 2], [3, 4]], TypeError, r"shape \(2, 2\)"),
        ([[1, 2], [3]], TypeError, "one sequence of token ids"),
        (7, TypeError, "got 7"),
        (b"fox", TypeError, "type bytes"),
        ({"input_ids": [1]}, TypeError, "type dict"),
        ("half \ud83d", ValueError, "surrogate pair at position 5"),
    ],
)
def test_prompts_that_cannot_become_ids_are_refused(
    pair: Pair, prompt: Any, error: type[Exception], names: str
) -> None:
    with pytest.raises(error, match=names) as caught:
        pair.encode(prompt)
    one_sentence(caught)


def test_exactly_one_of_prompt_and_messages(pair: Pair) -> None:
    with pytest.raises(ValueError, match=r"exactly one of prompt .* and messages .* got neither"):
        pair.encode()
    with pytest.raises(ValueError, match="got both"):
        pair.encode("fox", messages=[{"role": "user", "content": "fox"}])


def test_text_needs_a_tokenizer_and_ids_do_not() -> None:
    bare = Pair(llama())
    with pytest.raises(ValueError, match="no tokenizer: give token ids") as caught:
        bare.encode("the fox")
    one_sentence(caught)
    assert bare.encode([3, 1]).tolist() == [3, 1]
    assert bare.decode([3, 1]) == "⟨3⟩⟨1⟩"
    assert bare.token_strings([3, 1]) == {3: "⟨3⟩", 1: "⟨1⟩"}
    assert bare.pieces([3, 1]) == ["⟨3⟩", "⟨1⟩"]


# --- chats


def test_messages_are_laid_out_by_the_template_up_to_the_answer() -> None:
    tokenizer = byte_level(specials=["<s>", EOS], bos=True)
    tokenizer.chat_template = "{{ bos_token }}" + TEMPLATE
    chat = Pair(llama(300), tokenizer=tokenizer)
    ids = chat.encode(messages=[{"role": "user", "content": "a fox"}])
    assert chat.decode(ids) == "user:a fox;assistant:"
    assert ids.tolist().count(tokenizer.bos_token_id) == 1


def test_messages_need_a_template_and_a_tokenizer(pair: Pair) -> None:
    messages = [{"role": "user", "content": "a fox"}]
    with pytest.raises(ValueError, match="tokenizer has none: give prompt=") as caught:
        pair.encode(messages=messages)
    one_sentence(caught)
    with pytest.raises(ValueError, match="need a tokenizer with a chat template"):
        Pair(llama()).encode(messages=messages)


@pytest.mark.parametrize("messages", ["hello", [], [{"content": "x"}], ["hello"], 5])
def test_malformed_messages_are_refused(messages: Any) -> None:
    tokenizer = byte_level()
    tokenizer.chat_template = TEMPLATE
    with pytest.raises(TypeError, match="messages must be a non-empty list such as") as caught:
        Pair(llama(300), tokenizer=tokenizer).encode(messages=messages)
    one_sentence(caught)


def test_a_template_that_refuses_says_why() -> None:
    tokenizer = byte_level()
    tokenizer.chat_template = "{{ raise_exception('roles must alternate') }}"
    with pytest.raises(ValueError, match="refuses these messages: roles must alternate"):
        Pair(llama(300), tokenizer=tokenizer).encode(messages=[{"role": "user", "content": ""}])


# --- back to text


def test_decoding_keeps_spaces_and_leaves_special_tokens_out(pair: Pair) -> None:
    text = "a fox , said \n  the quick 😀 ."
    ids = pair.encode(text)
    assert pair.decode(ids) == text
    assert "".join(pair.pieces(ids)) == text
    assert pair.token_strings(ids)[0] == "<s>"


@pytest.mark.parametrize(
    ("prompt", "said"),
    [
        (["a", "b"], "several texts: decode one text at a time"),
        ([{"role": "user", "content": "a"}], "a chat is given as messages="),
    ],
)
def test_several_prompts_and_chats_are_named(pair: Pair, prompt: Any, said: str) -> None:
    with pytest.raises(TypeError, match=said):
        pair.encode(prompt)
