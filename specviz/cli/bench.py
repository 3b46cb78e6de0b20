"""``specviz bench``: whether speculative decoding pays here, and why."""

from __future__ import annotations

import argparse

from specviz.cli import drafters
from specviz.cli.output import Output
from specviz.core.atomic_writing import checked_target


def run(arguments: argparse.Namespace, output: Output) -> int:
    """Measure a pair, print what was found and return the exit code."""
    if arguments.json is not None:
        checked_target(arguments.json, name="--json")
    if arguments.figure is not None:
        checked_target(arguments.figure, (".svg", ".png", ".pdf"), name="--figure")
    asked = {}
    for text in arguments.drafter or ():
        name, _ = drafters.parsed(text, None)
        takes_gamma = name not in drafters.WITHOUT_GAMMA
        asked[text] = drafters.parsed(text, arguments.gamma if takes_gamma else None)

    from specviz.bench.measure import measure
    from specviz.models.load import load

    pair = load(
        arguments.target, draft=arguments.draft, device=arguments.device, dtype=arguments.dtype
    )
    chosen = {text: drafters.made(*one, arguments.gamma) for text, one in asked.items()}
    found = measure(
        pair,
        gamma=arguments.gamma,
        drafters=chosen or None,
        prompts=arguments.prompt,
        tokens=arguments.tokens,
        turns=arguments.turns,
        temperature=arguments.temperature,
        seed=arguments.seed,
    )
    for line in str(found).splitlines():
        output.line(line)
    if arguments.json is not None:
        found.save(arguments.json)
        output.say(f"written: {arguments.json}")
    if arguments.figure is not None:
        found.plot(arguments.figure)
        output.say(f"written: {arguments.figure}")
    return 0
