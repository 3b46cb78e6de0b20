"""What a reader sees: nats per character, whole words, words that do not exist."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from specviz.models.training.bundled import measure
from specviz.models.training.bundled.__main__ import main
from specviz.models.training.bundled.release import export
from tests.models.training.bundled.small import tiny


class Letters:
    """A token for each letter, and one for each whole word in ``whole``."""

    def __init__(self, *whole: str) -> None:
        self.whole = [f" {word}" for word in whole]

    def encode(self, text: str, add_special_tokens: bool = False) -> list[int]:
        if text in self.whole:
            return [60]
        return [2 + ord(letter) % 50 for letter in text]

    def decode(self, ids: list[int], skip_special_tokens: bool = False) -> str:
        return "".join("a word zz"[i % 9] for i in ids)


@pytest.mark.parametrize("length", [3, 16, 17, 41])
def test_nats_per_character_score_every_token_once(length: int) -> None:
    """With windows the text fits into, it is the plain loss; smaller ones see less, no fewer."""
    model, text = tiny(), "abcdefghijklmnop"[:length] * (1 + length // 17)
    text = text[:length]
    ids = torch.tensor([[0, *Letters().encode(text)]])
    with torch.no_grad():
        log_p = model(ids[:, :-1]).logits.log_softmax(-1)
    plain = -log_p[0].gather(-1, ids[0, 1:, None]).sum().item() / length
    whole = measure.nats_per_character(model, Letters(), [text], context=64)
    assert whole == pytest.approx(plain, rel=1e-5)
    cut = measure.nats_per_character(model, Letters(), [text], context=16)
    if length <= 15:
        assert cut == pytest.approx(plain, rel=1e-5)
    else:  # the first window's tokens have their whole context either way
        assert cut != pytest.approx(plain, rel=1e-5) and cut < 3 * plain


def test_a_tokenizer_with_half_the_tokens_is_not_twice_as_good() -> None:
    """Per token the loss would double when tokens merge; per character it stays comparable."""
    model = tiny(loud=1e-3)  # nearly uniform over 64 tokens
    per_letter = measure.nats_per_character(model, Letters(), ["abcd" * 4])
    assert per_letter == pytest.approx(np.log(64), rel=1e-2)


def test_words_that_are_one_token() -> None:
    texts = ["the cat, the dog", "the cat's"]
    assert measure.one_token_words(Letters("the", "cat"), texts) == pytest.approx(5 / 6)
    assert measure.one_token_words(Letters(), texts) == 0


def test_words_that_occur_nowhere_are_counted() -> None:
    prompts = torch.zeros(4, 2, dtype=torch.long)
    share, strange = measure.invented_words(
        tiny(loud=1e-3), Letters(), prompts, {"a", "word"}, words=10
    )
    assert share > 0 and all(word not in ("a", "word") for word in strange)
    assert measure.invented_words(tiny(), Letters(), prompts, set(strange), words=0)[0] == 0


def test_the_command_prints_them(
    corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    export(tiny(), corpus / "tokenizer", tmp_path / "target")
    main(["text-quality", "--target", str(tmp_path / "target"), "--corpus", str(corpus)])
    printed: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert set(printed["nats_per_character"]) == {"stories", "prose", "records"}
    assert all(0 < nats < 10 for nats in printed["nats_per_character"].values())
