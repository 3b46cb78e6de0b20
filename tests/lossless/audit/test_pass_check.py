"""The shipped verification pass under audit: right on real models, and each planted fault found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import specviz as sv
from specviz.decoding.hf import target as target_module
from specviz.decoding.hf.lean import LeanModel
from specviz.decoding.hf.target import HFTarget
from specviz.lossless import Verdict
from specviz.lossless.audit.pass_check import check_pass
from tests.decoding import families
from tests.lossless.tiny import small

PROMPT = np.array([1, 2, 3])
CHAIN, TREE = sv.DraftModel(3), sv.Tree((2, 2, 1))


@pytest.fixture(scope="module")
def pair() -> sv.Pair:
    """With head dimensions and noise enough that a wrong position shows."""
    return sv.Pair(small(1, 12, end=None), small(2, 12, end=None))


DRAFTERS = {
    "chain": CHAIN,
    "tree": TREE,
    "prompt lookup": sv.PromptLookup(3),
    "early exit": sv.EarlyExit(1, gamma=3),
    "target only": sv.TargetOnly(),
    "combined": sv.Combined(sv.PromptLookup(2), sv.Tree((2, 1))),
}


@pytest.mark.parametrize("drafter", DRAFTERS.values(), ids=DRAFTERS)
def test_the_shipped_pass_differs_by_rounding_only(pair: sv.Pair, drafter: Any) -> None:
    check = check_pass(pair, PROMPT, drafter)
    assert check is not None and check.ok and 0 <= check.tv < 1e-5
    assert min(check.after_full, check.after_none) >= 6 and check.passes == 24
    assert check.trees == drafter.traits.trees or drafter.name == "combined"


def test_it_is_the_pass_that_decodes(pair: sv.Pair) -> None:
    assert HFTarget(pair.target).lean is not None
    assert sv.generate(pair, PROMPT, max_new_tokens=1).settings["forward"]["target"] == "lean"


@pytest.mark.parametrize("family", ["mistral", "gemma2", "gpt2", "gpt_neox"])
def test_on_other_families(family: str) -> None:
    pair = sv.Pair(*families.FAMILIES[family]())
    for drafter in (CHAIN, TREE):
        check = check_pass(pair, PROMPT, drafter)
        assert check is not None and check.ok, check


def test_half_precision_is_given_the_rounding_that_was_measured() -> None:
    target, draft = small(1, 12, end=None), small(2, 12, end=None)
    half = sv.Pair(target.to(torch.bfloat16), draft.to(torch.bfloat16))
    check = check_pass(half, PROMPT, CHAIN)
    assert check is not None and check.ok and check.tolerance >= 0.02


# Planted faults of the pass. Each is one line changed in what the shipped target does. ------------


def positions_frozen(patch: pytest.MonkeyPatch) -> None:
    """A pass that continues a cache counts its positions from where the first pass ended."""
    right = target_module.forward_arguments

    def frozen(session: Any, fed: Any, pending: int, draft: Any, **options: Any) -> Any:
        arguments = right(session, fed, pending, draft, **options)
        first = session.__dict__.setdefault("first_length", session.length or len(PROMPT))
        if session.length:
            shift = session.length - first
            places = arguments.get("position_ids")
            if places is None:
                places = torch.arange(session.length, session.length + len(fed))[None]
            arguments["position_ids"] = places - shift
        return arguments

    def shift(session: Any) -> int:
        first = session.__dict__.setdefault("first_length", session.length or len(PROMPT))
        return first - session.length if session.length else 0

    patch.setattr(target_module, "forward_arguments", frozen)
    _shift_lean_positions(patch, shift)


def _shift_lean_positions(patch: pytest.MonkeyPatch, shift: Callable[[Any], int]) -> None:
    """The same fault in the forward pass that is written out."""
    states, rotations = HFTarget.lean_states, LeanModel.rotations
    moved = [0]

    def shifted_states(session: Any, *args: Any, **options: Any) -> Any:
        moved[0] = shift(session)
        return states(session, *args, **options)

    def shifted(lean: Any, start: int, *args: Any) -> Any:
        return rotations(lean, start + moved[0], *args)

    patch.setattr(HFTarget, "lean_states", shifted_states)
    patch.setattr(LeanModel, "rotations", shifted)


def a_wrong_mask_entry(patch: pytest.MonkeyPatch) -> None:
    """The last node of a tree also sees the node before it."""
    right = target_module.visibility

    def wrong(length: int, pending: int, draft: Any, window: Any = None) -> Any:
        visible = right(length, pending, draft, window)
        if len(draft) > 1:
            visible[-1, -2] = True
        return visible

    patch.setattr(target_module, "visibility", wrong)


def a_stale_key(patch: pytest.MonkeyPatch) -> None:
    """After a rejection the last kept place of the cache holds the rejected token's key."""
    right = HFTarget.keep

    def keep(self: Any, path: Any) -> None:
        wrong = len(path) < len(self.verified)
        stale = [layer.keys[:, :, -1:].clone() for layer in self.cache.layers]
        right(self, path)
        if wrong:
            with torch.inference_mode():
                for layer, old in zip(self.cache.layers, stale, strict=True):
                    layer.keys[:, :, -1:] = old  # a view of the buffer that the next pass reads

    patch.setattr(HFTarget, "keep", keep)


