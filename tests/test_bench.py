"""The benchmark measures what it says; no test here looks at a time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

import specviz as sv
from specviz.bench import (
    PLAIN,
    SPECULATIVE,
    Bench,
    Way,
    measure,
    pass_costs,
    time_long_texts,
    time_short_texts,
    time_tables,
)
from specviz.bench.__main__ import main
from specviz.bench.measure import ASSISTED, THEIRS, UNTRACED
from specviz.core.tabular import TabularModel, TabularPair
from specviz.drafters.prompt_lookup import PromptLookup
from tests.decoding import families


@pytest.fixture(scope="module")
def pair() -> TabularPair:
    return TabularPair(
        TabularModel.random(6, 1, seed=0), TabularModel.random(6, 1, seed=1, name="draft")
    )


def test_every_way_has_a_row(pair: TabularPair) -> None:
    found = measure(
        pair, gamma=2, drafters={"lookup": PromptLookup(2)}, prompts=[[0], [1]], tokens=20, turns=2,
        progress=False,
    )  # fmt: skip
    assert [way.name for way in found.ways] == [PLAIN, SPECULATIVE, "lookup", UNTRACED]
    plain, speculative = found.ways[:2]
    assert plain.tokens_per_pass == plain.gain == plain.low == plain.high == 1
    assert plain.alpha is None
    assert speculative.tokens_per_pass is not None and speculative.tokens_per_pass > 1
    assert all(way.name in str(found) for way in found.ways)
    assert "transformers generate: not measured, the target is a table" in str(found)


def test_a_draft_equal_to_its_target_emits_gamma_plus_one(pair: TabularPair) -> None:
    same = TabularPair(pair.target, pair.target)
    found = measure(same, gamma=3, drafters={}, tokens=20, turns=1, progress=False)
    assert found[SPECULATIVE].tokens_per_pass == 4
    assert found.alpha == pytest.approx(1)


def test_a_pair_of_networks_beside_transformers(tmp_path: Path) -> None:
    models = sv.Pair(*families.FAMILIES["llama"]())
    found = measure(models, gamma=2, prompts=[[1, 2, 3]], tokens=12, turns=1, progress=False)
    names = [way.name for way in found.ways]
    assert {PLAIN, THEIRS, ASSISTED, SPECULATIVE, UNTRACED, "early exit", "draft model, match"} <= {
        *names
    }
    assert found.left_out.keys() == {"medusa", "eagle", "parallel"}
    assert found.c is not None and found.c > 0
    assert (
        found.v[1] == 1 and {2, 3, 5} <= found.v.keys() and found.predicted.keys() == {*range(1, 5)}
    )
    found.save(tmp_path / "bench.json")
    found.plot(tmp_path / "bench.svg")
    saved = json.loads((tmp_path / "bench.json").read_text())
    assert saved["sentence"] == found.sentence and len(saved["ways"]) == len(names)
    assert SPECULATIVE in (tmp_path / "bench.svg").read_text()


def test_what_transformers_would_do_in_another_way_is_not_compared() -> None:
    target, draft = families.FAMILIES["llama"]()
    draft.model.to(torch.float64)
    models = sv.Pair(target, draft)
    found = measure(models, gamma=2, drafters={}, prompts=[[1]], tokens=6, turns=1, progress=False)
    assert ASSISTED not in [way.name for way in found.ways]
    assert "differ in device or precision" in found.left_out[ASSISTED]


def found_with(gain: float, c: float, v: float, alpha: float) -> Bench:
    ways = [
        Way(PLAIN, 1, 1, 1, 1, 1.0, 1.0),
        Way(SPECULATIVE, gain, gain, gain, gain, 1.0, 3.0, alpha),
    ]
    return Bench({"gamma": 4}, {}, ways, c, {1: 1.0, 5: v}, alpha, {4: 2.5, 5: 2.6})


def test_one_sentence_says_whether_it_pays() -> None:
    assert found_with(2.4, 0.05, 1.2, 0.8).sentence == (
        "Speculative decoding pays here, 2.40× (predicted 2.50×), because c = 0.05, v(5) = 1.20, "
        "alpha = 0.80; break-even alpha is 0.29."
    )
    lost = found_with(0.7, 0.5, 1.2, 0.3)
    assert lost.sentence.startswith("Speculative decoding does not pay here, 0.70×")
    assert "no alpha would break even" in found_with(0.5, 1.5, 1.2, 0.3).sentence
    assert lost.best_gamma == 5


def test_costs_of_passes(pair: TabularPair) -> None:
    c, v = pass_costs(pair, [0], gamma=3, passes=2)
    assert c is not None and c > 0 and v[1] == 1 and sorted(v) == [1, 2, 3, 4, 5, 7]
    alone = TabularPair(pair.target, None)
    assert pass_costs(alone, [0], gamma=3, passes=2)[0] is None


@pytest.mark.parametrize("wrong", [{"gamma": 0}, {"tokens": 0}, {"turns": 0}, {"prompts": []}])
def test_nothing_to_measure_is_refused(pair: TabularPair, wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(wrong))} must"):
        measure(pair, **wrong)


def test_the_texts_of_a_table_are_drawn_and_tested() -> None:
    timing = time_tables(2000, progress=False)
    assert (timing.texts, timing.length, timing.dtype) == (2000, 4, "float64")
    assert timing.verdict == "NO_DISCREPANCY_FOUND"
    assert "2,000 texts of 4 tokens, float64" in str(timing)


def test_a_rule_that_is_wrong_is_seen_in_the_texts_that_are_timed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("specviz.decoding.replicas.vectorised_rejection.residual", lambda p, q: p)
    assert time_tables(20_000, progress=False).verdict == "DISCREPANCY"


def test_the_texts_of_a_pair_are_drawn() -> None:
    target, draft = families.FAMILIES["llama"]()
    models = sv.Pair(target=target, draft=draft)
    for timing in (
        time_short_texts(models, 20, length=3, prompt=[1, 2], progress=False),
        time_long_texts(models, 4, length=9, prompt=[1, 2], progress=False),
    ):
        assert timing.dtype == "float32"
        assert timing.verdict == ""
        assert timing.drawing > 0


def test_the_command_measures_replicas_on_request(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replicas", "--tables", "500", "--short", "0", "--long", "0"]) == 0
    said = capsys.readouterr().out
    assert "torch threads" in said
    assert "500 texts of 4 tokens" in said
