"""Settings that the record contradicts, and settings of a type that no run has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import specviz as sv
from specviz.core.tabular import TabularModel, TabularPair
from specviz.core.trace.files import load, save
from specviz.core.trace.settings import LOSSY_DRAFTERS
from specviz.core.trace.trace import Trace
from specviz.figures.summary import rule_label
from tests.core.handmade import one_of_each
from tests.core.tampering import meta, refusal, tampered
from tests.core.ways import copied, run, with_another_closing_token, without_last_rounds


def wrong(trace: Trace) -> set[str]:
    """What does not follow."""
    return {finding.subject for finding in trace.check().contradictions}


def with_meta(trace: Trace, **values: Any) -> Trace:
    twin = copied(trace)
    for name, value in values.items():
        at = twin.meta["sampling"] if name in twin.meta["sampling"] else twin.meta
        at[name] = value
    return twin


@pytest.mark.parametrize("kind", ["chain", "tree", "block", "typical"])
def test_the_seed_decides_the_closing_token(kind: str) -> None:
    """Another token of the record, with its probability, its interval and a u within it."""
    trace = run(kind)
    tried = 0
    for row in range(len(trace)):
        twin = with_another_closing_token(trace, row)
        if twin is not None:
            assert "closing draw" in wrong(twin)
            tried += 1
    assert tried > 2


@pytest.mark.parametrize("kind", ["chain", "tree", "block"])
def test_no_more_is_drafted_than_gamma(kind: str) -> None:
    trace = run(kind)
    twin = copied(trace)
    twin.meta["drafter"] = {**trace.meta["drafter"], "gamma": 1}
    assert wrong(trace) == set()
    assert "gamma" in wrong(twin)


def test_nothing_goes_on_after_an_end_token_that_closes_a_round() -> None:
    trace = run("chain")
    last = int(trace.round_tokens(0)[-1])
    assert {"stop_ids"} == wrong(with_meta(trace, stop_ids=[last]))
    assert "finish_reason" in wrong(with_meta(trace, stop_ids=[int(trace.tokens[-1])]))


def test_nothing_goes_on_after_a_stop_string() -> None:
    pair = TabularPair(TabularModel.random(4, 1, seed=0))
    trace = sv.generate(pair, [0], gamma=0, stop="ab", max_new_tokens=200, progress=False)
    assert trace.finish_reason == "stop" and trace.text.endswith("ab") and trace.check().ok
    assert "stop" in wrong(with_meta(trace, stop=[trace.text[:2]]))
    assert "finish_reason" in wrong(with_meta(trace, stop=["zz"]))
    assert wrong(with_meta(trace, finish_reason="length")) == {"finish_reason"}


CONTRADICTED: list[tuple[str, dict[str, Any], str]] = [
    ("chain", {"temperature": 0.0}, "temperature"),
    ("chain", {"top_k": 1}, "top_k"),
    ("chain", {"top_p": 0.01}, "top_p"),
    ("chain", {"min_p": 1.0}, "min_p"),
    ("chain", {"max_new_tokens": 5}, "max_new_tokens"),
    ("chain", {"max_new_tokens": 99}, "finish_reason"),
    ("chain", {"finish_reason": "eos"}, "finish_reason"),
    ("chain", {"finish_reason": "context"}, "finish_reason"),
    ("chain", {"interrupted": True}, "interrupted"),
    ("chain", {"vocab_size": 25}, "vocab_size"),
    ("chain", {"drafter": {"name": "kv_projection", "noise": "draft"}}, "lossless"),
    ("chain", {"drafter": {"name": "combined", "drafters": [{"name": "kv_projection"}]}},
     "lossless"),
    ("chain", {"drafter": {"name": "target_only"}}, "drafter"),
    ("chain", {"drafter": {"name": "prompt_lookup"}}, "drafter"),
    ("typical", {"lossless": True}, "lossless"),
    ("greedy", {"temperature": 1.0}, "rule"),
    ("match", {"rule": "coupled"}, "drafter"),
    ("match", {"rule": "coupled"}, "numbers of proposal 0"),
    ("coupled", {"rule": "match"}, "numbers of proposal 0"),
    ("eos", {"stop_ids": []}, "finish_reason"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "values", "subject"), CONTRADICTED)
def test_a_setting_that_the_record_contradicts(
    kind: str, values: dict[str, Any], subject: str
) -> None:
    assert run(kind).check().ok
    assert subject in wrong(with_meta(run(kind), **values))


def test_the_width_of_full_distributions_is_the_vocabulary() -> None:
    pair = TabularPair(TabularModel.random(6, 1, seed=0))
    trace = sv.generate(pair, [0], gamma=0, full_distributions=True, progress=False)
    assert trace.check().ok and wrong(with_meta(trace, vocab_size=7)) == {"vocab_size"}


@pytest.mark.parametrize("n", [1, 2])
def test_rounds_that_are_dropped_at_the_end_are_missed(n: int) -> None:
    for kind in ("chain", "tree", "eos"):
        assert "finish_reason" in wrong(without_last_rounds(run(kind), n))


@pytest.mark.parametrize("kind", ["block", "tree"])
def test_an_acceptance_is_checked_though_only_the_top_is_kept(kind: str) -> None:
    trace = run(kind)
    for node in range(len(trace.node_table)):
        twin = copied(trace)
        acceptance = trace.node_table["acceptance"].copy()
        acceptance[node] += 0.1 if acceptance[node] < 0.5 else -0.1
        twin.node_table.replace("acceptance", acceptance)
        assert any(subject.startswith("acceptance") for subject in wrong(twin))


SAMPLING: list[dict[str, Any]] = [
    {"temperature": 0.0}, {"top_k": 3}, {"top_p": 0.6}, {"min_p": 0.2}, {"top_k": 1},
    {"top_k": 5, "top_p": 0.5, "min_p": 0.1, "temperature": 0.7}, {"top_p": 0.01},
    {"repetition_penalty": 1.4},
]  # fmt: skip


@pytest.mark.parametrize("sampling", SAMPLING, ids=str)
@pytest.mark.filterwarnings("ignore::specviz.api.arguments.LossyWarning")
def test_settings_that_were_used_are_never_contradicted(sampling: dict[str, Any]) -> None:
    drafters: list[dict[str, Any]] = [
        {"gamma": 3}, {"drafter": sv.Tree((2, 2))}, {"drafter": sv.Tree((3, 1), kind="top_k")},
        {"drafter": sv.Combined(sv.PromptLookup(2), sv.DraftModel(2))},
    ]  # fmt: skip
    tried = 0
    for seed, (vocab, concentration) in enumerate([(3, 0.02), (40, 0.1)]):
        draft = TabularModel.random(vocab, 1, seed=9, concentration=1.0)
        target = TabularModel.random(vocab, 1, seed=seed, concentration=concentration, eos_ids=[1])
        for how in drafters:
            for rule in ("rejection", "match", "block", "typical", "lenience"):
                if rule == "block" and "Tree" in str(how):
                    continue
                trace = sv.generate(
                    TabularPair(target, draft), [0, 2, 0], verify=rule, k=2, seed=seed,
                    max_new_tokens=9, progress=False, **sampling, **how,
                )  # fmt: skip
                replay = trace.check()
                assert replay.ok, (how, rule, replay)
                tried += 1
    assert tried == 36


# -- what a file may say -------------------------------------------------------------------------

JUNK: list[tuple[str, Any]] = [
    ("rule", []), ("rule_settings", {"constant": "a"}), ("lossless", 1), ("drafter", "x"),
    ("drafter", {"gamma": 4}), ("drafter", {"name": "a", "drafters": [3]}), ("sampling", []),
    ("sampling", {"temperature": "hot"}), ("sampling", {"heat": 1}), ("seed", 2**32),
    ("seed", "0"), ("sequence", -1), ("max_new_tokens", None), ("stop", "ab"), ("stop", [1]),
    ("stop_ids", None), ("stop_ids", ["a"]), ("target", 5), ("target", {"vocab_size": "a"}),
    ("draft", []), ("vocab_size", 0), ("vocab_size", 10.0), ("versions", {"torch": 2}),
    ("interrupted", "no"), ("finish_reason", "done"), ("finish_reason", ["eos"]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value"), JUNK)
def test_settings_of_a_wrong_type_are_refused(name: str, value: Any, tmp_path: Path) -> None:
    path = tmp_path / "run.specviz"
    tampered(path, {"meta.json": meta(meta={name: value})})
    assert f"is damaged: its setting {name} must be " in refusal(path)
    trace = one_of_each()
    trace.meta[name] = value
    with pytest.raises(ValueError, match=f"it is not written: its setting {name} must be"):
        save(trace, path)


def test_a_rule_that_does_not_take_its_settings_is_named() -> None:
    for rule in ("rejection", "threshold"):
        trace = with_meta(run("typical"), rule=rule, rule_settings={"heat": 1.0})
        with pytest.raises(ValueError, match=f"which rule '{rule}' does not take"):
            trace.check()


def test_what_is_not_known_may_stand_beside(tmp_path: Path) -> None:
    trace = one_of_each()
    trace.meta["mood"] = {"any": [1, None]}
    save(trace, tmp_path / "a")
    assert load(tmp_path / "a").meta == trace.meta


# -- lossless or not -----------------------------------------------------------------------------


def test_what_is_lossy_never_says_lossless() -> None:
    def says(**values: Any) -> tuple[bool | None, str]:
        trace = Trace({"rule": "rejection", **values}, np.array([1]))
        return trace.lossless, repr(trace)

    assert says()[0] is True and "lossy" not in says()[1]
    assert says(rule="wishful")[0] is None
    for values in (
        {"rule": "typical"},
        {"rule": "lenience", "lossless": True},
        {"lossless": False},
        *({"drafter": {"name": name}} for name in LOSSY_DRAFTERS),
        {"drafter": {"name": "combined", "drafters": [{"name": min(LOSSY_DRAFTERS)}]}},
    ):
        assert says(**values)[0] is False and ", lossy" in says(**values)[1]
        assert "lossless" not in rule_label(Trace({"rule": "rejection", **values}, np.array([1])))


def test_the_lossy_drafters_are_those_that_declare_it() -> None:
    drafters = [getattr(sv, name) for name in dir(sv) if hasattr(getattr(sv, name), "traits")]
    declared = {
        one.name
        for one in drafters
        if not isinstance(one.traits, property) and not one.traits.lossless
    }
    assert declared == LOSSY_DRAFTERS
