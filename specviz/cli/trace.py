"""``specviz trace``: decode with any pair, write down what happened."""

from __future__ import annotations

import argparse
from pathlib import Path

from specviz.cli import drafters
from specviz.cli.output import Output


def run(arguments: argparse.Namespace, output: Output) -> int:
    """Record a run and return the exit code."""
    for name in ("out", "html"):
        _check_place(f"--{name}", getattr(arguments, name))
    if arguments.out == arguments.html:
        raise ValueError(f"--out and --html are the same file: {arguments.out!r}")

    asked = arguments.drafter and drafters.parsed(arguments.drafter, arguments.gamma)

    from specviz.api.generate import generate
    from specviz.figures.terminal import summary_text
    from specviz.models.load import load
    from specviz.player.page import to_html

    pair = load(
        arguments.target, draft=arguments.draft, device=arguments.device, dtype=arguments.dtype
    )
    trace = generate(
        pair,
        arguments.prompt,
        gamma=None if asked else arguments.gamma,
        drafter=drafters.made(*asked, arguments.gamma) if asked else None,
        verify=arguments.verify,
        temperature=arguments.temperature,
        top_k=arguments.top_k,
        top_p=arguments.top_p,
        max_new_tokens=arguments.max_new_tokens,
        seed=arguments.seed,
    )
    trace.save(arguments.out)
    output.line(summary_text(trace, output.style))
    output.say(f"written: {arguments.out}")
    if arguments.html:
        to_html(trace, arguments.html)
        output.say(f"written: {arguments.html}")
    return 130 if trace.interrupted else 0


def _check_place(name: str, where: str | None) -> None:
    """Refuse a place that cannot be written to before any model is loaded."""
    if where is None:
        return
    if not where or Path(where).is_dir():
        raise ValueError(f"{name} must be a file, got {where!r}")
    if not Path(where).parent.is_dir():
        raise ValueError(f"{name}: there is no folder {str(Path(where).parent)!r}")
