"""Every planted fault: its distance from the target, and how surely n texts show it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from typing import Any

from specviz.core import checks
from specviz.core.contract import FloatArray, Sampling
from specviz.core.formatting import text_table
from specviz.lossless.exact.enumerate import Distribution, target_distribution, total_variation
from specviz.lossless.faults.catalogue import FAULTS, Fault, get_fault
from specviz.lossless.faults.run import faulty_distribution
from specviz.lossless.statistics.power import power_against
from specviz.lossless.statistics.prefix_tree import PrefixTree, grow

SURE = 0.999
"""A fault of this power must be caught in at least 198 of 200 runs: fewer have probability .001."""

REMEMBERING = 3
"""Tokens per text for faults with a memory: they are enumerated run by run, which grows fast."""

MOST = 10**9

NOTHING_CHANGED = Sampling()


@dataclass(frozen=True)
class FaultPower:
    """One planted fault: its distance from the target, and the power of the tests against it.

    Parameters
    ----------
    name : str
        The fault.
    wrong, breaks : str
        What is done wrong, and the rule of the algorithm that it breaks.
    length : int
        Tokens per text.
    tv : float
        Total variation of the first ``length`` tokens' distribution from the target's, by
        enumeration.
    n : int
        Texts.
    table : str
        The test that shows it best; ``"support"`` where impossible tokens do.
    dof : int
        Degrees of freedom of that table after pooling (0 for ``"support"``).
    power : float
        Probability at least with which the battery catches it with n texts: that of the best test
        alone, at Holm's first step.
    needed : int or None
        About how many texts raise that to :data:`SURE`; None if 10⁹ do not.
    """

    name: str
    wrong: str
    breaks: str
    length: int
    tv: float
    n: int
    table: str
    dof: int
    power: float
    needed: int | None

    @property
    def sure(self) -> bool:
        """Whether n texts catch it with probability :data:`SURE`: then 198 of 200 runs must."""
        return self.power >= SURE


@dataclass(frozen=True)
class FaultTable:
    """All faults; ``table["name"]`` is one, iterating gives each."""

    rows: tuple[FaultPower, ...]

    def __iter__(self) -> Iterator[FaultPower]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, name: str) -> FaultPower:
        for row in self.rows:
            if row.name == name:
                return row
        raise KeyError(name)

    def __repr__(self) -> str:
        lines = [HEADS, *(_cells(row) for row in self.rows)]
        return f"{text_table(lines, left=(0, 3))}\n\n{self.summary()}"

    def _repr_html_(self) -> str:
        from specviz.figures.templating import part

        lines = [(row, _cells(row)[1:]) for row in self.rows]
        return str(part("table.html").faults(HEADS, lines, self.summary()))

    def summary(self) -> str:
        """Return how many faults n texts catch, in a sentence or two."""
        if not self.rows:
            return "No fault was asked for."
        sure = sum(row.sure for row in self.rows)
        return (
            f"With {self.rows[0].n:,} texts, {sure} of {len(self.rows)} are caught with "
            f"probability {SURE} or more, that is in at least 198 of 200 runs. The last column "
            f"says how many texts each fault needs for that."
        )


HEADS = ("fault", "length", "TV", "best test", "dof", "power", "texts for .999")


def _cells(row: FaultPower) -> tuple[str, ...]:
    power = f"{row.power:.3f}" if row.power < 0.9995 else "> .999"
    needed = f"> {MOST:,}" if row.needed is None else f"{row.needed:,}"
    return (row.name, f"{row.length}", f"{row.tv:.4f}", row.table, f"{row.dof}", power, needed)


def table(
    n: int = 50_000,
    *,
    pair: Any = None,
    prompt: Any = None,
    gamma: int = 2,
    length: int = 4,
    alpha: float = 0.01,
    names: list[str] | None = None,
    progress: bool = True,
) -> FaultTable:
    """Return every fault with its exact total variation and its power at n texts.

    Parameters
    ----------
    n : int
        How many texts are drawn.
    pair : TabularPair, optional
        Target and draft as tables; by default three tokens, distributions that depend on the last
        two.
    prompt : sequence of int, optional
        What is continued.
    gamma : int
        Proposals per round.
    length : int
        Tokens per text, more than gamma; at most 3 for the few faults with a memory.
    alpha : float
        Of the battery, all tests together.
    names : list of str, optional
        Some faults only.
    progress : bool
        Show a bar on runs of over two seconds.

    Returns
    -------
    FaultTable
        With a view for notebooks and one for terminals.

    Raises
    ------
    TypeError, ValueError
        If n or length is no whole number >= 1, a name is unknown, or the pair has no tables.

    Examples
    --------
    >>> found = table(names=["greedy_draft_soft_q"], length=2)["greedy_draft_soft_q"]
    >>> found.sure, found.table, found.needed < 1000
    (True, 'position 1', True)
    """
    from tqdm.auto import tqdm

    from specviz.core.tabular import TabularModel

    checks.whole("n", n, 1)
    checks.whole("length", length, 1)
    chosen = [get_fault(name) for name in (FAULTS if names is None else names)]
    pair = example_pair() if pair is None else pair
    if not isinstance(pair.target, TabularModel):
        raise ValueError(
            "pair must be a TabularPair (sv.tabular): the faults' distributions are enumerated"
        )
    ids = [1, 1, 1] if prompt is None else prompt
    bar = tqdm(chosen, desc="faults", unit="fault", delay=2, leave=False, disable=not progress)
    return FaultTable(tuple(_row(pair, ids, one, gamma, length, n, alpha) for one in bar))


def example_pair() -> Any:
    """Return the pair of :func:`table`: three tokens, distributions that depend on the last two.

    Examples
    --------
    >>> example_pair().vocab_size
    3
    """
    from specviz.core.tabular import TabularModel, TabularPair

    p, q = (TabularModel.random(3, 2, seed=seed, concentration=0.7) for seed in (5, 6))
    return TabularPair(p, q)


def target_tree(
    pair: Any, prompt: Any, length: int, sampling: Sampling = NOTHING_CHANGED
) -> PrefixTree:
    """Return the tree of a table's distribution under a temperature."""
    ids = pair.encode(prompt).tolist()

    def distribution(prefix: tuple[int, ...]) -> FloatArray:
        p: FloatArray = pair.target.distribution([*ids, *prefix]) ** (1 / sampling.temperature)
        p /= p.sum()
        return p

    return grow(distribution, pair.vocab_size, length, end_ids=pair.stop_ids)


