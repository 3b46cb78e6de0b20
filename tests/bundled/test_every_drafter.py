"""Every drafter on the bundled pair: equal texts, exact distributions,
the lossy one shown to be so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np
import pytest

import specviz as sv
from specviz.api import arguments
from specviz.core.contract import Draft, Sampling
from specviz.core.rules import RULES, Rule, ratio, residual
from specviz.core.rules.rejection import rejection
from specviz.decoding.hf.target import HFTarget
from specviz.decoding.sampling import logits_to_distributions
from specviz.lossless import enumerate_distribution, total_variation
from tests.bundled.prompts import NOVELS, PROMPTS, RECORDS, STORIES
from tests.drafters.changed import Unprojected
from tests.lossless.chisquare import p_value, power

DRAFTERS: dict[str, Callable[[], Any]] = {
    "draft model": lambda: sv.DraftModel(4),
    "early exit": lambda: sv.EarlyExit(4, 4),
    "int8 draft": lambda: sv.Quantized(4),
    "int8 target": lambda: sv.Quantized(4, of="target"),
    "prompt lookup": lambda: sv.PromptLookup(5),
    "lookup, else draft": lambda: sv.Combined(sv.PromptLookup(5, min_ngram=2), sv.DraftModel(3)),
    "tree without replacement": lambda: sv.Tree((3, 2, 1)),
    "tree with replacement": lambda: sv.Tree((3, 2, 1), kind="with_replacement"),
    "tree of the most likely": lambda: sv.Tree((3, 2, 1), kind="top_k"),
    "Medusa": lambda: sv.Medusa(),
    "EAGLE": lambda: sv.Eagle(),
}
every_drafter = pytest.mark.parametrize("name", DRAFTERS)
TOP_3 = Sampling(top_k=3)


def run(pair: sv.Pair, prompt: str, length: int, **how: Any) -> sv.Trace:
    return sv.generate(pair, prompt, max_new_tokens=length, progress=False, **how)


# Equal texts ------------------------------------------------------------------------------------


def check_texts(pair: sv.Pair, name: str, prompt: str, length: int) -> None:
    plain = run(pair, prompt, length, gamma=0, temperature=0)
    greedy = run(pair, prompt, length, drafter=DRAFTERS[name](), temperature=0)
    assert greedy.tokens.tolist() == plain.tokens.tolist()
    own = run(pair, prompt, length, gamma=0, seed=9)
    match = run(pair, prompt, length, drafter=DRAFTERS[name](), verify="match", seed=9)
    assert match.tokens.tolist() == own.tokens.tolist()
    drawn = run(pair, prompt, length, drafter=DRAFTERS[name](), seed=9)
    assert all(trace.check().ok for trace in (greedy, match, drawn))


@every_drafter
def test_greedy_and_match_give_the_targets_text(pair: sv.Pair, name: str) -> None:
    check_texts(pair, name, RECORDS[0], 40)


LONG_RUNS = [(name, prompt) for name in DRAFTERS for prompt in (STORIES[0], NOVELS[0])]
LONG_RUNS += [(name, RECORDS[1]) for name in DRAFTERS if "lookup" in name]  # where it copies


@pytest.mark.slow
@pytest.mark.parametrize(("name", "prompt"), LONG_RUNS)
def test_greedy_and_match_over_300_tokens(pair: sv.Pair, name: str, prompt: str) -> None:
    check_texts(pair, name, prompt, 300)


# The distribution
# ----------------------------------------------------------------------------------------


def too_willing(p: Any, q: Any, x: int) -> float:
    """Wrong: the square root of the acceptance probability."""
    return ratio(p, q, x) ** 0.5


WILLING = replace(RULES["rejection"], verify=partial(rejection, chance=too_willing))

SHORT: dict[str, Callable[[], Any]] = {
    **DRAFTERS,
    "draft model": lambda: sv.DraftModel(1),
    "early exit": lambda: sv.EarlyExit(4, 1),
    "int8 draft": lambda: sv.Quantized(1),
    "int8 target": lambda: sv.Quantized(1, of="target", bits=4),  # in 8 bits it hardly ever errs
    "prompt lookup": lambda: sv.PromptLookup(1),
    "lookup, else draft": lambda: sv.Combined(sv.PromptLookup(1, min_ngram=2), sv.DraftModel(1)),
    "tree without replacement": lambda: sv.Tree((2,)),
    "tree with replacement": lambda: sv.Tree((2,), kind="with_replacement"),
    "tree of the most likely": lambda: sv.Tree((2,), kind="top_k"),
    "Medusa": lambda: sv.Medusa(tree=(2,)),
    "EAGLE": lambda: sv.Eagle(gamma=1),
}


AFTER_A_PASS = ("Medusa", "EAGLE")
"""They read the target's last state, so the first round of a text has none to propose from."""


