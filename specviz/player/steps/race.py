"""What a race comes to, in words: who is faster by how much, and why the texts differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from specviz.core.formatting import format_duration
from specviz.figures.summary import run_label, seconds, target_alone

if TYPE_CHECKING:
    from specviz.core.trace.trace import Trace


def verdict(traces: Sequence[Trace]) -> str:
    """Return how many times as fast the fastest run is, and from which measured times.

    It is compared with the target alone where that is among the runs, else with the slowest. Speed
    is tokens per second.

    Examples
    --------
    >>> verdict([trace, plain])  # doctest: +SKIP
    'draft model, rejection is 1.3× as fast as target alone: 96 tokens in 771 ms and in 1.02 s.'
    """
    took = [sum(seconds(trace).values()) for trace in traces]
    rate = [len(trace.tokens) / time for trace, time in zip(traces, took, strict=True)]
    first = rate.index(max(rate))
    alone = [i for i, trace in enumerate(traces) if target_alone(trace) and i != first]
    other = alone[0] if alone else rate.index(min(rate))
    if other == first:
        return "All runs are equally fast."
    tokens = [len(traces[i].tokens) for i in (first, other)]
    times = [format_duration(took[i]) for i in (first, other)]
    if tokens[0] == tokens[1]:
        told = f"{tokens[0]:,} tokens in {times[0]} and in {times[1]}"
    else:
        told = f"{tokens[0]:,} tokens in {times[0]}, {tokens[1]:,} tokens in {times[1]}"
    names = [run_label(traces[i]) for i in (first, other)]
    if names[0] == names[1]:
        names = [f"run {first}", f"run {other}"]
    ratio = rate[first] / rate[other]
    times_as = f"{ratio:.2f}" if ratio < 1.1 else f"{ratio:.1f}"
    return f"{names[0]} is {times_as}× as fast as {names[1]}: {told}."


def why_texts_differ(traces: Sequence[Trace]) -> str:
    """Return why the texts of a race are equal or not, although each is the target's."""
    if any(trace.prompt_text != traces[0].prompt_text for trace in traces):
        return "The runs have different prompts, so their texts differ."
    lossy = [run_label(trace) for trace in traces if not trace.lossless]
    if lossy:
        return f"The distribution of the text is not the target's own under {', '.join(lossy)}."
    if len({trace.text for trace in traces}) == 1:
        return "The texts are equal: every token is the target's own at this seed."
    return (
        "The texts differ because each run makes other random draws. The distribution they are "
        "drawn from is the same, the target's."
    )
