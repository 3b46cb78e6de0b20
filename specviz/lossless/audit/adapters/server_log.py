"""An inference server's per-request speculation log, as far as it carries information.

One JSON object per request: the fields of :mod:`specviz.lossless.audit.recorded_texts`
(``prompt_ids``, ``token_ids``, ``settings``, ``seed``; also under the names ``prompt_token_ids``,
``output_token_ids`` or ``output_ids``, ``sampling_params``), and ``steps``, a list with an object
per verification::

    {"drafted": 4, "accepted": 2, "draft_ids": [5, 9, 1, 1]}

(also ``num_draft_tokens``, ``num_accepted_tokens``, ``draft_token_ids``; ``draft_ids`` may be left
out). The **emitted tokens** decide whether a server is lossless: pass ``log.records`` to
:func:`specviz.audit`. The steps can only contradict themselves or the text; :meth:`ServerLog.check`
says where they do. Acceptance rates cannot show that the text is right.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specviz.lossless.audit.recorded_texts import Recorded, read_jsonl

ALIASES = {
    "prompt_token_ids": "prompt_ids",
    "output_token_ids": "token_ids",
    "output_ids": "token_ids",
    "sampling_params": "settings",
}
STEP_ALIASES = {
    "num_draft_tokens": "drafted",
    "num_accepted_tokens": "accepted",
    "draft_token_ids": "draft_ids",
}


@dataclass(frozen=True)
class Step:
    """One verification: how many proposals there were, and how many were kept."""

    drafted: int
    accepted: int
    draft_ids: tuple[int, ...] | None = None


@dataclass(frozen=True)
class ServerLog:
    """What a log says.

    Parameters
    ----------
    records : tuple of Recorded
        The texts, to be passed to :func:`specviz.audit`.
    steps : tuple of tuple of Step
        The verifications of each request; empty where the log has none.
    """

    records: tuple[Recorded, ...]
    steps: tuple[tuple[Step, ...], ...]

    @property
    def accepted_share(self) -> float | None:
        """Accepted proposals per proposal, all requests together; None without proposals."""
        drafted = sum(step.drafted for steps in self.steps for step in steps)
        accepted = sum(step.accepted for steps in self.steps for step in steps)
        return accepted / drafted if drafted else None

    @property
    def tokens_per_step(self) -> float | None:
        """Emitted tokens per verification, over the requests that have steps."""
        pairs = [(len(r.token_ids), len(s)) for r, s in zip(self.records, self.steps, strict=True)]
        passes = sum(k for _, k in pairs)
        return sum(n for n, k in pairs if k) / passes if passes else None

    def check(self) -> list[str]:
        """Return, one sentence each, where the log contradicts itself."""
        return [
            f"request {index}: {said}"
            for index, (record, steps) in enumerate(zip(self.records, self.steps, strict=True))
            if steps
            for said in _contradictions(record, steps)
        ]


def _contradictions(record: Recorded, steps: tuple[Step, ...]) -> list[str]:
    said = []
    position, total = 0, len(record.token_ids)
    for i, step in enumerate(steps):
        if not 0 <= step.accepted <= step.drafted:
            said.append(f"step {i} accepted {step.accepted} of {step.drafted} proposals")
        if step.draft_ids is not None and len(step.draft_ids) != step.drafted:
            said.append(f"step {i} names {len(step.draft_ids)} of {step.drafted} proposals")
        if position >= total:
            said.append(f"step {i} comes after the text's {total} tokens")
            break
        if step.draft_ids is not None:
            text = record.token_ids[position : position + step.accepted]
            for k, (kept, emitted) in enumerate(zip(step.draft_ids, text, strict=False)):
                if kept != emitted:
                    said.append(
                        f"step {i} accepted token {kept} at position {position + k}, the text has "
                        f"{emitted} there"
                    )
                    break
        position += step.accepted + 1
    if position < total:
        said.append(f"the steps emit {position} tokens, the text has {total}")
    return said


def read(source: Any) -> ServerLog:
    """Return a log.

    Parameters
    ----------
    source : str, Path or text file
        The JSONL described above.

    Raises
    ------
    ValueError
        If a line is no such object, naming the line.

    Examples
    --------
    >>> line = {"prompt_ids": [1], "token_ids": [5, 7], "steps": [{"drafted": 2, "accepted": 1}]}
    >>> log = read(io.StringIO(json.dumps(line)))
    >>> log.accepted_share, log.tokens_per_step, log.check()
    (0.5, 2.0, [])
    """
    if hasattr(source, "readline"):
        lines = list(source)
    else:
        lines = Path(source).read_text("utf-8").splitlines()
    steps: list[tuple[Step, ...]] = []
    rows: list[str] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError:
            row = None
        if not isinstance(row, dict):
            raise ValueError(f"line {number}: must be a JSON object with prompt_ids and token_ids")
        row = {ALIASES.get(name, name): value for name, value in row.items()}
        try:
            steps.append(tuple(_step(step) for step in row.pop("steps", None) or ()))
        except (TypeError, ValueError, KeyError) as error:
            raise ValueError(f"line {number}: steps must be a list of objects: {error}") from None
        settings = row.get("settings")
        if isinstance(settings, dict):
            row["seed"] = row.get("seed", settings.get("seed"))
        rows.append(json.dumps(row))
    records = read_jsonl(io.StringIO("\n".join(rows)))
    return ServerLog(tuple(records), tuple(steps))


def _step(row: Mapping[str, Any]) -> Step:
    if not isinstance(row, dict):
        raise TypeError(f"got {type(row).__name__}")
    row = {STEP_ALIASES.get(str(name), str(name)): value for name, value in row.items()}
    for name in ("drafted", "accepted"):
        if name not in row:
            raise ValueError(f"{name} is missing")
        if isinstance(row[name], bool) or not isinstance(row[name], int):
            raise ValueError(f"{name} must be a whole number, got {row[name]!r}")
    ids = row.get("draft_ids")
    return Step(row["drafted"], row["accepted"], None if ids is None else tuple(map(int, ids)))
