"""Right and wrong samplers of short texts, drawn straight from their exact distributions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.stats import beta

import specviz as sv
from specviz.core.contract import FloatArray
from specviz.core.rules import Rule
from specviz.lossless import PrefixTree, Sample, grow
from tests.core.golden import GOLDEN, distribution
from tests.lossless.enumeration import round_by_round
from tests.lossless.planted import WRONG_RULES

LENGTH = 3


def markov(vocab_size: int = 8, *, seed: int = 3, concentration: float = 1.0) -> FloatArray:
    """``(vocab, vocab)``: a distribution after each token, none of them alike."""
    rng = np.random.default_rng(seed)
    return rng.dirichlet([concentration] * vocab_size, size=vocab_size)


def top_k(table: FloatArray, k: int) -> FloatArray:
    """Each distribution cut to its k most likely tokens."""
    rank = np.argsort(np.argsort(-table, axis=1), axis=1)
    cut = np.where(rank < k, table, 0.0)
    return cut / cut.sum(axis=1, keepdims=True)


def top_p(table: FloatArray, mass: float) -> FloatArray:
    """Each distribution cut to the fewest most likely tokens that hold ``mass``."""
    order = np.argsort(-table, axis=1)
    ordered = np.take_along_axis(table, order, axis=1)
    before = np.cumsum(ordered, axis=1) - ordered
    cut = np.zeros_like(table)
    np.put_along_axis(cut, order, np.where(before < mass, ordered, 0.0), axis=1)
    return cut / cut.sum(axis=1, keepdims=True)


def conditional(table: FloatArray) -> Any:
    """The distribution of the next token given those emitted; the prompt is token 0."""
    return lambda prefix: table[prefix[-1] if prefix else 0]


def tree_of(table: FloatArray, length: int = LENGTH, **options: Any) -> PrefixTree:
    return grow(conditional(table), len(table), length, **options)


def texts(
    distribution: Mapping[tuple[int, ...], float], n: int, seed: int, vocab_size: int
) -> Sample:
    """n independent texts of an exact distribution."""
    rng = np.random.default_rng(seed)
    every = np.array(list(distribution), dtype=np.int64)
    weights = np.array(list(distribution.values()))
    return Sample(every[rng.choice(len(every), n, p=weights / weights.sum())], vocab_size)


P = distribution(GOLDEN["one_position"]["p"])
Q = distribution(GOLDEN["one_position"]["q"])


def golden_tree() -> PrefixTree:
    """The target of golden.json: the distribution p of ``one_position`` in every context,
    three tokens.
    """
    return grow(lambda prefix: P, 4, LENGTH)


def wrong_distribution(name: str) -> dict[tuple[int, ...], float]:
    """The exact distribution of a wrong rule's first three tokens,
    in the setting of golden.json.
    """
    return distribution_under(P, Q, WRONG_RULES[name])


def distribution_under(p: FloatArray, q: FloatArray, rule: Rule) -> dict[tuple[int, ...], float]:
    """The exact distribution of the first three tokens under a rule, gamma 2.

    Rounds never cut short.
    """
    pair = sv.tabular.TabularPair(sv.tabular.TabularModel(p), sv.tabular.TabularModel(q))
    return round_by_round(pair, sv.DraftModel(gamma=2), [rule], length=LENGTH)


def upper_bound(alarms: int, runs: int, confidence: float = 0.99) -> float:
    """Clopper and Pearson's upper bound on the rate of alarms."""
    return float(beta.ppf(confidence, alarms + 1, runs - alarms))
