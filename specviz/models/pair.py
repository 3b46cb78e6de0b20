"""A target and a draft that speak the same tokens, and the tokenizer between them and text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from jinja2 import TemplateError
from numpy.typing import NDArray

from specviz.models import text
from specviz.models.model import as_model, count
from specviz.models.vocabulary import shared_vocabulary

IntArray = NDArray[np.int64]


class Pair:
    """The models of one speculative decoder.

    Parameters
    ----------
    target : Hugging Face causal LM, Model, or tabular model
        The model whose distribution p the text must follow. Put in eval mode.
    draft : likewise, optional
        The smaller model that proposes with distribution q; None for drafters that need no second
        model.
    tokenizer : Hugging Face tokenizer, optional
        The target's. Without it prompts are token ids and a token shows as ``⟨id⟩``.
    draft_tokenizer : Hugging Face tokenizer, optional
        The draft's, only to check that its ids mean the same strings.

    Attributes
    ----------
    target, draft : Model
        The wrapped models; ``pair.target.model`` is the Hugging Face object.
    shared_vocab : int
        Ids below it are known to both models; at and above it ``q = 0``.
    stop_ids : frozenset of int
        Tokens that end a text: the target's and the tokenizer's end-of-text tokens.

    Raises
    ------
    TypeError
        If a model cannot score the next token, or the tokenizer is not one of transformers'.
    VocabularyError
        If the two tokenizers put different strings at one id.

    Examples
    --------
    ::

        pair = sv.Pair(target=model, draft=small, tokenizer=tokenizer)
        pair.decode(pair.encode("Once upon a time"))
    """

    def __init__(
        self,
        target: Any,
        draft: Any = None,
        tokenizer: Any = None,
        *,
        draft_tokenizer: Any = None,
    ) -> None:
        _check_tokenizer("tokenizer", tokenizer)
        _check_tokenizer("draft_tokenizer", draft_tokenizer)
        if draft_tokenizer is not None and (draft is None or tokenizer is None):
            lacking = "draft" if draft is None else "tokenizer"
            raise ValueError(f"draft_tokenizer was given without a {lacking} to compare it with")
        self.target = as_model(target, role="target")
        self.draft = None if draft is None else as_model(draft, role="draft")
        self.tokenizer = tokenizer
        self.shared_vocab: int = self.target.vocab_size
        if self.draft is not None:
            self.shared_vocab = shared_vocabulary(
                self.target.vocab_size, self.draft.vocab_size, tokenizer, draft_tokenizer
            )
        eos = getattr(tokenizer, "eos_token_id", None)
        self.stop_ids = frozenset(self.target.eos_ids) | ({eos} if eos is not None else set())

    @property
    def vocab_size(self) -> int:
        """Width of the target's distribution p: the rows of its output embedding."""
        return int(self.target.vocab_size)

    def encode(
        self,
        prompt: str | Sequence[int] | NDArray[Any] | None = None,
        messages: Sequence[Mapping[str, Any]] | None = None,
        *,
        continue_final_message: bool | None = None,
        chat_template_kwargs: Mapping[str, Any] | None = None,
    ) -> IntArray:
        """Return the token ids ``(n,)``, n >= 1, of a prompt or a chat.

        Parameters
        ----------
        prompt : str or sequence of int
            Text, with the beginning-of-text token its tokenizer would add (once, also if the text
            has it already) and without an end-of-text token, since it is to be continued; or
            token ids, used as they are. An empty prompt becomes the beginning-of-text token.
        messages : list of {"role": …, "content": …}
            A chat, laid out by the tokenizer's chat template up to where the answer begins.
        continue_final_message : bool, optional
            Whether the last message is left open and continued; by default if it is the
            assistant's.
        chat_template_kwargs : mapping, optional
            More arguments of the chat template, such as ``tools`` or ``enable_thinking``.

        Raises
        ------
        ValueError, TypeError
            In one sentence, if neither or both are given, or they cannot become token ids.
        """
        if (prompt is None) == (messages is None):
            given = "both" if prompt is not None else "neither"
            raise ValueError(
                f"give exactly one of prompt (text or token ids) and messages (a chat), got {given}"
            )
        if messages is not None:
            ids = self._encode_chat(messages, continue_final_message, chat_template_kwargs)
        elif isinstance(prompt, str):
            ids = self._encode_text(prompt)
        else:
            ids = _as_ids("prompt", prompt)
        if not len(ids):
            ids = np.array([self._bos()], dtype=np.int64)
        wrong = np.flatnonzero((ids < 0) | (ids >= self.vocab_size))
        if len(wrong):
            at = int(wrong[0])
            raise ValueError(
                f"prompt has id {int(ids[at])} at position {at}, outside the target's vocabulary "
                f"of {self.vocab_size:,} (ids 0 to {self.vocab_size - 1:,})"
            )
        return ids.astype(np.int64)

    def decode(self, ids: Iterable[int], after: Iterable[int] = ()) -> str:
        """Return the text that token ids add after others: special tokens left out."""
        before = _as_ids("ids", after).tolist()
        return text.decode_after(self.tokenizer, before, _as_ids("ids", ids).tolist())

    def token_strings(self, ids: Iterable[int]) -> dict[int, str]:
        """Return what to show for each distinct id; see :func:`specviz.models.text.token_strings`.

        The strings are untrusted: escape them before they become markup.
        """
        return text.token_strings(self.tokenizer, _as_ids("ids", ids).tolist())

    def pieces(self, ids: Iterable[int], after: Iterable[int] = ()) -> list[str]:
        """Return one string per id, which together are exactly :meth:`decode` of them all."""
        before = _as_ids("ids", after).tolist()
        return text.pieces_after(self.tokenizer, before, _as_ids("ids", ids).tolist())

    def __repr__(self) -> str:
        size = f"{self.vocab_size:,} tokens"
        if self.draft is not None and self.shared_vocab != self.vocab_size:
            size += f", {self.shared_vocab:,} of them shared with the draft"
        kind = "none: token ids only"
        if self.tokenizer is not None:
            kind = f"{type(self.tokenizer).__name__} with {len(self.tokenizer):,} tokens"
        return (
            f"Pair\n  target     {_line(self.target)}\n  draft      {_line(self.draft)}\n"
            f"  vocabulary {size}\n  tokenizer  {kind}"
        )

    def _encode_text(self, prompt: str) -> IntArray:
        if self.tokenizer is None:
            raise ValueError(
                "prompt is text, but this pair has no tokenizer: "
                "give token ids, or a pair with tokenizer=…"
            )
        try:
            prompt.encode()
        except UnicodeEncodeError as error:
            raise ValueError(
                f"prompt is not valid Unicode: it has half of a surrogate pair at position "
                f"{error.start}; decode the text with its own encoding first"
            ) from None
        plain = self.tokenizer(prompt, add_special_tokens=False, verbose=False)["input_ids"]
        full = self.tokenizer(prompt, verbose=False)["input_ids"]
        if plain and plain[0] == self.tokenizer.bos_token_id:
            return _as_ids("prompt", plain)
        ends = range(len(plain), len(full) + 1)
        end = next((end for end in ends if full[end - len(plain) : end] == plain), len(full))
        return _as_ids("prompt", full[:end])

    def _encode_chat(self, messages: Any, goes_on: bool | None, extra: Any) -> IntArray:
        if self.tokenizer is None:
            raise ValueError("messages need a tokenizer with a chat template; this pair has none")
        if getattr(self.tokenizer, "chat_template", None) is None:
            raise ValueError(
                "messages need a chat template, and this pair's tokenizer has none: "
                "give prompt=… instead, or set pair.tokenizer.chat_template"
            )
        good = isinstance(messages, Sequence) and not isinstance(messages, str) and len(messages)
        if not good or not all(isinstance(m, Mapping) and "role" in m for m in messages):
            raise TypeError(
                "messages must be a non-empty list such as "
                f"[{{'role': 'user', 'content': '…'}}], got {_short(messages)}"
            )
        if extra is not None and not isinstance(extra, Mapping):
            raise TypeError(
                f"chat_template_kwargs must be a dict such as {{'enable_thinking': False}}, "
                f"got {_short(extra)}"
            )
        if goes_on is None:
            goes_on = messages[-1]["role"] == "assistant"
        try:
            encoded = self.tokenizer.apply_chat_template(
                [dict(m) for m in messages],
                add_generation_prompt=not goes_on,
                continue_final_message=goes_on,
                tokenize=True,
                return_dict=True,
                **(extra or {}),
            )
        except TemplateError as error:
            raise ValueError(f"the chat template refuses these messages: {error}") from None
        return _as_ids("messages", encoded["input_ids"])

    def _bos(self) -> int:
        own = getattr(self.tokenizer, "bos_token_id", None)
        bos = own if own is not None else getattr(self.target, "bos_id", None)
        if bos is None:
            raise ValueError(
                "prompt is empty, and the model has no beginning-of-text token to start from: "
                "give at least one token"
            )
        return int(bos)


