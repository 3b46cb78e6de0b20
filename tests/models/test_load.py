"""load(): what it accepts, what it returns, and that it is silent."""

from __future__ import annotations

import logging
import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from huggingface_hub.utils.tqdm import are_progress_bars_disabled, disable_progress_bars
from safetensors.torch import load_file
from transformers.utils import logging as transformers_logging

from specviz.models.load import ModelNotFoundError, load
from specviz.models.quiet import quiet
from tests.models.tiny import llama

# --- what works


def test_two_folders_make_a_pair(family: Path) -> None:
    pair = load(str(family / "target"), draft=family / "draft")
    assert (pair.vocab_size, pair.shared_vocab) == (300, 292)
    assert (pair.target.name, pair.draft.name) == ("target", "draft")
    assert pair.stop_ids == {0}
    assert not pair.target.model.training and not pair.draft.model.training
    assert pair.decode(pair.encode("the fox")) == "the fox"
    saved = load_file(family / "target" / "model.safetensors")["lm_head.weight"]
    assert torch.equal(pair.target.model.lm_head.weight, saved.float())


def test_a_target_alone_has_no_draft(family: Path) -> None:
    assert load(family / "target").draft is None


def test_precision_on_a_cpu_is_float32_unless_asked_otherwise(family: Path) -> None:
    assert load(family / "target", device="cpu").target.dtype == "float32"
    assert load(family / "target", device="cpu", dtype="bfloat16").target.dtype == "bfloat16"
    assert load(family / "target", device="cpu", dtype=torch.float64).target.dtype == "float64"


def test_precision_off_the_cpu_is_the_checkpoints_but_float32_for_the_bundled_pair(
    family: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPECVIZ_BUNDLED", str(family))
    monkeypatch.setattr("specviz.models.load._device", lambda _: torch.device("meta"))
    named, ours = load(family / "target"), load()
    assert (named.target.dtype, named.target.device) == ("bfloat16", "meta")
    assert (ours.target.dtype, ours.draft.dtype) == ("float32", "float32")


def test_the_checkpoint_decides_its_precision_where_transformers_places_it(family: Path) -> None:
    pair = load(family / "target", draft=family / "draft", device_map={"": "cpu"}, device="cpu")
    assert pair.target.dtype == "bfloat16"
    assert pair.draft.dtype == "float32"  # device_map is the target's


def test_a_checkpoint_without_a_tokenizer_works_with_ids(copy: Path) -> None:
    for file in copy.glob("tokenizer*"):
        file.unlink()
    pair = load(copy)
    assert pair.tokenizer is None
    assert pair.encode([3]).tolist() == [3]


@pytest.fixture
def loggers() -> Iterator[list[logging.Logger]]:
    """The loggers that loading silences, at a level of their own; put back afterwards."""
    them = [logging.getLogger(name) for name in ("transformers", "huggingface_hub")]
    before = [logger.level for logger in them]
    for logger in them:
        logger.setLevel(logging.INFO)
    yield them
    for logger, level in zip(them, before, strict=True):
        logger.setLevel(level)
    transformers_logging.enable_progress_bar()


def test_loading_warns_of_nothing_and_restores_what_it_silenced(
    family: Path,
    loggers: list[logging.Logger],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("SPECVIZ_BUNDLED", str(family))
    filters = list(warnings.filters)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load(device="cpu")
    out, err = capfd.readouterr()
    assert out == "" and err == ""
    assert [logger.level for logger in loggers] == [logging.INFO] * 2
    assert warnings.filters == filters
    assert transformers_logging.is_progress_bar_enabled()
    assert not are_progress_bars_disabled()


def test_silence_ends_also_after_an_error(loggers: list[logging.Logger]) -> None:
    with pytest.raises(KeyError), quiet(progress=False):
        assert [logger.level for logger in loggers] == [logging.CRITICAL] * 2
        assert not transformers_logging.is_progress_bar_enabled()
        raise KeyError
    assert [logger.level for logger in loggers] == [logging.INFO] * 2
    assert transformers_logging.is_progress_bar_enabled()


@pytest.mark.parametrize("everything", [True, False])
def test_bars_that_were_off_stay_off(everything: bool, loggers: list[logging.Logger]) -> None:
    (transformers_logging.disable_progress_bar if everything else disable_progress_bars)()
    with quiet(progress=False):
        pass
    assert are_progress_bars_disabled()
    assert transformers_logging.is_progress_bar_enabled() is not everything


# --- the bundled pair


def test_no_argument_loads_the_bundled_pair_in_float32(
    family: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPECVIZ_BUNDLED", str(family))
    pair = load(device="cpu")
    assert (pair.target.dtype, pair.draft.dtype) == ("float32", "float32")
    assert pair.shared_vocab == 292
    assert load(device="cpu", dtype="bfloat16").target.dtype == "bfloat16"


def test_missing_bundled_weights_are_one_sentence(
    tmp_path: Path, family: Path, monkeypatch: pytest.MonkeyPatch, message_of: Any
) -> None:
    monkeypatch.setenv("SPECVIZ_BUNDLED", str(tmp_path))
    message = message_of(load, ModelNotFoundError)
    assert "SPECVIZ_BUNDLED" in message and "no bundled target" in message
    shutil.copytree(family / "target", tmp_path / "target")
    assert "no bundled draft" in message_of(load, ModelNotFoundError)
    monkeypatch.delenv("SPECVIZ_BUNDLED")
    monkeypatch.setattr("importlib.resources.files", lambda _: tmp_path / "installed")
    message = message_of(load, ModelNotFoundError)
    assert "this installation has no bundled target" in message and "sv.load(" in message


# --- arguments


@pytest.mark.parametrize(
    ("arguments", "error", "names"),
    [
        ({"target": 5}, TypeError, "target must be a folder or a name on the Hub, .* type int"),
        ({"target": "org/x", "draft": 5}, TypeError, "draft must be a folder"),
        ({"target": ""}, ValueError, "target .* empty string"),
        ({"target": "fox.specviz"}, ValueError, r"sv\.Trace\.load\('fox\.specviz'\) opens it"),
        ({"target": Path("a/fox.specviz")}, ValueError, r"sv\.Trace\.load\('a/fox\.specviz'\)"),
        ({"draft": "org/x"}, ValueError, "draft='org/x' was given without a target"),
        ({"revision": "v1"}, ValueError, "revision='v1' was given without a target"),
        ({"target": "o/x", "draft_revision": "v1"}, ValueError, "'v1' was given without a draft"),
        ({"device": "gpu"}, ValueError, "device must be .* got 'gpu'"),
        ({"device": 0}, TypeError, "device must be a name"),
        ({"device": "cuda:99"}, ValueError, "device='cuda:99', but this machine has"),
        ({"dtype": "int8"}, ValueError, "dtype must be 'auto', 'float32', .* got 'int8'"),
        ({"dtype": torch.int64}, ValueError, "got 'torch.int64'"),
        ({"dtype": 16}, TypeError, "dtype must be a name"),
    ],
)
def test_wrong_arguments_are_refused_before_anything_is_loaded(
    arguments: dict[str, Any],
    error: type[Exception],
    names: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("specviz.models.load.load_model", lambda *_, **__: pytest.fail("loaded"))
    with pytest.raises(error, match=names) as caught:
        load(**arguments)
    assert "\n" not in str(caught.value)


def test_a_model_object_is_sent_to_pair(message_of: Any) -> None:
    assert "sv.Pair(target=" in message_of(lambda: load(llama()), TypeError)
