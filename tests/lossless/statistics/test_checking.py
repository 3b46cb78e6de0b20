"""Wrong arguments of the public functions: one sentence that names the argument."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import specviz as sv
from specviz import lossless
from specviz.core.tabular import TabularModel, TabularPair
from specviz.lossless import Recorded, faults, first_difference, read_jsonl, write_jsonl

COIN = TabularModel([0.5, 0.5])
PAIR = TabularPair(COIN, COIN)
CHAIN = sv.DraftModel(gamma=1)

WRONG: list[tuple[Any, str]] = [
    (
        lambda: lossless.enumerate_distribution(PAIR, CHAIN, prompt=[0], length="a"),
        "length must be a whole",
    ),
    (
        lambda: lossless.enumerate_distribution(PAIR, 4, prompt=[0], length=1),
        "drafter must be a specviz drafter",
    ),
    (
        lambda: lossless.enumerate_distribution(4, CHAIN, prompt=[0], length=1),
        "pair must be a Pair",
    ),
    (lambda: lossless.target_distribution(4, prompt=[0], length=1), "pair must be a Pair"),
    (lambda: faults.expected_tv(4, [0], "no_draw"), "pair must be a Pair"),
    (lambda: faults.faulty_distribution(PAIR, [0], "no_draw", gamma="x"), "gamma must be a whole"),
    (lambda: faults.diagnose(4), "trace must be a Trace, got int"),
    (lambda: lossless.total_variation([0.5], [0.5]), "a must map each outcome"),
    (lambda: lossless.total_variation({0: 1.0}, {0: np.nan}), "probability of 0 in b must be"),
    (lambda: lossless.samples_for_tv("a", 7), "tv must be a number, got 'a'"),
    (lambda: lossless.samples_for_tv(0.1, 2.5), "dof must be a whole number"),
    (lambda: lossless.detectable_tv("n", 3), "n must be a number"),
    (lambda: lossless.EProcess("ab"), "probabilities of distribution must be numbers, got 'ab'"),
    (lambda: lossless.EProcess([0.5, 0.5], alpha="x"), "alpha must be a number"),
    (lambda: write_jsonl("zz", [1]), r"records\[0\] must be a Recorded, got int"),
    (lambda: write_jsonl("/no/such/zz", []), "path is '/no/such/zz', and there is no folder"),
    (lambda: first_difference("ab", "ac", COIN, prompt=[0]), "a must be .* the text 'ab'"),
    (lambda: first_difference([0], [1], COIN, prompt="x"), "prompt must be one list"),
    (lambda: first_difference([0], [1], COIN, prompt=[0], near="x"), "near must be a number"),
    (lambda: first_difference([0], [1], COIN, prompt=[0], near=-1), "near must be a number >= 0"),
    (lambda: first_difference([0], [7], COIN, prompt=[0]), "b has id 7, outside the vocabulary"),
    (lambda: first_difference([0], [1], 42, prompt=[0]), "target must be a Pair, a TabularModel"),
]


@pytest.mark.parametrize(("call", "message"), WRONG, ids=[f"{i}" for i in range(len(WRONG))])
def test_the_argument_is_named(call: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises((TypeError, ValueError), match=message) as raised:
        call()
    assert "\n" not in str(raised.value)
    assert ".part" not in str(raised.value)


def test_a_pair_stands_for_its_target() -> None:
    assert first_difference([0, 0], [0, 1], PAIR, prompt=[0]) == first_difference(
        [0, 0], [0, 1], COIN, prompt=[0]
    )


def test_files_are_readable_by_others_and_with_a_mark(tmp_path: Path) -> None:
    place = tmp_path / "texts.jsonl"
    write_jsonl(place, [Recorded((0,), (1, 0))])
    beside = tmp_path / "beside"
    beside.write_text("")
    assert place.stat().st_mode == beside.stat().st_mode
    place.write_bytes(b"\xef\xbb\xbf" + place.read_bytes())
    assert read_jsonl(place) == [Recorded((0,), (1, 0))]
    with place.open(encoding="utf-8") as file:
        assert read_jsonl(file) == [Recorded((0,), (1, 0))]


def recorded(seed: int, **settings: Any) -> list[Recorded]:
    drawn = np.random.default_rng(seed).integers(0, 2, size=(2000, 3))
    return [Recorded((0,), tuple(row), settings) for row in drawn.tolist()]


def test_two_samples_of_different_settings_are_refused() -> None:
    hot, cold = {"temperature": 1.0}, {"temperature": 0.5, "top_k": -1}
    mixed = recorded(1, **hot)[:1000] + recorded(2, **cold)
    with pytest.raises(ValueError, match=r"the samples .* different settings, temperature 0.5 and"):
        sv.audit(mixed, reference=recorded(0))
    with pytest.raises(ValueError, match=r"the reference .* different settings, temperature"):
        sv.audit(recorded(0), reference=mixed)
    with pytest.raises(ValueError, match=r"with temperature=1.0, the reference with temp.*=0.5"):
        sv.audit(recorded(0, **hot), reference=recorded(1, **cold))
    for other in ({}, {"top_k": -1}, {"temperature": None}, {"engine": "mine"}):
        assert sv.audit(recorded(0, **hot), reference=recorded(1, **other)).exit_code == 0
    known = sv.audit(recorded(0, **hot), reference=recorded(1, **cold), temperature=1.0)
    assert known.exit_code == 0  # what is given holds for all


def test_functions_of_different_settings_are_refused_before_they_draw() -> None:
    def never(prompt: Any, n: int, seed: int) -> Any:
        raise AssertionError("it was called")

    never.settings = {"temperature": 0.5}  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match=r"temperature=0.5, the reference with temperature=1.0"):
        sv.audit(never, [0], reference=recorded(1, temperature=1.0))


def test_a_copy_is_no_reference() -> None:
    texts = np.random.default_rng(0).integers(0, 2, size=(2000, 3))
    again = np.random.default_rng(1).integers(0, 2, size=(2000, 3))
    assert sv.audit(texts, [0], reference=again).exit_code == 0
    for copy in (texts.copy(), np.roll(texts, 7, axis=0), texts.tolist(), texts[:1500].copy()):
        report = sv.audit(texts, [0], reference=copy)
        assert report.verdict is lossless.Verdict.NOT_INDEPENDENT
        assert "the reference is the same sample" in report.text
    with pytest.raises(ValueError, match="reference is the same sample as subject"):
        sv.audit(texts, [0], reference=texts)
    certain = np.zeros((300, 3), dtype=np.int64)  # greedy texts are equal, and may be
    same = sv.audit(certain, [0], reference=certain.copy())
    assert same.verdict is not lossless.Verdict.NOT_INDEPENDENT
