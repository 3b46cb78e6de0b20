"""Exact enumeration: the distribution that a drafter and a rule induce, without sampling anything.

The shipped loop, drafter and rule are run once for every way their draws can fall, each way
weighted with its probability. Where the vocabulary is small this *is* the output distribution, and
it can be compared with the target's to rounding. How many ways there are is estimated first, and
what would take years is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

import numpy as np
from tqdm.auto import tqdm

from specviz.core import checks
from specviz.core.contract import Draft, FloatArray, Sampling
from specviz.core.rules import check_fits, get_rule
from specviz.lossless.exact.branching import Branching

Distribution = dict[tuple[int, ...], float]
"""Text → probability."""

T = TypeVar("T")

Program = Callable[[Branching], Any]

MOST = 300_000
"""Largest number of ways that an enumeration may run: minutes."""

WALKS = 32


def outcomes(program: Callable[[Branching], T]) -> Iterator[tuple[float, T]]:
    """Run a program once for every way its draws can fall.

    Parameters
    ----------
    program : callable
        Takes draws (:class:`specviz.core.draws.Draws`); the same draws must lead to the same run.

    Yields
    ------
    (float, result)
        The probability of a way, and what the program returned on it. They sum to 1.

    Examples
    --------
    >>> def twice(draws):
    ...     return draws.accept(0.5, 0, 0) + draws.accept(0.5, 0, 1)
    >>> sorted(outcomes(twice))
    [(0.25, 0), (0.25, 1), (0.25, 1), (0.25, 2)]
    """
    scripts: list[tuple[int, ...]] = [()]
    while scripts:
        draws = Branching(scripts.pop())
        result = program(draws)
        scripts.extend(draws.untaken)
        yield draws.weight, result


def enumerate_distribution(
    pair: Any,
    drafter: Any,
    *,
    verify: str = "rejection",
    prompt: Any,
    length: int,
    sampling: Sampling | None = None,
    progress: bool = True,
) -> Distribution:
    """Return the exact distribution of the text that a drafter and a rule produce.

    Why it comes out as the target's is one line, p = q min(1, p/q) + P(reject) residual; see
    :func:`~specviz.lossless.exact.identity.identity`, which shows it term by term.

    Parameters
    ----------
    pair : TabularPair
        A small-vocabulary target and draft; the number of ways grows exponentially.
    drafter : Drafter
        What proposes.
    verify : str
        The rule's name.
    prompt : sequence of int
        The text to continue.
    length : int
        How many tokens to emit (fewer where the text ends by itself).
    sampling : Sampling, optional
        Shapes both distributions; plain sampling at temperature 1 by default.
    progress : bool
        Show a bar on runs of over two seconds.

    Returns
    -------
    dict
        Text (tuple of ids) → probability, summing to 1.

    Raises
    ------
    TypeError, ValueError
        For wrong input; or if there are more than 300,000 ways, with the length that would do.

    Examples
    --------
    >>> import specviz as sv
    >>> target, draft = sv.tabular.TabularModel([0.5, 0.5]), sv.tabular.TabularModel([0.9, 0.1])
    >>> pair = sv.tabular.TabularPair(target, draft)
    >>> distribution = enumerate_distribution(pair, sv.DraftModel(gamma=1), prompt=[0], length=1)
    >>> {text: round(mass, 12) for text, mass in sorted(distribution.items())}
    {(0,): 0.5, (1,): 0.5}
    """
    from specviz.decoding.hf.target import open_session
    from specviz.decoding.loop import rounds
    from specviz.decoding.stopping import Stopping

    _check(pair, length, sampling)
    rule = get_rule(verify)
    check_fits(drafter, rule)
    ids = pair.encode(prompt)

    def program_of(some: int) -> Callable[[Branching], tuple[int, ...]]:
        def program(draws: Branching) -> tuple[int, ...]:
            target = open_session(pair.target, pair.vocab_size)
            target.begin()
            session = drafter.start(pair, target, ids)
            stopping = Stopping(len(ids), some, target.context_length, pair.stop_ids)
            happened = rounds(
                target, session, rule, ids,
                sampling=sampling or Sampling(), draws=draws, stopping=stopping,
            )  # fmt: skip
            return tuple(int(token) for round_ in happened for token in round_.emitted)

        return program

    return _enumerated(program_of, length, pair.vocab_size, "enumerating", progress)


def _enumerated(
    program_of: Callable[[int], Callable[[Branching], tuple[int, ...]]], length: int,
    vocab_size: int, name: str, progress: bool,
) -> Distribution:  # fmt: skip
    """Return the distribution of what a program emits; refuse a length with too many ways."""
    ways = refuse_endless(program_of, length, vocab_size)
    return summed(tqdm(
        outcomes(program_of(length)), total=round(ways), desc=name, unit="way", delay=2,
        leave=False, disable=not progress,
    ))  # fmt: skip


def summed(weighted: Iterable[tuple[float, tuple[int, ...]]]) -> Distribution:
    """Return the distribution of texts that come with weights, several ways to each."""
    distribution: Distribution = {}
    for weight, text in weighted:
        distribution[text] = distribution.get(text, 0.0) + weight
    return distribution


def _check(pair: Any, length: Any, sampling: Any) -> None:
    checks.pair(pair)
    checks.whole("length", length, 1)
    if sampling is not None:
        checks.instance("sampling", sampling, Sampling)


def target_distribution(
    pair: Any, *, prompt: Any, length: int, sampling: Sampling | None = None, progress: bool = True
) -> Distribution:
    """Return the exact distribution of the target alone: products of its conditional distributions.

    Computed from the target's own distributions, not through the loop, so that the two can be
    compared. Arguments and errors as for :func:`enumerate_distribution`.

    Examples
    --------
    >>> import specviz as sv
    >>> coin = sv.tabular.TabularModel([0.5, 0.5])
    >>> target_distribution(sv.tabular.TabularPair(coin, coin), prompt=[0], length=1)
    {(0,): 0.5, (1,): 0.5}
    """
    from specviz.decoding.hf.target import open_session
    from specviz.decoding.sampling import logits_to_distributions

    _check(pair, length, sampling)
    session = open_session(pair.target, pair.vocab_size)
    start = pair.encode(prompt)
    ends = pair.stop_ids
    known: dict[tuple[int, ...], FloatArray] = {}  # text → (vocab,)

    def distribution_after(text: tuple[int, ...]) -> FloatArray:
        if text not in known:
            session.begin()
            ids = np.append(start, text).astype(np.int64)
            logits = session.verify(ids, Draft.empty(pair.vocab_size))
            (known[text],) = logits_to_distributions(logits, sampling or Sampling(), [ids])
        return known[text]

    def program_of(some: int) -> Callable[[Branching], tuple[int, ...]]:
        def program(draws: Branching) -> tuple[int, ...]:
            text: tuple[int, ...] = ()
            while len(text) < some and not (text and text[-1] in ends):
                text = (*text, draws.categorical(distribution_after(text), len(text)))
            return text

        return program

    found = _enumerated(program_of, length, pair.vocab_size, "target", progress)
    return dict(sorted(found.items()))


def total_variation(a: Mapping[Any, float], b: Mapping[Any, float]) -> float:
    """Return half the sum of absolute differences: the largest difference on any event.

    Raises
    ------
    TypeError, ValueError
        If one is no mapping from outcome to probability, or a probability is NaN or negative.

    Examples
    --------
    >>> total_variation({"x": 0.5, "y": 0.5}, {"x": 0.75, "y": 0.25})
    0.25
    """
    for name, distribution in (("a", a), ("b", b)):
        if not isinstance(distribution, Mapping):
            raise TypeError(
                f"{name} must map each outcome to its probability, as a dict does, "
                f"got {type(distribution).__name__}"
            )
        for key, mass in distribution.items():
            checks.number(f"the probability of {key!r:.60} in {name}", mass, at_least=0)
    return 0.5 * sum(abs(a.get(key, 0.0) - b.get(key, 0.0)) for key in a.keys() | b.keys())


class _RandomDraws(Branching):
    """Draws that fall at random, counting how many ways were open each time."""

    def __init__(self, generator: np.random.Generator) -> None:
        super().__init__()
        self.ways = 1.0
        self._generator = generator

    def _branch(self, chances: FloatArray) -> int:
        open_ways = np.flatnonzero(chances > 0)
        self.ways *= len(open_ways)
        return int(self._generator.choice(open_ways))


def ways_of(program: Program, walks: int = WALKS, seed: int = 0) -> float:
    """Return about how many ways the draws of a program can fall.

    The mean, over random walks, of the product of the branchings met: unbiased (Knuth 1975,
    "Estimating the efficiency of backtrack programs").

    Examples
    --------
    >>> def twice(draws):
    ...     return draws.accept(0.5, 0, 0) + draws.accept(0.5, 0, 1)
    >>> ways_of(twice)
    4.0
    """
    generator = np.random.default_rng(seed)
    total = 0.0
    for _ in range(walks):
        walk = _RandomDraws(generator)
        program(walk)
        total += walk.ways
    return total / walks


def refuse_endless(
    program_of: Callable[[int], Program], length: int, vocab_size: int, most: int = MOST
) -> float:
    """Return about how many ways there are at a length, or refuse it and name one that would do.

    Raises
    ------
    ValueError
        If there are more than ``most``.
    """
    ways = ways_of(program_of(length))
    if ways <= most:
        return ways
    would_do = 0
    while would_do + 1 < length and ways_of(program_of(would_do + 1)) <= most:
        would_do += 1
    advice = f"length={would_do} would do" if would_do else "use a smaller table or gamma"
    raise ValueError(
        f"length={length} has up to {float(vocab_size) ** min(length, 300):.1g} texts, and their "
        f"draws can fall in about {ways:.1g} ways, too many to run one by one (at most "
        f"{most:,}): {advice}"
    )
