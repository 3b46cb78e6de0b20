"""Token ids as text: what one token looks like, and which text each token of a run added.

Two different questions. :func:`token_strings` shows a token on its own, without losing anything
(the leading space, a lone byte of a split character, the name of a special token).
:func:`pieces` cuts a decoded text between its tokens, so that the pieces join to that text.

Everything returned here is untrusted data: control characters, line separators and markup are
left as they are, and whoever draws them must escape them.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Sequence
from itertools import takewhile
from typing import Any

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_FALLBACK_BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>")
_WORD_START = "\N{LOWER ONE EIGHTH BLOCK}"  # how SentencePiece writes a space


def unknown(token_id: int) -> str:
    """Return the display string of an id that has no text: ``⟨17⟩``."""
    return f"⟨{token_id}⟩"


def show_bytes(data: bytes) -> str:
    r"""Return UTF-8 text, with the bytes that are not a whole character in hexadecimal.

    Examples
    --------
    >>> show_bytes(b" caf\xc3")
    ' caf⟨C3⟩'
    """
    shown, broken = "", b""

    def flush() -> str:
        return f"⟨{broken.hex(' ').upper()}⟩" if broken else ""

    while data:
        try:
            good, bad, rest = data.decode(), b"", b""
        except UnicodeDecodeError as error:
            good = data[: error.start].decode()
            bad, rest = data[error.start : error.end], data[error.end :]
        if good:
            shown, broken = shown + flush() + good, b""
        broken, data = broken + bad, rest
    return shown + flush()


def decode(tokenizer: Any, ids: Sequence[int]) -> str:
    """Return the text of ``ids``: no spaces cleaned up, special tokens and padding ids left out.

    Parameters
    ----------
    tokenizer : Hugging Face tokenizer, or None
        Without one, the text is the display strings ``⟨id⟩``.
    ids : sequence of int
        ``(n,)`` token ids.
    """
    if tokenizer is None:
        return "".join(unknown(i) for i in ids)
    names = tokenizer.convert_ids_to_tokens(list(ids))
    known = [i for i, name in zip(ids, names, strict=True) if name is not None]
    return str(
        tokenizer.decode(known, skip_special_tokens=True, clean_up_tokenization_spaces=False)
    )


NEAR = 8
"""Number of tokens before a text that decide how its first one is written."""


def decode_after(tokenizer: Any, before: Sequence[int], ids: Sequence[int]) -> str:
    """Return the text that ``ids`` add after ``before``.

    SentencePiece drops the leading space of whatever it decodes, so a continuation decoded alone
    would run into the prompt's last word.
    """
    tail = _tail(tokenizer, before)
    if tokenizer is None or not tail or "ByteLevel" in _decoder_steps(tokenizer):
        return decode(tokenizer, ids)
    start, both = decode(tokenizer, tail), decode(tokenizer, [*tail, *ids])
    return both[len(start) :] if both.startswith(start) else decode(tokenizer, ids)


def _tail(tokenizer: Any, before: Sequence[int]) -> list[int]:
    """Return the last tokens of ``before``, back to one that can be seen: markers have no text."""
    ids = [int(i) for i in before]
    near = NEAR
    while near < len(ids) and not decode(tokenizer, ids[-near:]):
        near *= 2
    return ids[-near:]


def pieces_after(tokenizer: Any, before: Sequence[int], ids: Sequence[int]) -> list[str]:
    """Cut :func:`decode_after` between the tokens of ``ids``."""
    tail = _tail(tokenizer, before)
    whole = decode_after(tokenizer, tail, [int(i) for i in ids])
    if tail:
        cut = pieces(tokenizer, [*tail, *ids])[len(tail) :]
        if "".join(cut) == whole:
            return cut
    return pieces(tokenizer, ids)


def special_ids(tokenizer: Any) -> frozenset[int]:
    """Return the ids that are instructions to the model rather than text."""
    added = getattr(tokenizer, "added_tokens_decoder", {})
    flagged = {i for i, token in added.items() if getattr(token, "special", False)}
    return frozenset(flagged | set(tokenizer.all_special_ids))


def token_strings(tokenizer: Any, ids: Sequence[int]) -> dict[int, str]:
    """Return the display string of every distinct id in ``ids``.

    A token's own text with its leading space; its name if it is special; ``⟨E2 80⟩`` for bytes
    that are only part of a character; ``⟨id⟩`` for an id the tokenizer does not know (the padding
    rows of an embedding) or if there is no tokenizer.

    Examples
    --------
    >>> token_strings(None, [3, 3, 1])
    {3: '⟨3⟩', 1: '⟨1⟩'}
    """
    distinct = list(dict.fromkeys(int(i) for i in ids))
    if tokenizer is None:
        return {i: unknown(i) for i in distinct}
    names = tokenizer.convert_ids_to_tokens(distinct)
    special, steps = special_ids(tokenizer), _decoder_steps(tokenizer)
    alone = None if "ByteLevel" in steps else _text_after_anchor(tokenizer, special)
    shown = {}
    for i, name in zip(distinct, names, strict=True):
        if name is None:
            shown[i] = unknown(i)
        elif isinstance(name, bytes):
            shown[i] = show_bytes(name)
        elif i in special:
            shown[i] = name
        elif alone is None:
            shown[i] = show_bytes(_byte_level_bytes(name))
        elif "ByteFallback" in steps and (byte := _FALLBACK_BYTE.fullmatch(name)):
            shown[i] = show_bytes(bytes.fromhex(byte[1]))
        else:
            shown[i] = alone(i) or name.replace(_WORD_START, " ")
    return shown


def pieces(tokenizer: Any, ids: Sequence[int]) -> list[str]:
    """Cut ``decode(tokenizer, ids)`` between its tokens.

    Returns one string per id; joined they are exactly the decoded text. Special tokens add
    nothing. The bytes of a split character belong to the token that completes it, and bytes that
    are never completed show as U+FFFD, as they do in the decoded text.

    Examples
    --------
    >>> pieces(None, [3, 1])
    ['⟨3⟩', '⟨1⟩']
    """
    ids = [int(i) for i in ids]
    if tokenizer is None:
        return [unknown(i) for i in ids]
    whole = decode(tokenizer, ids)
    cut = _pieces_by_bytes if "ByteLevel" in _decoder_steps(tokenizer) else _pieces_by_window
    quick = cut(tokenizer, ids)
    return quick if "".join(quick) == whole else _pieces_by_prefix(tokenizer, ids, whole)


def _decoder_steps(tokenizer: Any) -> frozenset[str]:
    """Return the kinds of decoder a tokenizers-backed tokenizer applies, e.g. ``ByteLevel``."""
    decoder = getattr(getattr(tokenizer, "backend_tokenizer", None), "decoder", None)
    if decoder is None:
        return frozenset()
    state = json.loads(decoder.__getstate__())
    return frozenset(step["type"] for step in [state, *state.get("decoders", [])])


def _byte_of_character() -> dict[str, int]:
    """Invert the byte-level alphabet: printable bytes stand for themselves, others from U+0100."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(b): b for b in printable} | {chr(256 + n): b for n, b in enumerate(others)}


