"""Whatever is wrong with what a person typed is one sentence, before any model runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import specviz as sv
from specviz.core.tabular import TabularPair
from specviz.drafters.draft_model import AdaptiveGamma, DraftModel
from tests.api.pairs import tables, texts, untouchable

NAN, INF = float("nan"), float("inf")

BAD: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"temperature": -1}, ValueError, "temperature must be a number >= 0, got -1: 0 is"),
    ({"temperature": NAN}, ValueError, "temperature must be"),
    ({"temperature": INF}, ValueError, "temperature must be"),
    ({"temperature": "hot"}, TypeError, "temperature must be a number >= 0, got 'hot'"),
    ({"temperature": None}, TypeError, "temperature must be a number"),
    ({"temperature": True}, TypeError, "temperature must be a number"),
    ({"top_p": 0}, ValueError, "top_p must be a number above 0 and at most 1"),
    ({"top_p": 1.1}, ValueError, "top_p must be a number above 0 and at most 1"),
    ({"top_p": NAN}, ValueError, "top_p must be a finite number above 0"),
    ({"top_k": -1}, ValueError, "top_k must be a whole number"),
    ({"top_k": 2.5}, TypeError, "top_k must be a whole number"),
    ({"top_k": NAN}, TypeError, "top_k must be a whole number"),
    ({"top_k": INF}, TypeError, "top_k must be a whole number"),
    ({"top_k": "5"}, TypeError, "top_k must be a whole number >= 0, got '5'"),
    ({"min_p": -0.1}, ValueError, "min_p must be a number from 0 to 1"),
    ({"min_p": 2}, ValueError, "min_p must be a number from 0 to 1"),
    ({"repetition_penalty": 0}, ValueError, "repetition_penalty must be a number > 0"),
    ({"repetition_penalty": NAN}, ValueError, "repetition_penalty must be"),
    ({"gamma": -1}, ValueError, ">= 0 or an AdaptiveGamma, got -1: 0 is target only"),
    ({"gamma": 2.0}, TypeError, "gamma must be a whole number >= 0 or an AdaptiveGamma, got 2.0"),
    ({"gamma": "4"}, TypeError, "gamma must be a whole number"),
    ({"gamma": True}, TypeError, "gamma must be a whole number"),
    ({"gamma": False}, TypeError, "gamma must be a whole number"),
    ({"gamma": [1, 2]}, TypeError, "gamma must be a whole number"),
    ({"gamma": 64}, ValueError, "gamma is 64, but the target's context is 64"),
    ({"gamma": AdaptiveGamma(start=70, high=99)}, ValueError, "gamma is 70, but the target's"),
    ({"gamma": 3, "drafter": DraftModel(3)}, ValueError, "gamma=3 is given twice"),
    ({"gamma": 0, "drafter": DraftModel(3)}, ValueError, "gamma=0 is given twice"),
    ({"drafter": "eagle"}, TypeError, "drafter must be a specviz drafter"),
    ({"drafter": DraftModel}, TypeError, "drafter must be a specviz drafter"),
    ({"drafter": [DraftModel(2)]}, TypeError, "drafter must be a specviz drafter"),
    ({"drafter": DraftModel(noise="target")}, ValueError, "needs verify=.coupled., got verify"),
    ({"drafter": DraftModel(), "verify": "coupled"}, ValueError, "verify=.coupled. needs a draft"),
    ({"verify": "wishful"}, ValueError, "verify must be one of 'rejection', .*, got 'wishful'"),
    ({"verify": 3}, TypeError, "verify must be the name of a rule"),
    ({"verify": "greedy"}, ValueError, "verify='greedy' needs temperature=0, got temperature=1.0"),
    ({"verify": "greedy", "gamma": 0}, ValueError, "verify='greedy' needs temperature=0"),
    ({"max_new_tokens": -1}, ValueError, "max_new_tokens must be a whole number >= 0, got -1"),
    ({"max_new_tokens": 2.5}, TypeError, "max_new_tokens must be a whole number >= 0, got 2.5"),
    ({"max_new_tokens": None}, TypeError, "max_new_tokens must be a whole number"),
    ({"k": 0}, ValueError, "k must be a whole number >= 1, got 0"),
    ({"k": "all"}, TypeError, "k must be a whole number"),
    ({"seed": -1}, ValueError, "seed must be a whole number from 0 to"),
    ({"seed": 2**32}, ValueError, "seed must be a whole number from 0 to"),
    ({"seed": 1.5}, TypeError, "seed must be a whole number from 0 to"),
    ({"seed": None}, TypeError, "seed must be a whole number"),
    ({"sequence": -1}, ValueError, "sequence must be a whole number from 0 to"),
    ({"stop": 3}, TypeError, "stop must be a string or a list of strings, got 3"),
    ({"stop": [b"end"]}, TypeError, "stop must be a string or a list of strings"),
    ({"stop": None}, TypeError, "stop must be a string or a list of strings, got None"),
    ({"stop": ["end", ""]}, ValueError, "stop must not hold an empty string"),
    (
        {"prompt": []},
        ValueError,
        "list of token ids, 1 or more, got an empty one",
    ),
    ({"prompt": "text"}, TypeError, "prompt must be a list of token ids: a table has no tokenizer"),
    ({"prompt": None}, TypeError, "prompt must be"),
    ({"prompt": [0, 8]}, ValueError, "prompt has id .*, outside the vocabulary of 8 tokens"),
    ({"prompt": [-1]}, ValueError, "prompt has id .*, outside the vocabulary of 8 tokens"),
    ({"prompt": [0.5]}, TypeError, "prompt must be"),
    ({"prompt": [0] * 64}, ValueError, "prompt has 64 tokens, but the target's context is 64.*63"),
]


@pytest.mark.parametrize(
    ("arguments", "kind", "message"), BAD, ids=[str(case[0])[:50] for case in BAD]
)
@pytest.mark.parametrize("run", [sv.generate, sv.stream])
def test_bad_input_is_one_sentence_before_any_model_runs(
    run: Callable[..., Any], arguments: dict[str, Any], kind: type[Exception], message: str
) -> None:
    pair = untouchable(context_length=64)
    with pytest.raises(kind, match=message) as caught:
        run(pair, **{"prompt": [0], **arguments})
    assert type(caught.value) is kind
    assert "\n" not in str(caught.value)


def test_the_witness_would_notice_a_model_that_runs() -> None:
    with pytest.raises(AssertionError, match="ran before the arguments"):
        sv.generate(untouchable(), [0])


@pytest.mark.parametrize("pair", ["gpt2", None, object(), 3], ids=["str", "None", "object", "int"])
def test_what_is_no_pair_is_said(pair: Any) -> None:
    with pytest.raises(
        TypeError, match=r"pair must be a specviz.Pair .*got (str|NoneType|object|int)"
    ):
        sv.generate(pair, "Once")


def test_a_pair_without_a_draft_needs_another_drafter() -> None:
    alone = TabularPair(tables().target)
    with pytest.raises(ValueError, match=r"the pair has no draft model: .*gamma=0"):
        sv.generate(alone, [0])
    with pytest.raises(ValueError, match="the pair has no draft model"):
        sv.generate(alone, [0], drafter=DraftModel(2))
    assert len(sv.generate(alone, [0], gamma=0, max_new_tokens=3).tokens) == 3


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: DraftModel(-1), "gamma must be a whole number >= 0"),
        (lambda: DraftModel(noise="loud"), "noise must be 'draft' or 'target', got 'loud'"),
        (lambda: AdaptiveGamma(start=0), "start must be a whole number >= 1, got 0"),
        (lambda: AdaptiveGamma(start=9, high=5), "start must lie between low and high"),
        (lambda: AdaptiveGamma(up=1.5), "up must be a whole number >= 1"),  # type: ignore[arg-type]
    ],
)
def test_a_drafter_checks_its_own_arguments(make: Callable[[], Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        make()


# -- with models and text -------------------------------------------------------------------------


def explode(*args: Any, **kwargs: Any) -> Any:
    raise AssertionError("a model ran before the arguments were checked")


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ({"prompt": "fox " * 200}, ValueError, "prompt has .* tokens, but the target's context"),
        ({"prompt": ""}, ValueError, "prompt is empty, and the model has no beginning-of-text"),
        ({"prompt": None}, ValueError, "give exactly one of prompt .* and messages"),
        ({"prompt": "a", "messages": []}, ValueError, "give exactly one of prompt"),
        ({"prompt": None, "messages": [{"role": "user"}]}, ValueError, "need a chat template"),
        ({"prompt": [10**6]}, ValueError, "outside the target's vocabulary"),
        ({"prompt": 5}, TypeError, "prompt must be text or one sequence of token ids"),
        ({"prompt": {"a": 1}}, TypeError, "prompt must be text or one sequence of token ids"),
        ({"prompt": "a", "gamma": 128}, ValueError, "gamma is 128, but the target's context"),
        ({"prompt": "a", "stop": ""}, ValueError, "stop must not hold an empty string"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_bad_input_beside_real_models(
    monkeypatch: pytest.MonkeyPatch,
    arguments: dict[str, Any],
    kind: type[Exception],
    message: str,
) -> None:
    pair = texts()
    for model in (pair.target.model, pair.draft.model):
        monkeypatch.setattr(model, "forward", explode)
    with pytest.raises(kind, match=message):
        sv.generate(pair, **arguments)


def test_numbers_of_numpy_are_welcome_and_can_be_saved(tmp_path: Any) -> None:
    trace = sv.generate(
        tables(), np.array([0, 1]), gamma=np.int64(2), temperature=np.float32(0.5),
        top_p=np.float64(0.9), top_k=np.int64(5), max_new_tokens=np.int32(6), seed=np.uint8(3),
        progress=False,
    )  # fmt: skip
    assert len(trace.tokens) == 6
    trace.save(tmp_path / "numpy.specviz")
    assert sv.Trace.load(tmp_path / "numpy.specviz").same_as(trace)
