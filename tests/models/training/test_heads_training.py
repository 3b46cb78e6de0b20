"""Training of heads: what is trained is what drafts, it learns, it resumes, it is measured."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from specviz.models.heads import EagleCache, EagleHead, MedusaHeads, ParallelHead
from specviz.models.model import Model, as_model
from specviz.models.training import (
    features,
    fit,
    measure_heads,
    train_eagle,
    train_medusa,
    train_parallel,
)
from specviz.models.training.bundled.llama import build
from specviz.models.training.features import default_layers, read_layers, write_features
from specviz.models.training.fit import HeadPlan, divergence
from specviz.models.training.measure_heads import head_card
from specviz.models.training.train_eagle import (
    eagle_config,
    eagle_loss,
    measure_eagle,
    roll_out,
    start_from_draft,
)
from specviz.models.training.train_medusa import measure_medusa, medusa_config, medusa_loss
from specviz.models.training.train_parallel import parallel_config, parallel_loss, slot_outputs

VOCAB, LAYERS = 48, (1, 2, 3)
PLAN = HeadPlan(steps=30, rows=4, context=24, log_every=10, warmup=3)


@cache
def tiny_target(vocab: int = VOCAB, context: int = 64) -> Model:
    """A three-layer target whose distributions are far from uniform."""
    model = build(3, vocab=vocab, hidden=32, intermediate=48, heads=4, kv_heads=2, context=context)
    with torch.no_grad():
        for weight in model.parameters():
            if weight.dim() == 2:
                weight.mul_(6.0)
    return as_model(model.eval().requires_grad_(False), "tiny")


def windows(count: int = 20, time: int = 48) -> NDArray[np.int64]:
    return np.random.default_rng(0).integers(0, VOCAB, (count, time + 1))


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> features.Features:
    folder = tmp_path_factory.mktemp("features")
    return write_features(tiny_target().model, windows(), folder, LAYERS)


def test_features_are_what_the_target_hands_its_drafters() -> None:
    from specviz.core.contract import Draft
    from specviz.decoding.hf.target import HFTarget

    target, ids = tiny_target(), windows(1)[0, :20]
    session = HFTarget(target)
    session.capture(LAYERS)
    session.verify(ids, Draft.empty(VOCAB))
    session.keep([])
    read = read_layers(target.model, torch.from_numpy(ids)[None], LAYERS)[0]
    captured = session.features
    for column in range(3):  # layers before the last are kept without their size
        one, other = read[:, column], captured[:, column]
        if column < 2:
            other = torch.nn.functional.rms_norm(other, (32,), eps=1e-5)
        assert (one - other).abs().max() < 1e-4


def test_features_go_on_where_they_were_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(features, "PART", 8)
    model = tiny_target().model
    whole = write_features(model, windows(), tmp_path / "a", LAYERS)
    write_features(model, windows(), tmp_path / "b", LAYERS)
    (tmp_path / "b" / "features_0001.npy").unlink()
    kept = (tmp_path / "b" / "features_0000.npy").stat().st_mtime_ns
    again = write_features(model, windows(), tmp_path / "b", LAYERS)
    assert (tmp_path / "b" / "features_0000.npy").stat().st_mtime_ns == kept
    assert [len(part) for part in again.parts] == [8, 8, 4]
    for one, other in zip(whole.parts, again.parts, strict=True):
        assert np.array_equal(one, other)
    with pytest.raises(ValueError, match="other layers"):
        write_features(model, windows(), tmp_path / "b", (1, 3))


def test_a_batch_is_a_piece_of_its_window(data: features.Features) -> None:
    ids, kept = data.batch(np.array([3, 0]), 16)  # three pieces a window: 3 is window 1, first
    assert ids.tolist() == [windows()[1, :17].tolist(), windows()[0, :17].tolist()]
    assert np.array_equal(kept[0].numpy(), data.parts[0][1, :16].astype(np.float32))


def test_the_divergence_and_its_gradient_are_autograds() -> None:
    logits = torch.randn(3, 5, 7, requires_grad=True)
    log_p = torch.randn(3, 5, 7).log_softmax(-1)
    (3 * divergence(log_p, logits)).backward()
    again = logits.detach().clone().requires_grad_(True)
    plain = (log_p.exp() * (log_p - again.log_softmax(-1))).sum(-1).mean()
    (3 * plain).backward()
    assert torch.allclose(divergence(log_p, logits), plain, atol=1e-6)
    assert torch.allclose(logits.grad, again.grad, atol=1e-7)


def test_what_is_trained_is_what_drafts(data: features.Features) -> None:
    """Pass j of the roll-out at position t equals drafting j tokens with the head's cache."""
    target = tiny_target()
    torch.manual_seed(3)
    head = EagleHead(eagle_config(target, LAYERS, steps=4, window=48))
    ids, kept = data.batch(np.array([2]), 48)
    embedding = target.model.get_input_embeddings()
    with torch.no_grad():
        passes = roll_out(head, kept, ids[:, 1:], embedding, 4)
        embedded = head.embedded(ids[0, 1:], embedding)
        for text in (5, 30):  # positions with features
            cache, positions = EagleCache(), torch.arange(text)
            x = head.fused(kept[0, :text]) + embedded[:text]
            output = head(x, positions, positions[:, None] >= positions, cache)[-1:]
            assert (output[0] - passes[0][0, text - 1]).abs().max() < 1e-5
            for j in (1, 2, 3):
                at = text - 1 + j
                x = head.continued(output) + embedded[at : at + 1]
                visible = torch.ones(1, at + 1, dtype=torch.bool)
                output = head(x, torch.tensor([at]), visible, cache)
                assert (output[0] - passes[j][0, at]).abs().max() < 1e-5


