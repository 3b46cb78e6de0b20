"""``sv.generate``: seeds, settings, bad numbers, interrupts."""

from __future__ import annotations

from math import log
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import GenerationConfig

import specviz as sv
from specviz.core.tabular import TabularModel, TabularPair
from specviz.core.trace.trace import Trace
from specviz.decoding import loop
from tests.api.pairs import VOCAB, equal_tables, failing, tables, texts
from tests.decoding.families import FAMILIES

RULES = ["rejection", "match", "coupled", "block"]


def run(pair: Any, prompt: Any = (0, 1), **arguments: Any) -> Trace:
    arguments = {"max_new_tokens": 40, **arguments}
    return sv.generate(pair, prompt, progress=False, **arguments)


# -- seeds ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", RULES)
def test_the_same_seed_gives_the_same_trace_and_another_another(rule: str) -> None:
    one, again, other = (run(tables(), verify=rule, seed=seed) for seed in (1, 1, 2))
    assert one.same_as(again)
    assert one.tokens.tolist() == again.tokens.tolist()
    assert not one.same_as(other)
    assert one.tokens.tolist() != other.tokens.tolist()


@pytest.mark.parametrize("rule", RULES)
def test_sequences_of_one_seed_are_different_texts(rule: str) -> None:
    runs = [run(tables(), verify=rule, seed=1, sequence=i).tokens.tolist() for i in range(6)]
    assert len({tuple(text) for text in runs}) == 6


def test_a_drafter_can_be_used_again() -> None:
    drafter = sv.DraftModel(sv.AdaptiveGamma(start=3))
    first, second = (run(tables(), drafter=drafter, seed=1) for _ in range(2))
    assert first.same_as(second)


def test_a_real_pair_repeats_itself() -> None:
    pair = texts()
    one, again = (run(pair, "the fox", seed=7) for _ in range(2))
    assert one.same_as(again) and one.text == again.text


@pytest.mark.parametrize("rule", RULES)
def test_a_trace_comes_back_from_its_file(rule: str, tmp_path: Path) -> None:
    trace = run(texts(), "the quick fox", verify=rule, seed=3)
    trace.save(tmp_path / "run.specviz")
    loaded = Trace.load(tmp_path / "run.specviz")
    assert loaded.same_as(trace) and trace.same_as(loaded)
    assert loaded.text == trace.text and loaded.prompt_text == trace.prompt_text
    assert loaded.meta == trace.meta
    assert loaded.check().ok
    assert str(loaded) == str(trace) and loaded._repr_html_() == trace._repr_html_()


# -- what is on record ----------------------------------------------------------------------------


def test_the_default_is_rejection_with_gamma_4_and_greedy_at_temperature_0() -> None:
    meta = run(tables()).meta
    assert (meta["rule"], meta["drafter"]["gamma"]) == ("rejection", 4)
    assert run(tables(), temperature=0).meta["rule"] == "greedy"
    assert run(tables(), gamma=0).meta["rule"] == "match"


def test_settings_models_and_versions_are_on_record() -> None:
    pair = texts()
    meta = run(pair, "the fox", temperature=0.5, top_k=7, seed=9, sequence=2, stop="zzz").meta
    assert meta["sampling"]["temperature"] == 0.5 and meta["sampling"]["top_k"] == 7
    assert (meta["seed"], meta["sequence"], meta["stop"]) == (9, 2, ["zzz"])
    assert meta["target"]["kind"] == "llama" and meta["draft"]["dtype"] == "float32"
    assert meta["versions"]["torch"] == torch.__version__.split("+")[0] or "+" in torch.__version__
    assert meta["vocab_size"] == pair.vocab_size and meta["lossless"] is True


def test_text_is_pieces_of_the_decoded_tokens() -> None:
    pair = texts()
    trace = run(pair, "the quick", seed=4)
    assert trace.text == "".join(trace.pieces) == pair.decode(trace.tokens)
    assert trace.prompt_text == pair.decode(trace.prompt)
    shown = {*trace.node_table["top_ids"].ravel().tolist(), *trace.tokens.tolist()} - {-1}
    assert shown <= trace.strings.keys(), "no viewer needs a tokenizer"


def test_draft_equal_to_target_gives_gamma_plus_1_tokens_a_pass() -> None:
    for gamma in (1, 3, 4):
        trace = run(equal_tables(), gamma=gamma, max_new_tokens=5 * (gamma + 1))
        assert trace.round_table["emitted"].tolist() == [gamma + 1] * 5


def test_a_draft_that_is_not_asked_shows() -> None:
    """The planted twin: q that never reaches the verifier cannot accept everything."""
    trace = run(tables(), gamma=3)
    assert len(trace) > 10


# -- settings -------------------------------------------------------------------------------------


def test_extreme_temperatures() -> None:
    greedy = run(tables(), temperature=0)
    for temperature in (1e-6, 1e-300):
        assert run(tables(), temperature=temperature).tokens.tolist() == greedy.tokens.tolist()
    for temperature in (100, 1e300):
        trace = run(tables(), temperature=temperature, max_new_tokens=200)
        assert np.isfinite(trace.node_table["p"]).all()
        assert np.isfinite(trace.node_table["acceptance"]).all()
        entropy = trace.node_table["entropy_p"]
        assert (entropy > 0.99 * log(VOCAB)).all(), "nearly uniform"
        assert trace.check().ok


@pytest.mark.parametrize("rule", RULES)
def test_a_banned_token_never_appears(rule: str) -> None:
    """The draft likes it best; the target gives it -inf after every text."""
    table = np.random.default_rng(0).dirichlet(np.ones(4), 4)
    table[:, 2] = 0
    banned = TabularModel(table / table.sum(1, keepdims=True))
    likes = TabularModel(np.full((4, 4), [0.1, 0.1, 0.7, 0.1]))
    trace = run(TabularPair(banned, likes), verify=rule, gamma=3, max_new_tokens=120)
    assert (trace.node_table["token"] == 2).sum() > 20 or rule == "coupled"
    assert 2 not in trace.tokens
    assert trace.check().ok


