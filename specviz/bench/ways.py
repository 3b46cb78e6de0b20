"""Ways to decode, measured side by side in one run: acceptance, tokens per pass, time.

    python -m specviz.bench --prompt "Once upon a time" --tokens 200

Every way decodes the same prompts in turn, A B C A B C …, after a warm-up of each, and is compared
with target-only decoding of the same turn. On a shared machine quote the ratios, not the times;
the processor-time ratio is the steadier one where other programs run.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from time import perf_counter, process_time
from typing import Any

from tqdm.auto import tqdm

from specviz.api.generate import generate
from specviz.core.contract import Drafter
from specviz.drafters.target_only import TargetOnly

PLAIN = "target only"
OTHER = "python -m specviz.bench replicas measures how fast texts are drawn for the statistics."


@dataclass(frozen=True)
class Row:
    """One way to decode.

    ``gain`` and ``cpu_gain`` are medians over turns of target-only time ÷ this way's time, per
    emitted token, wall clock and processor time of this process; recording is included on both
    sides. The other numbers are means over turns, None where nothing was proposed.
    """

    name: str
    tokens_per_pass: float
    alpha: float | None
    accepted_per_proposed: float | None
    gain: float
    cpu_gain: float
    milliseconds_per_token: float


def compare(
    pair: Any,
    ways: Mapping[str, Drafter],
    *,
    prompts: Sequence[Any] = ("Once upon a time",),
    tokens: int = 120,
    turns: int = 3,
    temperature: float = 1.0,
    seed: int = 0,
    progress: bool = True,
) -> list[Row]:
    """Measure several drafters and target-only decoding in turn.

    Parameters
    ----------
    pair : Pair
        Target and draft.
    ways : mapping
        Name → drafter; target-only decoding is added.
    prompts : sequence
        Each is decoded by every way in every turn.
    tokens, temperature, seed
        As in :func:`specviz.generate` (``max_new_tokens``).
    turns : int
        How often each way decodes all prompts.
    progress : bool
        Show a bar on runs of over two seconds.

    Returns
    -------
    list of Row
        Target-only decoding first.

    Raises
    ------
    ValueError
        If there is nothing to measure.
    """
    if turns < 1 or tokens < 1 or not prompts:
        raise ValueError("turns and tokens must be at least 1, and prompts must not be empty")
    everything: dict[str, Drafter] = {PLAIN: TargetOnly(), **ways}
    settings: dict[str, Any] = {"temperature": temperature, "seed": seed, "progress": False}
    for drafter in everything.values():
        generate(pair, prompts[0], drafter=drafter, max_new_tokens=8, **settings)
    wall: dict[str, list[float]] = {name: [] for name in everything}
    cpu: dict[str, list[float]] = {name: [] for name in everything}
    seen: dict[str, list[Any]] = {name: [] for name in everything}
    for _ in tqdm(range(turns), desc="turns", delay=2, leave=False, disable=not progress):
        for name, drafter in everything.items():
            started, started_cpu = perf_counter(), process_time()
            traces = [
                generate(pair, prompt, drafter=drafter, max_new_tokens=tokens, **settings)
                for prompt in prompts
            ]
            emitted = sum(len(trace.tokens) for trace in traces)
            wall[name].append((perf_counter() - started) / emitted)
            cpu[name].append((process_time() - started_cpu) / emitted)
            seen[name].extend(trace.measures() for trace in traces)
    return [
        Row(
            name=name,
            tokens_per_pass=_mean(seen[name], "tokens_per_pass") or 0.0,
            alpha=_mean(seen[name], "alpha"),
            accepted_per_proposed=_mean(seen[name], "accepted_per_proposed"),
            gain=median(a / b for a, b in zip(wall[PLAIN], wall[name], strict=True)),
            cpu_gain=median(a / b for a, b in zip(cpu[PLAIN], cpu[name], strict=True)),
            milliseconds_per_token=1000 * median(wall[name]),
        )
        for name in everything
    ]


def _mean(measured: Sequence[Any], name: str) -> float | None:
    values = [one[name].value for one in measured if one[name].value is not None]
    return sum(values) / len(values) if values else None


def table(rows: Sequence[Row]) -> str:
    """Return the rows as aligned text."""
    heads = ("tokens", "", "accepted", "gain", "gain", "ms per")
    units = ("per pass", "alpha", "/proposed", "wall", "cpu", "token")
    widths = (8, 6, 9, 6, 6, 7)
    lines = [
        " ".join([" " * 28, *(f"{word:>{w}}" for word, w in zip(line, widths, strict=True))])
        for line in (heads, units)
    ]
    for row in rows:
        alpha = "–" if row.alpha is None else f"{row.alpha:.3f}"
        share = "–" if row.accepted_per_proposed is None else f"{row.accepted_per_proposed:.0%}"
        lines.append(
            f"{row.name:28} {row.tokens_per_pass:8.2f} {alpha:>6} {share:>9} "
            f"{row.gain:5.2f}× {row.cpu_gain:5.2f}× {row.milliseconds_per_token:7.1f}"
        )
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure the bundled pair with every drafter that needs nothing else."""
    from specviz.drafters.draft_model import AdaptiveGamma, DraftModel
    from specviz.drafters.prompt_lookup import PromptLookup
    from specviz.drafters.tree import Tree
    from specviz.models.load import load

    parser = argparse.ArgumentParser(
        prog="python -m specviz.bench", description=__doc__, epilog=OTHER
    )
    parser.add_argument("--prompt", action="append", help="may be given more than once")
    parser.add_argument("--tokens", type=int, default=120)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--temperature", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args(argv)
    ways: dict[str, Drafter] = {f"draft model, gamma {g}": DraftModel(g) for g in (2, 4, 6)}
    ways["draft model, adaptive gamma"] = DraftModel(AdaptiveGamma())
    ways["prompt lookup"] = PromptLookup()
    ways["tree (2, 2, 1, 1)"] = Tree((2, 2, 1, 1))
    rows = compare(
        load(), ways, prompts=arguments.prompt or ["Once upon a time"], tokens=arguments.tokens,
        turns=arguments.turns, temperature=arguments.temperature, seed=arguments.seed,
    )  # fmt: skip
    print(table(rows))
    return 0
