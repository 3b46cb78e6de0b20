"""Rounded weights as a draft: exact, made once, and near the float model they come from."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import specviz as sv
from specviz.decoding.hf.target import open_session
from specviz.drafters.comparison import compare_drafts
from specviz.drafters.quantized import Quantized
from specviz.lossless import enumerate_distribution, total_variation
from specviz.models.quantize import quantize
from tests.decoding import families as f
from tests.drafters.small import plain_distribution, small_llama, with_noise


@pytest.fixture(scope="module")
def pair() -> sv.Pair:
    return sv.Pair(*f.FAMILIES["llama"]())


def run(pair: Any, **options: Any) -> sv.Trace:
    return sv.generate(pair, [1, 2, 3], progress=False, **options)


@pytest.mark.parametrize("of", ["draft", "target"])
def test_greedy_text_is_the_targets_over_300_tokens(pair: sv.Pair, of: str) -> None:
    plain = run(pair, gamma=0, temperature=0, max_new_tokens=300)
    drafted = run(pair, drafter=Quantized(of=of), temperature=0, max_new_tokens=300)
    assert len(set(plain.tokens.tolist())) >= 20
    assert drafted.tokens.tolist() == plain.tokens.tolist()
    assert drafted.check().ok


def test_sampling_replays_and_match_gives_the_targets_text(pair: sv.Pair) -> None:
    trace = run(pair, drafter=Quantized(3, of="target", bits=4), verify="match", seed=5)
    assert trace.tokens.tolist() == run(pair, gamma=0, seed=5).tokens.tolist()
    assert trace.check().ok
    known = {"name": "quantized", "gamma": 3, "noise": "draft", "of": "target", "bits": 4}
    assert trace.meta["drafter"] == known
    assert run(pair, drafter=Quantized(bits=2), seed=5).check().ok


def test_the_distribution_is_the_targets_exactly() -> None:
    target = small_llama(3, layers=2, seed=6, spread=1.5)
    tiny = sv.Pair(target, with_noise(target, 0.3))
    prompt = np.array([0, 1, 2])
    distribution = plain_distribution(tiny.target, prompt, 2)
    for of, bits in (("draft", 8), ("target", 2)):
        drafter = Quantized(1, of=of, bits=bits)
        induced = enumerate_distribution(tiny, drafter, prompt=prompt, length=2)
        assert total_variation(induced, distribution) < 1e-12


def test_the_copy_is_made_once_and_the_pair_keeps_its_models(
    pair: sv.Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, draft = pair.target.model, pair.draft.model
    recipes = Quantized(of="target"), Quantized(gamma=2, of="target"), Quantized(of="draft")
    prompt = np.array([1, 2])
    first, second, other = (
        recipe.start(pair, open_session(pair.target), prompt).model for recipe in recipes
    )
    assert first.model is second.model and first.model is not target
    assert pair.target.model is target and pair.draft.model is draft
    assert other.model is not draft


def test_beside_the_float_models(pair: sv.Pair) -> None:
    models = {
        "draft": pair.draft,
        "draft int8": quantize(pair.draft, kernel="integer"),
        "target": pair.target,
        "target int8": quantize(pair.target, kernel="integer"),
        "target int2": quantize(pair.target, 2),
    }
    by_name = {
        row.name: row for row in compare_drafts(pair, models, [1, 2, 3], length=40, progress=False)
    }
    assert list(by_name) == list(models)
    assert by_name["target"].alpha == pytest.approx(1, abs=1e-6)
    assert 0.95 < by_name["target int8"].alpha < 1
    assert by_name["target int2"].alpha < by_name["target int8"].alpha
    assert by_name["draft int8"].alpha == pytest.approx(by_name["draft"].alpha, abs=0.03)
    assert all(row.cost > 0 for row in by_name.values())
    assert by_name["target int8"].bytes < by_name["target"].bytes


def test_beside_by_hand() -> None:
    table = sv.tabular.TabularModel
    both = sv.tabular.TabularPair(table([0.5, 0.5]), table([0.9, 0.1]))
    (row,) = compare_drafts(both, {"draft": both.draft}, [0], length=8)
    assert row.alpha == pytest.approx(0.6) and row.bytes == 0
    with pytest.raises(ValueError, match="length must be a whole number >= 8"):
        compare_drafts(both, {"draft": both.draft}, [0], length=7)


# Refused ----------------------------------------------------------------------------------------


def test_bad_arguments() -> None:
    with pytest.raises(ValueError, match="of must be 'draft' or 'target', got 'both'"):
        Quantized(of="both")
    with pytest.raises(ValueError, match="bits must be 8, 4 or 2, got 5"):
        Quantized(bits=5)
    with pytest.raises(
        ValueError, match="gamma must be a whole number >= 0 or an AdaptiveGamma, got -1"
    ):
        Quantized(-1)


def test_nothing_to_round(pair: sv.Pair) -> None:
    alone = sv.Pair(pair.target)
    with pytest.raises(ValueError, match="no draft model"):
        run(alone, drafter=Quantized())
    table = sv.tabular.TabularModel.random(4, seed=0)
    with pytest.raises(TypeError, match="got kind 'tabular'"):
        run(sv.tabular.TabularPair(table, table), drafter=Quantized())
