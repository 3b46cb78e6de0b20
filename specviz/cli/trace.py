"""``specviz trace``: decode with any pair, write down what happened."""

from __future__ import annotations

import argparse

from specviz.cli import drafters
from specviz.cli.output import Output
from specviz.core.atomic_writing import checked_target


def run(arguments: argparse.Namespace, output: Output) -> int:
    """Record a run and return the exit code."""
    for name in ("out", "html"):
        if getattr(arguments, name) is not None:
            checked_target(getattr(arguments, name), name=f"--{name}")
    if arguments.out == arguments.html:
        raise ValueError(f"--out and --html are the same file: {arguments.out!r}")

    asked = arguments.drafter and drafters.parsed(arguments.drafter, arguments.gamma)

    from specviz.api.generate import generate
    from specviz.figures.terminal import ansi
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
        min_p=arguments.min_p,
        repetition_penalty=arguments.repetition_penalty,
        max_new_tokens=arguments.max_new_tokens,
        seed=arguments.seed,
    )
    trace.save(arguments.out)
    style = output.style
    output.line(ansi(trace, style.colour, style.width, ascii=style.ascii))
    output.say(f"written: {arguments.out}")
    if arguments.html:
        to_html(trace, arguments.html)
        output.say(f"written: {arguments.html}")
    return 130 if trace.interrupted else 0
