"""Other samplers as subjects: transformers' assisted generation, functions, a server's log."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch

import specviz as sv
from specviz.lossless import Verdict
from specviz.lossless.audit.adapters import Function, server_log
from specviz.lossless.audit.adapters import transformers as transformers_adapter
from specviz.lossless.audit.adapters.transformers import assisted, plain
from tests.lossless.tiny import small

PROMPT = [1, 2, 3]
N = 200


@pytest.fixture(scope="module")
def pair() -> sv.Pair:
    return sv.Pair(target=small(0), draft=small(1))


@pytest.fixture
def silence() -> Iterator[None]:
    """Nothing that transformers logs goes unnoticed."""
    from transformers.utils import logging as theirs

    seen: list[str] = []

    class Ears(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            seen.append(record.getMessage())

    ears, logger = Ears(level=logging.WARNING), theirs.get_logger("transformers")
    logger.addHandler(ears)
    theirs.warning_once.cache_clear() if hasattr(theirs.warning_once, "cache_clear") else None
    yield
    logger.removeHandler(ears)
    assert seen == []


@pytest.mark.usefixtures("silence")
def test_transformers_assisted_generation_passes(pair: sv.Pair) -> None:
    report = sv.audit(assisted(pair), PROMPT, target=pair, n=N, effect=0.4)
    assert report.verdict is Verdict.NO_DISCREPANCY_FOUND
    assert report.settings["num_assistant_tokens"] == 3


@pytest.mark.usefixtures("silence")
def test_its_ensemble_weight_is_flagged(pair: sv.Pair) -> None:
    lossy = assisted(pair, assistant_ensemble_weight=0.5)
    report = sv.audit(lossy, PROMPT, target=pair, n=N, effect=0.4)
    assert report.verdict is Verdict.DISCREPANCY
    assert report.settings["assistant_ensemble_weight"] == 0.5


@pytest.mark.parametrize(
    "how",
    [
        {"prompt_lookup_num_tokens": 3},
        {"assistant_early_exit": 1},
        {"temperature": 0.7, "top_k": 4},
    ],
)
@pytest.mark.usefixtures("silence")
def test_other_ways_run_and_are_held_to_their_own_settings(
    pair: sv.Pair, how: dict[str, Any]
) -> None:
    sampler = assisted(pair, **how)
    report = sv.audit(sampler, [1, 2, 3, 1, 2], target=pair, n=100, per_call=50, effect=0.7)
    assert report.verdict is Verdict.NO_DISCREPANCY_FOUND
    assert report.settings["temperature"] == how.get("temperature", 1.0)


@pytest.mark.usefixtures("silence")
def test_greedy_assisted_text_is_the_targets(pair: sv.Pair) -> None:
    texts = assisted(pair, do_sample=False, max_new_tokens=8)(PROMPT, 2, 0)
    ours = sv.generate(pair, PROMPT, temperature=0, gamma=0, max_new_tokens=8).tokens.tolist()
    assert texts == [ours, ours]


@pytest.mark.usefixtures("silence")
def test_plain_sampling_as_the_reference(pair: sv.Pair) -> None:
    off = plain(pair)
    right = sv.audit(plain(pair), PROMPT, reference=off, n=2000)
    swapped = sv.Pair(target=pair.draft, draft=pair.target)
    wrong = sv.audit(plain(swapped), PROMPT, reference=off, n=2000)
    assert right.verdict is Verdict.NO_DISCREPANCY_FOUND
    assert wrong.verdict is Verdict.DISCREPANCY
    assert right.samples[0].tokens.min() == -1  # some ended by themselves


def test_seeds_decide_and_nothing_else_is_touched(pair: sv.Pair) -> None:
    assert pair.draft is not None
    sampler = assisted(pair, num_assistant_tokens=2)
    torch.manual_seed(7)
    state = torch.get_rng_state()
    before = pair.draft.model.generation_config.to_dict()
    one, two, other = sampler(PROMPT, 5, 1), sampler(PROMPT, 5, 1), sampler(PROMPT, 5, 2)
    assert one == two != other
    assert torch.equal(torch.get_rng_state(), state)
    assert pair.draft.model.generation_config.to_dict() == before


def test_a_pair_without_a_draft_needs_something_that_proposes(pair: sv.Pair) -> None:
    with pytest.raises(ValueError, match="no draft model: give assistant_model="):
        assisted(sv.Pair(target=pair.target))


def test_a_function_must_be_one() -> None:
    with pytest.raises(TypeError, match="function must be callable, got int"):
        Function(3, "three")  # type: ignore[arg-type]


# -- a server's log

REQUEST = {
    "prompt_token_ids": [1, 2],
    "output_token_ids": [5, 6, 7, 8, 9],
    "sampling_params": {"temperature": 0.8, "top_k": -1, "seed": 11},
    "steps": [
        {"num_draft_tokens": 3, "num_accepted_tokens": 2, "draft_token_ids": [5, 6, 1]},
        {"num_draft_tokens": 3, "num_accepted_tokens": 1, "draft_token_ids": [8, 0, 0]},
    ],
}


def log(*rows: Any) -> server_log.ServerLog:
    return server_log.read(io.StringIO("\n".join(json.dumps(row) for row in rows)))


def test_a_log_gives_texts_and_what_its_steps_say() -> None:
    found = log(REQUEST, {"prompt_ids": [1], "token_ids": [2]})
    assert found.records[0].token_ids == (5, 6, 7, 8, 9)
    assert found.records[0].seed == 11
    assert found.accepted_share == pytest.approx(3 / 6)
    assert found.tokens_per_step == pytest.approx(5 / 2)
    assert found.check() == []


CONTRADICTIONS = [
    ([{"drafted": 2, "accepted": 3}], "step 0 accepted 3 of 2"),
    ([{"drafted": 2, "accepted": 2}], "the steps emit 3 tokens, the text has 5"),
    ([{"drafted": 4, "accepted": 4}, {"drafted": 1, "accepted": 0}], "step 1 comes after the text"),
    ([{"drafted": 4, "accepted": 4, "draft_ids": [5, 6, 0, 8]}], "accepted token 0 at position 2"),
    ([{"drafted": 4, "accepted": 4, "draft_ids": [5, 6, 7]}], "names 3 of 4"),
]


@pytest.mark.parametrize(("steps", "message"), CONTRADICTIONS)
def test_a_log_that_contradicts_itself(steps: Any, message: str) -> None:
    (said, *_) = log({**REQUEST, "steps": steps}).check()
    assert said.startswith("request 0: ")
    assert message in said


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ([], "line 1: must be a JSON object"),
        ({**REQUEST, "steps": [3]}, "line 1: steps must be a list of objects"),
        ({**REQUEST, "steps": [{"drafted": 1}]}, "accepted is missing"),
        ({**REQUEST, "output_token_ids": "x"}, "token_ids must be a list"),
    ],
)
def test_a_line_that_is_no_log_is_named(row: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        log(row)


def test_the_texts_of_a_log_are_audited(pair: sv.Pair) -> None:
    texts = plain(pair, temperature=0.8, max_new_tokens=4)(PROMPT, 1500, 3)
    rows = [{"prompt_ids": PROMPT, "token_ids": t, "settings": {"temperature": 0.8}} for t in texts]
    assert sv.audit(log(*rows).records, target=pair).verdict is Verdict.NO_DISCREPANCY_FOUND
    hot = [{**row, "settings": {"temperature": 1.3}} for row in rows]
    assert sv.audit(log(*hot).records, target=pair).verdict is Verdict.DISCREPANCY
    assert len(np.unique([len(t) for t in texts])) > 1


# What a checkpoint's own generation_config asks for -----------------------------------------------


@pytest.mark.parametrize(
    "own",
    [
        {"temperature": 0.4, "repetition_penalty": 2.0, "do_sample": True},
        {"suppress_tokens": [2, 3], "no_repeat_ngram_size": 2, "do_sample": True},
    ],
    ids=lambda own: next(iter(own)),
)
def test_a_checkpoints_own_settings_do_not_shape_the_texts_of_an_audit(own: dict[str, Any]) -> None:
    pair = sv.Pair(small(1), small(2))
    for name, value in own.items():
        setattr(pair.target.model.generation_config, name, value)
        setattr(pair.draft.model.generation_config, name, value)
    before = pair.target.model.generation_config.to_dict()
    for sampler, n in ((plain(pair), 1000), (assisted(pair), 100)):
        report = sv.audit(
            sampler, [1, 2, 3], target=pair, n=n, length=4, effect=0.5, seed=3, progress=False
        )
        assert report.exit_code != 1, report
    assert pair.target.model.generation_config.to_dict() == before
    with pytest.MonkeyPatch.context() as patch:  # the twin: with them the texts are others
        patch.setattr(
            transformers_adapter,
            "_neutral",
            contextmanager(lambda model: iter([model.generation_config])),
        )
        wrong = sv.audit(
            plain(pair),
            [1, 2, 3],
            target=pair,
            n=1500,
            length=4,
            effect=0.5,
            seed=3,
            progress=False,
        )
    assert wrong.exit_code == 1
