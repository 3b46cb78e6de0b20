"""``specviz audit``: does a sampler emit the target's distribution? For an engine's CI.

Exit codes: 0 no discrepancy found; 1 a discrepancy; 2 it could not be told, **or** the input was
wrong; 130 interrupted before a discrepancy was found. Wrong input says so in one line on the error
stream, ``specviz: error: …``, and writes no report; where it could not be told, the verdict and the
reports are written.
"""

from __future__ import annotations

import argparse
import traceback
from pathlib import Path
from typing import Any

from specviz.cli import drafters
from specviz.cli.arguments import PROMPT, SAMPLING
from specviz.cli.output import Output

FOUND, WRONG, INTERRUPTED = 1, 2, 130

OWN = ("drafter", "verify", "fault", "engine", "gamma", "prompt", "save")


def run(arguments: argparse.Namespace, output: Output) -> int:
    """Audit and return the exit code, which is 1 for a discrepancy and nothing else."""
    try:
        return _audited(arguments, output)
    except BrokenPipeError:
        raise
    except Exception as error:
        if arguments.traceback:
            traceback.print_exc()
            return WRONG
        if isinstance(error, (ValueError, TypeError, OSError)):
            raise
        said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        raise ValueError(f"the audit failed: {said}") from error


def _audited(arguments: argparse.Namespace, output: Output) -> int:
    from specviz.core.atomic_writing import checked_target, write_whole

    for name in ("json", "html", "save"):
        if getattr(arguments, name) is not None:
            checked_target(getattr(arguments, name), name=f"--{name}")
    if arguments.json is not None and arguments.json == arguments.html:
        raise ValueError(f"--json and --html are the same file: {arguments.json!r}")
    report = _recorded(arguments) if arguments.samples is not None else _own(arguments)
    output.say(str(report))
    if arguments.json:
        write_whole(Path(arguments.json), report.to_json(indent=1) + "\n")
        output.say(f"written: {arguments.json}")
    if arguments.html:
        write_whole(Path(arguments.html), report.to_html())
        output.say(f"written: {arguments.html}")
    code: int = report.exit_code
    return INTERRUPTED if report.interrupted and code != FOUND else code


def _recorded(arguments: argparse.Namespace) -> Any:
    for name in OWN:
        if getattr(arguments, name) is not None:
            raise ValueError(
                f"--{name} is for audits of our own loop: recorded samples bring theirs"
            )
    if arguments.bundled and arguments.target:
        raise ValueError("--bundled and --target name two targets: give one")
    from specviz.lossless import read_jsonl
    from specviz.lossless.audit.audit import audit

    if arguments.reference is not None and _same_file(arguments.samples, arguments.reference):
        raise ValueError("--reference is the same file as --samples: it needs texts of its own")
    records = read_jsonl(arguments.samples)
    common = _common(arguments)
    if arguments.reference is not None:
        return audit(records, reference=arguments.reference, **common)
    if not arguments.bundled and not arguments.target:
        raise ValueError("--target is needed (or --bundled, or --reference FILE)")
    return audit(records, target=_pair(arguments), **common)


def _same_file(one: str, other: str) -> bool:
    if one == "-" or other == "-":
        return one == other
    return Path(one).resolve() == Path(other).resolve()


def _own(arguments: argparse.Namespace) -> Any:
    """Audit our loop: on the bundled models, or on a pair that was named."""
    if arguments.bundled and arguments.target:
        raise ValueError("--bundled and --target name two targets: give one")
    if not arguments.bundled and not arguments.target:
        raise ValueError(
            "give --samples FILE (or -) with --target, or --bundled or --target alone to audit "
            "our loop"
        )
    if arguments.reference is not None:
        raise ValueError("--reference goes with --samples")
    from specviz.lossless.audit.audit import audit
    from specviz.lossless.audit.gathering import AuditError

    if arguments.fault is not None:
        from specviz.lossless.faults import get_fault

        get_fault(arguments.fault)
    asked = arguments.drafter and drafters.parsed(arguments.drafter, arguments.gamma)
    drafter = drafters.made(*asked, arguments.gamma) if asked else None
    try:
        return audit(
            _pair(arguments), PROMPT if arguments.prompt is None else arguments.prompt,
            drafter=drafter, gamma=None if asked else arguments.gamma,
            verify=arguments.verify, fault=arguments.fault, engine=arguments.engine or "auto",
            path=arguments.save, **_common(arguments),
        )  # fmt: skip
    except AuditError as error:
        raise ValueError(str(error)) from error


def _common(arguments: argparse.Namespace) -> dict[str, Any]:
    names = ("n", "effect", "length", "method", "margin", "alpha", "seed", *SAMPLING)
    ends = arguments.end_ids
    given = {name: getattr(arguments, name) for name in names}
    return given if ends is None else {**given, "end_ids": _ids(ends)}


def _ids(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise ValueError(
            f"--end-ids must be token ids with commas between them, such as 2,7, got {text!r}"
        ) from None


def _pair(arguments: argparse.Namespace) -> Any:
    from specviz.models import load as loading

    return loading.load(
        arguments.target, draft=arguments.draft, device=arguments.device, dtype=arguments.dtype
    )
