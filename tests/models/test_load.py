"""load(): folders, names, the bundled pair, and one sentence for everything that goes wrong."""

from __future__ import annotations

import json
import logging
import shutil
import warnings
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest
import torch
from huggingface_hub.utils.tqdm import are_progress_bars_disabled
from transformers.utils import logging as transformers_logging

from specviz.models import checkpoint
from specviz.models.load import ModelNotFoundError, load
from specviz.models.quiet import quiet
from specviz.models.vocabulary import VocabularyError
from tests.models.tiny import byte_level, llama

ANSWER_SECONDS_AT_MOST = checkpoint.PROBE_SECONDS


@pytest.fixture(scope="module")
def family(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a bfloat16 target and a smaller draft, as ``save_pretrained`` writes them."""
    folder = tmp_path_factory.mktemp("family")
    tokenizer = byte_level()
    for role, rows, seed in (("target", 300, 0), ("draft", 292, 1)):
        llama(rows, seed=seed, eos_token_id=0).to(torch.bfloat16).save_pretrained(folder / role)
        tokenizer.save_pretrained(folder / role)
    return folder


@pytest.fixture
def copy(family: Path, tmp_path: Path) -> Path:
    """A copy of the target's folder, to be spoiled."""
    return Path(shutil.copytree(family / "target", tmp_path / "spoiled"))


def message_of(call: Any, error: type[Exception] = ValueError) -> str:
    with pytest.raises(error) as caught:
        call()
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None or caught.value.__suppress_context__
    message = str(caught.value)
    assert "\n" not in message and len(message) < 400
    return message


def weights(folder: Path) -> dict[str, torch.Tensor]:
    from safetensors.torch import load_file

    return load_file(folder / "model.safetensors")


# --- what works


def test_two_folders_make_a_pair(family: Path) -> None:
    pair = load(str(family / "target"), draft=family / "draft")
    assert (pair.vocab_size, pair.shared_vocab) == (300, 292)
    assert (pair.target.name, pair.draft.name) == ("target", "draft")
    assert pair.stop_ids == {0}
    assert not pair.target.model.training and not pair.draft.model.training
    assert pair.decode(pair.encode("the fox")) == "the fox"
    saved = weights(family / "target")["lm_head.weight"]
    assert torch.equal(pair.target.model.lm_head.weight, saved.float())


def test_a_target_alone_has_no_draft(family: Path) -> None:
    assert load(family / "target").draft is None


def test_precision_on_a_cpu_is_float32_unless_asked_otherwise(family: Path) -> None:
    assert load(family / "target", device="cpu").target.dtype == "float32"
    assert load(family / "target", device="cpu", dtype="bfloat16").target.dtype == "bfloat16"
    assert load(family / "target", device="cpu", dtype=torch.float64).target.dtype == "float64"


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


def test_loading_warns_of_nothing_and_restores_what_it_silenced(
    family: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SPECVIZ_BUNDLED", str(family))
    logger, before = logging.getLogger("transformers"), logging.getLogger("transformers").level
    filters = list(warnings.filters)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load(device="cpu")
    out, err = capfd.readouterr()
    assert out == "" and err == ""
    assert logger.level == before
    assert warnings.filters == filters
    assert transformers_logging.is_progress_bar_enabled()
    assert not are_progress_bars_disabled()


def test_silence_ends_also_after_an_error_and_keeps_what_was_off_off() -> None:
    logger = logging.getLogger("huggingface_hub")
    before = logger.level
    transformers_logging.disable_progress_bar()
    try:
        with pytest.raises(KeyError), quiet(progress=False):
            assert logger.level == logging.CRITICAL
            raise KeyError
        assert logger.level == before
        assert not transformers_logging.is_progress_bar_enabled()
        assert are_progress_bars_disabled()
    finally:
        transformers_logging.enable_progress_bar()


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
    tmp_path: Path, family: Path, monkeypatch: pytest.MonkeyPatch
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


def test_a_model_object_is_sent_to_pair() -> None:
    assert "sv.Pair(target=" in message_of(lambda: load(llama()), TypeError)


# --- places where there is nothing


@pytest.mark.parametrize("nowhere", ["./nothing", "/no/such/folder", "~/no-such", "a/b/c"])
def test_a_path_to_nothing_is_not_looked_up_on_the_hub(nowhere: str) -> None:
    message = message_of(lambda: load(nowhere), ModelNotFoundError)
    assert nowhere in message and "no such folder" in message
    assert "no such folder" in message_of(lambda: load(Path("no/such")), ModelNotFoundError)


def test_an_impossible_name_is_neither_folder_nor_model() -> None:
    message = message_of(lambda: load("not a model!"), ModelNotFoundError)
    assert "neither a folder nor a name on the Hugging Face Hub" in message


def test_offline_a_model_that_is_not_cached_is_one_sentence() -> None:
    message = message_of(lambda: load("org/no-such-model"), ModelNotFoundError)
    assert "target 'org/no-such-model'" in message
    assert "not in the local cache" in message and "HF_HUB_OFFLINE is set" in message


class Hub:
    """Stands for the Hub's one answer, and counts how often it was asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, answer: Exception | None) -> None:
        self.asked: list[tuple[str, Any]] = []
        self.answer = answer
        monkeypatch.setenv("HF_HUB_OFFLINE", "0")
        monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(huggingface_hub.HfApi, "model_info", self.model_info)

    def model_info(self, name: str, *, revision: str | None, timeout: float) -> None:
        assert 0 < timeout <= ANSWER_SECONDS_AT_MOST
        self.asked.append((name, revision))
        if self.answer is not None:
            raise self.answer


def refusal(kind: str) -> Exception:
    """An error as the Hub's client raises it, without a response behind it."""
    error_type = getattr(huggingface_hub.errors, kind)
    error = error_type.__new__(error_type)
    Exception.__init__(error, f"404 Client Error. (Request ID: Root=1)\n\n{kind} for url: …")
    return error


@pytest.mark.parametrize(
    ("answer", "names"),
    [
        (ConnectionError("[Errno -2] Name or service not known"), "cannot be reached"),
        (TimeoutError("timed out"), "cannot be reached (TimeoutError)"),
        (refusal("RepositoryNotFoundError"), "the Hub has no such model"),
        (refusal("GatedRepoError"), "licence"),
        (refusal("RevisionNotFoundError"), "no revision 'v9'"),
    ],
)
def test_online_the_hub_is_asked_once_and_its_refusal_is_one_sentence(
    answer: Exception, names: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = Hub(monkeypatch, answer)
    message = message_of(lambda: load("org/no-such-model", revision="v9"), ModelNotFoundError)
    assert message.startswith("target 'org/no-such-model'") and names in message
    assert hub.asked == [("org/no-such-model", "v9")]


def test_without_a_network_the_answer_needs_no_stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """The real client, with the test's own barrier in front of every outside address."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr("socket.getaddrinfo", lambda *_, **__: (_ for _ in ()).throw(OSError(-2)))
    message = message_of(lambda: load("org/no-such-model"), ModelNotFoundError)
    assert "the Hub cannot be reached" in message


def test_a_failed_draft_is_called_the_draft(family: Path) -> None:
    message = message_of(lambda: load(family / "target", draft="org/none"), ModelNotFoundError)
    assert message.startswith("draft 'org/none'")


def test_a_model_the_hub_has_is_then_downloaded(
    family: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is not in the cache is asked for again, this time from the Hub."""
    hub = Hub(monkeypatch, None)
    calls: list[bool] = []
    for name in ("AutoModelForCausalLM", "AutoTokenizer"):
        auto = getattr(checkpoint.transformers, name)

        def served(place: str, *, local_files_only: bool, auto: Any = auto, **options: Any) -> Any:
            calls.append(local_files_only)
            if local_files_only:
                raise OSError("couldn't find them in the cached files")
            return auto.real(family / "target", local_files_only=True, **options)

        monkeypatch.setattr(auto, "real", auto.from_pretrained, raising=False)
        monkeypatch.setattr(auto, "from_pretrained", served)
    pair = load("org/target", device="cpu")
    assert calls == [True, False, True, False]
    assert hub.asked == [("org/target", None)] * 2
    assert pair.target.name == "org/target" and pair.tokenizer is not None


# --- folders that cannot be used


def test_a_folder_without_a_config(tmp_path: Path) -> None:
    assert "without config.json" in message_of(lambda: load(tmp_path))


def test_a_file_instead_of_a_folder(family: Path) -> None:
    file = family / "target" / "model.safetensors"
    assert "is a file: give the folder" in message_of(lambda: load(file))


def test_only_safetensors_are_read(copy: Path) -> None:
    torch.save(weights(copy), copy / "pytorch_model.bin")
    (copy / "model.safetensors").unlink()
    message = message_of(lambda: load(copy))
    assert "no model.safetensors" in message and "can run code" in message


def test_truncated_weights(copy: Path) -> None:
    file = copy / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-100])
    assert "damaged or cut short" in message_of(lambda: load(copy))


def test_missing_weights_are_not_made_up(copy: Path) -> None:
    from safetensors.torch import save_file

    kept = {k: v for k, v in weights(copy).items() if "q_proj" not in k}
    save_file(kept, copy / "model.safetensors", metadata={"format": "pt"})
    message = message_of(lambda: load(copy))
    assert "lacks 1 of its weights" in message and "q_proj" in message


def spoil_config(folder: Path, **changes: Any) -> None:
    file = folder / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text("utf-8")) | changes), "utf-8")


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({"vocab_size": 310}, "shapes are not those its config.json asks for"),
        ({"model_type": "zorg"}, "does not know"),
        ({"model_type": "t5"}, "not a causal language model"),
        (
            {"model_type": "zorg", "auto_map": {"AutoConfig": "code.Config"}},
            "pass trust_remote_code=True",
        ),
    ],
)
def test_a_config_that_does_not_fit(copy: Path, changes: dict[str, Any], names: str) -> None:
    spoil_config(copy, **changes)
    message = message_of(lambda: load(copy))
    assert names in message and message.startswith("target ")


def test_a_broken_config_and_a_broken_tokenizer(copy: Path) -> None:
    (copy / "tokenizer.json").write_text("{", "utf-8")
    assert "cannot be loaded" in message_of(lambda: load(copy))
    (copy / "config.json").write_text("{", "utf-8")
    assert "not a valid JSON file" in message_of(lambda: load(copy))


def test_a_draft_folder_with_another_tokenizer_is_refused(family: Path, copy: Path) -> None:
    byte_level(specials=["<pad>", "<|end|>"]).save_pretrained(copy)
    with pytest.raises(VocabularyError, match="id 0 is the special token") as caught:
        load(family / "target", draft=copy)
    assert "'<|end|>' in the target" in str(caught.value)
    assert "'<pad>' in the draft" in str(caught.value)
