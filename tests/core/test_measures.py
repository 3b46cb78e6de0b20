"""Measures: the golden conventions, identities, trees, texts that end in mid-round, no NaN."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

import specviz as sv
from specviz.core.tabular import TabularModel, TabularPair
from specviz.core.trace.measures import (
    CONVENTIONS,
    Measure,
    Measures,
    measures,
    run_length_metrics,
    show,
)
from specviz.core.trace.trace import Trace
from tests.core.golden import GOLDEN, distribution, number
from tests.core.handmade import NEVER, add_round, decoded, empty, one_of_each

RUNS = GOLDEN["run_length_metrics"]
PER_POSITION = ("acceptance_by_position", "acceptance_by_position_given_examined")


def of_runs(runs: list[int], gamma: int) -> Trace:
    """A trace of chains that accepted so many of gamma proposals."""
    trace = empty()
    for run in runs:
        add_round(trace, [1] * gamma, path=range(run), closing=2)
    return trace


def value(trace: Trace, name: str) -> Any:
    return trace.measures()[name].value


# -- the golden conventions -----------------------------------------------------------------------

NAMES = {
    "mean_accepted": "mean_accepted",
    "tokens_per_target_pass": "tokens_per_pass",
    "accepted_over_proposed": "accepted_per_proposed",
    "accepted_over_examined": "accepted_per_examined",
    "rate_by_position_unconditional": "acceptance_by_position",
    "rate_by_position_given_examined": "acceptance_by_position_given_examined",
}


@pytest.mark.parametrize("golden", NAMES)
def test_golden_conventions(golden: str) -> None:
    expected = pytest.approx(RUNS[golden], abs=1e-6)
    found = run_length_metrics(RUNS["accepted_runs"], RUNS["gamma"])
    assert found[NAMES[golden]] == expected
    assert value(of_runs(RUNS["accepted_runs"], RUNS["gamma"]), NAMES[golden]) == expected


def test_the_conventions_differ() -> None:
    """Accepted / proposed, accepted / examined and the two of tokens: no two agree here."""
    found = run_length_metrics([3, 2, 1, 0], 3)
    numbers = [found[n] for n in NAMES.values() if n not in PER_POSITION]
    assert len(set(numbers)) == 4


def test_histogram_identities() -> None:
    for trace in (of_runs([3, 2, 1, 0, 0, 3], 3), one_of_each(), decoded()):
        lengths = value(trace, "accepted_lengths")
        assert lengths.sum() == len(trace) == value(trace, "passes")
        assert lengths @ np.arange(len(lengths)) == value(trace, "accepted")
        assert value(trace, "block_efficiency") == pytest.approx(1 + value(trace, "mean_accepted"))
    assert value(of_runs([3, 2, 1, 0, 0, 3], 3), "accepted_lengths").tolist() == [2, 1, 1, 2]


@pytest.mark.parametrize("options", [{}, {"verify": "match"}, {"temperature": 0.0}, {"gamma": 1}])
def test_run_lengths_alone_say_the_same_of_a_chain(options: dict[str, Any]) -> None:
    trace = decoded(**options)
    runs = [sum(node.accepted for node in r.nodes) for r in trace.rounds]
    found = run_length_metrics(runs, [len(r.nodes) for r in trace.rounds])
    found["block_efficiency"] = found.pop("tokens_per_pass")
    for name, expected in found.items():
        assert value(trace, name) == pytest.approx(expected), name


def test_block_verification_examines_every_proposal() -> None:
    trace = decoded(verify="block")
    assert value(trace, "examined") == value(trace, "proposed")
    assert value(trace, "accepted_per_examined") == value(trace, "accepted_per_proposed")


def test_rounds_may_propose_different_numbers() -> None:
    found = run_length_metrics([2, 0, 1, 0], [2, 1, 4, 0])
    assert found["accepted_per_proposed"] == pytest.approx(3 / 7)
    assert found["accepted_per_examined"] == pytest.approx(3 / 5)
    assert found["acceptance_by_position"] == pytest.approx([2 / 3, 1 / 2, 0, 0])
    assert found["acceptance_by_position_given_examined"] == pytest.approx([2 / 3, 1 / 2])
    assert found["accepted_lengths"].tolist() == [2, 1, 1, 0, 0]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("accepted", "proposed"), [([4], 3), ([-1], 3), ([[1]], 3), ([1, 2], [3, 1])]
)
def test_impossible_run_lengths_are_refused(accepted: Any, proposed: Any) -> None:
    with pytest.raises(ValueError, match="each from 0 to what its round proposed"):
        run_length_metrics(accepted, proposed)


# -- alpha ----------------------------------------------------------------------------------------


def test_alpha_is_taken_where_the_verdict_looked() -> None:
    trace = empty()
    add_round(trace, [1, 2, 3], path=[0], closing=4, overlap=[0.9, 0.5, 0.1])
    found = trace.measures()["alpha"]
    assert found.value == pytest.approx(0.7)  # .9 accepted, .5 rejected, .1 never examined
    assert found.count == 2


def test_alpha_is_the_overlap_of_the_two_models() -> None:
    """The same p and q in every context: alpha is sum min(p, q), whatever was drawn."""
    one = GOLDEN["one_position"]
    pair = TabularPair(TabularModel(distribution(one["p"])), TabularModel(distribution(one["q"])))
    trace = sv.generate(pair, [0], gamma=3, max_new_tokens=40, seed=1, progress=False)
    assert value(trace, "alpha") == pytest.approx(number(one["alpha"]), abs=1e-12)


def test_alpha_over_all_proposals_would_be_another_number() -> None:
    table = decoded(tokens=40).node_table
    looked_at = table["verdict"] != NEVER
    assert value(decoded(tokens=40), "alpha") == pytest.approx(table["overlap"][looked_at].mean())
    assert table["overlap"].mean() != pytest.approx(table["overlap"][looked_at].mean(), abs=1e-3)


# -- trees, plain rounds, ends --------------------------------------------------------------------


def test_a_tree_counts_nodes_and_its_path() -> None:
    trace = empty()
    add_round(
        trace, [1, 2, 3, 4, 5, 6], parent=[-1, -1, 1, 1, 3, 0], path=[1, 3], rejected=[0, 2, 4],
        closing=6, overlap=[0.5, 0.01, 0.4, 0.02, 0.3, 0.9],
    )  # fmt: skip
    found = {name: measure.value for name, measure in trace.measures().items()}
    assert (found["proposed"], found["examined"], found["accepted"]) == (6, 5, 2)
    assert (found["mean_accepted"], found["tokens_per_pass"]) == (2, 3)
    assert found["accepted_per_proposed"] == pytest.approx(2 / 6)
    assert found["accepted_per_examined"] == pytest.approx(2 / 5)
    assert found["acceptance_by_position"].tolist() == [1, 1, 0]
    assert found["acceptance_by_position_given_examined"].tolist() == [1, 1, 0]
    assert found["accepted_lengths"].tolist() == [0, 0, 1, 0]
    assert found["alpha"] == pytest.approx((0.5 + 0.4 + 0.3) / 3)  # first candidates: 0, 2, 4


def test_first_candidates_are_told_apart_across_many_rounds() -> None:
    trace = empty()
    for _ in range(30):  # more rounds than nodes: indices of rounds and of nodes must not mix
        add_round(trace, closing=1)
    add_round(trace, [1, 2], parent=[-1, -1], path=[1], rejected=[0], closing=3, overlap=[0.5, 0.1])
    add_round(trace, [1, 2], parent=[-1, 0], path=[0, 1], closing=3, overlap=[0.7, 0.9])
    assert value(trace, "alpha") == pytest.approx((0.5 + 0.7 + 0.9) / 3)


def test_a_text_that_ends_in_mid_round_keeps_its_verdicts() -> None:
    trace = empty()
    add_round(trace, [1, 2, 3], path=[0], closing=4)  # emits 2
    add_round(trace, [1, 2, 3], path=[0, 1, 2], closing=4, emitted=1)  # a stop: emits 1 of 4
    found = {name: measure.value for name, measure in trace.measures().items()}
    assert (found["accepted"], found["tokens"]) == (4, 3)
    assert found["mean_accepted"] == 2
    assert found["tokens_per_pass"] == 1.5
    assert found["block_efficiency"] == 3
    assert found["accepted_lengths"].tolist() == [0, 1, 0, 1]


def test_plain_rounds_have_no_acceptance_and_count_as_passes() -> None:
    trace = decoded(gamma=0, tokens=7)
    found = {name: measure.value for name, measure in trace.measures().items()}
    assert (found["passes"], found["tokens"], found["tokens_per_pass"]) == (7, 7, 1)
    assert found["accepted_lengths"].tolist() == [7]
    for name in ("alpha", "accepted_per_proposed", "accepted_per_examined", "draft_cost"):
        assert found[name] is None
    for name in PER_POSITION:
        assert found[name].tolist() == []
    mixed = empty()
    add_round(mixed, closing=1)
    add_round(mixed, [1, 2], path=[0, 1], closing=3)
    assert value(mixed, "acceptance_by_position").tolist() == [1, 1]
    assert value(mixed, "mean_accepted") == 1


@pytest.mark.parametrize("make", [empty, one_of_each, decoded, lambda: decoded(gamma=0, tokens=3)])
def test_nothing_is_ever_nan(make: Any) -> None:
    found = measures(make())
    assert list(found) == list(CONVENTIONS)
    for measure in found.values():
        if measure.value is not None:
            assert np.isfinite(measure.value).all()
        assert measure.convention
        assert np.all(np.asarray(measure.count) >= 0)


def test_ten_thousand_rounds_at_once() -> None:
    """Columns are read whole: the count of each measure is exact at any size."""
    trace, n = empty(), 10_000
    chain = {"token": 1, "parent": np.tile([-1, 0, 1, 2], n), "overlap": 0.5}
    verdict = {"verdict": np.tile([1, 1, 2, 0], n), "emitted": np.tile([1, 1, 0, 0], n)}
    trace.node_table.append(4 * n, {**chain, **verdict})
    trace.round_table.append(n, {"nodes": 4, "emitted": 3, "closing_emitted": 1})
    assert value(trace, "tokens") == 3 * n
    assert value(trace, "acceptance_by_position").tolist() == [1, 1, 0, 0]
    assert value(trace, "acceptance_by_position_given_examined").tolist() == [1, 1, 0]
    assert trace.measures()["acceptance_by_position_given_examined"].count.tolist() == [n] * 3  # type: ignore[union-attr]


# -- times ----------------------------------------------------------------------------------------


def test_draft_cost_leaves_out_the_first_round_and_plain_ones() -> None:
    trace = empty()
    add_round(trace, [1, 2], path=[], closing=3, seconds=(50.0, 70.0, 1.0))  # reads the prompt
    add_round(trace, [1, 2], path=[], closing=3, seconds=(0.2, 1.0, 0.1))
    add_round(trace, closing=3, seconds=(0.0, 9.0, 0.1))
    add_round(trace, [1, 2, 3], path=[], closing=3, seconds=(0.3, 3.0, 0.1))
    found = trace.measures()
    assert found["draft_cost"].value == pytest.approx(0.1 / 2.0)
    assert found["draft_cost"].count == 2
    assert found["draft_seconds"].value == pytest.approx(50.5)
    assert found["verify_seconds"].value == pytest.approx(83.0)
    assert found["other_seconds"].value == pytest.approx(1.3)


def test_times_that_were_not_taken_are_none() -> None:
    trace = empty()
    for _ in range(3):
        add_round(trace, [1], path=[0], closing=3, seconds=(np.nan, np.nan, np.nan))
    for name in ("draft_seconds", "verify_seconds", "other_seconds", "draft_cost"):
        assert value(trace, name) is None


# -- how they show --------------------------------------------------------------------------------


def test_an_unknown_name_names_those_there_are() -> None:
    with pytest.raises(
        KeyError, match="no measure 'acceptance_rate'; there are alpha, accepted_per"
    ):
        _ = one_of_each().measures()["acceptance_rate"]


def test_repr_is_an_aligned_table() -> None:
    found = one_of_each().measures()
    lines = repr(found).splitlines()
    starts = [line for line in lines if not line.startswith(" ")]
    assert [line.split()[0] for line in starts] == list(found)
    column = starts[0].index("mean of sum min(p, q)")
    assert all(line[column - 2 : column] == "  " and line[column] != " " for line in lines)
    assert all(len(line) <= 110 for line in lines)
    assert "nan" not in repr(found)
    joined = " ".join(line[column:].strip() for line in lines)
    assert all(measure.convention in joined for measure in found.values())


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        (None, "–"), (0.123456, ".123"), (12_345, "12,345"), (np.array([], dtype=float), "–"),
        (np.arange(3), "0 1 2"), (np.arange(12), "0 1 2 3 4 5 6 7 …"), 
        (np.array([0.5, 1]), ".500 1"),
    ],
)  # fmt: skip
def test_a_value_as_text(shown: Any, text: str) -> None:
    assert show(shown) == text


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.seen.add(tag)

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def test_html_is_a_table_with_everything_escaped() -> None:
    bad = "</td><script>alert(1)</script>"
    parsed = Tags()
    parsed.feed(
        Measures([Measure(bad, 1.0, bad, 1), Measure("fine", None, "a < b", 0)])._repr_html_()
    )
    assert parsed.seen == {"table", "thead", "tbody", "tr", "th", "td"}
    assert parsed.text.count(bad) == 2 and "a < b" in parsed.text
