"""One sentence for every model that is missing, out of reach, broken or unsuitable."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest
import torch
from safetensors.torch import load_file, save_file

from specviz.models import checkpoint
from specviz.models.load import ModelNotFoundError, bundled, load
from specviz.models.vocabulary import VocabularyError
from tests.models.tiny import byte_level

ANSWER_SECONDS_AT_MOST = 5.0


# --- places where there is nothing


@pytest.mark.parametrize("nowhere", ["./nothing", "/no/such/folder", "~/no-such", "a/b/c"])
def test_a_path_to_nothing_is_not_looked_up_on_the_hub(nowhere: str, message_of: Any) -> None:
    message = message_of(lambda: load(nowhere), ModelNotFoundError)
    assert nowhere in message and "no such folder" in message
    assert "no such folder" in message_of(lambda: load(Path("no/such")), ModelNotFoundError)


def test_an_impossible_name_is_neither_folder_nor_model(message_of: Any) -> None:
    message = message_of(lambda: load("not a model!"), ModelNotFoundError)
    assert "neither a folder nor a name on the Hugging Face Hub" in message


def test_offline_a_model_that_is_not_cached_is_one_sentence(message_of: Any) -> None:
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
    answer: Exception, names: str, monkeypatch: pytest.MonkeyPatch, message_of: Any
) -> None:
    hub = Hub(monkeypatch, answer)
    message = message_of(lambda: load("org/no-such-model", revision="v9"), ModelNotFoundError)
    assert message.startswith("target 'org/no-such-model'") and names in message
    assert hub.asked == [("org/no-such-model", "v9")]


def test_without_a_network_the_answer_needs_no_stand_in(
    monkeypatch: pytest.MonkeyPatch, message_of: Any
) -> None:
    """The real client, with the test's own barrier in front of every outside address."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr("socket.getaddrinfo", lambda *_, **__: (_ for _ in ()).throw(OSError(-2)))
    message = message_of(lambda: load("org/no-such-model"), ModelNotFoundError)
    assert "the Hub cannot be reached" in message


def test_a_failed_draft_is_called_the_draft(family: Path, message_of: Any) -> None:
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


def test_a_folder_without_a_config(tmp_path: Path, message_of: Any) -> None:
    assert "without config.json" in message_of(lambda: load(tmp_path))


def test_a_file_instead_of_a_folder(family: Path, message_of: Any) -> None:
    file = family / "target" / "model.safetensors"
    assert "is a file: give the folder" in message_of(lambda: load(file))


def test_only_safetensors_are_read(copy: Path, message_of: Any) -> None:
    torch.save(load_file(copy / "model.safetensors"), copy / "pytorch_model.bin")
    (copy / "model.safetensors").unlink()
    message = message_of(lambda: load(copy))
    assert "no model.safetensors" in message and "can run code" in message


def test_truncated_weights(copy: Path, message_of: Any) -> None:
    file = copy / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-100])
    assert "damaged or cut short" in message_of(lambda: load(copy))


def test_missing_weights_are_not_made_up(copy: Path, message_of: Any) -> None:
    kept = {k: v for k, v in load_file(copy / "model.safetensors").items() if "q_proj" not in k}
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
def test_a_config_that_does_not_fit(
    copy: Path, changes: dict[str, Any], names: str, message_of: Any
) -> None:
    spoil_config(copy, **changes)
    message = message_of(lambda: load(copy))
    assert names in message and message.startswith("target ")


def test_a_broken_config_and_a_broken_tokenizer(copy: Path, message_of: Any) -> None:
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


# --- drafting heads, which are no models


@pytest.mark.parametrize(
    ("config", "name"),
    [
        ({"architectures": ["LlamaForCausalLMEagle3"]}, "is an EAGLE head"),
        ({"architectures": ["LlamaForCausalLM"], "draft_vocab_size": 32000}, "is an EAGLE head"),
        ({"medusa_num_heads": 5}, "is a Medusa head"),
    ],
)
def test_a_head_as_a_draft_is_refused_by_its_name(
    config: dict[str, Any], name: str, family: Path, tmp_path: Path, message_of: Any
) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "llama", **config}), "utf-8")
    message = message_of(lambda: load(family / "target", draft=tmp_path))
    assert name in message and "`specviz train heads`" in message


@pytest.mark.parametrize(("weight", "kind"), [("fc", "Eagle"), ("medusa_head.0", "Medusa")])
def test_a_head_whose_config_is_silent_is_known_by_its_weights(
    weight: str, kind: str, family: Path, copy: Path, message_of: Any
) -> None:
    kept = {k: v for k, v in load_file(copy / "model.safetensors").items() if "layers.0" in k}
    kept[f"{weight}.weight"] = torch.zeros(2, 2)
    save_file(kept, copy / "model.safetensors", metadata={"format": "pt"})
    message = message_of(lambda: load(family / "target", draft=copy))
    assert f"by its weights {weight.partition('.')[0]}" in message
    assert f"drafter={kind}(FOLDER)" in message


@pytest.mark.parametrize("kind", ["eagle", "medusa"])
def test_heads_of_ours_as_a_draft_name_their_drafter(
    kind: str, family: Path, message_of: Any
) -> None:
    message = message_of(lambda: load(family / "target", draft=bundled() / kind))
    assert f"pass drafter={kind.capitalize()}(" in message