def _as_ids(name: str, ids: Any) -> IntArray:
    """Return token ids ``(n,)``; one row of a batch is taken as it is."""
    wanted = f"{name} must be text or one sequence of token ids" if name == "prompt" else name
    if name == "ids":
        wanted = "ids must be one sequence of token ids"
    if isinstance(ids, (bytes, Mapping)):
        raise TypeError(f"{wanted}, got an object of type {type(ids).__name__}")
    if hasattr(ids, "detach"):
        ids = ids.detach().cpu().numpy()
    elif not isinstance(ids, np.ndarray):
        try:
            ids = np.asarray(list(ids))
        except (TypeError, ValueError):
            raise TypeError(f"{wanted}, got {_short(ids)}") from None
    if ids.dtype.kind in "UO" and len(ids) and not isinstance(ids[0], (int, np.integer)):
        chat = isinstance(ids[0], Mapping)
        hint = "a chat is given as messages=" if chat else "decode one text at a time"
        what = "messages of a chat" if chat else "several texts"
        raise TypeError(f"{wanted}, got a list of {what}: {hint}")
    if ids.ndim == 2 and len(ids) == 1:
        ids = ids[0]
    if ids.ndim != 1 or (len(ids) and ids.dtype.kind not in "iu"):
        raise TypeError(f"{wanted}, got an array of shape {ids.shape} and type {ids.dtype}")
    if len(ids) and int(ids.max()) > np.iinfo(np.int64).max:
        raise ValueError(f"{wanted}, got the id {int(ids.max())}")
    return ids.astype(np.int64)


def _check_tokenizer(name: str, tokenizer: Any) -> None:
    needed = ("decode", "convert_ids_to_tokens", "get_vocab", "all_special_ids")
    if tokenizer is None or (callable(tokenizer) and all(hasattr(tokenizer, n) for n in needed)):
        return
    hint = ""
    if type(tokenizer).__module__.startswith("tokenizers"):
        hint = ": wrap it in transformers.PreTrainedTokenizerFast(tokenizer_object=…)"
    raise TypeError(
        f"{name} must be a Hugging Face tokenizer or None, got an object of type "
        f"{type(tokenizer).__name__}{hint}"
    )


def _line(model: Any) -> str:
    if model is None:
        return "none"
    numbers = count(int(model.parameters))
    return f"{model.name}: {model.kind}, {numbers} parameters, {model.dtype} on {model.device}"


def _short(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else shown[:59] + "…"
