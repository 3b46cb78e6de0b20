"""The distribution of texts that are decoded in batches: chi-square and audits,
with their planted twins.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import specviz as sv
from specviz.core.contract import Sampling
from specviz.core.rules import RULES
from specviz.decoding.replicas.engine import Replicas
from specviz.lossless import Verdict
from tests.decoding import families
from tests.decoding.cached_pair import joint_distribution, memoised, witness
from tests.lossless.chisquare import p_value
from tests.lossless.planted import WRONG_RULES

TOP_4 = Sampling(top_k=4)


@pytest.fixture(scope="module")
def pair() -> sv.Pair:
    target, draft = families.FAMILIES["llama"]()
    return sv.Pair(target=target, draft=draft)


def test_the_joint_distribution_of_texts_that_go_beyond_gamma(pair: sv.Pair) -> None:
    """Four tokens with gamma 2, the four likeliest at each position."""
    remembered = memoised(pair)
    prompt = witness(remembered, [[1, 2, i] for i in range(8)], TOP_4)
    distribution = joint_distribution(remembered.target, prompt, 4, TOP_4)

    def drawn(rule: Any) -> list[tuple[int, ...]]:
        many = Replicas(
            pair, np.array(prompt), 4, sv.DraftModel(2), rule, sampling=TOP_4, seed=5,
            max_new_tokens=6, at_once=64,
        )  # fmt: skip
        return [tuple(text) for text in many.draw(1500, progress=False).tolist()]

    assert p_value(drawn(RULES["rejection"]), distribution) > 1e-3
    assert p_value(drawn(WRONG_RULES["resample_from_p"]), distribution) < 1e-6


@pytest.mark.parametrize("drafter", [sv.DraftModel(3), sv.PromptLookup(3)])
def test_an_audit_of_long_texts(
    pair: sv.Pair, monkeypatch: pytest.MonkeyPatch, drafter: Any
) -> None:
    """Drawn in batches by ``match``; a planted fault, which is drawn so too, is found."""
    drawn: list[bool] = []
    batches = Replicas._batches

    def seen(self: Replicas, n: int) -> Any:
        found = batches(self, n)
        drawn.append(found is not None)
        return found

    monkeypatch.setattr(Replicas, "_batches", seen)
    settings = {"n": 60, "length": 30, "seed": 1, "progress": False}
    right = sv.audit(pair, [1, 2, 3], drafter=drafter, verify="match", **settings)
    assert right.verdict is Verdict.NO_DISCREPANCY_FOUND
    wrong = sv.audit(pair, [1, 2, 3], gamma=3, fault="always_accept", **settings)
    assert wrong.verdict is Verdict.DISCREPANCY
    assert drawn == [True, True]
