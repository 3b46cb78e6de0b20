"""Models as people have them: rotary positions that change, windows nobody uses, wrapped models."""

from __future__ import annotations

import functools
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers as tf

import specviz as sv
from specviz.decoding.hf import selftest
from specviz.decoding.hf.cache import UnsupportedModelError
from specviz.decoding.hf.target import HFTarget
from specviz.models.model import as_model, steady_positions

PROMPT = list(range(10))


def tiny(
    seed: int = 0, cls: Any = tf.LlamaForCausalLM, conf: Any = tf.LlamaConfig, **kw: Any
) -> Any:
    """A two-layer model with scaled weights."""
    settings = {
        "vocab_size": 24, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 128,
        "bos_token_id": 1, "eos_token_id": None, "pad_token_id": None,
    } | kw  # fmt: skip
    torch.manual_seed(seed)
    model = cls(conf(**settings)).eval()
    with torch.no_grad():
        for weight in model.parameters():
            if weight.dim() > 1:
                weight.normal_(0, 1.6 / weight.shape[-1] ** 0.5)
        model.model.embed_tokens.weight.normal_()
        model.lm_head.weight.mul_(3 / model(torch.arange(12)[None]).logits.std())
    return model


def run(pair: Any, **options: Any) -> list[int]:
    settings = {"max_new_tokens": 40, "progress": False, **options}
    tokens: list[int] = sv.generate(pair, PROMPT, **settings).tokens.tolist()
    return tokens


# Rotary positions --------------------------------------------------------------------------------

