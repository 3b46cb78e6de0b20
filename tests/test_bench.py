"""The benchmark measures what it says; no test here looks at a time."""

from __future__ import annotations

import pytest

from specviz.bench import PLAIN, compare, table
from specviz.core.tabular import TabularModel, TabularPair
from specviz.drafters.draft_model import DraftModel
from specviz.drafters.prompt_lookup import PromptLookup


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
