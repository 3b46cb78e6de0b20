"""What the tests of loading share: a family of two models on disk, and how an error must look."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.models.tiny import byte_level, llama


@pytest.fixture(scope="session")
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


@pytest.fixture
def message_of() -> Callable[..., str]:
    """Call something that must fail, with one sentence and no chain of other errors."""

    def call_and_read(call: Callable[[], Any], error: type[Exception] = ValueError) -> str:
        with pytest.raises(error) as caught:
            call()
        assert caught.value.__cause__ is None
        assert caught.value.__context__ is None or caught.value.__suppress_context__
        message = str(caught.value)
        assert "\n" not in message and len(message) < 400
        return message

    return call_and_read
