"""May this draft propose to this target? Token strings decide, not sizes.

A rejection step compares p and q at the same token *id*, so an id must be the same string for
both models. Models of one family often pad their embeddings to different heights (151,936 and
152,064 rows): the ids below the smaller height are shared, and above it ``q = 0``.
"""

from __future__ import annotations

from typing import Any

from specviz.models.text import special_ids


class VocabularyError(ValueError):
    """The draft's token ids do not mean what the target's mean."""


def shared_vocabulary(
    target_rows: int, draft_rows: int, tokenizer: Any = None, draft_tokenizer: Any = None
) -> int:
    """Return how many ids, counted from 0, target p and draft q share.

    Parameters
    ----------
    target_rows, draft_rows : int
        Rows of each model's output embedding, padding included.
    tokenizer, draft_tokenizer : Hugging Face tokenizer, optional
        Compared string by string, added and special tokens included, wherever both define an id.
        An id that only one of them defines is padding for the other, and harmless.

    Raises
    ------
    VocabularyError
        Naming the first id that differs, and both strings.

    Examples
    --------
    >>> shared_vocabulary(152_064, 151_936)
    151936
    """
    shared = min(target_rows, draft_rows)
    if tokenizer is None or draft_tokenizer is None or tokenizer is draft_tokenizer:
        return shared
    target, draft = tokenizer.get_vocab(), draft_tokenizer.get_vocab()
    if target == draft:
        return shared
    both = {i for i in set(target.values()) & set(draft.values()) if i < shared}
    same = {i for token, i in draft.items() if target.get(token) == i}
    different = both - same
    if not both:
        raise VocabularyError(
            "the draft's tokenizer and the target's define no id in common: "
            "a draft must use the target's tokenizer"
        )
    if different:
        first = min(different)
        raise VocabularyError(
            f"the draft's tokenizer is not the target's: id {first} is "
            f"{_describe(tokenizer, target, first)} in the target and "
            f"{_describe(draft_tokenizer, draft, first)} in the draft "
            f"({len(different):,} of {len(both):,} shared ids differ); "
            f"a draft must have the same string at every id"
        )
    return shared


def _describe(tokenizer: Any, vocabulary: dict[str, int], token_id: int) -> str:
    """Return a token's string, quoted and shortened, and whether it is special."""
    name = next(token for token, i in vocabulary.items() if i == token_id)
    quoted = repr(name if len(name) <= 40 else name[:39] + "…")
    return f"the special token {quoted}" if token_id in special_ids(tokenizer) else quoted