def _row(
    pair: Any, prompt: Any, fault: Fault, gamma: int, length: int, n: int, alpha: float
) -> FaultPower:
    length = min(length, REMEMBERING) if fault.remembers else length
    wrong = faulty_distribution(pair, prompt, fault, gamma=gamma, length=length)
    exact = target_distribution(pair, prompt=prompt, length=length, sampling=fault.sampling)
    tree = target_tree(pair, prompt, length, fault.sampling)
    impossible = sum(mass for text, mass in wrong.items() if exact.get(text, 0.0) == 0)
    name, dof, power = _best(tree, wrong, n, alpha, impossible)
    needed = _needed(tree, wrong, alpha, impossible)
    tv = total_variation(wrong, exact)
    return FaultPower(
        fault.name, fault.wrong, fault.breaks, length, tv, n, name, dof, power, needed
    )


def _best(
    tree: PrefixTree, wrong: Distribution, n: int, alpha: float, impossible: float
) -> tuple[str, int, float]:
    """Return the test with the most power, its degrees of freedom and its power."""
    seen = 1 - (1 - min(1.0, impossible)) ** n
    tables = power_against(tree, wrong, n, alpha=alpha)
    if not tables or seen >= tables[0].power:
        return "support", 0, seen
    strongest = max(tables, key=lambda one: (one.power, one.noncentrality / one.dof))
    return strongest.name, strongest.dof, strongest.power


def _needed(tree: PrefixTree, wrong: Distribution, alpha: float, impossible: float) -> int | None:
    """Return about the smallest n of power :data:`SURE`, to 3%."""
    n = 32.0
    while _best(tree, wrong, ceil(n), alpha, impossible)[2] < SURE:
        n *= 2
        if n > MOST:
            return None
    low = n / 2
    while n / low > 1.03:
        middle = (n * low) ** 0.5
        if _best(tree, wrong, ceil(middle), alpha, impossible)[2] < SURE:
            low = middle
        else:
            n = middle
    return ceil(n)
