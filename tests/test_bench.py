"""The benchmark measures what it says; no test here looks at a time."""

from __future__ import annotations

import pytest

import specviz as sv
from specviz.bench import (
    PLAIN,
    compare,
    table,
    time_long_texts,
    time_short_texts,
    time_tables,
)
from specviz.bench.__main__ import main
from specviz.core.tabular import TabularModel, TabularPair
from specviz.drafters.draft_model import DraftModel
from specviz.drafters.prompt_lookup import PromptLookup
from tests.decoding import families


@pytest.fixture(scope="module")
def pair() -> TabularPair:
    return TabularPair(
        TabularModel.random(6, 1, seed=0), TabularModel.random(6, 1, seed=1, name="draft")
    )


def test_every_way_has_a_row(pair: TabularPair) -> None:
    ways = {"draft": DraftModel(2), "lookup": PromptLookup(2)}
    rows = compare(pair, ways, prompts=[[0], [1]], tokens=20, turns=2)
    assert [row.name for row in rows] == [PLAIN, "draft", "lookup"]
    assert rows[0].tokens_per_pass == 1
    assert rows[0].alpha is None
    assert rows[0].gain == rows[0].cpu_gain == 1
    assert rows[1].tokens_per_pass > 1
    assert all(row.name in table(rows) for row in rows)


def test_a_draft_equal_to_its_target_emits_gamma_plus_one(pair: TabularPair) -> None:
    same = TabularPair(pair.target, pair.target)
    rows = compare(same, {"same": DraftModel(3)}, prompts=[[0]], tokens=20, turns=1)
    assert rows[1].tokens_per_pass == 4
    assert rows[1].alpha == pytest.approx(1)


def test_nothing_to_measure_is_refused(pair: TabularPair) -> None:
    with pytest.raises(ValueError, match="prompts must not be empty"):
        compare(pair, {}, prompts=[])


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