def off_by_one_at_full_acceptance(patch: pytest.MonkeyPatch) -> None:
    """The pass after a fully accepted one starts one position late."""
    keep, arguments_of = HFTarget.keep, target_module.forward_arguments

    def kept(self: Any, path: Any) -> None:
        self.late = bool(path) and not self.verified.children(path[-1])
        keep(self, path)

    def late(session: Any, fed: Any, pending: int, draft: Any, **options: Any) -> Any:
        arguments = arguments_of(session, fed, pending, draft, **options)
        if getattr(session, "late", False):
            places = arguments.get("position_ids")
            if places is None:
                places = torch.arange(session.length, session.length + len(fed))[None]
            arguments["position_ids"] = places + 1
        return arguments

    patch.setattr(HFTarget, "keep", kept)
    patch.setattr(target_module, "forward_arguments", late)
    _shift_lean_positions(patch, lambda session: int(getattr(session, "late", False)))


PLANTED: list[tuple[Callable[[pytest.MonkeyPatch], None], Any]] = [
    (positions_frozen, CHAIN),
    (positions_frozen, TREE),
    (a_wrong_mask_entry, TREE),
    (a_stale_key, CHAIN),
    (a_stale_key, TREE),
    (off_by_one_at_full_acceptance, CHAIN),
    (off_by_one_at_full_acceptance, TREE),
]


@pytest.mark.parametrize(
    ("plant", "drafter"), PLANTED, ids=[f"{f.__name__}-{d.name}" for f, d in PLANTED]
)
def test_a_default_audit_convicts_a_broken_pass(
    plant: Callable[[pytest.MonkeyPatch], None], drafter: Any
) -> None:
    # models of its own: the self-test of a model has been passed before the fault comes
    pair = sv.Pair(small(1, 12, end=None), small(2, 12, end=None))
    right = sv.audit(pair, PROMPT, drafter=drafter, n=400, progress=False)
    assert right.verdict is not Verdict.DISCREPANCY and right.passes[0].ok
    with pytest.MonkeyPatch.context() as patch:
        plant(patch)
        report = sv.audit(pair, PROMPT, drafter=drafter, n=400, progress=False)
    assert report.verdict is Verdict.DISCREPANCY and report.exit_code == 1
    assert not report.passes[0].ok
    assert "gives another distribution" in report.text and "gives another" in repr(report)
    assert report.to_dict()["passes"][0]["ok"] is False


def test_the_report_names_the_engine_and_the_reader_chooses_it(pair: sv.Pair) -> None:
    quick = sv.audit(pair, PROMPT, n=300, progress=False)
    assert "vectorised rejection" in quick.engine and "vectorised rejection" in quick.text
    loop = sv.audit(pair, PROMPT, n=60, effect=0.5, engine="loop", progress=False)
    assert loop.engine == "the shipped loop with the shipped verification pass"
    tree = sv.audit(pair, PROMPT, drafter=TREE, n=300, progress=False)
    assert "batched" in tree.engine or "remembered logits" in tree.engine
    with pytest.raises(ValueError, match="engine must be 'auto' or 'loop', got 'fast'"):
        sv.audit(pair, PROMPT, engine="fast")
    with pytest.raises(ValueError, match="fault and engine are for our own loop"):
        sv.audit([[1, 2]], PROMPT, target=pair, engine="loop")


def test_the_engine_loop_gives_the_texts_of_generate(pair: sv.Pair) -> None:
    report = sv.audit(pair, PROMPT, n=20, length=5, engine="loop", seed=3, progress=False)
    for i in (0, 7):
        text = sv.generate(
            pair, PROMPT, gamma=4, seed=3, sequence=i, max_new_tokens=9, progress=False
        ).tokens[:5]
        assert report.samples[0].tokens[i].tolist() == text.tolist()


def test_a_projected_cache_is_convicted(pair: sv.Pair) -> None:
    check = check_pass(pair, PROMPT, sv.KVProjection(2))
    assert check is not None and not check.ok and check.tv > 0.05


def test_tables_have_a_pass_too() -> None:
    table = sv.tabular.TabularPair(
        sv.tabular.TabularModel.random(4, order=2, seed=0),
        sv.tabular.TabularModel.random(4, order=1, seed=1),
    )
    check = check_pass(table, np.array([0]), sv.Tree((2, 1)))
    assert check is not None and check.tv <= 1e-12 and check.trees


def test_without_room_there_is_no_check() -> None:
    short = sv.tabular.TabularModel([[0.5, 0.5]] * 2, context_length=3)
    assert check_pass(sv.tabular.TabularPair(short, short), np.array([0, 1]), CHAIN) is None
