"""What can be audited: our loop, a function, recorded texts; and how each comes to its texts."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from specviz.core.contract import IntArray, Sampling
from specviz.lossless.audit import run_tests as judging
from specviz.lossless.audit.gathering import Drawer, checked_texts, gather, gather_array
from specviz.lossless.audit.recorded_texts import (
    Recorded,
    one_distribution,
    read_jsonl,
    sampling_of,
)
from specviz.lossless.audit.teacher import Against, against, checked_prompt
from specviz.lossless.report.audit_report import AuditReport
from specviz.lossless.report.battery_report import Criteria
from specviz.lossless.statistics.sample import Sample, without_padding

LENGTH = 6
"""Tokens per text that a function is asked for, where none is given."""

SHORT = 16
"""Texts up to this length are judged by every test, if there are many of one prompt."""

MANY = 200
"""From this number on, texts of one prompt are judged by every test."""

TWO_SAMPLES = 10_000
"""Texts drawn from each side where nothing says how many."""

CALL = 100

CHECKED = 4
"""Prompts after which the shipped verification pass is compared with fresh passes."""


@dataclass(frozen=True)
class Asked:
    """What an audit was asked, checked."""

    tests: Criteria
    given: dict[str, Any]
    n: int | None
    effect: float | None
    length: int | None
    method: str
    seed: int
    path: Any
    per_call: int | None
    progress: bool
    draft: Any = None


def audit_own(
    pair: Any, prompts: list[Any], asked: Asked, target: Any, end_ids: Any, drafter: Any,
    gamma: Any, verify: Any, fault: Any, engine: str,
) -> AuditReport:  # fmt: skip
    """Audit our own loop on a pair."""
    from specviz.lossless.audit.own_loop import ENGINES, chosen, own_loop
    from specviz.lossless.audit.pass_check import check_pass
    from specviz.lossless.faults import get_fault

    fault = None if fault is None else get_fault(fault)
    sampling = sampling_of(asked.given)
    if fault is not None and not asked.given:
        sampling = fault.sampling
    held = against(pair if target is None else target, end_ids)
    prompts_ids = _encoded(prompts, Against(pair.target, held.vocab_size, held.end_ids, pair))
    used, rule = chosen(pair, drafter, gamma, verify, sampling, fault)
    length = asked.length or used.depth + 2
    if asked.method == "enumeration":
        return judging.enumerated(pair, prompts_ids, used, rule, length, sampling, fault, asked)
    draft = asked.draft
    if draft is None and used.name in ("draft_model", "tree"):
        draft = pair.draft
    asked = replace(asked, draft=draft)
    loops = [
        own_loop(pair, ids, length, used, rule, sampling, asked.seed, fault, asked.progress, engine)
        for ids in prompts_ids
    ]
    drawers = [loop.drawer for loop in loops]
    report = _drawn(drawers, prompts_ids, asked, held, length, sampling)
    checks = []
    if fault is None:  # a planted fault is for the tests of emitted tokens to find
        found = (check_pass(pair, ids, used, seed=asked.seed) for ids in prompts_ids[:CHECKED])
        checks = [check for check in found if check is not None]
    ran = "; ".join(dict.fromkeys(ENGINES[loop.engine()] for loop in loops))
    report = replace(report, engine=ran, passes=tuple(checks))
    if length <= used.depth:
        note = (
            f"Texts of {length} tokens never reach past gamma = {used.depth}: a wrong bonus token "
            f"would not be seen."
        )
        report = replace(report, notes=(*report.notes, note))
    return report


def audit_function(subject: Any, prompts: list[Any], asked: Asked, held: Against) -> AuditReport:
    """Audit a function ``(prompt_ids, n, seed)`` → n token sequences."""
    sampling = sampling_of({**_settings_of(subject), **asked.given})
    ids = _encoded(prompts, held)
    drawer = _drawer(subject, sampling)
    return _drawn([drawer] * len(ids), ids, asked, held, asked.length or LENGTH, sampling)


def _settings_of(subject: Any) -> dict[str, Any]:
    settings = getattr(subject, "settings", None)
    return dict(settings) if isinstance(settings, dict) else {}


def _drawer(subject: Any, sampling: Sampling | None) -> Drawer:
    name = str(getattr(subject, "name", getattr(subject, "__name__", type(subject).__name__)))
    settings = {**_settings_of(subject), **({} if sampling is None else asdict(sampling))}
    return Drawer(lambda ids, n, seed, first: subject(ids, n, seed), name, settings)


def _encoded(prompts: list[Any], held: Against | None) -> list[IntArray]:
    if not prompts:
        raise ValueError("prompt is needed: the text to continue, or its token ids")
    if held is None:
        return [checked_prompt(prompt) for prompt in prompts]
    return [held.encode(prompt) for prompt in prompts]


def _drawn(
    drawers: list[Drawer], prompts: list[IntArray], asked: Asked, held: Against, length: int,
    sampling: Sampling,
) -> AuditReport:  # fmt: skip
    """Draw texts after every prompt, and judge them."""
    method = asked.method
    if method == "auto":
        method = "battery" if length <= SHORT else "scores"
    tests = replace(asked.tests, alpha=asked.tests.alpha / len(prompts))
    groups: list[judging.Group] = []
    notes: list[str] = []
    wanted: list[int] = []
    interrupted = False
    for index, (drawer, ids) in enumerate(zip(drawers, prompts, strict=True)):
        if interrupted:
            break
        distribution = judging.PromptDistribution(
            held, ids, length, sampling, asked.draft, asked.progress
        )
        n = asked.n or (
            judging.texts_needed(distribution, tests, asked.effect)
            if method == "battery"
            else judging.long_texts_needed(length, len(prompts), asked.tests, asked.effect)
        )
        wanted.append(n)
        per_call = min(asked.per_call or drawer.per_call or CALL, n)
        if drawer.per_call is not None and asked.path is None and method == "battery":
            tokens, said = gather_array(
                drawer, ids, n, seed=asked.seed, per_call=per_call, progress=asked.progress
            )
            groups.append((distribution, Sample(tokens, held.vocab_size, held.end_ids)))
            notes.extend(said)
            interrupted = len(tokens) < n
            continue
        got = gather(
            drawer, ids, n, seed=asked.seed, prompt_index=index, length=length,
            per_call=per_call, vocab_size=held.vocab_size,
            end_ids=held.end_ids if method == "battery" else None,
            path=_numbered(asked.path, index), progress=asked.progress,
        )  # fmt: skip
        groups.append((distribution, got.records[:n]))
        notes.extend(got.notes)
        interrupted = got.interrupted
    if len(groups) < len(prompts):
        notes.append(f"Only {len(groups)} of {len(prompts)} prompts were reached.")
    settings = dict(drawers[0].settings)
    return judging.judged_against(
        drawers[0].name, method, groups, asked, settings, notes, wanted, interrupted
    )


def _numbered(path: Any, index: int) -> Path | None:
    if path is None:
        return None
    place = Path(path)
    return place if index == 0 else place.with_name(f"{place.stem}-{index}{place.suffix}")


def audit_recorded(subject: Any, prompts: list[Any], asked: Asked, held: Against) -> AuditReport:
    """Audit texts that exist already."""
    records, name = _records_of(subject, prompts, asked.length, held)
    goes_on = {bool(record.settings.get("ignore_eos")) for record in records}
    if len(goes_on) == 2:
        raise ValueError(
            "some of the texts were recorded with ignore_eos=true and some without: audit them "
            "in two files"
        )
    if True in goes_on:  # an end token was a token like any other
        held = replace(held, end_ids=frozenset())
    records = [
        replace(record, token_ids=without_padding(record.token_ids, held.end_ids))
        for record in records
    ]
    groups = []
    texts: dict[Any, list[Recorded]] = {}
    for record in records:
        sampling = sampling_of({**record.settings, **asked.given})
        key = (record.prompt_ids, tuple(asdict(sampling).items()))
        texts.setdefault(key, []).append(record)
    for (ids, shaped), some in texts.items():
        length = min(asked.length or 2**31, max(len(record.token_ids) for record in some))
        prompt = held.encode(list(ids))
        sampling = Sampling(**dict(shaped))
        distribution = judging.PromptDistribution(
            held, prompt, length, sampling, asked.draft, asked.progress
        )
        groups.append((distribution, tuple(some[: asked.n])))
    method = asked.method
    if method == "auto":
        short = all(
            len(some) >= MANY and distribution.length <= SHORT for distribution, some in groups
        )
        method = "battery" if short else "scores"
    settings = dict(asdict(groups[0][0].sampling)) if len(groups) == 1 else {"groups": len(groups)}
    report = judging.judged_against(name, method, groups, asked, settings, [])
    if report.exit_code != 1:
        return report
    note = (
        "If another model, other weights, another prompt or other sampling settings than these "
        "generated the texts, that alone explains it."
    )
    return replace(report, notes=(*report.notes, note))


def _records_of(
    subject: Any, prompts: list[Any], length: int | None, held: Against | None
) -> tuple[list[Recorded], str]:
    """Return recorded texts, and what to call them."""
    if isinstance(subject, (str, Path)) or hasattr(subject, "readline"):
        name = "recorded texts"
        if isinstance(subject, (str, Path)) and subject != "-":
            name = f"the texts in {Path(subject).name}"
            if not Path(subject).is_file():
                raise FileNotFoundError(
                    f"subject names a file of recorded texts, and there is no file {str(subject)!r}"
                )
        return read_jsonl(subject), name
    if hasattr(subject, "rounds") and hasattr(subject, "meta"):
        raise TypeError("subject is one trace: give a list of them, from runs with other seeds")
    if not hasattr(subject, "__iter__"):
        raise TypeError(
            f"subject must be a Pair, a function, traces, a file or token sequences, "
            f"got {type(subject).__name__}"
        )
    rows = subject if isinstance(subject, np.ndarray) else list(subject)
    if len(rows) and all(isinstance(row, Recorded) for row in rows):
        return list(rows), "recorded texts"
    if len(rows) and all(hasattr(row, "prompt") and hasattr(row, "meta") for row in rows):
        return [_of_trace(trace) for trace in rows], f"{len(rows)} traces"
    if len(rows) == 0:
        raise ValueError("subject is empty: at least one text is needed")
    if len(prompts) != 1:
        raise ValueError("prompt is needed: the one that all these sequences continue")
    prompt = tuple(_encoded(prompts, held)[0].tolist())
    size = None if held is None else held.vocab_size
    try:
        texts = checked_texts(rows, None, length, size)
    except (TypeError, ValueError) as error:
        raise type(error)(f"subject must hold token sequences: {error}") from None
    return [Recorded(prompt, text) for text in texts], "recorded sequences"


def _of_trace(trace: Any) -> Recorded:
    tokens = tuple(int(token) for token in trace.tokens)
    prompt = tuple(int(token) for token in trace.prompt)
    settings = dict(trace.meta.get("sampling") or {})
    return Recorded(prompt, tokens, settings, trace.meta.get("seed"))


def audit_two_samples(
    subject: Any, reference: Any, prompts: list[Any], asked: Asked, held: Against | None,
    vocab_size: int | None, end_ids: Any,
) -> AuditReport:  # fmt: skip
    """Judge texts against texts of the same engine with speculation off."""
    length = asked.length or (LENGTH if callable(subject) or callable(reference) else None)
    if end_ids is None:
        own: list[Any] = [getattr(side, "end_ids", frozenset()) for side in (subject, reference)]
        end_ids = (own[0] | own[1]) or (None if held is None else held.end_ids)
    both = (subject, reference)
    read = [None if callable(what) else _records_of(what, prompts, length, held) for what in both]
    settings = [
        [_settings_of(what)] if some is None else [record.settings for record in some[0]]
        for what, some in zip(both, read, strict=True)
    ]
    one_distribution(settings[0], settings[1], asked.given)
    sides: list[list[Recorded]] = []
    wanted: list[int | None] = []
    interrupted = False
    notes: list[str] = []
    names: list[str] = []
    for side, (what, some) in enumerate(zip(both, read, strict=True)):
        if some is None:
            ids = _encoded(prompts, held)
            if len(ids) > 1:
                raise ValueError("a two-sample test takes one prompt")
            n = asked.n or judging.two_sample_needed(asked.tests, asked.effect, TWO_SAMPLES)
            got = gather(
                _drawer(what, None), ids[0], n, seed=asked.seed, prompt_index=side * 2**20,
                per_call=min(asked.per_call or CALL, n), length=length, end_ids=end_ids or (),
                path=_numbered(asked.path, side), progress=asked.progress,
            )  # fmt: skip
            if got.interrupted and side == 0 and callable(reference):
                raise KeyboardInterrupt  # there is nothing yet to hold them against
            interrupted = interrupted or got.interrupted
            wanted.append(n)
            sides.append(list(got.records[:n]))
            notes.extend(got.notes)
            names.append(_drawer(what, None).name)
        else:
            records, name = some
            sides.append(records)
            wanted.append(None)
            names.append(name)
    return judging.judged_two(
        names[0], sides, asked, notes, length,
        vocab_size if vocab_size is not None else None if held is None else held.vocab_size,
        end_ids or (), wanted, interrupted,
    )  # fmt: skip
