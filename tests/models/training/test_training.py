"""The training engine: same network as Hugging Face's, exact resume, honest release gate."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor
from transformers import AutoModelForCausalLM, LlamaForCausalLM, PreTrainedTokenizerFast

from specviz.models.training import card, checkpoint, network, optimizers
from specviz.models.training.__main__ import main
from specviz.models.training.batches import SHARES, Mixture, heldout_windows
from specviz.models.training.draft import DraftPlan, distil, load_draft, load_target
from specviz.models.training.export import export
from specviz.models.training.measure import GateError, compare, gate
from specviz.models.training.parallel import Workers, launch
from specviz.models.training.sampling import continue_texts
from specviz.models.training.target import (
    COOLED,
    STABLE,
    Plan,
    Run,
    Settings,
    exit_layers,
    losses,
    train,
)

VOCAB = 64
TINY = Settings(
    layers=3,
    vocab=VOCAB,
    hidden=32,
    intermediate=48,
    heads=4,
    kv_heads=2,
    max_context=64,
    tokens_per_step=128,
    warmup=4,
)
PLAN = Plan(context=32, log_every=1, compile=False)


def tiny(layers: int = 3, seed: int = 0, loud: float = 8.0) -> LlamaForCausalLM:
    """Return a small network whose laws are far from uniform."""
    model = replace(TINY, layers=layers, seed=seed).build()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 2:
                parameter.mul_(loud)
    return model.eval()


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Return a folder with a learnable toy corpus in three domains and a tokenizer."""
    from tokenizers import Tokenizer, models

    place = tmp_path / "corpus"
    place.mkdir()
    generator = np.random.default_rng(0)
    for number, name in enumerate(SHARES):
        for part, size in (("train", 3000), ("heldout", 600)):
            steps = generator.choice([1, 2 + number], size, p=[0.8, 0.2])
            ids = 2 + np.cumsum(steps) % (VOCAB - 2)
            ids[::25] = network.END_OF_TEXT
            np.save(place / f"{name}_{part}.npy", ids.astype(np.uint16))
    vocabulary = {"<|endoftext|>": 0, "<|pad|>": 1} | {f"w{i}": i for i in range(2, VOCAB)}
    PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(models.WordLevel(vocabulary, unk_token="<|pad|>")),
        bos_token="<|endoftext|>",
        eos_token="<|endoftext|>",
        pad_token="<|pad|>",
    ).save_pretrained(place / "tokenizer")
    return place