@pytest.fixture(scope="module")
def prompt(pair: sv.Pair) -> list[int]:
    """Beginning, token, beginning: so that the lookup proposes that token again.

    Of all such prompts the one after which the planted fault shows most, both for a proposal of
    the draft model and for the token looked up.
    """

    def distribution_of(model: Any, ids: list[int]) -> Any:
        session = HFTarget(model)
        return logits_to_distributions(
            session.verify(np.array(ids), Draft.empty(pair.vocab_size)), TOP_3
        )[0]

    def shows(ids: list[int], looked_up: int) -> float:
        p, q = distribution_of(pair.target, ids), distribution_of(pair.draft, ids)
        kept = np.array([q[x] and q[x] * too_willing(p, q, x) for x in range(len(q))])
        wrong = kept + (1 - kept.sum()) * residual(p, q)
        by_lookup = too_willing(p, np.eye(len(p))[looked_up], looked_up) - p[looked_up]
        return min(0.5 * abs(wrong - p).sum(), by_lookup)

    candidates = {}
    for text in PROMPTS:
        ids = pair.encode(text).tolist()
        for x in np.argsort(-distribution_of(pair.target, ids))[:2].tolist():
            candidates[(*ids, x, *ids)] = shows([*ids, x, *ids], x)
    return list(max(candidates, key=lambda ids: candidates[ids]))


@pytest.fixture(scope="module")
def distribution(pair: sv.Pair, prompt: list[int]) -> Callable[[int], dict[tuple[int, ...], float]]:
    return cache(
        lambda length: sv.lossless.target_distribution(
            pair, prompt=prompt, length=length, sampling=TOP_3
        )
    )


def induced(
    pair: sv.Pair, drafter: Any, rule: str | Rule, prompt: list[int], length: int = 2
) -> Any:
    return enumerate_distribution(
        pair,
        drafter,
        verify=rule,
        prompt=prompt,
        length=length,
        sampling=TOP_3,  # type: ignore[arg-type]
    )


@every_drafter
def test_the_distribution_of_a_few_tokens_by_enumeration(
    pair: sv.Pair, name: str, prompt: list[int], distribution: Any
) -> None:
    drafter = SHORT[name]()
    length = 3 if name in AFTER_A_PASS else 2
    right = induced(pair, drafter, "rejection", prompt, length)
    assert total_variation(right, distribution(length)) < 1e-5  # float32
    assert (
        total_variation(induced(pair, drafter, WILLING, prompt, length), distribution(length))
        > 0.003
    )


@pytest.mark.slow
def test_chi_square_of_early_exit(pair: sv.Pair) -> None:
    """After the prompt at which the planted fault shows most for this very drafter."""
    n, drafter = 1200, sv.EarlyExit(4, 1)

    def distributions_after(text: str) -> tuple[float, list[int], Any, Any]:
        ids = pair.encode(text).tolist()
        right = sv.lossless.target_distribution(pair, prompt=ids, length=2, sampling=TOP_3)
        wrong = induced(pair, drafter, WILLING, ids)
        return power(right, wrong, n, 1e-3), ids, right, wrong

    seen, prompt, distribution, wrong = max(
        (distributions_after(text) for text in PROMPTS), key=lambda x: x[0]
    )
    assert seen > 0.99
    assert total_variation(wrong, distribution) > 0.01

    def drawn(rule: Rule) -> list[tuple[int, ...]]:
        return [
            tuple(sv.generate(pair, prompt, drafter=drafter, verify=rule, max_new_tokens=2, seed=3,
                              sequence=i, top_k=3, progress=False).tokens.tolist())
            for i in range(n)
        ]  # fmt: skip

    assert p_value(drawn(RULES["rejection"]), distribution) > 0.01
    assert p_value(drawn(WILLING), distribution) < 1e-3


# The lossy one ----------------------------------------------------------------------------------


def test_projected_keys_and_values_are_shown_not_to_be_lossless(
    pair: sv.Pair, prompt: list[int], distribution: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    fitted = sv.KVProjection(1).start(pair, HFTarget(pair.target), np.array(prompt)).projection
    lossy = sv.KVProjection(1, projection=fitted)
    assert total_variation(induced(pair, lossy, "rejection", prompt), distribution(2)) > 0.05
    twin = Unprojected(1, projection=fitted)
    assert total_variation(induced(pair, twin, "rejection", prompt), distribution(2)) < 1e-5
    monkeypatch.setattr(arguments, "_WARNED", {"kv_projection"})
    trace = run(pair, STORIES[0], 30, drafter=lossy)
    assert trace.check().ok and trace.meta["lossless"] is False
    assert 0 < fitted.explained < 1
