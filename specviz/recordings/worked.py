"""Two worked iterations as runs that replay: ``python -m specviz.recordings.worked``.

Each is one pass of the loop over distributions written down by hand, so every number can be
followed on paper. The seed is the first one whose draws give the text that is told.

``worked/the-quick-brown``
    The draft proposes "the" (q .3, p .4) and "quick" (q .2, p .1). The first is accepted; u = .7 is
    not below .1 / .2, so the second is rejected and "brown" is drawn from the residual. *Two*
    tokens leave this pass, not three.
``worked/capital-of-france``
    After "The capital of France is" all four proposals are accepted, so the same pass gives a fifth
    token, the bonus. The draft never read its own last proposal: its cache lacks that token.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from specviz.core.tabular import TabularModel, TabularPair
from specviz.core.trace.columns import TIMES
from specviz.recordings.record import squeeze
from specviz.recordings.shelf import SUFFIX

if TYPE_CHECKING:
    from specviz.core.trace.trace import Trace

MOST_SEEDS = 200_000


def worked() -> dict[str, Trace]:
    """Return both iterations; they need no model, only the loop."""
    return {"the-quick-brown": the_quick_brown(), "capital-of-france": capital_of_france()}


def the_quick_brown() -> Trace:
    """Return the iteration with a rejection, from the numbers of the two claims it corrects."""
    words = ("Watch", " the", " quick", " brown", " fox", " lazy")
    p = np.array([0, 0.4, 0.1, 0.3, 0.15, 0.05])
    q = np.array([0, 0.3, 0.2, 0.1, 0.15, 0.25])
    pair = TabularPair(
        TabularModel(np.tile(p, (len(words), 1)), name="target"),
        TabularModel(np.tile(q, (len(words), 1)), name="draft"),
        words=words,
    )

    def wanted(trace: Trace) -> bool:
        u = trace.node_table["u"]
        drawn = trace.node_table["token"].tolist()[:2] == [1, 2]
        return drawn and trace.tokens.tolist() == [1, 3] and abs(float(u[1]) - 0.7) < 0.005

    return _found(pair, [0], 2, " brown", wanted)


def capital_of_france() -> Trace:
    """Return the iteration in which all proposals are accepted."""
    words = ("The", " capital", " of", " France", " is", " Paris", ",", " a", " large", " city")
    p, q = (np.full((len(words), len(words)), 1 / len(words)) for _ in range(2))
    for before, after, likely, guessed in (
        (4, 5, 0.9, 0.8), (5, 6, 0.5, 0.6), (6, 7, 0.6, 0.5), (7, 8, 0.4, 0.5), (8, 9, 0.7, 0.6),
    ):  # fmt: skip
        p[before], q[before] = _row(len(words), after, likely), _row(len(words), after, guessed)
    pair = TabularPair(TabularModel(p, name="target"), TabularModel(q, name="draft"), words=words)
    return _found(
        pair, [0, 1, 2, 3, 4], 4, " city", lambda trace: trace.tokens.tolist() == [5, 6, 7, 8, 9]
    )


def _row(size: int, token: int, share: float) -> NDArray[np.float64]:
    """Return a distribution with a share on one token, the rest spread evenly."""
    row = np.full(size, (1 - share) / (size - 1))
    row[token] = share
    return row


def _found(
    pair: TabularPair, prompt: list[int], gamma: int, stop: str, wanted: Callable[[Trace], bool]
) -> Trace:
    """Return the run of the first seed that is one round and as wanted, without times.

    Raises
    ------
    RuntimeError
        If no seed gives it.
    """
    from specviz.api.generate import generate

    for seed in range(MOST_SEEDS):
        trace = generate(
            pair, prompt, gamma=gamma, max_new_tokens=gamma + 1, stop=stop, seed=seed, k=10,
            progress=False,
        )  # fmt: skip
        if len(trace) == 1 and wanted(trace):
            for name in TIMES:  # of a table, they say nothing
                trace.round_table.replace(name, np.full(1, np.nan))
            return trace
    raise RuntimeError("no seed gives this iteration")


def main() -> int:
    """Record both; return the exit code."""
    folder = Path(__file__).parent / "runs" / "worked"
    folder.mkdir(parents=True, exist_ok=True)
    for name, trace in worked().items():
        trace.save(folder / (name + SUFFIX))
        squeeze(folder / (name + SUFFIX))
    return 0


if __name__ == "__main__":
    sys.exit(main())