_BYTE_OF = _byte_of_character()


def _byte_level_bytes(name: str) -> bytes:
    """Return the bytes a byte-level token stands for (an added token stands for itself)."""
    if all(character in _BYTE_OF for character in name):
        return bytes(_BYTE_OF[character] for character in name)
    return name.encode()


def _text_after_anchor(tokenizer: Any, special: frozenset[int]) -> Callable[[int], str]:
    """Return a function: the text a token adds after an ordinary one.

    Decoded alone, a token at the start of a text loses its leading space; decoded after an
    anchor it keeps it, and the anchor's own text can be subtracted.
    """

    def text_of(ids: list[int]) -> str:
        text = tokenizer.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False)
        return str(text)

    anchors = (i for i in sorted(tokenizer.get_vocab().values()) if i not in special)
    anchor = next((i for i in anchors if text_of([i]).strip().isalnum()), None)
    if anchor is None:
        return lambda token_id: text_of([token_id])
    before = text_of([anchor])

    def after(token_id: int) -> str:
        both = text_of([anchor, token_id])
        return both[len(before) :] if both.startswith(before) else text_of([token_id])

    return after


def _pieces_by_bytes(tokenizer: Any, ids: list[int]) -> list[str]:
    """Cut a byte-level text: feed each token's bytes to an incremental UTF-8 decoder."""
    special = special_ids(tokenizer)
    feed = codecs.getincrementaldecoder("utf-8")("replace").decode
    cut = []
    for i, name in zip(ids, tokenizer.convert_ids_to_tokens(ids), strict=True):
        cut.append("" if name is None or i in special else feed(_byte_level_bytes(name)))
    if cut:
        cut[-1] += feed(b"", True)
    return cut


def _pieces_by_window(tokenizer: Any, ids: list[int]) -> list[str]:
    """Cut any text in linear time: decode a short window that begins at a visible token."""
    cut, start, shown, last = [], 0, "", 0
    for i in range(len(ids)):
        text = decode(tokenizer, ids[start : i + 1])
        if text.endswith(REPLACEMENT) or len(text) <= len(shown):
            cut.append("")
            continue
        cut.append(text[len(shown) :])
        start, last = last, i
        shown = decode(tokenizer, ids[start : i + 1])
    if cut:
        cut[-1] += decode(tokenizer, ids[start:])[len(shown) :]
    return cut


def _pieces_by_prefix(tokenizer: Any, ids: list[int], whole: str) -> list[str]:
    """Cut any text, exactly, by decoding every prefix: quadratic, for what the others miss."""
    cut, end = [], 0
    for i in range(len(ids)):
        so_far = decode(tokenizer, ids[: i + 1])
        agree = takewhile(lambda pair: pair[0] == pair[1], zip(so_far, whole, strict=False))
        settled = len(whole) if i + 1 == len(ids) else sum(1 for _ in agree)
        cut.append(whole[end : max(end, settled)])
        end = max(end, settled)
    return cut