def test_what_is_trained_in_parallel_is_what_drafts(data: features.Features) -> None:
    """Slot j after position t equals the head's one pass over the text up to t + 1."""
    target = tiny_target()
    torch.manual_seed(3)
    for window in (48, 6):
        head = ParallelHead(parallel_config(target, LAYERS, window=window))
        with torch.no_grad():
            head.slots.normal_()
        ids, kept = data.batch(np.array([2]), 48)
        embedding = target.model.get_input_embeddings()
        with torch.no_grad():
            slots = slot_outputs(head, kept, ids[:, 1:], embedding)
            x = head.fused(kept[0]) + head.embedded(ids[0, 1:], embedding)
            for text in (5, 30):  # positions with features, read in two rounds
                cache = EagleCache()
                head.in_one_pass(x[: text - 3], 4, 0, cache)
                output = head.in_one_pass(x[text - 3 : text], 4, text - 3, cache)
                assert cache.length == text
                for j in range(4):
                    assert (output[j] - slots[j][0, text - 1]).abs().max() < 1e-5


@pytest.mark.parametrize("kind", ["eagle", "medusa", "parallel"])
def test_training_helps_and_resumes_exactly(
    kind: str, data: features.Features, tmp_path: Path
) -> None:
    target = tiny_target()
    train: Any = {
        "eagle": train_eagle.train_eagle,
        "medusa": train_medusa.train_medusa,
        "parallel": train_parallel.train_parallel,
    }[kind]
    whole, facts = train(target, data, LAYERS, tmp_path / "whole.safetensors", PLAN)
    assert (facts["step"], facts["rows"], facts["context"], facts["windows"]) == (30, 4, 24, 20)
    log = [json.loads(line) for line in (tmp_path / "whole.jsonl").read_text().splitlines()]
    assert [line["step"] for line in log] == [10, 20, 30]
    assert log[-1]["loss"] < 0.97 * log[0]["loss"]

    class Stop(Exception):
        pass

    def interrupted(step: int, plan: HeadPlan, count: int) -> NDArray[np.int64]:
        if step == 12:
            raise Stop
        return rows_of(step, plan, count)

    rows_of, path = fit.rows_of, tmp_path / "stopped.safetensors"
    with pytest.MonkeyPatch.context() as patch, pytest.raises(Stop):
        patch.setattr(fit, "rows_of", interrupted)
        train(target, data, LAYERS, path, replace(PLAN, save_every=0.0))
    again, _ = train(target, data, LAYERS, path, PLAN)
    for name, weight in whole.state_dict().items():
        assert torch.equal(weight, again.state_dict()[name]), name


def test_features_tell_an_eagle_head_more_than_tokens_do(
    data: features.Features, tmp_path: Path
) -> None:
    """On random text only the features know what a deep target will say."""
    target = tiny_target()
    plan = replace(PLAN, steps=80, rows=6)
    alpha = {}
    for on in (True, False):
        path = tmp_path / f"{on}.safetensors"
        head, _ = train_eagle.train_eagle(target, data, LAYERS, path, plan, steps=1, features=on)
        held = torch.from_numpy(np.random.default_rng(9).integers(0, VOCAB, (8, 25)))
        alpha[on] = measure_heads.measure_heads(head, target, {"random": held})["random"]["alpha"][
            0
        ]
    assert alpha[True] > alpha[False] + 0.02


def test_measures_of_a_perfect_and_of_an_untrained_head(data: features.Features) -> None:
    target = tiny_target()
    ids, kept = data.batch(np.arange(4), 48)
    untrained = MedusaHeads(medusa_config(target, (3,)))
    measured = measure_medusa(untrained, target.model, kept[:, :, 2:], skip=0)
    p = (kept[:, :, 2] @ target.model.lm_head.weight.T).softmax(-1)
    for i in range(1, 5):  # an untrained head repeats the target's distribution of the next token
        here, q = p[:, i:], p[:, :-i]
        assert measured["alpha"][i - 1] == pytest.approx(
            torch.minimum(here, q).sum(-1).mean().item(), abs=1e-5
        )
        ranked = here.gather(-1, q.argmax(-1, keepdim=True)).mean().item()
        assert measured["ranks"][i - 1][0] == pytest.approx(ranked, abs=1e-5)
        assert measured["top5"][i - 1] >= measured["top1"][i - 1]

    class Oracle(EagleHead):
        """Puts out the target's own state of the next position."""

        def finished(self, x: torch.Tensor, attended: torch.Tensor) -> torch.Tensor:
            return torch.cat([kept[:, 1:, 2], kept[:, -1:, 2]], dim=1)

        def logits(self, output: torch.Tensor, head: Any) -> torch.Tensor:
            return head(output)

    oracle = Oracle(eagle_config(target, LAYERS, window=48))
    perfect = measure_eagle(oracle, target.model, ids, kept, 3, skip=4)
    assert perfect["alpha"] == pytest.approx([1.0] * 3, abs=1e-5)
    assert perfect["top1"] == [1.0] * 3


