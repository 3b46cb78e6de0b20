"""Heads on disk: what was saved comes back, what does not fit is refused by name."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

import specviz as sv
from specviz.models.heads import (
    EagleConfig,
    HeadsError,
    MedusaConfig,
    MedusaHeads,
    fingerprint,
    load_heads,
    save_heads,
)
from specviz.models.heads.config import from_json, same_target, to_json
from tests.drafters.with_heads import eagle_for, medusa_for, tiny_pair
from tests.models.tiny import llama

MAKERS = {"medusa": medusa_for, "eagle": eagle_for}


@pytest.mark.parametrize("kind", MAKERS)
def test_saved_heads_come_back(kind: str, tmp_path: Path) -> None:
    pair = tiny_pair()
    heads = MAKERS[kind](pair)
    save_heads(heads, tmp_path / "a" / kind, "# card")
    again = load_heads(tmp_path / "a" / kind, pair, kind)
    assert again.config == heads.config
    for name, tensor in heads.state_dict().items():
        assert torch.equal(again.state_dict()[name], tensor.half().float())
    assert not again.training and next(again.parameters()).dtype == torch.float32
    files = {path.name for path in (tmp_path / "a" / kind).iterdir()}
    assert files == {"config.json", "model.safetensors", "README.md"}
    assert [path.name for path in (tmp_path / "a").iterdir()] == [kind]  # no scratch left


def test_large_matrices_are_stored_in_eight_bits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("specviz.models.heads.files.LARGE", 1023)
    pair = tiny_pair()
    head = eagle_for(pair, own_vocabulary=True)
    save_heads(head, tmp_path / "eagle", "")
    stored = load_file(tmp_path / "eagle" / "model.safetensors")
    assert stored["vocabulary.weight"].dtype == torch.int8
    assert stored["up_proj.weight"].dtype == torch.float16
    again = load_heads(tmp_path / "eagle", pair, "eagle")
    for name, weight in head.state_dict().items():
        off = (again.state_dict()[name] - weight).abs()
        largest = weight.abs().amax(-1, keepdim=True)
        assert (
            off <= largest * (0.51 / 127 if weight.numel() > 1023 and weight.dim() == 2 else 0.001)
        ).all(), name


def test_saving_again_replaces_the_folder_and_a_failure_leaves_it(tmp_path: Path) -> None:
    pair, place = tiny_pair(), tmp_path / "heads"
    save_heads(medusa_for(pair), place, "first")
    save_heads(medusa_for(pair), place, "second")
    assert (place / "README.md").read_text() == "second"
    bad = medusa_for(pair)
    with torch.no_grad():
        next(bad.parameters())[0, 0] = 1e6
    with pytest.raises(ValueError, match="outside float16"):
        save_heads(bad, place, "third")
    assert (place / "README.md").read_text() == "second"


@pytest.mark.parametrize("kind", MAKERS)
def test_a_configuration_survives_json(kind: str) -> None:
    config = MAKERS[kind](tiny_pair()).config
    assert from_json(json.loads(json.dumps({**to_json(config), "unknown": 1}))) == config


def test_heads_in_memory_are_left_as_they_are() -> None:
    pair = tiny_pair()
    own = medusa_for(pair).double().train()
    used = load_heads(own, pair, "medusa")
    assert used is not own and own.training
    assert {p.dtype for p in own.parameters()} == {torch.float64}
    assert {p.dtype for p in used.parameters()} == {torch.float32}


def test_untrained_medusa_heads_say_what_the_target_says() -> None:
    heads = MedusaHeads(MedusaConfig(hidden_size=8, vocab_size=16, layers=(1, 2)))
    state = torch.randn(3, 2, 8)
    assert torch.equal(heads(state), state[:, -1:].expand(3, 4, 8))


def test_a_fingerprint_knows_its_target_in_any_precision() -> None:
    one, other = torch.randn(50, 16), torch.randn(50, 16)
    mine = fingerprint(one)
    for dtype in (torch.float64, torch.float16, torch.bfloat16):
        assert same_target(mine, fingerprint(one.to(dtype)))
    assert not same_target(mine, fingerprint(other))
    assert not same_target(mine, fingerprint(one + 0.3 * other))
    assert not same_target(mine, ())


def test_heads_of_another_target_are_refused_by_name() -> None:
    pair = tiny_pair()
    heads = medusa_for(pair, layers=(1,), target="theirs", hidden_size=8, vocab_size=16)
    stranger = sv.Pair(target=llama(16))
    stranger.target.name = "mine"
    with pytest.raises(HeadsError, match=r"trained for 'theirs' and do not fit 'mine': .* weights"):
        load_heads(heads, stranger, "medusa")
    heads.config = replace(heads.config, fingerprint=())  # unknown: shapes alone decide
    load_heads(heads, stranger, "medusa")


def spoil(folder: Path, how: str) -> None:
    """Do to a folder of heads what a stranger might have done."""
    config = json.loads((folder / "config.json").read_text())
    weights = load_file(folder / "model.safetensors")
    first = next(iter(weights))
    if how == "no config":
        (folder / "config.json").unlink()
    elif how == "not json":
        (folder / "config.json").write_text("{")
    elif how == "a list":
        (folder / "config.json").write_text("[]")
    elif how == "deep json":
        (folder / "config.json").write_text("[" * 100_000)
    elif how == "huge json":
        (folder / "config.json").write_text(" " * (1 << 21))
    elif how == "pickle":
        (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    elif how == "truncated":
        data = (folder / "model.safetensors").read_bytes()
        (folder / "model.safetensors").write_bytes(data[: len(data) // 2])
    elif how == "nan":
        weights[first][0] = float("nan")
        save_file(weights, folder / "model.safetensors")
    elif how == "shape":
        weights[first] = weights[first][:-1].contiguous()
        save_file(weights, folder / "model.safetensors")
    elif how == "extra":
        save_file({**weights, "more": torch.ones(1)}, folder / "model.safetensors")
    else:
        name, _, value = how.partition("=")
        config[name] = json.loads(value)
        if config[name] is None:
            del config[name]
        (folder / "config.json").write_text(json.dumps(config))


SPOILT = [
    ("no config", "no config.json"),
    ("not json", "not JSON"),
    ("a list", "must be a JSON object"),
    ("deep json", "not JSON"),
    ("huge json", "larger than"),
    ("pickle", "safetensors only"),
    ("truncated", "cannot be read"),
    ("nan", "not finite"),
    ("shape", "config.json implies"),
    ("extra", "'more' of shape"),
    ('kind="hydra"', "kind must be one of 'medusa', 'eagle', 'parallel', got 'hydra'"),
    ("kind=7", "kind must be one of"),
    ("kind=[]", "kind must be one of"),
    ("hidden_size=null", "lacks 'hidden_size'"),
    ("hidden_size=-1", "hidden_size must be a whole number"),
    ('hidden_size="32"', "hidden_size must be a whole number"),
    ("layers=2", "wrong type"),
    ("layers=[]", "layers must be rising"),
    ("layers=[2, 1]", "layers must be rising"),
    ('layers=["2"]', "layers"),
    ("heads=100000", "heads must be a whole number from 1 to 64"),
    ("blocks=2", "config.json implies"),
    ("blocks=true", "blocks must be a whole number"),
    ("fingerprint=[1.0]", "fingerprint must hold 64 numbers"),
    ("ranks=[[2.0]]", "ranks must"),
    ("target=3", "target must be the name"),
]


@pytest.mark.parametrize(("how", "says"), SPOILT)
def test_a_strangers_folder_is_refused_in_one_sentence(how: str, says: str, tmp_path: Path) -> None:
    pair = tiny_pair()
    save_heads(medusa_for(pair), tmp_path / "heads", "")
    spoil(tmp_path / "heads", how)
    with pytest.raises(HeadsError, match=says) as caught:
        load_heads(tmp_path / "heads", pair, "medusa")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"num_heads": 3}, "multiple of num_kv_heads"),
        ({"head_dim": 7}, "even"),
        ({"intermediate_size": 10**9}, "intermediate_size"),
        ({"num_heads": 1024, "head_dim": 1024}, "absurdly"),
        ({"eps": 0.0}, "eps must be a positive number"),
        ({"features": 1}, "features must be true or false"),
        ({"window": 0}, "window must be"),
    ],
)
def test_an_impossible_eagle_head_is_refused(change: dict[str, Any], says: str) -> None:
    config = eagle_for(tiny_pair()).config
    assert isinstance(config, EagleConfig)
    with pytest.raises(HeadsError, match=says):
        replace(config, **change)


def test_the_wrong_kind_is_refused(tmp_path: Path) -> None:
    pair = tiny_pair()
    save_heads(medusa_for(pair), tmp_path / "heads", "")
    with pytest.raises(HeadsError, match="are medusa heads, but eagle heads are needed"):
        load_heads(tmp_path / "heads", pair, "eagle")


def test_without_a_path_the_heads_lie_beside_the_bundled_pair(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = tiny_pair()
    for role in ("target", "draft"):
        (tmp_path / role).mkdir()
        (tmp_path / role / "config.json").write_text("{}")
    monkeypatch.setenv("SPECVIZ_BUNDLED", str(tmp_path))
    with pytest.raises(HeadsError, match="heads 'medusa': there is no config"):
        load_heads(None, pair, "medusa")
    save_heads(medusa_for(pair), tmp_path / "medusa", "")
    assert load_heads(None, pair, "medusa").config == medusa_for(pair).config
