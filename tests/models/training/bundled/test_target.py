"""Training: exact resume, cooldown beside the stable checkpoint, workers that agree."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor

from specviz.models.training import fit
from specviz.models.training.bundled.target import (
    COOLED,
    STABLE,
    TrainingRun,
    Workers,
    launch,
    load_target,
    pack,
    train,
)
from tests.models.training.bundled.small import PLAN, TINY, curve


def test_resumed_training_is_uninterrupted_training(corpus: Path, tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    train(Workers(), corpus, one, TINY, replace(PLAN, steps=8))
    train(Workers(), corpus, two, TINY, replace(PLAN, steps=5))
    train(Workers(), corpus, two, TINY, replace(PLAN, steps=3))
    whole, whole_facts = fit.load_checkpoint(one / STABLE)
    parts, parts_facts = fit.load_checkpoint(two / STABLE)
    assert whole_facts["step"] == parts_facts["step"] == 8
    assert whole_facts["rows"] == parts_facts["rows"]
    assert set(whole) == set(parts)
    for name in whole:
        torch.testing.assert_close(whole[name], parts[name], rtol=0, atol=0)
    assert not torch.equal(whole["model.model.norm.weight"], torch.ones(TINY.hidden))


def test_a_packed_run_goes_on_from_where_it_was_but_for_rounding(
    corpus: Path, tmp_path: Path
) -> None:
    run, packed = tmp_path / "run", tmp_path / "packed"
    train(Workers(), corpus, run, TINY, replace(PLAN, steps=8))
    assert pack(run, packed)["step"] == 8
    for name in ("a", "b"):
        plan = replace(PLAN, steps=3, start=packed)
        train(Workers(), corpus, tmp_path / name, TINY, plan)
    train(Workers(), corpus, run, TINY, replace(PLAN, steps=3))
    a, b, whole = (fit.load_checkpoint(tmp_path / n / STABLE) for n in ("a", "b", "run"))
    assert a[1]["step"] == whole[1]["step"] == 11 and a[1]["rows"] == whole[1]["rows"]
    for name, tensor in whole[0].items():
        assert torch.equal(a[0][name], b[0][name])
        torch.testing.assert_close(a[0][name], tensor, rtol=0.05, atol=0.02)
        assert a[0][name].dtype == torch.float32
    name = "model.model.embed_tokens.weight"
    assert not torch.equal(a[0][name], whole[0][name])
    assert np.allclose(curve(tmp_path / "a")[11], curve(run)[11], atol=2e-3)
    sizes = [path.stat().st_size for path in (packed / "weights.safetensors", run / STABLE)]
    assert sizes[0] < 0.4 * sizes[1]


def test_a_resume_that_forgets_the_optimiser_is_noticed(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    train(Workers(), corpus, one, TINY, replace(PLAN, steps=8))
    train(Workers(), corpus, two, TINY, replace(PLAN, steps=5))
    monkeypatch.setattr(fit.Optimiser, "load", lambda self, state: None)
    train(Workers(), corpus, two, TINY, replace(PLAN, steps=3))
    name = "model.model.embed_tokens.weight"
    assert not torch.equal(
        fit.load_checkpoint(one / STABLE)[0][name], fit.load_checkpoint(two / STABLE)[0][name]
    )


def test_training_learns_and_cools_down_beside_the_stable_checkpoint(
    corpus: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    train(Workers(), corpus, run, TINY, replace(PLAN, steps=30))
    before = (run / STABLE).read_bytes()
    train(Workers(), corpus, run, TINY, replace(PLAN, cooldown=6, steps=4))
    assert fit.load_checkpoint(run / COOLED)[1]["step"] == 34
    train(Workers(), corpus, run, TINY, replace(PLAN, cooldown=6))  # goes on, and ends
    facts = fit.load_checkpoint(run / COOLED)[1]
    assert (facts["step"], facts["decay_start"], facts["decay_steps"]) == (36, 30, 6)
    assert facts["contexts"] == {"32": 36}
    assert (run / STABLE).read_bytes() == before
    losses_ = curve(run)
    assert losses_[36] < losses_[1] - 0.3
    assert load_target(run)[1]["step"] == 36


class Thread(Workers):
    """A worker that is a thread and meets the others in memory."""

    slots: ClassVar[dict[int, Tensor]] = {}
    barrier = threading.Barrier(2)

    def sum_(self, tensor: Tensor) -> None:
        self.slots[self.rank] = tensor
        self.barrier.wait(30)
        total = self.slots[0] + self.slots[1]
        self.barrier.wait(30)
        tensor.copy_(total)


def test_two_workers_do_what_one_does(corpus: Path, tmp_path: Path) -> None:
    one = TrainingRun(Workers(), corpus, tmp_path / "one", TINY, PLAN)
    pair = [TrainingRun(Thread(rank, 2), corpus, tmp_path / "two", TINY, PLAN) for rank in range(2)]
    alone = [one.step(stop=False)[0] for _ in range(3)]
    with ThreadPoolExecutor(2) as pool:
        runs = [pool.submit(lambda r=run: [r.step(False)[0] for _ in range(3)]) for run in pair]
        both = [run.result() for run in runs]
    torch.testing.assert_close(both[0], both[1], rtol=0, atol=0)
    torch.testing.assert_close(both[0], alone, rtol=0, atol=5e-3)
    for a, b in zip(pair[0].model.parameters(), pair[1].model.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=0)
    assert one.facts["rows"] == pair[0].facts["rows"] == 12


@pytest.mark.slow
def test_two_processes_do_what_one_does(corpus: Path, tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    train(Workers(), corpus, one, TINY, replace(PLAN, steps=3))
    launch(2, train, corpus, two, TINY, replace(PLAN, steps=3))
    a, b = curve(one), curve(two)
    assert a.keys() == b.keys()
    np.testing.assert_allclose(list(a.values()), list(b.values()), atol=5e-3)


def test_wrong_context_is_refused_before_training(corpus: Path, tmp_path: Path) -> None:
    for context in (128, 48 * 3):
        with pytest.raises(ValueError, match=f"context {context}"):
            TrainingRun(Workers(), corpus, tmp_path / "run", TINY, replace(PLAN, context=context))
    with pytest.raises(FileNotFoundError, match="train first"):
        TrainingRun(Workers(), corpus, tmp_path / "run", TINY, replace(PLAN, cooldown=3))
    with pytest.raises(FileNotFoundError, match="build the corpus first"):
        TrainingRun(Workers(), tmp_path, tmp_path / "run", TINY, PLAN)


def test_an_interrupted_save_leaves_the_old_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.safetensors"
    fit.save_checkpoint(path, {"x": torch.ones(2)}, {"step": 1})

    def fail(*_: object, **__: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(fit, "save_file", fail)
    with pytest.raises(OSError, match="disk full"):
        fit.save_checkpoint(path, {"x": torch.zeros(2)}, {"step": 2})
    tensors, facts = fit.load_checkpoint(path)
    assert facts == {"step": 1} and tensors["x"].sum() == 2
