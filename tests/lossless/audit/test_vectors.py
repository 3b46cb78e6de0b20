"""The published vectors: what the shipped rules answer, and enough to catch a wrong verifier."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from specviz.lossless.audit import vectors as made

FILE = made.vectors()
CASES = FILE["cases"]


def test_the_published_file_is_what_the_rules_answer_now() -> None:
    assert made.regenerate() == FILE
    assert made.written(FILE) == made.written(made.regenerate())


def test_there_are_a_hundred_and_each_is_whole() -> None:
    assert FILE["format_version"] == 1
    assert len(CASES) >= 100
    assert {case["rule"] for case in CASES} == {"rejection", "block"}
    for case in CASES:
        n, vocab = len(case["proposals"]), case["vocab_size"]
        assert np.shape(case["p"]) == (n + 1, vocab)
        assert len(case["u_accept"]) == len(case["q"]) == n
        assert 0 <= case["accepted"] <= n
        cdf = np.cumsum(case["closing_distribution"])
        assert case["cdf_low"] <= case["u_closing"] * cdf[-1] < case["cdf_high"]
        assert case["closing_distribution"][case["token"]] > 0
        assert all(q[x] > 0 for q, x in zip(case["q"], case["proposals"], strict=True))


def another(case: dict[str, Any], strict: bool = True, bonus_row: int = -1) -> tuple[int, int]:
    """``rejection`` written anew from the file's documentation, without our code."""
    p, q = case["p"], case["q"]
    kept, distribution = 0, None
    for i, x in enumerate(case["proposals"]):
        u, ratio = case["u_accept"][i], min(1.0, p[i][x] / q[i][x])
        if not (u < ratio if strict else u <= ratio):
            distribution = [max(0.0, a - b) for a, b in zip(p[i], q[i], strict=True)]
            total = sum(distribution)
            distribution = [a / total for a in distribution]
            break
        kept += 1
    distribution = p[bonus_row] if distribution is None else distribution
    place, reached = case["u_closing"] * sum(distribution), 0.0
    for token, mass in enumerate(distribution):
        reached += mass
        if place < reached:
            return kept, token
    return kept, max(t for t, mass in enumerate(distribution) if mass > 0)


REJECTION = [case for case in CASES if case["rule"] == "rejection"]


def wrong_answers(**how: Any) -> list[str]:
    return [
        case["name"]
        for case in REJECTION
        if another(case, **how)[0] != case["accepted"]
        or (case["sharp"] and another(case, **how)[1] != case["token"])
    ]


def test_an_implementation_from_the_documentation_answers_all() -> None:
    assert wrong_answers() == []


@pytest.mark.parametrize(("how", "least"), [({"strict": False}, 1), ({"bonus_row": 0}, 3)])
def test_wrong_implementations_do_not(how: dict[str, Any], least: int) -> None:
    assert len(wrong_answers(**how)) >= least


def test_the_vectors_hold_every_way_a_round_can_end() -> None:
    endings = {
        (case["rule"], len(case["proposals"]), case["accepted"])
        for case in CASES
        if case["name"].startswith("random")
    }
    for rule in ("rejection", "block"):
        assert any(r == rule and kept == n > 1 for r, n, kept in endings)
        assert any(r == rule and kept == 0 for r, n, kept in endings)
        assert any(r == rule and 0 < kept < n for r, n, kept in endings)
