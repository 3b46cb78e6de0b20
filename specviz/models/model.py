"""A Hugging Face causal language model together with the facts the algorithm needs."""

from __future__ import annotations

import copy
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch


@dataclass(eq=False)  # a model is the same only as itself
class Model:
    """A causal language model in memory.

    Parameters
    ----------
    model : transformers.PreTrainedModel
        The model itself, in eval mode; never hidden.
    name : str
        What to call it on screen and in a trace.
    vocab_size : int
        Width of its logits: the rows of the output embedding, padding included.
    context_length : int or None
        The most positions it was made for; None if there is no limit.
    eos_ids : frozenset of int
        Tokens that end a text.
    """

    model: Any = field(repr=False)
    name: str
    vocab_size: int
    context_length: int | None
    eos_ids: frozenset[int]
    context_note: str = ""
    """Why ``context_length`` is less than the config states; empty if it is not."""

    @property
    def device(self) -> str:
        """Where the parameters are, e.g. ``cpu``, or ``cuda:0, cuda:1`` if spread."""
        places = dict.fromkeys(str(p.device) for p in self.model.parameters())
        return ", ".join(places) or "cpu"

    @property
    def dtype(self) -> str:
        """What the model computes in, e.g. ``float32``."""
        return str(self.model.dtype).removeprefix("torch.")

    @property
    def parameters(self) -> int:
        """How many numbers were learned (tied ones counted once)."""
        return sum(p.numel() for p in self.model.parameters())

    @property
    def kind(self) -> str:
        """The architecture as transformers names it, e.g. ``llama`` or ``gpt2``."""
        return str(self.model.config.model_type)

    @property
    def bos_id(self) -> int | None:
        """The token that begins a text, if the model has one."""
        ids = _from_configs(self.model, "bos_token_id")
        return ids[0] if ids else None

    def __repr__(self) -> str:
        context = "any length" if self.context_length is None else f"{self.context_length:,} tokens"
        return (
            f"Model({self.name!r}: {self.kind}, {count(self.parameters)} parameters, "
            f"vocabulary {self.vocab_size:,}, context {context}, {self.dtype} on {self.device})"
        )


def count(number: int) -> str:
    """Return a number of parameters for reading: ``7.2 B``, ``15.1 M``, ``3.0 k``, ``950``."""
    for size, letter in ((10**9, "B"), (10**6, "M"), (10**3, "k")):
        if number >= size:
            return f"{number / size:.1f} {letter}"
    return str(number)


def as_model(obj: Any, name: str | None = None, *, role: str = "model") -> Any:
    """Wrap a causal language model in memory and put it in eval mode.

    Parameters
    ----------
    obj : transformers.PreTrainedModel, Model, or a tabular model
        A :class:`Model` and a tabular model (anything with a ``session``) come back unchanged.
    name : str, optional
        Its display name; by default what it was loaded from.
    role : str
        What an error calls the argument.

    Returns
    -------
    Model, or the tabular model

    Raises
    ------
    TypeError
        If ``obj`` cannot score the next token of a text.
    """
    if isinstance(obj, Model) or hasattr(obj, "session"):
        return obj
    obj = _unwrapped(obj, role)
    wanted = f"{role} must be a Hugging Face causal language model"
    if isinstance(obj, (str, os.PathLike)):
        raise TypeError(f"{wanted}, got the name {str(obj)!r}: sv.load({str(obj)!r}) loads a model")
    if not isinstance(obj, torch.nn.Module) or not hasattr(obj, "config"):
        raise TypeError(f"{wanted} in memory, got {_kind_of(obj)}")
    config = obj.config
    if getattr(config, "is_encoder_decoder", False) or half_of_an_encoder_decoder(obj):
        raise TypeError(f"{wanted}, got the encoder-decoder {type(obj).__name__}")
    if _looks_ahead(config):
        raise TypeError(
            f"{wanted}, got {type(obj).__name__}, which also looks at later tokens "
            f"(its config says is_decoder=False)"
        )
    get_head = getattr(obj, "get_output_embeddings", None)
    head = get_head() if get_head is not None else None
    if head is None:
        raise TypeError(
            f"{wanted}, got {type(obj).__name__}, which has no output head: "
            f"load it with AutoModelForCausalLM"
        )
    obj.eval()
    rows = getattr(head, "out_features", None) or head.weight.shape[0]
    context, note = _context_length(config), ""
    steady = steady_positions(obj, context)
    if steady is not None:
        context = steady
        note = (
            f"its rotary positions change beyond {steady} tokens, and keys cached before would "
            f"no longer fit"
        )
    return Model(obj, name or _name(obj), int(rows), context, _eos_ids(obj), note)


