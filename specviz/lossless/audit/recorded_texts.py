"""Recorded texts as JSON lines: what any engine can write, and an audit read.

One line per text::

    {"prompt_ids": [1, 15, 27], "token_ids": [4, 8, 2],
     "settings": {"temperature": 0.8, "top_k": 0, "top_p": 1.0}, "seed": 17}

``token_ids`` are the emitted tokens without the prompt, the end token included where the text
ended by itself. ``settings`` (sampling settings; null, or -1 for ``top_k``, means off) and ``seed``
may be left out, other fields are ignored.
"""

from __future__ import annotations

import json
import secrets
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from specviz.core.contract import Sampling, unmodelled

SETTINGS = ("temperature", "top_k", "top_p", "min_p", "repetition_penalty")
LARGEST_ID = 2**31


@dataclass(frozen=True)
class Recorded:
    """One emitted text.

    Parameters
    ----------
    prompt_ids, token_ids : tuple of int
        The prompt, and what was emitted after it.
    settings : mapping
        What shaped the distribution, and anything else that is worth keeping.
    seed : int or None
        Seed of the call that drew it.
    """

    prompt_ids: tuple[int, ...]
    token_ids: tuple[int, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)
    seed: int | None = None

    def line(self) -> str:
        """Return it as a line of JSON."""
        row: dict[str, Any] = {
            "prompt_ids": list(self.prompt_ids),
            "token_ids": list(self.token_ids),
            "settings": dict(self.settings),
            "seed": self.seed,
        }
        return json.dumps(row, allow_nan=False, default=plain_value)


