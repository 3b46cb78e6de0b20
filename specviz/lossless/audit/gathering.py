"""Texts from a sampler, call by call: kept when it fails, saved so that it can go on."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
from tqdm.auto import tqdm

from specviz.core import checks
from specviz.core.contract import IntArray
from specviz.lossless.audit.recorded_texts import (
    Recorded,
    checked_place,
    plain_value,
    read_jsonl,
    write_jsonl,
)
from specviz.lossless.statistics.sample import END

LEAST = 100
"""A sampler that fails before this text is an error; later, what it gave is judged."""

SAVE_EVERY = 10.0
"""Seconds between two saves."""

Sequences = Callable[[IntArray, int, int], Any]
"""(prompt ids, n, seed) → n token sequences."""


class AuditError(RuntimeError):
    """A sampler failed, or returned what are no texts, before there was enough to judge."""


class BadTextsError(ValueError):
    """What a sampler returned is no list of texts."""


@dataclass(frozen=True)
class Drawer:
    """What texts are drawn from.

    Parameters
    ----------
    draw : callable
        (prompt ids, n, seed, index of the first text) → n token sequences.
    name : str
        What it is called.
    settings : mapping
        What is recorded with every text.
    seeded : bool
        Whether each call has a seed of its own; else texts are told apart by their index.
    per_call : int, optional
        How many texts are best drawn at a time.
    """

    draw: Callable[[IntArray, int, int, int], Any]
    name: str
    settings: Mapping[str, Any]
    seeded: bool = True
    per_call: int | None = None


@dataclass(frozen=True)
class Gathered:
    """What was drawn after one prompt, and what went wrong."""

    records: tuple[Recorded, ...]
    notes: tuple[str, ...] = ()
    interrupted: bool = False


def call_seed(seed: int, prompt_index: int, call: int) -> int:
    """Return the seed of a call: 32 bits that differ for every call, prompt and audit seed."""
    return int(np.random.SeedSequence([seed, prompt_index, call]).generate_state(1)[0])


def gather(
    drawer: Drawer,
    prompt: IntArray,
    n: int,
    *,
    seed: int,
    prompt_index: int = 0,
    per_call: int,
    length: int | None,
    vocab_size: int | None = None,
    end_ids: Collection[int] | None = None,
    path: str | Path | None = None,
    progress: bool = True,
) -> Gathered:
    """Return at least n texts, or as many as the sampler gave before it failed.

    With a path, texts found there are taken first and new ones are saved there. With end ids, a
    text shorter than ``length`` must end with one of them.

    Raises
    ------
    AuditError
        If the sampler fails before there are :data:`LEAST` texts.
    ValueError
        If the file at ``path`` belongs to another audit.
    """
    if path is not None:
        checked_place(path)
    records = _resumed(path, drawer, prompt, seed, prompt_index, per_call)
    notes: list[str] = []
    if records:
        notes.append(f"{len(records):,} of the texts were taken from an earlier, unfinished run.")
    saved = monotonic()
    bar = tqdm(
        total=n, initial=len(records), desc=f"drawing from {drawer.name}", unit="text", delay=2,
        leave=False, disable=not progress,
    )  # fmt: skip
    with bar:
        while len(records) < n:
            call = len(records) // per_call
            its_seed = call_seed(seed, prompt_index, call) if drawer.seeded else seed
            count = per_call if drawer.seeded else min(per_call, n - len(records))
            try:
                rows = drawer.draw(prompt, count, its_seed, len(records))
                try:
                    texts = checked_texts(rows, count, length, vocab_size, end_ids)
                except (TypeError, ValueError) as error:
                    raise BadTextsError(f"its texts cannot be tested, {error}") from error
            except (Exception, KeyboardInterrupt) as error:
                if path is not None and records:
                    write_jsonl(path, records)
                why = why_failed(error)
                if len(records) < LEAST:
                    if isinstance(error, KeyboardInterrupt):
                        raise
                    done = f"on call {call}, after {len(records)} texts"
                    raise AuditError(f"{drawer.name} failed {done}: {why}") from error
                interrupted = isinstance(error, KeyboardInterrupt)
                what = "It was interrupted" if interrupted else "The sampler failed"
                notes.append(
                    f"{what} on call {call} (counted from 0){'' if interrupted else f': {why}'}. "
                    f"The {len(records):,} of {n:,} texts that came before are judged."
                )
                return Gathered(tuple(records), tuple(notes), interrupted)
            ids = tuple(prompt.tolist())
            records.extend(Recorded(ids, text, drawer.settings, its_seed) for text in texts)
            bar.update(count)
            if path is not None and monotonic() - saved > SAVE_EVERY:
                write_jsonl(path, records)
                saved = monotonic()
    if path is not None:
        write_jsonl(path, records)
    return Gathered(tuple(records), tuple(notes))


def gather_array(
    drawer: Drawer, prompt: IntArray, n: int, *, seed: int, per_call: int, progress: bool
) -> tuple[IntArray, tuple[str, ...]]:
    """Return ``(n, length)`` texts of a drawer that hands out whole arrays, and notes.

    Fewer than n only after an interrupt, which keeps what was drawn, from :data:`LEAST` texts on.
    """
    parts: list[IntArray] = []
    drawn = 0
    bar = tqdm(
        total=n, desc=f"drawing from {drawer.name}", unit="text", delay=2, leave=False,
        disable=not progress,
    )  # fmt: skip
    with bar:
        while drawn < n:
            try:
                parts.append(drawer.draw(prompt, min(per_call, n - drawn), seed, drawn))
            except KeyboardInterrupt:
                if drawn < LEAST:
                    raise
                note = f"It was interrupted; the {drawn:,} of {n:,} texts drawn are judged."
                return np.concatenate(parts), (note,)
            drawn += len(parts[-1])
            bar.update(len(parts[-1]))
    return np.concatenate(parts), ()


def why_failed(error: BaseException) -> str:
    """Return the kind of an error and what it says, on one line."""
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    said = " ".join(str(error).split())
    if isinstance(error, BadTextsError):
        return said
    return f"{type(error).__name__}: {said[:200]}" if said else type(error).__name__


def checked_texts(
    rows: Any,
    n: int | None,
    length: int | None,
    vocab_size: int | None,
    end_ids: Collection[int] | None = None,
) -> list[tuple[int, ...]]:
    """Return sequences as tuples cut at ``length``, or say what is wrong with them."""
    rows = rows.tolist() if hasattr(rows, "tolist") else rows
    if isinstance(rows, (str, bytes)) or not isinstance(rows, Sequence):
        raise TypeError(f"it returned {type(rows).__name__}, not a list of token sequences")
    if n is not None and len(rows) != n:
        raise ValueError(f"it returned {len(rows)} sequences where {n} were asked for")
    out = []
    for index, row in enumerate(rows):
        ids = checks.token_ids(f"sequence {index}", row)
        ended = np.flatnonzero(ids == END)
        ids = ids[: ended[0]] if len(ended) else ids
        ids = ids if length is None else ids[:length]
        if not ids.size:
            raise ValueError(
                f"sequence {index} is empty: at least one token must come before {END}, the "
                f"symbol after an end"
                if ended.size
                else f"sequence {index} is empty"
            )
        if ids.min() < 0 or (vocab_size is not None and ids.max() >= vocab_size):
            wrong = ids.min() if ids.min() < 0 else ids.max()
            known = "" if vocab_size is None else f" of {vocab_size:,}"
            raise ValueError(f"sequence {index} has id {wrong}, outside the vocabulary{known}")
        if end_ids is not None and length is not None and len(ids) < length:
            _check_ended(ids, ended.size > 0, index, length, end_ids)
        out.append(tuple(ids.tolist()))
    return out


def _check_ended(
    ids: IntArray, marked: bool, index: int, length: int, end_ids: Collection[int]
) -> None:
    if not marked and int(ids[-1]) not in end_ids:
        raise ValueError(
            f"sequence {index} has {len(ids)} tokens where {length} are needed, and does not end "
            f"with one of end_ids={sorted(end_ids)}: draw it longer, or audit with "
            f"length={len(ids)}"
        )


def _resumed(
    path: str | Path | None, drawer: Drawer, prompt: IntArray, seed: int, prompt_index: int,
    per_call: int,
) -> list[Recorded]:  # fmt: skip
    """Return the whole calls that an earlier run of the same audit saved."""
    if path is None or not Path(path).exists():
        return []
    records = read_jsonl(path)
    whole = len(records) // per_call * per_call if drawer.seeded else len(records)
    ids = tuple(prompt.tolist())
    ours_settings = json.loads(json.dumps(dict(drawer.settings), default=plain_value))
    for index, record in enumerate(records[:whole]):
        call = index // per_call
        wanted = call_seed(seed, prompt_index, call) if drawer.seeded else seed
        for name, ours, theirs in (
            ("prompt", ids, record.prompt_ids),
            ("settings", ours_settings, dict(record.settings)),
            ("seed", wanted, record.seed),
        ):
            if ours != theirs:
                raise ValueError(
                    f"path {Path(path).name!r} holds another audit: its {name} differs at text "
                    f"{index}; give another path, or remove the file"
                )
    return records[:whole]
