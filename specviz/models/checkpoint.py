"""One checkpoint, from a folder, the local cache or the Hugging Face Hub: model and tokenizer.

Every failure is one sentence. The cache is asked first and the network only when needed, with
one short question, so that a machine without a network gets its answer in seconds.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import huggingface_hub
import transformers
from huggingface_hub.errors import (
    GatedRepoError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from safetensors import SafetensorError

from specviz.models.model import half_of_an_encoder_decoder

PROBE_SECONDS = 5.0
"""How long the Hub may take to say whether it has a model."""

_TOKENIZER_FILES = (
    *("tokenizer*.json", "tokenizer.model", "*.tiktoken", "tekken.json"),
    *("vocab.json", "vocab.txt", "spiece.model", "sentencepiece*.model"),
)

_HUB_NAME = re.compile(r"[A-Za-z0-9_][\w.-]*(/[A-Za-z0-9_][\w.-]*)?")

T = TypeVar("T")


class ModelNotFoundError(ValueError):
    """There is no such model here, or it cannot be reached."""


@dataclass(frozen=True)
class Source:
    """Where a checkpoint is.

    Parameters
    ----------
    role : str
        The argument it came from, ``target`` or ``draft``; every message names it.
    place : str
        A folder, or the name of a repository on the Hub.
    local : bool
        Whether ``place`` is a folder.
    revision : str or None
        Branch, tag or commit on the Hub.
    trust_remote_code : bool
        Whether Python code that comes with the checkpoint may run.
    """

    role: str
    place: str
    local: bool
    revision: str | None = None
    trust_remote_code: bool = False

    @property
    def label(self) -> str:
        """How messages call it: ``target 'org/name'``."""
        return f"{self.role} {self.place!r}"

    @property
    def name(self) -> str:
        """What to call the model on screen: of a folder, only its last part."""
        return Path(self.place).resolve().name if self.local else self.place


def locate(
    role: str, where: str | os.PathLike[str], revision: str | None, trust_remote_code: bool
) -> Source:
    """Say whether ``where`` is a folder or a name on the Hub, without opening anything.

    Raises
    ------
    ModelNotFoundError
        If it looks like a path and there is nothing, or is no possible name.
    ValueError
        If it is a file, or a folder without ``config.json``.
    """
    place = str(Path(where).expanduser()) if isinstance(where, os.PathLike) else where
    path = Path(place).expanduser()
    if path.is_dir():
        if not (path / "config.json").is_file():
            raise ValueError(
                f"{role} {str(path)!r} is a folder without config.json: "
                f"give the folder that save_pretrained() wrote"
            )
        return Source(role, str(path), True, None, trust_remote_code)
    if path.is_file():
        raise ValueError(
            f"{role} {str(path)!r} is a file: give the folder that holds its config.json"
        )
    looks_like_path = place.startswith((".", "/", "~")) or place.count("/") > 1 or "\\" in place
    if isinstance(where, os.PathLike) or looks_like_path:
        raise ModelNotFoundError(f"{role} {place!r}: there is no such folder")
    if not _HUB_NAME.fullmatch(place):
        raise ModelNotFoundError(
            f"{role} {place!r} is neither a folder nor a name on the Hugging Face Hub "
            f"(those look like 'org/name')"
        )
    return Source(role, place, False, revision, trust_remote_code)


HEAD_CLASSES = {"eagle": "Eagle", "medusa": "Medusa", "parallel": "Parallel"}
"""Drafting heads that this package writes: the kind in their config.json → their drafter."""

HEAD_WEIGHTS = {
    "EAGLE": frozenset({"fc", "midlayer", "d2t", "t2d"}),
    "Medusa": frozenset({"medusa_head", "medusa_heads"}),
}
"""Drafting heads of others: first parts of the names of weights that no language model has."""


def refuse_heads(source: Source) -> None:
    """Refuse a folder that holds a drafting head, by its name.

    Raises
    ------
    ValueError
        If its config.json is that of an EAGLE or a Medusa head, with what would work.
    """
    folder = Path(source.place) if source.local else _cache_folder(source)
    file = None if folder is None else folder / "config.json"
    if file is None or not file.is_file():
        return
    try:
        config = json.loads(file.read_text("utf-8"))
    except ValueError:
        return  # transformers says what is wrong with it
    if not isinstance(config, dict):
        return
    own = HEAD_CLASSES.get(str(config.get("kind")))
    if own and "fingerprint" in config:
        raise ValueError(
            f"{source.label} holds heads of specviz, which draft from the target's features and "
            f"are no model of their own: pass drafter={own}({source.place!r}) instead of draft="
        )
    names = [str(name) for name in config.get("architectures") or ()]
    eagle = [name for name in names if "eagle" in name.lower()]
    if eagle or "draft_vocab_size" in config or "eagle_config" in config:
        raise _is_head(source, "EAGLE", (eagle or names or ["unnamed"])[0])
    if "medusa_num_heads" in config:
        raise _is_head(source, "Medusa", (names or ["unnamed"])[0])


def _is_head(source: Source, kind: str, name: str) -> ValueError:
    article = "an" if kind == "EAGLE" else "a"
    return ValueError(
        f"{source.label} is {article} {kind} head ({name}): it drafts from the target's features "
        f"and is no model of its own. Use a smaller model of the same family as draft=, or make a "
        f"head for this target with `specviz train heads` and pass drafter={kind.title()}(FOLDER)"
    )


def load_model(source: Source, **options: Any) -> Any:
    """Return the causal language model of a checkpoint; ``options`` go to transformers.

    Raises
    ------
    ModelNotFoundError
        If it is nowhere, or cannot be reached.
    ValueError
        If it is there but is not a complete causal language model in safetensors.
    """
    refuse_heads(source)
    auto: Any = transformers.AutoModelForCausalLM

    def attempt(cached_only: bool) -> tuple[Any, dict[str, Any]]:
        return auto.from_pretrained(
            source.place,
            revision=source.revision or "main",
            trust_remote_code=source.trust_remote_code,
            local_files_only=cached_only,
            use_safetensors=True,
            output_loading_info=True,
            **options,
        )

    model, report = _fetch(source, attempt)
    # What the checkpoint has and the model does not take says what the checkpoint is, also where
    # its config.json is silent.
    unused = {key.removeprefix("model.").partition(".")[0] for key in report["unexpected_keys"]}
    missing = sorted(report["missing_keys"])
    for kind, weights in HEAD_WEIGHTS.items():
        if missing and unused & weights:
            raise _is_head(source, kind, f"by its weights {sorted(unused & weights)[0]}")
    if "encoder" in unused or half_of_an_encoder_decoder(model):
        raise ValueError(
            f"{source.label} is an encoder-decoder, not a causal language model: it continues a "
            f"text only together with what its encoder read"
        )
    if missing:
        raise ValueError(
            f"{source.label} lacks {len(missing)} of its weights (the first is {missing[0]}), "
            f"so they would be random numbers: its weights and its config.json do not belong "
            f"together"
        )
    return model


def load_tokenizer(source: Source) -> Any:
    """Return the tokenizer of a checkpoint that :func:`load_model` loaded, or None if it has none.

    Raises
    ------
    ValueError
        If it has one that cannot be read.
    """
    if source.local and not _has_tokenizer(Path(source.place)):
        return None

    def attempt(cached_only: bool) -> Any:
        return transformers.AutoTokenizer.from_pretrained(
            source.place,
            revision=source.revision or "main",
            trust_remote_code=source.trust_remote_code,
            local_files_only=cached_only,
        )

    try:
        return _fetch(source, attempt)
    except ValueError:
        if source.local or _has_tokenizer(_cache_folder(source)):
            raise
        return None


def _fetch(source: Source, attempt: Callable[[bool], T]) -> T:
    """Try the folder or cache, then ask the Hub once, then try the Hub."""
    try:
        return attempt(True)
    except _LOADING_ERRORS as error:
        if source.local or not _may_be_elsewhere(error):
            raise _explain(source, error) from None
    _ask_hub(source)
    try:
        return attempt(False)
    except _LOADING_ERRORS as error:
        raise _explain(source, error) from None


_LOADING_ERRORS = (OSError, ValueError, RuntimeError, ImportError, SafetensorError)


def _may_be_elsewhere(error: BaseException) -> bool:
    """Whether a failure in the cache may only mean that a file was not downloaded yet."""
    text = str(error)
    understood = "custom code" in text or "nrecognized config" in text or "architecture" in text
    return isinstance(error, (OSError, ValueError)) and not understood


def _ask_hub(source: Source) -> None:
    """Ask the Hub once, briefly, whether it has the model; transformers would retry for long."""
    if huggingface_hub.is_offline_mode() or os.environ.get("HF_HUB_OFFLINE", "0") not in ("0", ""):
        raise ModelNotFoundError(
            f"{source.label} is not a folder and not in the local cache, and HF_HUB_OFFLINE is set"
        )
    try:
        huggingface_hub.HfApi().model_info(
            source.place, revision=source.revision, timeout=PROBE_SECONDS
        )
    except GatedRepoError:
        reason = "needs its licence accepted on its page on the Hub, and then `hf auth login`"
    except RepositoryNotFoundError:
        reason = "is not a folder, and the Hub has no such model (if private: `hf auth login`)"
    except RevisionNotFoundError:
        reason = f"has no revision {source.revision!r} on the Hub"
    except Exception as error:  # which HTTP library raises what changes between releases
        reason = (
            f"is not a folder and not in the local cache, and the Hub cannot be reached "
            f"({type(error).__name__})"
        )
    else:
        return
    raise ModelNotFoundError(f"{source.label} {reason}") from None


def _explain(source: Source, error: BaseException) -> ValueError:
    """Return one sentence for what transformers said in many."""
    text = str(error)
    label = source.label
    if isinstance(error, ImportError):
        reason = f"needs a package that is not installed: {_first_line(text)}"
    elif isinstance(error, SafetensorError):
        reason = f"has weights that are damaged or cut short ({_first_line(text)})"
    elif "custom code" in text:
        reason = (
            "brings Python code of its own, which was not run: "
            "if you trust its author, pass trust_remote_code=True"
        )
    elif "Unrecognized configuration class" in text:
        reason = "is not a causal language model, so it cannot continue a text"
    elif "does not recognize this architecture" in text:
        reason = f"has an architecture that transformers {transformers.__version__} does not know"
    elif "ignore_mismatched_sizes" in text:
        reason = "has weights whose shapes are not those its config.json asks for"
    elif "model.safetensors" in text:
        reason = (
            "has no model.safetensors; other weight formats are not read, "
            "because opening them can run code"
        )
    elif "passing device_map" in text:
        reason = (
            "takes as device_map 'auto', 'balanced', 'balanced_low_0', 'sequential', the name of "
            "a device, or a dict of layers and devices"
        )
    else:
        reason = f"cannot be loaded: {_first_line(text) or type(error).__name__}"
    return ValueError(f"{label} {reason}")


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0][:300]


def _has_tokenizer(folder: Path | None) -> bool:
    return folder is not None and any(any(folder.glob(name)) for name in _TOKENIZER_FILES)


def _cache_folder(source: Source) -> Path | None:
    found = huggingface_hub.try_to_load_from_cache(
        source.place, "config.json", revision=source.revision
    )
    return Path(found).parent if isinstance(found, str) else None
