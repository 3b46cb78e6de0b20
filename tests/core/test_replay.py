"""``trace.check()``: what was decoded follows, and no recorded number can be changed unnoticed."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

import specviz as sv
from specviz.core.draws import Sampler
from specviz.core.rules import RULES
from specviz.core.tabular import TabularModel, TabularPair
from specviz.core.trace.columns import TIMES
from specviz.core.trace.replay import CONSISTENT, CONTRADICTS, FOLLOWS
from specviz.core.trace.trace import Trace
from tests.core.ways import changed, changes, copied
from tests.lossless.planted import WRONG_RULES, Siblings

EXACT_RULES = ["rejection", "match", "coupled", "greedy", "block"]
VOCAB = 24


@cache
def decoded(rule: str, *, full: bool, drafter: str = "chain", seed: int = 3) -> Trace:
    """A run with every kind of round; four of 24 alternatives are kept."""
    target = TabularModel.random(VOCAB, 1, seed=0, concentration=0.1)
    other = TabularModel.random(VOCAB, 1, seed=1, concentration=0.1)
    pair = TabularPair(target, TabularModel(0.8 * target.table + 0.2 * other.table))
    how: dict[str, Any] = {"gamma": 2} if drafter == "chain" else {"drafter": Siblings()}
    trace = sv.generate(
        pair, [0, 1], verify=rule, temperature=0.0 if rule == "greedy" else 1.0, seed=seed,
        max_new_tokens=24, k=4, full_distributions=full, progress=False, **how,
    )  # fmt: skip
    kinds = set(trace.round_table["closing_kind"].tolist())
    assert {1, 2} <= kinds, "a correction and a bonus: else little is tested"
    return trace


# -- what follows ---------------------------------------------------------------------------------


@pytest.mark.parametrize("full", [True, False], ids=["full distributions", "top distributions"])
@pytest.mark.parametrize("rule", EXACT_RULES)
def test_a_decoded_trace_follows(rule: str, full: bool) -> None:
    replay = decoded(rule, full=full).check()
    assert replay.ok, replay
    assert replay.counts[FOLLOWS] > 50
    if full:
        assert replay.counts[CONSISTENT] == 0, "with full distributions nothing is left open"


@pytest.mark.parametrize("full", [True, False], ids=["full distributions", "top distributions"])
@pytest.mark.parametrize("rule", ["rejection", "match"])
def test_a_tree_follows(rule: str, full: bool) -> None:
    trace = decoded(rule, full=full, drafter="siblings")
    assert not all(this.is_chain for this in trace.rounds)
    replay = trace.check()
    assert replay.ok, replay
    if full:
        assert replay.counts[CONSISTENT] == 0


@pytest.mark.filterwarnings("ignore::specviz.api.arguments.LossyWarning")
@pytest.mark.parametrize("name", ["typical", "threshold", "lenience"])
def test_a_lossy_rule_is_replayed_too(name: str) -> None:
    replay = decoded(name, full=True).check()
    assert replay.ok and replay.counts[CONSISTENT] == 0


def test_target_only_follows() -> None:
    pair = TabularPair(TabularModel.random(VOCAB, 1, seed=0))
    replay = sv.generate(pair, [0], gamma=0, max_new_tokens=9, full_distributions=True).check()
    assert replay.ok and replay.counts[CONSISTENT] == 0


def test_a_text_that_is_cut_in_mid_round_follows() -> None:
    target = TabularModel.random(6, 1, seed=2, eos_ids=[5])
    pair = TabularPair(target, TabularModel(target.table))
    cut = 0
    for seed in range(20):
        trace = sv.generate(pair, [0], gamma=4, seed=seed, full_distributions=True, progress=False)
        assert trace.check().ok
        cut += int(trace.round_table["closing_emitted"][-1] == 0)
    assert cut > 0, "some text must have ended within an accepted run"


def test_without_a_seed_the_draws_are_taken_as_recorded() -> None:
    trace = copied(decoded("match", full=True))
    del trace.meta["seed"]
    replay = trace.check()
    assert replay.ok and replay.counts[CONSISTENT] > 0


# -- what does not --------------------------------------------------------------------------------

# Nothing else in a trace says what these should have been.
UNDETERMINED = {"gamma", "draft_proposed", *TIMES}


def all_columns() -> list[tuple[str, str]]:
    trace = decoded("rejection", full=True)
    tables = {"node_table": trace.node_table, "round_table": trace.round_table}
    return [
        (table, name)
        for table, columns in tables.items()
        for name in columns.names
        if name not in UNDETERMINED
    ]


@pytest.mark.parametrize(("table", "name"), all_columns())
def test_any_changed_number_is_noticed(table: str, name: str) -> None:
    """Each column, under the four rules that make up its meaning,
    distributions are kept in full.
    """
    tried = 0
    for rule in ("rejection", "match", "coupled", "greedy"):
        trace = decoded(rule, full=True)
        for row, entry, value in changes(getattr(trace, table)[name], name, 2, last=False):
            replay = changed(trace, table, name, row, entry, value).check()
            assert not replay.ok, f"{rule}: {name}[{row}, {entry}] = {value} went unnoticed"
            tried += 1
    assert tried > 0


@pytest.mark.parametrize("name", ["u", "verdict", "q_cdf_lo", "token", "full_p", "full_q"])
def test_a_changed_number_in_a_tree_is_noticed(name: str) -> None:
    trace = decoded("rejection", full=True, drafter="siblings")
    for row, entry, value in changes(trace.node_table[name], name, 2, last=False):
        assert not changed(trace, "node_table", name, row, entry, value).check().ok


@pytest.mark.parametrize("rule", ["rejection", "match", "coupled"])
@pytest.mark.parametrize("key", ["seed", "sequence"])
def test_another_seed_or_sequence_contradicts(rule: str, key: str) -> None:
    trace = copied(decoded(rule, full=False))
    trace.meta[key] += 1
    replay = trace.check()
    assert not replay.ok
    assert replay.counts[CONTRADICTS] > len(trace) // 2


@pytest.mark.parametrize(("made", "claimed"), [("rejection", "match"), ("match", "rejection")])
def test_another_rule_contradicts(made: str, claimed: str) -> None:
    trace = copied(decoded(made, full=False))
    trace.meta["rule"] = claimed
    assert not trace.check().ok


def test_an_unknown_rule_is_named() -> None:
    trace = copied(decoded("rejection", full=False))
    trace.meta["rule"] = "wishful"
    with pytest.raises(ValueError, match="rule 'wishful', which this version does not know"):
        trace.check()


def test_what_does_not_follow_is_said_with_its_round() -> None:
    trace = copied(decoded("rejection", full=False))
    row = 4
    where = trace.node_slice(row)
    u = trace.node_table["u"].copy()
    u[where.start] = 1 - u[where.start]
    trace.node_table.replace("u", u)
    replay = trace.check()
    assert {finding.round for finding in replay.contradictions} == {row}
    assert f"round {row}: verdict 0: does not follow" in repr(replay)


def test_a_record_without_structure_is_one_contradiction() -> None:
    trace = changed(decoded("rejection", full=False), "round_table", "nodes", 0, 0, 9)
    (finding,) = trace.check().contradictions
    assert finding.subject == "structure"


# -- a rule or a sampler that is wrong ------------------------------------------------------------


def wrong_run(patch: pytest.MonkeyPatch, change: Callable[[pytest.MonkeyPatch], None]) -> Trace:
    with patch.context() as inside:
        change(inside)
        target = TabularModel.random(VOCAB, 1, seed=0)
        pair = TabularPair(target, TabularModel.random(VOCAB, 1, seed=1))
        return sv.generate(
            pair, [0], gamma=3, max_new_tokens=60, full_distributions=True, progress=False
        )


def test_a_run_of_a_wrong_rule_does_not_follow(monkeypatch: pytest.MonkeyPatch) -> None:
    # a bonus is on record with the distribution that the rule says it drew from, and with no other
    corrections = {name: rule for name, rule in WRONG_RULES.items() if "bonus" not in name}
    for name, rule in corrections.items():
        trace = wrong_run(monkeypatch, lambda p, rule=rule: p.setitem(RULES, "rejection", rule))
        assert not trace.check().ok, name


def test_a_uniform_that_is_stuck_does_not_follow(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = wrong_run(monkeypatch, lambda p: p.setattr(Sampler, "uniform", lambda self, *key: 0.25))
    assert not trace.check().ok
