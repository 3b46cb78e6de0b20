"""Audits of samplers that fail, are interrupted, or return nonsense; and wrong arguments."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import specviz as sv
from specviz.core.tabular import TabularModel, TabularPair
from specviz.lossless import AuditError, Verdict, read_jsonl

PROMPT = [0]
COIN = TabularModel([0.5, 0.3, 0.2])
PAIR = TabularPair(COIN, TabularModel([0.2, 0.3, 0.5]))


def draws(prompt: Any, n: int, seed: int) -> Any:
    return np.random.default_rng(seed).choice(3, size=(n, 3), p=[0.5, 0.3, 0.2])


class Failing:
    """Raises on a later call."""

    name = "failing"

    def __init__(self, after: int, error: BaseException) -> None:
        self.left, self.error, self.calls = after, error, 0

    def __call__(self, prompt: Any, n: int, seed: int) -> Any:
        if self.calls >= self.left:
            raise self.error
        self.calls += 1
        return draws(prompt, n, seed)


@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()])
def test_what_came_before_a_failure_is_judged(error: BaseException) -> None:
    failing = Failing(1500, error)
    report = sv.audit(failing, PROMPT, target=PAIR, n=2000, length=3, per_call=1)
    assert (report.verdict, report.exit_code) == (Verdict.INCONCLUSIVE, 2)
    assert report.report.n == 1500
    assert "(1,500 of 2,000)" in report.text
    assert "would have been caught" in report.text
    assert report.interrupted == isinstance(error, KeyboardInterrupt)
    assert "on call 1500 (counted from 0)" in report.text
    assert ("It was interrupted" in report.text) == report.interrupted
    assert ("disk full" in report.text) == isinstance(error, OSError)


def test_a_failure_before_anything_is_known_is_an_error() -> None:
    with pytest.raises(AuditError, match="failing failed on call 2, after 20 texts: OSError: no"):
        sv.audit(Failing(2, OSError("no")), PROMPT, target=PAIR, n=2000, length=3, per_call=10)
    with pytest.raises(KeyboardInterrupt):
        sv.audit(
            Failing(2, KeyboardInterrupt()), PROMPT, target=PAIR, n=2000, length=3, per_call=10
        )


def test_an_audit_goes_on_where_it_ended(tmp_path: Path) -> None:
    place = tmp_path / "texts.jsonl"
    settings: dict[str, Any] = {"target": PAIR, "n": 1000, "length": 3, "path": place}
    first = sv.audit(Failing(6, OSError("gone")), PROMPT, **settings)
    assert first.report.n == 600
    assert len(read_jsonl(place)) == 600
    again = Failing(100, OSError())
    second = sv.audit(again, PROMPT, **settings)
    assert again.calls == 4
    assert second.report.n == 1000
    assert "600 of the texts were taken from an earlier" in second.text
    whole = sv.audit(Failing(100, OSError()), PROMPT, target=PAIR, n=1000, length=3)
    assert np.array_equal(second.samples[0].tokens, whole.samples[0].tokens)
    assert list(tmp_path.iterdir()) == [place]  # nothing half-written is left


def test_our_loop_goes_on_too(tmp_path: Path) -> None:
    place = tmp_path / "texts.jsonl"
    sv.audit(PAIR, PROMPT, n=1000, path=place)
    more = sv.audit(PAIR, PROMPT, n=3000, path=place)
    assert "1,000 of the texts were taken" in more.text
    whole = sv.audit(PAIR, PROMPT, n=3000)
    assert np.array_equal(more.samples[0].tokens, whole.samples[0].tokens)


@pytest.mark.parametrize(
    ("changed", "what"), [({"seed": 1}, "seed"), ({"temperature": 0.5}, "settings")]
)
def test_the_file_of_another_audit_is_refused(
    tmp_path: Path, changed: dict[str, Any], what: str
) -> None:
    place = tmp_path / "texts.jsonl"
    sv.audit(draws, PROMPT, target=PAIR, n=200, length=3, path=place)
    with pytest.raises(ValueError, match=f"holds another audit: its {what} differs"):
        sv.audit(draws, PROMPT, target=PAIR, n=300, length=3, path=place, **changed)


RETURNS = [
    (lambda n: None, "returned NoneType, not a list"),
    (lambda n: "text", "returned str, not a list"),
    (lambda n: [[0, 1, 2]] * (n - 1), "returned 99 sequences where 100 were asked for"),
    (lambda n: [[0.5, 1.0]] * n, "sequence 0 must be one list of token ids, got float such as"),
    (lambda n: ["the fox"] * n, "must be one list of token ids, got the text 'the fox': encode it"),
    (lambda n: [["the", "fox"]] * n, "must be one list of token ids, got str such as 'the'"),
    (lambda n: np.zeros((n, 1, 3), int), r"must be one list of token ids, got shape \(1, 3\)"),
    (lambda n: [[0, [1, 2]]] * n, "must be one list of token ids, got lists of different lengths"),
    (lambda n: torch.zeros(n, 3), "must be one list of token ids, got float such as 0.0"),
    (lambda n: (row for row in [[0]]), "returned generator, not a list"),
    (lambda n: [[0, 1]] * n, r"2 tokens where 3 are needed, .* end_ids=\[\]: draw it longer"),
    (lambda n: [[0, 1, 2]] * (n - 1) + [[]], "sequence 99 is empty"),
    (lambda n: [[-1, -1, -1]] * n, "sequence 0 is empty: at least one token must come before -1"),
    (lambda n: [[0, True, 1]] * n, "must be one list of token ids, got bool such as True"),
    (lambda n: [float("nan")] * n, "must be one list of token ids, got float"),
    (lambda n: [[0, 1, 7]] * n, "sequence 0 has id 7, outside the vocabulary of 3"),
]


@pytest.mark.parametrize(("rows", "message"), RETURNS, ids=[m for _, m in RETURNS])
def test_what_is_no_text_is_said(rows: Any, message: str) -> None:
    with pytest.raises(AuditError, match=message):
        sv.audit(lambda prompt, n, seed: rows(n), PROMPT, target=PAIR, n=1000, length=3)


def test_what_is_right_in_another_shape_is_taken() -> None:
    """Tensors, lists of tensors and texts that end early: the same verdict."""

    def ended(row: Any) -> Any:
        return row[: row.index(1) + 1] if 1 in row else row

    shapes = (
        lambda rows: torch.tensor(rows),
        lambda rows: [torch.tensor(row) for row in rows],
        lambda rows: [row.tolist() for row in rows],
    )
    for shape in shapes:
        report = sv.audit(
            lambda p, n, seed, shape=shape: shape(draws(p, n, seed)),
            PROMPT, target=PAIR, n=600, length=3,
        )  # fmt: skip
        assert report.verdict is Verdict.NO_DISCREPANCY_FOUND
    early = sv.audit(
        lambda p, n, seed: [ended(row) for row in draws(p, n, seed).tolist()],
        PROMPT, target=PAIR, n=600, length=3, end_ids=[1],
    )  # fmt: skip
    assert early.verdict is Verdict.NO_DISCREPANCY_FOUND


def test_a_text_that_is_too_short_is_said_on_the_first_call() -> None:
    calls = Failing(100, OSError())
    with pytest.raises(
        AuditError, match="on call 0, after 0 texts: its texts cannot be tested, sequence 0 has 3"
    ):
        sv.audit(calls, PROMPT, target=PAIR, n=2000, length=5)
    assert calls.calls == 1


def test_a_failure_on_the_10_000th_call_keeps_the_rest(tmp_path: Path) -> None:
    place = tmp_path / "kept.jsonl"
    failing = Failing(9_999, RuntimeError("out of\nmemory"))
    report = sv.audit(failing, PROMPT, target=PAIR, n=20_000, length=3, per_call=1, path=place)
    assert report.report.n == 9_999
    assert "RuntimeError: out of memory. The 9,999 of 20,000 texts that came" in report.text
    assert len(read_jsonl(place)) == 9_999


def test_ragged_texts_that_did_not_end_are_refused() -> None:
    with pytest.raises(ValueError, match="1 tokens where 3 are needed, and does not end with"):
        sv.audit([[0, 1, 2], [1]] * 300, PROMPT, target=PAIR, method="battery")


def test_nan_distributions_are_refused() -> None:
    class Bad(TabularModel):
        def session(self, vocab_size: int | None = None) -> Any:
            session = super().session(vocab_size)
            inner = session.verify

            def verify(pending: Any, draft: Any) -> Any:
                rows = inner(pending, draft)
                rows[0, 0] = np.nan
                return rows

            session.verify = verify  # type: ignore[method-assign]
            return session

    bad = Bad([0.5, 0.3, 0.2])
    for method in ("battery", "scores"):
        for role, models in (("target", (bad, COIN)), ("draft", (COIN, bad))):
            with pytest.raises(ValueError, match=f"after 1 tokens.*the {role}'s logits .* is NaN"):
                sv.audit(draws, PROMPT, target=TabularPair(*models), n=300, length=3,
                         method=method)  # fmt: skip
    with pytest.raises(ValueError, match=r"table 'mine' must be finite .*, got nan at token 0"):
        TabularModel([np.nan, 1.0], name="mine")
    with pytest.raises(TypeError, match="table must hold the next-token probabilities"):
        TabularModel("x")


ARGUMENTS: list[tuple[Any, dict[str, Any], str]] = [
    (PAIR, {}, "prompt is needed"),
    (draws, {"prompt": PROMPT}, "target is needed"),
    (draws, {"prompt": PROMPT, "target": PAIR, "n": 0}, "n must be a whole number >= 1"),
    (draws, {"prompt": PROMPT, "target": PAIR, "length": 1.5}, "length must be a whole number"),
    (draws, {"prompt": PROMPT, "target": PAIR, "alpha": 0}, "alpha must lie between 0 and 1"),
    (draws, {"prompt": PROMPT, "target": PAIR, "alpha": "x"}, "alpha must be a number, got 'x'"),
    (draws, {"prompt": PROMPT, "target": PAIR, "margin": None}, "margin must be a number"),
    (PAIR, {"prompt": PROMPT, "n": 10**12}, "n must be a whole number from 1 to 1,000,000,000"),
    (draws, {"prompt": PROMPT, "target": PAIR, "end_ids": 3}, "end_ids must be one list of token"),
    (draws, {"prompt": PROMPT, "target": 42}, "target must be a Pair, a TabularModel .* got 42"),
    ("nope.jsonl", {"target": PAIR}, "subject names a file .* no file 'nope.jsonl'"),
    (
        draws,
        {"prompt": PROMPT, "target": PAIR, "path": "/no/x.jsonl"},
        "path is '/no/x.jsonl', and",
    ),
    (draws, {"prompts": "hi", "target": PAIR}, "prompts must be a list of prompts, got 'hi'"),
    (draws, {"prompts": [], "target": PAIR}, "prompts is empty: give at least one prompt"),
    (draws, {"prompt": PROMPT, "target": PAIR, "margin": -1}, "margin must be"),
    (draws, {"prompt": PROMPT, "target": PAIR, "effect": 2}, "effect must be"),
    (draws, {"prompt": PROMPT, "target": PAIR, "method": "hope"}, "method must be one of"),
    (draws, {"prompt": PROMPT, "target": PAIR, "temperature": -1}, "temperature must be"),
    (draws, {"prompt": PROMPT, "target": PAIR, "gamma": 2}, "are for our own loop"),
    (draws, {"prompt": PROMPT, "prompts": [PROMPT], "target": PAIR}, "not both"),
    (draws, {"prompt": [9], "target": PAIR}, "prompt has id .*, outside"),
    (draws, {"prompt": PROMPT, "target": PAIR, "seed": -1}, "seed must be"),
    (draws, {"prompt": PROMPT, "method": "two_sample"}, "needs reference="),
    (PAIR, {"prompt": PROMPT, "reference": draws}, "reference= cannot be combined with a Pair"),
    (PAIR, {"prompt": PROMPT, "fault": "no such"}, "fault must be one of"),
    (PAIR, {"prompt": PROMPT, "fault": "no_draw", "verify": "block"}, "leave drafter and verify"),
    ([], {"prompt": PROMPT, "target": PAIR}, "subject is empty"),
    (3, {"prompt": PROMPT, "target": PAIR}, "subject must be a Pair, a function, .* got int"),
    (None, {"prompt": PROMPT, "target": PAIR}, "subject must be a Pair, .* got NoneType"),
    (
        sv.generate(PAIR, PROMPT, max_new_tokens=2),
        {"target": PAIR},
        "subject is one trace: give a list",
    ),
    ([[0, 1]], {"target": PAIR}, "prompt is needed"),
    ([[0, 9]], {"prompt": PROMPT, "target": PAIR}, "has id 9, outside the vocabulary of 3"),
]


@pytest.mark.parametrize(
    ("subject", "arguments", "message"), ARGUMENTS, ids=[m for *_, m in ARGUMENTS]
)
def test_wrong_arguments_are_one_sentence(
    subject: Any, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises((ValueError, TypeError, OSError), match=message) as raised:
        sv.audit(subject, **arguments)
    assert "\n" not in str(raised.value)


GOOD = {"prompt_ids": [0], "token_ids": [1, 2]}
LINES = [
    ("", "has no recorded text"),
    ("{", "line 1: not JSON"),
    ("[1]", "line 1: must be an object"),
    (json.dumps({"prompt_ids": [0]}), "line 1: token_ids is missing"),
    (json.dumps({**GOOD, "token_ids": "ab"}), "line 1: token_ids must be a list of token ids"),
    (json.dumps({**GOOD, "token_ids": [1, -1]}), "line 1: token_ids must be a list of token ids"),
    (json.dumps({**GOOD, "token_ids": [True]}), "line 1: token_ids must be a list of token ids"),
    (json.dumps({**GOOD, "prompt_ids": []}), "line 1: prompt_ids must hold at least one"),
    (json.dumps({**GOOD, "settings": [1]}), "line 1: settings must be an object"),
    (json.dumps({**GOOD, "settings": {"top_p": 7}}), "line 1: top_p must be"),
    (json.dumps(GOOD) + "\n\n{]", "line 3: not JSON"),
    ("[" * 100_000, "line 1: "),
]


@pytest.mark.parametrize(
    ("text", "message"), LINES, ids=[m + str(i) for i, (_, m) in enumerate(LINES)]
)
def test_a_wrong_line_is_named(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message) as raised:
        sv.audit(io.StringIO(text), target=PAIR)
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 300
