"""How fast many independent texts are drawn for the statistics, on tables and on a pair.

    python -m specviz.bench replicas

Three measurements: 10**6 texts of 4 tokens of a small vocabulary, drawn and tested; 50,000 texts of
8 tokens of the bundled pair after a line of prose, where prefixes hardly repeat; 64 texts of 200
tokens. Processor time is that of this process, all its threads together.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter, process_time
from typing import Any

import torch

from specviz.core.rules import RULES
from specviz.core.tabular import TabularModel
from specviz.decoding.replicas.engine import Replicas
from specviz.decoding.replicas.vectorised_rejection import VectorisedRejection
from specviz.drafters.draft_model import DraftModel
from specviz.lossless import Sample, battery

PROSE = "Emma could not but"
GAMMA = 4


@dataclass(frozen=True)
class Timing:
    """How long it took to draw texts.

    Parameters
    ----------
    name : str
        What was drawn, and how.
    texts, length : int
        How many texts, of how many tokens.
    dtype : str
        What the distributions were computed in.
    drawing, testing : float
        Processor seconds of this process; testing is 0 where nothing was tested.
    wall : float
        Seconds by the clock, for both.
    verdict : str
        Of the battery; empty where nothing was tested.
    """

    name: str
    texts: int
    length: int
    dtype: str
    drawing: float
    testing: float
    wall: float
    verdict: str = ""

    def __str__(self) -> str:
        said = (
            f"{self.name}: {self.texts:,} texts of {self.length} tokens, {self.dtype}: "
            f"{self.drawing + self.testing:.2f} s of CPU, {self.wall:.2f} s"
        )
        if not self.verdict:
            return said
        return (
            f"{said}\n  drawn in {self.drawing:.2f} s, tested in {self.testing:.2f} s of CPU: "
            f"{self.verdict}"
        )


def time_tables(
    texts: int = 10**6,
    *,
    length: int = 4,
    vocab_size: int = 8,
    seed: int = 0,
    progress: bool = True,
) -> Timing:
    """Draw texts of a random table by speculative decoding, and test them with every test.

    Examples
    --------
    >>> time_tables(1000, progress=False).verdict
    'NO_DISCREPANCY_FOUND'
    """
    target = TabularModel.random(vocab_size, 2, seed=seed)
    other = TabularModel.random(vocab_size, 2, seed=seed + 1)
    draft = TabularModel(0.6 * target.table + 0.4 * other.table, name="draft")
    prompt = [0, 0]
    wall, cpu = perf_counter(), process_time()
    many = VectorisedRejection(
        target, draft, torch.tensor(prompt).numpy(), vocab_size, length=length, gamma=2,
        max_new_tokens=length + 2,
    )  # fmt: skip
    tokens = many.draw(texts, seed=seed, progress=progress)
    drawn = process_time()
    report = battery(
        Sample.of(tokens, vocab_size=vocab_size),
        lambda prefix: target.distribution([*prompt, *prefix]),
        draft=lambda prefix: draft.distribution([*prompt, *prefix]),
    )
    return Timing(
        f"vocabulary of {vocab_size}", texts, length, "float64", drawn - cpu,
        process_time() - drawn, perf_counter() - wall, report.verdict.value,
    )  # fmt: skip


def time_short_texts(
    pair: Any, texts: int = 50_000, *, length: int = 8, prompt: Any = PROSE, seed: int = 0,
    progress: bool = True,
) -> Timing:  # fmt: skip
    """Draw short texts of a pair, draft model and ``rejection``, prefixes shared."""
    wall, cpu = perf_counter(), process_time()
    many = VectorisedRejection(
        pair.target, pair.draft, pair.encode(prompt), pair.vocab_size, length=length, gamma=GAMMA,
        stop_ids=pair.stop_ids, max_new_tokens=length + GAMMA,
    )  # fmt: skip
    many.draw(texts, seed=seed, progress=progress)
    return Timing(
        f"{pair.target.name} after {prompt!r}, side by side", texts, length, pair.target.dtype,
        process_time() - cpu, 0.0, perf_counter() - wall,
    )  # fmt: skip


def time_long_texts(
    pair: Any, texts: int = 64, *, length: int = 200, prompt: Any = PROSE, seed: int = 0,
    progress: bool = True,
) -> Timing:  # fmt: skip
    """Draw long texts of a pair by the loop, draft model and ``rejection``, passes batched."""
    wall, cpu = perf_counter(), process_time()
    many = Replicas(
        pair, pair.encode(prompt), length, DraftModel(GAMMA), RULES["rejection"], seed=seed,
        at_once=min(64, texts),
    )  # fmt: skip
    many.draw(texts, progress=progress)
    return Timing(
        f"{pair.target.name} after {prompt!r}, rounds in batches", texts, length,
        pair.target.dtype, process_time() - cpu, 0.0, perf_counter() - wall,
    )  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    """Measure all three and print a line or two for each."""
    parser = argparse.ArgumentParser(prog="python -m specviz.bench replicas", description=__doc__)
    parser.add_argument("--tables", type=int, default=10**6, help="texts of the small vocabulary")
    parser.add_argument("--short", type=int, default=50_000, help="texts of 8 tokens of the pair")
    parser.add_argument("--long", type=int, default=64, help="texts of 200 tokens of the pair")
    parser.add_argument("--prompt", default=PROSE)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args(argv)
    print(f"torch threads: {torch.get_num_threads()}")
    if arguments.tables:
        print(time_tables(arguments.tables, seed=arguments.seed), flush=True)
    if arguments.short or arguments.long:
        from specviz.models.load import load

        pair = load()
        asked = {"prompt": arguments.prompt, "seed": arguments.seed}
        if arguments.short:
            print(time_short_texts(pair, arguments.short, **asked), flush=True)
        if arguments.long:
            print(time_long_texts(pair, arguments.long, **asked), flush=True)
    return 0