def plain_value(value: Any) -> Any:
    """Return numpy's numbers and arrays as JSON's, for ``json.dumps(default=…)``."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is no plain JSON value")


def refuse_unmodelled(settings: Mapping[str, Any]) -> None:
    """Refuse a setting that shapes the distribution and is not modelled.

    Raises
    ------
    ValueError
        Naming it: held against a target without it, a right sampler would be convicted.
    """
    for name, value in unmodelled(settings).items():
        raise ValueError(
            f"settings has {name}={value!r:.60}, which shapes the distribution and is not "
            f"modelled: audit texts drawn without it"
        )


def sampling_of(settings: Mapping[str, Any]) -> Sampling:
    """Return the sampling settings among recorded ones.

    Raises
    ------
    ValueError
        If one is out of range, or shapes the distribution and is not modelled.

    Examples
    --------
    >>> sampling_of({"temperature": 0.5, "top_k": -1, "engine": "mine"}).temperature
    0.5
    """
    refuse_unmodelled(settings)
    given = {name: settings[name] for name in SETTINGS if settings.get(name) is not None}
    if given.get("top_k") == -1:
        del given["top_k"]
    return Sampling(**given)


def one_distribution(
    subject: Sequence[Mapping[str, Any]], reference: Sequence[Mapping[str, Any]],
    given: Mapping[str, Any],
) -> None:  # fmt: skip
    """Refuse two samples whose recorded settings make different distributions.

    What was not recorded says nothing; what is ``given`` holds for all.

    Raises
    ------
    ValueError
        Naming the setting and its values.

    Examples
    --------
    >>> one_distribution([{"temperature": 1.0}], [{}, {"temperature": 1.0, "top_k": -1}], given={})
    """
    sides = []
    for side in (subject, reference):
        shaped = dict.fromkeys(
            sampling_of({**settings, **given})
            for settings in side
            if any(name in settings for name in SETTINGS)
        )
        sides.append(list(shaped))
    for name in SETTINGS:
        values = [sorted({getattr(one, name) for one in side}) for side in sides]
        for whose, seen in zip(("the samples", "the reference"), values, strict=True):
            if len(seen) > 1:
                raise ValueError(
                    f"the texts of {whose} were drawn with different settings, {name} "
                    f"{seen[0]} and {seen[1]}: a two-sample test needs texts of one distribution"
                )
        if values[0] and values[1] and values[0] != values[1]:
            raise ValueError(
                f"the samples were drawn with {name}={values[0][0]}, the reference with "
                f"{name}={values[1][0]}: draw both alike"
            )


def read_jsonl(source: Any) -> list[Recorded]:
    """Return the recorded texts of a file.

    Parameters
    ----------
    source : str, Path or text file
        A path, ``"-"`` for standard input, or an open file.

    Raises
    ------
    ValueError
        If a line is not such a record, naming the line and what is wrong; or there is none.
    """
    if source == "-":
        return _records(sys.stdin, "standard input")
    if isinstance(source, (str, Path)):
        with Path(source).open(encoding="utf-8") as file:
            return _records(file, f"{Path(source).name}")
    return _records(source, "the file")


def _records(lines: Iterable[str], where: str) -> list[Recorded]:
    out: list[Recorded] = []
    iterator: Iterator[str] = iter(lines)
    number = 0
    while True:
        number += 1
        try:
            line = next(iterator)
        except StopIteration:
            break
        except UnicodeDecodeError:
            raise ValueError(f"{where}, line {number}: not UTF-8 text") from None
        if number == 1:
            line = line.removeprefix("\ufeff")  # a byte order mark
        if line.strip():
            try:
                out.append(_record(json.loads(line)))
            except (ValueError, TypeError, RecursionError) as error:
                raise ValueError(f"{where}, line {number}: {_said(error)}") from None
    if not out:
        raise ValueError(f"{where} has no recorded text: one JSON object a line is needed")
    return out


def _said(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"not JSON ({error.msg} at column {error.colno})"
    return str(error) or type(error).__name__


def _record(row: Any) -> Recorded:
    if not isinstance(row, dict):
        raise ValueError(
            f"must be an object with prompt_ids and token_ids, got {type(row).__name__}"
        )
    settings = row.get("settings") or {}
    if not isinstance(settings, dict):
        raise ValueError(f"settings must be an object, got {type(settings).__name__}")
    seed = row.get("seed")
    seed = seed if isinstance(seed, int) and not isinstance(seed, bool) else None
    prompt, tokens = (_ids(row, name) for name in ("prompt_ids", "token_ids"))
    if not prompt:
        raise ValueError("prompt_ids must hold at least one token id")
    if not tokens:
        raise ValueError("token_ids must hold at least one token id")
    sampling_of(settings)
    return Recorded(prompt, tokens, settings, seed)


def _ids(row: Mapping[str, Any], name: str) -> tuple[int, ...]:
    if name not in row:
        raise ValueError(f"{name} is missing")
    ids = row[name]
    good = isinstance(ids, list) and all(
        isinstance(i, int) and not isinstance(i, bool) and 0 <= i < LARGEST_ID for i in ids
    )
    if not good:
        shown = repr(ids)
        raise ValueError(
            f"{name} must be a list of token ids, whole numbers from 0, "
            f"got {shown if len(shown) <= 60 else shown[:59] + '…'}"
        )
    return tuple(ids)


def write_jsonl(path: str | Path, records: Sequence[Recorded]) -> None:
    """Write records so that the file is either the old one or the whole new one.

    Raises
    ------
    TypeError, ValueError
        If there is something else among the records, or ``path`` cannot be written to.
    """
    place = checked_place(path)
    for index, record in enumerate(records):
        if not isinstance(record, Recorded):
            raise TypeError(f"records[{index}] must be a Recorded, got {type(record).__name__}")
    half = place.with_name(f".{place.name}.{secrets.token_hex(4)}.tmp")
    try:
        with half.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(record.line() + "\n" for record in records)
        half.replace(place)
    except BaseException:
        half.unlink(missing_ok=True)
        raise


def checked_place(path: Any) -> Path:
    """Return where a file goes, or say in one sentence why it cannot go there."""
    if not isinstance(path, (str, Path)):
        raise TypeError(f"path must be a file name (str or Path), got {type(path).__name__}")
    place = Path(path)
    if place.is_dir():
        raise ValueError(f"path must be a file, and {str(place)!r} is a folder")
    if not place.parent.is_dir():
        raise ValueError(f"path is {str(place)!r}, and there is no folder {str(place.parent)!r}")
    return place
