"""Sampling, distillation, measures, the gate, and what is published."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor
from transformers import AutoModelForCausalLM, LlamaForCausalLM, PreTrainedTokenizerFast

from specviz.models.heads import load_heads
from specviz.models.model import as_model
from specviz.models.pair import Pair
from specviz.models.training.bundled import llama, release
from specviz.models.training.bundled.__main__ import main
from specviz.models.training.bundled.batches import SHARES
from specviz.models.training.bundled.distil import load_draft
from specviz.models.training.bundled.llama import continue_texts
from specviz.models.training.bundled.measure import GateError, compare, gate
from specviz.models.training.bundled.release import BASELINES, export, train_baseline
from specviz.models.training.bundled.target import Workers, load_target, train
from tests.models.training.bundled.small import PLAN, TINY, VOCAB, tiny


def test_sampling_follows_the_models_distribution() -> None:
    model = tiny(layers=2)
    prompts = torch.tensor([[0, 5, 9]]).expand(20_000, 3)
    text = continue_texts(
        model, prompts, 4, torch.Generator().manual_seed(0), dtype=torch.float32, progress=False
    )
    with torch.no_grad():
        distribution = model(prompts[:1]).logits[0, -1].double().softmax(-1)
    seen = torch.bincount(text[:, 3], minlength=VOCAB).double() / len(text)
    uniform = torch.full_like(distribution, 1 / VOCAB)
    assert (seen - distribution).abs().sum() / 2 < 0.03
    assert (seen - uniform).abs().sum() / 2 > 0.1  # planted wrong distribution
    torch.testing.assert_close(text[:, :3], prompts)


def test_sampling_uses_its_cache_rightly() -> None:
    """Tokens sampled from a nearly deterministic distribution are the greedy ones of passes."""
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
    assert loaded.generation_config.eos_token_id == llama.END_OF_TEXT
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
    distil = [
        "distil", "--kind", "draft", "--target", str(target_run), "--corpus", str(corpus),
        "--run", str(draft_run), "--steps", "30", "--rows", "4", "--context", "32",
        "--piece", "32", "--corpus-windows", "8", "--written-windows", "8",
    ]  # fmt: skip
    main(distil)
    target = load_target(target_run)[0]
    draft, facts = load_draft(draft_run, target)
    assert facts["step"] == 30 and draft.config.num_hidden_layers == 1
    windows = torch.from_numpy(np.load(draft_run / "chosen.npy").astype(np.int64))
    assert windows.shape == (16, 33)
    undistilled = replace(TINY, layers=1).build()
    alpha = {d: compare(target, m, windows)["alpha"] for d, m in (("d", draft), ("u", undistilled))}
    assert alpha["d"] > alpha["u"] + 0.1

    command = [
        "export", "--corpus", str(corpus), "--target-run", str(target_run),
        "--draft-run", str(draft_run), "--out", str(out), "--windows", "2",
    ]  # fmt: skip
    from specviz.models.training.bundled import __main__ as cli

    real = cli.measure
    monkeypatch.setattr(cli, "measure", lambda *a, **k: real(*a, **k, context=32))

    gate_path = "specviz.models.training.bundled.measure.gate"

    def refuse(*_: object) -> None:
        raise GateError("the draft is better")

    with monkeypatch.context() as patch:
        patch.setattr(gate_path, refuse)
        with pytest.raises(GateError):
            main(command)
    assert not (out / "target").exists()
    with monkeypatch.context() as patch:
        patch.setattr(gate_path, lambda target, _: dict.fromkeys(target, 0.1))
        main(command)
    measured = json.loads((out / "measured.json").read_text())
    text = (out / "draft" / "README.md").read_text()
    for row in measured["corpus"].values():
        assert f"{row['alpha']:.3f}" in text
    assert "{" not in (out / "target" / "README.md").read_text().split("## What it writes")[0]
    assert sorted(path.name for path in out.iterdir()) == ["draft", "measured.json", "target"]


@pytest.mark.parametrize("kind", ["medusa", "eagle", "parallel"])
def test_heads_of_the_family_are_trained_measured_and_written(
    kind: str, corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, out = tmp_path / "t", tmp_path / "out"
    train(Workers(), corpus, run, TINY, replace(PLAN, steps=2))
    command = [
        "distil", "--kind", kind, "--target", str(run), "--corpus", str(corpus),
        "--run", str(tmp_path / "d"), "--steps", "2", "--rows", "2", "--context", "32",
        "--piece", "16", "--corpus-windows", "4", "--written-windows", "2", "--ablation",
    ]  # fmt: skip
    with pytest.raises(ValueError, match=f"which folder gets {kind}/"):
        main(command)
    main([*command, "--out", str(out)])
    printed = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert set(printed["measured"]) == set(SHARES)
    assert (printed["ablation"] is not None) == (kind == "eagle")
    card = (out / kind / "README.md").read_text()
    first = printed["measured"]["prose"]
    assert f"| prose | {first['alpha'][0]:.3f} / {first['top1'][0]:.3f}" in card
    pair = Pair(target=as_model(load_target(run)[0], "target"))
    assert load_heads(out / kind, pair, kind).config.kind == kind


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
        "text": {
            "nats_per_character": {"stories": 0.0712}, "one_token_words": {"stories": 0.9712},
            "characters_per_token": {"stories": 3.9}, "invented_words": {"share": 0.0215},
        },
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
    target, draft = release.target_card(measured), release.draft_card(measured)
    assert all(
        text in target
        for text in ("1.125", "0.625", "1,000,000", "300", "100 of cooldown", "0.071", "2.1%")
    )
    assert all(text in draft for text in ("0.812", "0.938", "123,456"))
    assert "```evil" not in target


def test_text_only_reads_what_the_target_reads_and_prose_only_does_not() -> None:
    assert BASELINES["text-only"] == SHARES
    assert {name for name, share in BASELINES["prose-only"].items() if share} == {"prose"}


def test_an_unknown_name_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="'text-only', 'prose-only', got 'x'"):
        train_baseline(tmp_path, tmp_path / "run", "x")
    assert not (tmp_path / "run").exists()
