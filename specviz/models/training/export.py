"""Write a model as the Hugging Face directory that the package ships and users load."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path

import torch
from transformers import GenerationConfig, LlamaForCausalLM

from specviz.models.training.network import END_OF_TEXT, PADDING

TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json")


def replace_directory(new: Path, place: Path) -> None:
    """Move the finished folder ``new`` to ``place``, and what was there out of the way."""
    old = None
    if place.exists():
        old = Path(tempfile.mkdtemp(prefix=f".{place.name}-old-", dir=place.parent))
        place.replace(old / "directory")
    new.replace(place)
    if old is not None:
        shutil.rmtree(old)


def export(model: LlamaForCausalLM, tokenizer: Path, place: Path) -> None:
    """Write weights (float16), configurations and tokenizer to the directory ``place``.

    The file holds float16, tied weights once; ``config.json`` says float32, so that
    ``AutoModelForCausalLM.from_pretrained(place)`` gives float32, in which CPUs are at home.

    Parameters
    ----------
    model
        Left untouched.
    tokenizer
        Folder with ``tokenizer.json`` and its configuration.
    place
        Replaced as a whole, or, if anything fails, not at all.

    Raises
    ------
    FileNotFoundError
        If ``tokenizer`` has no ``tokenizer.json``.
    ValueError
        If a weight does not fit float16.
    """
    if not (tokenizer / "tokenizer.json").is_file():
        raise FileNotFoundError(f"no tokenizer.json in {tokenizer}; build the corpus first")
    limit = torch.finfo(torch.float16).max
    for name, weight in model.named_parameters():
        if not bool((weight.abs() <= limit).all()):
            raise ValueError(f"{name} has values outside float16 (or not numbers)")
    half = LlamaForCausalLM(model.config).half()
    half.load_state_dict(model.state_dict())
    ids = {"bos_token_id": END_OF_TEXT, "eos_token_id": END_OF_TEXT, "pad_token_id": PADDING}
    half.generation_config = GenerationConfig(do_sample=True, **ids)
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent) as folder:
        new = Path(folder) / place.name
        half.save_pretrained(new)
        for name in TOKENIZER_FILES:
            if (tokenizer / name).is_file():
                shutil.copyfile(tokenizer / name, new / name)
        config = json.loads((new / "config.json").read_text())
        config["dtype"] = "float32"
        (new / "config.json").write_text(json.dumps(config, indent=2) + "\n")
        for path in new.iterdir():
            path.chmod(0o644)
        replace_directory(new, place)
