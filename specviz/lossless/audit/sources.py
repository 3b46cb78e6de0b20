"""How each kind of subject comes to its texts: our loop, a function, recorded, two samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from specviz.core.contract import UNMODELLED, IntArray, Sampling
from specviz.core.names import DRAFTERS
from specviz.lossless.audit.gathering import Drawer, checked_texts, gather, gather_array
from specviz.lossless.audit.pass_check import PassCheck, check_pass
from specviz.lossless.audit.plan import Plan, is_pair
from specviz.lossless.audit.recorded_texts import (
    SETTINGS,
    Recorded,
    one_distribution,
    read_jsonl,
)
from specviz.lossless.audit.target import ClaimedTarget, PromptTarget
from specviz.lossless.exact.enumerate import (
    enumerate_distribution,
    target_distribution,
    total_variation,
)
from specviz.lossless.report.audit_report import AuditReport
from specviz.lossless.report.verdict import POWER
from specviz.lossless.statistics.power import samples_for_tv, texts_for_effect
from specviz.lossless.statistics.prefix_tree import walk
from specviz.lossless.statistics.sample import Sample, without_padding
from specviz.lossless.statistics.tables import all_tables

LENGTH = 6
"""Tokens per text that a function is asked for, where none is given."""

SHORT = 16
"""Texts up to this length are judged by every test, if there are many of one prompt."""

MANY = 200
"""From this number on, texts of one prompt are judged by every test."""

CALL = 100
"""Texts that a function is asked for at a time."""

CHECKED = 4
"""Prompts after which the shipped verification pass is compared with fresh passes."""

DEFAULT_EFFECT = 0.05
AT_MOST, AT_LEAST = 20_000, 1_000
"""Texts of one prompt where nothing says how many: what shows the default effect, within these."""

TWO_SAMPLES = 10_000
"""The same for each of two samples."""

LONG_TEXTS = 200
"""Long texts in all, where nothing says how many."""

DOF_OF_U = 19

READ = (
    *SETTINGS,
    *UNMODELLED,
    "ignore_eos",
    "seed",
    "max_new_tokens",
    "max_tokens",
    "rule",
    "drafter",
    "fault",
)
"""Recorded settings that are read, refused or of no matter."""

Texts = Sequence[Recorded] | Sample


@dataclass(frozen=True)
class Collected:
    """The texts of an audit.

    Parameters
    ----------
    name : str
        What was audited, in words.
    groups : tuple of (PromptTarget, texts)
        One for each prompt (and setting); of two samples none.
    sides : tuple of list of Recorded
        Two samples: the audited one and the reference.
    method : str
        ``"battery"``, ``"scores"`` or ``"two_sample"``.
    settings : mapping
        What the texts were drawn with.
    notes : tuple of str
        What went wrong.
    wanted : tuple of int
        How many texts of each group were asked for, where they were drawn for the audit; 0 where
        they were there.
    interrupted : bool
        Whether someone ended the drawing.
    engine : str
        What drew our own loop's texts.
    passes : tuple of PassCheck
        The shipped verification pass compared with fresh ones.
    """

    name: str
    method: str
    settings: dict[str, Any]
    groups: tuple[tuple[PromptTarget, Texts], ...] = ()
    sides: tuple[list[Recorded], ...] = ()
    notes: tuple[str, ...] = ()
    wanted: tuple[int, ...] = ()
    interrupted: bool = False
    engine: str = ""
    passes: tuple[PassCheck, ...] = ()


def collect(subject: Any, plan: Plan) -> Collected:
    """Return the texts of our own loop, a function, or a record."""
    if is_pair(subject):
        return _own_texts(subject, plan)
    if callable(subject):
        sampling = plan.sampling(_settings_of(subject))
        prompts = plan.encoded()
        drawer = _drawer(subject, sampling)
        return _drawn([drawer] * len(prompts), prompts, plan, plan.length or LENGTH, sampling)
    return _recorded(subject, plan)


# --- our own loop -----------------------------------------------------------------------------


def _own_texts(pair: Any, plan: Plan) -> Collected:
    """Return our own loop's texts on a pair; its verification pass is checked beside them."""
    from specviz.lossless.audit.own_loop import ENGINES, own_loop

    drafter, rule, fault, sampling = _choices(pair, plan)
    prompts = plan.encoded()
    length = plan.length or drafter.depth + 2
    if plan.draft is None and drafter.name in ("draft_model", "tree"):
        plan = replace(plan, draft=pair.draft)
    seed, engine = plan.criteria.seed, plan.loop.engine
    loops = [
        own_loop(pair, ids, length, drafter, rule, sampling, seed, fault, plan.progress, engine)
        for ids in prompts
    ]
    found = _drawn([loop.drawer for loop in loops], prompts, plan, length, sampling)
    checks = []
    if fault is None:  # a planted fault is for the tests of emitted tokens to find
        every = (check_pass(pair, ids, drafter, seed=seed) for ids in prompts[:CHECKED])
        checks = [check for check in every if check is not None]
    ran = "; ".join(dict.fromkeys(ENGINES[loop.engine()] for loop in loops))
    notes = found.notes
    if length <= drafter.depth:
        notes += (
            f"Texts of {length} tokens never reach past gamma = {drafter.depth}: a wrong bonus "
            f"token would not be seen.",
        )
    return replace(found, engine=ran, passes=tuple(checks), notes=notes)


