"""Measures of a run, each with its convention, because tools disagree about what they count.

Three questions are kept apart everywhere below. *Proposed* is what the draft sent to the target;
*examined* is what the target's verdict got to (nothing after a rejection); *emitted* is what
became text. When a text ends inside a round (a stop token, the last token that was wanted), the
verdict still counts as the verdict it was, so all measures of **acceptance** go by verdicts; only
emitted tokens count for **tokens per pass**.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from specviz.core.contract import FloatArray, IntArray
from specviz.core.formatting import MISSING, format_number

if TYPE_CHECKING:
    from specviz.core.trace.trace import Trace

Value = float | int | FloatArray | IntArray | None

NEVER, ACCEPTED = 0, 1
WIDTH = 110  # of a printed line
SHOWN = 8  # positions

CONVENTIONS = {
    "alpha": "mean of sum min(p, q) over examined proposals (after a rejection the text differs); "
    "in a tree over first candidates only (later ones are judged by a residual)",
    "accepted_per_proposed": "accepted / proposed, discarded proposals included",
    "accepted_per_examined": "accepted / examined; proposals after a rejection do not count",
    "mean_accepted": "accepted proposals per round, without the closing token",
    "tokens_per_pass": "emitted tokens per target pass, closing tokens included; tokens that the "
    "end of the text cut off do not count",
    "block_efficiency": "1 + mean_accepted, as papers count it; tokens that the end of the text "
    "cut off do count",
    "acceptance_by_position": "accepted at depth i / rounds that proposed at depth i, from 0 on",
    "acceptance_by_position_given_examined": "accepted at depth i / rounds examined at depth i",
    "accepted_lengths": "rounds that accepted 0, 1, 2 and more proposals; they sum to passes",
    "proposed": "proposals (in a tree: nodes)",
    "examined": "proposals that the rule examined, siblings included",
    "accepted": "proposals on the accepted paths, emitted or not",
    "passes": "target passes, one a round; the first one also reads the prompt",
    "tokens": "tokens that became text",
    "draft_seconds": "total time to propose",
    "verify_seconds": "total time of the target's passes",
    "other_seconds": "total time to decide, roll back and record",
    "draft_cost": "c = time per proposal / time per target pass; the first round (it reads the "
    "prompt) and rounds without proposals are left out. Too high for early exit, where a target "
    "pass runs only the layers that drafting did not",
}
"""What each measure counts, in one sentence."""


@dataclass(frozen=True)
class Measure:
    """One number, or one per position, with what it means.

    Parameters
    ----------
    name : str
        As in :class:`Measures`.
    value : float, int, array or None
        None where there is nothing to take it from, such as an acceptance without proposals.
    convention : str
        What was counted, in one sentence.
    count : int or array
        Over how many rounds, proposals or tokens it was taken (an array: per position).
    """

    name: str
    value: Value
    convention: str
    count: int | IntArray


class Measures(Mapping[str, Measure]):
    """The measures of a run by name; prints as a table.

    Examples
    --------
    >>> Measures([Measure("passes", 3, "target passes", 3)])["passes"].value
    3
    """

    def __init__(self, measures: list[Measure]) -> None:
        self._by_name = {measure.name: measure for measure in measures}

    def __getitem__(self, name: str) -> Measure:
        """Return the measure of that name.

        Raises
        ------
        KeyError
            If there is none, naming those there are.
        """
        if name not in self._by_name:
            raise KeyError(f"no measure {name!r}; there are {', '.join(self._by_name)}")
        return self._by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self._by_name)

    def __repr__(self) -> str:
        rows = [(m.name, show(m.value), m.convention) for m in self.values()]
        first = max((len(name) for name, _, _ in rows), default=0)
        second = max((len(value) for _, value, _ in rows), default=0)
        lines = []
        for name, value, convention in rows:
            start = f"{name:<{first}}  {value:<{second}}  "
            lines += textwrap.wrap(
                convention,
                max(WIDTH, len(start) + 30),
                initial_indent=start,
                subsequent_indent=" " * len(start),
            )
        return "\n".join(lines)

    def __str__(self) -> str:
        from specviz.figures.terminal import for_stdout

        return for_stdout(repr(self))

    def _repr_html_(self) -> str:
        from specviz.figures.templating import part

        rows = [(m.name, show(m.value), m.convention) for m in self.values()]
        return str(part("run.html").table(("measure", "value", "convention"), rows))


def show(value: Value) -> str:
    """Return a measure's value as short text.

    Examples
    --------
    >>> show(0.5), show(np.array([0.75, 0.5])), show(None)
    ('.500', '.750 .500', '–')
    """
    if value is None:
        return MISSING
    if isinstance(value, np.ndarray):
        numbers = " ".join(show(x) for x in value[:SHOWN].tolist())
        return (numbers + (" …" if len(value) > SHOWN else "")) or MISSING
    return f"{value:,}" if isinstance(value, int) else format_number(value, digits=3)


def run_length_metrics(accepted: Any, proposed: Any) -> dict[str, float | FloatArray | IntArray]:
    """Return the measures that follow from accepted run lengths alone (chains).

    Parameters
    ----------
    accepted : array-like ``(rounds,)``
        How many proposals each round accepted.
    proposed : int or array-like ``(rounds,)``
        How many it proposed (gamma).

    Returns
    -------
    dict
        ``mean_accepted``, ``tokens_per_pass`` (with the closing token), ``accepted_per_proposed``,
        ``accepted_per_examined``, ``acceptance_by_position``,
        ``acceptance_by_position_given_examined``, ``accepted_lengths``; those that would divide
        by 0 are left out.

    Raises
    ------
    ValueError
        If a round accepted fewer than 0 or more than it proposed.

    Examples
    --------
    >>> found = run_length_metrics([3, 2, 1, 0], 3)
    >>> found["mean_accepted"], found["tokens_per_pass"]
    (1.5, 2.5)
    """
    run = np.asarray(accepted, dtype=np.int64)  # (rounds,)
    asked = np.broadcast_to(np.asarray(proposed, dtype=np.int64), run.shape)
    if run.ndim != 1 or np.any(run < 0) or np.any(run > asked):
        raise ValueError(
            "accepted must be one list of run lengths, each from 0 to what its round proposed"
        )
    examined = np.minimum(run + 1, asked)
    kept = by_depth(run, asked)
    values: dict[str, Value] = {
        "mean_accepted": _rate(run.sum(), len(run)),
        "tokens_per_pass": _rate(run.sum() + len(run), len(run)),
        "accepted_per_proposed": _rate(run.sum(), asked.sum()),
        "accepted_per_examined": _rate(run.sum(), examined.sum()),
        "acceptance_by_position": kept / reached(asked),
        "acceptance_by_position_given_examined": _given(kept, reached(examined)),
        "accepted_lengths": np.bincount(run, minlength=int(asked.max(initial=0)) + 1),
    }
    return {name: value for name, value in values.items() if value is not None}


def measures(trace: Trace) -> Measures:
    """Return every measure of a run by name, each with its convention.

    Without a number to take a measure from it is None (or an empty array per position), never
    NaN: a run without proposals has no alpha.

    Parameters
    ----------
    trace : Trace
        Chains, trees and plain rounds alike. In a tree the accepted length is the path's, the
        position of a proposal its depth, and each node a proposal.

    Examples
    --------
    >>> trace.measures()["alpha"].value  # doctest: +SKIP
    0.87
    """
    nodes, rounds = trace.node_table, trace.round_table
    passes, counts = len(trace), rounds["nodes"].astype(np.int64)
    of_round = np.repeat(np.arange(passes), counts)  # (nodes,)
    depth, parent = depths(nodes["parent"], counts)
    examined = nodes["verdict"] != NEVER
    accepted = nodes["verdict"] == ACCEPTED

    lengths = np.bincount(of_round[accepted], minlength=passes)  # (rounds,) accepted
    heights = deepest(of_round, depth, passes)  # (rounds,) proposed levels
    looked_at = deepest(of_round[examined], depth[examined], passes)  # (rounds,) examined levels
    kept = by_depth(lengths, heights)
    tokens = int(nodes["emitted"].sum()) + int(rounds["closing_emitted"].sum())
    first = first_siblings(of_round, parent) & examined
    n_proposed, n_examined, n_accepted = len(depth), int(examined.sum()), int(accepted.sum())

    found: dict[str, tuple[Value, int | IntArray]] = {
        "alpha": (_mean(nodes["overlap"][first]), int(first.sum())),
        "accepted_per_proposed": (_rate(n_accepted, n_proposed), n_proposed),
        "accepted_per_examined": (_rate(n_accepted, n_examined), n_examined),
        "mean_accepted": (_rate(n_accepted, passes), passes),
        "tokens_per_pass": (_rate(tokens, passes), passes),
        "block_efficiency": (_rate(n_accepted + passes, passes), passes),
        "acceptance_by_position": (kept / reached(heights), reached(heights)),
        "acceptance_by_position_given_examined": (
            _given(kept, reached(looked_at)),
            reached(looked_at),
        ),
        "accepted_lengths": (
            np.bincount(lengths, minlength=int(heights.max(initial=0)) + 1),
            passes,
        ),
        "proposed": (n_proposed, n_proposed),
        "examined": (n_examined, n_proposed),
        "accepted": (n_accepted, n_proposed),
        "passes": (passes, passes),
        "tokens": (tokens, tokens),
        "draft_seconds": (_total(rounds["draft_seconds"]), passes),
        "verify_seconds": (_total(rounds["verify_seconds"]), passes),
        "other_seconds": (_total(rounds["other_seconds"]), passes),
        "draft_cost": _draft_cost(rounds["draft_seconds"], rounds["verify_seconds"], counts),
    }
    return Measures([Measure(n, value, CONVENTIONS[n], c) for n, (value, c) in found.items()])


def _given(accepted: IntArray, examined: IntArray) -> FloatArray:
    given: FloatArray = accepted[: len(examined)] / examined
    return given


def _rate(part: Any, whole: Any) -> float | None:
    return float(part) / float(whole) if whole else None


def _mean(values: Any) -> float | None:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else None


def _total(seconds: Any) -> float | None:
    """Return the sum, or None where a round was not timed."""
    return float(seconds.sum()) if len(seconds) and not np.isnan(seconds).any() else None


def _draft_cost(drafting: Any, verifying: Any, counts: IntArray) -> tuple[float | None, int]:
    used = counts > 0
    used[:1] = False
    drafted, verified = _total(drafting[used]), _total(verifying[used])
    if drafted is None or not verified:
        return None, int(used.sum())
    per_proposal = drafted / int(counts[used].sum())
    return per_proposal / (verified / int(used.sum())), int(used.sum())


# -- proposals by depth: chains and trees alike, whole columns at a time --------------------------


def reached(lengths: IntArray) -> IntArray:
    """Return how many of the lengths exceed each depth 0, 1, …, up to the largest."""
    at_least = np.bincount(lengths)[::-1].cumsum()[::-1]  # at_least[i]: lengths >= i
    return at_least[1:].astype(np.int64)


def depths(parents: Any, counts: IntArray) -> tuple[IntArray, IntArray]:
    """Return each node's depth within its round, and its parent's row in the table (or -1)."""
    starts = np.repeat(np.cumsum(counts) - counts, counts)  # (nodes,)
    parent = np.where(parents >= 0, parents + starts, -1).astype(np.int64)
    # pointer doubling: after i steps `up` is the ancestor 2**i levels above; row n is the root
    root = len(parent)
    up = np.append(np.where(parent >= 0, parent, root), root)
    levels = np.append(np.ones(root, dtype=np.int64), 0)
    while np.any(up != root):
        levels += levels[up]
        up = up[up]
    return levels[:-1] - 1, parent


def deepest(of_round: IntArray, depth: IntArray, passes: int) -> IntArray:
    """Return how many levels of proposals each round has, ``(rounds,)``."""
    levels = np.zeros(passes, dtype=np.int64)
    np.maximum.at(levels, of_round, depth + 1)
    return levels


def first_siblings(of_round: IntArray, parent: IntArray) -> NDArray[np.bool_]:
    """Return which nodes are the first candidate at their place in the text, ``(nodes,)``."""
    place = np.where(parent >= 0, parent, -1 - of_round)
    first = np.zeros(len(parent), dtype=bool)
    first[np.unique(place, return_index=True)[1]] = True
    return first


def by_depth(lengths: IntArray, heights: IntArray) -> IntArray:
    """Return how many rounds accepted a proposal at each depth that was proposed."""
    out = np.zeros(int(heights.max(initial=0)), dtype=np.int64)
    accepted = reached(lengths)
    out[: len(accepted)] = accepted
    return out