def penalised(pair: sv.Pair, prompt: list[int], length: int) -> list[int]:
    """Greedy decoding with a repetition penalty, by transformers itself."""
    settings = GenerationConfig(
        do_sample=False, max_new_tokens=length, repetition_penalty=1.4, pad_token_id=0
    )
    ids = torch.tensor([prompt])
    out = pair.target.model.generate(
        ids, attention_mask=torch.ones_like(ids), generation_config=settings
    )
    return [int(token) for token in out[0, len(prompt) :]]


def test_a_repetition_penalty_equals_plain_decoding(monkeypatch: pytest.MonkeyPatch) -> None:
    """Prompt and text repeat themselves; the twin forgets the drafted prefix."""
    target, draft = FAMILIES["gpt2"]()
    pair, prompt = sv.Pair(target=target, draft=draft), [7, 7, 7, 9, 7, 9]
    settings: dict[str, Any] = {"repetition_penalty": 1.4, "temperature": 0, "gamma": 4}
    plain = penalised(pair, prompt, 40)
    trace = run(pair, prompt, **settings)
    assert trace.tokens.tolist() == plain
    assert trace.check().ok
    assert len(set(plain)) < len(plain), "without repeats there is nothing to penalise"

    def forgetful(text: Any, draft: Any, sampling: Any) -> Any:
        return [text] * (len(draft) + 1)

    monkeypatch.setattr(loop, "histories", forgetful)
    assert run(pair, prompt, **settings).tokens.tolist() != plain


# -- bad numbers ----------------------------------------------------------------------------------


@pytest.mark.parametrize("who", ["target", "draft"])
@pytest.mark.parametrize(("value", "name"), [(float("nan"), "NaN"), (float("inf"), r"\+inf")])
def test_bad_logits_say_where_and_keep_the_trace(value: float, name: str, who: str) -> None:
    with pytest.raises(ValueError, match=rf"logits row \d+, token 3 is {name}") as caught:
        run(failing(value, who=who), gamma=2)
    trace = caught.value.trace  # type: ignore[attr-defined]
    assert isinstance(trace, Trace)
    assert len(trace) > 0 and trace.finish_reason == "error" and not trace.interrupted
    assert f"in round {len(trace)}, after {len(trace.tokens)} new tokens" in str(
        caught.value.__notes__
    )
    assert trace.check().ok and trace.text


def test_bad_weights_of_a_real_model_say_where() -> None:
    pair = texts()
    with torch.no_grad():
        pair.target.model.lm_head.weight[5] = float("nan")
    with pytest.raises(ValueError, match="logits row 0, token 5 is NaN"):
        run(pair, "the fox")


def test_logits_that_leave_no_token_are_an_error() -> None:
    with pytest.raises(ValueError, match="all 8 tokens are -inf"):
        run(failing(ValueError("logits row 0: all 8 tokens are -inf")), gamma=2)


# -- interrupts -----------------------------------------------------------------------------------


@pytest.mark.parametrize("who", ["target", "draft"])
def test_an_interrupt_returns_what_there_is(who: str, tmp_path: Path) -> None:
    whole = run(equal_tables(), gamma=2)
    trace = run(failing(KeyboardInterrupt(), who=who), gamma=2)
    assert trace.interrupted and trace.finish_reason == "interrupted"
    assert 0 < len(trace) < len(whole)
    assert trace.tokens.tolist() == whole.tokens.tolist()[: len(trace.tokens)]
    assert trace.check().ok
    trace.save(tmp_path / "cut.specviz")
    loaded = Trace.load(tmp_path / "cut.specviz")
    assert loaded.same_as(trace) and loaded.interrupted and loaded.text == trace.text


def test_an_interrupt_at_once_returns_an_empty_trace(tmp_path: Path) -> None:
    trace = run(failing(KeyboardInterrupt(), passes=0), gamma=2)
    assert trace.interrupted and len(trace) == 0 and trace.text == ""
    assert trace.check().ok
    trace.save(tmp_path / "empty.specviz")
    assert Trace.load(tmp_path / "empty.specviz").interrupted


def test_an_interrupt_between_rounds_counts_too(monkeypatch: pytest.MonkeyPatch) -> None:
    class Bar:
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            self.updates = 0

        def __enter__(self) -> Bar:
            return self

        def __exit__(self, *args: Any) -> None:
            pass

        def update(self, n: int) -> None:
            self.updates += 1
            if self.updates == 3:
                raise KeyboardInterrupt

    monkeypatch.setattr("specviz.api.generate.tqdm", Bar)
    trace = run(tables())
    assert len(trace) == 3
    assert trace.interrupted and trace.finish_reason == "interrupted"
    assert trace.text


def test_after_an_interrupt_the_models_are_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    pair = texts()
    before = run(pair, "the fox", seed=2)
    with monkeypatch.context() as patch:
        calls = 0
        forward = pair.target.model.model.layers[0].forward

        def interrupted(*args: Any, **kwargs: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == 5:
                raise KeyboardInterrupt
            return forward(*args, **kwargs)

        patch.setattr(pair.target.model.model.layers[0], "forward", interrupted)
        trace = run(pair, "the fox", seed=2)
        assert trace.interrupted and trace.check().ok
        assert before.tokens.tolist()[: len(trace.tokens)] == trace.tokens.tolist()
    assert run(pair, "the fox", seed=2).same_as(before)
    assert not pair.target.model.training
