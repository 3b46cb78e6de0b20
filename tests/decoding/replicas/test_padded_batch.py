"""Texts of different lengths in one batch: the logits are those of each text alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from specviz.core.contract import Draft
from specviz.decoding.hf.cache import UnsupportedModelError
from specviz.decoding.replicas import padded_batch as ragged
from specviz.decoding.replicas.padded_batch import PaddedBatch, Pass, open_padded_batch
from tests.decoding import families as f

NONE = Draft.empty(f.VOCAB)
PROMPT = [1, 5, 9]
LONG = [33, 80, 41, 2, 17, 60, 22, 4, 71, 35, 12]  # past the window of the sliding models


def chain(*tokens: int) -> Draft:
    return Draft.chain(tokens, None, f.VOCAB)


def fed(pending: list[int], draft: Draft = NONE) -> np.ndarray:
    return np.array([*pending, *draft.tokens.tolist()])


def off(logits: np.ndarray, model: Any, text: list[int]) -> float:
    return float(np.abs(logits - f.plain(model, text)).max())


def errors(model: Any, many: PaddedBatch) -> list[float]:
    """Two texts that are fed, cut back and fed again, and a third that sits a pass out."""
    found: list[float] = []
    many.fill(np.array(PROMPT))
    first, second, third = many.run(
        [
            Pass(0, 3, fed(LONG[:2], chain(7, 8, 90)), chain(7, 8, 90)),
            Pass(1, 3, fed([50]), NONE),
            Pass(2, 3, fed(LONG), NONE),
        ]
    )
    found += [off(first[0], model, [*PROMPT, *LONG[:2]])]
    found += [off(first[3], model, [*PROMPT, *LONG[:2], 7, 8, 90])]
    found += [off(second[0], model, [*PROMPT, 50])]
    found += [off(third[0], model, [*PROMPT, *LONG])]
    # one proposal of the first text was kept; the second one goes on for long
    first, second = many.run([Pass(0, 6, fed([44]), NONE), Pass(1, 4, fed(LONG), NONE)])
    found += [off(first[0], model, [*PROMPT, *LONG[:2], 7, 44])]
    found += [off(second[0], model, [*PROMPT, 50, *LONG])]
    # siblings, of which the second is kept
    tree = f.tree([3, 4, 6], [-1, -1, 1])
    first, third = many.run([Pass(0, 7, fed([45], tree), tree), Pass(2, 14, fed([46]), NONE)])
    text = [*PROMPT, *LONG[:2], 7, 44, 45]
    found += [off(first[0], model, text), off(first[1], model, [*text, 3])]
    found += [off(first[2], model, [*text, 4]), off(first[3], model, [*text, 4, 6])]
    found += [off(third[0], model, [*PROMPT, *LONG, 46])]
    many.move(0, 8, [1, 2])
    (first,) = many.run([Pass(0, 10, fed([47]), NONE)])
    found += [off(first[0], model, [*text, 4, 6, 47])]
    return found


@pytest.mark.parametrize("build", f.FAMILIES.values(), ids=list(f.FAMILIES))
def test_logits_are_those_of_each_text_alone(build: Callable[[], f.Pair]) -> None:
    model, _ = build()
    assert max(errors(model, open_padded_batch(model, f.VOCAB, rows=3))) < 1e-3


@pytest.fixture(scope="module")
def llama() -> Any:
    return f.FAMILIES["llama"]()[0]


def _everything_is_seen(self: PaddedBatch, passes: Any, columns: Any, end: int) -> Any:
    seen = torch.zeros(len(passes), 1, columns.shape[1], end)
    return dict.fromkeys(self.session.kind.windows, seen)


def _positions_are_one_late(self: PaddedBatch, passes: Any, columns: Any) -> Any:
    return columns + (columns >= 6)


def _not_moved(self: PaddedBatch, row: int, start: int, path: Any) -> None:
    pass


@pytest.mark.parametrize(
    ("part", "wrong"),
    [
        ("_masks", _everything_is_seen),  # rejected columns are left unmasked
        ("_positions", _positions_are_one_late),
        ("move", _not_moved),
    ],
)
def test_a_planted_fault_shows(
    llama: Any, monkeypatch: pytest.MonkeyPatch, part: str, wrong: Any
) -> None:
    many = open_padded_batch(llama, f.VOCAB, rows=3)
    monkeypatch.setattr(PaddedBatch, part, wrong)
    assert max(errors(llama, many)) > 0.05


def test_the_trial_finds_a_model_that_mixes_rows_up(monkeypatch: pytest.MonkeyPatch) -> None:
    model, _ = f.FAMILIES["llama"]()
    monkeypatch.setattr(PaddedBatch, "_masks", _everything_is_seen)
    for _ in range(2):  # and remembers it
        with pytest.raises(UnsupportedModelError, match="'llama' cannot read texts of different"):
            open_padded_batch(model, f.VOCAB, rows=3)


@pytest.mark.parametrize("family", list(f.CHAINS_ONLY))
def test_models_that_count_columns_are_refused_by_name(family: str) -> None:
    model, _ = f.CHAINS_ONLY[family]()
    with pytest.raises(UnsupportedModelError, match=f"model type '{model.kind}'.*ALiBi"):
        open_padded_batch(model, f.VOCAB, rows=3)
    assert model.model not in ragged._tried


def test_a_table_is_refused() -> None:
    from specviz.core.tabular import TabularModel

    with pytest.raises(UnsupportedModelError, match="TabularModel is not a network"):
        open_padded_batch(TabularModel([0.5, 0.5]), 2, rows=3)
