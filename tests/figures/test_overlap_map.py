"""Any text under target and draft: one pass gives what step-by-step passes give."""

from __future__ import annotations

import numpy as np
import pytest

import specviz as sv
from specviz.figures.plots import overlap_map as module

TARGET, DRAFT, OTHER = (sv.tabular.TabularModel.random(6, order=2, seed=i) for i in range(3))
PAIR = sv.tabular.TabularPair(TARGET, DRAFT)
TEXT = [0, 3, 1, 5, 2, 2, 4, 0, 1]


def by_hand(draft: sv.tabular.TabularModel) -> list[float]:
    return [
        float(np.minimum(TARGET.distribution(TEXT[:i]), draft.distribution(TEXT[:i])).sum())
        for i in range(1, len(TEXT))
    ]


def test_one_pass_gives_what_every_context_gives() -> None:
    data = sv.overlap_map.data(PAIR, TEXT, drafts={"one": DRAFT, "two": OTHER})
    for one, draft in zip(data.drafts, (DRAFT, OTHER), strict=True):
        assert one.overlap == pytest.approx(by_hand(draft))
        assert one.alpha == pytest.approx(np.mean(by_hand(draft)))
    assert len(data.words) == len(TEXT) - 1
    # the twin: a draft read one position late is another draft
    assert data.drafts[0].overlap[1:] != pytest.approx(by_hand(DRAFT)[:-1])


def test_a_long_text_is_read_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "AT_ONCE", 6 * 2 * 3)  # three positions at a time
    assert sv.overlap_map.data(PAIR, TEXT).drafts[0].overlap == pytest.approx(by_hand(DRAFT))


def test_the_table_has_theory_s_gamma_and_gain() -> None:
    (one,) = sv.overlap_map.data(PAIR, TEXT).drafts
    assert one.gamma == sv.theory.best_gamma(one.alpha, one.c)
    drawn = sv.overlap_map(PAIR, TEXT)
    said = [text.get_text() for text in drawn.texts]
    assert "predicted gain" in said
    assert any("not the target's own" in line for line in said)
    assert "not the target's own" in drawn.caption


def test_what_cannot_be_read_is_one_sentence() -> None:
    with pytest.raises(ValueError, match="text has 1 tokens"):
        sv.overlap_map(PAIR, [0])
    with pytest.raises(ValueError, match="pair has no draft model: give drafts"):
        sv.overlap_map(sv.tabular.TabularPair(TARGET), TEXT)
    with pytest.raises(ValueError, match="temperature cannot be combined with sampling"):
        sv.overlap_map(PAIR, TEXT, sampling=sv.Sampling(), temperature=1.0)