def curve(run: Path, key: str = "loss") -> dict[int, float]:
    """Return the logged value by step."""
    lines = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    return {line["step"]: line[key] for line in lines if key in line}


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
        ours = network.hidden_states(model, ids)
        torch.testing.assert_close(
            network.logits(model, ours[-1]), theirs.logits, atol=2e-4, rtol=1e-4
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
        ours = network.logits(model, network.hidden_states(model, ids)[-1])
    assert (ours - theirs).abs().max() > 0.05


def test_exit_divergences_are_zero_only_for_the_final_layer() -> None:
    model = tiny()
    ids = torch.randint(0, VOCAB, (2, 17), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        states = network.hidden_states(model, ids[:, :-1])
        norm, head = model.model.norm.weight, model.lm_head.weight
        parts = losses(states[-1], states[-1], states[1], norm, head, ids[:, 1:])
    assert parts[1].abs() < 1e-5
    assert parts[2] > 0.05


def test_the_final_law_is_a_constant_for_the_exits() -> None:
    model = tiny()
    ids = torch.randint(0, VOCAB, (1, 9), generator=torch.Generator().manual_seed(1))
    states = [s.detach().requires_grad_() for s in network.hidden_states(model, ids[:, :-1])]
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
    factor = optimizers.warmup_stable_decay
    assert [factor(s, 4) for s in (0, 1, 3, 4, 10**6)] == [0.25, 0.5, 1.0, 1.0, 1.0]
    cooled = [factor(s, 4, 100, 16) for s in (99, 100, 101, 104, 109, 116, 200)]
    assert cooled == [1.0, 1.0, 0.75, 0.5, 0.25, 0.0, 0.0]


@pytest.mark.parametrize("shape", [(3, 16, 32), (2, 32, 16), (1, 16, 16)])
def test_orthogonalise(shape: tuple[int, int, int]) -> None:
    matrices = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    result = optimizers.orthogonalise(matrices).float()
    values = torch.linalg.svdvals(result)
    assert result.shape == shape
    assert values.min() > 0.5 and values.max() < 1.3
    overlap = (result * matrices).sum((1, 2)) / torch.linalg.svdvals(matrices).sum(-1)
    assert (overlap > 0.6).all()  # it points the same way


def test_muon_gets_the_layers_matrices_and_adam_the_rest() -> None:
    optimiser = optimizers.Optimiser(tiny(layers=1))
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
    ids[::30] = network.END_OF_TEXT
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
    on_start = sum(domains["a"][start] == network.END_OF_TEXT for start in moved)
    assert on_start > len(moved) / 3


def test_wrong_shares_and_short_text_are_refused() -> None:
    with pytest.raises(ValueError, match="add up to 1"):
        Mixture({"a": numbered(100)}, {"a": 0.9})
    with pytest.raises(ValueError, match="a has 20 tokens"):
        Mixture({"a": numbered(20)}, {"a": 1.0}).rows(0, 1, 16)
    with pytest.raises(ValueError, match="too few"):
        heldout_windows(numbered(10), 16, 4)


# --- training and resume ---------------------------------------------------------------------


def test_resumed_training_is_uninterrupted_training(corpus: Path, tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    train(Workers(), corpus, one, TINY, replace(PLAN, steps=8))
    train(Workers(), corpus, two, TINY, replace(PLAN, steps=5))
    train(Workers(), corpus, two, TINY, replace(PLAN, steps=3))
    whole, whole_facts = checkpoint.load(one / STABLE)
    parts, parts_facts = checkpoint.load(two / STABLE)
    assert whole_facts["step"] == parts_facts["step"] == 8
    assert whole_facts["rows"] == parts_facts["rows"]
    assert set(whole) == set(parts)
    for name in whole:
        torch.testing.assert_close(whole[name], parts[name], rtol=0, atol=0)
    assert not torch.equal(whole["model.model.norm.weight"], torch.ones(TINY.hidden))


def test_a_resume_that_forgets_the_optimiser_is_noticed(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    train(Workers(), corpus, one, TINY, replace(PLAN, steps=8))
    train(Workers(), corpus, two, TINY, replace(PLAN, steps=5))
    monkeypatch.setattr(optimizers.Optimiser, "load", lambda self, state: None)
    train(Workers(), corpus, two, TINY, replace(PLAN, steps=3))
    name = "model.model.embed_tokens.weight"
    assert not torch.equal(
        checkpoint.load(one / STABLE)[0][name], checkpoint.load(two / STABLE)[0][name]
    )


def test_training_learns_and_cools_down_beside_the_stable_checkpoint(
    corpus: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    train(Workers(), corpus, run, TINY, replace(PLAN, steps=30))
    before = (run / STABLE).read_bytes()
    train(Workers(), corpus, run, TINY, replace(PLAN, cooldown=6, steps=4))
    assert checkpoint.load(run / COOLED)[1]["step"] == 34
    train(Workers(), corpus, run, TINY, replace(PLAN, cooldown=6))  # goes on, and ends
    facts = checkpoint.load(run / COOLED)[1]
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
    one = Run(Workers(), corpus, tmp_path / "one", TINY, PLAN)
    pair = [Run(Thread(rank, 2), corpus, tmp_path / "two", TINY, PLAN) for rank in range(2)]
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
            Run(Workers(), corpus, tmp_path / "run", TINY, replace(PLAN, context=context))
    with pytest.raises(FileNotFoundError, match="train first"):
        Run(Workers(), corpus, tmp_path / "run", TINY, replace(PLAN, cooldown=3))
    with pytest.raises(FileNotFoundError, match="build the corpus first"):
        Run(Workers(), tmp_path, tmp_path / "run", TINY, PLAN)


def test_an_interrupted_save_leaves_the_old_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.safetensors"
    checkpoint.save(path, {"x": torch.ones(2)}, {"step": 1})

    def fail(*_: object, **__: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(checkpoint, "save_file", fail)
    with pytest.raises(OSError, match="disk full"):
        checkpoint.save(path, {"x": torch.zeros(2)}, {"step": 2})
    tensors, facts = checkpoint.load(path)
    assert facts == {"step": 1} and tensors["x"].sum() == 2


# --- sampling, draft, measures ---------------------------------------------------------------


def test_sampling_follows_the_models_law() -> None:
    model = tiny(layers=2)
    prompts = torch.tensor([[0, 5, 9]]).expand(20_000, 3)
    text = continue_texts(
        model, prompts, 4, torch.Generator().manual_seed(0), dtype=torch.float32, progress=False
    )
    with torch.no_grad():
        law = model(prompts[:1]).logits[0, -1].double().softmax(-1)
    seen = torch.bincount(text[:, 3], minlength=VOCAB).double() / len(text)
    uniform = torch.full_like(law, 1 / VOCAB)
    assert (seen - law).abs().sum() / 2 < 0.03
    assert (seen - uniform).abs().sum() / 2 > 0.1  # planted wrong law
    torch.testing.assert_close(text[:, :3], prompts)


def test_sampling_uses_its_cache_rightly() -> None:
    """Tokens sampled from a nearly deterministic law are the greedy ones of full passes."""
    model = tiny(layers=2, loud=1.0)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 2:
                parameter.mul_(10.0)
        model.model.norm.weight.mul_(400.0)
    text = continue_texts(
        model, torch.tensor([[0, 3]]), 30, torch.Generator().manual_seed(0),
        dtype=torch.float32, progress=False,
    )  # fmt: skip
    with torch.no_grad():
        greedy = model(text).logits.argmax(-1)
    assert (greedy[0, 1:-1] == text[0, 2:]).float().mean() > 0.9
    assert len(set(text[0].tolist())) > 3


def test_sampling_refuses_more_than_the_context() -> None:
    with pytest.raises(ValueError, match="context 64"):
        continue_texts(tiny(), torch.zeros(1, 2, dtype=torch.long), 65, torch.Generator())


def test_compare_knows_a_model_from_itself() -> None:
    model, other = tiny(), tiny(layers=1, seed=5)
    windows = torch.randint(0, VOCAB, (5, 21), generator=torch.Generator().manual_seed(1))
    same, different = compare(model, model, windows), compare(model, other, windows)
    assert same["alpha"] == same["top1"] == 1.0
    assert same["loss_target"] == same["loss_draft"] == different["loss_target"]
    assert different["alpha"] < 0.9
    assert 0 < same["exit_2"] < 1


def test_gate_refuses_a_draft_that_beats_its_target_anywhere() -> None:
    target = {"stories": 0.4, "prose": 3.1}
    assert gate(target, {"stories": 0.5, "prose": 3.3}) == {"stories": 0.1, "prose": 0.2}
    with pytest.raises(GateError, match="prose"):
        gate(target, {"stories": 0.5, "prose": 3.0})
    with pytest.raises(GateError, match="stories"):
        gate(target, {"stories": 0.4, "prose": 3.3})
    with pytest.raises(GateError):
        gate(target, {"stories": float("nan"), "prose": 3.3})
    with pytest.raises(GateError, match="domains"):
        gate(target, {"stories": 0.5})


def state_of(model: LlamaForCausalLM) -> dict[str, Tensor]:
    return dict(model.named_parameters())


def test_export_round_trip(corpus: Path, tmp_path: Path) -> None:
    model, place = tiny(), tmp_path / "out" / "target"
    export(model, corpus / "tokenizer", place)
    export(model, corpus / "tokenizer", place)  # replaces what is there
    assert [path.name for path in place.parent.iterdir()] == ["target"]
    loaded = AutoModelForCausalLM.from_pretrained(place)
    assert isinstance(loaded, LlamaForCausalLM)
    assert loaded.dtype == torch.float32
    for name, weight in state_of(model).items():
        torch.testing.assert_close(state_of(loaded)[name], weight.half().float())
    assert loaded.lm_head.weight is loaded.model.embed_tokens.weight
    size = (place / "model.safetensors").stat().st_size
    assert size < 2 * model.num_parameters() + 10_000  # float16, tied weights once
    assert loaded.generation_config.eos_token_id == network.END_OF_TEXT
    assert PreTrainedTokenizerFast.from_pretrained(place).bos_token_id == 0


def test_export_refuses_before_it_writes(corpus: Path, tmp_path: Path) -> None:
    model = tiny()
    with pytest.raises(FileNotFoundError, match="build the corpus"):
        export(model, tmp_path, tmp_path / "out")
    with torch.no_grad():
        model.model.norm.weight[0] = 1e6
    with pytest.raises(ValueError, match=r"model\.norm\.weight"):
        export(model, corpus / "tokenizer", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_from_target_to_published_pair(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Distil, export, measure, write cards; a pair that fails the gate is not published."""
    target_run, draft_run, out = tmp_path / "t", tmp_path / "d", tmp_path / "out"
    train(Workers(), corpus, target_run, TINY, replace(PLAN, steps=40, log_every=20))
    plan = DraftPlan(
        steps=30, corpus_windows=8, written_windows=8, context=32, rows=4, compile=False
    )
    distil(Workers(), corpus, target_run, draft_run, plan)
    (draft, facts), (target, _) = load_draft(draft_run), load_target(target_run)
    assert facts["step"] == 30 and draft.config.num_hidden_layers == 1
    windows = torch.from_numpy(np.load(draft_run / "windows.npy").astype(np.int64))
    assert windows.shape == (16, 33)
    undistilled = replace(TINY, layers=1).build()
    alpha = {d: compare(target, m, windows)["alpha"] for d, m in (("d", draft), ("u", undistilled))}
    assert alpha["d"] > alpha["u"] + 0.1

    command = [
        "export", "--corpus", str(corpus), "--target-run", str(target_run),
        "--draft-run", str(draft_run), "--out", str(out), "--windows", "2",
    ]  # fmt: skip
    from specviz.models.training import __main__ as cli

    real = cli.measure
    monkeypatch.setattr(cli, "measure", lambda *a, **k: real(*a, **k, context=32))

    def refuse(*_: object) -> None:
        raise GateError("the draft is better")

    with monkeypatch.context() as patch:
        patch.setattr("specviz.models.training.measure.gate", refuse)
        with pytest.raises(GateError):
            main(command)
    assert not (out / "target").exists()
    with monkeypatch.context() as patch:
        patch.setattr("specviz.models.training.measure.gate", lambda t, d: dict.fromkeys(t, 0.1))
        main(command)
    measured = json.loads((out / "measured.json").read_text())
    text = (out / "draft" / "README.md").read_text()
    for row in measured["corpus"].values():
        assert f"{row['alpha']:.3f}" in text
    assert "{" not in (out / "target" / "README.md").read_text().split("## What it writes")[0]
    assert sorted(path.name for path in out.iterdir()) == ["draft", "measured.json", "target"]


def test_cards_take_numbers_from_the_measurement() -> None:
    row = {
        "loss_target": 1.125, "loss_draft": 1.25, "alpha": 0.8125, "top1": 0.875,
        "exit_4": 0.625, "exit_4_top1": 0.5, "windows": 3,
    }  # fmt: skip
    config = {
        "num_hidden_layers": 16, "hidden_size": 8, "intermediate_size": 8, "vocab_size": 9,
        "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 77,
        "parameters": 123456,
    }  # fmt: skip
    measured = {
        "corpus": {"stories": row}, "written": {"stories": 0.9375}, "margin": {"stories": 0.125},
        "samples": {"stories": ["```evil```"]},
        "protocol": {"context": 77, "written_prompt": 16, "written_length": 38},
        "configs": {"target": config, "draft": config},
        "training": {
            "target": {
                "tokens": 1_000_000, "step": 400, "decay_start": 300, "seconds": 600.0,
                "contexts": {"77": 400},
                "settings": {"tokens_per_step": 2500, "shares": SHARES},
            },
            "draft": {
                "step": 50, "rows": 8, "context": 77, "corpus_windows": 10, "written_windows": 20,
            },
        },
    }  # fmt: skip
    target, draft = card.target_card(measured), card.draft_card(measured)
    assert all(text in target for text in ("1.125", "0.625", "1,000,000", "300", "100 of cooldown"))
    assert all(text in draft for text in ("0.812", "0.938", "123,456"))
    assert "```evil" not in target