def _choices(pair: Any, plan: Plan) -> tuple[Any, Any, Any, Sampling]:
    """Return drafter, rule, fault and sampling settings of our own loop."""
    from specviz.lossless.audit.own_loop import chosen
    from specviz.lossless.faults import get_fault

    loop = plan.loop
    fault = None if loop.fault is None else get_fault(loop.fault)
    # a fault shows under settings of its own
    sampling = fault.sampling if fault is not None and not plan.settings else plan.sampling()
    drafter, rule = chosen(pair, loop.drafter, loop.gamma, loop.verify, sampling, fault)
    return drafter, rule, fault, sampling


def enumerated(pair: Any, plan: Plan) -> AuditReport:
    """Return the report on the computed distribution of our loop on tables."""
    from specviz.core.tabular import TabularModel
    from specviz.lossless.faults import faulty_distribution

    drafter, rule, fault, sampling = _choices(pair, plan)
    prompts = plan.encoded()
    if not isinstance(pair.target, TabularModel):
        raise ValueError("method='enumeration' needs tables (sv.tabular): every way is run once")
    if len(prompts) != 1:
        raise ValueError("method='enumeration' takes one prompt")
    prompt, length = prompts[0], plan.length or drafter.depth + 2
    if fault is None:
        distribution = enumerate_distribution(
            pair, drafter, verify=rule, prompt=prompt, length=length, sampling=sampling,
            progress=plan.progress,
        )  # fmt: skip
    else:
        distribution = faulty_distribution(
            pair, prompt, fault, gamma=drafter.depth, length=length, sampling=sampling
        )
    exact = target_distribution(
        pair, prompt=prompt, length=length, sampling=sampling, progress=plan.progress
    )
    criteria = plan.criteria
    subject = f"{DRAFTERS.get(drafter.name, drafter.name)} with {rule.name}"
    return AuditReport(
        subject, "enumeration", (), criteria.alpha, criteria.margin,
        criteria.seed, exact_tv=total_variation(distribution, exact), length=length,
    )  # fmt: skip


# --- what is drawn for the audit --------------------------------------------------------------


def _settings_of(subject: Any) -> dict[str, Any]:
    settings = getattr(subject, "settings", None)
    return dict(settings) if isinstance(settings, dict) else {}


def _drawer(subject: Any, sampling: Sampling | None) -> Drawer:
    name = str(getattr(subject, "name", getattr(subject, "__name__", type(subject).__name__)))
    settings = {**_settings_of(subject), **({} if sampling is None else asdict(sampling))}
    return Drawer(lambda ids, n, seed, first: subject(ids, n, seed), name, settings)


