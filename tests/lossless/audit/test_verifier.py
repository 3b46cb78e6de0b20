"""Verifiers alone: right ones pass, broken ones are caught, failing ones are reported."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from specviz.lossless import Verdict
from specviz.lossless.audit.verifier import VerifierError, audit_verifier


def by_the_book(tokens: Any, q: Any, p: Any, generator: np.random.Generator) -> Sequence[int]:
    for i, x in enumerate(tokens):
        if generator.random() * q[i, x] >= p[i, x]:
            left = np.maximum(p[i] - q[i], 0)
            return [*tokens[:i], generator.choice(len(left), p=left / left.sum())]
    return [*tokens, generator.choice(len(p[-1]), p=p[-1])]


def matching(tokens: Any, q: Any, p: Any, generator: np.random.Generator) -> Sequence[int]:
    emitted: list[int] = []
    for i, distribution in enumerate(p):
        emitted.append(int(generator.choice(len(distribution), p=distribution)))
        if i == len(tokens) or emitted[-1] != tokens[i]:
            break
    return emitted


def resampling_from_p(tokens: Any, q: Any, p: Any, generator: np.random.Generator) -> Any:
    for i, x in enumerate(tokens):
        if generator.random() * q[i, x] >= p[i, x]:
            return [*tokens[:i], generator.choice(len(p[i]), p=p[i])]
    return [*tokens, generator.choice(len(p[-1]), p=p[-1])]


def bonus_one_early(tokens: Any, q: Any, p: Any, generator: np.random.Generator) -> Any:
    emitted = by_the_book(tokens, q, p, generator)
    if len(emitted) == len(p):
        return [*tokens, generator.choice(len(p[-2]), p=p[-2])]
    return emitted


def always(tokens: Any, q: Any, p: Any, generator: np.random.Generator) -> Any:
    return list(tokens)


@pytest.mark.parametrize("verifier", [by_the_book, matching])
def test_right_verifiers_pass(verifier: Any) -> None:
    report = audit_verifier(verifier, n=5_000, seed=4)
    assert report.verdict is Verdict.NO_DISCREPANCY_FOUND


@pytest.mark.parametrize("verifier", [resampling_from_p, bonus_one_early, always])
def test_broken_verifiers_are_caught(verifier: Any) -> None:
    assert audit_verifier(verifier, n=5_000, seed=4).verdict is Verdict.DISCREPANCY


def test_a_failure_in_mid_run_keeps_what_was_gathered() -> None:
    calls: list[int] = []

    def fails_late(tokens: Any, q: Any, p: Any, generator: np.random.Generator) -> Any:
        calls.append(1)
        if len(calls) == 2_001:
            raise RuntimeError("out of memory")
        return by_the_book(tokens, q, p, generator)

    report = audit_verifier(fails_late, n=5_000, seed=4)
    assert report.n == 2_000
    assert "call 2000: RuntimeError: out of memory" in report.text
    assert (report.verdict, report.exit_code) == (Verdict.INCONCLUSIVE, 2)
    assert "(2,000 of 5,000)" in report.text


def test_a_discrepancy_before_a_failure_is_one() -> None:
    calls: list[int] = []

    def fails_late(tokens: Any, *distributions: Any) -> Any:
        calls.append(1)
        return None if len(calls) > 3_000 else resampling_from_p(tokens, *distributions)

    report = audit_verifier(fails_late, n=5_000, seed=4)
    assert report.verdict is Verdict.DISCREPANCY
    assert "got NoneType" in report.text


@pytest.mark.parametrize("n", [1, 3, 50])
def test_few_calls_are_inconclusive_and_say_how_many_would_do(n: int) -> None:
    report = audit_verifier(by_the_book, n=n)
    assert report.verdict is Verdict.INCONCLUSIVE
    assert report.needed is not None
    assert f"{report.needed:,}" in report.text
    assert audit_verifier(by_the_book, n=report.needed).exit_code == 0


@pytest.mark.parametrize(
    ("verifier", "sentence"),
    [
        (lambda *_: [], "call 0: ValueError: it emitted 0 tokens; a round emits 1 to 4"),
        (lambda *_: [0.5], "call 0: TypeError: what it returns must be .* got float such as 0.5"),
        (lambda *_: [True], "got bool such as True"),
        (lambda *_: [1, True], "got bool such as True"),
        (lambda *_: None, "got NoneType"),
        (lambda *_: "abc", "got the text 'abc'"),
        (lambda *_: 3, "one list of token ids, got int"),
        (lambda *_: float("nan"), "one list of token ids, got float"),
        (lambda tokens, *_: [*tokens, 1, 1], "emitted 5 tokens"),
        (lambda *_: [99], r"emitted \[99\], outside the 5 tokens"),
        (lambda tokens: [0], "call 0"),
    ],
)
def test_what_cannot_be_emitted_is_refused(verifier: Any, sentence: str) -> None:
    with pytest.raises(VerifierError, match=sentence):
        audit_verifier(verifier, n=300)


@pytest.mark.parametrize(
    ("arguments", "error", "name"),
    [
        ({"verifier": 3}, TypeError, "verifier must be a function"),
        ({"verifier": by_the_book, "n": 0}, ValueError, "n must be"),
        ({"verifier": by_the_book, "gamma": 0}, ValueError, "gamma must be"),
        ({"verifier": by_the_book, "vocab_size": True}, TypeError, "vocab_size must be"),
        ({"verifier": by_the_book, "vocab_size": 10**5}, ValueError, "vocab_size must be .* 1,000"),
        (
            {"verifier": by_the_book, "alpha": "x"},
            TypeError,
            "alpha must be a number between 0 and 1, got 'x'",
        ),
        ({"verifier": by_the_book, "seed": -1}, ValueError, "seed must be"),
    ],
)
def test_wrong_arguments_are_named(
    arguments: dict[str, Any], error: type[Exception], name: str
) -> None:
    with pytest.raises(error, match=name):
        audit_verifier(**arguments)
