"""The distribution of what the bundled pair writes: by enumeration and chi-square,
with a planted twin.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import specviz as sv
from specviz.core.contract import Sampling
from specviz.drafters.draft_model import DraftModel
from specviz.lossless import enumerate_distribution, total_variation
from tests.bundled.prompts import PROMPTS
from tests.decoding.cached_pair import (
    continuations,
    joint_distribution,
    pairs_distribution,
    resampling,
    witness,
)
from tests.lossless.chisquare import p_value, power
from tests.lossless.planted import WRONG_RULES

LEVEL = 1e-3
FULL = Sampling()
TOP_4 = Sampling(top_k=4)
RESAMPLE = WRONG_RULES["resample_from_p"]


@pytest.fixture(scope="module")
def prompt(pair: sv.Pair, remembered: Any) -> tuple[int, ...]:
    """The prompt after which the planted fault changes the next token most."""
    return witness(remembered, [pair.encode(text).tolist() for text in PROMPTS], FULL)


def test_the_distribution_of_three_tokens_by_enumeration(
    remembered: Any, prompt: tuple[int, ...]
) -> None:
    """Every way the draws can fall, with top-k 4 and gamma 2: exact, and the twin is not."""

    def induced(rule: Any) -> dict[tuple[int, ...], float]:
        return enumerate_distribution(
            remembered, DraftModel(2), verify=rule, prompt=prompt, length=3, sampling=TOP_4
        )

    distribution = joint_distribution(remembered.target, prompt, 3, TOP_4)
    assert total_variation(induced("rejection"), distribution) <= 1e-12
    assert total_variation(induced(RESAMPLE), distribution) > 0.01


def test_the_distribution_of_two_tokens_by_chi_square(
    remembered: Any, prompt: tuple[int, ...]
) -> None:
    """Temperature 1, nothing filtered, gamma 1: a proposal and its bonus, or a correction."""
    n = 2000
    p, q = remembered.target.distribution(prompt, FULL), remembered.draft.distribution(prompt, FULL)
    firsts = np.argsort(-p, kind="stable")[:8].tolist()
    distribution = pairs_distribution(remembered.target, prompt, firsts, FULL)
    shift = resampling(p, q) / p
    wrong = {text: mass * shift[text[0]] for text, mass in distribution.items() if text}
    wrong[()] = 1 - sum(wrong.values())
    assert power(distribution, wrong, n, 1e-6) > 0.999, (
        "the fault in the first token alone would be seen"
    )

    def drawn(rule: Any) -> list[tuple[int, ...]]:
        texts = continuations(
            remembered, DraftModel(1), rule, prompt, length=2, count=n, seed=11, sampling=FULL
        )
        return [text if text[0] in firsts else () for text in texts]

    assert p_value(drawn("rejection"), distribution) > LEVEL
    assert p_value(drawn(RESAMPLE), distribution) < 1e-6
