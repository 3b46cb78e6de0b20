"""Models in memory: what is read off them, and what is refused by name."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import (
    BertConfig,
    BertLMHeadModel,
    BloomConfig,
    BloomForCausalLM,
    GPTNeoXConfig,
    GPTNeoXForCausalLM,
    LlamaModel,
    T5Config,
    T5ForConditionalGeneration,
)

from specviz.core.tabular import TabularModel
from specviz.models.load import as_model
from specviz.models.pair import Pair
from tests.models.tiny import gpt2, llama


def test_a_model_in_memory_is_described_and_put_in_eval_mode() -> None:
    hugging_face = llama(16, eos_token_id=[3, 5]).train()
    model = as_model(hugging_face, "mine")
    assert model.model is hugging_face and not hugging_face.training
    assert (model.name, model.kind) == ("mine", "llama")
    assert (model.device, model.dtype) == ("cpu", "float32")
    assert (model.vocab_size, model.context_length) == (16, 32)
    assert model.eos_ids == {3, 5}
    assert model.parameters == sum(p.numel() for p in hugging_face.parameters())
    assert "mine" in repr(model) and "vocabulary 16" in repr(model) and "32 tokens" in repr(model)


def test_the_vocabulary_is_that_of_the_output_embedding_not_of_the_config() -> None:
    hugging_face = llama(16)
    hugging_face.lm_head = torch.nn.Linear(8, 20, bias=False)
    assert hugging_face.config.vocab_size == 16
    assert as_model(hugging_face).vocab_size == 20


def test_context_is_found_under_any_of_its_names_and_may_be_missing() -> None:
    assert as_model(gpt2()).context_length == 24
    endless = as_model(
        BloomForCausalLM(BloomConfig(vocab_size=16, hidden_size=8, n_layer=1, n_head=2))
    )
    assert endless.context_length is None
    assert "any length" in repr(endless)


def test_the_generation_config_says_which_tokens_end_a_text_before_the_config_does() -> None:
    hugging_face = llama(eos_token_id=3)
    hugging_face.generation_config.eos_token_id = 7
    assert as_model(hugging_face).eos_ids == {7}
    hugging_face.generation_config.eos_token_id = None
    assert as_model(hugging_face).eos_ids == {3}
    assert as_model(llama()).eos_ids == frozenset()


def test_wrapped_and_tabular_models_pass_through_unchanged() -> None:
    model = as_model(llama())
    table = TabularModel([0.5, 0.5], eos_ids=[1])
    assert as_model(model) is model
    assert as_model(table) is table
    both = Pair(table, TabularModel([0.9, 0.1]))
    assert (both.vocab_size, both.shared_vocab, both.stop_ids) == (2, 2, {1})
    assert both.encode([0, 1]).tolist() == [0, 1]
    assert both.decode([0, 1]) == "⟨0⟩⟨1⟩"
    assert "tabular" in repr(both)


def not_models() -> dict[str, Any]:
    t5 = T5Config(vocab_size=16, d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2)
    bert = BertConfig(
        vocab_size=16,
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=8,
    )
    return {
        "got the name 'org/target'.*sv.load": "org/target",
        "encoder-decoder T5": T5ForConditionalGeneration(t5),
        "BertLMHeadModel, which also looks at later tokens": BertLMHeadModel(bert),
        "LlamaModel, which has no output head": LlamaModel(llama().config),
        "object of type Linear": torch.nn.Linear(2, 2),
        "object of type int": 5,
        "got NoneType": None,
    }


@pytest.mark.parametrize("names", not_models())
def test_what_cannot_continue_a_text_is_refused_by_name(names: str) -> None:
    with pytest.raises(TypeError, match=names) as caught:
        Pair(not_models()[names])
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith("target must be a Hugging Face causal language model")


def test_a_refused_draft_is_called_the_draft() -> None:
    with pytest.raises(TypeError, match=r"^draft must be"):
        Pair(llama(), "org/draft")


def test_a_causal_model_with_an_encoder_switch_in_its_config_is_not_refused() -> None:
    config = GPTNeoXConfig(
        vocab_size=16,
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=8,
    )
    assert as_model(GPTNeoXForCausalLM(config)).kind == "gpt_neox"