def _unwrapped(obj: Any, role: str) -> Any:
    """Return the transformers model inside ``torch.compile`` and peft wrappers.

    peft puts its adapters into the layers of the model, so the model inside has them.
    """
    while True:
        if hasattr(obj, "_orig_mod"):
            obj = obj._orig_mod
        elif hasattr(obj, "peft_config") and hasattr(obj, "get_base_model"):
            learned = [c for c in obj.peft_config.values() if getattr(c, "is_prompt_learning", 0)]
            if learned:
                raise TypeError(
                    f"{role} is a peft model with learned prompt tokens "
                    f"({type(learned[0]).__name__}), which stand before every text: use adapters "
                    f"in the layers, such as LoRA, or merge_and_unload()"
                )
            obj = obj.get_base_model()
        else:
            return obj


def half_of_an_encoder_decoder(model: Any) -> bool:
    """Return whether only the decoder of a checkpoint that has an encoder was loaded.

    transformers does that without a word for Whisper, BART and their kin. What it writes then is
    not what the checkpoint would: the encoder's states are missing.
    """
    config = model.config
    trained_as = getattr(config, "architectures", None) or [type(model).__name__]
    family = getattr(type(config)(), "is_encoder_decoder", False)
    return bool(family) and type(model).__name__ not in trained_as


def execution_device(network: Any) -> torch.device:
    """Return where a model takes its token ids.

    Weights that accelerate keeps elsewhere are on the device "meta" until they are needed; its
    hooks say where they are run.
    """
    device = torch.device(network.device)
    if device.type != "meta":
        return device
    for module in (network.get_input_embeddings(), network):
        place = getattr(getattr(module, "_hf_hook", None), "execution_device", None)
        if place is not None:
            return torch.device(place if not isinstance(place, int) else f"cuda:{place}")
    return torch.device("cpu")


def steady_positions(network: Any, context: int | None) -> int | None:
    """Return up to which length a model rotates a position alike in every pass; None: any.

    Some kinds of rotary position (longrope, dynamic NTK) change their frequencies once a pass
    reaches past a length. Keys cached before were rotated with the old ones, so the text would
    depend on how it was cut into passes. What counts is what the module does, not its name: the
    rotation of position 1 is compared between passes that reach further and further.
    """
    if context is None:
        return None
    least = context
    for module in network.modules():
        frequencies = getattr(module, "original_inv_freq", None)
        if frequencies is None or not hasattr(module, "rope_type") or frequencies.is_meta:
            continue
        for extra in _layer_types(module):
            least = min(least, _steady(module, context, extra))
    return None if least >= context else least


def _layer_types(module: Any) -> list[tuple[str, ...]]:
    kinds = module.rope_type if isinstance(module.rope_type, dict) else {}
    return [(kind,) for kind in kinds] or [()]


def _steady(module: Any, context: int, extra: tuple[str, ...]) -> int:
    """Return the longest pass, at most ``context``, that rotates position 1 as the shortest."""

    def rotation(length: int) -> torch.Tensor:
        fresh = copy.deepcopy(module)  # dynamic ones remember the longest pass
        x = torch.zeros(1, 2, 1, device=fresh.original_inv_freq.device)
        made = fresh(x, torch.tensor([[1, length - 1]], device=x.device), *extra)
        parts = made if isinstance(made, tuple) else (made,)  # Llama 4: one complex tensor
        return torch.cat([part[0, 0] for part in parts])

    with torch.inference_mode():
        first = rotation(2)
        low, high = 2, context
        if torch.equal(rotation(high), first):
            return context
        while high - low > 1:  # low is steady, high is not
            middle = (low + high) // 2
            low, high = (middle, high) if torch.equal(rotation(middle), first) else (low, middle)
    return low


def _looks_ahead(config: Any) -> bool:
    """Whether a BERT-like model is used as an encoder, whose attention is not causal."""
    has_switch = hasattr(type(config), "is_decoder") and "gpt" not in str(config.model_type)
    return has_switch and config.is_decoder is False


def _kind_of(obj: Any) -> str:
    kind = type(obj).__name__
    return kind if kind == "NoneType" else f"an object of type {kind}"


def _name(obj: Any) -> str:
    """Return the name the model was loaded by; of a folder only its last part."""
    source = str(getattr(obj.config, "_name_or_path", "") or "")
    if source and (Path(source).is_absolute() or Path(source).is_dir()):
        source = Path(source).name
    return source or type(obj).__name__


def _context_length(config: Any) -> int | None:
    text = config.get_text_config() if hasattr(config, "get_text_config") else config
    for key in ("max_position_embeddings", "n_positions", "max_seq_len", "n_ctx"):
        value = getattr(text, key, None)
        if isinstance(value, int) and value > 0:
            return value
    return None


def _from_configs(obj: Any, key: str) -> list[int]:
    """Return ids from the generation config, else from the model's config; [] if neither has."""
    config = obj.config
    text = config.get_text_config() if hasattr(config, "get_text_config") else config
    for source in (getattr(obj, "generation_config", None), text, config):
        value = getattr(source, key, None)
        if value is not None:
            return [int(i) for i in (value if isinstance(value, (list, tuple)) else [value])]
    return []


def _eos_ids(obj: Any) -> frozenset[int]:
    return frozenset(i for i in _from_configs(obj, "eos_token_id") if i >= 0)
