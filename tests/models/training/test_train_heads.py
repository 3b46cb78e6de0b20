"""Heads and a draft for a target of your own: trained, resumed, used; bad input refused."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest

import specviz as sv
from specviz.models.heads import load_heads
from specviz.models.training.train_heads import train_heads
from tests.models.tiny import byte_level
from tests.models.training.test_heads_training import tiny_target


@cache
def own_pair() -> sv.Pair:
    tokenizer = byte_level()
    return sv.Pair(target=tiny_target(len(tokenizer), 32), tokenizer=tokenizer)


WORDS = "the quick brown fox said a word, and another, and a third. "


def test_heads_and_a_draft_for_a_target_of_your_own(tmp_path: Path) -> None:
    pair, text, out = own_pair(), tmp_path / "text.txt", tmp_path / "out"
    text.write_text(WORDS * 20)
    kinds = ("medusa", "eagle", "parallel", "draft")

    def broken(*_: Any) -> None:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("specviz.models.training.train_heads.write_draft", broken)
        train_heads(pair, text, out, kinds=kinds, steps=3)
    written = (out / "eagle" / "model.safetensors").stat().st_mtime_ns
    with pytest.raises(ValueError, match="unfinished work with another steps"):
        train_heads(pair, text, out, kinds=kinds, steps=4)
    made = train_heads(pair, text, out, kinds=kinds, steps=3)
    assert made == {kind: out / kind for kind in kinds}
    assert (out / "eagle" / "model.safetensors").stat().st_mtime_ns == written  # not done twice
    assert sorted(path.name for path in out.iterdir()) == ["draft", "eagle", "medusa", "parallel"]
    for kind in kinds:
        assert "held-out text" in (out / kind / "README.md").read_text()
    parallel = sv.Parallel(2, heads=out / "parallel")
    for drafter in (sv_medusa(out / "medusa"), sv_eagle(out / "eagle"), parallel):
        trace = sv.generate(pair, "the fox", drafter=drafter, max_new_tokens=8, temperature=0)
        plain = sv.generate(pair, "the fox", gamma=0, max_new_tokens=8, temperature=0)
        assert trace.tokens.tolist() == plain.tokens.tolist()
    assert load_heads(out / "medusa", pair, "medusa").config.ranks
    draft = sv.load(out / "draft").target
    assert draft.model.config.num_hidden_layers == 1
    with pytest.raises(ValueError, match="already has 'medusa'"):
        train_heads(pair, text, out, kinds=kinds, steps=3)


def sv_medusa(folder: Path) -> Any:
    from specviz.drafters.medusa import Medusa

    return Medusa(folder, tree=(2, 1))


def sv_eagle(folder: Path) -> Any:
    from specviz.drafters.eagle import Eagle

    return Eagle(folder, gamma=2)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"kinds": ["hydra"]}, "kinds must be a list of names out of"),
        ({"kinds": []}, "kinds must be a list of names out of"),
        ({"steps": 0}, "steps must be a whole number >= 1"),
        ({"seed": -1}, "seed must be a whole number from 0"),
        ({"text": "missing.txt"}, "text must be a text file"),
        ({"text": "latin.txt"}, "is not UTF-8 at byte 1"),
        ({"text": "short.txt"}, "at least 257 are needed"),
        ({"out": "short.txt"}, "out must be a folder"),
    ],
)
def test_what_cannot_be_trained_on_is_refused_before_any_model_runs(
    change: dict[str, Any], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("text.txt").write_text(WORDS * 20)
    Path("latin.txt").write_bytes(b"a\xff")
    Path("short.txt").write_text("too short")
    pair = own_pair()
    monkeypatch.setattr(type(pair.target.model), "forward", lambda *_: pytest.fail("it ran"))
    arguments = {"text": "text.txt", "out": "out", **change}
    with pytest.raises(ValueError, match=says):
        train_heads(pair, arguments.pop("text"), arguments.pop("out"), **arguments)
    assert not Path("out").exists()