ORIGINAL = 32
ROPES: dict[str, tuple[dict[str, Any], int]] = {
    "default": ({"rope_type": "default"}, 128),
    "linear": ({"rope_type": "linear", "factor": 4.0}, 128),
    "yarn": ({"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32}, 128),
    "llama3": (
        {
            "rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
            "original_max_position_embeddings": 32,
        },
        128,
    ),
    "dynamic": (
        # changes beyond max_position_embeddings itself, where the context ends anyway
        {"rope_type": "dynamic", "factor": 4.0, "original_max_position_embeddings": 32}, 128
    ),
    "longrope": (
        {
            "rope_type": "longrope", "factor": 4.0, "original_max_position_embeddings": 32,
            "short_factor": [1.0] * 4, "long_factor": [1.5, 2.0, 3.0, 4.0],
        },
        ORIGINAL,
    ),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:the text will end at 32 tokens")
@pytest.mark.parametrize("rope", ROPES)
def test_no_text_depends_on_how_it_was_cut_into_passes(rope: str) -> None:
    parameters, context = ROPES[rope]
    model = tiny(rope_parameters={"rope_theta": 1e4, **parameters})
    pair = sv.Pair(model, model)
    assert pair.target.context_length == context
    assert bool(pair.target.context_note) == (context < 128)
    length = min(40, context - len(PROMPT))
    plain = run(pair, gamma=0, temperature=0)
    assert len(plain) == length
    ids = torch.tensor([PROMPT])
    own = model.generate(
        ids,
        attention_mask=torch.ones_like(ids),
        max_new_tokens=length,
        do_sample=False,
        pad_token_id=0,
    )[0, len(PROMPT) :].tolist()
    assert own == plain, "transformers' greedy text, up to the switch"
    for drafter in (sv.DraftModel(4), sv.Tree((2, 2)), sv.EarlyExit(1)):
        assert run(pair, drafter=drafter, temperature=0) == plain
        assert run(pair, drafter=drafter, seed=1, verify="match") == run(pair, gamma=0, seed=1)
    if context < 128:
        with pytest.raises(ValueError, match="rotary positions change beyond 32 tokens"):
            sv.generate(pair, list(range(20)) * 2, max_new_tokens=2)


def test_a_text_that_must_end_early_says_so_once() -> None:
    model = tiny(rope_parameters={"rope_theta": 1e4, **ROPES["longrope"][0]})
    pair = sv.Pair(model, model)
    pair.target.name = "a model of this test"
    with pytest.warns(UserWarning, match="will end at 32 tokens.*rotary positions change"):
        trace = sv.generate(pair, PROMPT, max_new_tokens=60)
    assert len(PROMPT) + len(trace.tokens) == 32
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sv.generate(pair, PROMPT, max_new_tokens=60)  # once for each model


def test_twin_past_the_switch_the_passes_matter() -> None:
    """Without the limit the same model writes other texts: what was silently wrong."""
    model = tiny(rope_parameters={"rope_theta": 1e4, **ROPES["longrope"][0]})
    pair = sv.Pair(model, model)
    pair.target.context_length = pair.draft.context_length = 128
    different = [
        run(pair, verify="match", seed=seed) != run(pair, gamma=0, seed=seed) for seed in range(3)
    ]
    assert any(different)


def test_every_kind_of_rotary_position_is_covered() -> None:
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    assert {"default", *ROPE_INIT_FUNCTIONS} - {"proportional"} <= set(ROPES)


def test_rotary_positions_of_layer_types_are_asked_one_by_one() -> None:
    model = tiny(
        cls=tf.Gemma3ForCausalLM, conf=tf.Gemma3TextConfig, head_dim=8,
        layer_types=["sliding_attention", "full_attention"], sliding_window=16,
    )  # fmt: skip
    assert steady_positions(model, 128) is None


def test_rotary_positions_as_complex_numbers_are_asked_too() -> None:
    model = tf.Llama4ForCausalLM(
        tf.Llama4TextConfig(
            vocab_size=24, hidden_size=32, intermediate_size=48, intermediate_size_mlp=48,
            num_hidden_layers=1, num_attention_heads=4, num_key_value_heads=2, head_dim=8,
            num_local_experts=2, max_position_embeddings=128, pad_token_id=None,
        )
    )  # fmt: skip
    assert steady_positions(model, 128) is None
    assert as_model(model).context_length == 128


# Windows -----------------------------------------------------------------------------------------


def test_a_window_in_the_config_that_no_layer_uses_is_not_believed() -> None:
    target, draft = tiny(0), tiny(1)
    for model in (target, draft):
        model.config.sliding_window = 8
    pair = sv.Pair(target, draft)
    assert HFTarget(pair.target).kind.windows == {"full_attention": None}
    for drafter in (sv.DraftModel(4), sv.Tree((2, 2)), sv.EarlyExit(1)):
        for seed in range(2):
            same = run(pair, drafter=drafter, verify="match", seed=seed)
            assert same == run(pair, gamma=0, seed=seed)


@pytest.mark.parametrize("use", [True, False])
def test_a_window_counts_where_the_layers_use_it(use: bool) -> None:
    models = [
        tiny(
            seed, tf.Qwen2ForCausalLM, tf.Qwen2Config, use_sliding_window=use, sliding_window=8,
            max_window_layers=0,
        )
        for seed in (0, 1)
    ]  # fmt: skip
    pair = sv.Pair(*models)
    windows = HFTarget(pair.target).kind.windows
    assert windows == ({"sliding_attention": 8} if use else {"full_attention": None})
    assert models[0].config.sliding_window == (8 if use else None), "put back after the trial"
    for drafter in (sv.Tree((2, 2)), sv.EarlyExit(1)):
        same = run(pair, drafter=drafter, verify="match")
        assert same == run(pair, gamma=0), drafter


def test_a_window_that_layers_hold_and_do_not_use_hides_nothing() -> None:
    config = tf.MoshiConfig(
        vocab_size=24, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, ffn_dim=64,
        num_key_value_heads=4, max_position_embeddings=128, sliding_window=8, head_dim=8,
    )  # fmt: skip
    torch.manual_seed(0)
    model = tf.MoshiForCausalLM(config)
    for weight in model.parameters():
        if weight.dim() > 1:
            torch.nn.init.normal_(weight, 0, 1.6 / weight.shape[-1] ** 0.5)
    pair = sv.Pair(model, model)
    for seed in range(2):
        tree = run(pair, drafter=sv.Tree((2, 2)), verify="match", seed=seed)
        assert tree == run(pair, gamma=0, seed=seed)


class Windowed(tf.LlamaForCausalLM):  # type: ignore[misc]
    """Layers that look back a few tokens only, which no config says."""

    def __init__(self, config: Any) -> None:
        config._attn_implementation = "eager"  # then each layer is given a mask
        super().__init__(config)
        for layer in self.model.layers:
            layer.self_attn.window_size = 9  # longer than the trial
            layer.self_attn.forward = self._narrowed(layer.self_attn, layer.self_attn.forward)

    @staticmethod
    def _narrowed(attention: Any, forward: Any) -> Any:
        def narrowed(*args: Any, attention_mask: torch.Tensor, **kwargs: Any) -> Any:
            n, total = attention_mask.shape[-2:]
            far = torch.ones(n, total).tril(total - n - attention.window_size).bool()
            least = torch.finfo(attention_mask.dtype).min
            return forward(*args, attention_mask=attention_mask.masked_fill(far, least), **kwargs)

        return narrowed


@pytest.mark.parametrize(("stated", "why"), [(None, "look back 9 tokens"), (9, "in the self-test")])
def test_a_window_that_only_the_layers_know_is_found(stated: int | None, why: str) -> None:
    models = [tiny(seed, Windowed) for seed in (0, 1)]
    for model in models:
        model.config.sliding_window = stated
    pair = sv.Pair(*models)
    assert HFTarget(pair.target).kind.can_crop
    assert run(pair, gamma=4, verify="match") == run(pair, gamma=0), "chains are right"
    for drafter in (sv.Tree((2, 2)), sv.EarlyExit(1)):
        with pytest.raises(UnsupportedModelError, match=why):
            run(pair, drafter=drafter)
    assert models[0].model.layers[0].self_attn.window_size == 9, "put back after the trial"


def test_twin_a_window_that_is_not_found_makes_another_text(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(selftest, "_hidden_window", lambda target, stated: "")
    pair = sv.Pair(tiny(0, Windowed), tiny(1, Windowed))
    different = [
        run(pair, drafter=sv.Tree((2, 2)), verify="match", seed=seed)
        != run(pair, gamma=0, seed=seed)
        for seed in range(3)
    ]
    assert any(different)


# Checkpoints and wrappers ------------------------------------------------------------------------


def test_half_of_an_encoder_decoder_is_no_target(tmp_path: Path) -> None:
    settings = {
        "vocab_size": 24, "d_model": 16, "encoder_layers": 1, "decoder_layers": 1,
        "encoder_attention_heads": 2, "decoder_attention_heads": 2, "encoder_ffn_dim": 16,
        "decoder_ffn_dim": 16, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
        "decoder_start_token_id": 1,
    }  # fmt: skip
    whisper = tf.WhisperForConditionalGeneration(
        tf.WhisperConfig(**settings, max_target_positions=16, num_mel_bins=8)
    )
    bart = tf.BartForConditionalGeneration(tf.BartConfig(**settings, max_position_embeddings=16))
    for name, model in (("whisper", whisper), ("bart", bart)):
        model.save_pretrained(tmp_path / name)
        with pytest.raises(ValueError, match=f"{name}' is an encoder-decoder, not a causal"):
            sv.load(tmp_path / name)
        with pytest.raises(TypeError, match="encoder-decoder"):
            sv.Pair(target=model)
        # A config.json that does not say which model it was: the encoder's weights do.
        for architectures in (None, [f"{name.capitalize()}ForCausalLM"]):
            config = json.loads((tmp_path / name / "config.json").read_text("utf-8"))
            config["architectures"] = architectures
            (tmp_path / name / "config.json").write_text(json.dumps(config), "utf-8")
            with pytest.raises(ValueError, match=f"{name}' is an encoder-decoder, not a causal"):
                sv.load(tmp_path / name)


def test_a_decoder_without_an_encoder_is_a_target(tmp_path: Path) -> None:
    decoder = tf.BartForCausalLM(
        tf.BartConfig(
            vocab_size=24, d_model=16, decoder_layers=1, decoder_attention_heads=2,
            decoder_ffn_dim=16, max_position_embeddings=16, is_encoder_decoder=False,
        )
    )  # fmt: skip
    decoder.save_pretrained(tmp_path)
    assert sv.load(tmp_path).target.kind == "bart"


def test_a_replaced_forward_is_named_and_the_model_type_not_blamed() -> None:
    model = tiny()
    own = model.forward
    model.forward = lambda *args, **kwargs: own(*args, **kwargs)
    with pytest.raises(ValueError, match=r"forward was replaced .* functools\.wraps") as refused:
        sv.generate(sv.Pair(model, tiny()), PROMPT, max_new_tokens=2)
    assert "Llama, Qwen" not in str(refused.value)
    model.forward = functools.wraps(own)(model.forward)  # what the sentence says works
    assert len(sv.generate(sv.Pair(model, tiny()), PROMPT, max_new_tokens=2).tokens) == 2


def test_a_compiled_model_is_the_model_inside() -> None:
    model = tiny()
    assert as_model(torch.compile(model, backend="eager")).model is model


class Peft(torch.nn.Module):
    """As peft wraps a model: adapters are in its layers, the config on the outside."""

    def __init__(self, model: Any, prompt_learning: bool) -> None:
        super().__init__()
        self.inner, self.config = model, model.config
        kind = type("LoraConfig", (), {"is_prompt_learning": prompt_learning})
        self.peft_config = {"default": kind()}

    def get_base_model(self) -> Any:
        return self.inner


def test_a_peft_model_is_the_model_with_its_adapters_or_refused_by_its_own_name() -> None:
    model = tiny()
    assert as_model(torch.compile(Peft(model, False), backend="eager")).model is model
    with pytest.raises(TypeError, match="target is a peft model with learned prompt tokens"):
        sv.Pair(target=Peft(model, True))


def test_an_offloaded_model_is_fed_where_it_runs() -> None:
    accelerate = pytest.importorskip("accelerate")
    plain = tiny()
    wanted = run(sv.Pair(plain, plain), temperature=0)
    offloaded = tiny()
    accelerate.cpu_offload(offloaded, execution_device=torch.device("cpu"))
    assert offloaded.device.type == "meta"
    pair = sv.Pair(offloaded, offloaded)
    assert run(pair, temperature=0) == wanted
    assert np.isfinite(sv.generate(pair, PROMPT, gamma=2, max_new_tokens=4).rounds[0].nodes[0].p)
