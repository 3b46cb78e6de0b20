"""Tiny random models of many families, strong enough to be witnesses.

A freshly initialised model has a nearly uniform distribution that hardly depends on context:
planted faults would pass. So weights are drawn large, logits are scaled to a spread of about 3,
and the draft is the target with noise on every weight. :func:`witness` says how strong a pair is.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import torch
import transformers as tf
from numpy.typing import NDArray
from transformers import PreTrainedModel

from specviz.core.contract import Draft, IntArray, Sampling
from specviz.decoding.hf.target import HFTarget
from specviz.decoding.sampling import logits_to_distributions
from specviz.models.model import Model, as_model

VOCAB = 96
CONTEXT = 512
WINDOW = 8
SPREAD = 3.0
NOISE = 0.1

Pair = tuple[Model, Model]

_COMMON = {"vocab_size": VOCAB, "bos_token_id": 1, "eos_token_id": None, "pad_token_id": None}
_LLAMA_LIKE = {
    **_COMMON,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": CONTEXT,
    "tie_word_embeddings": False,
}


def llama(**changes: object) -> PreTrainedModel:
    return tf.LlamaForCausalLM(tf.LlamaConfig(**{**_LLAMA_LIKE, **changes}))


def qwen2() -> PreTrainedModel:
    return tf.Qwen2ForCausalLM(tf.Qwen2Config(**_LLAMA_LIKE))


def qwen2_mixed() -> PreTrainedModel:
    config = {**_LLAMA_LIKE, "use_sliding_window": True, "sliding_window": WINDOW}
    return tf.Qwen2ForCausalLM(tf.Qwen2Config(**config, max_window_layers=1))


def mistral(**changes: object) -> PreTrainedModel:
    config = tf.MistralConfig(**{**_LLAMA_LIKE, "sliding_window": WINDOW, **changes})
    return tf.MistralForCausalLM(config)


def gemma2(**changes: object) -> PreTrainedModel:
    sizes = {"head_dim": 8, "sliding_window": WINDOW, "query_pre_attn_scalar": 8}
    config = {**_LLAMA_LIKE, **sizes, **changes}
    return tf.Gemma2ForCausalLM(
        tf.Gemma2Config(**config, final_logit_softcapping=10.0, attn_logit_softcapping=5.0)
    )


def phi() -> PreTrainedModel:
    return tf.PhiForCausalLM(tf.PhiConfig(**{**_LLAMA_LIKE, "num_key_value_heads": 4}))


def gpt_neox() -> PreTrainedModel:
    config = {k: v for k, v in _LLAMA_LIKE.items() if k != "num_key_value_heads"}
    return tf.GPTNeoXForCausalLM(tf.GPTNeoXConfig(**config))


def gpt2() -> PreTrainedModel:
    sizes = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": CONTEXT}
    return tf.GPT2LMHeadModel(tf.GPT2Config(**_COMMON, **sizes, tie_word_embeddings=False))


def opt() -> PreTrainedModel:
    sizes = {"hidden_size": 32, "ffn_dim": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
    config = tf.OPTConfig(
        **_COMMON,
        **sizes,
        word_embed_proj_dim=32,
        max_position_embeddings=CONTEXT,
        tie_word_embeddings=False,
    )
    return tf.OPTForCausalLM(config)


def bloom() -> PreTrainedModel:
    sizes = {"hidden_size": 32, "n_layer": 2, "n_head": 4}
    return tf.BloomForCausalLM(tf.BloomConfig(**_COMMON, **sizes, tie_word_embeddings=False))


def mpt() -> PreTrainedModel:
    sizes = {"d_model": 32, "n_layers": 2, "n_heads": 4, "max_seq_len": CONTEXT}
    return tf.MptForCausalLM(tf.MptConfig(**_COMMON, **sizes, tie_word_embeddings=False))


def falcon_alibi() -> PreTrainedModel:
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "alibi": True}
    return tf.FalconForCausalLM(tf.FalconConfig(**_COMMON, **sizes, tie_word_embeddings=False))


def _spread_out(model: PreTrainedModel, generator: torch.Generator) -> None:
    """Draw large weights, then scale the head until the logits spread by about SPREAD."""
    head = model.get_output_embeddings().weight
    embeddings = {id(m.weight) for m in model.modules() if isinstance(m, torch.nn.Embedding)}
    with torch.no_grad():
        for weight in model.parameters():
            if weight.dim() >= 2:
                std = 1.0 if id(weight) in embeddings else 1.6 / weight.shape[-1] ** 0.5
                weight.normal_(0.0, std, generator=generator)
        for weight in model.parameters():
            if weight.dim() == 1:
                weight.add_(0.1 * torch.randn(weight.shape, generator=generator))
        ids = torch.randint(VOCAB, (4, 16), generator=generator)
        head.mul_(SPREAD / model(input_ids=ids).logits.std(-1).mean())


def _with_noise(model: PreTrainedModel, generator: torch.Generator) -> PreTrainedModel:
    draft = copy.deepcopy(model)
    with torch.no_grad():
        for weight in draft.parameters():
            scale = NOISE * weight.std() if weight.numel() > 1 else 0.0
            weight.add_(scale * torch.randn(weight.shape, generator=generator))
    return draft


def make(build: Callable[[], PreTrainedModel], seed: int = 0) -> Pair:
    """Return (target, draft) of one family; seeds are chosen so that the pair is a witness."""
    generator = torch.Generator().manual_seed(seed)
    model = build().eval()
    _spread_out(model, generator)
    draft = _with_noise(model, generator)
    return as_model(model, "target"), as_model(draft, "draft")


def tree(tokens: Sequence[int], parent: Sequence[int]) -> Draft:
    """Return a draft of deterministic choices."""
    n = len(tokens)
    ids, above = np.array(tokens, dtype=np.int64), np.array(parent, dtype=np.int64)
    return Draft(ids, above, np.zeros((0, VOCAB)), np.full(n, -1))


@torch.inference_mode()
def plain(model: Model, ids: Sequence[int]) -> NDArray[np.float32]:
    """Return the logits after ``ids``, ``(vocab,)``: no cache, no mask, none of our code."""
    rows = model.model(input_ids=torch.tensor([[int(i) for i in ids]]), use_cache=False).logits
    return rows[0, -1].float().numpy()


FAMILIES: dict[str, Callable[[], Pair]] = {
    "llama": partial(make, llama),
    "llama-eager": partial(make, partial(llama, attn_implementation="eager")),
    "gpt2": partial(make, gpt2, seed=1),
    "gpt_neox": partial(make, gpt_neox, seed=1),
    "qwen2": partial(make, qwen2, seed=1),
    "qwen2-mixed": partial(make, qwen2_mixed),
    "gemma2": partial(make, gemma2),
    "mistral": partial(make, mistral),
    "mistral-eager": partial(make, partial(mistral, attn_implementation="eager")),
    "opt": partial(make, opt),
    "phi": partial(make, phi),
}
"""Families that do chains and trees; each value builds (target, draft)."""

CHAINS_ONLY: dict[str, Callable[[], Pair]] = {
    "bloom": partial(make, bloom, seed=5),
    "mpt": partial(make, mpt, seed=2),
    "falcon": partial(make, falcon_alibi, seed=15),
}
"""Families with ALiBi."""


def witness(target: Model, draft: Model, steps: int = 80) -> tuple[float, int]:
    """Return (mean TV(p, q), distinct tokens) over a greedy continuation of the target."""
    text: IntArray = np.array([1, 2, 3])
    p_session, q_session = HFTarget(target), HFTarget(draft)
    distances = []
    none = Draft.empty(VOCAB)
    for _ in range(steps):
        p = logits_to_distributions(p_session.verify(text[p_session.length :], none), Sampling())[0]
        q = logits_to_distributions(q_session.verify(text[q_session.length :], none), Sampling())[0]
        distances.append(0.5 * np.abs(p - q).sum())
        text = np.append(text, p.argmax())
    return float(np.mean(distances)), len(set(text[3:].tolist()))
