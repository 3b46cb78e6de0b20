"""Recorded texts whose settings say more than is modelled, or that end ids were ignored."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import specviz as sv
from specviz.cli import main
from specviz.core.contract import UNMODELLED
from specviz.lossless import Recorded, Verdict
from specviz.lossless.audit.recorded_texts import sampling_of

COIN = sv.tabular.TabularModel([0.5, 0.3, 0.2], eos_ids=[2])


def records(settings: dict[str, Any], n: int = 400) -> list[str]:
    texts = np.random.default_rng(3).choice(3, size=(n, 4), p=[0.5, 0.3, 0.2])
    return [
        json.dumps({"prompt_ids": [0], "token_ids": text.tolist(), "settings": settings})
        for text in texts
    ]


@pytest.mark.parametrize("name", UNMODELLED)
def test_a_setting_that_is_not_modelled_is_named(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name}=.* is not modelled"):
        sampling_of({"temperature": 1.0, name: {"5": -3.0}})
    for neutral in (None,) if name.endswith("_token_id") else (None, 0, False, [], {}):
        sampling_of({name: neutral})


def test_token_0_is_a_token_and_a_neutral_factor_is_no_setting() -> None:
    with pytest.raises(ValueError, match="forced_bos_token_id=0"):
        sampling_of({"forced_bos_token_id": 0})
    sampling_of({"encoder_repetition_penalty": 1.0, "top_h": 1.0, "num_beams": 1})


def test_ignored_end_ids_are_no_end_ids(tmp_path: Path) -> None:
    ignored, heeded = tmp_path / "ignored.jsonl", tmp_path / "heeded.jsonl"
    ignored.write_text("\n".join(records({"ignore_eos": True})), "utf-8")
    heeded.write_text("\n".join(records({})), "utf-8")
    options: dict[str, Any] = {"target": COIN, "effect": 0.5, "progress": False}
    assert sv.audit(ignored, **options).verdict is Verdict.NO_DISCREPANCY_FOUND
    twin = sv.audit(heeded, **options)
    assert twin.verdict is Verdict.IMPOSSIBLE_TOKEN, "something follows an end"
    assert sv.audit(heeded, end_ids=[], **options).verdict is Verdict.NO_DISCREPANCY_FOUND
    mixed = tmp_path / "mixed.jsonl"
    mixed.write_text("\n".join(records({"ignore_eos": True}, 5) + records({}, 5)), "utf-8")
    with pytest.raises(ValueError, match="some of the texts were recorded with ignore_eos"):
        sv.audit(mixed, **options)


def test_the_command_line_exits_with_2_and_names_the_setting(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "texts.jsonl"
    file.write_text("\n".join(records({"presence_penalty": 0.5}, 5)), "utf-8")
    assert main(["audit", "--samples", str(file), "--bundled"]) == 2
    assert "presence_penalty=0.5" in capsys.readouterr().err
    file.write_text("\n".join(records({}, 5)), "utf-8")
    assert main(["audit", "--samples", str(file), "--bundled", "--end-ids", "2;7"]) == 2
    assert "--end-ids must be token ids" in capsys.readouterr().err


def test_a_setting_that_is_not_known_is_named() -> None:
    texts = [Recorded((0,), (i % 2,), {"temperature": 1.0, "foo": 1}) for i in range(400)]
    coin = sv.tabular.TabularModel([0.5, 0.5])
    assert "does not read: foo." in sv.audit(texts, target=coin).text
    known = [replace(text, settings={"temperature": 1.0, "seed": 3}) for text in texts]
    assert "does not read" not in sv.audit(known, target=coin).text
