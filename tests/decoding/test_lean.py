"""The lean forward pass says what the model's own says; where it might not, it is not used."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
import transformers as tf

import specviz as sv
from specviz.core.contract import Draft
from specviz.decoding.hf import lean as module
from specviz.decoding.hf import selftest
from specviz.decoding.hf.cache import held
from specviz.decoding.hf.lean import LLAMA_LIKE, lean_of, why_not_lean
from specviz.decoding.hf.target import HFTarget
from specviz.models.model import Model, as_model
from tests.decoding import families as f


def qwen3(**changes: object) -> Any:
    sizes: Any = {**f._LLAMA_LIKE, "head_dim": 16, **changes}
    return tf.Qwen3ForCausalLM(tf.Qwen3Config(**sizes))


ROPES = {
    "linear": {"rope_type": "linear", "factor": 2.0, "rope_theta": 1e4},
    "llama3": {
        "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 64, "rope_theta": 1e4,
    },
    "yarn": {"rope_type": "yarn", "factor": 4.0, "rope_theta": 1e4},
}  # fmt: skip

SHAPES: dict[str, Callable[[], Any]] = {
    "grouped heads": f.llama,
    "one key head": partial(f.llama, num_key_value_heads=1),
    "every head its own": partial(f.llama, num_key_value_heads=4),
    "tied": partial(f.llama, tie_word_embeddings=True),
    "biases": partial(f.llama, attention_bias=True, mlp_bias=True),
    "odd sizes": partial(f.llama, hidden_size=24, intermediate_size=40, head_dim=6),
    "qwen2": f.qwen2,
    "qwen2, windows in some layers": f.qwen2_mixed,
    "qwen3": qwen3,
    "qwen3, windows": partial(
        qwen3, use_sliding_window=True, sliding_window=f.WINDOW, max_window_layers=1
    ),
    "mistral, windows": f.mistral,
    "mistral": partial(f.mistral, sliding_window=None),
    **{f"{name} rope": partial(f.llama, rope_parameters=rope) for name, rope in ROPES.items()},
}


def of(build: Callable[[], Any]) -> Model:
    return f.make(build)[0]


def compared(one: HFTarget, other: HFTarget, seed: int, shapes: str, atol: float = 1e-4) -> None:
    """Rounds of random chains (c), trees (t) and nothing (0), and random acceptance, in both."""
    rng = np.random.default_rng(seed)
    length = int(rng.integers(1, 90))
    text = rng.integers(0, f.VOCAB, length)
    for shape in shapes:
        n = 0 if shape == "0" else int(rng.integers(1, 12))
        parent = [int(rng.integers(-1, i)) if shape == "t" else i - 1 for i in range(n)]
        draft = f.tree(rng.integers(0, f.VOCAB, n).tolist(), parent)
        rows = [each.verify(text[each.length :], draft) for each in (one, other)]
        np.testing.assert_allclose(rows[0], rows[1], atol=atol, rtol=0)
        path = draft.path(int(rng.integers(-1, n)))
        for each in (one, other):
            each.keep(path)
            assert each.length == held(each.cache) == len(text) + len(path)
        if one.features is not None and other.features is not None:
            torch.testing.assert_close(one.features, other.features, atol=atol, rtol=0)
        text = np.concatenate([text, draft.tokens[path], rng.integers(0, f.VOCAB, 1)])


@pytest.mark.parametrize("shape", SHAPES)
def test_the_same_logits_and_states(shape: str) -> None:
    model = of(SHAPES[shape])
    lean, readable = HFTarget(model), HFTarget(model, fast=False)
    assert lean.lean is not None and readable.lean is None
    for seed in range(2):
        for session in (lean, readable):
            session.begin()
            session.capture([1, 2] if seed else [])
        compared(lean, readable, seed, "ct0c")


@pytest.mark.parametrize(
    ("dtype", "atol"), [(torch.float64, 1e-9), (torch.bfloat16, 0.5), (torch.float16, 0.05)]
)
def test_other_precisions(dtype: torch.dtype, atol: float) -> None:
    model = as_model(of(qwen3).model.to(dtype))
    lean = HFTarget(model)
    assert lean.lean is not None
    compared(lean, HFTarget(model, fast=False), 0, "ctc", atol)


def test_long_prompts_take_the_fused_attention() -> None:
    model = of(f.mistral)
    text = np.random.default_rng(0).integers(0, f.VOCAB, 200)
    none = Draft.empty(f.VOCAB)
    rows = [HFTarget(model, fast=fast).verify(text, none) for fast in (True, False)]
    np.testing.assert_allclose(rows[0], rows[1], atol=1e-4, rtol=0)


# Packed weights ---------------------------------------------------------------------------------


def test_half_precision_is_taken_only_where_it_holds_the_same_numbers() -> None:
    model = of(f.llama)
    assert all(layer.qkv.half is None for layer in lean_of(model.model).layers)  # type: ignore[union-attr]
    stored = copy.deepcopy(model.model).half().float()  # as a checkpoint in float16 is loaded
    compared(HFTarget(as_model(stored)), HFTarget(as_model(stored), fast=False), 1, "ct0c")


def test_oneDNN_blocks_say_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WORTH_BLOCKS", 0)
    model = of(partial(f.llama, attention_bias=True))
    compared(HFTarget(model), HFTarget(model, fast=False), 2, "ct0c")


def test_without_a_second_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PACKED_BYTES", 0)
    model = of(f.llama)
    attention = model.model.model.layers[0].self_attn
    lean = HFTarget(model)
    compared(lean, HFTarget(model, fast=False), 3, "ct0c")
    assert lean.lean is not None
    whole = lean.lean.layers[0].qkv.weight
    assert whole is not None
    shared = whole.untyped_storage().data_ptr()
    parts = (attention.q_proj, attention.k_proj, attention.v_proj)
    assert {part.weight.untyped_storage().data_ptr() for part in parts} == {shared}


def test_the_model_still_saves_and_loads(tmp_path: Any) -> None:
    model = of(f.qwen2)
    before = {name: value.clone() for name, value in model.model.state_dict().items()}
    HFTarget(model)
    model.model.save_pretrained(tmp_path)
    again = tf.AutoModelForCausalLM.from_pretrained(tmp_path).state_dict()
    assert all(torch.equal(again[name], value) for name, value in before.items())


def _rows(model: Any) -> None:
    model.model.layers[1].mlp.down_proj.weight.data[3:9].fill_(0.3)


def _columns(model: Any) -> None:
    model.model.layers[0].self_attn.o_proj.weight.data[:, 1:].mul_(-1)


def _numpy(model: Any) -> None:
    model.lm_head.weight.detach().numpy()[5:9, 1:] = 0.5


def _reversed_gain(model: Any) -> None:
    gain = model.model.layers[0].input_layernorm.weight
    gain.data.copy_(torch.linspace(0.5, 1.5, len(gain)))


def _frequencies(model: Any) -> None:
    model.model.rotary_emb.inv_freq.mul_(0.2)


def _scaling(model: Any) -> None:
    model.model.layers[1].self_attn.scaling = 0.01


def _epsilon(model: Any) -> None:
    model.model.layers[1].input_layernorm.variance_epsilon = 5.0


WRITES = (_rows, _columns, _numpy, _reversed_gain, _frequencies, _scaling, _epsilon)


@pytest.mark.parametrize("write", WRITES)
def test_nothing_that_was_copied_goes_stale(write: Any) -> None:
    """No version counter counts these; the next session sees them all the same."""
    stored = as_model(copy.deepcopy(of(f.llama).model).half().float())
    text, none = np.arange(1, 9), Draft.empty(f.VOCAB)
    first = HFTarget(stored)
    assert first.lean is not None
    before = np.asarray(first.verify(text, none))
    write(stored.model)
    after = np.asarray(HFTarget(stored).verify(text, none))
    readable = np.asarray(HFTarget(stored, fast=False).verify(text, none))
    np.testing.assert_allclose(after, readable, atol=1e-4, rtol=0)
    assert not np.allclose(before, after, atol=1e-3, rtol=0)  # it mattered


@pytest.mark.parametrize("how", ["in place", "through data", "another tensor", "loaded", "gain"])
def test_weights_that_change_are_seen(how: str) -> None:
    model = of(f.llama)
    stored = as_model(copy.deepcopy(model.model).half().float())
    HFTarget(stored)
    projection = stored.model.model.layers[1].mlp.down_proj
    with torch.no_grad():
        if how == "in place":
            projection.weight.mul_(1.5)
        elif how == "through data":
            projection.weight.data.mul_(1.5)
        elif how == "gain":
            stored.model.model.norm.weight.data.mul_(1.5)
        elif how == "another tensor":
            projection.weight = torch.nn.Parameter(1.5 * projection.weight)
        else:
            state = {k: 1.25 * v for k, v in stored.model.state_dict().items()}
            stored.model.load_state_dict(state)
    session = HFTarget(stored)
    assert session.lean is not None
    compared(session, HFTarget(stored, fast=False), 4, "cc")


# Where it is not used ---------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["gpt2", "gemma2", "phi", "opt"])
def test_other_families_are_read_by_their_own_forward(family: str) -> None:
    model = f.FAMILIES[family]()[0]
    assert "not one of the families" in why_not_lean(model.model)
    assert HFTarget(model).lean is None


def changed(how: str) -> Any:
    model = of(f.llama).model
    attention = model.model.layers[1].self_attn
    if how == "hook":
        attention.register_forward_hook(lambda *_: None)
    elif how == "forward":
        attention.forward = attention.forward
    elif how == "layer":
        attention.q_proj = torch.nn.Sequential(attention.q_proj)
        attention.q_proj[0] = type("Adapter", (torch.nn.Linear,), {})(32, 32, bias=False)
    elif how == "subclass":
        model.__class__ = type("LlamaForCausalLM", (type(model),), {})
    elif how == "rope":
        model.model.rotary_emb.rope_type = "dynamic"
    elif how == "attention":
        model.config._attn_implementation = "flex_attention"
    elif how == "precision":
        attention.o_proj.to(torch.float64)
    return model


@pytest.mark.parametrize(
    "how", ["hook", "forward", "layer", "subclass", "rope", "attention", "precision"]
)
def test_a_model_that_was_changed_is_not_lean(how: str) -> None:
    assert why_not_lean(of(f.llama).model) == ""
    assert lean_of(changed(how)) is None


def test_what_is_hooked_after_the_first_session_is_seen_by_the_next() -> None:
    model = of(f.llama)
    assert HFTarget(model).lean is not None
    for part in (model.model.model.layers[0].mlp, model.model.model.rotary_emb, model.model):
        hook = part.register_forward_hook(lambda *_: None)
        assert HFTarget(model).lean is None
        hook.remove()
        assert HFTarget(model).lean is not None


@pytest.mark.parametrize("fault", ["no rotation", "another scale", "no future", "gain left out"])
def test_twin_a_lean_pass_that_is_wrong_is_not_used(
    fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = module.LeanModel.__init__

    def wrong(self: module.LeanModel, model: Any) -> None:
        right(self, model)
        if fault == "no rotation":
            self.sin = torch.zeros_like(self.sin)
        elif fault == "another scale":
            self.scale *= 1.01
        elif fault == "no future":
            self.future = torch.zeros_like(self.future)
        else:
            self.norm.scaled_gain = torch.ones_like(self.norm.scaled_gain)

    monkeypatch.setattr(module.LeanModel, "__init__", wrong)
    model = of(f.llama)
    session = HFTarget(model)
    assert session.lean is None and session.kind.can_crop
    compared(session, HFTarget(model, fast=False), 5, "ct")


def test_twin_without_the_comparison_it_would_be(monkeypatch: pytest.MonkeyPatch) -> None:
    right = module.LeanModel.__init__

    def wrong(self: module.LeanModel, model: Any) -> None:
        right(self, model)
        self.scale *= 1.01

    monkeypatch.setattr(module.LeanModel, "__init__", wrong)
    monkeypatch.setitem(selftest.EQUAL, torch.float32, 1.0)
    model = of(f.llama)
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        compared(HFTarget(model), HFTarget(model, fast=False), 5, "ct")


def test_the_families_are_those_of_transformers() -> None:
    for family in LLAMA_LIKE:
        assert hasattr(tf, f"{family}ForCausalLM")


@pytest.mark.parametrize("before", [0, 6])
def test_an_interrupt_leaves_the_cache_as_it_was(
    before: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = of(f.llama)
    target, text = HFTarget(model), np.arange(1, 9)
    assert target.lean is not None
    if before:
        target.verify(text[:before], Draft.empty(f.VOCAB))

    def stop(x: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as planted, pytest.raises(KeyboardInterrupt):
        planted.setattr(target.lean.layers[1], "down", stop)  # both layers hold the new tokens
        target.verify(text[before:], Draft.chain([3, 4], None, f.VOCAB))
    assert target.length == held(target.cache) == before
    logits = target.verify(text[before:], Draft.empty(f.VOCAB))
    np.testing.assert_allclose(logits[0], f.plain(model, text.tolist()), atol=1e-4)


# Whole runs -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "drafter",
    [
        sv.DraftModel(4),
        sv.EarlyExit(1, 3),
        sv.Tree((2, 2, 1)),
        sv.PromptLookup(3),
    ],
    ids=lambda drafter: drafter.name,
)
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_the_same_run(drafter: Any, temperature: float) -> None:
    target, draft = f.FAMILIES["llama"]()
    pair = sv.Pair(target=target, draft=draft)
    runs = [
        sv.generate(
            pair, [1, 2, 3], drafter=drafter, temperature=temperature, max_new_tokens=40, seed=5,
            repetition_penalty=1.2, fast=fast, progress=False,
        )
        for fast in (True, False)
    ]  # fmt: skip
    assert runs[0].tokens.tolist() == runs[1].tokens.tolist()
    assert [len(run) for run in runs] == [len(runs[0])] * 2
    for name in ("token", "parent", "verdict"):
        assert np.array_equal(runs[0].node_table[name], runs[1].node_table[name])
    assert runs[0].settings["forward"]["target"] == "lean"
    assert runs[1].settings["forward"]["target"] == "transformers"