def test_the_losses_reach_every_weight(data: features.Features) -> None:
    target = tiny_target()
    ids, kept = data.batch(np.arange(3), 24)
    modules = [
        (head := EagleHead(eagle_config(target, LAYERS, window=24)),
         eagle_loss(head, target.model, steps=3)),
        (medusa := MedusaHeads(medusa_config(target, LAYERS, blocks=2)),
         medusa_loss(medusa, target.model)),
        (parallel := ParallelHead(parallel_config(target, LAYERS, window=24)),
         parallel_loss(parallel, target.model)),
    ]  # fmt: skip
    for module, loss in modules:
        loss(ids, kept).backward()
        for name, weight in module.named_parameters():
            assert weight.grad is not None and weight.grad.abs().max() > 0, name
    assert all(weight.grad is None for weight in target.model.parameters())


def test_a_card_says_what_was_measured() -> None:
    config = eagle_config(tiny_target(), LAYERS, window=24)
    facts = {"step": 1234, "rows": 4, "context": 24, "windows": 20, "seconds": 90.0}
    measured = {"stories": {"alpha": [0.912, 0.8], "top1": [0.95, 0.85]}}
    blind = {"stories": {"alpha": [0.712, 0.6], "top1": [0.75, 0.65]}}
    card = head_card(config, facts, measured, text="Some text.", license="x", ablation=blind)
    assert "| stories | 0.912 / 0.950 | 0.800 / 0.850 |" in card
    assert "| stories | 0.712 / 0.750 | 0.600 / 0.650 |" in card
    assert "1,234 steps" in card and "`tiny`" in card
    assert "| stories | 0.912 / 0.950 |" in head_card(
        parallel_config(tiny_target(), LAYERS, window=24), facts, measured, text="", license="x"
    )
    config_m = medusa_config(tiny_target(), (3,))
    ranked = {"stories": {"alpha": [0.5], "top1": [0.61], "top5": [0.9], "ranks": [[0.4]]}}
    assert "| stories | 0.500 / 0.610 / 0.900 |" in head_card(
        config_m, facts, ranked, text="", license="x"
    )


def test_layers_are_spread_over_any_depth() -> None:
    assert default_layers(1) == (1,)
    assert default_layers(32) == (8, 16, 24, 32)


def test_a_finished_checkpoint_is_only_loaded(data: features.Features, tmp_path: Path) -> None:
    module = torch.nn.Linear(2, 2)

    def loss(ids: torch.Tensor, kept: torch.Tensor) -> torch.Tensor:
        return module(torch.ones(1, 2)).pow(2).sum()

    path, plan = tmp_path / "x.safetensors", replace(PLAN, steps=2)
    fit.fit(module, loss, data, path, plan)
    trained = module.weight.detach().clone()
    module.weight.data.zero_()
    fit.fit(module, lambda *_: pytest.fail("it trained"), data, path, plan)
    assert torch.equal(module.weight, trained)


def test_a_head_can_start_as_a_draft_and_says_what_the_draft_says() -> None:
    target = tiny_target()
    draft = build(1, vocab=VOCAB, hidden=32, intermediate=48, heads=4, kv_heads=2, seed=5).eval()
    with torch.no_grad():
        for weight in draft.parameters():
            weight.add_(0.1 * torch.randn(weight.shape, generator=torch.Generator().manual_seed(1)))
    config = eagle_config(target, LAYERS, window=48, own_vocabulary=True)
    head = EagleHead(config)
    start_from_draft(head, draft)
    ids = torch.from_numpy(windows(2))
    kept = read_layers(target.model, ids[:, :-1], LAYERS)
    embedding, out = target.model.get_input_embeddings(), target.model.get_output_embeddings()
    with torch.no_grad():
        passes = roll_out(head, kept, ids[:, 1:], embedding, 3)
        # position t of the roll-out reads x[t + 1], so it is the draft's own position t
        wanted = draft(ids[:, 1:]).logits
        for j, output in enumerate(passes):
            found = head.logits(output, out)[:, j:]
            assert (found - wanted[:, j:]).abs().max() < 1e-4
    with pytest.raises(ValueError, match="one-layer draft"):
        start_from_draft(head, target.model)
    with pytest.raises(ValueError, match="one-layer draft"):
        start_from_draft(EagleHead(replace(config, own_vocabulary=False)), draft)
