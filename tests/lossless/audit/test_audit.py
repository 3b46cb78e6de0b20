"""Audits: every kind of subject, a right one that passes beside a wrong one that does not."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import specviz as sv
from specviz.core.tabular import TabularModel, TabularPair
from specviz.lossless import PrefixTree, Recorded, Verdict, grow, write_jsonl
from specviz.lossless.audit.adapters import Function, one_by_one

RIGHT, WRONG = Verdict.NO_DISCREPANCY_FOUND, Verdict.DISCREPANCY
PROMPT = [2, 1]


def pair(**options: Any) -> TabularPair:
    target = TabularModel.random(5, 2, seed=0, concentration=1.5, **options)
    other = TabularModel.random(5, 2, seed=1)
    return TabularPair(target, TabularModel(0.5 * target.table + 0.5 * other.table))


TABLES = pair()
assert TABLES.draft is not None


def tree_of(model: TabularModel, length: int, temperature: float = 1.0) -> PrefixTree:
    def distribution(prefix: tuple[int, ...]) -> Any:
        p = model.distribution([*PROMPT, *prefix]) ** (1 / temperature)
        return p / p.sum()

    return grow(distribution, model.vocab_size, length, end_ids=model.eos_ids)


def sampler(model: TabularModel, length: int = 4, temperature: float = 1.0) -> Any:
    tree = tree_of(model, length, temperature)
    return lambda prompt, n, seed: tree.draw(n, seed).tokens


# -- our own loop


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"temperature": 0.6, "top_k": 3},
        {"verify": "block"},
        {"verify": "match"},
        {"drafter": sv.PromptLookup(2)},
        {"drafter": sv.Tree((2, 1))},
        {"gamma": 0},
    ],
)
def test_our_loop_passes(settings: dict[str, Any]) -> None:
    report = sv.audit(TABLES, PROMPT, n=3000, seed=5, **settings)
    assert report.verdict is RIGHT
    assert report.exit_code == 0
    assert report.report.n == 3000


@pytest.mark.parametrize(
    "fault", ["always_accept", "resample_from_p", "bonus_from_the_draft", "greedy_draft_soft_q"]
)
def test_a_planted_fault_does_not(fault: str) -> None:
    report = sv.audit(TABLES, PROMPT, fault=fault, gamma=2, n=4000, seed=5)
    assert report.verdict is WRONG
    assert report.exit_code == 1
    assert fault in report.subject


def test_a_lossy_rule_does_not() -> None:
    with pytest.warns(UserWarning, match="lossy") if _unwarned("typical") else _nothing():
        report = sv.audit(TABLES, PROMPT, verify="typical", n=3000)
    assert report.verdict is WRONG


def _unwarned(rule: str) -> bool:
    from specviz.api import arguments

    return rule not in arguments._WARNED


def _nothing() -> Any:
    import contextlib

    return contextlib.nullcontext()


def test_a_fault_of_the_bonus_token_is_beyond_a_text_of_gamma() -> None:
    report = sv.audit(TABLES, PROMPT, fault="bonus_from_the_draft", gamma=2, length=2, n=3000)
    assert report.verdict is RIGHT
    assert "never reach past gamma" in report.text


def test_enumeration_computes_the_distribution() -> None:
    right = sv.audit(TABLES, PROMPT, gamma=2, length=3, method="enumeration")
    wrong = sv.audit(TABLES, PROMPT, gamma=2, length=3, method="enumeration", fault="always_accept")
    assert right.exact_tv is not None and right.exact_tv < 1e-12
    assert wrong.exact_tv is not None and wrong.exact_tv > 0.05
    assert (right.verdict, wrong.verdict) == (RIGHT, WRONG)
    assert "computed, not sampled" in right.text
    assert json.loads(wrong.to_json())["exact_tv"] == wrong.exact_tv


def test_n_is_chosen_for_the_effect() -> None:
    few = sv.audit(TABLES, PROMPT, gamma=2, effect=0.1)
    many = sv.audit(TABLES, PROMPT, gamma=2, effect=0.05)
    assert few.report.n < many.report.n
    for report, effect in ((few, 0.1), (many, 0.05)):
        assert report.verdict is RIGHT
        assert report.report.detectable is not None
        assert report.report.detectable.tv <= effect * 1.05


def test_long_texts_of_our_loop_are_scored() -> None:
    right = sv.audit(TABLES, PROMPT, length=60, n=50)
    wrong = sv.audit(TABLES, PROMPT, length=60, n=50, fault="always_accept")
    assert right.method == wrong.method == "scores"
    assert (right.verdict, wrong.verdict) == (RIGHT, WRONG)


# -- functions


def test_a_function_against_the_target() -> None:
    right = sv.audit(sampler(TABLES.target), PROMPT, target=TABLES, n=3000, length=4)
    wrong = sv.audit(sampler(TABLES.draft), PROMPT, target=TABLES, n=3000, length=4)
    assert (right.verdict, wrong.verdict) == (RIGHT, WRONG)
    assert len(set(right.seeds)) == 30  # one for each call of 100


def test_other_settings_than_the_functions_own_are_a_discrepancy() -> None:
    cold = Function(sampler(TABLES.target, temperature=0.7), "cold", {"temperature": 0.7})
    assert sv.audit(cold, PROMPT, target=TABLES, n=3000, length=4).verdict is RIGHT
    report = sv.audit(cold, PROMPT, target=TABLES, n=3000, length=4, temperature=1.0)
    assert report.verdict is WRONG


def test_several_prompts_have_one_verdict() -> None:
    def draws_well_after(good: list[int]) -> Any:
        def draw(prompt: Any, n: int, seed: int) -> Any:
            model = TABLES.target if prompt.tolist() == good else TABLES.draft
            rng = np.random.default_rng(seed)
            rows = []
            for _ in range(n):
                text = prompt.tolist()
                for _ in range(3):
                    text.append(int(rng.choice(5, p=model.distribution(text))))
                rows.append(text[len(prompt) :])
            return rows

        return draw

    prompts = [[2, 1], [0, 4]]
    report = sv.audit(draws_well_after([2, 1]), prompts=prompts, target=TABLES, n=1500, length=3)
    assert [r.verdict for r in report.reports] == [RIGHT, WRONG]
    assert report.verdict is WRONG
    assert "2 prompts: 1 DISCREPANCY, 1 NO_DISCREPANCY_FOUND" in report.text
    assert all(r.alpha == pytest.approx(0.005) for r in report.reports)


def test_against_the_same_engine_with_speculation_off() -> None:
    off = sampler(TABLES.target)
    right = sv.audit(sampler(TABLES.target), PROMPT, reference=off, n=3000, length=4)
    wrong = sv.audit(sampler(TABLES.draft), PROMPT, reference=off, n=3000, length=4)
    assert right.method == "two_sample"
    assert (right.verdict, wrong.verdict) == (RIGHT, WRONG)


def test_texts_that_end_early_are_no_error() -> None:
    ending = pair(eos_ids=[3])
    right = sv.audit(sampler(ending.target), PROMPT, target=ending, n=3000, length=4)
    assert right.verdict is RIGHT
    assert right.samples[0].tokens.min() == -1

    def never_ends(prompt: Any, n: int, seed: int) -> Any:
        tokens = tree_of(ending.target, 4).draw(n, seed).tokens
        return np.where(np.isin(tokens, [3, -1]), 0, tokens)

    assert sv.audit(never_ends, PROMPT, target=ending, n=3000, length=4).exit_code == 1


def test_one_text_at_a_time() -> None:
    def one(prompt: Any, seed: int) -> list[int]:
        return tree_of(TABLES.target, 3).draw(1, seed).tokens[0].tolist()  # type: ignore[no-any-return]

    report = sv.audit(one_by_one(one), PROMPT, target=TABLES, n=300, length=3, effect=0.4)
    assert report.verdict is RIGHT


def test_a_used_up_seed_is_not_independent() -> None:
    fixed = sampler(TABLES.target)
    report = sv.audit(
        lambda prompt, n, seed: fixed(prompt, n, 0), PROMPT, target=TABLES, n=2000, length=4
    )
    assert report.verdict is Verdict.NOT_INDEPENDENT
    assert report.exit_code == 2


# -- recorded texts


def recorded(model: TabularModel, n: int = 2000, **settings: Any) -> list[Recorded]:
    tokens = tree_of(model, 4, settings.get("temperature", 1.0)).draw(n, 0).tokens
    return [
        Recorded(tuple(PROMPT), tuple(row), settings, i) for i, row in enumerate(tokens.tolist())
    ]


def test_a_jsonl_file_by_path_stream_and_records(tmp_path: Path) -> None:
    records = recorded(TABLES.target, temperature=0.7)
    write_jsonl(tmp_path / "texts.jsonl", records)
    text = (tmp_path / "texts.jsonl").read_text("utf-8")
    for subject in (tmp_path / "texts.jsonl", io.StringIO(text), records):
        assert sv.audit(subject, target=TABLES).verdict is RIGHT
    assert sv.audit(records, target=TABLES, temperature=1.0).verdict is WRONG


def test_a_target_that_did_not_generate_the_texts_is_worded_so() -> None:
    report = sv.audit(recorded(TABLES.draft), target=TABLES)  # type: ignore[arg-type]
    assert report.verdict is WRONG
    assert "If another model, other weights" in report.text


def test_sequences_of_one_prompt() -> None:
    tokens = tree_of(TABLES.target, 4).draw(2000, 1).tokens
    assert sv.audit(tokens, PROMPT, target=TABLES).verdict is RIGHT
    assert sv.audit(tokens.tolist(), PROMPT, target=TABLES).verdict is RIGHT
    assert sv.audit(4 - tokens, PROMPT, target=TABLES).verdict is WRONG


def test_traces_are_scored() -> None:
    def traces(model: Any) -> list[Any]:
        other = TabularPair(model, TABLES.draft)
        return [
            sv.generate(other, [i % 5, 1], seed=1, sequence=i, max_new_tokens=40, top_k=4)
            for i in range(40)
        ]

    right = sv.audit(traces(TABLES.target), target=TABLES)
    wrong = sv.audit(traces(TABLES.draft), target=TABLES)
    assert right.method == "scores"
    assert (right.verdict, wrong.exit_code) == (RIGHT, 1)


def test_too_few_are_inconclusive_with_the_number_that_would_do() -> None:
    report = sv.audit(recorded(TABLES.target, n=20), target=TABLES, method="battery")
    assert report.verdict is Verdict.INCONCLUSIVE
    assert report.exit_code == 2
    assert report.report.needed is not None and report.report.needed > 20
    assert f"{report.report.needed:,}" in report.text
    one = sv.audit([[1, 2, 3]], PROMPT, target=TABLES)
    assert one.verdict is Verdict.INCONCLUSIVE


def test_a_margin_is_tolerated_and_its_excess_is_not() -> None:
    assert TABLES.draft is not None
    near = TabularModel(0.99 * TABLES.target.table + 0.01 * TABLES.draft.table)
    tokens = tree_of(near, 4).draw(20_000, 1).tokens
    assert sv.audit(tokens, PROMPT, target=TABLES, margin=0.02).exit_code == 0
    far = tree_of(TABLES.draft, 4).draw(20_000, 1).tokens
    report = sv.audit(far, PROMPT, target=TABLES, margin=0.02)
    assert report.exit_code == 1
    assert report.to_dict()["margin"] == 0.02


# -- what a report can be turned into


def test_a_report_is_strict_json_and_a_page_that_escapes() -> None:
    evil = "</script><img src=x onerror=alert(1)>"
    words = [evil] * 5
    spiteful = TabularPair(TABLES.target, TABLES.draft, words=words)
    report = sv.audit(sampler(TABLES.draft), PROMPT, target=spiteful, n=1000, length=3)  # type: ignore[arg-type]
    read = json.loads(report.to_json(), parse_constant=lambda name: pytest.fail(name))
    assert read["verdict"] == "DISCREPANCY"
    assert read["exit_code"] == 1
    assert len(read["reports"]) == 1
    page = report.to_html()
    assert page.count("<img") == page.count('<img src="data:image/png;base64,') == 1
    assert "&lt;img" in page
    assert "http:" not in page and "https:" not in page and "<script" not in page
    assert page.startswith("<!DOCTYPE html>")
    assert "DISCREPANCY" in repr(report)