def _drawn(
    drawers: list[Drawer], prompts: list[IntArray], plan: Plan, length: int, sampling: Sampling
) -> Collected:
    """Draw texts after every prompt."""
    method = plan.method
    if method == "auto":
        method = "battery" if length <= SHORT else "scores"
    claimed, seed = plan.claimed, plan.criteria.seed
    groups: list[tuple[PromptTarget, Texts]] = []
    notes: list[str] = []
    wanted: list[int] = []
    interrupted = False
    for index, (drawer, ids) in enumerate(zip(drawers, prompts, strict=True)):
        if interrupted:
            break
        target = PromptTarget(claimed, ids, length, sampling, plan.draft, plan.progress)
        if method == "battery":
            n = plan.n or _texts_needed(target, plan, len(prompts))
        else:
            n = plan.n or _long_texts_needed(length, plan, len(prompts))
        wanted.append(n)
        per_call = min(plan.per_call or drawer.per_call or CALL, n)
        if drawer.per_call is not None and plan.path is None and method == "battery":
            tokens, said = gather_array(
                drawer, ids, n, seed=seed, per_call=per_call, progress=plan.progress
            )
            groups.append((target, Sample(tokens, claimed.vocab_size, claimed.end_ids)))
            notes.extend(said)
            interrupted = len(tokens) < n
            continue
        got = gather(
            drawer, ids, n, seed=seed, prompt_index=index, length=length,
            per_call=per_call, vocab_size=claimed.vocab_size,
            end_ids=claimed.end_ids if method == "battery" else None,
            path=_numbered(plan.path, index), progress=plan.progress,
        )  # fmt: skip
        groups.append((target, got.records[:n]))
        notes.extend(got.notes)
        interrupted = got.interrupted
    if len(groups) < len(prompts):
        notes.append(f"Only {len(groups)} of {len(prompts)} prompts were reached.")
    return Collected(
        drawers[0].name, method, dict(drawers[0].settings), tuple(groups), notes=tuple(notes),
        wanted=tuple(wanted), interrupted=interrupted,
    )  # fmt: skip


def _texts_needed(target: PromptTarget, plan: Plan, prompts: int) -> int:
    """Return how many texts of one prompt show the effect on the joint table."""
    nothing = walk(target.tree, np.zeros((0, target.length), dtype=np.int64))
    tables = all_tables(target.tree, [nothing], n=AT_LEAST)
    share = plan.criteria.alpha / prompts / (len(tables) + 4)
    wanted = DEFAULT_EFFECT if plan.effect is None else plan.effect
    n = texts_for_effect(tables[-1].distribution, wanted, share, POWER)
    if n is None:  # one text has nearly all the mass: another one is seen at once
        return AT_LEAST
    return max(AT_LEAST, n if plan.effect is not None else min(n, AT_MOST))


