"""The recipe of the recorded runs: ``python -m specviz.recordings.record``.

Every method of a kind of text continues the same prompt from the same seed with the bundled pair.
Each run is made five times, the methods in turn. All five decode the same tokens, so they have the
same rounds; the times kept are each round's quickest, which say what the method takes where
nothing else runs. The run's settings say so (``times``).
"""

from __future__ import annotations

import argparse
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from tqdm.auto import tqdm

from specviz.core.trace.columns import TIMES
from specviz.recordings.shelf import SUFFIX

if TYPE_CHECKING:
    from specviz.core.trace.trace import Trace

SHOPPING = (
    "Shopping list:\n- six ripe tomatoes\n- one jar of honey\n- a bag of red apples\n"
    "- a piece of hard cheese\n- a small pumpkin\nNoah's checklist on Saturday evening\n"
)
PROMPTS = {
    "stories": ("Once upon a time", 6),
    "prose": ("She was not at all surprised when", 4),
    "records": (SHOPPING, 3),
}
"""Of each kind of text: prompt and seed."""
LENGTH = 96
ALTERNATIVES = 8
"""How many tokens of a distribution are kept: as many as the player shows."""
TEMPERATURE = 0.8
REPEATS = 5
NOTE = f"of each round the quickest of {REPEATS} runs"


def methods() -> dict[str, dict[str, Any]]:
    """Return the arguments of :func:`specviz.generate` for each method."""
    from specviz.drafters.eagle import Eagle
    from specviz.drafters.early_exit import EarlyExit
    from specviz.drafters.medusa import Medusa
    from specviz.drafters.prompt_lookup import PromptLookup
    from specviz.drafters.tree import Tree

    return {
        "target-only": {"gamma": 0},
        "draft-model": {"gamma": 4},
        "block": {"gamma": 4, "verify": "block"},
        "coupled": {"gamma": 4, "verify": "coupled"},
        "prompt-lookup": {"drafter": PromptLookup(5)},
        "early-exit": {"drafter": EarlyExit(layer=4, gamma=4)},
        "medusa": {"drafter": Medusa(tree=(3, 2))},
        "eagle": {"drafter": Eagle(gamma=4)},
        "tree": {"drafter": Tree((2, 2, 1))},
    }


def record(folder: Path, run: Callable[..., Trace] | None = None) -> None:
    """Make every run and write it to ``folder/domain/method.specviz``.

    Parameters
    ----------
    folder : Path
        Where they go; its folders are made.
    run : callable, optional
        ``run(prompt, seed=…, **method)``; by default the bundled pair decodes.
    """
    decode = run or _bundled()
    todo = [(domain, name) for domain in PROMPTS for name in methods()]
    best: dict[tuple[str, str], Trace] = {}
    for domain, name in tqdm(todo * REPEATS, desc="runs"):
        prompt, seed = PROMPTS[domain]
        trace = decode(prompt, seed=seed, **methods()[name])
        replay = trace.check()
        if not replay.ok:
            raise RuntimeError(f"{domain}/{name} contradicts itself: {replay.contradictions[0]}")
        best[domain, name] = quickest(trace, best.get((domain, name)))
    for (domain, name), trace in best.items():
        where = folder / domain / (name + SUFFIX)
        where.parent.mkdir(parents=True, exist_ok=True)
        trace.save(where)
        squeeze(where)


def quickest(trace: Trace, before: Trace | None) -> Trace:
    """Return a run with each round's quickest times, its own or those of the run before.

    Raises
    ------
    RuntimeError
        If the two are not the same run.
    """
    trace.meta["times"] = NOTE
    if before is None:
        return trace
    if trace.tokens.tolist() != before.tokens.tolist() or len(trace) != len(before):
        raise RuntimeError("the same method, prompt and seed gave another text")
    for name in TIMES:
        least = np.fmin(trace.round_table[name], before.round_table[name])
        trace.round_table.replace(name, least)
    return trace


def squeeze(path: Path) -> None:
    """Write a trace's file again, packed as tightly as it goes."""
    half = path.with_suffix(".tmp")
    with zipfile.ZipFile(path) as loose, zipfile.ZipFile(half, "w") as tight:
        for entry in loose.infolist():
            tight.writestr(entry, loose.read(entry), zipfile.ZIP_DEFLATED, compresslevel=9)
    half.replace(path)


def _bundled() -> Callable[..., Trace]:
    from specviz.api.generate import generate
    from specviz.models.load import load

    pair = load()

    def run(prompt: str, **how: Any) -> Trace:
        return generate(
            pair, prompt, temperature=TEMPERATURE, max_new_tokens=LENGTH, k=ALTERNATIVES,
            progress=False, **how,
        )  # fmt: skip

    return run


def main(arguments: list[str] | None = None) -> int:
    """Record all runs; return the exit code."""
    asked = argparse.ArgumentParser(prog="python -m specviz.recordings.record", description=__doc__)
    asked.add_argument(
        "--out", type=Path, default=Path(__file__).parent / "runs", help="folder for the runs"
    )
    record(asked.parse_args(arguments).out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
