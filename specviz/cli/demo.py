"""``specviz demo``: the bundled pair at work, every round shown, the gain measured."""

from __future__ import annotations

import argparse
from time import perf_counter
from typing import Any

from tqdm.auto import tqdm

from specviz.api.generate import generate, stream
from specviz.cli.output import Output
from specviz.cli.show import checked
from specviz.core.atomic_writing import checked_folder
from specviz.core.trace.trace import Trace
from specviz.figures.comparison import Comparison
from specviz.figures.escaping import visible
from specviz.figures.terminal import legend_text, round_text, summary_text
from specviz.models.load import load
from specviz.player.page import write_page

WARM_UP_TOKENS = 8


def run(arguments: argparse.Namespace, output: Output) -> int:
    """Run the demonstration and return its exit code."""
    if arguments.runs < 1:
        raise ValueError(f"--runs must be at least 1, got {arguments.runs}")
    if arguments.gamma < 1:
        raise ValueError(
            f"--gamma must be at least 1 in the demo, got {arguments.gamma}: it compares "
            f"speculative with target-only decoding, which is gamma 0"
        )
    folder = checked_folder(arguments.out, "--out")
    settings = {
        "temperature": arguments.temperature,
        "max_new_tokens": arguments.max_new_tokens,
        "seed": arguments.seed,
    }
    pair = load()
    running = stream(pair, arguments.prompt, gamma=arguments.gamma, **settings)
    output.say(f"target p  {_described('target', pair.target)}")
    output.say(f"draft q   {_described('draft', pair.draft)}, gamma {arguments.gamma}")
    code = _show(running, output)
    trace = running.trace
    if len(trace):
        output.line()
        output.line(legend_text(trace, output.style))
    output.line()
    output.line(summary_text(trace, output.style))
    folder.mkdir(parents=True, exist_ok=True)
    trace.save(folder / "demo.specviz")
    replay = trace.check()
    if not replay.ok:
        code = 1
    output.say(checked(replay))

    comparison = None
    if code == 0 and len(trace.tokens):
        try:
            comparison = _measure(pair, arguments, settings)
        except KeyboardInterrupt:
            code = 130
    if comparison is not None:
        output.heading("Measured now, on this machine, in this run (wall clock)")
        output.rows(comparison.rows())
    write_page(trace, folder / "demo.html", compare=comparison)
    output.heading("Written")
    output.say(f"{folder / 'demo.specviz'}  the run: specviz show {folder / 'demo.specviz'}")
    output.say(f"{folder / 'demo.html'}  the same as a page: open it in a browser")
    output.say(f"to embed it in another page: specviz play {folder / 'demo.specviz'} --height 600")
    return code


def _described(role: str, model: Any) -> str:
    name = "" if model.name == role else f"{model.name}, "  # the bundled ones are called so
    return f"{name}{model.parameters:,} parameters, {model.dtype} on {model.device}"


def _show(running: Any, output: Output) -> int:
    """Print the rounds as they happen; an interrupt ends the run and keeps it."""
    style = output.style
    prompt = visible(running.trace.prompt_text, limit=400)
    output.heading(prompt)
    try:
        for one in running:
            output.line(round_text(one, style))
    except KeyboardInterrupt:
        running.close()
        output.say("  … interrupted")
        return 130
    return 0


def _measure(pair: Any, arguments: argparse.Namespace, settings: dict[str, Any]) -> Comparison:
    """Time both ways in turn, after a warm-up of both, recording included on both sides."""

    def seconds_per_token(gamma: int, **changed: Any) -> float:
        started = perf_counter()
        trace: Trace = generate(
            pair, arguments.prompt, gamma=gamma, progress=False, **{**settings, **changed}
        )
        spent = perf_counter() - started
        if trace.interrupted:
            raise KeyboardInterrupt
        return spent / len(trace.tokens)

    times: dict[int, list[float]] = {arguments.gamma: [], 0: []}
    for gamma in times:
        seconds_per_token(gamma, max_new_tokens=WARM_UP_TOKENS)
    for _ in tqdm(range(arguments.runs), desc="timing", delay=2, leave=False):
        for gamma, measured in times.items():
            measured.append(seconds_per_token(gamma))
    return Comparison(times[arguments.gamma], times[0])
