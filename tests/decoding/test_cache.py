"""Caches: told apart before anything runs; cut back and gathered without changing what stays."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import transformers as tf
from transformers import DynamicCache, PreTrainedModel

from specviz.decoding.hf import cache as module
from specviz.decoding.hf.cache import (
    GrowingLayer,
    UnsupportedModelError,
    capabilities,
    crop,
    crop_to,
    gather,
    held,
    new_cache,
    refuse,
)
from tests.decoding import families as f

TINY: dict[str, Any] = {
    "vocab_size": 32,
    "hidden_size": 16,
    "intermediate_size": 16,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "num_hidden_layers": 2,
    "max_position_embeddings": 64,
}


def recurrent_models() -> dict[str, PreTrainedModel]:
    jamba = {"mamba_d_state": 4, "mamba_dt_rank": 4, "use_mamba_kernels": False, "num_experts": 2}
    return {
        "mamba": tf.MambaForCausalLM(
            tf.MambaConfig(vocab_size=32, hidden_size=16, num_hidden_layers=1, state_size=4)
        ),
        "rwkv": tf.RwkvForCausalLM(
            tf.RwkvConfig(vocab_size=32, hidden_size=16, num_hidden_layers=2, context_length=16)
        ),
        "jamba": tf.JambaForCausalLM(tf.JambaConfig(**TINY, **jamba)),
        "recurrent_gemma": tf.RecurrentGemmaForCausalLM(
            tf.RecurrentGemmaConfig(**{**TINY, "lru_width": 16, "num_hidden_layers": 3})
        ),
        "lfm2": tf.Lfm2ForCausalLM(
            tf.Lfm2Config(**TINY, layer_types=["conv", "full_attention"], block_multiple_of=8)
        ),
    }


@pytest.fixture(scope="module")
def recurrent() -> dict[str, PreTrainedModel]:
    return recurrent_models()


@pytest.mark.parametrize("name", ["mamba", "rwkv", "jamba", "recurrent_gemma", "lfm2"])
def test_recurrent_models_are_refused_by_name(
    recurrent: dict[str, PreTrainedModel], name: str
) -> None:
    kind = capabilities(recurrent[name])
    assert (kind.name, kind.can_crop, kind.can_gather, kind.trees) == ("recurrent", *[False] * 3)
    with pytest.raises(UnsupportedModelError, match=f"model type '{name}' .*rolled back"):
        refuse(kind)


def test_the_layers_alone_give_a_hybrid_away(
    recurrent: dict[str, PreTrainedModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(recurrent["jamba"]), "_is_stateful", False)
    assert capabilities(recurrent["jamba"]).name == "recurrent"


def test_an_encoder_decoder_is_refused_by_name() -> None:
    model = tf.T5ForConditionalGeneration(
        tf.T5Config(vocab_size=32, d_model=16, d_ff=16, d_kv=8, num_layers=1, num_heads=2)
    )
    with pytest.raises(UnsupportedModelError, match=r"model type 't5' .*encoder–decoder"):
        refuse(capabilities(model))


def test_a_model_without_a_cache_is_refused_by_name() -> None:
    model = tf.OpenAIGPTLMHeadModel(
        tf.OpenAIGPTConfig(vocab_size=32, n_embd=16, n_layer=1, n_head=2, n_positions=16)
    )
    with pytest.raises(
        UnsupportedModelError, match=r"model type 'openai-gpt' .*no key/value cache"
    ):
        refuse(capabilities(model))


def test_it_is_a_value_error() -> None:
    assert issubclass(UnsupportedModelError, ValueError)


@pytest.mark.parametrize(
    ("build", "name", "windows"),
    [
        (f.llama, "full", {"full_attention": None}),
        (f.gpt2, "full", {"full_attention": None}),
        (f.mistral, "sliding", {"sliding_attention": f.WINDOW}),
        (f.gemma2, "mixed", {"sliding_attention": f.WINDOW, "full_attention": None}),
    ],
)
def test_ordinary_models_do_everything(build: Any, name: str, windows: dict[str, Any]) -> None:
    kind = capabilities(build())
    assert (kind.name, kind.can_crop, kind.can_gather, kind.trees) == (name, *[True] * 3)
    assert dict(kind.windows) == windows
    refuse(kind, trees=True)


@pytest.mark.parametrize("build", [f.bloom, f.mpt, f.falcon_alibi])
def test_alibi_models_do_chains_only(build: Any) -> None:
    kind = capabilities(build())
    refuse(kind)
    with pytest.raises(UnsupportedModelError, match=r"cannot verify a token tree: its ALiBi"):
        refuse(kind, trees=True)


def test_falcon_without_alibi_does_trees() -> None:
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "alibi": False}
    model = tf.FalconForCausalLM(tf.FalconConfig(vocab_size=32, **sizes))
    assert capabilities(model).trees


def test_local_attention_of_gpt_neo_does_chains_only() -> None:
    sizes = {"hidden_size": 16, "num_layers": 2, "num_heads": 2, "max_position_embeddings": 32}
    kinds = [[["global", "local"], 1]]
    model = tf.GPTNeoForCausalLM(tf.GPTNeoConfig(vocab_size=32, **sizes, attention_types=kinds))
    kind = capabilities(model)
    assert kind.can_crop and not kind.trees and "local attention" in kind.why


@pytest.mark.parametrize("attention", ["flash_attention_2", "flex_attention", "some/kernel"])
def test_attention_without_a_tree_mask_does_chains_only(
    attention: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = f.llama()
    monkeypatch.setattr(model.config, "_attn_implementation_internal", attention)
    assert model.config._attn_implementation == attention
    kind = capabilities(model)
    refuse(kind)
    with pytest.raises(UnsupportedModelError, match=f"'{attention}' takes no tree mask"):
        refuse(kind, trees=True)


# Rows -------------------------------------------------------------------------------------------


def states(rows: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    shape = (1, 2, rows, 4)
    return torch.randn(shape, generator=generator), torch.randn(shape, generator=generator)


def filled(cache: DynamicCache, rows: int) -> DynamicCache:
    for layer in range(3):
        cache.update(*states(rows, layer), layer)
    return cache


@pytest.fixture(params=[new_cache, DynamicCache], ids=["growing", "plain"])
def cache(request: pytest.FixtureRequest) -> DynamicCache:
    return filled(request.param(), 10)


def expect(cache: DynamicCache, rows: list[int]) -> None:
    for index, layer in enumerate(cache.layers):
        keys, values = states(10, index)
        assert torch.equal(layer.keys, keys[..., rows, :])
        assert torch.equal(layer.values, values[..., rows, :])


def test_crop_drops_the_last_tokens(cache: DynamicCache) -> None:
    crop(cache, 0)
    expect(cache, list(range(10)))
    crop(cache, 3)
    expect(cache, list(range(7)))
    assert held(cache) == cache.get_seq_length() == 7
    crop(cache, 7)
    assert held(cache) == 0


def test_crop_refuses_more_than_is_held(cache: DynamicCache) -> None:
    with pytest.raises(ValueError, match="cannot drop 11 tokens from a cache that holds 10"):
        crop(cache, 11)
    with pytest.raises(ValueError, match="cannot drop -1"):
        crop(cache, -1)


def test_crop_to_serves_layers_of_different_length(cache: DynamicCache) -> None:
    cache.update(*states(2), 0)
    assert held(cache) == 12
    crop_to(cache, 9)
    expect(cache, list(range(9)))


@pytest.mark.parametrize("rows", [[], [0], [1, 3], [0, 1, 2], [2, 5]])
def test_gather_keeps_a_path(cache: DynamicCache, rows: list[int]) -> None:
    gather(cache, 4, rows)
    expect(cache, [0, 1, 2, 3, *(4 + row for row in rows)])


def test_gather_refuses_rows_outside(cache: DynamicCache) -> None:
    with pytest.raises(ValueError, match=r"among the 6 tokens appended, got \[1, 6\]"):
        gather(cache, 4, [1, 6])


def test_an_empty_cache_can_be_cropped() -> None:
    cache = new_cache()
    crop_to(cache, 0)
    assert held(cache) == 0


def test_appending_after_a_crop_writes_over_what_was_dropped(cache: DynamicCache) -> None:
    crop(cache, 4)
    cache.update(*(part[..., 6:, :] for part in states(10, 0)), 0)
    crop_to(cache, 10)
    keys, _ = states(10, 0)
    assert torch.equal(cache.layers[0].keys, keys)


def test_growing_layers_grow_past_their_room_and_give_bitwise_the_same_logits() -> None:
    model = f.FAMILIES["llama"]()[0].model
    growing, plain = new_cache(), DynamicCache()
    ids = torch.arange(300)[None] * 7 % f.VOCAB
    with torch.inference_mode():
        for start, end in [(0, 40), (40, 41), (41, 46), (46, 150), (150, 300)]:
            ours = model(input_ids=ids[:, start:end], cache=growing).logits
            theirs = model(input_ids=ids[:, start:end], cache=plain).logits
            assert torch.equal(ours, theirs)
    assert all(type(layer) is GrowingLayer for layer in growing.layers)
    assert held(growing) == 300


def test_appending_to_a_growing_layer_does_not_move_what_it_holds() -> None:
    cache = filled(new_cache(), 10)
    before = cache.layers[0].keys.data_ptr()
    cache.update(*states(5), 0)
    assert cache.layers[0].keys.data_ptr() == before


def test_the_name_of_the_cache_argument() -> None:
    assert module.cache_argument(f.llama()) in ("cache", "past_key_values")
