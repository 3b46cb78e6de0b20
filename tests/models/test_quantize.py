"""Rounded weights: on the grid, near the original, the original untouched."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from specviz.models.model import Model, as_model
from specviz.models.quantize import LARGE, IntegerLinear, quantize, rounded
from tests.decoding import families as f
from tests.models.tiny import gpt2, llama

IDS = torch.tensor([[1, 5, 9, 3, 8, 4, 2, 7]])


@pytest.fixture(scope="module")
def model() -> Model:
    return f.FAMILIES["llama"]()[0]


def logits(model: Model) -> torch.Tensor:
    with torch.inference_mode():
        return model.model(input_ids=IDS, use_cache=False).logits[0]


def distance(a: Model, b: Model) -> float:
    """Mean total variation of the next-token distributions."""
    p, q = (torch.softmax(logits(m).double(), -1) for m in (a, b))
    return float(0.5 * (p - q).abs().sum(-1).mean())


def integers(model: Model) -> list[str]:
    return [n for n, m in model.model.named_modules() if isinstance(m, IntegerLinear)]


# The grid ---------------------------------------------------------------------------------------

rows = hnp.arrays(
    np.float32,
    st.tuples(st.integers(1, 5), st.integers(1, 9)),
    elements=st.floats(-100, 100, width=32, allow_subnormal=False),
)


@given(weight=rows, bits=st.sampled_from([2, 4, 8]))
def test_each_weight_goes_to_the_nearest_point_of_its_rows_grid(
    weight: np.ndarray, bits: int
) -> None:
    codes, scale = rounded(torch.from_numpy(weight), bits)
    most = 2 ** (bits - 1) - 1
    assert codes.dtype == torch.int8 and codes.abs().max() <= most
    back = codes.double() * scale.double()[:, None]
    step = scale.double()[:, None]
    assert ((back - torch.from_numpy(weight).double()).abs() <= 0.5001 * step).all()
    for row, code in zip(weight, codes, strict=True):
        if np.abs(row).max() > 0:
            assert code.abs().max() == most, "the largest weight is at the end of the grid"


def test_rounding_twice_changes_nothing() -> None:
    codes, scale = rounded(torch.randn(4, 6, generator=torch.Generator().manual_seed(0)), 4)
    again, same = rounded(codes * scale[:, None], 4)
    assert torch.equal(again, codes)
    torch.testing.assert_close(same, scale)


def test_the_integer_product_is_that_of_the_rounded_numbers() -> None:
    generator = torch.Generator().manual_seed(0)
    weight, bias = torch.randn(24, 40, generator=generator), torch.randn(24, generator=generator)
    x = torch.randn(2, 3, 40, generator=generator)
    codes, scale = rounded(weight, 8)
    x_codes, x_scale = rounded(x.reshape(6, 40), 8)
    exact = (x_codes.double() * x_scale[:, None]) @ (codes.double() * scale[:, None]).t() + bias
    out = IntegerLinear(codes, scale, bias)(x)
    torch.testing.assert_close(out.double().reshape(6, 24), exact, atol=1e-4, rtol=1e-5)
    assert (out - torch.nn.functional.linear(x, weight, bias)).abs().max() < 0.3


def test_a_tokens_result_does_not_depend_on_its_batch() -> None:
    generator = torch.Generator().manual_seed(1)
    codes, scale = rounded(torch.randn(16, 32, generator=generator), 8)
    layer, x = IntegerLinear(codes, scale), torch.randn(7, 32, generator=generator)
    x[3] *= 100
    assert torch.equal(layer(x), torch.cat([layer(row[None]) for row in x]))


def test_zeros() -> None:
    layer = IntegerLinear(*rounded(torch.zeros(3, 8), 8))
    assert torch.equal(layer(torch.zeros(2, 8)), torch.zeros(2, 3))


# Models -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["auto", "integer", "float"])
def test_the_original_is_untouched(model: Model, kernel: str) -> None:
    before = {n: w.clone() for n, w in model.model.state_dict().items()}
    config, rows = model.model.config.to_dict(), logits(model)
    quantize(model, 4, embeddings=True, kernel=kernel)
    after = model.model.state_dict()
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert model.model.config.to_dict() == config and torch.equal(logits(model), rows)


@pytest.mark.parametrize("kernel", ["integer", "float"])
def test_fewer_bits_are_further_off(model: Model, kernel: str) -> None:
    off = [distance(quantize(model, bits, kernel=kernel), model) for bits in (8, 4, 2)]
    assert 0 < off[0] < 0.05 < off[1] < off[2]


def test_integer_codes_and_floats_on_the_grid_agree(model: Model) -> None:
    """They differ by the rounding of activations only."""
    assert distance(quantize(model, kernel="integer"), quantize(model, kernel="float")) < 0.05


def test_every_weight_is_on_the_grid(model: Model) -> None:
    small = quantize(model, 2, kernel="float")
    for name, layer in small.model.named_modules():
        if isinstance(layer, torch.nn.Linear):
            levels = [len(row.unique()) for row in layer.weight]
            assert max(levels) <= 3, name


@pytest.mark.parametrize("head", [True, False])
def test_head_and_embeddings_by_choice(model: Model, head: bool) -> None:
    small = quantize(model, 2, head=head, embeddings=not head, kernel="float").model
    same_head = torch.equal(small.lm_head.weight, model.model.lm_head.weight)
    same_table = torch.equal(small.model.embed_tokens.weight, model.model.model.embed_tokens.weight)
    assert (same_head, same_table) == (not head, head)


@pytest.mark.parametrize("kernel", ["integer", "float"])
def test_tied_embeddings_stay_as_they_are(kernel: str) -> None:
    tied = as_model(llama(16, tie_word_embeddings=True), "tied")
    assert tied.model.lm_head.weight is tied.model.model.embed_tokens.weight
    table = tied.model.model.embed_tokens.weight.clone()
    small = quantize(tied, 4, kernel=kernel)
    assert torch.equal(small.model.model.embed_tokens.weight, table)
    assert small.model.lm_head.weight is not small.model.model.embed_tokens.weight
    assert not small.model.config.tie_word_embeddings
    both = quantize(tied, 4, embeddings=True, kernel="float")
    assert both.model.lm_head.weight is both.model.model.embed_tokens.weight
    neither = quantize(tied, 4, head=False, kernel="float")
    assert torch.equal(neither.model.lm_head.weight, table)


@pytest.mark.parametrize("kernel", ["integer", "float"])
def test_transposed_layers(kernel: str) -> None:
    """GPT-2 keeps its weights as (in, out): one scale for each output all the same."""
    model = as_model(gpt2(), "gpt2")
    small = quantize(model, 8, kernel=kernel)
    assert 0 < distance(small, model) < 0.02
    if kernel == "float":
        wide = quantize(model, 2, kernel="float").model.transformer.h[0].mlp.c_fc.weight
        assert max(len(column.unique()) for column in wide.t()) <= 3


def test_auto_takes_whole_numbers_for_large_layers_only() -> None:
    big = as_model(llama(LARGE // 8), "big")  # hidden size 8: only the head is large
    assert integers(quantize(big)) == ["lm_head"]
    assert integers(quantize(big, head=False)) == []
    assert len(integers(quantize(big, kernel="integer"))) == 8


def test_what_is_said_of_the_copy(model: Model) -> None:
    small = quantize(model, kernel="integer")
    assert small.name == "target int8"
    assert (small.vocab_size, small.context_length) == (model.vocab_size, model.context_length)
    assert small.parameters >= model.parameters, "codes count, and so do scales"
    assert small.dtype == "float32" and not small.model.training
    assert "int8" in repr(small.model.lm_head)
    bytes_of = [sum(p.numel() * p.element_size() for p in m.model.parameters())
                for m in (small, model)]  # fmt: skip
    assert bytes_of[0] < 0.6 * bytes_of[1]


def test_half_precision_keeps_its_dtype(model: Model) -> None:
    half = as_model(copy.deepcopy(model.model).to(torch.bfloat16), "half")
    for kernel in ("integer", "float"):
        small = quantize(half, kernel=kernel)
        assert logits(small).dtype == torch.bfloat16
        assert distance(small, half) < 0.1


# Refused ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("bits", [1, 3, 16, 0, True, "8", None])
def test_other_bits(model: Model, bits: Any) -> None:
    with pytest.raises(ValueError, match="bits must be 8, 4 or 2, got"):
        quantize(model, bits)


def test_other_kernels_and_models(model: Model) -> None:
    with pytest.raises(ValueError, match="kernel must be 'auto', 'integer' or 'float', got 'fast'"):
        quantize(model, kernel="fast")
    with pytest.raises(TypeError, match="must be a Hugging Face model to be quantized, got kind"):
        quantize(model.model)
    with pytest.raises(ValueError, match="'target int8' is quantized already"):
        quantize(quantize(model, kernel="integer"))
