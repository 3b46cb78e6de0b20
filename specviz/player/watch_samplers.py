"""What a watch can draw from: our loop on two tables, right or with a planted fault; functions."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

from specviz.core.checks import SEED_LIMIT
from specviz.core.contract import IntArray, Sampling
from specviz.core.tabular import TabularModel, TabularPair
from specviz.figures.escaping import visible

MOST_CELLS = 24
"""Largest number of bars that can be told apart."""
RIGHT = "right"

DrawCells = Callable[[int, int, int], Any]
"""(n, run, index of the first sample in the run) → ``(n,)`` cells."""


@dataclass(frozen=True)
class Watched:
    """One sampler that can be chosen.

    Parameters
    ----------
    name : str
        How it is called.
    label : str
        What the list shows.
    draw : callable
        (n, run, first) → ``(n,)`` cells.
    wrong : str
        What is done wrong, in a sentence.
    distribution : list of float, optional
        Its exact distribution ``(cells,)``, where it is known.
    right : bool
        Whether it is the right decoder.
    """

    name: str
    label: str
    draw: DrawCells = field(repr=False)
    wrong: str = ""
    distribution: list[float] | None = None
    right: bool = False

    def told(self, target: Sequence[float]) -> dict[str, Any]:
        """Return what the script needs of it."""
        tv = (
            None
            if self.distribution is None
            else float(np.abs(np.subtract(self.distribution, target)).sum() / 2)
        )
        return {
            "name": self.name, "label": self.label, "wrong": self.wrong,
            "distribution": self.distribution,
            "tv": tv, "right": self.right,
        }  # fmt: skip


@dataclass(frozen=True)
class Watchable:
    """Everything that can be watched, on the same cells.

    Parameters
    ----------
    distribution : list of float
        The target's distribution ``(cells,)``.
    cells : list of str
        What to call each cell.
    samplers : list of Watched
        The first is drawn from unless another is asked for.
    came_from : str
        A line about where the samples come from.
    """

    distribution: list[float]
    cells: list[str]
    samplers: list[Watched]
    came_from: str

    def named(self, name: str, argument: str = "sampler") -> Watched:
        """Return the sampler of that name, given as ``argument``.

        Raises
        ------
        ValueError
            If there is none, naming those there are.
        """
        for one in self.samplers:
            if one.name == name:
                return one
        known = ", ".join(repr(one.name) for one in self.samplers)
        raise ValueError(f"{argument} must be one of {known}, got {name!r}")


def of_pair(
    pair: Any, *, length: int, gamma: int, faults: Sequence[str] | None, seed: int
) -> Watchable:
    """Return our loop on two tables: right, and with each planted fault that shows here.

    Raises
    ------
    TypeError, ValueError
        If it is no pair of tables, or its texts are too many to tell apart.
    """
    from specviz.lossless.audit.own_loop import chosen, own_loop
    from specviz.lossless.exact.enumerate import target_distribution
    from specviz.lossless.faults import FAULTS, faulty_distribution, get_fault

    if not isinstance(pair, TabularPair) or pair.draft is None:
        raise TypeError(
            f"sampler must be a TabularPair with a draft, a function (n, seed) -> cells with "
            f"distribution=, or a mapping of names to such functions, got {type(pair).__name__}"
        )
    size = pair.vocab_size**length
    if size > MOST_CELLS or pair.stop_ids:
        raise ValueError(
            f"length must leave at most {MOST_CELLS} texts to tell apart, none of which ends by "
            f"itself: {pair.vocab_size} tokens and length {length} give {size:,}"
        )
    prompt = np.zeros(1, dtype=np.int64)
    texts = list(product(range(pair.vocab_size), repeat=length))
    places = pair.vocab_size ** np.arange(length - 1, -1, -1)

    def as_list(distribution: Mapping[tuple[int, ...], float]) -> list[float]:
        return [float(distribution.get(text, 0.0)) for text in texts]

    def sampler(fault: Any) -> DrawCells:
        drafter, rule = chosen(pair, None, gamma, None, Sampling(), fault)
        loops: dict[int, Any] = {}  # of the run that is drawn: each has a seed of its own

        def draw(n: int, run: int, first: int) -> IntArray:
            if run not in loops:
                loops.clear()
                own = (seed + run) % SEED_LIMIT
                made = own_loop(pair, prompt, length, drafter, rule, Sampling(), own, fault)
                loops[run] = made.drawer
            tokens = np.asarray(loops[run].draw(prompt, n, 0, first))
            cells: IntArray = tokens[:, :length] @ places
            return cells

        return draw

    distribution = as_list(target_distribution(pair, prompt=prompt, length=length))
    samplers = [
        Watched(RIGHT, "the right decoder", sampler(None), distribution=distribution, right=True)
    ]
    asked = faults is not None
    for name in FAULTS if faults is None else faults:
        fault = get_fault(name)
        if fault.drafter != "model" or fault.sampling != Sampling():
            if asked:
                raise ValueError(f"faults has {name!r}, which does not show with a draft model")
            continue
        wrong = as_list(faulty_distribution(pair, prompt, fault, gamma=gamma, length=length))
        if not asked and np.abs(np.subtract(wrong, distribution)).sum() < 1e-9:
            continue  # nothing would be seen of it in these texts
        label = f"fault: {fault.name.replace('_', ' ')}"
        samplers.append(Watched(fault.name, label, sampler(fault), fault.wrong, wrong))
    words = [visible(" ".join(piece.strip() for piece in pair.pieces(text))) for text in texts]
    what = "next tokens" if length == 1 else f"texts of {length} tokens"
    return Watchable(
        distribution, words, samplers, f"{what}, drawn by this package's own loop in Python"
    )


def of_functions(
    functions: Mapping[str, Any], distribution: Any, labels: Any, seed: int
) -> Watchable:
    """Return functions of the reader's, ``(n, seed)`` → ``(n,)`` cells, each by name.

    Raises
    ------
    TypeError, ValueError
        If one is no function, or the distribution is missing or none.
    """
    if distribution is None:
        raise ValueError(
            "distribution must be given with functions: the target's probability of each cell"
        )
    target = np.asarray(distribution, dtype=np.float64)
    if target.ndim != 1 or not 2 <= len(target) <= MOST_CELLS:
        raise ValueError(
            f"distribution must have 2 to {MOST_CELLS} cells (pool the rare ones), got shape "
            f"{target.shape}"
        )
    if not np.all(target >= 0) or abs(float(target.sum()) - 1) > 1e-6:
        raise ValueError(f"distribution must be probabilities that sum to 1, got {target.tolist()}")
    target = target / target.sum()
    names = [str(i) for i in range(len(target))] if labels is None else list(labels)
    if len(names) != len(target) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"labels must be {len(target)} str, one a cell, got {labels!r}")
    if not functions:
        raise ValueError("sampler is empty: name at least one function")
    samplers = []
    for name, function in functions.items():
        if not callable(function):
            raise TypeError(f"sampler[{name!r}] must be a function, got {type(function).__name__}")
        _checked_arity(name, function)
        label = visible(str(name))
        samplers.append(Watched(str(name), label, _drawing(function, len(target), seed)))
    words = [visible(name.strip() or name, limit=24) for name in names]
    return Watchable(target.tolist(), words, samplers, "samples of a function in Python")


def _checked_arity(name: str, function: Any) -> None:
    """Refuse a function that does not take ``(n, seed)``.

    Raises
    ------
    TypeError
        If it would fail at the first draw.
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # of some built-in functions nothing is known
        return
    try:
        signature.bind(1, 0)
    except TypeError:
        raise TypeError(
            f"sampler {name!r} must take (n, seed) and return n cells, got one that takes "
            f"{signature}"
        ) from None


def _drawing(function: Any, size: int, seed: int) -> DrawCells:
    def draw(n: int, run: int, first: int) -> IntArray:
        mixed = np.random.SeedSequence([seed, run, first]).generate_state(1)
        cells = np.asarray(function(n, int(mixed[0])))
        if cells.shape != (n,) or cells.dtype.kind not in "iu":
            raise ValueError(
                f"the sampler must return {n} whole numbers, got {cells.dtype} {cells.shape}"
            )
        if n and not (cells.min() >= 0 and cells.max() < size):
            raise ValueError(f"the sampler returned a cell outside 0 … {size - 1}")
        return cells

    return draw


def fox_pair() -> TabularPair:
    """Return the pair of the editor's first preset."""
    from specviz.player.editor import FOX

    return TabularPair(
        TabularModel(FOX["p"], name="target"), TabularModel(FOX["q"], name="draft"), FOX["words"]
    )
