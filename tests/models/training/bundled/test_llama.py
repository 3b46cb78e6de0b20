"""The network is Hugging Face's; exits, optimisers, schedule and windows do what they say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from specviz.models.training import fit
from specviz.models.training.bundled import llama
from specviz.models.training.bundled.batches import Mixture
from specviz.models.training.bundled.target import exit_layers, losses
from specviz.models.training.features import heldout_windows
from tests.models.training.bundled.small import TINY, VOCAB, tiny

# --- network ---------------------------------------------------------------------------------


@pytest.mark.parametrize("time", [7, 256])  # one chunk, two chunks
def test_network_equals_hugging_face_at_every_depth(time: int) -> None:
    model = replace(TINY, max_context=256).build()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(12.0) if parameter.dim() == 2 else parameter.uniform_(0.5, 1.5)
    ids = torch.randint(0, VOCAB, (2, time), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        theirs = model(ids, output_hidden_states=True)
        ours = llama.hidden_states(model, ids)
        torch.testing.assert_close(
            llama.logits(model, ours[-1]), theirs.logits, atol=2e-4, rtol=1e-4
        )
        for depth in range(3):
            torch.testing.assert_close(
                ours[depth], theirs.hidden_states[depth], atol=2e-4, rtol=1e-4
            )
    assert theirs.logits.softmax(-1).max(-1).values.mean() > 0.1  # not nearly uniform


def test_a_network_that_sees_the_future_is_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny()
    ids = torch.randint(0, VOCAB, (2, 16), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        theirs = model(ids).logits
        monkeypatch.setattr(torch.Tensor, "triu", lambda self, _: torch.zeros_like(self))
        ours = llama.logits(model, llama.hidden_states(model, ids)[-1])
    assert (ours - theirs).abs().max() > 0.05


def test_exit_divergences_are_zero_only_for_the_final_layer() -> None:
    model = tiny()
    ids = torch.randint(0, VOCAB, (2, 17), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        states = llama.hidden_states(model, ids[:, :-1])
        norm, head = model.model.norm.weight, model.lm_head.weight
        parts = losses(states[-1], states[-1], states[1], norm, head, ids[:, 1:])
    assert parts[1].abs() < 1e-5
    assert parts[2] > 0.05


def test_the_final_distribution_is_a_constant_for_the_exits() -> None:
    model = tiny()
    ids = torch.randint(0, VOCAB, (1, 9), generator=torch.Generator().manual_seed(1))
    states = [s.detach().requires_grad_() for s in llama.hidden_states(model, ids[:, :-1])]
    norm, head = model.model.norm.weight, model.lm_head.weight
    losses(states[-1], states[1], states[2], norm, head, ids[:, 1:])[1:].sum().backward()
    assert states[-1].grad is None or states[-1].grad.abs().max() == 0
    assert states[1].grad is not None and states[1].grad.abs().max() > 0


def test_exit_rotation() -> None:
    assert [exit_layers(step, 16) for step in range(5)] == [
        (4, 8), (4, 2), (4, 12), (4, 6), (4, 8),
    ]  # fmt: skip
    assert exit_layers(0, 3) == (3, 3)


# --- optimisers and schedule -----------------------------------------------------------------


def test_schedule_warms_up_stays_and_cools_down_only_when_asked() -> None:
    factor = fit.warmup_stable_decay
    assert [factor(s, 4) for s in (0, 1, 3, 4, 10**6)] == [0.25, 0.5, 1.0, 1.0, 1.0]
    cooled = [factor(s, 4, 100, 16) for s in (99, 100, 101, 104, 109, 116, 200)]
    assert cooled == [1.0, 1.0, 0.75, 0.5, 0.25, 0.0, 0.0]


def test_momentum_survives_a_checkpoint_and_is_what_muon_reads() -> None:
    """Two steps with a reload between them are two steps; without the state they are not."""
    after = {}
    for reload in ("none", "whole", "forgotten"):
        model = tiny(layers=1)
        optimiser = fit.Optimiser(model)
        for step in range(2):
            if step and reload != "none":
                state = {name: value.clone() for name, value in optimiser.tensors().items()}
                optimiser = fit.Optimiser(model)
                if reload == "whole":
                    optimiser.load(state)
            generator = torch.Generator().manual_seed(step)
            for parameter in model.parameters():
                parameter.grad = torch.randn(parameter.shape, generator=generator)
            optimiser.step(1.0)
        after[reload] = model.model.layers[0].mlp.gate_proj.weight.detach().clone()
    assert torch.equal(after["none"], after["whole"])
    assert not torch.equal(after["none"], after["forgotten"])


def test_muon_gets_the_layers_matrices_and_adam_the_rest() -> None:
    optimiser = fit.Optimiser(tiny(layers=1))
    assert len(optimiser.matrices) == 7
    assert sorted(optimiser.others) == [
        "model.embed_tokens.weight",
        "model.layers.0.input_layernorm.weight",
        "model.layers.0.post_attention_layernorm.weight",
        "model.norm.weight",
    ]


# --- batches ---------------------------------------------------------------------------------


def numbered(length: int) -> np.ndarray:
    ids = np.arange(1, length + 1)
    ids[::30] = llama.END_OF_TEXT
    return ids


def test_rows_depend_on_their_number_only() -> None:
    domains = {"a": numbered(2000), "b": numbered(900)}
    mixture = Mixture(domains, {"a": 0.7, "b": 0.3}, seed=3)
    whole = mixture.rows(0, 60, 16)
    torch.testing.assert_close(whole[23:41], mixture.rows(23, 18, 16))
    other = Mixture(domains, {"a": 0.7, "b": 0.3}, seed=4).rows(0, 60, 16)
    assert not torch.equal(whole, other)


def test_shares_and_epochs() -> None:
    domains = {"a": numbered(1000), "b": numbered(1000)}
    mixture = Mixture(domains, {"a": 0.8, "b": 0.2}, seed=0)
    places = [mixture.window(row, 16) for row in range(500)]
    assert sum(name == "a" for name, _ in places) == 400
    windows = (1000 - 1) // 16 - 1
    first = [start for name, start in places if name == "a"][:windows]
    plain = first[::2]  # windows that are not moved to a document's start
    assert len(set(plain)) == len(plain)
    assert len({start % 16 for start in plain}) == 1
    moved = first[1::2]
    on_start = sum(domains["a"][start] == llama.END_OF_TEXT for start in moved)
    assert on_start > len(moved) / 3


def test_wrong_shares_and_short_text_are_refused() -> None:
    with pytest.raises(ValueError, match="add up to 1"):
        Mixture({"a": numbered(100)}, {"a": 0.9})
    with pytest.raises(ValueError, match="a has 20 tokens"):
        Mixture({"a": numbered(20)}, {"a": 1.0}).rows(0, 1, 16)
    with pytest.raises(ValueError, match="too few"):
        heldout_windows(numbered(10), 16, 4)
