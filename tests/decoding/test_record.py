"""From a round to its rows: every number against the distributions themselves,
in memory that is bounded.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import specviz as sv
from specviz.core.rules import residual
from specviz.core.tabular import TabularModel, TabularPair
from specviz.core.trace.columns import NODES, ROUNDS, Columns
from specviz.core.trace.trace import Trace
from specviz.decoding.record import entropy, most_likely
from tests.lossless.planted import Siblings

VOCAB = 30


def pair_of(vocab_size: int = VOCAB) -> TabularPair:
    target = TabularModel.random(vocab_size, 1, seed=0, concentration=0.2)
    other = TabularModel.random(vocab_size, 1, seed=1, concentration=0.2)
    return TabularPair(target, TabularModel(0.7 * target.table + 0.3 * other.table))


def traced(**options: Any) -> Trace:
    options = {"gamma": 3, "k": 4, "full_distributions": True, "max_new_tokens": 40, **options}
    if "drafter" in options:
        del options["gamma"]
    return sv.generate(pair_of(), [0, 1], progress=False, **options)


# -- numbers --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [{}, {"verify": "match"}, {"drafter": Siblings()}],
    ids=["rejection", "match", "siblings"],
)
def test_every_number_of_a_node_is_that_of_its_distributions(options: dict[str, Any]) -> None:
    trace = traced(**options)
    table = trace.node_table
    assert len(table) > 20
    for i in range(len(table)):
        at = {name: table[name][i] for name in table.names}
        p, q, x = at["full_p"], at["full_q"], at["token"]
        known = at["top_ids"] >= 0
        ids = at["top_ids"][known]
        best = set(np.argsort(-p, kind="stable")[:4]) | set(np.argsort(-q, kind="stable")[:4])
        likely = {token for token in best if p[token] > 0 or q[token] > 0} | {x}
        assert set(ids.tolist()) == likely
        assert at["p"] == p[x] and at["q"] == q[x]
        assert at["overlap"] == pytest.approx(np.minimum(p, q).sum(), abs=1e-12)
        np.testing.assert_array_equal(at["top_p"][known], p[ids])
        np.testing.assert_array_equal(at["top_q"][known], q[ids])
        below = np.concatenate([[0.0], np.cumsum(q)])[ids]
        np.testing.assert_allclose(at["top_q_cdf"][known], below, atol=1e-12)
        off = np.setdiff1d(np.arange(VOCAB), ids)
        for side, where in (("above", p[off] > q[off]), ("below", p[off] <= q[off])):
            assert at[f"tail_p_{side}"] == pytest.approx(p[off][where].sum(), abs=1e-12)
            assert at[f"tail_q_{side}"] == pytest.approx(q[off][where].sum(), abs=1e-12)
        for distribution, name in ((p, "entropy_p"), (q, "entropy_q")):
            mass = distribution[distribution > 0]
            assert at[name] == pytest.approx(-(mass * np.log(mass)).sum(), abs=1e-5)
        listed = at["residual_ids"] >= 0
        left = residual(p, q)
        np.testing.assert_allclose(
            at["residual_p"][listed], left[at["residual_ids"][listed]], atol=1e-6
        )
        assert np.all(np.diff(at["residual_p"][listed]) <= 0)


def test_a_later_sibling_is_judged_by_the_residual_of_the_earlier() -> None:
    trace = traced(drafter=Siblings())
    seen = 0
    for this in trace.rounds:
        where = trace.node_slice(this.index)
        p, q = trace.node_table["full_p"][where], trace.node_table["full_q"][where]
        first, second = (
            (node.index for node in this.nodes if node.parent == -1)
            if (len(this.nodes) > 1)
            else (0, 0)
        )
        if second:
            np.testing.assert_allclose(p[second], residual(p[first], q[first]), atol=1e-12)
            seen += 1
    assert seen > 5


def test_the_closing_token_is_on_record_with_its_distribution() -> None:
    trace = traced()
    kinds = set()
    for this in trace.rounds:
        distribution = trace.round_table["full_closing"][this.index]
        closing = this.closing
        kinds.add(closing.kind)
        assert closing.p == distribution[closing.token] > 0
        assert closing.choice.cdf_lo == pytest.approx(
            distribution[: closing.token].sum(), abs=1e-12
        )
        assert closing.choice.cdf_lo <= closing.choice.u * closing.choice.mass
        assert closing.choice.u * closing.choice.mass < closing.choice.cdf_hi
        if closing.kind == "correction":
            node = next(n for n in this.nodes if n.verdict == "rejected")
            where = trace.node_slice(this.index).start + node.index
            p, q = (trace.node_table[name][where] for name in ("full_p", "full_q"))
            np.testing.assert_allclose(distribution, residual(p, q), atol=1e-12)
    assert kinds >= {"correction", "bonus"}


def test_verdicts_u_and_choices_are_those_of_the_run() -> None:
    trace = traced()
    for this in trace.rounds:
        n = len(this.path)
        words = [node.verdict for node in this.nodes]
        stop = ["rejected"] + ["never examined"] * len(words)
        assert words == ["accepted"] * n + stop[: len(words) - n]
        for node in this.nodes:
            assert 0 < node.u < 1, "also where nobody looked at it"
            assert node.choice.how == "inverse CDF"
            if node.verdict != "never examined":
                assert (node.u < node.acceptance) == node.accepted
            assert node.acceptance == pytest.approx(min(1, node.p / node.q))


def test_under_match_the_targets_own_token_is_on_record() -> None:
    trace = traced(verify="match")
    for this in trace.rounds:
        for node in this.nodes:
            if node.verdict == "never examined":
                assert node.own_token == -1
            else:
                assert (node.own_token == node.token) == node.accepted
                assert node.own.time <= node.own.second
        assert this.closing.choice.how == "race"


def test_greedy_choices_are_one_hot_and_drawn_from_nothing() -> None:
    trace = traced(temperature=0)
    assert (trace.node_table["q"] == 1).all() and (trace.node_table["q_draw"] == 0).all()
    assert np.isnan(trace.node_table["u"]).all() and np.isnan(trace.node_table["q_u"]).all()
    assert (trace.node_table["overlap"] == trace.node_table["p"]).all()


def test_times_and_texts_are_on_record() -> None:
    trace = traced()
    for name in ("draft_seconds", "verify_seconds", "other_seconds"):
        assert (trace.round_table[name] >= 0).all()
    for name in ("top_ids", "residual_ids", "token"):
        assert set(np.unique(trace.node_table[name])) - {-1} <= trace.strings.keys()
    assert set(trace.round_table["closing_ids"].ravel().tolist()) - {-1} <= trace.strings.keys()


# -- memory ---------------------------------------------------------------------------------------


def bytes_per_row(trace: Trace) -> tuple[float, float]:
    def of(table: Columns) -> float:
        return sum(table[name].nbytes for name in table.names) / len(table)

    return of(trace.node_table), of(trace.round_table)


def test_a_proposal_takes_about_a_kilobyte_whatever_the_vocabulary() -> None:
    sizes = set()
    for vocab_size in (12, 40, 300):
        trace = sv.generate(
            pair_of(vocab_size), [0], gamma=3, k=10, max_new_tokens=20, progress=False
        )
        per_node, per_round = bytes_per_row(trace)
        assert per_node <= 1024 and per_round <= 512
        sizes.add((per_node, per_round))
    assert len(sizes) == 1


def test_every_column_is_written() -> None:
    """What says nothing in one run says something in another."""
    runs = [traced(), traced(verify="match"), traced(verify="coupled"), traced(temperature=0)]
    for schema, table in ((NODES, "node_table"), (ROUNDS, "round_table")):
        for name, column in schema.items():
            values = [getattr(trace, table)[name] for trace in runs]
            said = [v[~np.isnan(v)] if v.dtype.kind == "f" else v[v != column.fill] for v in values]
            assert any(len(v) for v in said), f"{name} never says anything"


@pytest.mark.parametrize(
    "options",
    [{}, {"verify": "match"}, {"drafter": Siblings()}, {"gamma": 0}, {"temperature": 0.0}],
)
def test_rounds_recorded_together_are_as_recorded_one_by_one(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    together = traced(**options)
    monkeypatch.setattr("specviz.api.generate.AT_ONCE", 1)
    assert len(together) > 8 and traced(**options).same_as(together)


# -- small parts ----------------------------------------------------------------------------------


def test_most_likely_takes_the_first_of_equals_and_no_zeros() -> None:
    distributions = np.array([[0.2, 0.3, 0.2, 0.3, 0.0], [0.0, 0.0, 1.0, 0.0, 0.0]])
    assert most_likely(distributions, 3).tolist() == [[1, 3, 0], [2, -1, -1]]
    assert most_likely(distributions, 7).tolist() == [[1, 3, 0, 2, -1, -1, -1], [2, *[-1] * 6]]


def test_entropy_of_certainty_is_zero() -> None:
    found = entropy(np.array([[1.0, 0.0], [0.5, 0.5]]))
    assert found.tolist() == [0.0, pytest.approx(np.log(2))]
    assert not np.signbit(found).any()
