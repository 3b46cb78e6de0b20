"""``trace.check()`` notices every way of tampering but those listed here, each with its reason."""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest

from specviz.core.trace.replay import CONSISTENT
from specviz.core.trace.trace import Trace
from tests.core.ways import KINDS, copied, every_way, run

MEASURED = "measured: no other number depends on it"
DESCRIBES = "describes the run; no recorded number depends on it"
TAIL = "only k of 24 alternatives are kept: within the bounds that they set, it may be so"
MAY_BE = "no recorded number is impossible under it"

UNNOTICED: dict[str, str] = {
    **dict.fromkeys(
        ("round.draft_seconds", "round.verify_seconds", "round.other_seconds"), MEASURED
    ),
    "round.draft_proposed": "what a drafter's cache holds in mid-round is its own business",
    "round.gamma": "a drafter may ask for more than it then proposes",
    "node.entropy_p": TAIL,
    "node.entropy_q": TAIL,
    "node.residual_cdf": TAIL,
    "round.closing_entropy": TAIL,
    "round.closing_ids": TAIL,
    "round.closing_cdf": TAIL,
    "node.q_second": "the runner-up of a race may be in the tail",
    "node.own_second": "the runner-up of a race may be in the tail",
    "sampling.temperature": MAY_BE,
    "sampling.repetition_penalty": MAY_BE,
    "rule_settings.epsilon": MAY_BE,
    "rule_settings.delta": MAY_BE,
    "stop_ids empty": MAY_BE,
    "stop_ids with one that never came": MAY_BE,
    "stop with a string that never came": MAY_BE,
    "target.context_length": MAY_BE,
    "draft.context_length": MAY_BE,
    "draft.vocab_size": MAY_BE,
    "lossless denied": "claims less than is true",
    "drafter.gamma": DESCRIBES,
    "drafter.name kv_projection": "of a run that says it is lossy: " + DESCRIBES,
    "drafter.name prompt_lookup": "of a run whose proposals were not drawn: " + DESCRIBES,
    "drafter.name draft_model": DESCRIBES,
    "drafter.noise": "of the target alone: " + DESCRIBES,
    "rule coupled": "of the target alone, match and coupled are one",
    "seed": "a greedy run has no draws",
    "sequence": "a greedy run has no draws",
    **dict.fromkeys(
        (
            *(f"{model}.{key}" for model in ("target", "draft")
              for key in ("name", "kind", "device", "dtype", "parameters")),
            "versions.torch", "forward deleted",
        ),
        DESCRIBES,
    ),
    "prompt": "the draws depend on positions only, and p and q are taken as recorded",
    "pieces": "what is displayed; without the tokenizer nobody knows",
    "strings": "what is displayed; without the tokenizer nobody knows",
}  # fmt: skip


def is_noticed(trace: Trace, followed: int) -> bool:
    """Whether something contradicts, or less follows than before."""
    try:
        replay = trace.check()
    except ValueError as error:  # a rule that does not take these settings
        assert "the trace" in str(error)
        return True
    return not replay.ok or replay.counts["follows"] < followed


@cache
def missed(kind: str) -> tuple[int, Counter[str]]:
    """How many ways were tried on a run, and which of them went unnoticed, how often."""
    honest = run(kind).check()
    assert honest.ok, honest
    ways = [(name, is_noticed(x, honest.counts["follows"])) for name, x in every_way(run(kind))]
    return len(ways), Counter(name for name, noticed in ways if not noticed)


@pytest.mark.parametrize("kind", KINDS)
def test_what_goes_unnoticed_is_listed(kind: str) -> None:
    tried, names = missed(kind)
    assert set(names) <= set(UNNOTICED)
    assert tried > 100 and names.total() < 0.4 * tried


def test_the_list_has_nothing_that_is_always_noticed() -> None:
    assert set(UNNOTICED) == {name for kind in KINDS for name in missed(kind)[1]}


@pytest.mark.parametrize("name", ["seed", "sequence", "sampling", "stop_ids", "finish_reason"])
def test_what_was_deleted_is_missed(name: str) -> None:
    for kind in KINDS:
        twin = copied(run(kind))
        del twin.meta[name]
        replay = twin.check()
        assert replay.ok and replay.counts[CONSISTENT] > run(kind).check().counts[CONSISTENT]
