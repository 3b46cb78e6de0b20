"""``specviz train heads``: heads and a distilled draft for a target of your own."""

from __future__ import annotations

import argparse

from specviz.cli.output import Output
from specviz.core.atomic_writing import checked_folder


def run(arguments: argparse.Namespace, output: Output) -> int:
    """Train, and return the exit code; an interrupted run resumes when the command is repeated."""
    checked_folder(arguments.out, "--out")
    from specviz.models.training.train_heads import train_heads

    folders = train_heads(
        arguments.target,
        arguments.text,
        arguments.out,
        kinds=arguments.kinds,
        steps=arguments.steps,
        seed=arguments.seed,
    )
    output.heading("Written")
    for kind, folder in folders.items():
        output.say(f"{folder}  {kind}, with a card: {folder / 'README.md'}")
    return 0
