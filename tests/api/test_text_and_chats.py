"""Tokenizers and chats as people have them: spaces, special tokens as stops, prefilled turns."""

from __future__ import annotations

import functools
from typing import Any

import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

import specviz as sv
from specviz.api import arguments
from specviz.api.arguments import GenerationConfigWarning
from specviz.models.text import decode_after, pieces_after
from tests.drafters.small import small_llama

WORDS = ["▁fox", "▁a", "▁the", "s", "▁dog"]
IDS = {word: i + 3 for i, word in enumerate(WORDS)}
CHAT = (
    "{% for m in messages %}<|im_start|>{{ m['content'] }}"
    "{% if not loop.last or not continue_final_message %}<|im_end|>{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>{% endif %}{% if shout %} the{% endif %}"
)


def sentencepiece() -> Any:
    """A tokenizer that writes spaces as SentencePiece does, with chat markers as special tokens."""
    vocabulary = {"<unk>": 0, "<|im_start|>": 1, "<|im_end|>": 2, **IDS}
    inner = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    inner.pre_tokenizer = pre_tokenizers.Metaspace()
    inner.decoder = decoders.Metaspace()
    made = PreTrainedTokenizerFast(tokenizer_object=inner, unk_token="<unk>")
    marks = [AddedToken(f"<|im_{name}|>", special=True) for name in ("start", "end")]
    made.add_special_tokens({"additional_special_tokens": marks})
    made.chat_template = CHAT
    return made


def pair_that_writes(ids: list[int]) -> sv.Pair:
    """A real pair whose target writes these tokens one after another, whatever came before."""
    model = small_llama(len(WORDS) + 3, layers=1, seed=0)
    pair = sv.Pair(model, model, sentencepiece())
    forward = model.forward

    @functools.wraps(forward)  # what a forward takes is read off its signature
    def planned(*args: Any, **kwargs: Any) -> Any:
        out = forward(*args, **kwargs)
        places = kwargs.get("position_ids")
        if places is None:
            return out
        wide = out.logits.shape[1]
        for row, place in enumerate(places[0, -wide:].tolist()):
            out.logits[0, row] = -30.0
            out.logits[0, row, ids[(place + 1) % len(ids)]] = 30.0
        return out

    sv.generate(pair, [3, 3], max_new_tokens=1, progress=False)  # the self-test runs unplanned
    model.forward = planned
    return pair


# Spaces ------------------------------------------------------------------------------------------


def test_the_first_word_after_the_prompt_keeps_its_space() -> None:
    tokenizer = sentencepiece()
    assert tokenizer.decode([IDS["▁a"], IDS["▁a"]]) == "a a", "alone its space is lost"
    assert decode_after(tokenizer, [IDS["▁fox"]], [IDS["▁a"], IDS["▁a"]]) == " a a"
    assert pieces_after(tokenizer, [IDS["▁fox"]], [IDS["▁a"], IDS["s"]]) == [" a", "s"]
    markers = [IDS["▁fox"], *[1] * 9]
    assert decode_after(tokenizer, markers, [IDS["▁a"]]) == " a", "markers have no text"
    assert pieces_after(tokenizer, markers, [IDS["▁a"], IDS["s"]]) == [" a", "s"]
    trace = sv.generate(
        pair_that_writes([IDS["▁fox"], IDS["▁a"]]), "fox a fox", max_new_tokens=4, temperature=0,
        progress=False,
    )  # fmt: skip
    assert trace.prompt_text + trace.text in ("fox a fox a fox a fox", "fox a fox fox a fox a")
    assert trace.pieces[0].startswith(" ")


def test_a_stop_string_that_begins_with_a_space_is_found_at_once() -> None:
    pair = pair_that_writes([IDS["▁fox"], IDS["▁a"]])
    trace = sv.generate(
        pair, "fox", stop=" a", max_new_tokens=9, temperature=0, progress=False
    )  # fmt: skip
    assert trace.finish_reason == "stop" and trace.text.endswith(" a")
    assert trace.text.count(" a") == 1
    assert len(trace.tokens) <= 2


# Special tokens as stops -------------------------------------------------------------------------


def test_the_name_of_a_special_token_ends_the_text_at_that_token() -> None:
    pair = pair_that_writes([IDS["▁fox"], IDS["▁a"], 2])
    trace = sv.generate(
        pair, "fox", stop="<|im_end|>", max_new_tokens=9, temperature=0, progress=False
    )
    assert trace.tokens[-1] == 2 and len(trace.tokens) <= 3 and 2 not in trace.tokens[:-1]
    assert 2 in trace.meta["stop_ids"] and trace.check().ok
    free = sv.generate(pair, "fox", max_new_tokens=9, temperature=0, progress=False)
    assert len(free.tokens) == 9, "the twin: without it the text goes on"
    with pytest.raises(ValueError, match=r"give stop='<\|im_end\|>' alone"):
        sv.generate(pair, "fox", stop="\n<|im_end|>")


# Chats -------------------------------------------------------------------------------------------

CHATTED = [{"role": "user", "content": "fox"}, {"role": "assistant", "content": "a"}]


def test_a_prefilled_turn_is_continued_and_the_template_takes_arguments() -> None:
    pair = sv.Pair(small_llama(8, layers=1), tokenizer=sentencepiece())
    open_turn = pair.encode(messages=CHATTED)
    assert open_turn.tolist()[-1] == IDS["▁a"], "neither closed nor reopened"
    closed = pair.encode(messages=CHATTED, continue_final_message=False)
    assert closed.tolist()[-2:] == [2, 1]
    asked = pair.encode(messages=CHATTED[:1])
    assert asked.tolist()[-1] == 1
    shouted = pair.encode(messages=CHATTED[:1], chat_template_kwargs={"shout": True})
    assert shouted.tolist()[-1] == IDS["▁the"]
    trace = sv.generate(pair, messages=CHATTED, gamma=0, max_new_tokens=2, progress=False)
    assert trace.prompt.tolist() == open_turn.tolist()
    with pytest.raises(TypeError, match="chat_template_kwargs must be a dict"):
        sv.generate(pair, messages=CHATTED, gamma=0, chat_template_kwargs=["shout"])


# What a checkpoint asks for ----------------------------------------------------------------------


def test_what_a_generation_config_asks_for_and_is_not_applied_is_said_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(arguments, "_WARNED", set())
    model = small_llama(8, layers=1)
    model.generation_config.suppress_tokens = [3]
    pair = sv.Pair(model, model)
    with pytest.warns(GenerationConfigWarning, match="sets suppress_tokens, which is not applied"):
        sv.generate(pair, [1], max_new_tokens=2, progress=False)
    sv.generate(pair, [1], max_new_tokens=2, progress=False)  # an error if it warned again


def test_a_checkpoints_own_penalty_is_named_unless_it_is_applied(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(arguments, "_WARNED", set())
    model = small_llama(8, layers=1)
    model.generation_config.repetition_penalty = 1.5
    model.generation_config.num_beams = 1
    pair, options = sv.Pair(model, model), {"max_new_tokens": 2, "progress": False}
    sv.generate(pair, [1], repetition_penalty=1.5, **options)  # an error if it warned
    with pytest.warns(GenerationConfigWarning, match=r"its penalty pass repetition_penalty=1\.5"):
        sv.generate(pair, [1], **options)