def _long_texts_needed(length: int, plan: Plan, prompts: int) -> int:
    """Return how many texts per prompt give as many tokens as the transform u needs."""
    if plan.effect is None:
        return max(1, LONG_TEXTS // prompts)
    tokens = samples_for_tv(plan.effect, DOF_OF_U, plan.criteria.alpha / 5, POWER)
    return max(1, -(-tokens // (length * prompts)))


def _two_sample_needed(plan: Plan) -> int:
    """Return how many texts each side needs, for a table of 64 cells."""
    if plan.effect is None:
        return TWO_SAMPLES
    return max(AT_LEAST, 2 * samples_for_tv(plan.effect, 63, plan.criteria.alpha / 10, POWER))


def _numbered(path: Any, index: int) -> Path | None:
    if path is None:
        return None
    place = Path(path)
    return place if index == 0 else place.with_name(f"{place.stem}-{index}{place.suffix}")


# --- what exists already ----------------------------------------------------------------------


def _recorded(subject: Any, plan: Plan) -> Collected:
    """Return recorded texts, those of one prompt and setting together."""
    claimed = plan.claimed
    records, name = _records_of(subject, plan)
    goes_on = {bool(record.settings.get("ignore_eos")) for record in records}
    if len(goes_on) == 2:
        raise ValueError(
            "some of the texts were recorded with ignore_eos=true and some without: audit them "
            "in two files"
        )
    if True in goes_on:  # an end token was a token like any other
        claimed = replace(claimed, end_ids=frozenset())
    together: dict[Any, list[Recorded]] = {}
    for record in records:
        key = (record.prompt_ids, plan.sampling(record.settings))
        ids = without_padding(record.token_ids, claimed.end_ids)
        together.setdefault(key, []).append(replace(record, token_ids=ids))
    groups = []
    for (ids, sampling), some in together.items():
        length = min(plan.length or 2**31, max(len(record.token_ids) for record in some))
        target = PromptTarget(
            claimed, claimed.encode(list(ids)), length, sampling, plan.draft, plan.progress
        )
        groups.append((target, tuple(some[: plan.n])))
    method = plan.method
    if method == "auto":
        short = all(len(some) >= MANY and target.length <= SHORT for target, some in groups)
        method = "battery" if short else "scores"
    settings = asdict(groups[0][0].sampling) if len(groups) == 1 else {"groups": len(groups)}
    return Collected(name, method, settings, tuple(groups), notes=_unread(records))


def _unread(records: list[Recorded]) -> tuple[str, ...]:
    """Return a note that names the recorded settings that were not looked at."""
    names = sorted({name for record in records for name in record.settings} - {*READ})
    if not names:
        return ()
    return (
        f"Recorded settings that the audit does not read: {', '.join(names[:8])}"
        f"{' …' if len(names) > 8 else ''}. If one of them shapes the distribution, the verdict "
        f"does not hold.",
    )


def _records_of(subject: Any, plan: Plan) -> tuple[list[Recorded], str]:
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
    rows = subject if isinstance(subject, np.ndarray) else list(subject)
    if len(rows) and all(isinstance(row, Recorded) for row in rows):
        return list(rows), "recorded texts"
    if len(rows) and all(hasattr(row, "prompt") and hasattr(row, "meta") for row in rows):
        return [_of_trace(trace) for trace in rows], f"{len(rows)} traces"
    if len(rows) == 0:
        raise ValueError("subject is empty: at least one text is needed")
    if len(plan.prompts) != 1:
        raise ValueError("prompt is needed: the one that all these sequences continue")
    prompt = tuple(plan.encoded()[0].tolist())
    size = None if plan.target is None else plan.target.vocab_size
    try:
        texts = checked_texts(rows, None, plan.length, size)
    except (TypeError, ValueError) as error:
        raise type(error)(f"subject must hold token sequences: {error}") from None
    return [Recorded(prompt, text) for text in texts], "recorded sequences"


def _of_trace(trace: Any) -> Recorded:
    tokens = tuple(int(token) for token in trace.tokens)
    prompt = tuple(int(token) for token in trace.prompt)
    settings = dict(trace.meta.get("sampling") or {})
    return Recorded(prompt, tokens, settings, trace.meta.get("seed"))


# --- two samples ------------------------------------------------------------------------------


def collect_two(subject: Any, reference: Any, plan: Plan) -> tuple[Collected, Plan]:
    """Return texts beside texts of the same engine with speculation off.

    The plan comes back with the length and the end ids of both.
    """
    both = (subject, reference)
    drawn = [callable(side) for side in both]
    plan = replace(
        plan, length=plan.length or (LENGTH if any(drawn) else None),
        end_ids=_end_ids(both, plan),
    )  # fmt: skip
    read = [None if drawn[i] else _records_of(side, plan) for i, side in enumerate(both)]
    settings = [
        [_settings_of(side)] if some is None else [record.settings for record in some[0]]
        for side, some in zip(both, read, strict=True)
    ]
    one_distribution(settings[0], settings[1], plan.settings)
    sides: list[list[Recorded]] = []
    names: list[str] = []
    notes: list[str] = []
    wanted = [0, 0]
    interrupted = False
    for index, (side, some) in enumerate(zip(both, read, strict=True)):
        if some is not None:
            sides.append(some[0])
            names.append(some[1])
            continue
        prompts = plan.encoded()
        if len(prompts) > 1:
            raise ValueError("a two-sample test takes one prompt")
        n = wanted[index] = plan.n or _two_sample_needed(plan)
        drawer = _drawer(side, None)
        got = gather(
            drawer, prompts[0], n, seed=plan.criteria.seed, prompt_index=index * 2**20,
            per_call=min(plan.per_call or CALL, n), length=plan.length,
            end_ids=plan.end_ids or (), path=_numbered(plan.path, index), progress=plan.progress,
        )  # fmt: skip
        if got.interrupted and index == 0 and callable(reference):
            raise KeyboardInterrupt  # there is nothing yet to compare them with
        interrupted = interrupted or got.interrupted
        sides.append(list(got.records[:n]))
        names.append(drawer.name)
        notes.extend(got.notes)
    return Collected(
        names[0], "two_sample", {}, sides=tuple(sides), notes=tuple(notes), wanted=tuple(wanted),
        interrupted=interrupted,
    ), plan  # fmt: skip


def _end_ids(sides: tuple[Any, Any], plan: Plan) -> frozenset[int]:
    """Return the end ids of two samples: named, the samplers' own, or the target's."""
    if plan.end_ids is not None:
        return plan.end_ids
    own = frozenset().union(*(getattr(side, "end_ids", frozenset()) for side in sides))
    return own or (frozenset() if plan.target is None else plan.target.end_ids)


def as_sample(texts: Texts, claimed: ClaimedTarget, length: int) -> Sample:
    """Return the texts of one prompt as an array with one length."""
    if isinstance(texts, Sample):
        return texts
    return Sample.of(
        [record.token_ids for record in texts], claimed.vocab_size, end_ids=claimed.end_ids,
        length=length,
    )  # fmt: skip
