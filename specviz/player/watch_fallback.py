"""What a watch is where there are no widgets: a verdict in words, and a picture."""

from __future__ import annotations

import io
from collections.abc import Sequence
from textwrap import wrap

import numpy as np

from specviz.lossless.statistics.power import noise_floor
from specviz.player.watch_run import WatchedRun
from specviz.player.watch_samplers import Choice


def said(run: WatchedRun, choice: Choice, sampler: str, preview: bool = False) -> str:
    """Return the verdict in words; it never claims that two distributions are equal.

    ``preview`` says that the run is a short one of its own, before anything was drawn.
    """
    one, bound = choice.named(sampler), f"{1 / run.alpha:g}"
    what = one.label + (f" ({one.wrong})" if one.wrong else "")
    if not run.n:
        return f"Nothing was drawn yet: {what}. Start it with start(), or draw(n)."
    counts = run.watch.counts
    tv = float(np.abs(counts / run.n - run.distribution).sum() / 2)
    seen = (
        f"{run.n:,} samples of {what}: total variation {tv:.3g}, where chance alone shows "
        f"{noise_floor(run.distribution, run.n):.3g} on average."
    )
    forbidden = np.flatnonzero((run.distribution == 0) & (counts > 0))
    if run.watch.rejected:
        head = "EVIDENCE AGAINST THE TARGET'S DISTRIBUTION"
        why = (
            f"“{choice.cells[int(forbidden[0])]}” was emitted, to which the target gives "
            f"probability 0: once is enough."
            if len(forbidden)
            else f"The e-process reached {bound} at sample {run.watch.crossed_at:,}; under the "
            f"target's distribution it ever does so with probability {run.alpha:g} at most, "
            f"however often "
            f"one looks."
        )
    else:
        head = "NO EVIDENCE AGAINST THE TARGET'S DISTRIBUTION"
        why = (
            f"The e-process stands at {np.exp(min(run.log_e, 700)):.3g}, and would alarm at "
            f"{bound}. That is no certainty: a small difference may need more samples."
        )
    peeked = (
        f"A p-value looked at {len(run.p)} times fell below {run.alpha:g} at sample "
        f"{run.p_alarm:,}: that is no evidence, it does so for right samplers too."
        if run.p_alarm is not None
        else f"A p-value looked at {len(run.p)} times never fell below {run.alpha:g}."
    )
    lines = [head, *wrap(f"{seen} {why}", 88), *wrap(peeked, 88)]
    if preview:
        lines.append(
            "(A short run, shown where there are no widgets: start() begins the real one.)"
        )
    return "\n".join(lines)


def picture_of_run(run: WatchedRun, cells: Sequence[str]) -> bytes | None:
    """Return a PNG of what was seen and of the evidence; None where there is too little."""
    from matplotlib.figure import Figure

    from specviz.figures._against_expected import against_expected
    from specviz.figures._evidence_over_samples import evidence_over_samples
    from specviz.lossless.statistics.pooling import pool_rare
    from specviz.lossless.statistics.sample import Sample

    drawn = run.cells
    if (
        pool_rare(len(drawn) / 2 * run.distribution).cells < 2
    ):  # too few for a p-value in half of them
        return None
    figure = Figure(figsize=(12.4, 4.8), dpi=90, layout="constrained")
    left, right = figure.subplots(1, 2)
    evidence_over_samples(drawn, run.distribution, alpha=run.alpha, ax=right)
    sample = Sample.of(drawn[:, None], vocab_size=len(cells))
    against_expected(sample, lambda prefix: run.distribution, words=list(cells), ax=left)
    held = io.BytesIO()
    figure.savefig(held, format="png")
    return held.getvalue()
